"""Reads what is recorded of one memory: its events, the searches that saw it, and the line that it stood in (U1).

Rows say where the events stand; what happened is read from the events, so that a story does not depend on what a
projection made of them. Events that no table has read yet are taken in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from functools import reduce
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.decay import SearchedDays
from remembrancer.domain.eviction import InLine, first_in_line
from remembrancer.domain.life import Life, Line, life_of
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.story import LAST, tell
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers_why import Seen
from remembrancer.services.deps import Deps
from remembrancer.services.finder import Home
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "why")
_ENDS = (e.MemoriesCleared, e.SubjectErased)


class Record(NamedTuple):
    """All that is recorded of a memory."""

    life: Life
    match_days: dict[date, int]
    """Days on which a message brought it to mind and nothing took that back, and how often."""
    matched: list[Seen]
    matches: int
    nearly: list[Seen]
    near_misses: int
    match_lines: list[Line]


class Next(NamedTuple):
    """Who would have been forgotten after a memory, or why nobody can say."""

    line: InLine | None
    unknown: str | None


class Lives:
    """See the module."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def of(self, memory: UUID, home: Home, *, limit: int) -> Record:
        """The record of a memory. `limit`: of its matches the latest, of its near misses the closest, so many each."""
        at: dict[str, Any] = {
            "shard": home.stream.bytes[0], "list": home.stream, "memory": memory, "limit": limit,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> Record:
            # What is ahead of the tables first: what they read meanwhile is then found in both, not in neither.
            ahead = unread(conn, self._deps.store, "history", shards=[home.stream.bytes[0]])
            here = [r for r in ahead if r.stream == home.stream and _concerns(r.event, memory)]
            replies = unread(conn, self._deps.store, "history", kinds=[e.ReplySearched])
            life = life_of(memory, self._events(conn, "life", at, [r for r in here if not _is_match(r)]))
            matches = self._events(conn, "matched", at, [r for r in here if _is_match(r)])[-limit:]
            taken = {"turns": list(life.undone), "positions": list(life.undone.values())}
            days: dict[date, int] = dict(conn.execute(_SQL["match_days"], at | taken).fetchall())
            for r in here:
                if isinstance(r.event, e.MemoriesMatched) and not _undone(life, r):
                    days[r.event.day] = days.get(r.event.day, 0) + 1
            (near,) = conn.execute(_SQL["near_misses"], at).fetchone() or (0,)
            seen = {
                matched: [
                    Seen(**dict(zip(_SEEN, row, strict=True)))
                    for row in conn.execute(_SQL["seen"], at | {"matched": matched})
                ]
                for matched in (True, False)
            }
            late = [s for r in replies for s in _searched(r, memory, self._deps.tenant)]
            seen[True] += [s for s in late if s.matched]
            missed = [s for s in late if not s.matched]
            nearly = sorted([*seen[False], *missed], key=_closest)[:limit]
            return Record(
                life,
                days,
                [_match(life, r, memory, seen[True]) for r in matches],
                sum(days.values()),
                sorted(nearly, key=lambda s: s.at),
                near + len(missed),
                [_told(life, r, memory) for r in matches],
            )

        return self._deps.store.database.run(work)

    def _events(
        self, conn: Connection[Any], query: str, at: dict[str, Any], ahead: Sequence[e.Recorded]
    ) -> list[e.Recorded]:
        rows = conn.execute(_SQL[query], at).fetchall()
        known = self._deps.store.decode(rows, conn) if rows else []
        return [r for _, r in sorted({r.version: r for r in [*known, *ahead]}.items())]

    def searched_on(self, days: Sequence[date], home: Home) -> dict[date, tuple[datetime, str | None]]:
        """When a list was first searched on each of these days, and in which turn."""
        if not days:
            return {}
        at = {
            "days": list(days), "tenant": self._deps.tenant, "persona": home.key.persona, "list": home.stream,
        }  # fmt: skip
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["searched_on"], at).fetchall())
        return {day: (moment, turn) for day, moment, turn in rows}

    def text_of(self, memory: UUID) -> str | None:
        """What a memory says, or said last; None if nobody knows any more."""
        at = {"shard": memory.bytes[0], "memory": memory}
        row = self._deps.store.database.run(lambda conn: conn.execute(_SQL["text_of"], at).fetchone())
        return None if row is None else str(row[0])

    def next_in_line(self, home: Home, evicted: e.Recorded, policy: Policy, days: SearchedDays) -> Next:
        """Who was behind an evicted memory, from the events before its eviction (T12, D6).

        The memories that were there then are folded to that moment, and the line is formed again by the rule itself.
        Where this does not name the memory that was evicted, the record does not hold all that the decision knew, and
        nobody is named.

        Args:
            days: the searched days of the list; those from the day of the eviction on are left out here.
        """
        event, today = evicted.event, evicted.recorded_at.date()
        assert isinstance(event, e.MemoryEvicted)
        at = {
            "shard": home.stream.bytes[0], "list": home.stream, "tenant": self._deps.tenant,
            "persona": home.key.persona, "position": evicted.position, "day": today, "at": evicted.recorded_at,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> tuple[list[e.Recorded], list[e.Recorded]]:
            ahead = unread(conn, self._deps.store, "history", shards=[home.stream.bytes[0]])
            before = [r for r in ahead if r.stream == home.stream and r.version < evicted.version]
            ticks = [r for r in before if isinstance(r.event, e.ListSearched)]
            others = [r for r in before if not isinstance(r.event, e.ListSearched)]
            return self._events(conn, "line", at, others), self._events(conn, "searched_before", at, ticks)

        told, ticks = self._deps.store.database.run(work)
        then = SearchedDays(
            tuple(day for day in days.days if day < today), {day: out for day, out in days.off.items() if day < today}
        )
        state = reduce(evolve, [*told, *ticks], MemoryList(days=then))

        def first(left_out: UUID | None = None) -> InLine | None:
            line = [m for m in state.memories.values() if m.id != left_out]
            return first_in_line(line, state.days, policy, today, is_global=home.key.scope == "global")

        was = first()
        if was is None or was.memory.id != event.memory:
            return Next(None, "the record of that day does not give the same line again")
        behind = first(event.memory)
        return Next(behind, None if behind else "no other memory could have been forgotten")


_SEEN = ("at", "day", "persona", "chat", "turn", "rank", "score", "similarity", "words", "threshold", "matched",
         "recalled")  # fmt: skip


def _is_match(r: e.Recorded) -> bool:
    return isinstance(r.event, e.MemoriesMatched)


def _concerns(event: e.Event, memory: UUID) -> bool:
    return isinstance(event, _ENDS) or any(told.memory == memory for told in tell(event))


def _undone(life: Life, r: e.Recorded) -> bool:
    """Was this use taken back?"""
    return r.position < life.undone.get(r.event.turn or "", 0)


def _closest(s: Seen) -> tuple[float, float]:
    return (s.threshold or 0.0) - s.score, -s.at.timestamp()


def _match(life: Life, r: e.Recorded, memory: UUID, seen: Sequence[Seen]) -> Seen:
    """A match as its list recorded it, with what the reply knew besides: the threshold and the chat."""
    ev = r.event
    assert isinstance(ev, e.MemoriesMatched)
    m = next(m for m in ev.matches if m.memory == memory)
    reply = next((s for s in reversed(seen) if (s.turn, s.rank, s.score) == (ev.turn, m.rank, m.score)), None)
    return Seen(
        at=r.recorded_at,
        day=ev.day,
        persona=ev.persona if reply is None else reply.persona,
        chat=None if reply is None else reply.chat,
        turn=ev.turn,
        rank=m.rank,
        score=m.score,
        similarity=m.similarity,
        words=m.words,
        threshold=None if reply is None else reply.threshold,
        matched=True,
        recalled=m.recalled,
        undone=_undone(life, r),
    )


def _searched(r: e.Recorded, memory: UUID, tenant: str) -> list[Seen]:
    """What a search that no table has read yet made of the memory."""
    ev = r.event
    if not isinstance(ev, e.ReplySearched) or ev.tenant != tenant:
        return []
    return [
        Seen(
            at=r.recorded_at, day=ev.day, persona=ev.persona, chat=ev.chat, turn=ev.turn, rank=c.rank, score=c.score,
            similarity=c.similarity, words=c.words, threshold=ev.threshold, matched=c.matched, recalled=c.recalled,
        )
        for c in ev.candidates
        if c.memory == memory
    ]  # fmt: skip


def _told(life: Life, r: e.Recorded, memory: UUID) -> Line:
    """A match as a line of the story, with the text that the memory had at that moment."""
    text = life.text
    for line in life.lines:
        if line.recorded.version > r.version:
            text = line.before if line.before is not None else text
            break
    told = next(told for told in tell(r.event) if told.memory == memory)
    assert told.before == LAST
    return Line(r, told.sentence, text, text)
