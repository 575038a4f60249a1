"""How answers look. Texts are the first thing to see; ids are short, and long enough to be typed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen, one_line, shown

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remembrancer.services.answers import (
        Calibration,
        ChangeAnswer,
        DoctorReport,
        Forgotten,
        HistoryAnswer,
        HistoryEntry,
        ImportAnswer,
        ListAnswer,
        ListView,
        MatchView,
        MemoryView,
        NoticeView,
        PassageView,
        ReplyAnswer,
        SaveAnswer,
    )

STATE = {"pinned": "yellow", "active": "green", "resting": "blue", "expired": "red"}
SHORT = 8


def short(memory: UUID) -> str:
    """The first digits of an id."""
    return str(memory)[:SHORT]


def moment(at: datetime) -> str:
    """A moment with its zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def where(persona: str, scope: str | None, subject: str | None) -> str:
    """A list in words."""
    match scope:
        case "server":
            return f"{persona} in server {subject}"
        case "personal":
            return f"{persona} and {subject}"
        case "global":
            return f"everyone and {subject}"
        case _:
            return persona


# -- memories ---------------------------------------------------------------------------------------------------------


def saved(screen: Screen, answer: SaveAnswer) -> None:
    """After `save`."""
    same = answer.status == "duplicate"
    _done(screen, "Known already" if same else "Saved", answer.memory)
    _forgotten(screen, answer.forgotten)
    _warnings(screen, answer.warnings)
    _notices(screen, answer.notices if not same else [])


def changed(screen: Screen, what: str, answer: ChangeAnswer) -> None:
    """After a verb on one memory."""
    _done(screen, what, answer.memory)
    _forgotten(screen, answer.forgotten)
    _warnings(screen, answer.warnings)


def _done(screen: Screen, what: str, m: MemoryView) -> None:
    notes = ", ".join([where(m.persona, m.scope, m.subject), *_notes(m)])
    screen.line(Text(what, "bold green"), f" {short(m.id)}  ", Text(shown(notes), "dim"))
    screen.block(m.text)


def _forgotten(screen: Screen, forgotten: Sequence[Forgotten]) -> None:
    for f in forgotten:
        screen.labelled("forgotten", f"{short(f.memory.id)} \u201c{f.memory.text}\u201d: {f.reason}", "blue")


def _warnings(screen: Screen, warnings: Sequence[str]) -> None:
    for warning in warnings:
        screen.labelled("warning", warning, "yellow")


def _notices(screen: Screen, notices: Sequence[NoticeView]) -> None:
    for n in notices:
        screen.labelled(f"notice for {n.audience}", n.text, "dim")


def _notes(m: MemoryView) -> list[str]:
    notes = []
    if m.protected:
        notes.append("protected")
    if m.until is not None:
        notes.append(f"until {m.until}")
    if m.tags:
        notes.append(f"tags {', '.join(m.tags)}")
    if m.channels:
        notes.append(f"only in {', '.join(m.channels)}")
    return notes


def kind(m: MemoryView) -> str:
    """Its state; that it is pinned comes first."""
    return "pinned" if m.pinned and m.state != "expired" else m.state


_MEMORIES = (
    Column("state"),
    Column("unused", number=True),
    Column("memory", wide=True),
    Column("id", style="dim"),
)


def memories(screen: Screen, shown_ones: Sequence[MemoryView]) -> None:
    """Memories as a table."""
    screen.table(_MEMORIES, [_row(screen, m) for m in shown_ones])


def _row(screen: Screen, m: MemoryView) -> Sequence[str | Text]:
    state = kind(m)
    text = Text(shown(m.text))
    if not m.on_desk and m.state == "active" and not m.pinned:
        state = "active, no room"
    if notes := _notes(m):
        text.append(("\n" if screen.fancy else "  ") + shown(f"[{'; '.join(notes)}]"), "dim")
    unused = "" if m.pinned else f"{m.unused_days} day{'s' * (m.unused_days != 1)}"
    return Text(state, STATE[kind(m)]), unused, text, short(m.id)


def lists(screen: Screen, answer: ListAnswer) -> None:
    """After `list`: one table a list."""
    if not answer.lists:
        screen.line("No memories yet.")
    for n, one in enumerate(answer.lists):
        if n:
            screen.line("")
        screen.heading(where(one.persona, one.scope, one.subject), _count(one))
        if one.memories:
            memories(screen, one.memories)
        else:
            screen.line(Text("nothing" if one.count or one.pinned else "empty", "dim"))


