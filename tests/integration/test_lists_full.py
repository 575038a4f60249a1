"""A list without room: who is forgotten, who never is, and when nobody is (T12-T15, D6-D8, D22, D28, D29, C12, C13)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import ListFull
from tests.support.world import SERVER, START, World, audiences, desk, recalled

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
SISTER = "Aiko has a sister in Osaka"
NEW = "Ren plays the flute"


@pytest.fixture
def small(database_url: str) -> Iterator[World]:
    """A world whose lists hold three memories."""
    with World(database_url, list_capacity=3) as one:
        yield one


def fill(world: World, **how: Any) -> list[UUID]:
    """Three memories that rest after seven days of other talk; it is the eighth day, which has not been searched."""
    ids = [world.save(text, **how) for text in (CAT, TEA, SISTER)]
    world.talk(range(1, 8))
    world.day(8)
    return ids


def forgotten(answer: Any) -> list[str]:
    return [f.memory.text for f in answer.forgotten]


def test_t12_a_save_into_a_full_list_forgets_one_resting_memory_first_those_never_matched(small: World):
    cat, tea, sister = (small.save(text) for text in (CAT, TEA, SISTER))
    for number, message in ((1, "how is Mochi?"), (2, "Osaka?"), (3, "how is Mochi?")):
        small.day(number)
        small.say(message)
    small.talk(range(4, 11))
    turn = small.say().turn
    assert small.states(cat, tea, sister) == ["resting"] * 3
    for new, expected in ((NEW, TEA), ("Kaito likes rain", SISTER), ("It rained in May", CAT)):
        answer = small.saving(new, turn=turn)
        assert forgotten(answer) == [expected]
        assert answer.forgotten[0].reason
        small.project()
    assert small.texts() == {NEW, "Kaito likes rain", "It rained in May"}
    with pytest.raises(ListFull):
        small.save("All are active now", turn=turn)


def test_d6_of_those_never_matched_the_older_goes_first(small: World):
    fill(small)
    turn = small.say().turn
    assert [forgotten(small.saving(f"New {n}", turn=turn)) for n in range(3)] == [[CAT], [TEA], [SISTER]]


def test_t12_an_active_memory_is_never_forgotten(small: World):
    fill(small)
    turn = small.say("how is Mochi? and Mondays?").turn
    assert forgotten(small.saving(NEW, turn=turn)) == [SISTER]
    with pytest.raises(ListFull) as full:
        small.save("One more", turn=turn)
    assert full.value.rule == "T14"


def test_t12_the_evicted_is_recorded_with_for_whom_and_why(small: World):
    cat, *_ = fill(small)
    new = small.save(NEW, turn=small.say().turn)
    (gone,) = small.events(e.MemoryEvicted)
    assert (gone.memory, gone.for_memory, gone.actor) == (cat, new, "persona")
    assert "never matched" in gone.reason
    small.project()
    assert small.memory.history(memory=cat).entries[-1].before == CAT


def test_t13_a_protected_memory_is_never_forgotten_and_still_rests_and_returns(small: World):
    cat, tea, sister = fill(small)
    small.memory.edit(cat)
    small.saving(TEA, actor="person")
    small.memory.pin(sister)
    small.memory.unpin(sister)
    small.talk(range(9, 17))
    assert small.states(cat, tea, sister) == ["resting"] * 3
    turn = small.say().turn
    assert forgotten(small.saving(NEW, turn=turn)) == [SISTER], "a pin does not protect after unpinning (D3)"
    with pytest.raises(ListFull):
        small.save("One more", turn=turn)
    assert recalled(small.say("how is Mochi?")) == [CAT]


def test_t13_a_pinned_memory_is_never_forgotten(small: World):
    cat, tea, _ = fill(small)
    for memory in (cat, tea):
        small.memory.pin(memory)
    small.save("Two more", turn=small.say().turn)
    small.save("Three", turn=small.say().turn)
    assert forgotten(small.saving(NEW, turn=small.say().turn)) == [SISTER]
    assert {CAT, TEA} <= small.texts()


def test_t13_a_global_memory_is_never_forgotten_not_even_for_a_person(small: World):
    cat, *_ = fill(small, scope="global", actor="import")
    small.say()
    for how in ({"actor": "person"}, {"actor": "person", "make_room": cat}):
        with pytest.raises(ListFull) as full:
            small.save(NEW, scope="global", **how)
        assert "would_forget" not in full.value.details


def test_c12_t14_t15_a_save_that_finds_no_room_is_refused_with_count_limit_and_what_can_be_done(small: World):
    for text in (CAT, TEA, SISTER):
        small.save(text)
    for visibility, audience in (("everyone", "everyone"), ("managers", "managers"), ("hidden", "nobody")):
        small.memory.set_server(SERVER, notices=visibility)
        turn = small.say().turn

        def refused(turn: str = turn, audience: str = audience) -> None:
            with pytest.raises(ListFull) as full:
                small.save(NEW, turn=turn)
            details = full.value.details
            assert (details["count"], details["capacity"]) == (3, 3)
            assert "3 of 3" in str(full.value)
            assert full.value.hint
            assert [n["audience"] for n in details["notices"]] == [audience]
            assert NEW in details["notices"][0]["text"]

        assert small.wrote(refused) == []


def test_c13_the_correction_of_an_old_fact_is_never_what_is_dropped(small: World):
    fill(small)
    turn = small.say().turn
    answer = small.saving("Juno's cat is named Mochi, not Momo", turn=turn)
    assert (forgotten(answer), answer.memory.state) == ([CAT], "active")
    small.memory.edit(answer.memory.id, text="Juno's cat is named Momo", actor="persona")
    assert small.texts() == {TEA, SISTER, "Juno's cat is named Momo"}


@pytest.mark.parametrize("why", ["the model failed", "no text", "a challenge chat", "there never was such a turn"])
def test_t14_d30_without_the_search_of_this_reply_nothing_is_forgotten(small: World, why: str):
    fill(small)
    small.say()
    if why == "the model failed":
        small.lose_the_model()
    turn = {
        "the model failed": lambda: small.say().turn,
        "no text": lambda: small.say("").turn,
        "a challenge chat": lambda: small.say(memory="off").turn,
        "there never was such a turn": lambda: "never",
    }[why]()
    small.find_the_model()
    with pytest.raises(ListFull if why != "a challenge chat" else Exception) as refused:
        small.save(NEW, turn=turn)
    assert getattr(refused.value, "rule", None) == ("T14" if why != "a challenge chat" else "R17")
    assert small.texts() == {CAT, TEA, SISTER}


def test_t14_what_a_turn_was_is_known_to_other_processes_and_before_the_tables_know(small: World):
    fill(small)
    turn = small.say().turn
    other = small.open()
    answer = other.save("mira", scope="server", subject=SERVER, text=NEW, actor="persona", turn=turn)
    assert forgotten(answer) == [CAT]
    small.project()
    third = small.open()
    answer = third.save("mira", scope="server", subject=SERVER, text="New", actor="persona", turn=turn)
    assert forgotten(answer) == [TEA]


def test_t14_the_newest_attempt_of_a_turn_counts_whichever_process_played_it(small: World):
    fill(small)
    other = small.open()
    turn = small.say(turn="t").turn
    small.lose_the_model()
    other.reply("mira", message="chess tonight?", users=["juno"], server=SERVER, turn=turn)
    small.find_the_model()
    with pytest.raises(ListFull) as refused:
        small.save(NEW, turn=turn)
    assert refused.value.rule == "T14"


def test_t14_the_search_of_another_server_makes_no_room_here(small: World):
    fill(small)
    turn = small.say(server="chess club").turn
    with pytest.raises(ListFull) as refused:
        small.save(NEW, turn=turn)
    assert refused.value.rule == "T14"
    assert small.texts() == {CAT, TEA, SISTER}


def test_t14_a_list_with_room_takes_a_save_whatever_became_of_the_search(small: World):
    small.save(CAT)
    small.lose_the_model()
    assert small.saving(TEA, turn=small.say().turn).status == "saved"
    assert small.saving(SISTER).status == "saved"


def test_d29_outside_a_turn_a_save_forgets_only_if_the_list_was_searched_that_day(small: World):
    fill(small)
    with pytest.raises(ListFull) as refused:
        small.save(NEW)
    assert refused.value.rule == "D29"
    small.say(persona="kaito")
    small.say(server="chess club")
    with pytest.raises(ListFull):
        small.save(NEW)
    small.lose_the_model()
    small.say()
    with pytest.raises(ListFull):
        small.save(NEW)
    small.find_the_model()
    small.say()
    assert forgotten(small.saving(NEW)) == [CAT]


def test_d7_a_person_is_told_who_would_be_forgotten_and_has_to_name_them(small: World):
    cat, tea, _ = fill(small)
    with pytest.raises(ListFull) as full:
        small.save(NEW, actor="person")
    assert full.value.rule == "D7"
    assert (full.value.details["would_forget"], full.value.details["text"]) == (str(cat), CAT)
    assert str(cat) in str(full.value)
    with pytest.raises(ListFull) as wrong:
        small.save(NEW, actor="person", make_room=tea)
    assert wrong.value.details["would_forget"] == str(cat)
    small.say("how is Mochi?")
    with pytest.raises(ListFull) as late:
        small.save(NEW, actor="person", make_room=cat)
    assert late.value.details["would_forget"] == str(tea), "another is first in line by now"
    assert forgotten(small.saving(NEW, actor="person", make_room=tea)) == [TEA]


def test_d7_unpinning_into_a_full_list_needs_room_like_a_save(small: World):
    promise = small.save("Juno promised a song", actor="person")
    small.memory.pin(promise)
    cat, *_ = fill(small)
    with pytest.raises(ListFull) as full:
        small.memory.unpin(promise)
    assert full.value.details["would_forget"] == str(cat)
    answer = small.memory.unpin(promise, make_room=cat)
    assert ([f.memory.id for f in answer.forgotten], answer.memory.pinned) == ([cat], False)
    assert small.listed().count == 3


def test_d8_imports_stand_over_the_cap_and_a_save_there_forgets_exactly_one(small: World):
    for n in range(6):
        small.save(f"Imported {n}", actor="import")
    assert small.listed().count == 6
    small.talk(range(1, 8))
    turn = small.say().turn
    assert forgotten(small.saving(NEW, turn=turn)) == ["Imported 0"]
    assert small.listed().count == 6
    small.memory.set_policy(list_capacity=2)
    assert forgotten(small.saving("Newer", turn=turn)) == ["Imported 1"]
    assert small.listed().count == 6


def test_d28_what_has_expired_is_first_in_line_and_counts_for_the_list(small: World):
    small.save(CAT)
    small.save(TEA)
    away = small.save("Juno is away", until=START.date() + timedelta(days=3))
    small.talk(range(1, 5))
    assert small.states(away) == ["expired"]
    assert small.listed().count == 3
    assert forgotten(small.saving(NEW, turn=small.say().turn)) == ["Juno is away"]


def test_d28_not_where_it_is_protected(small: World):
    small.save("Juno is away", until=START.date(), actor="person")
    small.save(CAT)
    small.save(TEA)
    small.day(1)
    with pytest.raises(ListFull):
        small.save(NEW, turn=small.say().turn)


def test_c26_d22_what_is_saved_while_the_model_is_down_is_there_and_active_and_neither_ticks_nor_goes(small: World):
    small.memory.set_policy(list_capacity=30)
    small.lose_the_model()
    texts = [f"Fact number {n} of that night" for n in range(30)]
    answers = [small.saving(text) for text in texts]
    assert all(a.memory.state == "active" and a.warnings for a in answers)
    small.find_the_model()
    small.talk(range(1, 10))
    small.project()
    small.talk(range(10, 20))
    ids = [a.memory.id for a in answers]
    assert small.unused(*ids) == [0] * 30
    assert len(desk(small.say())) == 30
    with pytest.raises(ListFull):
        small.save(NEW, turn=small.say().turn)
    assert small.memory.embed_pending() == 30
    assert small.memory.embed_pending() == 0
    assert "Fact number 7 of that night" in [c.text for c in small.say("number 7 of that night").search.candidates]
    small.talk(range(20, 27))
    assert set(small.states(*ids)) == {"resting"}
    assert len(small.saving(NEW, turn=small.say().turn).forgotten) == 1


def test_d22_an_edit_without_a_model_is_searched_again_once_it_is_embedded(small: World):
    cat = small.save(CAT)
    small.project()
    small.lose_the_model()
    small.memory.edit(cat, text="Juno's dog is named Bao", actor="persona")
    small.find_the_model()
    small.day(1)
    for _ in range(2):
        assert small.say("how is Mochi? and the dog Bao?").search.candidates == []
        small.project()
    assert small.unused(cat) == [0]
    small.memory.embed_pending()
    assert [c.text for c in small.say("the dog Bao?").search.matches] == ["Juno's dog is named Bao"]


def test_t15_the_confirmation_shows_what_was_saved_and_what_was_forgotten_to_those_whom_the_server_names(small: World):
    fill(small)
    for visibility, audience in (("everyone", "everyone"), ("managers", "managers"), ("hidden", "nobody")):
        small.memory.set_server(SERVER, notices=visibility)
        answer = small.saving(f"News for {visibility}", turn=small.say().turn)
        assert audiences(answer.notices) == [audience]
        assert f"News for {visibility}" in answer.notices[0].text
        assert answer.forgotten[0].memory.text in answer.notices[0].text


@pytest.mark.parametrize("visibility", ["everyone", "managers", "hidden"])
def test_t15_a_notice_on_a_personal_memory_goes_to_its_owner_only(small: World, visibility: str):
    small.memory.set_server(SERVER, notices=visibility)
    turn = small.say().turn
    assert audiences(small.saving(CAT, scope="personal", turn=turn).notices) == ["owner"]
    assert audiences(small.saving(CAT, scope="global", actor="person").notices) == ["owner"]


def test_t12_personal_lists_are_full_by_themselves_and_their_owner_is_told(small: World):
    fill(small, scope="personal")
    answer = small.saving(NEW, scope="personal", turn=small.say().turn)
    assert (forgotten(answer), audiences(answer.notices)) == ([CAT], ["owner"])
    assert small.saving(NEW).status == "saved"
    assert small.saving(NEW, scope="personal", subject="aiko", turn=small.say(users=["aiko"]).turn).forgotten == []
