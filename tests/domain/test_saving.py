"""Saving: room, who is forgotten, what is refused, what is the same (T12-T14, R13, D7, D8, D10-D13, D21, D22, D29)."""

from __future__ import annotations

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, ListFull, NotAllowed, TextTooLong, Tombstoned
from remembrancer.domain.persona_memory import Context, MemoryList, NewMemory, Saved, save
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Tombstones
from remembrancer.domain.text import folded
from tests.domain.support import (
    DAY,
    GLOBAL,
    KEY,
    PERSONAL,
    Given,
    by,
    days_after,
    fold,
    given,
    happening,
    in_words,
    m,
    matched,
    noon,
    saved,
    searched,
    searched_days,
    state_of,
    unused,
)

SMALL = Policy(list_capacity=3)
NEW = m(100)
YESTERDAY = days_after(DAY, -1)
A_REPLY = {"turn": "t", "search_ok": True}
OLD = days_after(DAY, -10)


def remember(text: str, ctx: Context, **how: object):
    """Save this."""
    return lambda s: save(s, NewMemory(text), ctx, memory=NEW, **how)


def resting(*numbers: int, **fields: object) -> list[Given]:
    """Memories saved ten days ago, in order, with nine searched days since."""
    return [*(saved(n, day=OLD, **fields) for n in numbers), searched_days(days_after(OLD, 1), 9)]


# -- into a list with room


def test_a_list_with_room_takes_it():  # T14
    came = given(resting(1, 2)).when(
        remember("Juno plays the oboe.", by("persona", policy=SMALL, turn="t", search_ok=False))
    )
    came.then(e.MemorySaved, memory=NEW, text="Juno plays the oboe.", day=DAY, pinned=False).and_nothing_else()


def test_the_event_says_who_said_it_in_which_turn_and_under_which_policy():  # D21
    source = e.Source(chat="tea house/garden", messages=("17", "18"))
    ctx = by("persona", turn="t", request_id="r", search_ok=True, policy_version=3)
    came = given().when(lambda s: save(s, NewMemory("Juno plays the oboe.", source=source), ctx, memory=NEW))
    came.then(
        e.MemorySaved, tenant="acme", persona=KEY.persona, scope=KEY.scope, subject=KEY.subject, actor="persona",
        turn="t", request_id="r", source=source, policy=3,
    )  # fmt: skip
    memory = came.memory(100)
    assert (memory.actor, memory.turn, memory.source) == ("persona", "t", source)


def test_left_out_the_actor_of_an_event_is_a_person():  # D21
    assert e.MemoryDeleted.model_fields["actor"].default == "person"


@pytest.mark.parametrize(
    ("actor", "protects"), [("person", True), ("persona", False), ("deep", False), ("import", False)]
)
def test_what_a_person_adds_is_protected_and_nothing_else_is(actor: e.Actor, protects: bool):  # T13
    came = given().when(remember("Juno plays the oboe.", by(actor)))
    came.then(e.MemorySaved, protected=protects)
    assert came.memory(100).protected is protects


def test_a_new_memory_has_a_counter_of_0():  # T1
    came = given(searched_days(days_after(DAY, -20), 20)).when(remember("Juno plays the oboe.", by("persona")))
    assert unused(came.state, 100) == 0


def test_date_tags_and_channels_come_with_it():  # T10, D28
    new = NewMemory("Juno is in Faro.", until=DAY, tags=("travel",), channels=("garden",))
    came = given().when(lambda s: save(s, new, by("person"), memory=NEW))
    came.then(e.MemorySaved, until=DAY, tags=("travel",), channels=("garden",))
    memory = came.memory(100)
    assert (memory.until, memory.tags, memory.channels) == (DAY, ("travel",), ("garden",))


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_a_model_saves_no_global_memory(actor: e.Actor):  # R13
    error = given().when(remember("Juno plays the oboe.", by(actor, key=GLOBAL))).refused(NotAllowed, rule="R13")
    in_words(error, "personal")


def test_a_person_saves_a_global_memory_under_every_persona():  # R13
    came = given().when(remember("Juno plays the oboe.", by("person", key=GLOBAL)))
    came.then(e.MemorySaved, persona="*", scope="global", subject="juno")


# -- the texts


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u2003\u3000", "a\x00b", "half \ud83d", "\udc31 half"])
def test_what_is_no_text_is_refused_and_nothing_written(text: str):  # D10
    given().when(remember(text, by("person"))).refused(InvalidInput)


@pytest.mark.parametrize("text", [None, 7, b"bytes", ["a", "list"]])
def test_what_is_not_even_a_string_is_refused_by_its_kind(text: object):
    error = given().when(remember(text, by("person"))).refused(InvalidInput)
    in_words(error, type(text).__name__)


