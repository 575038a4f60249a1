"""Importing: everything as it was, nothing forgotten for it, the same file twice is once (D8, D12, D13, T13)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.identity import new_id
from remembrancer.domain.imports import Incoming, bring
from remembrancer.domain.persona_memory import Context, MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import folded
from tests.domain.support import DAY, by, days_after, deleted, fold, m, noon, saved, searched_days, unused

SHARD = 7
SMALL = Policy(list_capacity=2, pin_capacity=1)
THERE = noon(days_after(DAY, -30))
FULL = Incoming(
    text="  Juno's cat is named Mochi. ",
    id=new_id(SHARD, bytes(range(16))),
    by="person",
    until=days_after(DAY, 5),
    unused_days=5,
    protected=True,
    created_at=THERE,
    updated_at=THERE + timedelta(days=1),
    last_matched_at=THERE + timedelta(days=2),
    tags=("home",),
    channels=("garden",),
    source=e.Source(chat="c", messages=("1",), turn="t"),
)


def importing(**fields) -> Context:
    """An import whose ids are of this list's shard."""
    ids = iter(range(1, 10_000))
    ctx = by("import", policy=SMALL, **fields)
    return Context(**{name: getattr(ctx, name) for name in ctx.__slots__} | {"new_id": lambda: _id(next(ids))})


def _id(number: int) -> UUID:
    return new_id(SHARD, number.to_bytes(16, "big"))


def after(state: MemoryList, *incoming: Incoming, **fields) -> MemoryList:
    events = bring(state, incoming, importing(), **fields).events
    return fold([(ev, noon(DAY)) for ev in events], state=state)


def test_a_memory_arrives_as_it_was():  # D8
    state = after(MemoryList(), FULL)
    (memory,) = state.memories.values()
    assert (memory.id, memory.text, memory.actor, memory.source) == (FULL.id, FULL.text, "person", FULL.source)
    assert (memory.created_at, memory.updated_at) == (FULL.created_at, FULL.updated_at)
    assert memory.last_matched_at == FULL.last_matched_at
    assert (memory.until, memory.tags, memory.channels) == (FULL.until, FULL.tags, FULL.channels)
    assert (memory.protected, memory.pinned) == (True, False)
    assert memory.unused_days(state.days) == 5


def test_its_days_stand_whatever_the_list_was_searched_before():  # D1, D8
    state = after(fold(searched_days(days_after(DAY, -40), 41)), FULL)
    assert state.memories[FULL.id].unused_days(state.days) == 5
    state = fold(searched_days(days_after(DAY, 1), 2), state=state)
    assert state.memories[FULL.id].unused_days(state.days) == 7


def test_no_cap_binds_and_nothing_is_forgotten():  # D8
    old = [saved(n, day=days_after(DAY, -20)) for n in (1, 2)]
    resting = fold(old, searched_days(days_after(DAY, -19), 10))
    state = after(resting, *(Incoming(f"Brought {n}.", pinned=n < 3) for n in range(6)))
    assert (state.unpinned, state.pinned) == (2 + 3, 3)
    assert {m(1), m(2)} < set(state.memories)


def test_imported_memories_are_not_protected_unless_they_were():  # T13
    state = after(MemoryList(), Incoming("One."), Incoming("Two.", protected=True))
    assert {x.text: x.protected for x in state.memories.values()} == {"One.": False, "Two.": True}


def test_what_the_list_says_already_stays_as_it_is():  # D12
    before = fold(saved(1, "One.", day=days_after(DAY, -9)), searched_days(days_after(DAY, -8), 4))
    came = bring(
        before, [Incoming(" ONE. ", protected=True, pinned=True), Incoming("two"), Incoming("Two")], importing()
    )
    assert [ev.text for ev in came.events] == ["two"]
    assert came.duplicates == 2
    assert unused(before, 1) == 4, "an import that repeats a file is no use"


def test_an_import_may_bring_back_what_a_person_deleted():  # D13
    ctx = importing(tombstones={folded("One.")})
    assert len(bring(fold(saved(1, "One."), deleted(1)), [Incoming("One.")], ctx).events) == 1


def test_an_id_that_was_in_use_or_is_of_another_shard_is_not_taken_again():
    elsewhere = Incoming("One.", id=new_id(SHARD + 1, bytes(16)))
    assert all(k.bytes[0] == SHARD and k != elsewhere.id for k in after(MemoryList(), elsewhere).memories)
    assert FULL.id not in after(MemoryList(), FULL, taken={FULL.id}).memories
    state = after(MemoryList(), FULL)
    twin = Incoming("Another text.", id=FULL.id)
    assert len(after(state, twin).memories) == 2


@for_all(st.lists(st.sampled_from(["One.", "one.", "Two.", "Three.", " three. "]), max_size=8))
def test_the_same_file_again_changes_nothing(texts: list[str]):  # D12
    incoming = [Incoming(text) for text in texts]
    once = after(MemoryList(), *incoming)
    assert bring(once, incoming, importing()).events == ()
    assert len(once.memories) == len({folded(text) for text in texts})
