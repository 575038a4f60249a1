"""The life of one memory, from the events that concern it: what `why` tells (U1).

`life_of` folds the events of one memory (and those that end all memories of its list) into what happened to it; `count`
lays the days on which its list was searched beside it, which gives the counter of every day and when it rested.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.decay import NOBODY, SearchedDays
from remembrancer.domain.policy import Policy
from remembrancer.domain.story import LAST, WAS, tell

How = Literal["used", "counted", "hidden", "pinned"]


class Line(NamedTuple):
    """One thing that happened to the memory, with its text before and after (C30)."""

    recorded: e.Recorded
    sentence: str
    before: str | None
    after: str | None
    of_list: bool = False
    """It happened to the whole list: a clearing or an erasure."""


@dataclass(slots=True)
class Life:
    """What happened to one memory."""

    memory: UUID
    lines: list[Line] = field(default_factory=list)
    saved: e.Recorded | None = None
    text: str = ""
    """As it is, or as it was last."""
    wordings: list[str] = field(default_factory=list)
    """Every text that it ever had, in their order."""
    carried: int = 0
    """Days counted elsewhere, before an import or a move."""
    uses: list[tuple[date, str | None]] = field(default_factory=list)
    """Days of use but for matches, with the turn whose undo takes it back; None: nothing does (D14)."""
    recounted: dict[date, int] = field(default_factory=dict)
    pins: list[tuple[date, bool]] = field(default_factory=list)
    away: list[tuple[date, date | None]] = field(default_factory=list)
    """Spans in which it was not there and that do not count: it came back with a counter of 0, or not at all."""
    undone: dict[str, int] = field(default_factory=dict)
    """Turns whose use of it was taken back, with the position at which: what stands before it does not count."""
    end: e.Recorded | None = None
    """What took it away; None while it is there."""
    pinned: bool = False

    @property
    def there(self) -> bool:
        """Is it in its list?"""
        return self.saved is not None and self.end is None


def life_of(memory: UUID, events: Sequence[e.Recorded]) -> Life:
    """Fold the events of a memory's list that name it, or that end all of it, in the order of the stream.

    Matches may be left out: they are no part of what a life is built from, only of its lines.
    """
    life = Life(memory)
    first_wording: dict[str | None, str] = {}
    for r in events:
        ev = r.event
        if isinstance(ev, e.MemoriesCleared | e.SubjectErased):
            _end_of_all(life, r)
            continue
        for told in tell(ev):
            if told.memory != memory:
                continue
            before = life.text if told.before == LAST else told.before
            after = life.text if told.after == LAST else told.after
            if isinstance(ev, e.MemoryEdited):
                first_wording.setdefault(ev.turn, ev.before)
            elif told.after == WAS:
                after = first_wording.pop(ev.turn, life.text)
            life.lines.append(Line(r, told.sentence, before, after))
            if (said := after or before) is not None:
                life.text = said
                if not life.wordings or life.wordings[-1] != said:
                    life.wordings.append(said)
        _apply(life, r)
    return life


def _apply(life: Life, r: e.Recorded) -> None:
    """What the event means for the counter and for whether the memory is there."""
    ev = r.event
    match ev:
        case e.MemorySaved():
            life.saved, life.carried, life.pinned = life.saved or r, ev.unused_days, ev.pinned
            life.uses.append((ev.day, None))
            if ev.pinned:
                life.pins.append((ev.day, True))
        case e.MemoryEdited() | e.MemoryAffirmed():
            life.uses.append((ev.day, None if ev.actor == "person" else ev.turn))
        case e.MemoryPinned() | e.MemoryUnpinned():
            life.pinned = isinstance(ev, e.MemoryPinned)
            life.pins.append((ev.day, life.pinned))
            if not life.pinned:
                life.uses.append((ev.day, None))
        case e.MemoryEvicted() | e.MemoryDeleted() | e.MemoryMoved():
            _gone(life, r)
        case e.MemoryRestored():
            life.uses.append((ev.day, None))
            life.pins.append((ev.day, False))
            life.end, life.pinned = None, False
            if life.away:
                life.away[-1] = (life.away[-1][0], ev.day)
        case e.TurnRolledBack():
            if life.memory in ev.removed:
                _gone(life, r)
                life.end = r  # also of what was deleted meanwhile: an undo of that brings nothing back
            if life.memory in ev.restored and life.end is not None:
                life.end = None
                if life.away:
                    life.away.pop()  # the days meanwhile count as unmatched (D14)
            if life.memory in ev.unmatched and ev.turn is not None:
                life.undone[ev.turn] = r.position
                life.uses = [use for use in life.uses if use[1] != ev.turn]
                life.uses.append((ev.unmatched[life.memory], None))
        case e.UseRecounted():
            life.recounted[ev.day] = ev.unused_days.get(life.memory, 0)
            life.uses = [use for use in life.uses if use[0] <= ev.day]


def _gone(life: Life, r: e.Recorded) -> None:
    if life.end is None:
        life.end = r
        life.away.append((r.recorded_at.date(), None))


def _end_of_all(life: Life, r: e.Recorded) -> None:
    ev = r.event
    if life.saved is None or (isinstance(ev, e.MemoriesCleared) and ev.pinned is not life.pinned):
        return
    (told,) = tell(ev)
    life.lines.append(Line(r, told.sentence, life.text, None, of_list=True))
    if life.end is None:
        life.away.append((r.recorded_at.date(), None))
    life.end = r  # also of what was deleted before: now nothing brings it back (R18, D24)


# -- the counter -------------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """One day of the counter: what it was at the day's end, and what the day did to it."""

    day: date
    unused_days: int
    how: How


