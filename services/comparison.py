"""Compares two generations of a projection's tables before one takes the place of the other.

Both stand at the same event where they are compared: in one snapshot, and only in shards whose checkpoints are equal in
it. Where talk goes on, that is most of them; the others get another look, in a later snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg import Connection, IsolationLevel

from remembrancer.projections.projection import Projection
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers_rebuild import Comparison, Difference, ParkedStream, TableComparison
from remembrancer.services.store import EventStore

_SQL = load_queries("remembrancer.services", "rebuild")
LOOKS = 12
SAMPLE = 5
"""Differences of a table that are shown."""

Told = Callable[[int, int], None]


class Comparing:
    """One comparison of a new generation with the live one."""

    def __init__(self, store: EventStore, generation: int, projections: Sequence[Projection]) -> None:
        self._store = store
        self._generation = generation
        self._projections = projections
        self._tables = {table: [0, 0, 0] for p in projections for table in p.tables}
        self._sample: dict[str, list[Difference]] = {table: [] for table in self._tables}

    def compare(self, catch_up: Callable[[], None], told: Told) -> Comparison:
        """Every row of every shard, as far as the two can be seen at the same event.

        Args:
            catch_up: brings the new generation to the end of the events, before each look.
            told: called with what is done and what there is to do.
        """
        left: dict[str, set[int] | None] = {p.name: None for p in self._projections}
        compared = 0
        for _ in range(LOOKS):
            catch_up()
            compared += self._store.database.run(lambda conn: self._look(conn, left, told))
            if not any(left.values()):
                break
        return Comparison(
            tables=[TableComparison(table=t, before=b, after=a, different=d) for t, (b, a, d) in self._tables.items()],
            sample=[one for found in self._sample.values() for one in found],
            parked=self._parked(),
            shards=compared,
            shards_left_out=sum(len(shards or ()) for shards in left.values()),
        )

    def _look(self, conn: Connection[Any], left: dict[str, set[int] | None], told: Told) -> int:
        """Compare what stands at the same event now. Returns how many shards that were; the others stay in `left`."""
        done = 0
        at: dict[str, Any] = {"generation": self._generation, "new": self._generation, "sample": SAMPLE}
        conn.isolation_level, conn.read_only = IsolationLevel.REPEATABLE_READ, True
        try:
            with conn.transaction():
                level: dict[str, list[int]] = {}
                for p in self._projections:
                    wanted = left[p.name]
                    found = conn.execute(_SQL["level"], at | {"projection": p.name}).fetchall()
                    level[p.name] = [s for s, equal in found if equal and (wanted is None or s in wanted)]
                    left[p.name] = {s for s, equal in found if not equal and (wanted is None or s in wanted)}
                live = dict(conn.execute(_SQL["live"], {"projections": list(level)}).fetchall())
                all_of_them = sum(map(len, level.values()))
                for p in self._projections:
                    for shard in level[p.name]:
                        for table in p.tables:
                            self._compare(conn, table, at | {"shard": shard, "old": live[p.name]})
                        told(done := done + 1, all_of_them)
        finally:
            conn.isolation_level = conn.read_only = None
        return done

    def _compare(self, conn: Connection[Any], table: str, at: Mapping[str, Any]) -> None:
        row = conn.execute(_SQL["compare"], {**at, "table": table}).fetchone()
        assert row is not None
        *counts, sample = row
        self._tables[table] = [a + b for a, b in zip(self._tables[table], counts, strict=True)]
        shown = self._sample[table]
        shown += [_difference(table, one["before"], one["after"]) for one in sample[: SAMPLE - len(shown)]]

    def _parked(self) -> list[ParkedStream]:
        at = {"generation": self._generation, "projections": [p.name for p in self._projections]}
        rows = self._store.database.run(lambda conn: conn.execute(_SQL["parked"], at).fetchall())
        return [ParkedStream(projection=p, stream=s, error=error, also_live=also) for p, s, error, also in rows]


_TEXTS = (
    "text",
    "before",
    "after",
    "sentence",
    "name",
    "heading",
    "key",
    "author",
    "persona",
    "subject",
    "turn",
    "ref",
)
"""Columns that hold what people have said, or how they are called."""
_NAMES = ("shard", "list", "id", "memory", "version", "day", "position", "n")
"""What names a row, in whichever table."""


def _difference(table: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Difference:
    """The columns that differ; all of them where a row is in one generation only."""
    row = before or after or {}
    key = {name: row[name] for name in _NAMES if name in row}
    if before is not None and after is not None:
        changed = [name for name in before if before[name] != after.get(name)]
        before, after = ({name: one.get(name) for name in changed} for one in (before, after))
    return Difference(table=table, key=key, before=_without_texts(before), after=_without_texts(after))


def _without_texts(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a row says, but for the texts of people: a rebuild is of all tenants, whoever runs it (C23)."""
    if row is None:
        return None
    return {k: f"{len(v)} characters" if k in _TEXTS and isinstance(v, str) else v for k, v in row.items()}
