"""Every command may come twice (a retry, a double click): the list is the same after the second as after the first."""

from __future__ import annotations

from typing import Any

from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotFound, RemembrancerError
from remembrancer.domain.persona_memory import MemoryList, NewMemory, clear, delete, edit, pin, save, unpin
from remembrancer.domain.policy import Policy
from tests.domain.support import (
    DAY,
    Before,
    Given,
    by,
    cleared,
    days_after,
    deleted,
    fold,
    given,
    m,
    matched,
    saved,
    searched_days,
)

POLICY = Policy(list_capacity=4, pin_capacity=2)
OLD = days_after(DAY, -10)
TEXTS = ["Fact number 1.", "FACT  number 1.", "Fact number 2.", "Something new.", "Something else."]
ACTORS: st.SearchStrategy[e.Actor] = st.sampled_from(["person", "person", "persona", "deep", "import"])


@st.composite
def lists(draw: st.DrawFn) -> MemoryList:
    """Up to six memories, some pinned or protected, some resting, some matched, some deleted, perhaps cleared."""
    what: list[Given] = []
    for n in range(1, draw(st.integers(0, 6)) + 1):
        flags = {"pinned": draw(st.booleans()), "protected": draw(st.booleans())}
        until = draw(st.sampled_from([None, None, OLD]))
        what.append(saved(n, day=OLD, until=until, **flags))
    what.append(searched_days(days_after(OLD, 1), draw(st.sampled_from([0, 3, 8]))))
    if draw(st.booleans()):
        what.append(matched(1, day=days_after(OLD, draw(st.integers(1, 9))), turn="t"))
    if draw(st.booleans()):
        what.append(deleted(2))
    if draw(st.sampled_from([False, False, True])):
        what.append(cleared())
    return fold(what)


@st.composite
def commands(draw: st.DrawFn) -> Any:
    """A decision, and the context in which it is taken twice."""
    ctx = by(draw(ACTORS), policy=POLICY, turn=draw(st.sampled_from([None, "t"])), search_ok=True)
    k = m(draw(st.integers(1, 6)))
    text, until = draw(st.sampled_from(TEXTS)), draw(st.sampled_from([None, DAY]))
    room = draw(st.none() | st.integers(1, 6).map(m))
    return draw(
        st.sampled_from(
            [
                lambda s: save(s, NewMemory(text, until=until), ctx, memory=m(100), make_room=room),
                lambda s: edit(s, k, ctx, text=text, until=until),
                lambda s: edit(s, k, ctx),
                lambda s: delete(s, k, ctx),
                lambda s: pin(s, k, ctx),
                lambda s: unpin(s, k, ctx, make_room=room),
                lambda s: clear(s, ctx),
                lambda s: clear(s, ctx, pinned=True),
            ]
        )
    )


def reads(state: MemoryList) -> dict[int, tuple[object, ...]]:
    """All that a reader sees of a list."""
    return {
        k.int: (
            x.text, x.until, x.tags, x.channels, x.pinned, x.protected, x.created_at, x.updated_at, x.last_matched_at,
            x.unused_days(state.days), x.state(state.days, POLICY, DAY),
        )
        for k, x in state.memories.items()
    }  # fmt: skip


@for_all(lists(), commands())
def test_a_command_that_comes_twice_is_as_good_as_once(before: MemoryList, command: Any):
    once = Before(before).when(command)
    twice = Before(once.state).when(command)
    assert reads(twice.state) == reads(once.state)
    assert set(twice.state.gone) == set(once.state.gone)


@for_all(lists(), commands())
def test_caps_bind_whatever_comes(before: MemoryList, command: Any):  # R9, D8
    """No command but an import makes a list longer than its cap, or longer than it stood over it; none loses two."""
    came = Before(before).when(command)
    by_import = any(ev.actor == "import" for ev in came.events)
    assert by_import or came.state.unpinned <= max(POLICY.list_capacity, before.unpinned)
    assert came.state.pinned <= max(POLICY.pin_capacity, before.pinned)
    assert sum(isinstance(ev, e.MemoryEvicted) for ev in came.events) <= 1


@for_all(lists(), commands())
def test_the_ai_never_touches_what_is_pinned(before: MemoryList, command: Any):  # R15
    came = Before(before).when(command)
    if any(ev.actor in ("persona", "deep") for ev in came.events):
        for k, x in before.memories.items():
            if x.pinned:
                after = came.state.memories[k]
                assert (after.text, after.until, after.pinned) == (x.text, x.until, True)


@for_all(lists(), commands())
def test_what_nobody_deleted_or_cleared_is_lost_only_by_the_rules_of_forgetting(
    before: MemoryList, command: Any
):  # T13
    came = Before(before).when(command)
    if any(isinstance(ev, (e.MemoryDeleted, e.MemoriesCleared)) for ev in came.events):
        return
    for k, x in before.memories.items():
        if k not in came.state.memories:
            assert not x.pinned
            assert not x.protected
            assert x.state(before.days, POLICY, DAY) != "active"
            assert k in came.state.gone, "and it can be brought back"


@for_all(lists(), commands())
def test_the_events_of_a_decision_have_ids_of_their_own_and_say_who_acted_where(
    before: MemoryList, command: Any
):  # D21
    events = Before(before).when(command).events
    assert len({ev.id for ev in events}) == len(events)
    assert len({(ev.actor, ev.turn, ev.tenant) for ev in events}) <= 1
    assert all(isinstance(ev, e.ListEvent) and ev.subject == "tea house" for ev in events)


def test_pinning_twice_says_nothing_the_second_time():
    ctx = by("person")
    given(saved(1, pinned=True)).when(lambda s: pin(s, m(1), ctx)).and_nothing_else()
    given(saved(1)).when(lambda s: unpin(s, m(1), ctx)).and_nothing_else()


def test_deleting_twice_finds_nothing_the_second_time():  # D31
    given(saved(1), deleted(1)).when(lambda s: delete(s, m(1), by("person"))).refused(NotFound, rule="D31")


def test_a_refusal_is_a_refusal_of_ours():
    """Nothing but the one family of errors comes out of a decision."""
    assert issubclass(NotFound, RemembrancerError)
