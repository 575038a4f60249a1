"""How a memory's life looks: its timeline, the counter of its unused days, the verdict, the way back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen, one_line, shown
from remembrancer.services.cli.show import moment, short, where

if TYPE_CHECKING:
    from remembrancer.services.answers_layers import InChat
    from remembrancer.services.answers_why import (
        Days,
        Eviction,
        Searches,
        StoryLine,
        WhyAnswer,
        WhyDay,
        WhyMemory,
        WhySaved,
    )
    from remembrancer.services.cli.session import Session

_MARKS = {
    "MemorySaved": ("saved", "green"),
    "MemoryEdited": ("edited", "cyan"),
    "MemoryAffirmed": ("again", "cyan"),
    "MemoriesMatched": ("match", "green"),
    "NearMiss": ("near miss", "dim"),
    "Rested": ("drawer", "blue"),
    "MemoryPinned": ("pinned", "yellow"),
    "MemoryUnpinned": ("unpinned", "yellow"),
    "MemoryEvicted": ("forgotten", "red"),
    "MemoryDeleted": ("deleted", "red"),
    "MemoryRestored": ("restored", "green"),
    "MemoryMoved": ("moved", "cyan"),
    "TurnRolledBack": ("undone", "magenta"),
    "MemoriesCleared": ("cleared", "red"),
    "SubjectErased": ("erased", "red"),
    "UseRecounted": ("recounted", "cyan"),
}
_STATUS = {"on_desk": "green", "pinned": "green", "edited": "green", "resting": "blue", "no_room": "blue"}
_WHERE = {"window": "green", "summary": "green", "rule": "green", "raw": "yellow", "dropped": "red"}
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_HIDDEN, _PINNED = "\u00b7", "\u2500"
_MARGIN = 24
"""Columns that the sparkline leaves for what stands beside it."""
_PLAIN = 120
"""Days of the sparkline where nobody says how wide the paper is."""


def life(screen: Screen, here: Session, answer: WhyAnswer) -> None:
    """After `why`."""
    m, saved = answer.memory, answer.saved
    if m is not None and saved is not None:
        screen.line(Text(f"\u201c{shown(m.text)}\u201d", "bold"), "  ", Text(short(m.id), "dim"))
        screen.line(Text(shown(_origin(m, saved)), "dim"))
    if answer.note:
        screen.labelled("note", answer.note, "yellow")
    if m is not None:
        screen.line("")
        _timeline(screen, answer.story)
    if answer.searches is not None:
        _left_out(screen, answer.searches)
        screen.line("")
    if answer.days is not None:
        _counter(screen, answer.days)
    if answer.evicted is not None:
        _eviction(screen, answer.evicted)
    for hides in answer.hidden_by:
        screen.labelled("hidden", hides, "yellow")
    _conversation(screen, answer.conversation)
    screen.line("")
    style = _STATUS.get(answer.status, "red")
    screen.labelled("verdict", answer.verdict, f"bold {style}")
    if answer.bring_back is not None:
        from remembrancer.services.cli.demo import command

        screen.line(Text("bring it back:", "bold") if screen.fancy else "bring it back:")
        screen.typed(command(here, {}, *shlex.split(answer.bring_back)[1:]))
    if answer.nearest:
        screen.line("")
        screen.heading("You may have meant another one", "`why` takes its id")
        rows = [(one.text, where(one.persona, one.scope, one.subject), short(one.memory)) for one in answer.nearest]
        screen.table((Column("memory", wide=True), Column("list"), Column("id", style="dim")), rows)


def _conversation(screen: Screen, said: Sequence[InChat]) -> None:
    """What was said of it, and where that stands: two of the three layers (R1)."""
    if not said:
        return
    screen.line("")
    screen.heading("In conversations", f"{len(said)} message{'s' * (len(said) != 1)}")
    for one in said:
        what = f"{moment(one.said_at)}  {one.chat}  {one.author}: \u201c{one_line(one.text)}\u201d"
        screen.line(Text(shown(what)))
        screen.line(Text(f"  {one.sentence}", _WHERE[one.where]))


def _origin(m: WhyMemory, saved: WhySaved) -> str:
    parts = [where(m.persona, m.scope, m.subject), f"saved {moment(saved.at)} by {_actor(saved.actor)}"]
    if saved.turn:
        parts.append(f"turn {saved.turn}")
    if saved.chat:
        parts.append(f"chat {saved.chat}")
    return ", ".join(parts)


def _actor(actor: str) -> str:
    return {"persona": "the persona", "person": "a person", "deep": "the background pass", "import": "an import"}.get(
        actor, actor
    )


# -- the timeline -----------------------------------------------------------------------------------------------------


def _timeline(screen: Screen, story: Sequence[StoryLine]) -> None:
    if not screen.fancy:
        columns = (Column("at"), Column(""), Column("actor"), Column("turn"), Column("what"), Column("text"))
        rows = [
            (moment(x.at), _mark(x)[0], x.actor, one_line(x.turn or "-"), one_line(x.sentence), one_line(_change(x)))
            for x in story
        ]
        screen.table(columns, rows)
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for x in story:
        word, style = _mark(x)
        said = Text(shown(x.sentence), "dim" if x.event == "NearMiss" else "")
        if change := _change(x):
            said.append(f"\n{shown(change)}", "italic")
        if x.turn and x.event not in ("NearMiss", "Rested"):
            said.append(f"\nturn {shown(x.turn)}", "dim")
        table.add_row(_minute(x.at), Text(f"\u25cf {word}", style), said)
    screen.draw(table)


def _mark(x: StoryLine) -> tuple[str, str]:
    return _MARKS.get(x.event, (x.event, ""))


def _minute(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _change(x: StoryLine) -> str:
    """The text before and after, where it is another one (C30)."""
    if x.before == x.after:
        return ""
    told = ["nothing" if text is None else f"\u201c{text}\u201d" for text in (x.before, x.after)]
    return " \u2192 ".join(told)


def _left_out(screen: Screen, s: Searches) -> None:
    more = [
        f"{total - listed} more {what}{'es' * (total - listed != 1)}"
        for what, total, listed in (
            ("match", s.matches, sum(not m.undone for m in s.matched)),
            ("near miss", s.near_misses, len(s.nearly)),
        )
        if total > listed
    ]
    if more:
        screen.line(Text(f"{' and '.join(more)}: --limit shows more of them", "dim"))


# -- the counter ------------------------------------------------------------------------------------------------------


def _counter(screen: Screen, days: Days) -> None:
    """The counter as a line of blocks, a day each (or several, where there are many), and what the days were."""
    room = max(10, screen.console.width - _MARGIN) if screen.fancy else _PLAIN
    if days.counter:
        line = Text.assemble(*(_bar(day, days.rest_after_days) for day in _fitted(days.counter, room)))
        first, last = days.counter[0].day, days.counter[-1].day
        screen.line(Text("unused days  ", "bold"), line)
        screen.line(Text(f"{first} to {last}, rests at {days.rest_after_days}; now {days.unused_days}", "dim"))
    said = [f"{_days(days.counted)} counted", f"{days.hidden} hidden", f"{days.without_search} without a search"]
    if days.rested_on:
        said.append(f"in the drawer since {days.rested_on}")
    screen.line(", ".join(said) + ".")


def _fitted(counter: Sequence[WhyDay], room: int) -> list[WhyDay]:
    """At most `room` days: of each stretch the one with the highest counter."""
    if len(counter) <= room:
        return list(counter)
    edges = [n * len(counter) // room for n in range(room + 1)]
    return [max(counter[a:b], key=lambda day: day.unused_days) for a, b in pairwise(edges) if a < b]


def _bar(day: WhyDay, rests: int) -> tuple[str, str]:
    if day.how == "hidden":
        return _HIDDEN, "dim"
    if day.how == "pinned":
        return _PINNED, "yellow"
    height = min(len(_BARS) - 1, day.unused_days * (len(_BARS) - 1) // max(1, rests))
    return _BARS[height], "blue" if day.unused_days >= rests else "green"


def _days(n: int) -> str:
    return f"{n} day{'s' * (n != 1)}"


# -- the eviction -----------------------------------------------------------------------------------------------------


def _eviction(screen: Screen, x: Eviction) -> None:
    made = f" \u201c{x.for_text}\u201d" if x.for_text else ""
    screen.labelled("made room for", f"{short(x.for_memory)}{made}", "bold")
    if x.next_in_line is not None:
        n = x.next_in_line
        screen.labelled("next in line", f"{short(n.memory)} \u201c{n.text}\u201d: {n.reason}", "bold")
    else:
        screen.labelled("next in line", f"nobody: {x.next_unknown}", "bold")
