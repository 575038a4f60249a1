"""A projector that stands still, wherever that happens to it: replies and commands see every acknowledged write and
wait for nobody (DESIGN 4), another projector goes on, and the one that wakes up again changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from remembrancer.projections.worker import Worker
from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import FakeOpenAI
from tests.support.processes import Client, client
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up

LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}
LEASE = 0.4
PLACES = pytest.mark.parametrize("place", ["reading", "writing"])
"""Where the projector is stopped: before it moves a checkpoint, or in its transaction, with its rows written."""


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dimensions=32) as server:
        yield server


@pytest.fixture
def settings(database_url: str, model: FakeOpenAI) -> dict[str, Any]:
    return {
        "url": database_url, "embedder": "openai", "embedder_url": model.url, "embedder_model": "words",
        "match_threshold": 0.9, "embed_timeout": 30.0,
    }  # fmt: skip


@pytest.fixture
def opened(settings: dict[str, Any]) -> Iterator[Callable[..., Remembrancer]]:
    """Processes of this test; none of them projects."""
    with ExitStack() as stack:
        yield lambda **more: stack.enter_context(open_memory(background=False, **settings, **more))


def held(stack: ExitStack, settings: dict[str, Any], memory: Remembrancer, place: str) -> Client:
    """A projector in a process of its own, stopped by SIGSTOP in the middle of its work."""
    standstill = LEASE if place == "writing" else 60.0  # where it holds no row, nobody takes its transaction away
    projector = stack.enter_context(
        client("projector", hold=place, lease_seconds=LEASE, standstill_seconds=standstill, **settings)
    )
    assert projector.line() == "ready"
    memory.save("mira", **LIST, text="something to project")
    assert projector.line() == "holding"
    projector.stop()
    return projector


@PLACES
def test_a_stopped_projector_is_missed_by_no_reply_overtaken_by_another_and_changes_nothing_when_it_wakes_up(
    settings: dict[str, Any], opened: Callable[..., Remembrancer], place: str
) -> None:
    """DESIGN 9: own writes, and fencing."""
    with ExitStack() as stack:
        one, other = opened(), opened()
        first = held(stack, settings, one, place)
        began = time.monotonic()
        assert_own_writes(one, other)
        assert time.monotonic() - began < 10.0, "nobody waits for the projector"

        engine = one.engine
        second = Worker(
            uuid4(), engine.store.database.connection, engine.runner, lambda _: not time.sleep(0.05),
            lease_seconds=LEASE,
        )  # fmt: skip
        second.start()
        stack.callback(second.stop)
        assert engine.waiting.settle(20.0), "the second projector waits for the first one, which stands still"
        assert_read_model_is_a_fresh_fold(one)

        first.go_on()
        first.tell("go on")
        for n in range(20):
            one.edit(one.save("mira", **LIST, text=f"later {n}").memory.id, text=f"later and other {n}")
        assert engine.waiting.settle(20.0)
        time.sleep(LEASE)
        second.stop()
        assert first.end() == 0
        caught_up(one)
        assert_read_model_is_a_fresh_fold(one)


def assert_own_writes(one: Remembrancer, other: Remembrancer) -> None:
    """Saves, edits, pins, deletes and matches of one process are in the next reply of another."""
    saved = one.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
    gone = one.save("mira", **LIST, text="Kit moved to Lisbon").memory.id
    edited = one.save("mira", **LIST, text="Kit plays the cello").memory.id
    one.edit(edited, text="Kit plays the flute")
    one.pin(saved)
    one.delete(gone)
    answer = other.reply("mira", message="Kit plays the flute", users=["juno"], server="guild")
    desk = {view.id: view for view in answer.prefix.memories}
    assert desk[saved].pinned
    assert desk[edited].text == "Kit plays the flute"
    assert gone not in desk
    assert "Juno's cat is named Mochi" in answer.prefix.text
    assert [match.memory for match in answer.search.matches] == [edited]
    assert other.get(saved).text == "Juno's cat is named Mochi"
    assert other.list("mira", **LIST).lists[0].pinned == 1


def test_with_a_stopped_projector_days_and_rest_are_counted_as_ever(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """T4, T5, T6, D1: a week goes by that no row knows of. Killed, the projector has done nothing by halves."""
    day = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    with ExitStack() as stack:
        memory = opened(clock=lambda: day[0])
        projector = held(stack, settings, memory, "writing")
        mochi = memory.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
        for number in range(2, 9):
            day[0] = day[0].replace(day=number)
            memory.reply("mira", message="games", users=["juno"], server="guild")
        assert (memory.get(mochi).unused_days, memory.get(mochi).state) == (7, "resting")
        answer = memory.reply("mira", message="Juno's cat is named Mochi", users=["juno"], server="guild")
        assert mochi not in {view.id for view in answer.prefix.memories}
        assert [view.id for view in answer.late.recalled] == [mochi]
        assert memory.get(mochi).state == "active"
        projector.kill()
        caught_up(memory)
        assert_read_model_is_a_fresh_fold(memory)
