"""The life of one memory, and its counter day by day: what `why` tells (U1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from typing import Any
from uuid import UUID

from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.life import Life, Rules, count, days_without_search, life_of, rested
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from tests.domain.support import DAY, Happening, days_after, edited, happening, m, matched, saved, searched

STREAM = UUID(int=7)


def recorded(happened: Sequence[Happening]) -> list[e.Recorded]:
    return [e.Recorded(event, STREAM, n, 0, n, at) for n, (event, at) in enumerate(happened, start=1)]


def told(happened: Sequence[Happening], number: int = 1) -> tuple[Life, MemoryList, list[e.Recorded]]:
    events = recorded(happened)
    return life_of(m(number), events), reduce(evolve, events, MemoryList()), events


def match_days(life: Life, events: Sequence[e.Recorded]) -> set[Any]:
    """What the store counts: days of matches that no later undo of their turn took back."""
    return {
        r.event.day
        for r in events
        if isinstance(r.event, e.MemoriesMatched)
        and life.memory in [one.memory for one in r.event.matches]
        and not r.position < life.undone.get(r.event.turn or "", 0)
    }


def counters(happened: Sequence[Happening], number: int = 1) -> list[tuple[int, str]]:
    life, state, events = told(happened, number)
    return [(one.unused_days, one.how) for one in count(life, state.days, match_days(life, events))]


def test_the_mochi_table_day_by_day():  # T1, T5, T8
    happened = [
        saved(1), searched(DAY),
        *(searched(days_after(DAY, n)) for n in (1, 2, 3, 4, 5, 6, 14)),
        searched(days_after(DAY, 16)), matched(1, day=days_after(DAY, 16)),
    ]  # fmt: skip
    assert [n for n, _ in counters(happened)] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    life, state, events = told(happened)
    moves = rested(count(life, state.days, match_days(life, events)), [])
    assert [(move.day, move.resting, move.unused_days) for move in moves] == [
        (days_after(DAY, 14), True, 7), (days_after(DAY, 16), False, 0),
    ]  # fmt: skip
    assert days_without_search(DAY, days_after(DAY, 16), state.days) == 8


def test_a_day_on_which_it_was_hidden_or_pinned_counts_nothing():  # T10, D3
    happened = [
        saved(1), saved(2),
        searched(days_after(DAY, 1), hidden=[1]),
        searched(days_after(DAY, 2)),
        happening(e.MemoryPinned, days_after(DAY, 3), memory=m(1)),
        searched(days_after(DAY, 3)), searched(days_after(DAY, 4)),
        happening(e.MemoryUnpinned, days_after(DAY, 5), memory=m(1)),
        searched(days_after(DAY, 6)),
    ]  # fmt: skip
    assert [how for _, how in counters(happened)] == [
        "used", "hidden", "counted", "pinned", "pinned", "used", "counted",
    ]  # fmt: skip
    assert counters(happened)[-1][0] == 1


def test_an_undone_match_is_no_use_and_one_of_a_later_attempt_is():  # D14, D19
    undo = happening(e.TurnRolledBack, days_after(DAY, 2), turn="t", unmatched={m(1): DAY})
    happened = [
        saved(1), searched(days_after(DAY, 1)), searched(days_after(DAY, 2)),
        matched(1, day=days_after(DAY, 2), turn="t"), undo,
    ]  # fmt: skip
    assert counters(happened)[-1] == (2, "counted")
    assert counters([*happened, matched(1, day=days_after(DAY, 2), turn="t")])[-1] == (0, "used")


def test_when_it_rested_is_told_by_the_rules_of_that_day():  # U1, SPEC 6
    happened = [saved(1), *(searched(days_after(DAY, n)) for n in range(1, 6))]
    life, state, _ = told(happened)
    counted = count(life, state.days, set())
    strict, loose = Policy(rest_after_days=3), Policy(rest_after_days=9)
    assert [x.day for x in rested(counted, [Rules(DAY, strict)])] == [days_after(DAY, 3)]
    assert rested(counted, [Rules(DAY, loose)]) == []
    later = rested(counted, [Rules(DAY, loose), Rules(days_after(DAY, 5), strict)])
    assert [(x.day, x.unused_days) for x in later] == [(days_after(DAY, 5), 5)]
    off = Policy(rest_after_days=3, decay_enabled=False)
    assert rested(counted, [Rules(DAY, off)]) == []


def test_clearing_ends_also_what_had_been_deleted_and_leaves_the_pinned():  # R18
    gone = happening(e.MemoryDeleted, DAY, memory=m(1))
    cleared = happening(e.MemoriesCleared, days_after(DAY, 1), pinned=False)
    life, _, _ = told([saved(1), gone, cleared])
    assert isinstance(life.end.event if life.end else None, e.MemoriesCleared)
    pinned, _, _ = told([saved(1), happening(e.MemoryPinned, DAY, memory=m(1)), cleared])
    assert pinned.there


def test_every_wording_is_kept_in_its_order_and_each_line_has_the_text_before_and_after():  # C10, C30
    life, _, _ = told([saved(1, "one"), edited(1, "two", before="one"), happening(e.MemoryDeleted, DAY, memory=m(1))])
    assert life.wordings == ["one", "two"]
    assert [(x.before, x.after) for x in life.lines] == [(None, "one"), ("one", "two"), ("two", None)]


acts = st.sampled_from(
    ["search", "search", "search", "hide", "match", "edit", "edit in a turn", "affirm", "pin", "unpin", "delete",
     "restore", "undo"]
)  # fmt: skip


@for_all(st.lists(st.tuples(acts, st.integers(0, 2)), max_size=30))
def test_the_counter_of_the_last_day_is_the_one_that_its_list_keeps(acts: list[tuple[str, int]]):  # T1, T4, D1, D14
    day, state = DAY, MemoryList()
    happened: list[Happening] = []
    uses: list[tuple[Any, str | None]] = []

    def happens(one: Happening) -> None:
        nonlocal state
        happened.append(one)
        state = evolve(state, recorded(happened)[-1])

    happens(saved(1, "text", turn="t0"))
    uses.append((day, None))
    for n, (act, pause) in enumerate(acts):
        day += timedelta(days=pause)
        here, turn = state.memories.get(m(1)), f"t{n}"
        if act in ("search", "hide"):
            happens(searched(day, hidden=[1] if act == "hide" else []))
        elif here is None:
            if act == "restore":
                happens(happening(e.MemoryRestored, day, memory=m(1)))
                uses.append((day, None))
        elif act == "match" and not here.pinned:
            happens(matched(1, day=day, turn=turn))
            uses.append((day, turn))
        elif act in ("edit", "edit in a turn"):
            actor = "person" if act == "edit" else "persona"
            happens(edited(1, "text", day, before="text", turn=turn, actor=actor))
            uses.append((day, None if act == "edit" else turn))
        elif act == "affirm":
            happens(happening(e.MemoryAffirmed, day, memory=m(1), turn=turn, actor="persona"))
            uses.append((day, turn))
        elif act == "pin" and not here.pinned:
            happens(happening(e.MemoryPinned, day, memory=m(1)))
        elif act == "unpin" and here.pinned:
            happens(happening(e.MemoryUnpinned, day, memory=m(1)))
            uses.append((day, None))
        elif act == "delete":
            happens(happening(e.MemoryDeleted, day, memory=m(1), turn=turn, actor="persona"))
        elif act == "undo" and not here.pinned and uses[-1][1] is not None:
            _, last = uses.pop()
            before = max(d for d, _ in uses)
            happens(happening(e.TurnRolledBack, day, turn=last, unmatched={m(1): before}))
    life, _, events = told(happened)
    here = state.memories.get(m(1))
    assert life.there is (here is not None)
    if here is not None and not here.pinned:  # while pinned, the counter stands still
        counted = count(life, state.days, match_days(life, events))
        assert counted[-1].unused_days == here.unused_days(state.days)
