"""A memory that is used all the time keeps its last uses one by one and sums up the rest (D1, D14)."""

from __future__ import annotations

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from remembrancer.domain.memory import MAX_USES
from remembrancer.domain.persona_memory import MemoryList
from tests.domain.support import DAY, Given, days_after, fold, m, matched, rolled_back, saved, searched, unused
from tests.oracle.naive_decay import Diary

STEPS = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans(), st.booleans()), min_size=20, max_size=60)
"""Of each reply: days since the one before, does it match memory 1, does it match memory 2."""


def weeks(steps, carried: int) -> tuple[list[Given], Diary, list[str]]:
    """The same replies for the product and for the naive model."""
    what: list[Given] = [saved(1), saved(2, unused_days=carried, actor="import")]
    diary = Diary()
    diary.tell(DAY, "save", 1)
    diary.tell(DAY, "save", 2, days=carried)
    day, turns = DAY, []
    for number, (gap, *hit) in enumerate(steps):
        day = days_after(day, gap)
        turn = f"turn {number}"
        hits = [n for n in (1, 2) if hit[n - 1]]
        what += [searched(day), matched(*hits, day=day, turn=turn)]
        diary.tell(day, "search")
        for n in hits:
            diary.tell(day, "use", n, turn=turn)
        turns.append(turn)
    return what, diary, turns


def agree(state: MemoryList, diary: Diary) -> None:
    for n, counter in diary.counters().items():
        assert isinstance(n, int)
        assert unused(state, n) == counter.days
        assert len(state.memories[m(n)].uses) <= MAX_USES


def undone(turn: str, diary: Diary) -> Given:
    """Take a turn back in the diary; the event that says the same."""
    used = {t.memory for t in diary.told if t.turn == turn and not t.void and isinstance(t.memory, int)}
    diary.undo(turn, used)
    return rolled_back(turn, diary.told[-1].day, unmatched={m(n): diary.last_use(n) for n in used})


@for_all(STEPS, st.integers(0, 9))
@settings(max_examples=50)
def test_however_often_it_is_used_the_counter_is_that_of_the_naive_model(steps, carried):  # D1
    what, diary, _ = weeks(steps, carried)
    agree(fold(what), diary)


@for_all(STEPS, st.integers(17, 60))
@settings(max_examples=50)
def test_rewinding_many_turns_newest_first_gives_the_counters_back(steps, number):  # D14
    """Also past what is kept one by one: the undo says of which day the use before was."""
    what, diary, turns = weeks(steps, carried=0)
    state = fold(what)
    for n, turn in enumerate(reversed(turns[-number:])):
        state = fold(undone(turn, diary), state=state)
        if n > 14:
            agree(state, diary)


@for_all(STEPS, st.integers(1, 8))
@settings(max_examples=50)
def test_undoing_any_turn_of_the_last_few_once_or_twice_gives_the_counters_back(steps, back):  # D14
    what, diary, turns = weeks(steps, carried=4)
    undo = undone(turns[-back], diary)
    once = fold(what, undo)
    agree(once, diary)
    agree(fold(undo, state=once), diary)


def test_the_last_match_survives_the_summing_up():  # T12
    days = [days_after(DAY, n) for n in range(1, MAX_USES + 10)]
    state = fold(saved(1), [matched(1, day=day, turn=f"{day}") for day in reversed(days)])
    memory = state.memories[m(1)]
    assert memory.last_matched_at is not None
    assert memory.last_matched_at.date() == days[-1]
    assert memory.since == days[-1]
