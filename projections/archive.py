"""Projection `archive`: every text that ever was a memory, for `why` and an operator's search over all personas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.projections.archive_build import ArchiveBuild
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.projection import ReadStream
from remembrancer.projections.queries import queries

_SQL = queries("archive")


class ArchiveProjection:
    """Writes `archive`: a row for each text of each memory. `until_now` is true where it is the memory's text today.

    Which text a memory has that came back, or whose edit was taken back, only its whole stream knows.
    """

    name = "archive"
    version = 1
    tables: tuple[str, ...] = ("archive",)

    def __init__(self, read_stream: ReadStream) -> None:
        self._read_stream = read_stream

    def build(self, generation: int, shard: int) -> ArchiveBuild:
        """The same rows for a rebuild."""
        return ArchiveBuild(generation, shard)

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch, event by event: the order matters within a list only."""
        for r in events:
            ev = r.event
            at = {"generation": generation, "shard": r.shard, "list": r.stream}
            match ev:
                case e.MemorySaved() | e.MemoryEdited():
                    owner = ListKey(ev.persona, ev.scope, ev.subject).owner
                    conn.execute(_SQL["outdate"], at | {"ids": [ev.memory]})
                    conn.execute(
                        _SQL["insert"],
                        at
                        | {"memory": ev.memory, "version": r.version, "tenant": ev.tenant, "persona": ev.persona}
                        | {"scope": ev.scope, "subject": ev.subject, "text": ev.text, "recorded_at": r.recorded_at}
                        | {"kind": owner.kind, "digest": digest(ev.text)}
                        | {"pinned": isinstance(ev, e.MemorySaved) and ev.pinned},
                    )
                case e.MemoryDeleted() | e.MemoryEvicted() | e.MemoryMoved():
                    conn.execute(_SQL["outdate"], at | {"ids": [ev.memory]})
                case e.MemoryRestored():
                    self._as_folded(conn, at, r, [ev.memory])
                case e.TurnRolledBack():
                    self._as_folded(conn, at, r, [*ev.removed, *ev.restored, *ev.reverted])
                case e.MemoriesCleared():
                    conn.execute(_SQL["outdate_pinned" if ev.pinned else "outdate_unpinned"], at)
                case e.MemoryPinned() | e.MemoryUnpinned():
                    conn.execute(_SQL["pin"], at | {"memory": ev.memory, "pinned": isinstance(ev, e.MemoryPinned)})
                case e.SubjectErased():
                    conn.execute(_SQL["erase"], at)

    def _as_folded(self, conn: Connection[Any], at: dict[str, Any], r: Recorded, ids: Sequence[UUID]) -> None:
        """Set the rows of these memories to what they are after this event."""
        state = reduce(evolve, self._read_stream(conn, r.stream, r.version), MemoryList())
        conn.execute(_SQL["outdate"], at | {"ids": list(ids)})
        for m in (state.memories[k] for k in ids if k in state.memories):
            conn.execute(_SQL["current"], at | {"memory": m.id, "text": m.text})
            conn.execute(_SQL["pin"], at | {"memory": m.id, "pinned": m.pinned})