def _count(one: ListView) -> str:
    return f"{one.count} of {one.capacity}, {one.pinned} of {one.pin_capacity} pinned"


def question(answer: ListAnswer, pinned: bool) -> str:
    """What is asked before a list is cleared."""
    (one,) = answer.lists
    many = one.pinned if pinned else one.count
    which = f"{'pinned' if pinned else 'unpinned'} {'memory' if many == 1 else 'memories'}"
    return f"Clear {many} {which} of {where(one.persona, one.scope, one.subject)} for good?"


def second_question(left: int) -> str:
    """What is asked about the pinned ones (R18)."""
    return f"Clear the {left} pinned {'one' if left == 1 else 'ones'} too?"


# -- a reply ----------------------------------------------------------------------------------------------------------


def reply(screen: Screen, answer: ReplyAnswer, *, show_prompt: bool) -> None:
    """After `reply`."""
    search = answer.search
    how = f"search {search.status}" + (f": {search.reason}" if search.reason else "")
    again = "" if answer.attempt == 1 else f", attempt {answer.attempt}"
    screen.heading(f"turn {answer.turn}{again}", f"chat {answer.chat}, {how}")
    if search.candidates:
        screen.line("")
        searched(screen, answer)
    screen.line("")
    on_desk(screen, answer)
    if answer.late.recalled:
        screen.line("")
        screen.heading("Recalled", "added to this reply")
        memories(screen, answer.late.recalled)
    if answer.late.documents:
        screen.line("")
        screen.heading("From documents")
        screen.table(_PASSAGES, [_passage(p) for p in answer.late.documents])
    if answer.late.documents_missing:
        screen.line(Text(f"Documents were not searched: {answer.late.documents_missing}.", "dim"))
    _notices(screen, answer.notices)
    if show_prompt:
        for title, text in (("Beginning of the prompt", answer.prefix.text), ("Near its end", answer.late.text)):
            screen.line("")
            screen.heading(title)
            screen.block(text)


def searched(screen: Screen, answer: ReplyAnswer) -> None:
    """What the newest message was compared with."""
    search = answer.search
    if search.candidates:
        screen.heading("Candidates", f"a match from {search.threshold:.3f} on, {search.model}")
        screen.table(_CANDIDATES, [_candidate(c) for c in search.candidates])
    else:
        screen.line("Nothing was found." if search.reason is None else f"Not searched: {search.reason}.")


def on_desk(screen: Screen, answer: ReplyAnswer) -> None:
    """What was sent from the start."""
    desk = answer.prefix.memories
    screen.heading("On the desk", f"{len(desk)} sent from the start, fingerprint {answer.prefix.fingerprint[:12]}")
    memories(screen, desk)


_PASSAGES = (
    Column("score", number=True), Column("document"), Column("place"), Column("passage", wide=True),
    Column("id", style="dim"),
)  # fmt: skip


def _passage(p: PassageView) -> Sequence[str]:
    return f"{p.score:.3f}", one_line(p.name), one_line(p.place), p.text, short(p.document)


_CANDIDATES = (
    Column("rank", number=True),
    Column("score", number=True),
    Column("similarity", number=True),
    Column("words", number=True),
    Column("", style="green"),
    Column("memory", wide=True),
    Column("id", style="dim"),
)


def _candidate(c: MatchView) -> Sequence[str | Text]:
    verdict = "recalled" if c.recalled else "matched" if c.matched else ""
    text = Text(shown(c.text), "" if c.matched else "dim")
    return str(c.rank), f"{c.score:.3f}", f"{c.similarity:.3f}", f"{c.words:.3f}", verdict, text, short(c.memory)


# -- history ----------------------------------------------------------------------------------------------------------


def history(screen: Screen, answer: HistoryAnswer) -> None:
    """After `history`: time, who, turn, what, before and after (C30)."""
    if not answer.entries:
        screen.line("Nothing happened there.")
    if screen.fancy:
        for entry in answer.entries:
            _told(screen, entry)
    else:
        screen.table(_HISTORY, [_line(entry) for entry in answer.entries])
    if answer.next:
        screen.labelled("more", f"--after {answer.next}", "bold")


