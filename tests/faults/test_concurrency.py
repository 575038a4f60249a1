"""Many at once on one list: caps hold, nothing acknowledged is lost, nothing is there twice, nobody waits for ever; and
afterwards the read model is what the events say.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import ListFull, PinsFull
from remembrancer.domain.events import Recorded
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from tests.support import mixed_load
from tests.support.fake_openai import FakeOpenAI
from tests.support.mixed_load import LIST, PERSONA, Book
from tests.support.processes import client
from tests.support.read_model import all_events, assert_read_model_is_a_fresh_fold, caught_up, events_of_lists

CAPACITY, PINS = 100, 20
"""The defaults of R9."""


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dimensions=32) as server:
        yield server


@pytest.fixture
def settings(database_url: str, model: FakeOpenAI) -> dict[str, Any]:
    """The model is always waited for: here it is never what fails."""
    return {
        "url": database_url, "embedder": "openai", "embedder_url": model.url, "embedder_model": "words",
        "embed_timeout": 30.0,
    }  # fmt: skip


@pytest.fixture
def opened() -> Iterator[Callable[..., Remembrancer]]:
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(open_memory(**{"background": False} | settings))


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """A thread for each number, all beginning at the same moment; none may take longer than a minute."""
    begin = threading.Barrier(count)

    def one(n: int) -> Any:
        begin.wait(30)
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count), timeout=60))


def assert_every_version_kept_the_caps(events: Sequence[Recorded]) -> MemoryList:
    """Folds a list step by step: R9 holds after each event, except where one event of a command makes room for the
    next; no two memories ever say the same (D12); versions have no gap, and no event is there twice."""
    assert [one.version for one in events] == list(range(1, len(events) + 1))
    assert len({one.event.id for one in events}) == len(events)
    state = MemoryList()
    for recorded in events:
        state = evolve(state, recorded)
        assert state.unpinned <= CAPACITY
        assert state.pinned <= PINS
        if isinstance(recorded.event, e.MemorySaved | e.MemoryEdited | e.MemoryRestored):
            sentences = [memory.folded for memory in state.memories.values()]
            assert len(sentences) == len(set(sentences))
    return state


def assert_all_is_well(memory: Remembrancer, before: Sequence[str], books: Sequence[Book]) -> None:
    mixed_load.assert_the_books_balance(memory, before, books)
    (events,) = events_of_lists(memory).values()
    assert_every_version_kept_the_caps(events)
    saved = {str(one.event.memory) for one in events if isinstance(one.event, e.MemorySaved)}
    acknowledged = {one for book in books for one in [*book.saved, *book.deleted, *book.missing]}
    assert saved == {*before, *acknowledged}
    replies = sum(isinstance(one.event, e.ReplySearched) for one in all_events(memory))
    assert replies == 1 + sum(book.replies for book in books)
    caught_up(memory)
    assert_read_model_is_a_fresh_fold(memory)


def test_sixteen_threads_on_one_list_lose_nothing_and_keep_its_caps(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """R9, T12, T14, D9, D12. Eight threads each of two services, one of which projects at the same time."""
    day = [mixed_load.FIRST_DAY]
    memories = [
        opened(clock=lambda: day[0], background=background, **mixed_load.POLICY, **settings)
        for background in (True, False)
    ]
    before = mixed_load.fill_and_rest(memories[0], day)
    books = mixed_load.write_side_by_side(memories, [f"writer {n}" for n in range(16)], acts=20)
    assert sum(len(book.forgotten) for book in books) > 20, "the list was full, so saves made room"
    assert_all_is_well(memories[1], before, books)


def test_four_processes_on_one_list_lose_nothing_and_keep_its_caps(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """R9, T12, T14, D9, D12. Four threads in each process."""
    day = [mixed_load.FIRST_DAY]
    memory = opened(clock=lambda: day[0], **mixed_load.POLICY, **settings)
    before = mixed_load.fill_and_rest(memory, day)
    arguments = settings | mixed_load.POLICY | {"acts": 12, "now": mixed_load.SECOND_DAY.isoformat()}
    with ExitStack() as stack:
        others = [
            stack.enter_context(client("mixer", names=[f"writer {n}.{k}" for k in range(4)], **arguments))
            for n in range(4)
        ]
        assert [other.line() for other in others] == ["ready"] * 4
        for other in others:
            other.tell("go")
        books = [Book(**book) for other in others for book in json.loads(other.line(120))]
        assert [other.end() for other in others] == [0] * 4
    assert len(books) == 16
    assert sum(len(book.forgotten) for book in books) > 10
    assert_all_is_well(memory, before, books)


def test_eighty_edits_at_once_of_one_list_are_all_kept(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """DESIGN 8: 80 kept, none twice, none lost. Each edit says which text it replaced, so they form a chain."""
    memories = [opened(**settings) for _ in range(2)]
    ids = [memories[0].save(PERSONA, **LIST, text=f"memory {n}").memory.id for n in range(8)]

    def edit(n: int) -> str:
        text = f"memory {n % 8} in its wording {n}"
        assert memories[n % 2].edit(ids[n % 8], text=text).memory.text == text
        return text

    texts = at_once(80, edit)
    (events,) = events_of_lists(memories[0]).values()
    edits = [one.event for one in events if isinstance(one.event, e.MemoryEdited)]
    assert sorted(edit.text for edit in edits) == sorted(texts)
    chain: dict[UUID, str] = {memory: f"memory {n}" for n, memory in enumerate(ids)}
    for edit_ in edits:
        assert edit_.before == chain[edit_.memory]
        chain[edit_.memory] = edit_.text
    (found,) = memories[1].list(PERSONA, **LIST).lists
    assert {one.id: one.text for one in found.memories} == chain
    caught_up(memories[0])
    assert_read_model_is_a_fresh_fold(memories[0])


def test_twenty_parallel_saves_of_one_sentence_are_one_memory(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """C19, D12: one is saved, nineteen are duplicates of it, in whatever case and with whatever spaces."""
    memories = [opened(**settings) for _ in range(2)]
    spellings = ["Juno's cat is named Mochi", "juno's cat  is named mochi ", "JUNO'S CAT IS NAMED MOCHI"]
    answers = at_once(20, lambda n: memories[n % 2].save(PERSONA, **LIST, text=spellings[n % 3]))
    assert sorted(answer.status for answer in answers) == ["duplicate"] * 19 + ["saved"]
    assert len({answer.memory.id for answer in answers}) == 1
    (found,) = memories[0].list(PERSONA, **LIST).lists
    assert [one.id for one in found.memories] == [answers[0].memory.id]


def test_pins_at_once_stop_at_the_cap_and_unpins_at_once_need_room(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """R9, D7, D9."""
    memory = opened(**settings)
    ids = [memory.save(PERSONA, **LIST, text=f"memory {n}").memory.id for n in range(30)]
    at_once(30, lambda n: _refused(lambda: memory.pin(ids[n])))
    (found,) = memory.list(PERSONA, **LIST).lists
    assert (found.pinned, found.count) == (PINS, 10)
    pinned = [one.id for one in found.memories if one.pinned]
    for n in range(85):
        memory.save(PERSONA, **LIST, text=f"another {n}")
    at_once(20, lambda n: _refused(lambda: memory.unpin(pinned[n])))
    (found,) = memory.list(PERSONA, **LIST).lists
    assert (found.pinned, found.count) == (15, CAPACITY), "five had room, and nothing may be forgotten for the others"
    (events,) = events_of_lists(memory).values()
    assert_every_version_kept_the_caps(events)


def _refused(act: Callable[[], Any]) -> None:
    """By a cap, or not at all."""
    with suppress(ListFull, PinsFull):
        act()


def test_replies_of_one_day_tick_a_list_once_however_many_run_at_once(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """T4, D1: facts are absorbed in any order."""
    day = [mixed_load.FIRST_DAY]
    memories = [opened(clock=lambda: day[0], match_threshold=0.9, **settings) for _ in range(2)]
    kept = memories[0].save(PERSONA, **LIST, text="Juno's cat is named Mochi").memory.id
    used = memories[0].save(PERSONA, **LIST, text="Kit plays the cello").memory.id
    day[0] = mixed_load.SECOND_DAY
    answers = at_once(
        16,
        lambda n: memories[n % 2].reply(
            PERSONA, message="Kit plays the cello" if n % 4 == 0 else "weather", users=["juno"], server="guild"
        ),
    )
    assert [answer.search.status for answer in answers] == ["ok"] * 16
    assert (memories[0].get(kept).unused_days, memories[0].get(used).unused_days) == (1, 0)
    caught_up(memories[0])
    assert_read_model_is_a_fresh_fold(memories[0])


def test_many_lists_of_many_people_at_once_do_not_wait_for_each_other_for_ever(
    settings: dict[str, Any], opened: Callable[..., Remembrancer]
) -> None:
    """DESIGN 3: replies write to several shards in one transaction, in whatever order their lists come; no deadlock."""
    memory = opened(match_threshold=0.9, **settings)
    people = [f"user {n}" for n in range(6)]
    for person in people:
        memory.save(PERSONA, scope="personal", subject=person, text=f"{person} likes tea")
        memory.save(None, scope="global", subject=person, text=f"{person} is from Lisbon")

    def reply(n: int) -> datetime | str:
        users = people[n % 6 :] + people[: n % 6]
        return memory.reply(PERSONA, message=f"user {n % 6} likes tea", users=users, server="guild").search.status

    assert at_once(24, reply) == ["ok"] * 24
    caught_up(memory)
    assert_read_model_is_a_fresh_fold(memory)
