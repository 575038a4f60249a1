"""The desk: what is sent with a reply from the start (R10, R12, R15, D2, D6), against cards dealt out."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.desk import OnDesk, choose_desk, is_recent
from tests.domain.support import DAY, days_after, m, noon
from tests.oracle.plain_desk import deal

NOON = noon(DAY)


def memories(first: int, number: int, *, pinned: bool = False) -> list[OnDesk]:
    """So many memories, each a minute newer than the one before."""
    return [OnDesk(m(n), NOON + timedelta(minutes=n), pinned) for n in range(first, first + number)]


def numbers(desk: list[list[UUID]]) -> list[list[int]]:
    return [[one.int for one in part] for part in desk]


def test_up_to_a_hundred_of_one_list_newest_first_printed_oldest_first():  # R12, T17
    assert numbers(choose_desk([memories(1, 120)], 100)) == [list(range(21, 121))]


def test_lists_share_the_desk_round_robin():  # R12
    desk = numbers(choose_desk([memories(1, 120), memories(201, 120)], 100))
    assert desk == [list(range(71, 121)), list(range(271, 321))]


def test_what_a_short_list_leaves_goes_to_the_others():  # R12
    desk = numbers(choose_desk([memories(1, 10), memories(201, 120), memories(401, 60)], 100))
    assert [len(part) for part in desk] == [10, 45, 45]


def test_the_odd_one_goes_to_the_list_that_comes_first():  # R12
    assert numbers(choose_desk([memories(1, 9), memories(201, 9), memories(401, 9)], 4)) == [[8, 9], [209], [409]]


def test_pinned_ones_are_all_there_and_take_no_room():  # R15
    pins = memories(901, 20, pinned=True)
    desk = choose_desk([memories(1, 120) + pins], 100)
    assert {one.id for one in pins} < set(desk[0])
    assert len(desk[0]) == 120
    assert numbers(choose_desk([pins + memories(1, 120)], 0)) == [[*range(901, 921)]], "not even where there is none"


def test_a_memory_that_was_edited_moves_to_the_front():  # R12
    old = OnDesk(m(999), NOON - timedelta(days=300), pinned=False)
    assert 999 not in numbers(choose_desk([[old, *memories(1, 100)]], 100))[0]
    new = old._replace(updated_at=NOON + timedelta(days=1))
    assert numbers(choose_desk([[new, *memories(1, 100)]], 100))[0][-1] == 999


def test_an_empty_desk_is_empty():  # R12
    assert choose_desk([], 100) == []
    assert choose_desk([[], []], 100) == [[], []]


@pytest.mark.parametrize(
    ("age", "recent"), [(timedelta(0), True), (timedelta(days=7, microseconds=-1), True), (timedelta(days=7), False)]
)
def test_recent_is_what_was_updated_in_the_last_seven_days(age: timedelta, recent: bool):  # R12
    assert is_recent(NOON - age, NOON, 7) is recent


def test_a_clock_that_went_back_makes_nothing_old():  # R12
    assert is_recent(NOON + timedelta(days=1), NOON, 7)


UPDATED = st.sampled_from([noon(days_after(DAY, n)) for n in range(4)])
LISTS = st.lists(st.lists(st.tuples(UPDATED, st.sampled_from([False, False, False, True])), max_size=9), max_size=4)


def numbered(lists: list[list[tuple[datetime, bool]]]) -> list[list[OnDesk]]:
    ids = iter(range(1, 100))
    return [[OnDesk(m(next(ids)), updated, pinned) for updated, pinned in one] for one in lists]


@for_all(LISTS, st.integers(0, 40))
def test_the_desk_is_dealt_out_like_cards(lists: list[list[tuple[datetime, bool]]], room: int):  # R12, R15
    have = numbered(lists)
    desk = choose_desk(have, room)
    assert [set(part) for part in desk] == deal([[tuple(one) for one in part] for part in have], room)


@for_all(LISTS, st.integers(0, 40))
def test_each_list_is_printed_oldest_first(lists: list[list[tuple[datetime, bool]]], room: int):  # R12, T17
    have = numbered(lists)
    stamps = {one.id: (one.updated_at, one.id) for part in have for one in part}
    for part in choose_desk(have, room):
        assert [stamps[one] for one in part] == sorted(stamps[one] for one in part)


@for_all(LISTS, st.integers(0, 40), st.randoms(use_true_random=False))
def test_the_desk_does_not_depend_on_the_order_inside_a_list(lists, room, chance):  # T17, D6
    have = numbered(lists)
    shuffled = [chance.sample(part, len(part)) for part in have]
    assert choose_desk(shuffled, room) == choose_desk(have, room)


@for_all(LISTS, st.integers(0, 40))
def test_unpinned_ones_fill_the_desk_exactly_or_are_all_there(
    lists: list[list[tuple[datetime, bool]]], room: int
):  # R12
    have = numbered(lists)
    unpinned = {one.id for part in have for one in part if not one.pinned}
    sent = {one for part in choose_desk(have, room) for one in part}
    assert len(sent & unpinned) == min(room, len(unpinned))
