"""What a deleted persona knew of people becomes theirs everywhere (R11, D8, D25)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import reduce
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, new_id
from remembrancer.domain.moving import to_global
from remembrancer.domain.persona_memory import Context, MemoryList, evolve
from remembrancer.domain.policy import Policy

MINE, EVERYWHERE = ListKey("mira", "personal", "juno"), ListKey("*", "global", "juno")
DAY = date(2026, 5, 4)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def context(key: ListKey) -> Context:
    numbers = iter(range(1, 10_000))
    return Context(
        "t",
        key,
        "person",
        DAY,
        Policy(pin_capacity=1, list_capacity=2),
        lambda: new_id(7, next(numbers).to_bytes(16, "big")),
    )


def listed(key: ListKey, texts: list[tuple[str, bool, bool]], first: int) -> MemoryList:
    events = [
        e.MemorySaved(
            id=UUID(int=n), tenant="t", **key._asdict(), memory=UUID(int=first + n), text=text, day=DAY, pinned=pinned,
            protected=protected, unused_days=n % 9,
        )
        for n, (text, pinned, protected) in enumerate(texts)
    ]  # fmt: skip
    return after(MemoryList(), events)


def after(state: MemoryList, events) -> MemoryList:
    recorded = (e.Recorded(ev, UUID(int=1), n, 0, n, NOON) for n, ev in enumerate(events, 1))
    return reduce(evolve, recorded, state)


memories = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "A", "e "]), st.booleans(), st.booleans()),
    max_size=6, unique_by=lambda one: one[0].strip().casefold(),
)  # fmt: skip


@given(mine=memories, theirs=memories)
def test_r11_none_disappears_and_where_both_say_the_same_one_stays_with_pin_and_protection_of_either(mine, theirs):
    personal, everywhere = listed(MINE, mine, 100), listed(EVERYWHERE, theirs, 200)
    moved = to_global(personal, everywhere, context(MINE), context(EVERYWHERE))
    assert after(personal, moved.out).memories == {}
    got = {m.text.strip().casefold(): (m.pinned, m.protected) for m in after(everywhere, moved.into).memories.values()}
    expected: dict[str, tuple[bool, bool]] = {}
    for text, pinned, protected in [*mine, *theirs]:
        was = expected.get(text.strip().casefold(), (False, False))
        expected[text.strip().casefold()] = (was[0] or pinned, was[1] or protected)
    assert got == expected
    assert len(after(everywhere, moved.into).memories) == len(expected)


def test_d8_no_cap_binds_and_counters_come_along():
    personal = listed(MINE, [(f"fact {n}", True, False) for n in range(9)], 100)
    moved = to_global(personal, MemoryList(), context(MINE), context(EVERYWHERE))
    there = after(MemoryList(), moved.into)
    assert there.pinned == 9
    assert sorted(m.unused_days(there.days) for m in there.memories.values()) == list(range(9))
