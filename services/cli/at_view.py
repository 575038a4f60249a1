"""How past moments look, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen, one_line, shown
from remembrancer.services.cli.show import STATE, kind, short, where
from remembrancer.services.cli.show import moment as at

if TYPE_CHECKING:
    from remembrancer.domain.policy import Policy
    from remembrancer.services.answers import MemoryView
    from remembrancer.services.answers_moment import DiffAnswer, MemoryChange, MomentAnswer, MomentList, NearReply

_MEMORIES = (Column("state"), Column("unused", number=True), Column("memory", wide=True), Column("id", style="dim"))
MESSAGES_SHOWN = 5
"""Of those that were sent; JSON has them all."""
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


# -- at ---------------------------------------------------------------------------------------------------------------


def moment(screen: Screen, answer: MomentAnswer) -> None:
    """After `at`."""
    screen.heading(_title(answer))
    screen.line(Text(shown(f"{at(answer.at)}, {_place(answer)}"), "dim"))
    screen.line(Text(_policy(answer.policy), "dim"))
    _notes(screen, answer)
    recalled = set() if answer.late is None else {m.id for m in answer.late.recalled}
    for one in answer.lists:
        if one.memories:
            screen.line("")
        screen.heading(where(one.persona, one.scope, one.subject), _count(one))
        rows = [_row(m, hidden=m.id in one.hidden, recalled=m.id in recalled) for m in one.memories]
        screen.table(_MEMORIES, rows)
    if not answer.lists:
        screen.line("")
        screen.line("No list was in play." if answer.prefix is not None else "Nothing was remembered yet.")
    if answer.search is not None:
        screen.line("")
        reason = f": {answer.search.reason}" if answer.search.reason else ""
        screen.heading(f"Search {answer.search.status}{reason}", f"{len(answer.search.matches)} matched")
        for m in answer.search.matches:
            screen.labelled("recalled" if m.recalled else "matched", f"{m.text}  {m.score:.3f}", "green")
    _blocks(screen, answer)
    for label, near in (("reply before", answer.before), ("reply after", answer.after)):
        if near is not None:
            screen.labelled(label, _near(near), "bold")


def _title(answer: MomentAnswer) -> str:
    if answer.turn is None:
        return "A moment" if answer.position is None else f"At {answer.position.shard}:{answer.position.position}"
    many = (answer.attempts or 1) > 1
    return f"Turn {answer.turn}" + (f", attempt {answer.attempt} of {answer.attempts}" if many else "")


def _place(answer: MomentAnswer) -> str:
    who = answer.persona + (f" with {', '.join(answer.users)}" if answer.users else "")
    room = f", channel {answer.channel}" if answer.channel is not None else ""
    tags = f", tags {', '.join(answer.tags)}" if answer.tags else ""
    return who + (f" in server {answer.server}{room}" if answer.server is not None else "") + tags


def _policy(p: Policy) -> str:
    if not p.decay_enabled:
        return f"Rules of then: decay off, desk {p.desk_limit}, lists {p.list_capacity}"
    return (
        f"Rules of then: rest after {_days(p.rest_after_days)}, matches {p.match_limit}, desk {p.desk_limit}, "
        f"lists {p.list_capacity}"
    )


def _notes(screen: Screen, answer: MomentAnswer) -> None:
    for note in answer.notes:
        screen.labelled("not exact", note, "bold yellow")


def _count(one: MomentList) -> str:
    on_desk = sum(m.on_desk for m in one.memories)
    hidden = f", {len(one.hidden)} hidden" if one.hidden else ""
    return f"{_memories(len(one.memories))}, {on_desk} on the desk{hidden}" if one.memories else "empty"


def _row(m: MemoryView, *, hidden: bool, recalled: bool) -> Sequence[str | Text]:
    state, style = kind(m), STATE[kind(m)]
    if hidden and m.state != "expired":
        state, style = f"{state}, hidden", "dim"
    elif recalled:
        state = f"{state}, recalled"
    elif m.state == "active" and not m.on_desk:
        state = f"{state}, no room"
    unused = "" if m.pinned else _days(m.unused_days)
    return Text(state, style), unused, Text(shown(m.text), "" if m.on_desk or recalled else "dim"), short(m.id)


def _blocks(screen: Screen, answer: MomentAnswer) -> None:
    if answer.prefix is None:
        screen.line("")
        screen.line(Text("For the prompt, say who talks where: --user KEY, --server KEY.", "dim"))
        return
    as_what = "as it was sent" if answer.turn is not None else "as a reply would have had it"
    parts = [
        ("Beginning of the prompt", f"{as_what}, fingerprint {answer.prefix.fingerprint[:12]}", answer.prefix.text)
    ]
    if answer.late is not None:
        parts.append(("Near its end", as_what, answer.late.text))
    if answer.summary is not None and answer.summary.text:
        parts.insert(1, ("Summary of the chat", f"{as_what}, {answer.summary.tokens} tokens", answer.summary.text))
    if answer.messages:
        many = f"{as_what}, {len(answer.messages)} messages; the last ones"
        last = answer.messages[-MESSAGES_SHOWN:]
        parts.append(("Messages of the chat", many, "\n".join(f"{m.author}: {m.text}" for m in last)))
    for title, more, text in parts:
        screen.line("")
        screen.heading(title, more)
        if text:
            screen.block(text)
        else:
            screen.line(Text("nothing", "dim"))
    screen.line("")


def _near(near: NearReply) -> str:
    again = f", attempt {near.attempt}" if near.attempt > 1 else ""
    return f"{near.turn}{again}  {at(near.at)}"


# -- diff -------------------------------------------------------------------------------------------------------------


def difference(screen: Screen, answer: DiffAnswer) -> None:
    """After `diff`."""
    for label, side in (("From", answer.before), ("To", answer.after)):
        title = _title(side)
        screen.heading(f"{label} {title[0].lower()}{title[1:]}")
        screen.line(Text(shown(f"{at(side.at)}, {_place(side)}"), "dim"))
        _notes(screen, side)
    counted = [c for c in answer.changed if c.fields == ["unused_days"]]
    others = [c for c in answer.changed if c.fields != ["unused_days"]]
    rows = [
        *(_change("+", "added", "green", c) for c in answer.added),
        *(_change("-", "removed", "red", c) for c in answer.removed),
        *(_change("~", "changed", "yellow", c) for c in others),
    ]
    screen.line("")
    screen.table((Column(""), Column("memory", wide=True), Column("id", style="dim")), rows)
    same = [f"{_memories(len(counted))} only counted days" if counted else "", f"{answer.unchanged} as before"]
    screen.line(Text(", ".join(filter(None, same)), "dim"))
    if answer.settings:
        screen.line("")
        screen.heading("Settings")
        for s in answer.settings:
            screen.labelled(f"{s.of}, {s.field}", f"{_value(s.before)} \u2192 {_value(s.after)}")
    for title, text in (("Beginning of the prompt", answer.prefix), ("Near its end", answer.late)):
        if text:
            screen.line("")
            screen.heading(title)
            for line in text.split("\n"):
                screen.line(Text(shown(line), _DIFF.get(line[:1], "")))
    both = answer.before.prefix is not None and answer.after.prefix is not None
    if both and not answer.prefix:
        screen.line("")
        screen.line(Text("The beginning of the prompt is the same, byte for byte.", "dim"))


def _change(mark: str, word: str, style: str, c: MemoryChange) -> Sequence[str | Text]:
    one = c.after or c.before
    assert one is not None
    text = Text(shown(one.text))
    for what in (_what(c), c.why or ""):
        if what:
            text.append(f"\n{shown(what)}", "dim")
    return Text(f"{mark} {word}", style), text, short(c.memory)


def _what(c: MemoryChange) -> str:
    """What differs of a memory that was in both."""
    x, y = c.before, c.after
    if x is None or y is None:
        return ""
    said = []
    for field in c.fields:
        was, now = getattr(x, field), getattr(y, field)
        match field:
            case "text":
                said.append(f"before: \u201c{one_line(was)}\u201d")
            case "on_desk":
                said.append("now on the desk" if now else "no longer on the desk")
            case "unused_days":
                said.append(f"unused {_days(was)} \u2192 {_days(now)}")
            case "pinned" | "protected":
                said.append(f"now {field}" if now else f"no longer {field}")
            case "last_matched_at" | "updated_at":
                pass  # what was matched or edited shows above, and in the sentence below
            case _:
                said.append(f"{field} {_value(was)} \u2192 {_value(now)}")
    return ", ".join(said)


def _value(value: Any) -> str:
    if value is None or value == "" or value in ((), []):
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _days(n: int) -> str:
    return f"{n} day{'s' * (n != 1)}"


def _memories(n: int) -> str:
    return f"{n} {'memory' if n == 1 else 'memories'}"
