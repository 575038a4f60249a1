"""A day tick writes as many rows for a list of ten memories as for one of ten thousand, hidden ones or not.

    python scripts/bench/day_tick.py

Counts rows written (inserted and updated, from pg_stat_user_tables) by the first search of a UTC day and its
projection, without the reply's own record in its chat and in history.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
from world import Prepared, database, fill, unit

from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.services import open_memory

TABLES = ("list", "list_day", "memory", "memory_use")


def main() -> None:
    """Measure and print a table."""
    with database() as url:
        keys = [
            ListKey("mira", "server", "small"),
            ListKey("mira", "server", "large"),
            ListKey("mira", "server", "hidden"),
        ]
        sizes = dict(zip(keys, (10, 10_000, 10_000), strict=True))
        for key in keys:
            fill(url, [key], sizes[key])
        with psycopg.connect(url, autocommit=True) as conn:
            stream = list_stream("default", keys[2])
            for table in ("memory", "memory_use"):
                conn.execute(
                    f"UPDATE remembrancer.{table} m SET tags = '{{night}}' WHERE list = %s AND id NOT IN "
                    "(SELECT id FROM remembrancer.memory WHERE list = %s ORDER BY id LIMIT 10)",
                    (stream, stream),
                )
        clock = [datetime.now(UTC)]
        with open_memory(url, background=False, clock=lambda: clock[0], match_threshold=9.0) as memory:
            memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 50))
            print(f"{'list':28}{'events':>8}{'rows written':>14}{'tick + projection ms':>22}")
            for key in keys:
                for day in range(3):
                    clock[0] += timedelta(days=1)
                    before, n = _written(url), _events(url)
                    start = time.perf_counter()
                    memory.reply("mira", message="good morning", server=key.subject)
                    memory.engine.runner.catch_up(projections=["memory"])
                    took = (time.perf_counter() - start) * 1e3
                    if day:
                        name = f"{sizes[key]:,}" + (", 9,990 hidden by a tag" if key is keys[2] else "")
                        print(f"{name:28}{_events(url) - n:8}{_written(url) - before:14}{took:22.1f}")


def _written(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SELECT pg_stat_force_next_flush()")
        time.sleep(1.2)
        conn.execute("SELECT pg_stat_clear_snapshot()")
        row = conn.execute(
            "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables "
            "WHERE schemaname = 'remembrancer' AND regexp_replace(relname, '_[0-9]+$', '') = ANY (%s)",
            (list(TABLES),),
        ).fetchone()
        assert row is not None
        return int(row[0])


def _events(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute("SELECT count(*) FROM remembrancer.event WHERE type = 'ListSearched'").fetchone()
        assert row is not None
        return int(row[0])


if __name__ == "__main__":
    main()
