"""Looking back at a turn of a list of 1,000 events, beside a bare read of the same rows.

python scripts/bench/at.py
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
from world import Prepared, database, p, timed, unit

from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.services import open_memory

KEY = ListKey("mira", "server", "guild")
MEMORIES, EDITS, TURNS = 100, 700, 200
ROWS = """SELECT shard, position, stream, version, type, state, recorded_at
FROM remembrancer.event WHERE shard = %s AND stream = %s ORDER BY version"""


def main() -> None:
    """Measure and print."""
    clock = [datetime.now(UTC) - timedelta(days=TURNS)]
    with database() as url, open_memory(url, background=False, clock=lambda: clock[0], match_threshold=9.0) as memory:
        memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 500))
        where = {"scope": "server", "subject": KEY.subject}
        ids = [memory.save("mira", text=f"fact number {i}", **where).memory.id for i in range(MEMORIES)]
        for i in range(EDITS):
            memory.edit(ids[i % MEMORIES], text=f"fact number {i} in other words")
        turns = []
        for _ in range(TURNS):
            clock[0] += timedelta(days=1)
            turns.append(memory.reply("mira", message="good morning", server=KEY.subject).turn)
        memory.engine.runner.catch_up()
        stream = list_stream("default", KEY)
        with psycopg.connect(url, autocommit=True) as conn:
            at = (stream.bytes[0], stream)
            bare = timed(lambda: conn.execute(ROWS, at, prepare=True, binary=True).fetchall(), 100)
            events = len(conn.execute(ROWS, at).fetchall())
        last = timed(lambda: memory.at(turn=turns[-1]), 100, warm=5)
        first = timed(lambda: memory.at(turn=turns[0]), 100, warm=5)
        then = timed(lambda: memory.at(time=clock[0], persona="mira", server=KEY.subject), 100, warm=5)
        diff = timed(lambda: memory.diff({"turn": turns[0]}, {"turn": turns[-1]}), 50, warm=5)
    print(f"{MEMORIES} memories, {events:,} events{'':12}{'median ms':>12}{'p95 ms':>10}")
    named = {"bare read of the list's rows": bare, "at the last turn": last, "at the first turn": first,
             "at a time, with the prompt": then, "diff of first and last turn": diff}  # fmt: skip
    for name, taken in named.items():
        print(f"{name:34}{p(taken, 50):12.1f}{p(taken, 95):10.1f}")


if __name__ == "__main__":
    main()
