"""What a message brought to mind (T3, T6, D5, D6, C11)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.events import Candidate
from remembrancer.domain.matching import Scored, choose_matches, rank
from tests.domain.support import DAY, m, noon

NOON = noon(DAY)


def scored(number: int, score: float, *, list_no: int = 0, minutes: int = 0) -> Scored:
    return Scored(m(number), list_no, score, score, 0.0, NOON + timedelta(minutes=minutes))


def choose(*found: Scored, threshold: float = 0.5, limit: int = 3, on_desk: set[int] | None = None) -> list[Candidate]:
    desk = {m(n) for n in on_desk or ()}
    return choose_matches(rank(found), threshold=threshold, match_limit=limit, on_desk=desk)


def matched(candidates: list[Candidate]) -> list[int]:
    return [c.memory.int for c in candidates if c.matched]


def test_the_three_best_match():  # T3
    assert matched(choose(*(scored(n, 0.9 - n / 100) for n in range(1, 7)))) == [1, 2, 3]


def test_one_pool_of_three_over_all_lists_together():  # T3
    """Not three of each list."""
    found = [scored(n, 0.9 - n / 100, list_no=n % 3) for n in range(1, 10)]
    assert matched(choose(*found)) == [1, 2, 3]


def test_only_what_reaches_the_threshold_matches():  # T3, D5
    assert matched(choose(scored(1, 0.6), scored(2, 0.5), scored(3, 0.4999))) == [1, 2]


def test_the_threshold_is_the_call_s_own_and_no_fixed_floor():  # D5
    found = [scored(1, 0.3), scored(2, 0.2)]
    assert matched(choose(*found, threshold=0.25)) == [1]
    assert matched(choose(*found, threshold=-1.0)) == [1, 2]
    assert matched(choose(scored(1, 1.4), threshold=1.5)) == []


@pytest.mark.parametrize("limit", [0, 1, 3, 5])
def test_the_policy_says_how_many(limit: int):  # T3, SPEC 6
    assert len(matched(choose(*(scored(n, 0.9) for n in range(1, 10)), limit=limit))) == limit


def test_of_equals_the_older_matches_and_then_the_lower_id():  # D6
    assert matched(choose(scored(1, 0.9, minutes=1), scored(2, 0.9), limit=1)) == [2]
    assert matched(choose(scored(2, 0.9), scored(1, 0.9), limit=1)) == [1]


def test_a_match_that_is_not_on_the_desk_is_recalled():  # T6
    chosen = choose(scored(1, 0.9), scored(2, 0.8), on_desk={1})
    assert [c.recalled for c in chosen] == [False, True]


def test_a_memory_on_the_desk_that_also_matches_is_in_the_prompt_once():  # C11
    assert not any(c.recalled for c in choose(scored(1, 0.9), on_desk={1}))


def test_a_near_miss_is_kept_with_its_numbers_but_neither_matches_nor_is_recalled():  # U1
    near = choose(scored(1, 0.9), scored(2, 0.49))[1]
    assert (near.score, near.rank, near.matched, near.recalled) == (0.49, 2, False, False)


def test_the_numbers_beside_the_score_are_recorded_and_do_not_rank():  # SPEC 1
    first = Scored(m(1), 0, 0.9, 0.2, 17.5, NOON)
    second = Scored(m(2), 0, 0.8, 0.99, 99.0, NOON)
    chosen = choose(second, first)
    assert [(c.memory, c.similarity, c.words, c.rank) for c in chosen] == [(m(1), 0.2, 17.5, 1), (m(2), 0.99, 99.0, 2)]


def test_a_search_that_found_nothing_matches_nothing():  # T3
    assert choose() == []


SCORES = st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.5, 0.8]), st.integers(0, 2)), max_size=12)


@for_all(SCORES, st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_the_order_in_which_they_were_found(scores, limit, chance):  # D6
    found = [scored(n, score, minutes=minutes) for n, (score, minutes) in enumerate(scores, start=1)]
    chosen = choose(*found, limit=limit)
    assert choose(*chance.sample(found, len(found)), limit=limit) == chosen
    assert [c.rank for c in chosen] == list(range(1, len(found) + 1))
    wanted = sorted((-s.score, s.created_at, s.id) for s in found if s.score >= 0.5)[:limit]
    assert [(-c.score, c.memory) for c in chosen if c.matched] == [(score, id_) for score, _, id_ in wanted]
