"""Searches and matches are facts: absorbed in any order, any number of times (DESIGN 2, T4, D1)."""

from __future__ import annotations

from datetime import date

from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.decay import LeftOut, SearchedDays, left_out
from remembrancer.domain.persona_memory import MemoryList
from tests.domain.support import DAY, Happening, days_after, fold, m, matched, saved, searched

MEMORIES = range(1, 5)
DAYS = st.integers(1, 4).map(lambda n: days_after(DAY, n))
SOME = st.lists(st.sampled_from(MEMORIES), unique=True)
SEARCHES = st.builds(lambda day, some: searched(day, hidden=some), DAYS, SOME) | st.builds(
    lambda day, some: searched(day, seen=some), DAYS, SOME
)
MATCHES = st.builds(lambda day, some: matched(*some, day=day), DAYS, SOME)
FACTS = st.lists(SEARCHES | MATCHES, max_size=10)
SAVES = [saved(n) for n in MEMORIES]


def what_they_say(state: MemoryList) -> tuple[SearchedDays, dict[int, tuple[int, object]]]:
    """All that anybody reads of it."""
    return state.days, {
        k.int: (x.unused_days(state.days), x.last_matched_at) for k, x in state.memories.items()
    }  # fmt: skip


@for_all(FACTS, st.randoms(use_true_random=False))
def test_the_order_of_facts_changes_nothing(facts: list[Happening], chance):  # D1
    shuffled = chance.sample(facts, len(facts))
    assert what_they_say(fold(SAVES, shuffled)) == what_they_say(fold(SAVES, facts))


@for_all(FACTS, st.data())
def test_a_fact_that_comes_again_changes_nothing(facts: list[Happening], data: st.DataObject):  # D1
    again = data.draw(st.lists(st.sampled_from(facts), max_size=4)) if facts else []
    assert what_they_say(fold(SAVES, facts, again)) == what_they_say(fold(SAVES, facts))


@for_all(FACTS)
def test_facts_about_memories_that_nobody_knows_are_passed_over(facts: list[Happening]):  # DESIGN 2
    state = fold(facts)
    assert not state.memories
    assert state.days == fold(SAVES, facts).days


@for_all(FACTS)
def test_a_memory_counts_the_days_on_which_some_search_saw_it(facts: list[Happening]):  # T4, T10
    """Told once more, search by search, as sets of who was seen on which day."""
    seen: dict[date, set[int]] = {}
    for event, _ in facts:
        if isinstance(event, e.ListSearched):
            left = {k.int for k in event.hidden}
            this = set(MEMORIES) - left if event.seen is None else {k.int for k in event.seen}
            seen.setdefault(event.day, set()).update(this)
    searches = [fact for fact in facts if isinstance(fact[0], e.ListSearched)]
    state = fold(SAVES, searches)
    for n in MEMORIES:
        assert state.memories[m(n)].unused_days(state.days) == sum(n in who for who in seen.values())


@for_all(st.lists(st.tuples(DAYS, SOME, st.booleans()), min_size=1, max_size=8))
def test_a_reply_records_its_search_exactly_if_that_changes_something(searches):  # T4
    days = SearchedDays()
    for day, some, all_but in searches:
        out = left_out([], [m(n) for n in some]) if all_but else left_out([m(n) for n in some])
        after = days.searched(day, out)
        assert days.ticks(day, out) is (after != days)
        assert not after.ticks(day, out)
        days = after


@for_all(SOME, SOME, st.booleans(), st.booleans(), st.sampled_from(MEMORIES))
def test_left_out_of_both_is_left_out_of_each(one, other, one_all_but, other_all_but, n):  # T10
    a = LeftOut(frozenset(m(k) for k in one), one_all_but)
    b = LeftOut(frozenset(m(k) for k in other), other_all_but)
    assert (m(n) in a.both(b)) is (m(n) in a and m(n) in b)
    assert a.both(b) == b.both(a)


def test_the_second_reply_of_a_day_writes_nothing():  # T4
    once = fold(SAVES, searched(days_after(DAY, 1)))
    assert not once.days.ticks(days_after(DAY, 1), left_out([m(1)]))
    assert once.days.ticks(days_after(DAY, 2), left_out([]))
