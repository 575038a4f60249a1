"""The process that brings in a new model is killed half-way (C24): nothing is invisible at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import Exchange, right
from tests.support.processes import client
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up
from tests.support.world import MATCH, SERVER, World, matched

OLD, NEW = "openai:words", "openai:bigger"
MEMORIES = 1_000


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with World(database_url, list_capacity=100_000) as one:
        one.fake.of_model |= {"words": 384, "bigger": 768}
        yield one


def takes_its_time(exchange: Exchange) -> None:
    time.sleep(0.1)
    right(exchange)


def fill(world: World) -> None:
    """A thousand memories in one list."""
    world.save("fact number 0", persona="juno")
    header, row = [one for one in world.memory.export() if one.get("text") or "tenant" in one][:2]
    rows = [{k: v for k, v in row.items() if k != "id"} | {"text": f"fact number {n}"} for n in range(1, MEMORIES)]
    assert world.memory.import_rows([header, *rows]).imported == MEMORIES - 1
    caught_up(world.memory)


class Watcher:
    """Asks for one memory after the other, and saves one now and then. Keeps what a reply missed, and who served."""

    def __init__(self, memory: Remembrancer, who: int, ended: threading.Event) -> None:
        self.missed: list[Any] = []
        self.models: list[str | None] = []
        self.saved = 0
        self._memory, self._who, self._ended = memory, who, ended
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self) -> None:
        n = self._who
        while not self._ended.is_set():
            n = (n + 37) % MEMORIES
            self._ask(f"fact number {n}")
            if n % 10 == 0:
                text = f"novelty {self.saved} of watcher {self._who}"
                self._memory.save("juno", scope="server", subject=SERVER, text=text)
                self.saved += 1
                self._ask(text)
            if n % 25 == 0 and not any(hit.text == f"fact number {n}" for hit in self._memory.find(f"fact number {n}")):
                self.missed.append(("find", n))

    def _ask(self, text: str) -> None:
        answer = self._memory.reply("juno", message=text, users=[f"user {self._who}"], server=SERVER)
        self.models.append(answer.search.model)
        if text not in matched(answer):
            self.missed.append((text, answer.search.status, answer.search.reason, answer.search.model))


def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


def test_c24_a_thousand_memories_get_a_model_of_other_dimensions_and_the_process_is_killed_half_way(
    world: World,
) -> None:
    """C24, D23: replies go on with the old vectors; the move resumes; then the new ones serve; nothing is invisible."""
    fill(world)
    settings = {
        "url": world.url, "embedder": "openai", "embedder_url": world.fake.url, "embedder_model": "bigger",
        "match_threshold": MATCH, "list_capacity": 100_000,
    }  # fmt: skip
    world.fake.by_model["bigger"] = takes_its_time
    bot = world.open(embedder_model="bigger")

    def one(query: str) -> Any:
        with world.memory.engine.store.database.connection() as connection:
            row = connection.execute(query).fetchone()
            return None if row is None else row[0]

    def kept() -> int:
        return int(one(f"SELECT count(*) FROM remembrancer.embedding WHERE model = '{NEW}'"))

    def serving() -> Any:
        return one("SELECT model FROM remembrancer.model WHERE state = 'serving'")

    ended = threading.Event()
    watchers = [Watcher(memory, who, ended) for who, memory in enumerate([world.memory, bot])]
    try:
        with client("keeper", **settings) as keeper:
            assert keeper.line() == "ready"
            until(lambda: kept() >= MEMORIES / 2)
            keeper.kill()
        half = kept()
        assert MEMORIES / 2 <= half < MEMORIES
        assert serving() == OLD
        time.sleep(1.0)
        assert serving() == OLD
        with client("keeper", **settings) as keeper:
            assert keeper.line() == "ready"
            until(lambda: serving() == NEW)
            time.sleep(1.0)
            until(lambda: not one(f"SELECT count(*) FROM remembrancer.memory WHERE model IS DISTINCT FROM '{NEW}'"))
            until(lambda: not one(f"SELECT count(*) FROM remembrancer.archive WHERE model IS DISTINCT FROM '{NEW}'"))
            time.sleep(0.5)
            assert keeper.end() == 0
    finally:
        ended.set()
        for watcher in watchers:
            watcher.thread.join(30)
    for watcher in watchers:
        assert watcher.missed == []
        assert watcher.saved
        assert set(watcher.models) == {OLD, NEW}
        assert watcher.models == sorted(watcher.models, key=[OLD, NEW].index), "once it serves, the new one serves"
    batches = [r.texts for r in world.fake.requests if r.model == "bigger" and len(r.texts) > 1]
    asked = [text for texts in batches for text in texts if text.startswith("fact number")]
    assert len(asked) - len(set(asked)) <= 64, "what was kept before the kill is not asked for again"
    assert one("SELECT min(vector_dims(embedding)) FROM remembrancer.memory") == 768
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)
