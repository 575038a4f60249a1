"""The embedding model is down, late, or talks nonsense (C25, C26): nothing wrong is stored, replies go on without
search and say why, no day ticks (T8), and what was saved meanwhile is made up for (D22).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import ListFull, Unavailable
from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from tests.support import fake_openai as fake
from tests.support.fake_openai import Behaviour, Exchange, FakeOpenAI
from tests.support.read_model import all_events, assert_read_model_is_a_fresh_fold, caught_up

LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}
MOCHI = "Juno's cat is named Mochi"
TIMEOUT = 1.0
TRIES = 3
BAD: dict[str, Behaviour] = {
    "NaN": fake.nan,
    "infinity": fake.infinite,
    "zeros": fake.zeros,
    "wrong dimension": fake.wrong_dimension,
    "no numbers": fake.no_numbers,
    "no vectors": fake.empty,
    "broken JSON": fake.broken_json,
    "other JSON": fake.other_json,
    "a web page": fake.web_page,
    "a connection that breaks": fake.drop,
    "no answer in time": fake.stall,
    "one byte at a time": fake.trickle,
    "429": fake.status(429),
    "429 for an hour": fake.status(429, retry_after="3600"),
    "500": fake.status(500),
    "401": fake.status(401),
}
EVERY_FAULT = pytest.mark.parametrize("bad", list(BAD.values()), ids=list(BAD))


class Day:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def is_the(self, day: int) -> None:
        self.now = self.now.replace(day=day)


@pytest.fixture
def day() -> Day:
    return Day()


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dimensions=32) as server:
        yield server


@pytest.fixture
def opened(database_url: str, model: FakeOpenAI, day: Day) -> Iterator[Callable[..., Remembrancer]]:
    """Opens a service of this test's database and model."""
    with ExitStack() as stack:

        def again(**settings: Any) -> Remembrancer:
            given = {
                "embedder": "openai", "embedder_url": model.url, "embedder_model": "words", "embed_timeout": TIMEOUT,
                "match_threshold": 0.9, "background": False, "clock": day,
            }  # fmt: skip
            return stack.enter_context(open_memory(database_url, **given | settings))

        yield again


def reply(memory: Remembrancer, message: str) -> Any:
    return memory.reply("mira", message=message, users=["juno"], server="guild")


def vectors_kept(memory: Remembrancer) -> int:
    with memory.engine.store.database.connection() as connection:
        row = connection.execute("SELECT count(*) FROM remembrancer.embedding").fetchone()
        assert row is not None
        return int(row[0])


@EVERY_FAULT
def test_a_reply_goes_on_without_search_and_the_day_does_not_tick(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day, bad: Behaviour
) -> None:
    """C25, T8; retries are bounded, and the deadline holds."""
    memory = opened()
    mochi = memory.save("mira", **LIST, text=MOCHI).memory.id
    day.is_the(2)
    model.otherwise = bad
    asked, kept, began = len(model.requests), vectors_kept(memory), time.monotonic()
    answer = reply(memory, "what is secret-word up to?")
    assert time.monotonic() - began < TIMEOUT + 2.0
    assert answer.search.status == "unavailable"
    assert answer.search.reason
    assert "secret-word" not in answer.search.reason
    assert (answer.search.matches, answer.search.candidates) == ([], [])
    assert [view.id for view in answer.prefix.memories] == [mochi]
    assert len(model.requests) - asked <= TRIES
    assert vectors_kept(memory) == kept
    searched = [one.event for one in all_events(memory) if isinstance(one.event, e.ReplySearched | e.ListSearched)]
    assert [type(one).__name__ for one in searched] == ["ReplySearched"]
    assert memory.get(mochi).unused_days == 0
    model.otherwise = fake.right
    assert reply(memory, "games").search.status == "ok"
    assert memory.get(mochi).unused_days == 1


@EVERY_FAULT
def test_a_save_is_kept_and_found_when_the_model_is_back(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day, bad: Behaviour
) -> None:
    """D22, C25: kept, active, with a warning; nothing wrong is stored; embedded later, and then found."""
    memory = opened()
    memory.save("mira", **LIST, text="Kit plays the cello")
    model.otherwise = bad
    asked, kept, began = len(model.requests), vectors_kept(memory), time.monotonic()
    saved = memory.save("mira", **LIST, text=MOCHI)
    assert time.monotonic() - began < TIMEOUT + 2.0
    assert (saved.status, saved.memory.state) == ("saved", "active")
    assert any("searchable later" in warning for warning in saved.warnings)
    edited = memory.edit(saved.memory.id, text=f"{MOCHI}, the second")
    assert edited.memory.text == f"{MOCHI}, the second"
    assert len(model.requests) - asked <= 2 * TRIES
    assert vectors_kept(memory) == kept
    model.otherwise = fake.right
    caught_up(memory)
    assert memory.embed_pending() == 1
    assert memory.embed_pending() == 0
    day.is_the(2)
    answer = reply(memory, f"{MOCHI}, the second")
    assert [match.memory for match in answer.search.matches] == [saved.memory.id]
    caught_up(memory)
    assert_read_model_is_a_fresh_fold(memory)