def test_501_characters_are_refused_with_both_numbers_and_500_are_kept_exactly():  # D10, C14
    error = given().when(remember("x" * 501, by("person"))).refused(
        TextTooLong, rule="D10", characters=501, max_characters=500
    )  # fmt: skip
    in_words(error, 501, 500)
    given().when(remember("x" * 500, by("person"))).then(e.MemorySaved, text="x" * 500)


def test_characters_are_code_points_whatever_they_look_like():  # D10, C14
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"  # one picture, five code points
    accented = "e\u0301"  # one letter, two code points
    text = family * 60 + accented * 100
    assert len(text) == 500
    given().when(remember(text, by("person"))).then(e.MemorySaved, text=text)
    given().when(remember(text + "!", by("person"))).refused(TextTooLong, rule="D10", characters=501)


def test_a_text_is_stored_as_sent_with_its_spaces_and_its_own_normal_form():  # D10
    text = "  Cafe\u0301 \ufb01n\r\n\tof Juno\u2028 "
    given().when(remember(text, by("person"))).then(e.MemorySaved, text=text)


# -- the same again


@pytest.mark.parametrize(
    "again",
    [
        "juno's CAT is named mochi.",
        "  Juno's   cat\nis named\tMochi. ",
        "Juno's cat is named \uff2dochi.",
    ],
)
def test_the_same_sentence_in_other_case_spaces_or_width_is_no_second_memory(again: str):  # D12
    came = given(saved(1, "Juno's cat is named Mochi.", OLD), searched_days(days_after(OLD, 1), 5)).when(
        remember(again, by("persona", turn="t"))
    )
    came.then(e.MemoryAffirmed, memory=m(1), day=DAY, protects=False).and_nothing_else()
    assert came.answer.duplicate
    assert came.answer.memory == m(1)
    assert unused(came.state, 1) == 0, "which counts as use"
    assert came.memory(1).text == "Juno's cat is named Mochi.", "the first is returned as it is"


def test_composed_and_decomposed_letters_are_the_same_sentence():  # D12
    came = given(saved(1, "Caf\u00e9 Stra\u00dfe")).when(remember("CAFE\u0301 STRASSE", by("persona")))
    came.then(e.MemoryAffirmed, memory=m(1))


def test_a_duplicate_by_a_person_protects():  # D12, T13
    came = given(saved(1, "Juno plays the oboe.")).when(remember("juno plays the oboe.", by("person")))
    came.then(e.MemoryAffirmed, protects=True)
    assert came.memory(1).protected


def test_a_duplicate_by_the_persona_does_not_take_protection_away():  # D12, D11
    came = given(saved(1, "Juno plays the oboe.", protected=True)).when(remember("Juno plays the oboe.", by("persona")))
    assert came.memory(1).protected


def test_a_duplicate_needs_no_room_and_forgets_nothing():  # D12
    full = [*resting(1, 2), saved(3, "Juno plays the oboe.")]
    came = given(full).when(remember("Juno plays the oboe.", by("person", policy=SMALL)))
    came.then(e.MemoryAffirmed, memory=m(3)).and_nothing_else()


def test_a_duplicate_that_brings_a_date_carries_it_over():  # D12, D28
    later = days_after(DAY, 30)
    came = given(saved(1, "Juno is in Faro.", until=DAY)).when(
        lambda s: save(s, NewMemory("juno is in faro.", until=later), by("persona"), memory=NEW)
    )
    came.then(e.MemoryEdited, memory=m(1), text="Juno is in Faro.", until=later).and_nothing_else()
    assert came.answer.duplicate


def test_the_persona_changes_no_date_of_a_pinned_memory_by_saying_it_again():  # R15
    new = NewMemory("Juno is in Faro.", until=days_after(DAY, 30))
    came = given(saved(1, "Juno is in Faro.", pinned=True)).when(lambda s: save(s, new, by("persona"), memory=NEW))
    came.then(e.MemoryAffirmed, memory=m(1)).and_nothing_else()
    assert came.memory(1).until is None


def test_another_list_may_hold_the_same_sentence():  # R10, D12
    """Lists are apart: the decision sees one list only."""
    given().when(remember("Juno plays the oboe.", by("persona", key=PERSONAL))).then(e.MemorySaved, scope="personal")


# -- what a person deleted


TOMBSTONE = {"tombstones": {folded("Juno is afraid of geese.")}}


@pytest.mark.parametrize("actor", ["persona", "deep"])
def test_what_a_person_deleted_is_not_learned_again_in_other_case_and_spaces(actor: e.Actor):  # D13, C5
    came = given().when(remember("  JUNO is afraid\nof geese. ", by(actor, **TOMBSTONE)))
    in_words(came.refused(Tombstoned, rule="D13"), "deleted", "person")


