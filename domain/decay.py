"""Decay: how many searched days a memory has gone unused (T1, T4, T5, D1).

Nothing ticks. A list keeps the set of UTC days on which it was searched, with who was left out on a day; a memory keeps
the days on which it was used. The counter is what lies between, so a tick costs the same for ten memories and for ten
thousand, facts may arrive in any order, and a new number of rest days shows at once (U3). `docs/decisions/day-tick.md`
says why simpler forms fail.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple
from uuid import UUID


class LeftOut(NamedTuple):
    """Who was in no search of a day: these ids, or, where almost all were hidden, everybody but these."""

    ids: frozenset[UUID]
    all_but: bool = False

    def __contains__(self, memory: object) -> bool:
        return (memory in self.ids) is not self.all_but

    def both(self, other: LeftOut) -> LeftOut:
        """Left out of this search and of the other one."""
        match self.all_but, other.all_but:
            case False, False:
                return LeftOut(self.ids & other.ids)
            case True, True:
                return LeftOut(self.ids | other.ids, True)
            case False, True:
                return LeftOut(self.ids - other.ids)
            case _:
                return LeftOut(other.ids - self.ids)

    def __bool__(self) -> bool:
        return self.all_but or bool(self.ids)


NOBODY = LeftOut(frozenset())


def left_out(hidden: Collection[UUID], seen: Collection[UUID] | None = None) -> LeftOut:
    """From the fields of `ListSearched`."""
    return LeftOut(frozenset(hidden)) if seen is None else LeftOut(frozenset(seen), True)


@dataclass(frozen=True, slots=True)
class SearchedDays:
    """The days on which a list was searched: what its memories' counters are read from."""

    days: tuple[date, ...] = ()
    """Sorted, each UTC day once, however many replies and in whatever order (T4, D1)."""
    off: Mapping[date, LeftOut] = field(default_factory=dict)
    """For days with anybody left out: who was in none of that day's searches (T10, D22, D28)."""

    def searched(self, day: date, out: LeftOut) -> SearchedDays:
        """A search ran on `day` without `out`. Commutes, and the same again changes nothing."""
        if day in self:
            before = self.off.get(day)
            if before is None:
                return self
            out = before.both(out)
            if out == before:
                return self
            days = self.days
        else:
            i = bisect_left(self.days, day)
            days = (*self.days[:i], day, *self.days[i:])
        off = {d: o for d, o in self.off.items() if d != day}
        if out:
            off[day] = out
        return SearchedDays(days, off)

    def ticks(self, day: date, out: LeftOut) -> bool:
        """Would recording this search change anything? A reply that would not need not record it."""
        return self.searched(day, out) is not self

    def seen_from(self, day: date, memory: UUID) -> SearchedDays:
        """From `day` on the memory was away, not hidden: searches that name only whom they saw count for it (D14)."""
        off = {d: LeftOut(out.ids | {memory}, True) if out.all_but and d >= day else out for d, out in self.off.items()}
        return SearchedDays(self.days, off)

    def __contains__(self, day: object) -> bool:
        if not isinstance(day, date):
            return False
        i = bisect_left(self.days, day)
        return i < len(self.days) and self.days[i] == day

    def unused_days(self, memory: UUID, since: date) -> int:
        """Days after `since` on which the list was searched and this memory was part of it."""
        n = len(self.days) - bisect_right(self.days, since)
        if n and self.off:
            n -= sum(1 for d, out in self.off.items() if d > since and memory in out)
        return n


def rests(unused_days: int, *, pinned: bool, rest_after_days: int, decay_enabled: bool) -> bool:
    """Is the memory in the drawer? Derived at every read, never stored (T5, T11, D3)."""
    return decay_enabled and not pinned and unused_days >= rest_after_days
