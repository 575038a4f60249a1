"""Projection `memory`: lists, memories and their uses, as every reply reads them.

The rows are the state of the aggregate's own fold, so a batch loads what its events name, evolves it with
`domain.persona_memory.evolve`, and writes what changed. Events that bring back what is no longer in the rows fold their
stream anew from its beginning; they are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.decay import LeftOut, SearchedDays
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey, Scope
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.projections import memory_rows as rows
from remembrancer.projections.memory_build import MemoryBuild
from remembrancer.projections.projection import ReadStream
from remembrancer.projections.queries import queries, write

_SQL = queries("memory")
ANEW = (e.MemoryRestored, e.TurnRolledBack, e.UseRecounted)
_ALL = (e.MemoriesCleared, e.SubjectErased)


@dataclass(slots=True)
class _List:
    """One list's part of a batch: whose it is, its events, and its state before and after them."""

    shard: int
    stream: UUID
    events: list[Recorded]
    tenant: str = ""
    key: ListKey = field(default_factory=lambda: ListKey("", "server", ""))
    version: int = 0
    before: MemoryList = MemoryList()
    after: MemoryList = MemoryList()
    rewrite: bool = False

    def days_needed(self) -> set[date | None]:
        """The days whose left-out set the fold needs; None stands for all of them (a pin freezes the counter)."""
        if any(isinstance(r.event, (e.MemoryPinned, *ANEW)) for r in self.events):
            return {None}
        return {r.event.day for r in self.events if isinstance(r.event, e.ListSearched)}


def memories_of(event: e.Event) -> Iterable[UUID]:
    """The memories that an event names."""
    match event:
        case e.MemoriesMatched():
            return [m.memory for m in event.matches]
        case e.TurnRolledBack():
            return [*event.removed, *event.restored, *event.reverted, *event.unmatched]
        case e.UseRecounted():
            return list(event.unused_days)
    memory = getattr(event, "memory", None)
    return [] if memory is None else [memory]


