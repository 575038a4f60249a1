"""A reply and a message in a chat of 100,000 messages beside one of 1,000, where summaries cover all but the newest.

python scripts/bench/long_chat.py [--messages 100000] [--times 150]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import psycopg
from world import Prepared, database, p, unit

from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer

UNCOVERED = 40


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=150)
    asked = parser.parse_args()
    with database() as url, open_memory(url) as memory:
        memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 4_000))
        sizes = {"short": 1_000, "long": asked.messages}
        for chat, size in sizes.items():
            lines = [{"role": "user" if n % 2 else "persona", "text": f"line {n} of the evening"} for n in range(size)]
            memory.import_chat(json.dumps(lines), chat=chat, persona="mira", user="juno")
        while not memory.engine.waiting.settle(60):
            pass
        cover(url)
        taken: dict[tuple[str, str], list[float]] = {}
        for n in range(asked.times):  # in turns, so that both see the same machine
            for chat in sizes:
                taken.setdefault((chat, "reply"), []).append(reply(memory, chat, n))
                taken.setdefault((chat, "post"), []).append(post(memory, chat, n))
        for what in ("reply", "post"):
            short, long = (p(taken[chat, what][20:], 50) for chat in sizes)
            print(
                f"{what}: {short:.2f} ms in a chat of 1,000 messages, {long:.2f} ms in one of {asked.messages:,}: "
                f"{long / short:.2f} x (at most 1.3)"
            )


def cover(url: str) -> None:
    """As if summaries covered all but the newest messages: making them is not what is measured."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "UPDATE remembrancer.message m SET covered = true FROM"
            " (SELECT chat, max(n) AS last FROM remembrancer.message GROUP BY chat) c"
            f" WHERE m.chat = c.chat AND m.n <= c.last - {UNCOVERED}"
        )
        conn.execute(f"UPDATE remembrancer.chat SET uncovered = {UNCOVERED}")
        conn.execute("VACUUM ANALYZE remembrancer.message")


def reply(memory: Remembrancer, chat: str, n: int) -> float:
    """Milliseconds of a reply."""
    start = time.perf_counter()
    memory.reply("mira", message=f"message {n}", users=["juno"], chat=chat, turn=f"{chat} {n}")
    return (time.perf_counter() - start) * 1e3


def post(memory: Remembrancer, chat: str, n: int) -> float:
    """Milliseconds of a message."""
    start = time.perf_counter()
    memory.post(chat, f"answer {n}", author="mira", role="persona", turn=f"{chat} {n}")
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    main()