@pytest.mark.parametrize("actor", ["person", "import"])
def test_a_person_and_an_import_may_save_it_again(actor: e.Actor):  # D13, C5
    given().when(remember("Juno is afraid of geese.", by(actor, **TOMBSTONE))).then(e.MemorySaved, memory=NEW)


def test_a_tombstone_does_not_refuse_what_is_there_again():  # D12, D13
    came = given(saved(1, "Juno is afraid of geese.")).when(
        remember("Juno is afraid of geese.", by("persona", **TOMBSTONE))
    )
    came.then(e.MemoryAffirmed, memory=m(1))


def test_tombstones_are_kept_by_subject_whatever_the_list():  # D13
    placed = Tombstones().evolve(tombstone(list=m(50), memory=m(1), sentence="Juno  is AFRAID of geese."))
    assert placed.sentences == {"juno is afraid of geese."}


def test_a_restore_lifts_the_tombstone_of_its_memory_and_a_clear_those_of_its_list():  # D13, R18
    placed = Tombstones()
    for list_, memory in ((50, 1), (50, 2), (51, 3)):
        placed = placed.evolve(tombstone(list=m(list_), memory=m(memory), sentence=f"Sentence {memory}"))
    after_restore = placed.evolve(happening(e.TombstonesLifted, DAY, list=m(50), memory=m(1))[0])
    assert after_restore.sentences == {"sentence 2", "sentence 3"}
    after_clear = placed.evolve(happening(e.TombstonesLifted, DAY, list=m(50))[0])
    assert after_clear.sentences == {"sentence 3"}


def test_the_same_sentence_deleted_twice_is_one_tombstone_each():  # D13
    """Lifting one memory's tombstone leaves the other's, which says the same."""
    placed = Tombstones().evolve(tombstone(list=m(50), memory=m(1), sentence="Geese."))
    placed = placed.evolve(tombstone(list=m(50), memory=m(2), sentence="GEESE."))
    assert placed.evolve(happening(e.TombstonesLifted, DAY, list=m(50), memory=m(1))[0]).sentences == {"geese."}


def tombstone(**fields: object) -> e.Event:
    return happening(e.TombstonePlaced, DAY, **fields)[0]


# -- into a full list: the persona


def test_into_a_full_list_the_persona_s_save_forgets_one_resting_memory():  # T12, T15
    came = given(resting(1, 2), saved(3)).when(remember("Juno plays the oboe.", by("persona", policy=SMALL, **A_REPLY)))
    came.then(e.MemoryEvicted, memory=m(1), for_memory=NEW, actor="persona", turn="t")
    came.then(e.MemorySaved, memory=NEW).and_nothing_else()
    assert came.answer.forgotten.memory.id == m(1)
    assert "never matched" in came.answer.forgotten.reason
    assert came.state.unpinned == 3


def test_the_one_before_the_last_place_forgets_nothing_and_the_next_one_does():  # T12
    """Capacity less one, capacity, and over: nobody, one, one."""
    ctx = by("persona", policy=SMALL, **A_REPLY)
    assert given(resting(1, 2)).when(remember("New.", ctx)).answer.forgotten is None
    assert given(resting(1, 2, 3)).when(remember("New.", ctx)).answer.forgotten is not None
    assert given(resting(1, 2, 3, 4)).when(remember("New.", ctx)).answer.forgotten is not None


def test_a_list_that_stands_over_its_cap_forgets_exactly_one_and_never_shrinks():  # D8
    came = given(resting(*range(1, 8))).when(remember("New.", by("persona", policy=SMALL, **A_REPLY)))
    came.then(e.MemoryEvicted).then(e.MemorySaved).and_nothing_else()
    assert came.state.unpinned == 7


def test_pinned_memories_take_no_place():  # R9
    pins = [saved(n, day=OLD, pinned=True) for n in range(10, 30)]
    came = given(resting(1, 2), pins).when(remember("New.", by("persona", policy=SMALL, **A_REPLY)))
    came.then(e.MemorySaved).and_nothing_else()


def test_where_none_may_be_forgotten_the_save_is_refused_with_count_limit_and_a_way_out():  # T14, C12
    came = given(saved(1), saved(2), saved(3)).when(remember("New.", by("persona", policy=SMALL, **A_REPLY)))
    error = came.refused(ListFull, rule="T14", count=3, capacity=3)
    in_words(error, "3 of 3", "Delete", "pin")


def test_where_the_search_of_the_reply_failed_nothing_is_forgotten():  # T14
    ctx = by("persona", policy=SMALL, turn="t", search_ok=False)
    error = given(resting(1, 2, 3)).when(remember("New.", ctx)).refused(ListFull, rule="T14", count=3, capacity=3)
    in_words(error, "search")


def test_a_search_earlier_that_day_does_not_help_a_reply_whose_own_search_failed():  # T14
    ctx = by("persona", policy=SMALL, turn="t", search_ok=False)
    given(resting(1, 2, 3), searched(DAY)).when(remember("New.", ctx)).refused(ListFull, rule="T14")


