"""What `why` finds a memory's life by: the candidates of every search, and the words of every text (U1).

Part of the projection `history`. Searches stand in the streams of chats, in other shards than the memories that they
found; here each is written down under the memory, with the numbers of that day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.projections.queries import queries, write
from remembrancer.projections.words import memory_terms

_SQL = queries("traces")
_COLUMNS = ("shard", "memory", "reply_shard", "position", "day", "rank", "score", "similarity", "words", "threshold",
            "matched", "recalled")  # fmt: skip


def keep_traces(conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
    """Write `candidate` and `wording` for a batch of events. The same again changes nothing."""
    found: list[tuple[Any, ...]] = []
    worded: list[dict[str, Any]] = []
    for r in events:
        match r.event:
            case e.ReplySearched() as ev:
                found += [
                    (c.memory.bytes[0], c.memory, r.shard, r.position, ev.day, c.rank, c.score, c.similarity, c.words,
                     ev.threshold, c.matched, c.recalled)
                    for c in ev.candidates
                ]  # fmt: skip
            case e.MemorySaved() | e.MemoryEdited() as ev:
                worded.append(
                    {"generation": generation, "shard": r.shard, "list": r.stream, "memory": ev.memory,
                     "version": r.version, "tenant": ev.tenant, "persona": ev.persona, "terms": memory_terms(ev.text)}
                )  # fmt: skip
            case e.SubjectErased():
                worded = [row for row in worded if row["list"] != r.stream]
                conn.execute(_SQL["erase"], {"generation": generation, "shard": r.shard, "list": r.stream})
    if found:
        columns = dict(zip(_COLUMNS, map(list, zip(*found, strict=True)), strict=True))
        conn.execute(_SQL["candidates"], columns | {"generation": generation})
    write(conn.cursor(), _SQL["wording"], worded)