_HISTORY = (
    Column("at"),
    Column("actor"),
    Column("turn"),
    Column("list"),
    Column("id"),
    Column("what"),
    Column("before \u2192 after"),
)


def _line(x: HistoryEntry) -> Sequence[str]:
    memory = "" if x.memory is None else short(x.memory)
    return (
        moment(x.at), x.actor, one_line(x.turn or "-"), one_line(where(x.persona, x.scope, x.subject)), memory or "-",
        one_line(x.sentence), one_line(_change(x.before, x.after)),
    )  # fmt: skip


def _told(screen: Screen, x: HistoryEntry) -> None:
    by = [x.actor, *([f"turn {x.turn}"] if x.turn else [])]
    screen.line(Text(moment(x.at), "bold"), Text(shown(f"  {', '.join(by)}"), "dim"))
    of = "" if x.memory is None else f"  {short(x.memory)}"
    screen.block(x.sentence)
    if change := _change(x.before, x.after):
        screen.block(change)
    screen.line(Text(shown(f"  {where(x.persona, x.scope, x.subject)}{of}"), "dim"))


def _change(before: str | None, after: str | None) -> str:
    if before == after:
        return "" if before is None else f"\u201c{before}\u201d"
    told = ["nothing" if text is None else f"\u201c{text}\u201d" for text in (before, after)]
    return " \u2192 ".join(told)


# -- settings and operation -------------------------------------------------------------------------------------------


def settings(screen: Screen, values: BaseModel, without: Collection[str] = ()) -> None:
    """After `show` and `set`. `without`: fields that are none."""
    about = type(values).model_fields
    rows = [(name, _value(value), about[name].description or "") for name, value in values if name not in without]
    screen.table((Column("setting"), Column("value", wide=True), Column("", wide=True, style="dim")), rows)


def _value(value: object) -> str:
    match value:
        case None | "" | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def imported(screen: Screen, answer: ImportAnswer) -> None:
    """After `import`."""
    screen.line(Text(f"{answer.imported} imported", "bold green"), f", {answer.duplicates} known already")
    for row in answer.skipped:
        screen.labelled(f"row {row.row} skipped", row.why, "yellow")


def doctor(screen: Screen, report: DoctorReport) -> None:
    """After `doctor`."""
    rows = []
    for check in report.checks:
        hint = f"\n{check.hint}" if check.hint and not check.ok else ""
        mark = Text("ok", "green") if check.ok else Text("not well", "bold red")
        rows.append((mark, check.name, check.detail + hint))
    screen.table((Column(""), Column("check"), Column("finding", wide=True)), rows)
    screen.line("")
    screen.line(Text("All is well.", "bold green") if report.ok else Text("Something is not well.", "bold red"))


def calibration(screen: Screen, measured: Calibration) -> None:
    """After `calibrate`."""
    shipped = "none is shipped for it" if measured.shipped is None else f"shipped {measured.shipped:.3f}"
    screen.heading(f"Threshold {measured.threshold:.3f}", f"{measured.model}, {shipped}")
    columns = (
        Column("language"),
        Column("facts", number=True),
        Column("touching", number=True),
        Column("in first 3", number=True),
        Column("and matched", number=True),
        Column("small talk", number=True),
        Column("that matches", number=True),
    )
    rows = [
        (x.language, str(x.facts), str(x.touches), f"{x.ranked:.1%}", f"{x.found:.1%}", str(x.small_talk),
         f"{x.matched_small_talk:.1%}")
        for x in measured.languages
    ]  # fmt: skip
    screen.table(columns, [*rows, _all(measured)])
    if measured.shipped is None or abs(measured.shipped - measured.threshold) > 0.0005:
        screen.line(f"To use it: remembrancer policy set match_threshold={measured.threshold:.4f}")


def _all(measured: Calibration) -> Sequence[str]:
    by = measured.languages
    facts, touches, talk = (
        str(sum(counts)) for counts in zip(*((x.facts, x.touches, x.small_talk) for x in by), strict=True)
    )
    shares = f"{measured.ranked:.1%}", f"{measured.found:.1%}"
    return "all", facts, touches, *shares, talk, f"{measured.matched_small_talk:.1%}"