def test_outside_a_turn_the_persona_makes_room_only_if_the_list_was_searched_that_day():  # D29
    ctx = by("persona", policy=SMALL)
    given(resting(1, 2, 3)).when(remember("New.", ctx)).refused(ListFull, rule="D29")
    given(resting(1, 2, 3), searched(DAY)).when(remember("New.", ctx)).then(e.MemoryEvicted, memory=m(1))


def test_with_decay_off_a_full_list_refuses_saves_and_forgets_nothing():  # T11
    off = Policy(list_capacity=3, decay_enabled=False)
    for actor in ("persona", "person"):
        came = given(resting(1, 2, 3)).when(remember("New.", by(actor, policy=off, **A_REPLY)))
        in_words(came.refused(ListFull, rule="T14", would_forget=None), "decay is off")


def test_the_background_pass_never_forgets():  # R16
    ctx = by("deep", policy=SMALL)
    given(resting(1, 2, 3), searched(DAY)).when(remember("New.", ctx)).refused(ListFull, rule="R16")


@pytest.mark.parametrize("numbers", [range(1, 4), range(1, 8)])
def test_an_import_binds_itself_to_no_cap_and_forgets_nothing(numbers: range):  # D8
    came = given(resting(*numbers)).when(remember("New.", by("import", policy=SMALL)))
    came.then(e.MemorySaved).and_nothing_else()


def test_memories_without_a_vector_yet_are_not_forgotten():  # D22
    ctx = by("persona", policy=SMALL, without_vector={m(1), m(2)}, **A_REPLY)
    given(resting(1, 2, 3)).when(remember("New.", ctx)).then(e.MemoryEvicted, memory=m(3))
    ctx = by("persona", policy=SMALL, without_vector={m(1), m(2), m(3)}, **A_REPLY)
    given(resting(1, 2, 3)).when(remember("New.", ctx)).refused(ListFull, rule="T14")


def test_the_correction_of_an_old_fact_is_never_what_is_dropped():  # C13
    """A full list of resting facts: room is made among the old, and the new sentence stands."""
    came = given(resting(1, 2, 3)).when(remember("Juno moved to Porto.", by("persona", policy=SMALL, **A_REPLY)))
    assert m(100) in came.state.memories
    assert state_of(came.state, 100) == "active"


# -- into a full list: a person


def test_a_person_is_told_what_would_be_forgotten_and_nothing_is():  # D7
    came = given(resting(1, 2, 3)).when(remember("New.", by("person", policy=SMALL)))
    error = came.refused(ListFull, rule="D7", would_forget=str(m(1)), text="Fact number 1.", count=3, capacity=3)
    in_words(error, m(1), "Fact number 1.", "make_room")


def test_naming_it_makes_room():  # D7
    came = given(resting(1, 2, 3)).when(remember("New.", by("person", policy=SMALL), make_room=m(1)))
    came.then(e.MemoryEvicted, memory=m(1), for_memory=NEW, actor="person").then(e.MemorySaved).and_nothing_else()


def test_naming_one_that_is_not_first_in_line_is_refused_with_the_one_that_is():  # D7
    """Meanwhile the one that was named has been matched; the refusal names who is first now."""
    meanwhile = matched(1, day=YESTERDAY, at=noon(YESTERDAY))
    came = given(resting(1, 2, 3), meanwhile).when(remember("New.", by("person", policy=SMALL), make_room=m(1)))
    error = came.refused(ListFull, rule="D7", would_forget=str(m(2)), text="Fact number 2.")
    in_words(error, m(1), m(2))


def test_a_person_needs_no_search_that_day_to_make_room():  # D7, T14
    ctx = by("person", policy=SMALL, turn="t", search_ok=False)
    given(resting(1, 2, 3)).when(remember("New.", ctx, make_room=m(1))).then(e.MemoryEvicted, memory=m(1))


def test_making_room_where_there_is_room_forgets_nothing():  # D7
    came = given(resting(1, 2)).when(remember("New.", by("person", policy=SMALL), make_room=m(1)))
    came.then(e.MemorySaved).and_nothing_else()


def test_a_full_global_list_forgets_nothing_not_even_for_a_person():  # T13
    came = given(resting(1, 2, 3)).when(remember("New.", by("person", key=GLOBAL, policy=SMALL), make_room=m(1)))
    came.refused(ListFull, rule="T14", would_forget=None)


# -- reading what is not there


def test_an_empty_list_reads_as_empty():  # D31
    empty = MemoryList()
    assert (dict(empty.memories), empty.unpinned, empty.pinned) == ({}, 0, 0)
    assert isinstance(save(empty, NewMemory("First."), by("persona"), memory=NEW), Saved)
    assert fold() == empty
