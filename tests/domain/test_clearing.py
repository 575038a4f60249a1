"""Clear all: two steps, for good (R18, C21)."""

from __future__ import annotations

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotAllowed, Refused
from remembrancer.domain.persona_memory import clear
from tests.domain.support import (
    DAY,
    by,
    cleared,
    deleted,
    evicted,
    fold,
    given,
    in_words,
    m,
    pinned,
    restored,
    rolled_back,
    saved,
    unpinned,
)

PINS = [saved(n, pinned=True) for n in range(201, 206)]
LIST_OF_120 = [*(saved(n) for n in range(1, 121)), *PINS]


def test_clear_all_takes_every_unpinned_memory_and_not_only_a_page():  # R18, C21
    came = given(LIST_OF_120).when(lambda s: clear(s, by("person")))
    came.then(e.MemoriesCleared, pinned=False, count=120, actor="person").and_nothing_else()
    assert set(came.state.memories) == {m(n) for n in range(201, 206)}


def test_a_second_call_clears_the_pinned_ones():  # R18, C21
    came = given(LIST_OF_120, cleared()).when(lambda s: clear(s, by("person"), pinned=True))
    came.then(e.MemoriesCleared, pinned=True, count=5).and_nothing_else()
    assert not came.state.memories


def test_the_pinned_ones_are_asked_about_only_after_the_others():  # R18
    came = given(LIST_OF_120).when(lambda s: clear(s, by("person"), pinned=True))
    in_words(came.refused(Refused, rule="R18", pinned=5, unpinned=120), "marked", "protected")


@pytest.mark.parametrize("since", [saved(300), saved(300, pinned=True), unpinned(201), [unpinned(201), pinned(201)]])
def test_what_came_after_the_first_step_makes_it_a_first_step_again(since: object):  # R18
    """What a person was asked about is no longer what would be cleared."""
    came = given(LIST_OF_120, cleared(), since).when(lambda s: clear(s, by("person"), pinned=True))
    came.refused(Refused, rule="R18")


def test_a_list_of_pinned_memories_alone_is_cleared_in_two_steps_too():  # R18
    given(PINS).when(lambda s: clear(s, by("person"), pinned=True)).refused(Refused, rule="R18")
    came = given(PINS).when(lambda s: clear(s, by("person")))
    came.then(e.MemoriesCleared, pinned=False, count=0)
    given(PINS, cleared()).when(lambda s: clear(s, by("person"), pinned=True)).then(e.MemoriesCleared, count=5)


def test_neither_restore_nor_undo_brings_back_what_was_cleared():  # R18
    before = [saved(1), saved(2), saved(3), deleted(1), evicted(2, turn="t")]
    undo = rolled_back("t", restored=[m(2)], unmatched={m(3): DAY})
    assert not fold(before, cleared(), restored(1), restored(3), undo).memories


@pytest.mark.parametrize("actor", ["persona", "deep", "import"])
def test_only_a_person_clears(actor: e.Actor):  # R15, R18
    given(LIST_OF_120).when(lambda s: clear(s, by(actor))).refused(NotAllowed, rule="R15")
