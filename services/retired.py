"""Drops the tables of generations that are neither live nor being built, once nobody reads them any more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from psycopg import errors

from remembrancer.projections.projection import Projection
from remembrancer.projections.queries import load_queries
from remembrancer.services.store import EventStore

_SQL = load_queries("remembrancer.services", "rebuild")
READERS_SECONDS = 5.0
"""How long whoever began to read before the switch is waited for."""
PAUSE_SECONDS = 0.1
TRIES = 10


class Retired:
    """What a rebuild has switched off, or was given up. May be killed between any two of its tables."""

    def __init__(self, store: EventStore, projections: Sequence[Projection]) -> None:
        self._store = store
        self._projections = {p.name: p for p in projections}

    def drop(self, patience: float) -> tuple[list[str], list[str]]:
        """Drop them, unless somebody still reads after `patience` seconds who began before the last switch.

        Returns:
            What was dropped and what was kept, like ``history 1``.
        """
        retired = [row for row in self._ask("retired") if row[0] in self._projections]
        dropped: list[str] = []
        kept: list[str] = []
        busy = bool(retired) and self._is_read(patience)
        for name, generation in retired:
            done = not busy and self._drop(name, generation)
            (dropped if done else kept).append(f"{name} {generation}")
        return dropped, kept

    def _is_read(self, patience: float) -> bool:
        end = time.monotonic() + patience
        while self._ask("readers_of_old")[0][0]:
            if time.monotonic() >= end:
                return True
            time.sleep(PAUSE_SECONDS)
        return False

    def _drop(self, name: str, generation: int) -> bool:
        """One generation of one projection: its checkpoints, so that it is projected no longer, its tables, its row."""
        at = {"projection": name, "generation": generation}
        self._ask("retire", at)
        tables = {*self._projections[name].tables, *(row[0] for row in self._ask("tables_of", at))}
        if not all(self._drop_table(at | {"name": table}) for table in sorted(tables)):
            return False
        self._ask("forget", at)
        return True

    def _drop_table(self, at: dict[str, Any]) -> bool:
        for _ in range(TRIES):
            try:
                self._ask("drop_table", at)
            except errors.LockNotAvailable:
                time.sleep(PAUSE_SECONDS)
            else:
                return True
        return False

    def _ask(self, query: str, params: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._store.database.run(lambda conn: conn.execute(_SQL[query], params).fetchall())
