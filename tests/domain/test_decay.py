"""Decay: which days count, when a memory rests, what brings it back (T1, T4-T9, T11, D1, D2, D3, D22, D28, U3)."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.decay import rests
from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.persona_memory import MemoryList, unpin
from remembrancer.domain.policy import Policy
from tests.domain.support import (
    DAY,
    affirmed,
    by,
    days_after,
    edited,
    evicted,
    fold,
    given,
    happening,
    m,
    matched,
    pinned,
    restored,
    rolled_back,
    saved,
    searched,
    searched_days,
    state_of,
    unpinned,
    unused,
)

TOMORROW = days_after(DAY, 1)


def on_desk(state: MemoryList, number: int, today: date = DAY) -> bool:
    """Is it sent from the start with a reply whose search has not run yet (D2)?"""
    policy = Policy()
    sendable = [
        OnDesk(x.id, x.updated_at, x.pinned)
        for x in state.memories.values()
        if x.pinned or x.state(state.days, policy, today) == "active"
    ]
    return m(number) in choose_desk([sendable], policy.desk_limit)[0]


def test_the_mochi_table():  # T1, T4, T5, T6, T7
    """The oracle of SPEC 2, row by row."""
    talk = [saved(1, "Juno's cat is named Mochi."), searched(DAY)]
    assert unused(fold(talk), 1) == 0

    talk += searched_days(TOMORROW, 6)
    assert (unused(fold(talk), 1), state_of(fold(talk), 1)) == (6, "active")

    next_chat_day = days_after(DAY, 14)
    assert unused(fold(talk), 1) == 6, "a quiet week counts nothing (T8)"
    before = fold(talk)
    talk += [searched(next_chat_day)]
    assert (unused(fold(talk), 1), state_of(fold(talk), 1)) == (7, "resting")
    assert on_desk(before, 1, next_chat_day), "it is still on the desk of the reply in which it reaches 7 (D2)"
    assert not on_desk(fold(talk), 1, next_chat_day), "and gone from the next (D2)"

    later_day = days_after(DAY, 20)
    talk += [searched(later_day), matched(1, day=later_day)]
    assert (unused(fold(talk), 1), state_of(fold(talk), 1)) == (0, "active")
    assert on_desk(fold(talk), 1, later_day), "recalled, and on the next desk (D2)"


def test_a_visitor_who_comes_monthly_needs_seven_visits_before_their_memories_rest():  # T9
    visits = [searched(days_after(DAY, 30 * month)) for month in range(1, 8)]
    assert state_of(fold(saved(1), visits[:6]), 1) == "active"
    assert state_of(fold(saved(1), visits), 1) == "resting"


def test_a_day_counts_once_however_many_messages_are_sent():  # T4
    assert unused(fold(saved(1), [searched(TOMORROW)] * 50), 1) == 1


def test_a_memory_that_nobody_talks_near_never_rests():  # T8
    assert state_of(fold(saved(1)), 1, today=days_after(DAY, 3650)) == "active"


def test_being_on_the_desk_is_not_being_used():  # T7
    """Active memories age like all others: seven searched days without a match, and it rests."""
    assert state_of(fold(saved(1), searched_days(TOMORROW, 7)), 1) == "resting"


def test_the_counter_goes_on_beyond_the_limit_so_that_a_later_rule_can_bring_it_back():  # T1, U3
    state = fold(saved(1), searched_days(TOMORROW, 9))
    assert unused(state, 1) == 9
    assert state_of(state, 1) == "resting"
    assert state_of(state, 1, policy=Policy(rest_after_days=10)) == "active"
    assert state_of(state, 1, policy=Policy(rest_after_days=9)) == "resting"


@pytest.mark.parametrize("days", [0, 6, 7, 8])
def test_at_seven_counted_days_a_memory_rests(days: int):  # T5
    assert state_of(fold(saved(1), searched_days(TOMORROW, days)), 1) == ("resting" if days >= 7 else "active")


USES = {"edited": edited(1, "Other words.", DAY), "said again": affirmed(1, DAY), "matched": matched(1, day=DAY)}


@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("order", ["search first", "search last"])
def test_a_use_uses_up_the_tick_of_its_day_in_whatever_order_that_day_went(how: str, order: str):
    """D1: 0 at the end of a day on which it was saved, edited, said again or matched."""
    before = [saved(1, day=days_after(DAY, -5)), *searched_days(days_after(DAY, -4), 4)]
    again = USES[how]
    that_day = [again, searched(DAY)] if order == "search last" else [searched(DAY), again]
    assert unused(fold(before), 1) == 4
    assert unused(fold(before, that_day), 1) == 0
    assert unused(fold(before, that_day, searched(TOMORROW)), 1) == 1


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_save_uses_up_the_tick_of_its_day(order: list[int]):  # D1
    that_day = [saved(1), searched(DAY)]
    assert unused(fold([that_day[i] for i in order]), 1) == 0


def test_a_restore_and_an_unpin_use_up_the_tick_of_their_day_too():  # D1, D3, U2
    aged = [saved(1, day=days_after(DAY, -8)), *searched_days(days_after(DAY, -7), 7)]
    assert unused(fold(aged, evicted(1), restored(1), searched(DAY)), 1) == 0
    assert unused(fold(aged, pinned(1), unpinned(1), searched(DAY)), 1) == 0


def test_a_clock_that_went_back_never_ticks_a_day_again():  # D1
    state = fold(saved(1), searched(TOMORROW), searched(days_after(DAY, 2)))
    assert unused(fold(searched(TOMORROW), searched(DAY), state=state), 1) == unused(state, 1) == 2


def test_a_late_reply_of_yesterday_counts_for_yesterday():  # D1
    day_2 = days_after(DAY, 2)
    assert unused(fold(saved(1), searched(day_2), searched(TOMORROW)), 1) == 2
    assert unused(fold(saved(1), searched(day_2), matched(1, day=TOMORROW), searched(TOMORROW)), 1) == 1


def test_a_hidden_memory_does_not_age():  # T10, D22, D28
    """The reply names who was not searched: by a tag, a channel, its date, or for want of a vector."""
    assert unused(fold(saved(1), saved(2), searched(TOMORROW, hidden=[1])), 1) == 0
    assert unused(fold(saved(1), saved(2), searched(TOMORROW, hidden=[1])), 2) == 1


def test_where_almost_all_is_hidden_naming_the_few_that_were_seen_says_the_same():  # T10
    saves = [saved(n) for n in range(1, 6)]
    short = fold(saves, searched(TOMORROW, seen=[4]))
    long = fold(saves, searched(TOMORROW, hidden=[1, 2, 3, 5]))
    assert [unused(short, n) for n in range(1, 6)] == [unused(long, n) for n in range(1, 6)] == [0, 0, 0, 1, 0]


def test_a_memory_ages_on_a_day_if_any_reply_of_that_day_saw_it():  # T4, T10
    """Hidden in the first reply of the day, seen in the second: its tick comes after all, once."""
    first, second = searched(TOMORROW, hidden=[1]), searched(TOMORROW, seen=[1])
    assert unused(fold(saved(1), first), 1) == 0
    assert unused(fold(saved(1), first, second), 1) == 1
    assert unused(fold(saved(1), first, second, first), 1) == 1


def test_a_use_does_not_clear_the_days_on_which_it_was_hidden_before_an_undo_takes_the_use_back():  # T10, D14
    talk = [saved(1), searched(TOMORROW, hidden=[1]), searched(days_after(DAY, 2))]
    use = matched(1, day=days_after(DAY, 3), turn="t")
    undo = rolled_back("t", days_after(DAY, 3), unmatched={m(1): DAY})
    assert unused(fold(talk, use, undo), 1) == 1


def test_an_undone_match_is_forgotten_but_the_day_stays_counted():  # D14
    day_7 = days_after(DAY, 7)
    talk = [saved(1), *searched_days(TOMORROW, 7), matched(1, day=day_7, turn="t")]
    assert unused(fold(talk), 1) == 0
    assert unused(fold(talk, rolled_back("t", day_7, unmatched={m(1): DAY})), 1) == 7


def test_what_an_undo_brings_back_has_counted_the_days_meanwhile():  # D14
    talk = [saved(1), saved(2), searched(TOMORROW), evicted(1, TOMORROW, turn="t")]
    meanwhile = [searched(days_after(DAY, 2)), searched(days_after(DAY, 3), seen=[2])]
    state = fold(talk, meanwhile, rolled_back("t", days_after(DAY, 3), restored=[m(1)]))
    assert unused(state, 1) == 3


def test_a_match_recorded_after_an_eviction_counts_if_the_eviction_is_undone():  # D14
    talk = [saved(1), *searched_days(TOMORROW, 7)]
    day_8 = days_after(DAY, 8)
    meanwhile = [evicted(1, day_8, turn="t"), matched(1, day=day_8, turn="another"), searched(day_8)]
    state = fold(talk, meanwhile, rolled_back("t", day_8, restored=[m(1)]))
    assert unused(state, 1) == 0


def test_an_undo_leaves_alone_what_a_person_did_in_that_turn():  # D14
    day_2 = days_after(DAY, 2)
    act = edited(1, "Juno lives in Porto.", day_2, actor="person", turn="t")
    state = fold(saved(1), searched(TOMORROW), act, rolled_back("t", day_2, unmatched={m(1): day_2}))
    assert unused(state, 1) == 0
    gone = fold(saved(1), evicted(1, actor="person", turn="t"))
    assert gone.gone[m(1)].turn is None


def test_a_pinned_memory_neither_ticks_nor_rests():  # D3
    day_5 = days_after(DAY, 5)
    state = fold(saved(1), searched_days(TOMORROW, 5), pinned(1, day_5), searched_days(days_after(day_5, 1), 20))
    assert unused(state, 1) == 5
    assert state_of(state, 1) == "active"


def test_unpinning_sets_the_counter_to_0_and_pinning_does_not_protect_afterwards():  # D3
    days = [saved(1), *searched_days(TOMORROW, 9), pinned(1, days_after(DAY, 9))]
    today = days_after(DAY, 10)
    came = given(days, day=today).when(lambda s: unpin(s, m(1), by("person", day=today)))
    came.then(e.MemoryUnpinned, memory=m(1), day=today).and_nothing_else()
    assert unused(came.state, 1) == 0
    assert not came.memory(1).protected


def test_with_decay_off_every_memory_counts_as_active_also_those_that_rested():  # T11
    off = Policy(decay_enabled=False)
    state = fold(saved(1), searched_days(TOMORROW, 30))
    assert state_of(state, 1, policy=off) == "active"
    assert state_of(state, 1) == "resting", "the counters are kept and hold again when decay is back"


def test_an_imported_memory_goes_on_where_it_was():  # SPEC 2, D8
    """Its days come with it, and the days on which this list was searched before it came do not count again."""
    talk = searched_days(days_after(DAY, -5), 5)
    state = fold(talk, saved(1, day=DAY, actor="import", unused_days=4), searched(DAY))
    assert unused(state, 1) == 4
    assert unused(fold(searched(TOMORROW), state=state), 1) == 5
    assert unused(fold(matched(1, day=TOMORROW), state=state), 1) == 0


def test_a_late_match_of_yesterday_does_not_undo_the_days_that_a_recount_set():  # U3
    recount = happening(e.UseRecounted, DAY, unused_days={m(1): 5})
    state = fold(saved(1, day=days_after(DAY, -9)), recount, matched(1, day=days_after(DAY, -1)))
    assert unused(state, 1) == 5


def test_editing_a_pinned_memory_counts_as_use():  # D11
    talk = [saved(1), *searched_days(TOMORROW, 5), pinned(1, days_after(DAY, 5))]
    assert unused(fold(talk, edited(1, "New words.", days_after(DAY, 6), actor="person")), 1) == 0


def test_what_rests_is_asked_of_plain_numbers():  # T5, T11, D3
    assert rests(7, pinned=False, rest_after_days=7, decay_enabled=True)
    assert not rests(6, pinned=False, rest_after_days=7, decay_enabled=True)
    assert not rests(99, pinned=True, rest_after_days=7, decay_enabled=True)
    assert not rests(99, pinned=False, rest_after_days=7, decay_enabled=False)


@pytest.mark.parametrize(("today", "state"), [(DAY - timedelta(1), "active"), (DAY, "active"), (TOMORROW, "expired")])
@pytest.mark.parametrize("is_pinned", [False, True])
@pytest.mark.parametrize("decay", [True, False])
def test_a_memory_with_a_date_is_true_on_that_day_and_expired_from_the_next(
    today: date, state: str, is_pinned: bool, decay: bool
):
    """D28: also when pinned and with decay off."""
    have = fold(saved(1, until=DAY, pinned=is_pinned))
    assert state_of(have, 1, policy=Policy(decay_enabled=decay), today=today) == state
