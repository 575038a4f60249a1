"""What an import adds to a list: what is not there yet, as it was (D1, D3, D8, D12, D22, T13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from hypothesis import given as every
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.imports import Incoming, bring
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import folded
from tests.domain.support import (
    DAY,
    POLICY,
    by,
    cleared,
    days_after,
    deleted,
    fold,
    given,
    m,
    noon,
    pinned,
    saved,
    searched,
    searched_days,
)

CAT = "Juno's cat is named Mochi."
IMPORT = by("import")


def brought(s: MemoryList, *texts: str, policy: Policy = POLICY) -> tuple[e.Event, ...]:
    return bring(s, [Incoming(text) for text in texts], by("import", policy=policy)).events


def test_d12_what_the_list_says_already_stays_and_each_text_comes_once():
    given(saved(1, CAT), saved(2, "Pinned"), pinned(2)).when(
        lambda s: brought(s, "juno's  CAT is named Mochi.", "pinned", "New", "NEW")
    ).then(e.MemorySaved, text="New", actor="import", by="import", protected=False, pinned=False).and_nothing_else()


def test_d8_a_full_list_takes_it_and_forgets_nothing():
    texts = [f"Fact number {n}" for n in range(3)]
    came = given(saved(1), saved(2)).when(lambda s: brought(s, *texts, policy=Policy(list_capacity=2)))
    for text in texts:
        came.then(e.MemorySaved, text=text)
    came.and_nothing_else()
    assert came.state.unpinned == 5


def test_d1_the_counter_goes_on_from_the_imported_number_after_the_day_of_the_import():
    days = [searched(days_after(DAY, -1)), searched(DAY)]
    came = given(*days).when(lambda s: bring(s, [Incoming(CAT, unused_days=5)], IMPORT).events)
    (memory,) = came.state.memories.values()
    assert memory.unused_days(came.state.days) == 5
    again = fold(searched(DAY), state=came.state)
    assert memory.unused_days(again.days) == 5
    later = fold(*searched_days(days_after(DAY, 1), 2), state=again)
    assert memory.unused_days(later.days) == 7


def test_a_memory_comes_with_all_that_is_known_of_it():
    then = noon(days_after(DAY, -100))
    one = Incoming(
        CAT,
        by="persona",
        until=days_after(DAY, 3),
        unused_days=9,
        pinned=True,
        protected=True,
        created_at=then,
        updated_at=then + timedelta(days=1),
        last_matched_at=then + timedelta(days=2),
        tags=("a",),
        channels=("b",),
        source=e.Source(chat="c", messages=("1",), turn="t"),
    )
    came = given().when(lambda s: bring(s, [one], IMPORT).events)
    (memory,) = came.state.memories.values()
    assert (memory.text, memory.actor, memory.turn, memory.source) == (CAT, "persona", None, one.source)
    assert (memory.created_at, memory.updated_at, memory.last_matched_at) == (
        one.created_at, one.updated_at, one.last_matched_at,
    )  # fmt: skip
    assert (memory.until, memory.tags, memory.channels) == (one.until, one.tags, one.channels)
    assert (memory.pinned, memory.protected, memory.unused_days(came.state.days)) == (True, True, 9)


def test_an_id_is_kept_where_it_was_never_in_use():
    def ids(s: MemoryList, *taken: UUID) -> list[UUID]:
        incoming = [Incoming(f"Fact number {n} of old", id=m(n)) for n in (1, 2, 3, 3, 4)]
        incoming = [replace(one, text=f"{one.text} {n}") for n, one in enumerate(incoming)]
        return [ev.memory for ev in bring(s, incoming, IMPORT, taken=taken).events]

    kept = ids(fold(saved(1), saved(2), deleted(2)), m(4))
    assert kept[2] == m(3)
    assert not {m(1), m(2), m(4)} & set(kept)
    assert len(set(kept)) == 5
    assert ids(fold(saved(1), cleared()))[0] == m(1)  # that it was cleared, the service knows


def test_an_id_of_another_shard_is_not_kept():
    elsewhere = UUID(bytes=bytes([7]) + bytes(15))
    (event,) = bring(MemoryList(), [Incoming(CAT, id=elsewhere)], IMPORT).events
    assert event.memory.bytes[0] == event.id.bytes[0] != 7


@every(st.lists(st.text(min_size=1, max_size=5), max_size=30), st.lists(st.text(min_size=1, max_size=5), max_size=10))
def test_d12_the_same_again_brings_nothing(incoming: list[str], there: list[str]):
    before = fold([saved(n, text) for n, text in enumerate(there, start=1)])
    rows = [Incoming(text) for text in incoming]
    first = bring(before, rows, IMPORT)
    after = fold([(ev, noon(DAY)) for ev in first.events], state=before)
    assert {folded(x) for x in incoming} <= {memory.folded for memory in after.memories.values()}
    assert len(first.events) + first.duplicates == len(rows)
    assert bring(after, rows, IMPORT).events == ()
