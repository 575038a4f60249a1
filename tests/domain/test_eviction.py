"""Who is forgotten first (T12, T13, D6, D22, D28), by example and against a comparison of two."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.decay import SearchedDays
from remembrancer.domain.eviction import first_in_line
from remembrancer.domain.memory import Memory
from remembrancer.domain.policy import Policy
from tests.domain.support import DAY, Given, days_after, edited, fold, m, matched, noon, saved, searched_days
from tests.oracle.plain_eviction import Kept, forgotten_first

OLD = days_after(DAY, -30)
NINE_DAYS = searched_days(days_after(DAY, -9), 9)


def first(*what: Given, today: date = DAY, policy: Policy | None = None, is_global: bool = False) -> int | None:
    state = fold(*what)
    line = first_in_line(state.memories.values(), state.days, policy or Policy(), today, is_global=is_global)
    return None if line is None else line.memory.id.int


def matched_on(number: int, days_ago: int, hour: int = 12) -> Given:
    day = days_after(DAY, -days_ago)
    return matched(number, day=day, at=noon(day) + timedelta(hours=hour - 12), turn=f"{number} {days_ago} {hour}")


def test_one_never_matched_goes_before_one_matched_long_ago():  # T12
    assert first(saved(1, day=OLD), matched_on(1, 29), saved(2, day=days_after(OLD, 1)), NINE_DAYS) == 2


def test_of_those_once_matched_the_one_whose_last_match_is_longest_ago_goes():  # T12
    """Not the first match, and not the last use: an edit is none."""
    talk = [saved(1, day=OLD), saved(2, day=OLD), saved(3, day=OLD)]
    matches = [matched_on(1, 29), matched_on(1, 11), matched_on(2, 20), matched_on(3, 15)]
    assert first(talk, matches, edited(2, "New words.", days_after(DAY, -10)), NINE_DAYS) == 2


def test_matches_of_one_day_are_told_apart_by_the_clock():  # T12
    assert first(saved(1, day=OLD), saved(2, day=OLD), matched_on(1, 20, 15), matched_on(2, 20, 9), NINE_DAYS) == 2


def test_of_equals_the_older_goes_and_then_the_lower_id():  # D6
    assert first(saved(1, day=days_after(OLD, 1)), saved(2, day=OLD), NINE_DAYS) == 2
    assert first(saved(2, day=OLD), saved(1, day=OLD), NINE_DAYS) == 1


def test_active_memories_are_never_forgotten_however_old():  # T12
    assert first(saved(1, day=OLD), searched_days(days_after(DAY, -6), 6)) is None


@pytest.mark.parametrize("spared", [{"pinned": True}, {"protected": True}])
def test_pinned_and_protected_memories_are_never_forgotten(spared: dict[str, bool]):  # T13
    assert first(saved(1, day=OLD, **spared), NINE_DAYS) is None
    assert first(saved(1, day=OLD, until=OLD, **spared), NINE_DAYS) is None, "not even expired"


def test_a_protected_memory_still_rests():  # T13
    state = fold(saved(1, day=OLD, protected=True), NINE_DAYS)
    assert state.memories[m(1)].state(state.days, Policy(), DAY) == "resting"


def test_a_global_memory_is_never_forgotten():  # T13
    assert first(saved(1, day=OLD), NINE_DAYS, is_global=True) is None


def test_an_expired_one_goes_first_even_if_active_and_lately_matched():  # D28
    yesterday = days_after(DAY, -1)
    assert first(saved(1, day=OLD), saved(2, day=OLD, until=yesterday), NINE_DAYS, matched_on(2, 2)) == 2


def test_on_its_last_day_it_has_not_expired():  # D28
    assert first(saved(1, day=days_after(DAY, -1), until=DAY)) is None
    assert first(saved(1, day=days_after(DAY, -1), until=DAY), today=days_after(DAY, 1)) == 1


def test_with_decay_off_nothing_is_forgotten_not_even_what_has_expired():  # T11
    off = Policy(decay_enabled=False)
    assert first(saved(1, day=OLD, until=OLD), saved(2, day=OLD), NINE_DAYS, policy=off) is None


def test_the_reason_says_why_it_was_first():  # T15, U1
    def reason(*what: Given) -> str:
        state = fold(*what)
        line = first_in_line(state.memories.values(), state.days, Policy(), DAY)
        assert line is not None
        return line.reason

    assert reason(saved(1, day=OLD), NINE_DAYS) == "resting after 9 unused days, never matched"
    assert "last matched 2026-04-14 12:00 UTC, longest ago" in reason(saved(1, day=OLD), matched_on(1, 20), NINE_DAYS)
    assert reason(saved(1, day=OLD, until=OLD)) == "its date 2026-04-04 has passed"


STAMPS = st.sampled_from(
    [noon(OLD), noon(OLD) + timedelta(minutes=1), noon(days_after(OLD, 3)), noon(days_after(OLD, 9))]
)


@st.composite
def lists_to_make_room_in(draw: st.DrawFn) -> tuple[list[Memory], list[Kept]]:
    """The same list twice: as the product knows it, and in plain words."""
    memories, plain = [], []
    for number in draw(st.permutations(range(1, draw(st.integers(1, 8)) + 1))):
        state = draw(st.sampled_from(["active", "resting", "resting", "expired"]))
        kept = Kept(
            id=number,
            state=state,
            created_at=draw(STAMPS),
            last_matched_at=draw(st.none() | STAMPS),
            pinned=state != "resting" and draw(st.booleans()),
            protected=draw(st.sampled_from([False, False, True])),
            has_vector=draw(st.sampled_from([True, True, False])),
        )
        plain.append(kept)
        memories.append(as_memory(kept))
    return memories, plain


def as_memory(kept: Kept) -> Memory:
    used: datetime = noon(days_after(DAY, -3) if kept.state == "active" else OLD)
    return Memory(
        id=m(kept.id),
        text=f"{kept.id}",
        created_at=kept.created_at,
        updated_at=kept.created_at,
        actor="persona",
        base_day=used.date(),
        base_matched_at=kept.last_matched_at,
        until=days_after(DAY, -1) if kept.state == "expired" else None,
        pinned=kept.pinned,
        protected=kept.protected,
    )


@for_all(lists_to_make_room_in(), st.booleans(), st.sampled_from([True, True, False]))
def test_the_first_in_line_is_the_one_before_which_no_other_goes(
    both: tuple[list[Memory], list[Kept]], is_global: bool, decay_enabled: bool
):  # T11, T12, T13, D6, D22, D28
    memories, plain = both
    days = SearchedDays(tuple(days_after(DAY, n) for n in range(-9, 0)))
    line = first_in_line(
        memories,
        days,
        Policy(decay_enabled=decay_enabled),
        DAY,
        is_global=is_global,
        without_vector={m(k.id) for k in plain if not k.has_vector},
    )
    wanted = forgotten_first(plain, is_global=is_global, decay_enabled=decay_enabled)
    assert (None if line is None else line.memory.id.int) == wanted