class MemoryProjection:
    """Writes `list`, `list_day`, `memory` and `memory_use`."""

    name = "memory"
    version = 1
    tables: tuple[str, ...] = ("list", "list_day", "memory", "memory_use")

    def __init__(self, read_stream: ReadStream) -> None:
        self._read_stream = read_stream

    def build(self, generation: int, shard: int) -> MemoryBuild:
        """The same rows for a rebuild."""
        return MemoryBuild(generation, shard)

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch. Events that a list's row has already folded are passed over."""
        by_stream: dict[UUID, list[Recorded]] = defaultdict(list)
        for r in events:
            if isinstance(r.event, (e.ListEvent, e.SubjectErased)):
                by_stream[r.stream].append(r)
        lists = [_List(rs[0].shard, stream, rs) for stream, rs in by_stream.items()]
        if not lists:
            return
        self._load(conn, generation, lists)
        touched = [x for x in lists if x.events]
        for x in touched:
            self._fold(conn, generation, x)
        self._write(conn, generation, touched)

    def _load(self, conn: Connection[Any], generation: int, lists: Sequence[_List]) -> None:
        """Bring the state that the batch's events name, as it is in the rows."""
        by_stream = {x.stream: x for x in lists}
        at = {"generation": generation, "shards": [x.shard for x in lists], "lists": [x.stream for x in lists]}
        days: dict[UUID, tuple[date, ...]] = {}
        cleared: set[UUID] = set()
        for row in conn.execute(_SQL["lists"], at).fetchall():
            x = by_stream[row[0]]
            x.version, days[x.stream] = row[1], tuple(row[2])
            x.tenant, x.key = row[4], ListKey(row[5], row[6], row[7])
            if row[3]:
                cleared.add(x.stream)
        for x in lists:
            x.events = [r for r in x.events if r.version > x.version]
            for r in x.events:
                if isinstance(r.event, e.ListEvent):
                    scope: Scope = r.event.scope
                    x.tenant, x.key = r.event.tenant, ListKey(r.event.persona, scope, r.event.subject)
            if not x.key.persona:  # the erasure of a stream that is no list
                x.events = []
        wanted = [
            (x.shard, x.stream, memory) for x in lists if x.version for memory in self._named(conn, generation, x)
        ]
        memories: dict[UUID, dict[UUID, Memory]] = defaultdict(dict)
        if wanted:
            shards, streams, ids = zip(*wanted, strict=True)
            params = {"generation": generation, "shards": [*shards], "lists": [*streams], "ids": [*ids]}
            for row in conn.execute(_SQL["memories"], params).fetchall():
                memories[row[0]][row[1]] = rows.memory_from_row(row[1:])
        off: dict[UUID, dict[date, LeftOut]] = defaultdict(dict)
        asked = [(x.shard, x.stream, day) for x in lists if x.version for day in x.days_needed()]
        if asked:
            shards, streams, needed = zip(*asked, strict=True)
            params = {"generation": generation, "shards": [*shards], "lists": [*streams], "days": [*needed]}
            for stream, day, all_but, left in conn.execute(_SQL["list_days"], params).fetchall():
                off[stream][day] = LeftOut(frozenset(left), all_but)
        for x in lists:
            x.before = MemoryList(
                memories=memories[x.stream],
                days=SearchedDays(days.get(x.stream, ()), off[x.stream]),
                cleared=x.stream in cleared,
            )

    @staticmethod
    def _named(conn: Connection[Any], generation: int, x: _List) -> set[UUID]:
        if any(isinstance(r.event, (*_ALL, *ANEW)) for r in x.events):
            at = {"generation": generation, "shard": x.shard, "list": x.stream}
            return {row[0] for row in conn.execute(_SQL["ids"], at)}
        made = {r.event.memory for r in x.events if isinstance(r.event, e.MemorySaved)}  # no row is ahead of its list
        return {memory for r in x.events for memory in memories_of(r.event)} - made

    def _fold(self, conn: Connection[Any], generation: int, x: _List) -> None:
        last = x.events[-1].version
        if any(isinstance(r.event, ANEW) for r in x.events):
            x.after = MemoryList()
            for r in self._read_stream(conn, x.stream, last):
                x.after = evolve(x.after, r)
            x.rewrite = True
        else:
            x.after = x.before
            for r in x.events:
                x.after = evolve(x.after, r)
        x.version = last

    @staticmethod
    def _write(conn: Connection[Any], generation: int, lists: Sequence[_List]) -> None:
        texts, uses, gone_texts, list_rows, day_rows, gone_days = [], [], [], [], [], []
        for x in lists:
            at = {"generation": generation, "shard": x.shard, "list": x.stream}
            owner = x.key.owner
            list_rows.append(
                at
                | {"tenant": x.tenant, "persona": x.key.persona, "scope": x.key.scope, "subject": x.key.subject}
                | {"version": x.version, "days": list(x.after.days.days), "cleared": x.after.cleared}
            )
            for m in x.after.memories.values():
                old = x.before.memories.get(m.id)
                if old is m and not x.rewrite:
                    continue
                if old is None or rows.text_part(old) != rows.text_part(m):
                    texts.append(at | rows.text_row(m, x.tenant, owner))
                if old is None or x.rewrite or rows.use_row(old) != rows.use_row(m):
                    uses.append(at | rows.use_row(m))
            gone = [k for k in x.before.memories if k not in x.after.memories]
            if gone:
                gone_texts.append(at | {"ids": gone})
            for day, out in x.after.days.off.items():
                if x.rewrite or x.before.days.off.get(day) != out:
                    day_rows.append(at | {"day": day, "all_but": out.all_but, "ids": sorted(out.ids)})
            gone_days += [at | {"day": day} for day in x.before.days.off if day not in x.after.days.off]
        cur = conn.cursor()
        for name, params in (
            ("delete_memories", gone_texts),
            ("delete_uses", gone_texts),
            ("write_memories", texts),
            ("write_uses", uses),
            ("delete_list_days", gone_days),
            ("write_list_days", day_rows),
            ("write_lists", list_rows),
        ):
            write(cur, _SQL[name], params)