def test_a_refused_connection_is_as_good_as_any_other_fault(opened: Callable[..., Remembrancer]) -> None:
    """T8, D22."""
    memory = opened(embedder_url="http://127.0.0.1:1/v1", embed_timeout=5.0)
    assert memory.save("mira", **LIST, text=MOCHI).status == "saved"
    answer = reply(memory, "how is Mochi?")
    assert answer.search.status == "unavailable"
    assert answer.search.reason == "no connection, or one that broke off"
    with pytest.raises(Unavailable) as said:
        memory.find("Mochi")
    assert said.value.hint


@pytest.mark.parametrize("bad", [fake.one_vector, fake.same_index], ids=["one vector", "five of one index"])
def test_one_vector_for_five_texts_is_taken_for_none_of_the_five(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, bad: Behaviour
) -> None:
    """C25. The texts are then sent one by one, and each gets its own."""
    memory = opened()
    model.otherwise = fake.status(500)
    for n in range(5):
        memory.save("mira", **LIST, text=f"fact number {n}")
    caught_up(memory)
    model.otherwise = bad
    model.requests.clear()
    assert memory.embed_pending() == 5
    assert [len(request.texts) for request in model.requests] == [5, 1, 1, 1, 1, 1, 1]
    with memory.engine.store.database.connection() as connection:
        rows = connection.execute("SELECT text, embedding FROM remembrancer.memory").fetchall()
    assert len(rows) == 5
    for text, vector in rows:
        own = model.vector_of(text) if bad is fake.one_vector else np.ones(model.dimensions)
        assert np.allclose(vector.to_numpy(), own / np.linalg.norm(own), atol=1e-3)


def test_a_memory_without_a_vector_neither_ticks_nor_is_forgotten(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day
) -> None:
    """D22, T12, T14. The same for one whose date has passed (D28)."""
    memory = opened(list_capacity=3, rest_after_days=1)
    seen = memory.save("mira", **LIST, text="Kit plays the cello", actor="persona").memory.id
    model.otherwise = fake.status(500)
    unseen = memory.save("mira", **LIST, text=MOCHI, actor="persona").memory.id
    expired = memory.save("mira", **LIST, text="Juno is away", until=date(2026, 5, 1), actor="persona").memory.id
    model.otherwise = fake.right
    caught_up(memory)
    for number in (2, 3, 4):
        day.is_the(number)
        assert reply(memory, "games").search.status == "ok"
    assert (memory.get(seen).unused_days, memory.get(seen).state) == (3, "resting")
    assert (memory.get(unseen).unused_days, memory.get(unseen).state) == (0, "active")
    answer = memory.save("mira", **LIST, text="Otto sings", actor="persona")
    assert [gone.memory.id for gone in answer.forgotten] == [seen]
    with pytest.raises(ListFull, match="T14"):
        memory.save("mira", **LIST, text="Otto dances", actor="persona")
    assert memory.get(expired).state == "expired"
    caught_up(memory)
    while memory.embed_pending():
        pass
    answer = memory.save("mira", **LIST, text="Otto dances", actor="persona")
    assert [gone.memory.id for gone in answer.forgotten] == [expired]
    day.is_the(5)
    reply(memory, "games")
    assert memory.get(unseen).unused_days == 1


def test_a_model_that_fails_makes_no_room_and_brings_nothing_back(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day
) -> None:
    """T8, T14, D29; and a model that fails is not a model that is not there (T11): what rests, rests."""
    memory = opened(list_capacity=1, rest_after_days=1)
    resting = memory.save("mira", **LIST, text="Kit plays the cello", actor="persona").memory.id
    day.is_the(2)
    assert reply(memory, "games").search.status == "ok"
    assert memory.get(resting).state == "resting"
    day.is_the(3)
    model.otherwise = fake.status(500)
    answer = reply(memory, "Kit plays the cello")
    assert (answer.search.status, answer.prefix.memories, answer.late.recalled) == ("unavailable", [], [])
    for turn, rule in ((answer.turn, "T14"), (None, "D29")):
        with pytest.raises(ListFull, match=rule):
            memory.save("mira", **LIST, text="Otto sings", actor="persona", turn=turn)
    assert memory.get(resting).unused_days == 1
    model.otherwise = fake.right
    turn = reply(memory, "games").turn
    saved = memory.save("mira", **LIST, text="Otto sings", actor="persona", turn=turn)
    assert [gone.memory.id for gone in saved.forgotten] == [resting]


