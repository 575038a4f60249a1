"""The order in which the facts of many streams could have happened: nothing before what it has seen.

Within a shard positions say it. Between shards there are only moments, which several events share and which the clocks
of several machines give. But a reply says which version of each list it saw, and what it did to a list names its turn:
so a list never moves past what a reply has yet to see, and a reply never comes before the state that it read. A new
attempt of a turn read its lists with the old one taken back (D19): so what takes it back comes first, too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import UUID

from remembrancer.domain import events as e

PATIENCE = timedelta(minutes=5)
"""So long, by the events' own moments, something waits for what should have come before it: no clock is so far off."""
MOST_WAITING = 500
"""So many wait at most: then the first goes on, so that little is held and a look at all of them takes no time."""
SKEW = timedelta(seconds=5)
"""So far apart are the moments that one append has in its shards, as a rule: in a shard they never go back."""
REMEMBERED = timedelta(days=1)
TURNS_KEPT = 10_000
"""A turn's replies are remembered for what it did to lists: so long, and so many at least. What comes later waits."""


@dataclass(slots=True)
class _Turn:
    """The replies of a turn."""

    at: datetime
    """Of the latest."""
    attempts: list[frozenset[UUID]] = field(default_factory=list)
    """What each attempt matched."""
    taken: dict[UUID, int] = field(default_factory=dict)
    """Of each list, how many attempts have had their matches."""
    days: set[date] = field(default_factory=set)


class InOrder:
    """Puts events that come by moment, shard and position into that order, keeping only those that have to wait.

    Nothing goes on before all of its moment is there, since one append may write to shards on both sides of its chat's.

    Args:
        streams: the lists that come; what a reply saw of others is not waited for.
    """

    def __init__(self, streams: Collection[UUID]) -> None:
        self._streams = streams
        self._version: dict[UUID, int] = {}
        self._waiting: list[e.Recorded] = []
        self._now: datetime | None = None
        self._turns: OrderedDict[str, _Turn] = OrderedDict()

    def feed(self, events: Iterable[e.Recorded]) -> Iterator[e.Recorded]:
        """Of these events and those that waited, all whose turn it is, but for those of the latest moment."""
        for r in events:
            if self._waiting and (r.recorded_at != self._now or len(self._waiting) >= MOST_WAITING):
                self._now = r.recorded_at
                yield from self._release()
                while len(self._waiting) >= MOST_WAITING:
                    yield self._gone(self._waiting.pop(0))
            self._now = r.recorded_at
            self._forget_old_turns(r.recorded_at)
            self._waiting.append(r)

    def flush(self) -> Iterator[e.Recorded]:
        """All that still waits: nothing else will come before it."""
        self._now = None
        while self._waiting:
            yield from self._release()
            if self._waiting:
                yield self._gone(self._waiting.pop(0))

    def _release(self) -> Iterator[e.Recorded]:
        while self._waiting:
            moved, held, left = False, set[UUID](), list[e.Recorded]()
            read = self._read()
            for r in self._waiting:
                if r.stream not in held and self._ready(r) and not _too_early(r, read.get(r.stream)):
                    moved = True
                    yield self._gone(r)
                else:
                    held.add(r.stream)
                    left.append(r)
            self._waiting = left
            if not moved:
                if self._now is None or self._now - self._waiting[0].recorded_at <= PATIENCE:
                    return
                yield self._gone(self._waiting.pop(0))

    def _read(self) -> dict[UUID, e.ReplySearched]:
        """Of each list, the reply among those that wait that read its earliest version."""
        first: dict[UUID, tuple[int, e.ReplySearched]] = {}
        for r in self._waiting:
            if isinstance(r.event, e.ReplySearched):
                for x in r.event.lists:
                    if x.stream not in first or x.version < first[x.stream][0]:
                        first[x.stream] = x.version, r.event
        return {stream: ev for stream, (_, ev) in first.items()}

    def _ready(self, r: e.Recorded) -> bool:
        ev = r.event
        if isinstance(ev, e.ReplySearched):
            return self._seen(ev) and (ev.attempt == 1 or self._taken_back(ev, r.recorded_at))
        if ev.turn is None or ev.actor == "person" or not isinstance(ev, e.ListEvent):
            return True
        turn = self._turns.get(ev.turn)
        if turn is None:
            return False
        if isinstance(ev, e.ListSearched):
            return ev.day in turn.days
        return not isinstance(ev, e.MemoriesMatched) or _attempt(ev, r.stream, turn) is not None

    def _seen(self, ev: e.ReplySearched) -> bool:
        """Has all come that the reply read?"""
        return all(self._version.get(x.stream, 0) >= x.version for x in ev.lists if x.stream in self._streams)

    def _taken_back(self, ev: e.ReplySearched, at: datetime) -> bool:
        """Has all come that takes back the attempt before this one (D19)?

        In a list that the reply read it is the version that the reply names, or the first after it. It may come as long
        as the clocks may differ.
        """
        if self._now is not None and self._now <= at + SKEW:
            return False
        after = {x.stream: x.version + 1 for x in ev.lists}
        return not any(
            isinstance(r.event, e.TurnRolledBack)
            and r.event.turn == ev.turn
            and r.version == after.get(r.stream, r.version)
            and r.recorded_at <= at + SKEW
            for r in self._waiting
        )

    def _gone(self, r: e.Recorded) -> e.Recorded:
        ev = r.event
        self._version[r.stream] = r.version
        if isinstance(ev, e.ReplySearched) and ev.turn is not None:
            turn = self._turns.setdefault(ev.turn, _Turn(r.recorded_at))
            turn.at = r.recorded_at
            turn.attempts.append(frozenset(c.memory for c in ev.candidates if c.matched))
            turn.days.add(ev.day)
            self._turns.move_to_end(ev.turn)
        elif isinstance(ev, e.MemoriesMatched) and ev.turn is not None and (known := self._turns.get(ev.turn)):
            attempt = _attempt(ev, r.stream, known)
            if attempt is not None:
                known.taken[r.stream] = attempt + 1
        return r

    def _forget_old_turns(self, now: datetime) -> None:
        while len(self._turns) > TURNS_KEPT and now - next(iter(self._turns.values())).at > REMEMBERED:
            self._turns.popitem(last=False)


def _attempt(ev: e.MemoriesMatched, stream: UUID, turn: _Turn) -> int | None:
    """Which attempt of its turn this is a match of, of those that have had none in this list."""
    ids = {m.memory for m in ev.matches}
    first = turn.taken.get(stream, 0)
    return next((n for n in range(first, len(turn.attempts)) if ids <= turn.attempts[n]), None)


def _too_early(r: e.Recorded, read_by: e.ReplySearched | None) -> bool:
    """Did this come to its list after a reply that waits read it? But what a reply takes back it read as taken back."""
    if read_by is None:
        return False
    version = next(x.version for x in read_by.lists if x.stream == r.stream)
    takes_back = isinstance(r.event, e.TurnRolledBack) and r.event.turn == read_by.turn and read_by.attempt > 1
    return r.version > version + takes_back
