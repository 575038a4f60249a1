"""Is the read model what the events say? A fresh fold of every list, compared with its rows, column by column.

assert_read_model_is_a_fresh_fold(memory)     # after `caught_up(memory)`
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import dict_row

from remembrancer.domain.events import ListEvent, Recorded, SubjectErased
from remembrancer.domain.identity import Subject
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.projections import memory_rows
from remembrancer.services.remembrancer import Remembrancer

ANYBODY = Subject("user", "anybody")
NOT_COLUMNS = {"tenant", "kind", "subject", "digest"}
"""What the parameters of a row say of its vector: whose key it is kept under does not stand in the row."""


def all_events(memory: Remembrancer) -> list[Recorded]:
    """Every event of the store, shard by shard, in its order."""
    store = memory.engine.store
    return store.read_shards(dict.fromkeys(store.heads(), 0), 10_000_000)


def events_of_lists(memory: Remembrancer) -> dict[UUID, list[Recorded]]:
    """The streams of all lists, of every tenant."""
    streams: dict[UUID, list[Recorded]] = defaultdict(list)
    for recorded in all_events(memory):
        if isinstance(recorded.event, ListEvent | SubjectErased):
            streams[recorded.stream].append(recorded)
    return {stream: events for stream, events in streams.items() if isinstance(events[0].event, ListEvent)}


def folded(events: Sequence[Recorded]) -> MemoryList:
    """The state of a list, by the aggregate's own fold, from its first event on."""
    state = MemoryList()
    for recorded in events:
        state = evolve(state, recorded)
    return state


def caught_up(memory: Remembrancer) -> None:
    """Projects what there is, here; with a projector elsewhere, waits for it. Nothing may be parked."""
    engine = memory.engine
    while engine.runner.catch_up():
        pass
    assert engine.waiting.settle(20.0), "the read model did not catch up"
    assert engine.runner.parked() == []


def assert_read_model_is_a_fresh_fold(memory: Remembrancer) -> None:
    """Compares `list`, `list_day`, `memory` and `memory_use` with the events. Says which column of what differs."""
    lists = events_of_lists(memory)
    rows = _rows(memory)
    assert {row["list"] for row in rows["list"]} == set(lists)
    by_list = {name: _by_list(found) for name, found in rows.items()}
    for stream, events in lists.items():
        state, first = folded(events), events[0].event
        assert isinstance(first, ListEvent)
        (row,) = by_list["list"][stream]
        expected = {
            "tenant": first.tenant, "persona": first.persona, "scope": first.scope, "subject": first.subject,
            "version": events[-1].version, "days": list(state.days.days), "cleared": state.cleared,
        }  # fmt: skip
        assert {name: row[name] for name in expected} == expected
        off = {row["day"]: (row["all_but"], set(row["ids"])) for row in by_list["list_day"][stream]}
        assert off == {day: (out.all_but, set(out.ids)) for day, out in state.days.off.items()}
        _compare_memories(state, by_list["memory"][stream], by_list["memory_use"][stream])


def _compare_memories(state: MemoryList, texts: Sequence[dict[str, Any]], uses: Sequence[dict[str, Any]]) -> None:
    found = {row["id"]: row for row in texts}
    assert {row["id"] for row in uses} == set(found), "a memory has a text and a use, or none of the two"
    assert set(found) == set(state.memories)
    for row in uses:
        found[row["id"]] |= row
    for memory in state.memories.values():
        expected = memory_rows.text_row(memory, "", ANYBODY) | memory_rows.use_row(memory)
        for column, value in expected.items():
            if column not in NOT_COLUMNS:
                got, wanted = _plain(found[memory.id][column]), _plain(value)
                assert got == wanted, f"{column} of {memory.id}: {got!r} is not {wanted!r}"


def _plain(value: Any) -> Any:
    """A value as both sides write it: JSON as parsed, arrays as lists."""
    if hasattr(value, "obj"):  # psycopg's Jsonb
        value = value.obj
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            value = orjson.loads(value)
        except ValueError:
            return value
    return orjson.loads(orjson.dumps(value, default=list))


def _rows(memory: Remembrancer) -> dict[str, list[dict[str, Any]]]:
    live = "(SELECT generation FROM remembrancer.generation WHERE projection = 'memory' AND live)"
    with memory.engine.store.database.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        return {
            table: cursor.execute(f"SELECT * FROM remembrancer.{table} WHERE generation = {live}").fetchall()
            for table in ("list", "list_day", "memory", "memory_use")
        }


def _by_list(rows: Sequence[dict[str, Any]]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["list"]].append(row)
    return found


def count_of_everything(memory: Remembrancer) -> dict[str, int]:
    """How many rows each table of the write side has: what a refused command must leave as it was."""
    tables = ("event", "request", "subject_key", "embedding")
    with memory.engine.store.database.connection() as connection:
        counts = {}
        for table in tables:
            row = connection.execute(f"SELECT count(*) FROM remembrancer.{table}").fetchone()
            assert row is not None
            counts[table] = row[0]
        return counts
