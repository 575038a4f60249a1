"""Taking back a turn on one list, and bringing back one memory (D14, D8, U2, R15, R18)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as any_of
from hypothesis import settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotFound, SameAsAnother
from remembrancer.domain.events import Recorded
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.undo import BY_A_LATER_TURN, BY_A_PERSON, PINNED, restore, roll_back
from tests.domain.support import (
    DAY,
    affirmed,
    by,
    days_after,
    deleted,
    edited,
    evicted,
    flat,
    m,
    matched,
    pinned,
    rolled_back,
    saved,
    searched,
)

LATER = days_after(DAY, 3)


def recorded(*what):
    return [Recorded(ev, m(0), n, 0, n, at) for n, (ev, at) in enumerate(flat(what), start=1)]


def folded(events) -> MemoryList:
    state = MemoryList()
    for r in events:
        state = evolve(state, r)
    return state


def undone(*what, turn="t"):
    """The state, the event that takes the turn back, and the state after it."""
    events = recorded(*what)
    state = folded(events)
    ctx = replace(by("person"), turn=turn)
    event = roll_back(state, [r for r in events if r.event.turn == turn], ctx, lambda memory: memory.base_day)
    after = state if event is None else evolve(state, Recorded(event, m(0), 99, 0, 99, events[-1].recorded_at))
    return state, event, after


def test_what_the_turn_saved_goes():
    _, event, after = undone(saved(1, turn="s"), saved(2, turn="t"))
    assert event.removed == (m(2),)
    assert set(after.memories) == {m(1)}
    assert m(2) not in after.gone, "it never was: no restore brings it back"


def test_what_the_turn_edited_is_worded_as_before_with_its_stamps():
    before, event, after = undone(saved(1, "Juno lives in Lisbon."), edited(1, "Juno lives in Porto.", LATER, turn="t"))
    assert event.reverted == (m(1),)
    old, back = folded(recorded(saved(1, "Juno lives in Lisbon."))).memories[m(1)], after.memories[m(1)]
    assert (back.text, back.updated_at, back.since) == (old.text, old.updated_at, old.since)
    assert before.memories[m(1)].text == "Juno lives in Porto."


def test_what_the_turn_deleted_or_evicted_is_back_as_it_was():
    was = folded(recorded(saved(1), saved(2), matched(2, turn="s")))
    _, event, after = undone(
        saved(1), saved(2), matched(2, turn="s"), deleted(1, actor="persona", turn="t"), evicted(2, turn="t")
    )
    assert event.restored == (m(1), m(2))
    assert after.memories == was.memories


def test_what_the_turn_matched_is_as_if_it_had_not_been_and_the_day_stays_counted():
    _, event, after = undone(saved(1), searched(days_after(DAY, 1)), searched(LATER), matched(1, day=LATER, turn="t"))
    assert event.unmatched == {m(1): DAY}
    assert after.memories[m(1)].unused_days(after.days) == 2
    assert after.memories[m(1)].last_matched_at is None


def test_a_pinned_memory_stays_as_it_is_and_says_so():
    for what in (saved(1, turn="t"), [saved(1), edited(1, "Other.", turn="t")], [saved(1), matched(1, turn="t")]):
        before, event, after = undone(what, pinned(1))
        assert event.kept == ((m(1), PINNED),)
        assert after.memories == before.memories


def test_what_a_person_edited_or_confirmed_after_the_turn_stays():
    for act in (edited(1, "By hand.", LATER, actor="person"), affirmed(1, LATER, actor="person", protects=True)):
        before, event, after = undone(saved(1, turn="t"), act)
        assert event.kept == ((m(1), BY_A_PERSON),)
        assert after.memories == before.memories


def test_what_a_later_turn_changed_again_is_kept():
    _, event, after = undone(saved(1), edited(1, "Once.", turn="t"), edited(1, "Twice.", LATER, turn="u"))
    assert event.kept == ((m(1), BY_A_LATER_TURN),)
    assert after.memories[m(1)].text == "Twice."


def test_what_a_person_did_in_the_turn_is_not_taken_back():
    _, event, after = undone(saved(1, actor="person", turn="t"), saved(2), deleted(2, actor="person", turn="t"))
    assert event is None
    assert set(after.memories) == {m(1)}


def test_a_forgotten_sentence_that_was_saved_anew_meanwhile_is_not_doubled():
    _, event, after = undone(saved(1, "Juno likes tea."), evicted(1, turn="t"), saved(2, "juno LIKES tea.", turn="u"))
    assert event.restored == ()
    assert event.kept[0][0] == m(1)
    assert set(after.memories) == {m(2)}


def test_undoing_twice_is_the_same_as_once():
    events = [saved(1), saved(2, turn="t"), matched(1, turn="t")]
    _, event, after = undone(*events)
    again = undone(*events, (event, recorded(*events)[-1].recorded_at))
    assert again[1] is None
    assert again[2] == after


def test_a_turn_that_was_undone_and_asked_for_again_is_undone_with_its_new_attempt_only():
    _, first, _ = undone(saved(1, turn="t"))
    _, event, after = undone(saved(1, turn="t"), (first, recorded(saved(1))[0].recorded_at), saved(2, turn="t"))
    assert event.removed == (m(2),)
    assert after.memories == {}


def test_undoing_later_turns_newest_first_is_the_state_before_them():
    start = [saved(1, "One."), searched(DAY)]
    later = [
        edited(1, "Two.", LATER, turn="b"), saved(2, turn="b"), edited(1, "Three.", LATER, turn="c"),
        deleted(2, actor="persona", turn="c"),
    ]  # fmt: skip
    events = recorded(*start, *later)
    state = folded(events)
    for turn in ("c", "b"):
        ctx = replace(by("person"), turn=turn)
        event = roll_back(state, [r for r in events if r.event.turn == turn], ctx, lambda memory: memory.base_day)
        state = evolve(state, Recorded(event, m(0), 99, 0, 99, events[-1].recorded_at))
    assert state.memories == folded(recorded(*start)).memories


def test_a_restored_memory_starts_at_zero_and_is_protected():
    state = folded(recorded(saved(1), evicted(1, LATER)))
    (event,) = restore(state, m(1), by("person", day=LATER))
    after = evolve(state, Recorded(event, m(0), 9, 0, 9, recorded(saved(1, day=LATER))[0].recorded_at))
    assert after.memories[m(1)].protected
    assert after.memories[m(1)].unused_days(after.days) == 0
    assert restore(after, m(1), by("person")) == ()


def test_what_was_cleared_or_undone_or_never_was_cannot_be_restored():
    from tests.domain.support import cleared

    for what in ([saved(1), cleared()], [saved(1, turn="t"), rolled_back("t", removed=[m(1)])], [saved(2)]):
        with pytest.raises(NotFound):
            restore(folded(recorded(*what)), m(1), by("person"))


def test_a_memory_whose_sentence_stands_in_the_list_again_is_not_restored_beside_it():
    state = folded(recorded(saved(1, "Tea."), deleted(1), saved(2, "tea.")))
    with pytest.raises(SameAsAnother):
        restore(state, m(1), by("person"))


@st.composite
def stories(draw):
    """A few turns of a persona, and what a person and the search do in between; ids are never used twice."""
    story, alive, number = [], [], 0
    for step in range(draw(st.integers(2, 18))):
        day = days_after(DAY, step // 3)
        turn = draw(st.sampled_from("abcd"))
        kind = draw(st.sampled_from(["save", "save", "edit", "delete", "match", "match", "search", "affirm"]))
        if kind == "save" or not alive:
            number += 1
            alive.append(number)
            story.append(saved(number, f"Fact {number} of {step}.", day, turn=turn))
        elif kind == "search":
            story.append(searched(day))
        else:
            one = draw(st.sampled_from(alive))
            if kind == "edit":
                story.append(edited(one, f"Fact {one} as of {step}.", day, turn=turn))
            elif kind == "match":
                story.append(matched(one, day=day, turn=turn))
            elif kind == "affirm":
                story.append(affirmed(one, day, actor="persona", turn=turn))
            else:
                alive.remove(one)
                story.append(deleted(one, day, actor="persona", turn=turn))
    return story


@settings(max_examples=200, deadline=None)
@any_of(stories(), st.sampled_from("abcd"))
def test_undoing_a_turn_that_nobody_touched_after_is_the_story_without_it(story, turn):
    """D14, but for its exceptions: here no later turn changes what this one wrote."""
    touched = {k for ev, _ in story if ev.turn == turn for k in _named(ev)}
    story = [
        (ev, at)
        for n, (ev, at) in enumerate(story)
        if not (
            ev.turn not in (turn, None)
            and touched & set(_named(ev))
            and isinstance(ev, e.MemoryEdited | e.MemoryDeleted | e.MemorySaved)
            and any(o.turn == turn and set(_named(o)) & set(_named(ev)) for o, _ in story[:n])
        )
    ]
    _, _, after = undone(*story, turn=turn)
    without = folded(recorded(*[(ev, at) for ev, at in story if ev.turn != turn]))
    assert {k: (x.text, x.unused_days(after.days), x.updated_at) for k, x in after.memories.items()} == {
        k: (x.text, x.unused_days(without.days), x.updated_at) for k, x in without.memories.items()
    }


def _named(ev):
    if isinstance(ev, e.MemoriesMatched):
        return [x.memory for x in ev.matches]
    return [ev.memory] if hasattr(ev, "memory") else []
