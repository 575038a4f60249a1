"""Eight processes over the same streams, and a reader that tails all shards: nothing lost, doubled, stuck or missed."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import psycopg
import pytest

from remembrancer.domain.errors import RequestReused
from remembrancer.services.store import Batch, Decision, EventStore, open_store
from tests.support.streams import TEXTS, AList

PROCESSES = 8
COMMANDS = 60
Acknowledged = list[tuple[str, tuple[int, ...], bool]]


def work(url: str, number: int) -> tuple[Acknowledged, Counter[str]]:
    """Commands over three streams each, in any order; some are sent twice, and some by two processes at once."""
    mine, shared = random.Random(number), random.Random(number // 2)
    store = open_store(url, max_size=2)
    acknowledged: Acknowledged = []
    seen: Counter[str] = Counter()
    for n in range(COMMANDS):
        together = n % 5 == 0
        chance = shared if together else mine
        lists = [AList(f"user {chance.randrange(size)}", persona=persona) for persona, size in (("a", 10), ("b", 200))]
        fact = AList(f"user {chance.randrange(40)}", persona="c")
        mine.shuffle(lists)
        name = f"pair {number // 2}, {n}" if together else f"{number}, {n}"
        for _ in range(2 if mine.random() < 0.1 else 1):
            acknowledged.append(_command(store, lists, fact, name, seen))
        if mine.random() < 0.05:
            try:
                store.append([fact.fact()], request=fact.request(name, body="another"))
            except RequestReused:
                seen["refused"] += 1
    store.close()
    return acknowledged, seen


def _command(
    store: EventStore, lists: list[AList], fact: AList, name: str, seen: Counter[str]
) -> tuple[str, tuple[int, ...], bool]:
    def decide(versions: list[int]) -> Decision:
        seen["decided"] += 1
        batches = [one.batch(name, expected=version) for one, version in zip(lists, versions, strict=True)]
        return Decision([*batches, Batch(fact.stream, [fact.searched()])])

    def load() -> list[int]:
        return [loaded.version for loaded in store.load_many([(one.stream, TEXTS) for one in lists])]

    done = store.transact(fact.request(name), load, decide)
    return (
        name,
        tuple(position for pair in zip(done.shards, done.positions, strict=True) for position in pair),
        done.fresh,
    )


def tail(url: str, writers: list[Future[tuple[Acknowledged, Counter[str]]]]) -> list[tuple[int, int]]:
    """All events in the order in which a reader sees them, who asks all shards again and again."""
    store = open_store(url)
    reached = dict.fromkeys(range(256), 0)
    seen = []
    while True:
        ended = all(writer.done() for writer in writers)
        with store.database.connection() as connection:
            rows = store.select_shards(connection, reached, 200)
        seen += [(row[0], row[1]) for row in rows]
        reached |= {row[0]: row[1] for row in rows}
        if ended and not rows:
            store.close()
            return seen


@pytest.mark.timeout(180)
def test_eight_processes_and_a_reader(database_url):
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as processes:
        writers = [processes.submit(work, database_url, number) for number in range(PROCESSES)]
        read = tail(database_url, writers)
        results = [writer.result() for writer in writers]

    acknowledged = [one for done, _ in results for one in done]
    seen = sum((counted for _, counted in results), Counter())
    answers = {
        name: {positions for other, positions, _ in acknowledged if other == name} for name, _, _ in acknowledged
    }
    assert all(len(one) == 1 for one in answers.values()), "one request, two answers"
    fresh = Counter(name for name, _, was_fresh in acknowledged if was_fresh)
    assert fresh == dict.fromkeys(answers, 1), "each request happened once"
    assert seen["refused"] > 0
    assert seen["decided"] > len(answers), "there was no contention to speak of"

    with psycopg.connect(database_url) as connection:
        stored = connection.execute("SELECT shard, position FROM remembrancer.event ORDER BY 1, 2").fetchall()
        heads = dict(connection.execute("SELECT shard, position FROM remembrancer.head").fetchall())
        streams = connection.execute(
            "SELECT count(*), min(version), max(version), count(*) FILTER (WHERE later) FROM ("
            " SELECT stream, version, recorded_at < lag(recorded_at) OVER w AS later"
            " FROM remembrancer.event WINDOW w AS (PARTITION BY shard ORDER BY position)) e GROUP BY stream"
        ).fetchall()
    assert len(stored) == 3 * len(answers)
    per_shard = Counter(shard for shard, _ in stored)
    assert stored == [(shard, n) for shard in sorted(per_shard) for n in range(1, heads[shard] + 1)], "a gap"
    assert all((low, high, later) == (1, count, 0) for count, low, high, later in streams)
    assert sorted(read) == stored, "the reader missed some"
    for shard in per_shard:
        mine = [position for other, position in read if other == shard]
        assert mine == sorted(mine), "the reader saw one out of order"
