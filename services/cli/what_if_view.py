"""What is said of a what-if: the numbers, what would stand otherwise, both courses, and what nobody can know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen
from remembrancer.services.cli.show import STATE, short, where

if TYPE_CHECKING:
    from remembrancer.services.answers_what_if import Course, StandingView, WhatIfAnswer

SHOWN = 40
"""Memories that a terminal shows; a pipe and --json show all."""
_CHANGES = (Column("memory", wide=True), Column("now"), Column("then"), Column("list", wide=True),
            Column("id", style="dim"))  # fmt: skip
_TOTALS = (Column(""), Column("now", number=True), Column("then", number=True))
_AWAY = {"forgotten": "red", "not saved": "red", "gone": "dim"}


def answered(screen: Screen, answer: WhatIfAnswer) -> None:
    """The whole answer."""
    asked = ", ".join(
        f"{name} {number.then}" + (f" (now {number.now})" if number.now != number.then else "")
        for name, number in answer.numbers.items()
    )
    lists = f"{answer.lists} list{'s' * (answer.lists != 1)}"
    screen.heading(f"What if {asked}?", f"{answer.events} events, {_memories(answer.memories)} in {lists}")
    if answer.changes:
        _changes(screen, answer)
    else:
        screen.line("Every memory would stand as it does.")
    screen.line("")
    screen.table(_TOTALS, list(_totals(answer.now, answer.then)))
    if answer.unknown:
        screen.line("")
        screen.line("What the record cannot answer:")
        for one in answer.unknown:
            screen.line(Text(f"- {one.sentence}", "dim"))
    if answer.applied:
        screen.line("")
        recorded(screen, answer)


def confirmed(screen: Screen) -> bool:
    """Does somebody want the recount to be recorded?"""
    screen.line("")
    screen.line("Counters and last matches are recorded as they would be. What was forgotten stays forgotten.")
    if screen.ask("Record it?"):
        return True
    screen.line("Nothing was recorded.")
    return False


def recorded(screen: Screen, answer: WhatIfAnswer) -> None:
    """After `--apply`."""
    if answer.recounted:
        screen.line(Text("Recorded", "bold green"), f": the use of {_memories(answer.recounted)} anew.")
    elif {"match_limit", "match_threshold"}.isdisjoint(answer.numbers):
        screen.line("There is no use to record: these numbers show as soon as `policy` sets them.")
    else:
        screen.line("There is nothing to record: the use is as it would be.")


def _memories(n: int) -> str:
    return f"{n} {'memory' if n == 1 else 'memories'}"


def _changes(screen: Screen, answer: WhatIfAnswer) -> None:
    shown = answer.changes[:SHOWN] if screen.fancy else answer.changes
    one_list = len({(c.persona, c.scope, c.subject) for c in answer.changes}) == 1
    if one_list:
        first = answer.changes[0]
        screen.line(Text(where(first.persona, first.scope, first.subject), "dim"))
    screen.table(
        _CHANGES,
        [
            (
                c.text,
                _standing(c.now),
                _standing(c.then, at_most=c.uncertain),
                "" if one_list else where(c.persona, c.scope, c.subject),
                short(c.memory),
            )
            for c in shown
        ],
    )
    if len(shown) < len(answer.changes):
        screen.line(Text(f"… and {len(answer.changes) - len(shown)} more: --json has all.", "dim"))


def _standing(s: StandingView, *, at_most: bool = False) -> Text:
    """`resting, 9 days`; `active, 2 days, off desk`; `forgotten`."""
    style = _AWAY.get(s.state) or STATE.get(s.state, "")
    said = str(s.state)
    if s.unused_days is not None:
        said += f", {'≤ ' if at_most and s.unused_days else ''}{s.unused_days} day{'s' * (s.unused_days != 1)}"
    if s.state == "active" and not s.on_desk:
        said += ", off desk"
    return Text(said, style)


def _totals(now: Course, then: Course) -> Iterator[tuple[str, str, str]]:
    yield "replies", str(now.replies), str(then.replies)
    yield "memories on the desk of a reply", f"{now.desk:.1f}", f"{then.desk:.1f}"
    yield "tokens of memories in a reply", f"{now.tokens:.0f}", f"{then.tokens:.0f}"
    for title, name in (
        ("matches", "matches"), ("recalled", "recalls"), ("forgotten to make room", "evictions"),
        ("would have been refused", "refused"), ("active today", "active"), ("resting today", "resting"),
        ("expired today", "expired"),
    ):  # fmt: skip
        a, b = getattr(now, name), getattr(then, name)
        if a or b or name in ("matches", "active", "resting"):
            yield title, str(a), str(b)
