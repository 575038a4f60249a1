"""Pours one shard into a new generation: read by a cursor on the server, folded in memory, written by COPY.

The rows are the same as those that the runner writes event by event; only nothing is looked up and nothing is written
twice. What is held in memory is the lists and texts of one shard, and a few thousand events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, LiteralString, Protocol
from uuid import UUID

from psycopg import Connection, ServerCursor, sql

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey, Subject
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.projections.queries import queries

_SQL = queries("rebuild")
FETCH = 2_000
"""Events a round trip."""
VECTORS = 1_000
"""Rows whose vectors are looked up at once."""
EMPTY = MemoryList()
_NO_VECTOR = (None, None)

Decode = Callable[[Connection[Any], Sequence[Any]], Sequence[Recorded]]


class FoldedList:
    """A list as far as its events have been read."""

    __slots__ = ("key", "state", "stream", "tenant", "version")

    def __init__(self, stream: UUID, tenant: str, key: ListKey) -> None:
        self.stream, self.tenant, self.key = stream, tenant, key
        self.state, self.version = EMPTY, 0


class Build(Protocol):
    """One projection's part of a shard. Events come once each, in the order of their positions."""

    def take(self, r: Recorded, state: MemoryList) -> None:
        """One more event, and the state of its list after it."""
        ...

    def pour(self, conn: Connection[Any]) -> None:
        """Write what no later event changes."""
        ...

    def finish(self, conn: Connection[Any], lists: Sequence[FoldedList]) -> None:
        """Write the rest; `lists` stand in the order of their rows."""
        ...


class Lists:
    """Folds the lists of a shard, once for all projections."""

    def __init__(self) -> None:
        self._lists: dict[UUID, FoldedList] = {}

    def take(self, r: Recorded) -> MemoryList:
        """The state of the event's list after it; the empty one if it is not of a list."""
        ev, one = r.event, self._lists.get(r.stream)
        if one is None:
            if not isinstance(ev, e.ListEvent):
                return EMPTY
            one = self._lists[r.stream] = FoldedList(r.stream, ev.tenant, ev.key)
        elif not isinstance(ev, (e.ListEvent, e.SubjectErased)):
            return one.state
        one.state = evolve(one.state, r)
        one.version = r.version
        return one.state

    def in_order(self) -> list[FoldedList]:
        """All of them, as their rows are to lie."""
        return sorted(self._lists.values(), key=lambda one: one.stream)


def pour_shard(
    conn: Connection[Any], shard: int, decode: Decode, builds: Sequence[Build], told: Callable[[int], None]
) -> tuple[int, int]:
    """Pour all events of a shard that there are now, inside the caller's transaction.

    Args:
        told: called with the number of events of each round trip.

    Returns:
        The position reached, and how many events there were.
    """
    lists = Lists()
    position = count = 0
    with ServerCursor(conn, "remembrancer_pour") as cur:
        cur.execute(_SQL["events"], {"shard": shard}, binary=True)
        while rows := cur.fetchmany(FETCH):
            for r in decode(conn, rows):
                state = lists.take(r)
                for build in builds:
                    build.take(r, state)
            for build in builds:
                build.pour(conn)
            position, count = rows[-1][1], count + len(rows)
            told(len(rows))
    in_order = lists.in_order()
    for build in builds:
        build.finish(conn, in_order)
    return position, count


def copy(
    conn: Connection[Any], table: str, generation: int, types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write rows into a table of a generation, attached or not; nothing at all where there are none."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    with conn.cursor() as cur, cur.copy(_of(table, generation, f"copy_{table}")) as into:
        into.set_types(types)
        into.write_row(first)
        for row in rows:
            into.write_row(row)


def erase_history(conn: Connection[Any], generation: int, shard: int, stream: UUID) -> set[UUID]:
    """Take the texts from the lines of a list. Returns the memories that they name."""
    found = conn.execute(_of("history", generation, "erase_history"), {"shard": shard, "list": stream})
    return {row[0] for row in found}


def _of(table: str, generation: int, query: str) -> sql.Composed:
    text: LiteralString = _SQL[query]
    return sql.SQL(text).format(table=sql.Identifier("remembrancer", f"{table}_{generation}"))


Text = tuple[str, Subject, bytes]
"""Tenant, owner and digest of a text: what its vector is found by."""


def copy_with_vectors(
    conn: Connection[Any],
    table: str,
    generation: int,
    shard: int,
    types: Sequence[str],
    rows: Iterable[tuple[tuple[Any, ...], Text]],
) -> None:
    """`copy` of rows that get two more columns, model and vector: as they are kept of each row's text, or nothing."""
    has_vectors = conn.execute(_SQL["has_vectors"], {"shard": shard}).fetchone() is not None
    rows = iter(rows)
    while part := list(islice(rows, VECTORS)):
        found = _vectors(conn, shard, [text for _, text in part]) if has_vectors else {}
        filled = ((*row, *found.get(n, _NO_VECTOR)) for n, (row, _) in enumerate(part, 1))
        copy(conn, table, generation, types, filled)


def _vectors(conn: Connection[Any], shard: int, texts: Sequence[Text]) -> dict[int, tuple[Any, Any]]:
    """Model and vector of those of these texts that have one, by their number from 1 on."""
    asked = {
        "shard": shard,
        "tenants": [tenant for tenant, _, _ in texts],
        "kinds": [owner.kind for _, owner, _ in texts],
        "subjects": [owner.key for _, owner, _ in texts],
        "digests": [digest for _, _, digest in texts],
    }
    return {n: (model, vector) for n, model, vector in conn.execute(_SQL["vectors"], asked, binary=True)}
