"""Pins: their budget, what they spare a memory, and the way back (R9, R15, D3, D7, D9)."""

from __future__ import annotations

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import ListFull, NotAllowed, NotFound, PinsFull
from remembrancer.domain.persona_memory import pin, unpin
from remembrancer.domain.policy import Policy
from tests.domain.support import DAY, by, days_after, given, in_words, m, noon, saved, searched_days, state_of, unused

TWENTY = [saved(n, at=noon(days_after(DAY, -n)), pinned=True) for n in range(1, 21)]
OLD = days_after(DAY, -10)
SMALL = Policy(list_capacity=2)


def test_the_20th_pin_is_taken():  # R9, D9
    came = given(TWENTY[:19], saved(50)).when(lambda s: pin(s, m(50), by("person")))
    came.then(e.MemoryPinned, memory=m(50), day=DAY).and_nothing_else()
    assert came.state.pinned == 20


def test_the_21st_pin_is_refused_and_says_what_is_pinned_oldest_first():  # D9
    error = (
        given(TWENTY, saved(50)).when(lambda s: pin(s, m(50), by("person"))).refused(PinsFull, rule="D9", capacity=20)
    )
    assert [one["id"] for one in error.details["pinned"]] == [str(m(n)) for n in range(20, 0, -1)]
    in_words(error, *(f"Fact number {n}." for n in range(1, 21)))


def test_the_budget_of_pins_is_apart_from_the_capacity_of_the_list():  # R9
    """A list may hold 100 unpinned and, on top, 20 pinned."""
    state = given(TWENTY, [saved(n) for n in range(101, 201)]).state
    assert (state.unpinned, state.pinned) == (100, 20)


@pytest.mark.parametrize("actor", ["persona", "deep", "import"])
def test_only_a_person_pins_and_unpins(actor: e.Actor):  # R15
    given(saved(1)).when(lambda s: pin(s, m(1), by(actor))).refused(NotAllowed, rule="R15")
    given(saved(1, pinned=True)).when(lambda s: unpin(s, m(1), by(actor))).refused(NotAllowed, rule="R15")


def test_pinning_a_resting_memory_puts_it_back_among_the_active():  # D3, R15
    resting = [saved(1, day=OLD), *searched_days(days_after(OLD, 1), 9)]
    came = given(resting).when(lambda s: pin(s, m(1), by("person")))
    assert state_of(came.state, 1) == "active"
    assert unused(came.state, 1) == 9, "the counter stands still"


def test_unpinning_into_a_list_with_room_forgets_nothing():  # D3
    came = given(saved(1, day=OLD, pinned=True), saved(2)).when(lambda s: unpin(s, m(1), by("person", policy=SMALL)))
    came.then(e.MemoryUnpinned, memory=m(1), day=DAY).and_nothing_else()


def test_unpinning_into_a_full_list_needs_room_like_a_save():  # D7
    full = [saved(1, day=OLD), saved(2, day=OLD), saved(3, day=OLD, pinned=True), *searched_days(days_after(OLD, 1), 9)]
    ctx = by("person", policy=SMALL)
    given(full).when(lambda s: unpin(s, m(3), ctx)).refused(ListFull, rule="D7", would_forget=str(m(1)))
    given(full).when(lambda s: unpin(s, m(3), ctx, make_room=m(2))).refused(ListFull, rule="D7", would_forget=str(m(1)))
    came = given(full).when(lambda s: unpin(s, m(3), ctx, make_room=m(1)))
    came.then(e.MemoryEvicted, memory=m(1), for_memory=m(3)).then(e.MemoryUnpinned, memory=m(3)).and_nothing_else()
    assert (unused(came.state, 3), came.state.unpinned) == (0, 2)


def test_unpinning_into_a_full_list_where_none_may_go_is_refused():  # T14, D7
    full = [saved(1), saved(2), saved(3, pinned=True)]
    given(full).when(lambda s: unpin(s, m(3), by("person", policy=SMALL))).refused(ListFull, rule="T14")


def test_a_memory_that_is_not_there_is_neither_pinned_nor_unpinned():  # D31
    given().when(lambda s: pin(s, m(1), by("person"))).refused(NotFound, rule="D31")
    given().when(lambda s: unpin(s, m(1), by("person"))).refused(NotFound, rule="D31")
