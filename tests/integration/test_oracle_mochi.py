"""The table of SPEC 2, row by row, on the real store with the real local model, and the visitor who comes monthly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from freezegun import freeze_time

from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer

CAT = "Juno's cat is named Mochi"
GAMES = (
    "who wants to play chess tonight?", "let's start a new game of Tetris", "did you beat the last boss?",
    "which console do you prefer?", "good game everyone", "I lost again at Mario Kart",
)  # fmt: skip
SAVED = datetime(2026, 5, 4, 18, tzinfo=UTC)


class Told(NamedTuple):
    """The product, and how its clock is set."""

    memory: Remembrancer
    set_clock: Callable[[datetime], Any]


@contextmanager
def by_argument(url: str) -> Iterator[Told]:
    moment = [SAVED]
    with open_memory(url, clock=lambda: moment[0]) as memory:
        yield Told(memory, lambda to: moment.__setitem__(0, to))


@contextmanager
def by_freezegun(url: str) -> Iterator[Told]:
    # Only the calendar stands still: with its stopwatch frozen, a driver takes every connection for timed out.
    with freeze_time(SAVED, ignore=["psycopg", "psycopg_pool"]) as frozen, open_memory(url, background=False) as memory:
        yield Told(memory, frozen.move_to)


@pytest.fixture(params=[by_argument, by_freezegun], ids=["clock=", "freezegun"])
def told(request: pytest.FixtureRequest, database_url: str) -> Iterator[Told]:
    with request.param(database_url) as one:
        yield one


def say(told: Told, day: int, message: str, **where: Any) -> Any:
    told.set_clock(SAVED + timedelta(days=day))
    return told.memory.reply("mira", message=message, **({"users": ["juno"], "server": "tea house"} | where))


def row(told: Told, memory: UUID) -> tuple[int, str]:
    """Counter and state, as a table shows them."""
    now = told.memory.get(memory)
    return now.unused_days, now.state


def test_t1_t8_the_mochi_table(told: Told):
    cat = told.memory.save("mira", scope="server", subject="tea house", text=CAT, actor="persona").memory.id
    say(told, 0, GAMES[0])
    assert row(told, cat) == (0, "active"), "saved, and talk goes on that day"

    for day in range(1, 7):
        for message in GAMES:
            answer = say(told, day, message)
        assert (answer.search.status, answer.search.matches) == ("ok", [])
        assert row(told, cat) == (day, "active"), "talk about games only"

    told.set_clock(SAVED + timedelta(days=13))
    assert row(told, cat) == (6, "active"), "a quiet week: paused"

    answer = say(told, 14, GAMES[1])
    assert answer.prefix.memories[0].id == cat, "the desk of a reply is the state before it (D2)"
    assert row(told, cat) == (7, "resting"), "the next chat day, no Mochi"
    assert say(told, 14, GAMES[2]).prefix.memories == []

    answer = say(told, 20, "how is Mochi?")
    assert answer.prefix.memories == []
    assert [m.id for m in answer.late.recalled] == [cat], "recalled in that reply"
    assert row(told, cat) == (0, "active"), "then active"
    assert [m.id for m in say(told, 20, GAMES[3]).prefix.memories] == [cat]


def test_t8_t9_a_visitor_who_comes_monthly_needs_seven_visits_before_their_memories_rest(told: Told):
    sister = told.memory.save(
        "mira", scope="personal", subject="aiko", text="Aiko has a sister in Osaka", actor="persona"
    ).memory.id
    say(told, 0, "see you all", users=["aiko"])
    for visit in range(1, 8):
        for day in (30 * visit - 20, 30 * visit - 10):
            say(told, day, GAMES[day % len(GAMES)])  # the others talk on without her
        assert row(told, sister) == (visit - 1, "active")
        say(told, 30 * visit, GAMES[visit % len(GAMES)], users=["aiko", "juno"])
    assert row(told, sister) == (7, "resting")
