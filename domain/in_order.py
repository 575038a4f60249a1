"""The order in which the facts of many streams could have happened: nothing before what it has seen.

Within a shard positions say it. Between shards there are only moments, which several events share and which the clocks
of several machines give. But a reply says which version of each list it saw, and what it did to a list names its turn:
so a list never moves past what a reply has yet to see, and a reply never comes before the state that it read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from remembrancer.domain import events as e

PATIENCE = timedelta(minutes=5)
"""So long, by the events' own moments, something waits for what should have come before it: no clock is so far off."""
MOST_WAITING = 500
"""So many wait at most: then the first goes on, so that little is held and a look at all of them takes no time."""
REMEMBERED = timedelta(days=1)
"""So long a turn's replies are remembered for what it did to lists."""


class InOrder:
    """Puts events that come by moment, shard and position into that order, keeping only those that have to wait.

    Args:
        streams: the lists that come; what a reply saw of others is not waited for.
    """

    def __init__(self, streams: Collection[UUID]) -> None:
        self._streams = streams
        self._version: dict[UUID, int] = {}
        self._waiting: list[e.Recorded] = []
        self._now: datetime | None = None
        self._replies: dict[str, list[frozenset[UUID]]] = {}
        """Of each turn, what each attempt matched."""
        self._taken: dict[tuple[str, UUID], int] = defaultdict(int)
        """Of each turn and list, how many attempts have had their matches."""
        self._turns: deque[tuple[datetime, str]] = deque()

    def feed(self, events: Iterable[e.Recorded]) -> Iterator[e.Recorded]:
        """These events and those that waited, as far as it is their turn."""
        for r in events:
            self._now = r.recorded_at
            self._forget_old_turns(r.recorded_at)
            if not self._waiting and self._ready(r):
                yield self._gone(r)
            else:
                self._waiting.append(r)
                if len(self._waiting) > MOST_WAITING:
                    yield self._gone(self._waiting.pop(0))
                yield from self._release()

    def flush(self) -> Iterator[e.Recorded]:
        """All that still waits: nothing else will come before it."""
        while self._waiting:
            self._now = None
            yield from self._release()
            if self._waiting:
                yield self._gone(self._waiting.pop(0))

    def _release(self) -> Iterator[e.Recorded]:
        moved = True
        while moved:
            moved, held, left = False, set[UUID](), list[e.Recorded]()
            for r in self._waiting:
                late = self._now is not None and self._now - r.recorded_at > PATIENCE
                if r.stream not in held and (late or self._ready(r)):
                    moved = True
                    yield self._gone(r)
                else:
                    held.add(r.stream)
                    left.append(r)
            self._waiting = left

    def _ready(self, r: e.Recorded) -> bool:
        ev = r.event
        if isinstance(ev, e.ReplySearched):
            # What a new attempt takes back stands at the same moment in other streams, after the versions that it saw.
            settled = ev.attempt == 1 or self._now is None or self._now > r.recorded_at
            return settled and all(
                self._version.get(seen.stream, 0) >= seen.version for seen in ev.lists if seen.stream in self._streams
            )
        if ev.turn is None or ev.actor == "person" or not isinstance(ev, e.ListEvent):
            return True
        attempts = self._replies.get(ev.turn)
        if attempts is None:
            return False
        if not isinstance(ev, e.MemoriesMatched):
            return True
        return self._attempt(ev, r.stream, attempts) is not None

    def _attempt(self, ev: e.MemoriesMatched, stream: UUID, attempts: list[frozenset[UUID]]) -> int | None:
        """Which attempt of its turn this is a match of, of those that have had none in this list."""
        assert ev.turn is not None
        ids = {m.memory for m in ev.matches}
        first = self._taken.get((ev.turn, stream), 0)
        return next((n for n in range(first, len(attempts)) if ids <= attempts[n]), None)

    def _gone(self, r: e.Recorded) -> e.Recorded:
        ev = r.event
        self._version[r.stream] = r.version
        if isinstance(ev, e.ReplySearched) and ev.turn is not None:
            if ev.turn not in self._replies:
                self._turns.append((r.recorded_at, ev.turn))
            self._replies.setdefault(ev.turn, []).append(frozenset(c.memory for c in ev.candidates if c.matched))
        elif isinstance(ev, e.MemoriesMatched) and ev.turn in self._replies:
            attempt = self._attempt(ev, r.stream, self._replies[ev.turn])
            if attempt is not None:
                self._taken[ev.turn, r.stream] = attempt + 1
        return r

    def _forget_old_turns(self, now: datetime) -> None:
        while self._turns and now - self._turns[0][0] > REMEMBERED:
            _, turn = self._turns.popleft()
            del self._replies[turn]
            for key in [k for k in self._taken if k[0] == turn]:
                del self._taken[key]
