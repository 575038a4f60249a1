"""Editing and deleting: what counts as use, what protects, what is refused (T13, R15, D10-D13, D28, D31, C10)."""

from __future__ import annotations

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import (
    InvalidInput,
    IsPinned,
    NotAllowed,
    NotFound,
    SameAsAnother,
    TextTooLong,
    Tombstoned,
)
from remembrancer.domain.persona_memory import delete, edit
from remembrancer.domain.text import folded
from tests.domain.support import (
    DAY,
    GLOBAL,
    by,
    days_after,
    given,
    in_words,
    m,
    noon,
    saved,
    searched_days,
    unused,
)

LISBON = "Juno lives in Lisbon."
PORTO = "Juno lives in Porto."
OLD = days_after(DAY, -10)
AGED = [saved(1, LISBON, OLD), *searched_days(days_after(OLD, 1), 5)]


def test_an_update_leaves_one_memory_with_the_new_text_and_the_old_one_in_its_history():  # C10
    came = given(AGED).when(lambda s: edit(s, m(1), by("persona", turn="t"), text=PORTO))
    came.then(e.MemoryEdited, memory=m(1), text=PORTO, before=LISBON, day=DAY, actor="persona").and_nothing_else()
    assert [x.text for x in came.state.memories.values()] == [PORTO]


@pytest.mark.parametrize("actor", ["person", "persona", "deep"])
def test_an_edit_by_anyone_counts_as_use(actor: e.Actor):  # D11
    assert unused(given(AGED).when(lambda s: edit(s, m(1), by(actor), text=PORTO)).state, 1) == 0


def test_an_edit_by_a_person_protects_and_one_by_the_ai_does_not():  # D11, T13
    assert given(AGED).when(lambda s: edit(s, m(1), by("person"), text=PORTO)).memory(1).protected
    assert not given(AGED).when(lambda s: edit(s, m(1), by("persona"), text=PORTO)).memory(1).protected


def test_editing_and_saving_it_once_even_unchanged_protects_an_imported_memory():  # T13
    came = given(saved(1, LISBON, actor="import")).when(lambda s: edit(s, m(1), by("person")))
    came.then(e.MemoryEdited, text=LISBON, before=LISBON, protects=True).and_nothing_else()
    assert came.memory(1).protected


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_the_ai_may_edit_a_protected_memory_and_the_protection_stays(actor: e.Actor):  # D11
    came = given(saved(1, LISBON, protected=True)).when(lambda s: edit(s, m(1), by(actor), text=PORTO))
    assert came.memory(1).text == PORTO
    assert came.memory(1).protected


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_a_pinned_memory_is_out_of_reach_of_the_ai(actor: e.Actor):  # R15
    pinned = given(saved(1, LISBON, pinned=True))
    in_words(pinned.when(lambda s: edit(s, m(1), by(actor), text=PORTO)).refused(IsPinned, rule="R15"), "pinned")
    pinned.when(lambda s: edit(s, m(1), by(actor))).refused(IsPinned, rule="R15")
    pinned.when(lambda s: delete(s, m(1), by(actor))).refused(IsPinned, rule="R15", memory=str(m(1)))


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_global_memories_are_written_by_people_only(actor: e.Actor):  # R13, R15
    """The persona may rewrite and delete in its own lists, whoever wrote there; a global list is not its own."""
    ctx = by(actor, key=GLOBAL)
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), ctx, text=PORTO)).refused(NotAllowed, rule="R13")
    given(saved(1, LISBON)).when(lambda s: delete(s, m(1), ctx)).refused(NotAllowed, rule="R13")
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("person", key=GLOBAL), text=PORTO)).then(e.MemoryEdited)


def test_a_person_edits_and_deletes_a_pinned_memory():  # R15
    pinned = given(saved(1, LISBON, pinned=True))
    assert pinned.when(lambda s: edit(s, m(1), by("person"), text=PORTO)).memory(1).pinned
    pinned.when(lambda s: delete(s, m(1), by("person"))).then(e.MemoryDeleted, memory=m(1), actor="person")