def test_an_import_while_the_model_is_down_brings_all_and_makes_up_for_it_later(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day
) -> None:
    """C26: 500 memories are there and active, none ticks or is forgotten before it is embedded."""
    memory = opened(list_capacity=100, rest_after_days=1)
    memory.save("mira", **LIST, text=MOCHI)
    exported = list(memory.export())
    (row,) = [one for one in exported if one.get("text") == MOCHI]
    new = [{k: v for k, v in row.items() if k != "id"} | {"text": f"fact number {n}"} for n in range(500)]
    rows = [exported[0], *new]
    model.otherwise = fake.status(503)
    asked = len(model.requests)
    assert memory.import_rows(rows).imported == 500
    assert len(model.requests) - asked <= 2 * TRIES, "a model that is down is asked a few times, not for every memory"
    model.otherwise = fake.right
    caught_up(memory)
    day.is_the(2)
    assert reply(memory, "games").search.status == "ok"
    (found,) = memory.list("mira", **LIST).lists
    assert found.count == 501
    by_days = {n: sum(view.unused_days == n for view in found.memories) for n in (0, 1)}
    assert by_days == {0: 500, 1: 1}, "only the one that has a vector was searched"
    while memory.embed_pending(200):
        pass
    assert next(match.text for match in reply(memory, "fact number 123").search.matches) == "fact number 123"
    day.is_the(3)
    reply(memory, "games")
    assert memory.list("mira", **LIST, state="resting").lists[0].memories
    assert memory.list("mira", **LIST).lists[0].count == 501


def test_the_background_makes_up_for_missing_vectors_by_itself(
    opened: Callable[..., Remembrancer], model: FakeOpenAI
) -> None:
    """D22."""
    memory = opened(background=True)
    model.otherwise = fake.status(500)
    saved = memory.save("mira", **LIST, text=MOCHI).memory.id
    time.sleep(0.3)
    model.otherwise = fake.right
    deadline = time.monotonic() + 15
    while vectors_kept(memory) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while not (matches := reply(memory, MOCHI).search.matches):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [match.memory for match in matches] == [saved]


def test_a_model_that_does_not_answer_holds_up_no_projection(
    opened: Callable[..., Remembrancer], model: FakeOpenAI
) -> None:
    """DESIGN 8: one's own write is in the read model in a moment, whatever the model does."""
    memory = opened(background=True)
    model.otherwise = fake.stall
    for n in range(5):
        saved = memory.save("mira", **LIST, text=f"fact {n}")
        began = time.monotonic()
        memory.wait(saved.positions, timeout=10.0)
        assert time.monotonic() - began < TIMEOUT + 2.0
        time.sleep(0.3)


def test_a_text_that_the_model_refuses_keeps_no_other_from_its_vector(
    opened: Callable[..., Remembrancer], model: FakeOpenAI
) -> None:
    """D22: one memory that cannot be embedded, among many that were saved while the model was down."""

    def refuses_one(exchange: Exchange) -> None:
        (fake.status(400) if any("durian" in text for text in exchange.texts) else fake.right)(exchange)

    memory = opened()
    model.otherwise = fake.status(500)
    for n in range(6):
        memory.save("mira", **LIST, text=f"fact {n} about " + ("durian" if n == 0 else "apples"))
    caught_up(memory)
    model.otherwise = refuses_one
    while memory.embed_pending():
        pass
    assert vectors_kept(memory) == 5
    model.requests.clear()
    assert memory.embed_pending() == 0
    assert model.requests == [], "it is not asked for over and over"
    model.otherwise = fake.right
    assert opened().embed_pending() == 1


def test_another_model_behind_the_same_name_is_noticed_also_after_a_restart(
    opened: Callable[..., Remembrancer], model: FakeOpenAI, day: Day
) -> None:
    """C25: a process that has seen no answer yet knows the dimensions of the vectors that are kept."""
    first = opened()
    mochi = first.save("mira", **LIST, text=MOCHI).memory.id
    caught_up(first)
    first.close()
    model.otherwise = fake.wrong_dimension
    day.is_the(2)
    memory = opened()
    answer = reply(memory, "how is Mochi?")
    assert answer.search.status == "unavailable"
    assert answer.search.reason is not None
    assert "dimensions" in answer.search.reason
    assert memory.get(mochi).unused_days == 0
    memory.save("mira", **LIST, text="Kit plays the cello")
    caught_up(memory)
    assert vectors_kept(memory) == 1
    assert memory.engine.runner.parked() == []


def test_a_model_that_fails_for_long_is_not_asked_more_often_than_replies_ask(
    opened: Callable[..., Remembrancer], model: FakeOpenAI
) -> None:
    """C25: retries are bounded, in the background, too."""
    memory = opened(background=True)
    model.otherwise = fake.status(500)
    memory.save("mira", **LIST, text=MOCHI)
    model.requests.clear()
    time.sleep(3.0)
    assert len(model.requests) <= 5 * TRIES
