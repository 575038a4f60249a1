"""The projection `archive`, folded in memory for a rebuild: what its statements do to rows is done to objects here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.projections.building import FoldedList, Text, copy_with_vectors
from remembrancer.projections.memory_rows import digest

_ARCHIVE = ("int2", "int2", "uuid", "uuid", "int8", "text", "text", "text", "text", "text", "timestamptz", "bool",
            "bool", "text", "halfvec")  # fmt: skip


class _Wording:
    """A row: one text of a memory."""

    __slots__ = ("pinned", "recorded", "until_now")

    def __init__(self, recorded: Recorded, pinned: bool) -> None:
        self.recorded, self.pinned, self.until_now = recorded, pinned, True


class ArchiveBuild:
    """Writes `archive`, list after list."""

    def __init__(self, generation: int, shard: int) -> None:
        self._generation, self._shard = generation, shard
        self._lists: dict[UUID, dict[UUID, list[_Wording]]] = defaultdict(dict)

    def take(self, r: Recorded, state: MemoryList) -> None:
        """As `ArchiveProjection.apply`; which text a memory has that came back, `state` says."""
        ev = r.event
        match ev:
            case e.MemorySaved() | e.MemoryEdited():
                before = self._lists[r.stream].setdefault(ev.memory, [])
                pinned = (isinstance(ev, e.MemorySaved) and ev.pinned) or any(w.pinned for w in before)
                _outdate(before)
                before.append(_Wording(r, pinned))
            case e.MemoryDeleted() | e.MemoryEvicted() | e.MemoryMoved():
                _outdate(self._of(r, ev.memory))
            case e.MemoryRestored():
                self._as_folded(r, state, [ev.memory])
            case e.TurnRolledBack():
                self._as_folded(r, state, [*ev.removed, *ev.restored, *ev.reverted])
            case e.MemoriesCleared():
                for wordings in self._lists[r.stream].values():
                    _outdate([w for w in wordings if w.pinned is ev.pinned])
            case e.MemoryPinned() | e.MemoryUnpinned():
                for w in self._of(r, ev.memory):
                    w.pinned = isinstance(ev, e.MemoryPinned)
            case e.SubjectErased():
                self._lists.pop(r.stream, None)

    def _of(self, r: Recorded, memory: UUID) -> list[_Wording]:
        return self._lists[r.stream].get(memory, [])

    def _as_folded(self, r: Recorded, state: MemoryList, ids: Collection[UUID]) -> None:
        for k in ids:
            _outdate(self._of(r, k))
        for m in (state.memories[k] for k in ids if k in state.memories):
            wordings = self._of(r, m.id)
            for w in reversed(wordings):
                if w.recorded.event.text == m.text:  # type: ignore[attr-defined]
                    w.until_now = True
                    break
            for w in wordings:
                w.pinned = m.pinned

    def pour(self, conn: Connection[Any]) -> None:
        """Nothing: any later event may change any row."""

    def finish(self, conn: Connection[Any], lists: Sequence[FoldedList]) -> None:
        """All rows."""
        copy_with_vectors(conn, "archive", self._generation, self._shard, _ARCHIVE, self._rows())

    def _rows(self) -> Iterator[tuple[tuple[Any, ...], Text]]:
        for stream in sorted(self._lists):
            for memory, wordings in self._lists[stream].items():
                for w in wordings:
                    r = w.recorded
                    ev: Any = r.event
                    owner = ListKey(ev.persona, ev.scope, ev.subject).owner
                    row = (self._generation, self._shard, stream, memory, r.version, ev.tenant, ev.persona, ev.scope,
                           ev.subject, ev.text, r.recorded_at, w.until_now, w.pinned)  # fmt: skip
                    yield row, (ev.tenant, owner, digest(ev.text))


def _outdate(wordings: Collection[_Wording]) -> None:
    for w in wordings:
        w.until_now = False
