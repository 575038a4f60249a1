"""Projection `archive`: every text that ever was a memory, for `why` and an operator's search over all personas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import queries

_SQL = queries("archive")


class ArchiveProjection:
    """Writes `archive`: a row for each text of each memory. `until_now` is true where it is the memory's text today."""

    name = "archive"

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
                    conn.execute(_SQL["current"], at | {"ids": [ev.memory]})
                    conn.execute(_SQL["pin"], at | {"memory": ev.memory, "pinned": False})
                case e.TurnRolledBack():
                    conn.execute(_SQL["outdate"], at | {"ids": list(ev.removed)})
                    conn.execute(_SQL["current"], at | {"ids": list(ev.restored)})
                case e.MemoriesCleared():
                    conn.execute(_SQL["outdate_pinned" if ev.pinned else "outdate_unpinned"], at)
                case e.MemoryPinned() | e.MemoryUnpinned():
                    conn.execute(_SQL["pin"], at | {"memory": ev.memory, "pinned": isinstance(ev, e.MemoryPinned)})
                case e.SubjectErased():
                    conn.execute(_SQL["erase"], at)
