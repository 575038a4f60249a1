"""Undoing a turn beside saving a memory.

python scripts/bench/undo.py
"""

from __future__ import annotations

import time

import numpy as np
from world import Prepared, database, p, unit

from remembrancer.services import open_memory

TURNS = 150
HELD = 80
"""Memories that the list holds besides."""


def main() -> None:
    """Measure and print."""
    with database() as url, open_memory(url) as memory:
        memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 2_000))
        for i in range(HELD):
            memory.save("mira", scope="server", subject="guild", text=f"fact number {i}")
        saves, undos = [], []
        for i in range(TURNS):
            turn = memory.reply("mira", message=f"message {i}", users=["juno"], server="guild", turn=f"turn {i}").turn
            start = time.perf_counter()
            memory.save("mira", scope="server", subject="guild", text=f"said in turn {i}", actor="persona", turn=turn)
            saves.append((time.perf_counter() - start) * 1e3)
            start = time.perf_counter()
            memory.undo_turn(turn)
            undos.append((time.perf_counter() - start) * 1e3)
        saves, undos = saves[10:], undos[10:]
        print(f"save: median {p(saves, 50):.2f} ms, p95 {p(saves, 95):.2f} ms")
        print(f"undo of the turn that saved it: median {p(undos, 50):.2f} ms, p95 {p(undos, 95):.2f} ms")
        print(f"undo / save: {p(undos, 50) / p(saves, 50):.2f} (at most 2)")


if __name__ == "__main__":
    main()
