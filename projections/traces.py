"""What `why` finds a memory's life by: the candidates of every search, and the words of every text (U1).

Part of the projection `history`. Searches stand in the streams of chats, in other shards than the memories that they
found; here each is written down under the memory, with the numbers of that day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.text import ERASED
from remembrancer.projections.queries import queries, write
from remembrancer.projections.words import memory_terms

_SQL = queries("traces")
CANDIDATE = ("generation", "shard", "position", "memory", "day", "rank", "score", "similarity", "words", "threshold",
             "matched", "recalled")  # fmt: skip
CANDIDATE_TYPES = (
    "int2",
    "int2",
    "int8",
    "uuid",
    "date",
    "int2",
    "float8",
    "float8",
    "float8",
    "float8",
    "bool",
    "bool",
)
WORDING = ("generation", "shard", "list", "memory", "version", "tenant", "persona", "terms")
WORDING_TYPES = ("int2", "int2", "uuid", "uuid", "int8", "text", "text", "int4[]")


def candidate_rows(generation: int, r: Recorded) -> Iterator[tuple[Any, ...]]:
    """The rows of `candidate` that an event gives, in the order of `CANDIDATE`."""
    ev = r.event
    if isinstance(ev, e.ReplySearched):
        for c in ev.candidates:
            yield (generation, r.shard, r.position, c.memory, ev.day, c.rank, c.score, c.similarity, c.words,
                   ev.threshold, c.matched, c.recalled)  # fmt: skip


def wording_row(generation: int, r: Recorded) -> tuple[Any, ...] | None:
    """The row of `wording` that an event gives, in the order of `WORDING`. None of a text that was erased (D24)."""
    ev = r.event
    if not isinstance(ev, e.MemorySaved | e.MemoryEdited) or ev.text == ERASED:
        return None
    return generation, r.shard, r.stream, ev.memory, r.version, ev.tenant, ev.persona, memory_terms(ev.text)


def keep_traces(conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
    """Write `candidate` and `wording` for a batch of events. The same again changes nothing."""
    found: list[tuple[Any, ...]] = []
    worded: list[tuple[Any, ...]] = []
    for r in events:
        found += candidate_rows(generation, r)
        if (row := wording_row(generation, r)) is not None:
            worded.append(row)
        if isinstance(r.event, e.SubjectErased):
            worded = [row for row in worded if row[WORDING.index("list")] != r.stream]
            conn.execute(_SQL["erase"], {"generation": generation, "shard": r.shard, "list": r.stream})
    if found:
        conn.execute(_SQL["candidates"], dict(zip(CANDIDATE, map(list, zip(*found, strict=True)), strict=True)))
    write(conn.cursor(), _SQL["wording"], [dict(zip(WORDING, row, strict=True)) for row in worded])
