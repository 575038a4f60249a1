"""Why was it forgotten? On a persona with 100,000 events in one list and one chat, the worst way to spread them, and
100,000 messages in another chat.

python scripts/bench/why.py [EVENTS]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from world import WORDS, database, p, timed

from remembrancer.domain import events as e
from remembrancer.domain.eviction import first_in_line
from remembrancer.domain.identity import ListKey, Subject, chat_stream, list_stream, new_id
from remembrancer.domain.persona_memory import MemoryList, with_events
from remembrancer.domain.policy import Policy
from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from remembrancer.services.store import Batch, Request

KEY = ListKey("mira", "server", "treehouse")
TENANT, CHAT = "default", "long talk"
A_DAY = 70
"""Replies of a day; four in ten match something."""
AT_ONCE = 400
MESSAGES = 100_000


class Years:
    """What one persona has lived through: days of replies, with matches, and a save."""

    def __init__(self, memory: Remembrancer) -> None:
        self._store = memory.engine.store
        self._rng = np.random.default_rng(3)
        self._list = list_stream(TENANT, KEY)
        self._chat = chat_stream(TENANT, CHAT, Subject("server", KEY.subject))
        self._state, self._version = MemoryList(), 0
        self.now = datetime.now(UTC) - timedelta(days=1_500)
        self.saved: dict[UUID, str] = {}
        self.evicted: list[UUID] = []
        self.matches: dict[UUID, int] = {}

    def days(self) -> Iterator[int]:
        """Live on, a day at a time; says how many events the day had."""
        while True:
            chat, mine = self._day()
            batches = [Batch(self._chat, chat[n : n + AT_ONCE], None) for n in range(0, len(chat), AT_ONCE)]
            batches.append(Batch(self._list, mine, None, (KEY.owner,)))
            for batch in batches:
                self._store.append([batch], request=Request(TENANT, self._list.bytes[0]), now=self.now)
            yield len(chat) + len(mine)
            self.now += timedelta(days=1)

    def _day(self) -> tuple[list[e.Event], list[e.Event]]:
        today, chat, mine = self.now.date(), [], []
        mine += self._save()
        mine.append(e.ListSearched(**self._stamp(), day=today))
        ids = list(self._state.memories)
        for n in range(A_DAY):
            turn = f"{today} {n}"
            picked = self._rng.choice(len(ids), size=min(10, len(ids)), replace=False)
            scores = sorted(self._rng.uniform(0.7, 0.87, len(picked)), reverse=True)
            if self._rng.random() < 0.4:
                scores[0] = 0.95
            found = [
                e.Candidate(memory=ids[i], score=s, similarity=s, words=0.0, rank=rank, matched=s > 0.868)
                for rank, (i, s) in enumerate(zip(picked, scores, strict=True), start=1)
            ]
            chat.append(
                e.ReplySearched(
                    id=self._id(), tenant=TENANT, actor="persona", turn=turn, chat=CHAT, attempt=1, persona=KEY.persona,
                    users=("juno",), server=KEY.subject, day=today, candidates=tuple(found), threshold=0.868,
                )
            )  # fmt: skip
            hits = tuple(e.Match(**c.model_dump(exclude={"matched"})) for c in found if c.matched)
            if hits:
                mine.append(e.MemoriesMatched(**self._stamp() | {"turn": turn}, day=today, matches=hits))
                for hit in hits:
                    self.matches[hit.memory] = self.matches.get(hit.memory, 0) + 1
        self._state = with_events(self._state, mine, self._list, self._version, self.now)
        self._version += len(mine)
        return chat, mine

    def _save(self) -> list[e.Event]:
        memory, made = new_id(self._list.bytes[0], self._rng.bytes(16)), []
        if self._state.unpinned >= 100:
            first = first_in_line(self._state.memories.values(), self._state.days, Policy(), self.now.date())
            if first is None:
                return []
            self.evicted.append(first.memory.id)
            made.append(
                e.MemoryEvicted(**self._stamp(), memory=first.memory.id, for_memory=memory, reason=first.reason)
            )
        text = f"{' '.join(self._rng.choice(WORDS, 6))} number {len(self.saved)}"
        self.saved[memory] = text
        made.append(e.MemorySaved(**self._stamp(), memory=memory, text=text, day=self.now.date()))
        self._state = with_events(self._state, made, self._list, self._version, self.now)
        return made

    def _stamp(self) -> dict[str, Any]:
        return {"id": self._id(), "tenant": TENANT, "actor": "persona", **KEY._asdict()}

    def _id(self) -> UUID:
        return new_id(self._list.bytes[0], self._rng.bytes(16))


def main() -> None:
    """Fill, measure and print."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with database() as url, open_memory(url, background=False) as memory:
        years, events = Years(memory), 0
        for many in years.days():
            events += many
            if events >= wanted:
                break
        said = [{"role": ("user", "persona")[n % 2], "text": f"line {n} of the evening"} for n in range(MESSAGES)]
        memory.import_chat(json.dumps(said), chat="evenings", persona="mira", user="juno", server=KEY.subject)
        start = time.perf_counter()
        memory.engine.runner.catch_up()
        took = time.perf_counter() - start
        while memory.embed_pending():
            pass
        memory.engine.vectors.index_archive()
        memory.engine.store.database.run(lambda conn: conn.execute("VACUUM ANALYZE"))
        forgotten = years.evicted[-1]
        hot = max(years.matches, key=lambda m: years.matches[m])
        print(
            f"{events:,} events of one list and one chat, {len(years.saved)} memories, {len(years.evicted)} forgotten; "
            f"projected in {took:.0f} s ({events / took:,.0f}/s)"
        )

        def bare() -> None:
            rows = "SELECT * FROM remembrancer.history WHERE generation = 1 AND tenant = %s AND memory = %s"
            memory.engine.store.database.run(
                lambda conn: conn.execute(f"{rows} ORDER BY recorded_at".encode(), (TENANT, forgotten)).fetchall()
            )

        told = memory.why(forgotten)
        assert told.evicted is not None
        assert told.evicted.next_in_line is not None, told.evicted.next_unknown
        asked: dict[str, Callable[[], object]] = {
            "one bare query of its history": bare,
            f"why, a forgotten memory by its id ({told.searches.near_misses:,} near misses)": lambda: memory.why(
                forgotten
            ),
            "why, the same by its text": lambda: memory.why(years.saved[forgotten]),
            f"why, what was said among {MESSAGES:,} messages and never saved": lambda: memory.why(
                f"line {MESSAGES - 9}"
            ),
            f"why, the one with most matches ({years.matches[hot]:,})": lambda: memory.why(hot),
        }
        for what, act in asked.items():
            taken = timed(act, 60, warm=5)
            print(f"{what}: median {p(taken, 50):.1f} ms, p95 {p(taken, 95):.1f} ms")


if __name__ == "__main__":
    main()
