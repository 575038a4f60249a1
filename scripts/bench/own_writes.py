"""Waiting for one's own write, and eighty edits of one list at once.

python scripts/bench/own_writes.py
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from world import Prepared, database, p, unit

from remembrancer.services import open_memory


def main() -> None:
    """Measure and print."""
    with database() as url, open_memory(url) as memory:
        memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 500))
        taken = []
        for i in range(220):
            answer = memory.save("mira", scope="server", subject=f"guild-{i % 20}", text=f"fact number {i}")
            start = time.perf_counter()
            memory.wait(answer.positions)
            taken.append((time.perf_counter() - start) * 1e3)
        taken = taken[20:]
        print(f"wait for one's own write: median {p(taken, 50):.2f} ms (at most 5), p95 {p(taken, 95):.2f} ms")

        ids = [memory.save("mira", scope="server", subject="hot", text=f"line {i}").memory.id for i in range(80)]
        start = time.perf_counter()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda pair: memory.edit(pair[1], text=f"edited line {pair[0]}"), enumerate(ids)))
        took = time.perf_counter() - start
        kept = memory.list("mira", scope="server", subject="hot").lists[0].memories
        good = {m.text for m in kept} == {f"edited line {i}" for i in range(80)}
        print(f"80 concurrent edits of one list: {len(kept)} memories, all kept: {good}, {80 / took:.0f} edits/s")


if __name__ == "__main__":
    main()
