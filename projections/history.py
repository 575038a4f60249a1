"""Projection `history`: what happened, in plain sentences, with the text before and after (U1, C30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.story import LAST, WAS, tell
from remembrancer.domain.text import ERASED
from remembrancer.projections.queries import queries, write
from remembrancer.projections.traces import keep_traces

_SQL = queries("history")


class HistoryProjection:
    """Writes `history`: a row for each memory that an event names, or one for the event; and its traces for `why`."""

    name = "history"

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch. A memory's text where an event does not carry it is taken from its last line."""
        told = [(r, list(tell(r.event))) for r in events]
        texts = self._texts(conn, generation, told)
        wordings = self._wordings(conn, generation, told)
        rows: list[dict[str, Any]] = []
        for r, lines in told:
            ev = r.event
            if isinstance(ev, e.SubjectErased):
                conn.execute(_SQL["erase"], {"generation": generation, "shard": r.shard, "list": r.stream})
                for row in rows:
                    if row["list"] == r.stream:
                        row.update({text: ERASED for text in ("before", "after") if row[text] is not None})
            for n, line in enumerate(lines):
                last = texts.get(line.memory) if line.memory else None
                after = last if line.after == LAST else line.after
                if isinstance(ev, e.MemoryEdited):
                    wordings.setdefault((ev.memory, ev.turn), ev.before)
                elif after == WAS:
                    after = wordings.pop((line.memory, ev.turn), None)
                rows.append(
                    {
                        "generation": generation,
                        "shard": r.shard,
                        "position": r.position,
                        "n": n,
                        "tenant": ev.tenant,
                        "persona": getattr(ev, "persona", ""),
                        "scope": getattr(ev, "scope", None),
                        "subject": getattr(ev, "subject", None),
                        "list": r.stream,
                        "memory": line.memory,
                        "turn": ev.turn,
                        "actor": ev.actor,
                        "event": type(ev).__name__,
                        "recorded_at": r.recorded_at,
                        "sentence": line.sentence,
                        "before": last if line.before == LAST else line.before,
                        "after": after,
                        "data": Jsonb(dict(line.data)),
                    }
                )
                if line.memory and (said := after or line.before) and said != LAST:
                    texts[line.memory] = said
        if rows:
            write(conn.cursor(), _SQL["insert"], rows)
        keep_traces(conn, generation, events)

    @staticmethod
    def _wordings(
        conn: Connection[Any], generation: int, told: Sequence[tuple[Recorded, Sequence[Any]]]
    ) -> dict[tuple[UUID | None, str | None], str]:
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
    ) -> dict[UUID | None, str]:
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