class Moved(NamedTuple):
    """A day at whose end the memory lay elsewhere than the day before: in the drawer, or out of it."""

    day: date
    resting: bool
    unused_days: int


def count(life: Life, days: SearchedDays, matched: Collection[date]) -> list[Counted]:
    """The counter of a memory at the end of every day that touched it, the first one first (T1, T4, D1, D3).

    Args:
        days: the searched days of its list.
        matched: the days on which a message brought it to mind, those of undone turns left out.
    """
    if life.saved is None:
        return []
    matches = set(matched)
    used = {day for day, _ in life.uses} | matches
    begin = min((day for day, _ in life.uses), default=life.saved.recorded_at.date())
    counted: list[Counted] = []
    n = 0
    for day in sorted({d for d in days.days if d >= begin} | used | set(life.recounted)):
        if day in life.recounted and day not in matches:
            n, how = life.recounted[day], "used"
        elif day == begin and life.carried and day not in matches:
            n, how = life.carried, "used"
        elif day in used:
            n, how = 0, "used"
        elif _away(life, day):
            continue
        elif _pinned(life, day):
            how = "pinned"
        elif life.memory in days.off.get(day, NOBODY):
            how = "hidden"
        else:
            n, how = n + 1, "counted"
        counted.append(Counted(day, n, how))  # type: ignore[arg-type]
    return counted


def _away(life: Life, day: date) -> bool:
    """Was it gone at the day's end? The day on which it went is still its own, if the search came first."""
    return any(day > gone and (back is None or day < back) for gone, back in life.away)


def _pinned(life: Life, day: date) -> bool:
    """Was it pinned on that day?"""
    pinned = False
    for since, how in life.pins:
        if since > day:
            break
        pinned = how
    return pinned


class Rules(NamedTuple):
    """The policy from a day on."""

    since: date
    policy: Policy


def rules_of(day: date, rules: Sequence[Rules]) -> Policy:
    """The policy of a day: the last one recorded by then, the first one before that."""
    found = [one.policy for one in rules if one.since <= day]
    return found[-1] if found else (rules[0].policy if rules else Policy())


def rested(counted: Sequence[Counted], rules: Sequence[Rules]) -> list[Moved]:
    """When it went to the drawer and came out of it again, by the policy of each day (T5, T6)."""

    def resting(one: Counted) -> bool:
        policy = rules_of(one.day, rules)
        return policy.decay_enabled and one.how != "pinned" and one.unused_days >= policy.rest_after_days

    moves = [Moved(counted[0].day, True, counted[0].unused_days)] if counted and resting(counted[0]) else []
    for before, after in pairwise(counted):
        if resting(before) is not resting(after):
            moves.append(Moved(after.day, resting(after), after.unused_days))
    return moves


def days_without_search(since: date, until: date, days: SearchedDays) -> int:
    """Days from `since` to `until`, both included, on which no search of the list succeeded (T8)."""
    return max(0, (until - since).days + 1 - sum(since <= day <= until for day in days.days))


def hidden_days(counted: Sequence[Counted]) -> int:
    """Days on which the list was searched without this memory (T10, D22, D28)."""
    return sum(one.how == "hidden" for one in counted)
