"""The tables follow from the events alone: in whatever batches, from the beginning again, once more on top (U3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection, sql

from remembrancer.domain.decay import LeftOut, SearchedDays
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.projections.memory_rows import memory_from_row
from remembrancer.projections.queries import load_queries
from tests.support.book import KEYS, Book, acts, days, days_of, returns, saves, searches, story
from tests.support.world import World

TABLES = ("list", "list_day", "memory", "memory_use", "archive", "history", "candidate", "wording")
_REPLY = load_queries("remembrancer.services", "reply")
_ARCHIVED = "SELECT memory, text, pinned FROM remembrancer.archive WHERE tenant = %s AND until_now"

stories = st.tuples(
    story(saves, days_of(0, 2), 10),
    story(st.one_of(acts, searches, searches), days, 15),
    story(st.one_of(acts, returns), days, 10),
)
tenants = count()


@pytest.fixture
def conn(world: World) -> Any:
    with world.memory.engine.store.database.connection() as one:
        yield one


def rows(conn: Connection[Any], generation: int = 1) -> Mapping[str, Sequence[str]]:
    """All that the tables of a generation say, in an order of our own."""
    every = sql.SQL("SELECT (to_jsonb(t) - 'generation')::text FROM remembrancer.{} t WHERE generation = %s ORDER BY 1")
    return {
        table: [row[0] for row in conn.execute(every.format(sql.Identifier(table)), (generation,))] for table in TABLES
    }


def forget(conn: Connection[Any], start: Mapping[int, int], *, also_rows: bool = True) -> None:
    """The projections stand where they stood at the start of a story, with or without what they have written."""
    conn.execute(
        "UPDATE remembrancer.checkpoint c SET position = s.position"
        " FROM unnest(%s::int2[], %s::int8[]) AS s (shard, position) WHERE s.shard = c.shard",
        (list(start), list(start.values())),
    )
    if also_rows:
        for table in TABLES:
            conn.execute(sql.SQL("TRUNCATE remembrancer.{}").format(sql.Identifier(table)))


def as_rows_say(conn: Connection[Any], book: Book) -> dict[Any, Any]:
    """The lists as their rows have them: memories, and searched days with who was left out."""
    streams = {book.stream(key): key for key in KEYS}
    at = {"shards": [s.bytes[0] for s in streams], "lists": list(streams)}
    found: dict[Any, Any] = {key: ({}, SearchedDays()) for key in KEYS}
    for stream, listed in conn.execute(
        "SELECT list, days FROM remembrancer.list WHERE list = ANY (%s)", (list(streams),)
    ):
        found[streams[stream]] = ({}, SearchedDays(tuple(listed), {}))
    for row in conn.execute(_REPLY["touched"], at | {"ids": [None] * len(streams)}):
        found[streams[row[0]]][0][row[1]] = memory_from_row(row[1:])
    for stream, day, all_but, ids in conn.execute(_REPLY["touched_days"], at):
        found[streams[stream]][1].off[day] = LeftOut(frozenset(ids), all_but)
    return found


def as_kept(s: MemoryList) -> dict[UUID, Memory]:
    """What rows keep of the memories: earlier wordings only the events know."""
    return {k: replace(m, changed_by=None, before=()) for k, m in s.memories.items()}


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(told=stories, batch=st.integers(1, 12))
def test_u3_events_projected_twice_in_whatever_batches_give_the_same_tables(
    world: World, conn: Connection[Any], told: Any, batch: int
):
    start = dict.fromkeys(range(256), 0) | world.memory.engine.store.heads()
    forget(conn, start)
    book = Book(world, f"tenant {next(tenants)}")
    for happened, taken in told:
        book.write(happened)
        book.project(*taken)
    book.runner(batch).catch_up()
    first = rows(conn)
    lists = book.lists()
    assert as_rows_say(conn, book) == {key: (as_kept(s), s.days) for key, s in lists.items()}

    archived = {(row[0], row[1]): row[2] for row in conn.execute(_ARCHIVED, (book.tenant,))}
    assert archived == {(m.id, m.text): m.pinned for s in lists.values() for m in s.memories.values()}

    forget(conn, start)
    book.runner(2_000).catch_up()
    assert rows(conn) == first, "in one batch"
    forget(conn, start, also_rows=False)
    book.runner(batch + 1).catch_up()
    assert rows(conn) == first, "once more, on top of the rows"
    assert world.memory.engine.runner.parked() == []


def test_u3_a_generation_built_beside_the_live_one_has_the_same_rows_and_leaves_the_live_one_alone(
    world: World, conn: Connection[Any]
):
    cat = world.save("Juno's cat is named Mochi", turn="t1")
    world.save("The garden opens at nine", tags=["spring"])
    world.memory.edit(cat, text="Juno's cat is called Mochi")
    world.talk(range(1, 5), "how is Mochi?")
    world.memory.delete(world.save("Aiko sings"))
    world.project()
    before = rows(conn)
    for table in TABLES:
        beside = sql.SQL("CREATE TABLE remembrancer.{} PARTITION OF remembrancer.{} FOR VALUES IN (2)")
        conn.execute(beside.format(sql.Identifier(f"{table}_2"), sql.Identifier(table)))
    conn.execute("INSERT INTO remembrancer.generation SELECT projection, 2, false FROM remembrancer.generation")
    conn.execute("INSERT INTO remembrancer.checkpoint SELECT projection, 2, shard, 0 FROM remembrancer.checkpoint")
    runner = world.memory.engine.runner
    for projection in runner.projections:
        while runner.run_batch(projection, generation=2):
            pass
    assert rows(conn, 2) == before
    assert rows(conn, 1) == before
    assert [m.text for m in world.say().prefix.memories] == ["Juno's cat is called Mochi"]