@pytest.mark.parametrize("actor", ["person", "persona", "deep"])
def test_anyone_deletes_an_unpinned_memory_whoever_wrote_it(actor: e.Actor):  # R15, D11
    came = given(saved(1, LISBON, protected=True, actor="person")).when(lambda s: delete(s, m(1), by(actor)))
    came.then(e.MemoryDeleted, memory=m(1), actor=actor).and_nothing_else()
    assert not came.state.memories
    assert m(1) in came.state.gone, "recorded and restorable"


def test_an_edit_that_would_equal_another_memory_is_refused_with_its_id():  # D12
    came = given(saved(1, LISBON), saved(2, PORTO)).when(
        lambda s: edit(s, m(1), by("person"), text="juno LIVES in porto.")
    )
    in_words(came.refused(SameAsAnother, rule="D12", memory=str(m(2))), m(2))


def test_an_edit_of_its_own_case_and_spaces_is_no_duplicate_of_itself():  # D12
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("persona"), text=LISBON.upper())).then(
        e.MemoryEdited, text=LISBON.upper()
    )


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_the_ai_edits_nothing_into_what_a_person_deleted(actor: e.Actor):  # D13
    dead = {folded(PORTO)}
    came = given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by(actor, tombstones=dead), text=PORTO.upper()))
    came.refused(Tombstoned, rule="D13")


def test_a_person_may_edit_it_into_what_was_deleted():  # D13
    came = given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("person", tombstones={folded(PORTO)}), text=PORTO))
    came.then(e.MemoryEdited, text=PORTO)


def test_a_tombstone_of_its_own_sentence_does_not_forbid_to_touch_it():  # D13
    """A person saved again what was deleted; the persona may still give it a date."""
    ctx = by("persona", tombstones={folded(LISBON)})
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), ctx, until=DAY)).then(e.MemoryEdited, until=DAY)


@pytest.mark.parametrize("text", ["", "  ", "a\x00", "\ud800"])
def test_an_edit_into_no_text_is_refused(text: str):  # D10
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("person"), text=text)).refused(InvalidInput)


@pytest.mark.parametrize("text", [None, 5, ["a"]])
def test_an_edit_into_another_type_is_refused(text: object):
    given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("person"), text=text)).refused(InvalidInput)


def test_an_edit_into_501_characters_is_refused_with_both_numbers():  # D10, C14
    came = given(saved(1, LISBON)).when(lambda s: edit(s, m(1), by("person"), text="x" * 501))
    came.refused(TextTooLong, rule="D10", characters=501, max_characters=500)


def test_only_a_change_of_the_text_makes_it_new():  # R12
    """`updated_at` decides who is on the desk; a date, a tag or a duplicate save does not move it."""
    before = given(saved(1, LISBON, OLD))
    ctx = by("person")
    assert before.when(lambda s: edit(s, m(1), ctx, until=DAY, tags=("a",), channels=("b",))).memory(
        1
    ).updated_at == noon(OLD)
    assert before.when(lambda s: edit(s, m(1), ctx)).memory(1).updated_at == noon(OLD)
    after = before.when(lambda s: edit(s, m(1), ctx, text=PORTO)).memory(1)
    assert (after.updated_at, after.created_at) == (noon(DAY), noon(OLD))


def test_an_edit_leaves_alone_what_it_does_not_name_and_takes_away_what_it_names_as_none():  # D28
    before = given(saved(1, LISBON, until=DAY, tags=("home",), channels=("garden",)))
    kept = before.when(lambda s: edit(s, m(1), by("person"), text=PORTO)).memory(1)
    assert (kept.until, kept.tags, kept.channels) == (DAY, ("home",), ("garden",))
    bare = before.when(lambda s: edit(s, m(1), by("person"), until=None, tags=(), channels=())).memory(1)
    assert (bare.text, bare.until, bare.tags, bare.channels) == (LISBON, None, (), ())


def test_whoever_may_edit_an_expired_memory_can_extend_it():  # D28
    later = days_after(DAY, 5)
    came = given(saved(1, LISBON, until=days_after(DAY, -1))).when(lambda s: edit(s, m(1), by("persona"), until=later))
    assert not came.memory(1).expired(DAY)


def test_a_memory_that_never_was_is_an_error_that_names_it():  # D31
    for decide in (lambda s: edit(s, m(7), by("person"), text=PORTO), lambda s: delete(s, m(7), by("person"))):
        in_words(given(saved(1)).when(decide).refused(NotFound, rule="D31", memory=str(m(7))), m(7))
