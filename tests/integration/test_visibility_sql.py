"""What SQL lets through is what the domain calls visible, on the desk, in the search and in the day tick (T10, D28)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.identity import new_id
from remembrancer.domain.policy import Policy
from remembrancer.domain.visibility import Place, is_visible
from remembrancer.services import candidates
from remembrancer.services.desk_reader import Scene, read_desk
from remembrancer.services.store import Batch, Request
from tests.support.book import FIRST, KEYS, Book, unit
from tests.support.world import World

TODAY = FIRST + timedelta(days=3)
SETS = [(), ("a",), ("b",), ("a", "b")]
UNTIL = [None, TODAY - timedelta(days=1), TODAY, TODAY + timedelta(days=1)]
KEY = KEYS[0]
TEXT = "Mochi"

Body = tuple[tuple[str, ...], tuple[str, ...], date | None]
"""Tags, channels, until."""


def write(book: Book, bodies: list[Body], *, pinned: bool) -> dict[UUID, Body]:
    """Memories with these tags, channels and dates, in one append."""
    shard = book.stream(KEY).bytes[0]
    made = {new_id(shard, n.to_bytes(16, "big")): body for n, body in enumerate(bodies, 1)}
    stamp = {"tenant": book.tenant, **KEY._asdict(), "day": FIRST, "text": TEXT, "pinned": pinned}
    saved = [
        e.MemorySaved(**stamp, id=m, memory=m, tags=tags, channels=channels, until=until)
        for m, (tags, channels, until) in made.items()
    ]
    batch = Batch(book.stream(KEY), saved, None, (KEY.owner,))
    book.store.append([batch], request=Request(book.tenant, shard), now=datetime.combine(FIRST, time(1), UTC))
    book.keep(KEY, TEXT)
    return made


def scene(book: Book, place: Place, today: date, model: str) -> Scene:
    now, policy = datetime.combine(today, time(12), UTC), Policy(desk_limit=1_000, pin_capacity=1_000)
    return Scene([KEY], [book.stream(KEY)], place, now, policy, book.tenant, model, KEY.persona)


def check(book: Book, made: dict[UUID, Body], place: Place, today: date, *, pinned: bool) -> None:
    """The three places in SQL, against the one function of the domain."""
    embedder = book.world.memory.engine.deps.embedder
    assert embedder is not None
    here = scene(book, place, today, embedder.model)
    expected = {
        m
        for m, (tags, channels, until) in made.items()
        if is_visible(tags=tags, channels=channels, until=until, place=place, today=today)
    }

    def work(conn: Any) -> None:
        desk = read_desk(conn, book.store, here)
        found = candidates.find(conn, here, desk, TEXT, unit(book.world, TEXT))
        assert desk.ids == expected
        (x,) = desk.lists
        if pinned:
            assert (found, x.members) == ([], 0)
            return
        assert {r.view.id for r in found} <= expected
        assert len(found) == min(10, len(expected))
        assert {m for m in made if m not in x.out} == expected
        assert x.members == len(made)

    book.store.database.run(work)


@pytest.mark.parametrize("pinned", [False, True], ids=["unpinned", "pinned"])
def test_t10_d28_every_combination_of_tags_channels_and_dates_is_seen_where_the_domain_says(world: World, pinned: bool):
    book = Book(world, "everybody")
    made = write(book, list(product(SETS, SETS, UNTIL)), pinned=pinned)
    for _ in range(2):
        for channel, tags in product([None, "a", "b", "c"], [*SETS, ("c",)]):
            check(book, made, Place("tea house", channel, tags), TODAY, pinned=pinned)
        world.project()


words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00") | st.sampled_from("\"'\\{},%_ NULL"), min_size=1
) | st.sampled_from(["NULL", "null", "{}", '""', "a,b", "\\", "ä", "a\u0308", "A", "a"])
bags = st.lists(words, max_size=3, unique=True).map(tuple)
_tenants = iter(range(10**9))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(st.tuples(bags, bags, st.none() | st.dates()), min_size=1, max_size=8), data=st.data())
def test_t10_d28_whatever_tags_and_channels_are_called(world: World, bodies: list[Body], data: st.DataObject):
    book = Book(world, f"tenant {next(_tenants)}")
    made = write(book, bodies, pinned=False)
    told = sorted({name for tags, channels, _ in bodies for name in (*tags, *channels)})
    name = words if not told else st.sampled_from(told) | words
    place = Place("tea house", data.draw(st.none() | name), tuple(data.draw(st.lists(name, max_size=3))))
    today = data.draw(st.sampled_from([until for *_, until in bodies if until] or [TODAY]) | st.dates())
    check(book, made, place, today, pinned=False)
    if data.draw(st.booleans()):
        world.project()
        check(book, made, place, today, pinned=False)
