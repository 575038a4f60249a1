"""What-if over a long history: events folded a second, beside reading the same events bare from the database.

    python scripts/bench/what_if.py [REPLIES]

20 lists of 100 memories, 200 replies a day; each records a desk of 100 memories, 10 candidates, of which 3 match, and
the first of a day ticks the list. Written as events, projected, then asked with other numbers.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from world import MODEL, TENANT, Prepared, database, unit

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, Subject, chat_stream, list_stream, new_id
from remembrancer.services import open_memory
from remembrancer.services.store import Batch, EventStore, Request

LISTS, SIZE, A_DAY = 20, 100, 200
START = datetime(2026, 1, 1, 8, tzinfo=UTC)
ASKED: dict[str, dict[str, Any]] = {
    "rest_after_days=14": {"rest_after_days": 14},
    "match_limit=2": {"match_limit": 2},
    "rest_after_days=4, match_limit=5, list_capacity=80": {
        "rest_after_days": 4, "match_limit": 5, "list_capacity": 80,
    },
}  # fmt: skip


def main() -> None:
    """Measure and print a table."""
    replies = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    with database() as url, open_memory(url, background=False) as memory:
        memory.engine.deps.embedder = Prepared(unit(np.random.default_rng(1), 50))
        write(memory.engine.store, replies)
        memory.engine.runner.catch_up(projections=["memory", "history"])
        by_moment = memory.engine.what_ifs._by_moment
        streams = by_moment.streams(None)
        begin = time.perf_counter()
        events = sum(len(batch) for batch in by_moment.read(streams, {}))
        decoded = time.perf_counter() - begin
        print(f"{events:,} events of {len(streams.lists)} lists and {len(streams.chats)} chats\n")
        print(f"{'':52}{'seconds':>9}{'events/s':>11}{'beside':>9}")
        print(f"{'read by moment from a server-side cursor, decoded':52}{decoded:9.1f}{events / decoded:11,.0f}{'':>9}")
        for name, numbers in ASKED.items():
            begin = time.perf_counter()
            answer = memory.what_if(**numbers)
            took = time.perf_counter() - begin
            print(f"{name:52}{took:9.1f}{events / took:11,.0f}{decoded / took:9.0%}  {len(answer.changes)} changes")
        print(f"\npeak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def write(store: EventStore, replies: int) -> None:
    """The history, many events an append."""
    rng = np.random.default_rng(5)
    keys = [ListKey("mira", "server", f"guild {n}") for n in range(LISTS)]
    ids = {key: [new_id(list_stream(TENANT, key).bytes[0], rng.bytes(16)) for _ in range(SIZE)] for key in keys}
    for key in keys:
        saves = [saved(key, memory, n) for n, memory in enumerate(ids[key])]
        append(store, [Batch(list_stream(TENANT, key), saves, None, (key.owner,))], START)
    told = iter(range(replies))
    searched: set[tuple[ListKey, date]] = set()
    versions = dict.fromkeys(keys, SIZE)
    while some := list(islice(told, 200)):
        for now, batches in spoken(rng, keys, ids, some, searched, versions):
            append(store, batches, now)


def saved(key: ListKey, memory: UUID, n: int) -> e.MemorySaved:
    return e.MemorySaved(
        **stamp(key, None), memory=memory, text=f"fact {n} of {key.subject} about a river", day=START.date()
    )


def spoken(
    rng: np.random.Generator, keys: list[ListKey], ids: dict[ListKey, list[UUID]], numbers: list[int],
    searched: set[tuple[ListKey, date]], versions: dict[ListKey, int],
) -> Iterator[tuple[datetime, list[Batch]]]:  # fmt: skip
    for number in numbers:
        now = START + timedelta(days=1 + number // A_DAY, minutes=number % A_DAY)
        key = keys[int(rng.integers(0, LISTS))]
        turn, stream = f"turn {number}", list_stream(TENANT, key)
        found = [ids[key][int(i)] for i in rng.choice(SIZE, 10, replace=False)]
        candidates = [
            e.Candidate(memory=m, score=1 - rank / 20, similarity=0.5, words=0.5, rank=rank, matched=rank <= 3)
            for rank, m in enumerate(found, start=1)
        ]
        reply = e.ReplySearched(
            **stamp(None, turn), chat=key.subject, attempt=1, persona="mira", users=("juno",), server=key.subject,
            day=now.date(), lists=(e.ListSeen(stream=stream, version=versions[key]),), prefix=tuple(ids[key]),
            candidates=tuple(candidates), model=MODEL, threshold=0.6,
        )  # fmt: skip
        facts: list[e.Event] = []
        if (key, now.date()) not in searched:
            searched.add((key, now.date()))
            facts.append(e.ListSearched(**stamp(key, turn), day=now.date()))
        matches = tuple(e.Match(**c.model_dump(exclude={"matched"})) for c in candidates[:3])
        facts.append(e.MemoriesMatched(**stamp(key, turn), day=now.date(), matches=matches))
        versions[key] += len(facts)
        chat = chat_stream(TENANT, key.subject, Subject("server", key.subject))
        yield now, [Batch(chat, [reply]), Batch(stream, facts, None, (key.owner,))]


_ids = np.random.default_rng(6)


def stamp(key: ListKey | None, turn: str | None) -> dict[str, Any]:
    whose = {} if key is None else key._asdict()
    return {"id": new_id(0, _ids.bytes(16)), "tenant": TENANT, "actor": "persona", "turn": turn, **whose}


def append(store: EventStore, batches: list[Batch], now: datetime) -> None:
    store.append(batches, request=Request(TENANT, batches[0].stream.bytes[0]), now=now)


if __name__ == "__main__":
    main()
