"""Projection `history`: what happened, in plain sentences, with the text before and after (U1, C30)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg import Connection
from psycopg.types.json import Jsonb

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.story import LAST, WAS, Told, tell
from remembrancer.domain.text import ERASED
from remembrancer.projections.building import FoldedList, copy, erase_history
from remembrancer.projections.queries import queries, write
from remembrancer.projections.traces import CANDIDATE_TYPES, WORDING_TYPES, candidate_rows, keep_traces, wording_row

_SQL = queries("history")
_COLUMNS = ("generation", "shard", "position", "n", "tenant", "persona", "scope", "subject", "list", "memory", "turn",
            "actor", "event", "recorded_at", "sentence", "before", "after", "data")  # fmt: skip
_TYPES = ("int2", "int2", "int8", "int2", "text", "text", "text", "text", "uuid", "uuid", "text", "text", "text",
          "timestamptz", "text", "text", "text", "jsonb")  # fmt: skip
_LIST, _BEFORE, _AFTER = (_COLUMNS.index(name) for name in ("list", "before", "after"))
_SILENT = (None, ERASED)


class _Texts:
    """What the events so far say of the memories that later ones name without their text."""

    def __init__(self) -> None:
        self.last: dict[UUID, str] = {}
        """A memory's text."""
        self.was: dict[tuple[UUID, str], str] = {}
        """Its text before the first edit of a turn, since that turn was last undone."""

    def rows(self, generation: int, r: Recorded, lines: Sequence[Told]) -> Iterator[tuple[Any, ...]]:
        """The rows of an event, in the order of `_COLUMNS`; what it says is known from now on."""
        ev: Any = r.event
        persona, scope, subject = (getattr(ev, name, None) for name in ("persona", "scope", "subject"))
        kind = type(ev).__name__
        for n, line in enumerate(lines):
            memory, sentence, before, after, data = line
            if memory is not None:
                last = self.last.get(memory)
                if kind == "MemoryEdited" and ev.turn is not None:
                    self.was.setdefault((memory, ev.turn), ev.before)
                elif after == WAS:
                    after = self.was.get((memory, ev.turn))
                if before == LAST:
                    before = last
                if after == LAST:
                    after = last
                if said := after or before:
                    self.last[memory] = said
            more = Jsonb(dict(data), orjson.dumps)
            yield (generation, r.shard, r.position, n, ev.tenant, persona or "", scope, subject, r.stream, memory,
                   ev.turn, ev.actor, kind, r.recorded_at, sentence, before, after, more)  # fmt: skip
        if kind == "TurnRolledBack":
            for line in lines:
                self.was.pop((line.memory, ev.turn), None)  # type: ignore[arg-type]


class HistoryProjection:
    """Writes `history`: a row for each memory that an event names, or one for the event; and its traces for `why`."""

    name = "history"
    version = 2
    tables: tuple[str, ...] = ("history", "candidate", "wording")

    def build(self, generation: int, shard: int) -> HistoryBuild:
        """The same rows for a rebuild."""
        return HistoryBuild(generation, shard)

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch. A memory's text where an event does not carry it is taken from its last line."""
        told = [(r, list(tell(r.event))) for r in events]
        texts = _Texts()
        texts.last = self._texts(conn, generation, told)
        texts.was = self._wordings(conn, generation, told)
        rows: list[tuple[Any, ...]] = []
        for r, lines in told:
            if isinstance(r.event, e.SubjectErased):
                conn.execute(_SQL["erase"], {"generation": generation, "shard": r.shard, "list": r.stream})
                rows = _without_texts(rows, r.stream)
            rows.extend(texts.rows(generation, r, lines))
        if rows:
            write(conn.cursor(), _SQL["insert"], [dict(zip(_COLUMNS, row, strict=True)) for row in rows])
        keep_traces(conn, generation, events)

    @staticmethod
    def _wordings(
        conn: Connection[Any], generation: int, told: Sequence[tuple[Recorded, Sequence[Any]]]
    ) -> dict[tuple[UUID, str], str]:
        """The text of memories before the first edit of a turn that the batch undoes."""
        wanted = [(line.memory, r) for r, lines in told for line in lines if line.after == WAS]
        if not wanted:
            return {}
        params = {
            "generation": generation,
            "shards": [r.shard for _, r in wanted],
            "memories": [memory for memory, _ in wanted],
            "turns": [r.event.turn for _, r in wanted],
            "positions": [r.position for _, r in wanted],
        }
        return {(row[0], row[1]): row[2] for row in conn.execute(_SQL["wordings"], params).fetchall()}

    @staticmethod
    def _texts(
        conn: Connection[Any], generation: int, told: Sequence[tuple[Recorded, Sequence[Any]]]
    ) -> dict[UUID, str]:
        """The last known text of memories that the batch names without it."""
        wanted: dict[UUID, tuple[int, int]] = {}
        for r, lines in told:
            for line in lines:
                if line.memory and LAST in (line.before, line.after):
                    wanted.setdefault(line.memory, (r.shard, r.position))
        if not wanted:
            return {}
        params = {
            "generation": generation,
            "shards": [shard for shard, _ in wanted.values()],
            "memories": list(wanted),
            "positions": [position for _, position in wanted.values()],
        }
        return dict(conn.execute(_SQL["texts"], params).fetchall())


class HistoryBuild:
    """Writes `history` and its traces for a rebuild, as the events come."""

    def __init__(self, generation: int, shard: int) -> None:
        self._generation, self._shard = generation, shard
        self._texts = _Texts()
        self._rows: list[tuple[Any, ...]] = []
        self._found: list[tuple[Any, ...]] = []
        self._worded: list[tuple[Any, ...]] = []
        self._erased: set[UUID] = set()
        self._speaking: set[UUID] = set()
        """Lists of which a text was written that is not erased."""

    def take(self, r: Recorded, state: MemoryList) -> None:
        """The lines of one event."""
        if isinstance(r.event, e.SubjectErased):
            self._rows = _without_texts(self._rows, r.stream)
            self._erased.add(r.stream)
        self._found.extend(candidate_rows(self._generation, r))
        if (worded := wording_row(self._generation, r)) is not None:
            self._worded.append(worded)
        self._rows.extend(self._texts.rows(self._generation, r, list(tell(r.event))))

    def pour(self, conn: Connection[Any]) -> None:
        """The lines so far."""
        for stream in self._erased & self._speaking:
            for memory in erase_history(conn, self._generation, self._shard, stream):
                if memory in self._texts.last:
                    self._texts.last[memory] = ERASED
        self._erased.clear()
        self._speaking.update(r[_LIST] for r in self._rows if r[_BEFORE] not in _SILENT or r[_AFTER] not in _SILENT)
        copy(conn, "history", self._generation, _TYPES, self._rows)
        copy(conn, "candidate", self._generation, CANDIDATE_TYPES, self._found)
        copy(conn, "wording", self._generation, WORDING_TYPES, self._worded)
        self._rows, self._found, self._worded = [], [], []

    def finish(self, conn: Connection[Any], lists: Sequence[FoldedList]) -> None:
        """All is written."""


def _without_texts(rows: Sequence[tuple[Any, ...]], stream: UUID) -> list[tuple[Any, ...]]:
    """The rows, those of a list that was erased without what it said."""

    def one(row: tuple[Any, ...]) -> tuple[Any, ...]:
        if row[_LIST] != stream:
            return row
        return tuple(ERASED if n in (_BEFORE, _AFTER) and value is not None else value for n, value in enumerate(row))

    return [one(row) for row in rows]
