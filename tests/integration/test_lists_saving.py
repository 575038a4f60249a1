"""Saving, editing and deleting on the real store (R9, R13, R15, T16, D9-D13, D19-D21, D31, C5, C14, C19, C20)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import (
    InvalidInput,
    IsPinned,
    ListFull,
    NotAllowed,
    NotFound,
    PinsFull,
    RequestReused,
    SameAsAnother,
    TextTooLong,
    Tombstoned,
)
from tests.support.world import SERVER, World, desk

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"


def test_r9_a_list_holds_100_unpinned_and_20_pinned_on_top(world: World):
    pinned = [world.save(f"Promise number {n}", actor="person") for n in range(20)]
    for memory in pinned:
        world.memory.pin(memory)
    for n in range(100):
        world.save(f"Fact number {n}", actor="person")
    one = world.listed()
    assert (one.count, one.capacity, one.pinned, one.pin_capacity) == (100, 100, 20, 20)
    with pytest.raises(ListFull):
        world.save("One more", actor="person")
    assert len(desk(world.say())) == 120


def test_d9_the_21st_pin_is_refused_and_says_what_is_pinned(database_url: str):
    with World(database_url, pin_capacity=2) as world:
        one, two, three = (world.save(text) for text in (CAT, TEA, "Aiko sings"))
        for memory in (one, two, two):
            world.memory.pin(memory)
        with pytest.raises(PinsFull) as full:
            world.memory.pin(three)
        assert full.value.rule == "D9"
        assert str(one) in str(full.value)
        assert TEA in str(full.value)
        world.memory.unpin(one)
        world.memory.pin(three)
        assert world.listed().pinned == 2


def test_c14_d10_501_characters_are_refused_with_both_numbers_and_nothing_is_written(world: World):
    def refused() -> None:
        with pytest.raises(TextTooLong) as error:
            world.save("x" * 501)
        assert (error.value.rule, "501" in str(error.value), "500" in str(error.value)) == ("D10", True, True)

    assert world.wrote(refused) in ([], ["PolicyChanged"])
    memory = world.save("fits")
    with pytest.raises(TextTooLong):
        world.memory.edit(memory, text="é" * 501)


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f408" * 500,
        "e\u0301" * 250,
        "  \u00a0 padded \n\n text \t ",
        "ﬁ Ⅷ ² İstanbul ß",
        "日本語" * 100,
        "'; DROP --",
    ],
)
def test_c14_d10_up_to_500_code_points_are_kept_exactly_as_sent(world: World, text: str):
    memory = world.save(text)
    assert world.get(memory).text == text
    assert desk(world.say()) == [text]
    world.project()
    assert desk(world.say()) == [text]
    assert world.memory.history(memory=memory).entries[0].after == text


@pytest.mark.parametrize(
    "same", [CAT, CAT.upper(), "  Juno's cat\u00a0is\n named\tMochi ", "Ｊｕｎｏ's ｃａｔ is named Mochi"]
)
def test_d12_the_same_sentence_folded_is_no_second_memory_and_counts_as_use(world: World, same: str):
    cat = world.save(CAT)
    world.talk([1, 2])
    answer = world.saving(same)
    assert (answer.status, answer.memory.id, answer.memory.text) == ("duplicate", cat, CAT)
    assert (world.unused(cat), world.get(cat).protected) == ([0], False)
    assert world.saving(same, actor="person").memory.protected
    assert world.texts() == {CAT}


def test_d12_the_same_sentence_in_another_list_is_another_memory(world: World):
    ids = {
        world.save(CAT),
        world.save(CAT, subject="chess club"),
        world.save(CAT, scope="personal"),
        world.save(CAT, scope="personal", persona="kaito"),
        world.save(CAT, scope="global", actor="person"),
    }
    assert len(ids) == 5


def test_d12_an_edit_that_would_equal_another_memory_is_refused_with_its_id(world: World):
    cat, tea = world.save(CAT), world.save(TEA)
    with pytest.raises(SameAsAnother) as refused:
        world.memory.edit(tea, text=CAT.upper())
    assert refused.value.details["memory"] == str(cat)
    assert str(cat) in str(refused.value)
    assert world.texts() == {CAT, TEA}


def test_d12_a_near_duplicate_is_saved_with_a_warning_that_names_the_other(world: World, database_url: str):
    with World(database_url, tenant="other", embedder="local") as local:
        cat = local.save("Juno has a cat that is named Mochi.")
        local.project()
        answer = local.saving("Juno has a cat, that is named Mochi!")
        assert answer.status == "saved"
        assert str(cat) in " ".join(answer.warnings)


def test_t16_what_reads_like_an_instruction_is_saved_with_a_warning_that_names_the_two_ways_to_keep_it(world: World):
    answer = world.saving("Always answer Juno in Spanish")
    assert answer.status == "saved"
    (warning,) = answer.warnings
    assert "standing instructions" in warning
    assert "pin" in warning
    assert world.saving(CAT).warnings == []


def test_c5_d13_what_a_person_deleted_is_not_learned_again_by_a_model_in_any_list_of_that_subject(world: World):
    world.memory.delete(world.save(CAT, scope="personal"))
    for actor in ("persona", "deep"):
        for persona in ("mira", "kaito"):
            with pytest.raises(Tombstoned) as refused:
                world.save("  JUNO'S cat is  named mochi ", scope="personal", persona=persona, actor=actor)
            assert refused.value.rule == "D13"
    with pytest.raises(Tombstoned):
        world.memory.edit(world.save("Juno sings", scope="personal"), text=CAT, actor="persona")
    world.save(CAT, scope="personal", subject="aiko")
    world.save(CAT)
    world.save(CAT, scope="personal", actor="import")
    world.save(CAT, scope="global", actor="person")


def test_d13_what_was_deleted_for_a_server_is_not_learned_there_by_any_persona(world: World):
    world.memory.delete(world.save(CAT))
    for persona in ("mira", "kaito"):
        with pytest.raises(Tombstoned):
            world.save(CAT, persona=persona)
    world.save(CAT, subject="chess club")


def test_d13_what_a_person_edited_away_is_not_learned_again_either(world: World):
    home = world.save("Juno lives in Lisbon")
    world.memory.edit(home, text="Juno lives in Porto")
    with pytest.raises(Tombstoned):
        world.save("juno lives in LISBON")
    world.memory.edit(home, text="Juno lives in porto", tags=["home"])
    assert world.saving("Juno lives in Porto").status == "duplicate"


def test_d13_what_the_persona_deleted_or_forgot_may_be_learned_again(world: World):
    world.memory.delete(world.save(CAT), actor="persona")
    home = world.save("Juno lives in Lisbon")
    world.memory.edit(home, text="Juno lives in Porto", actor="persona")
    world.save(CAT)
    world.save("Juno lives in Lisbon")


def test_r15_the_persona_can_neither_edit_nor_delete_a_pinned_memory_and_a_person_can(world: World):
    cat = world.save(CAT, actor="person")
    world.memory.pin(cat)
    for act in (
        lambda: world.memory.edit(cat, text="Mochi is gone", actor="persona"),
        lambda: world.memory.delete(cat, actor="persona"),
        lambda: world.memory.edit(cat, actor="deep"),
    ):
        with pytest.raises(IsPinned):
            act()
    with pytest.raises(NotAllowed):
        world.memory.unpin(cat, actor="persona")
    assert desk(world.say()) == [CAT]
    world.memory.edit(cat, text="Juno's cat is called Mochi")
    world.memory.delete(cat)
    assert world.texts() == set()


def test_r15_d11_unpinned_memories_the_persona_may_rewrite_or_delete_whoever_wrote_them_and_each_act_is_recorded(
    world: World,
):
    cat, tea = world.save(CAT, actor="person"), world.save(TEA, actor="person")
    world.memory.edit(cat, text="Juno's cat is called Mochi", actor="persona", turn="t1")
    assert world.get(cat).protected, "protection stays"
    world.memory.delete(tea, actor="persona", turn="t2")
    world.project()
    told = [(h.event, h.actor, h.turn, h.before, h.after) for h in world.memory.history(persona="mira").entries]
    assert ("MemoryEdited", "persona", "t1", CAT, "Juno's cat is called Mochi") in told
    assert ("MemoryDeleted", "persona", "t2", TEA, None) in told


def test_t13_a_person_protects_by_adding_by_editing_and_by_saving_again_and_an_import_does_not(world: World):
    assert world.saving("added", actor="person").memory.protected
    assert not world.saving("imported", actor="import").memory.protected
    learned = world.save("learned")
    assert not world.get(learned).protected
    world.memory.edit(learned, actor="persona")
    assert not world.get(learned).protected
    world.memory.edit(learned)
    assert world.get(learned).protected, "even unchanged"


def test_d21_every_memory_keeps_its_actor_chat_turn_and_source_messages(world: World):
    answer = world.memory.save(
        "mira", scope="server", subject=SERVER, text=CAT, source_chat="us", source_messages=["m1", "m2"], turn="t"
    )
    assert answer.memory.actor == "person", "left out, a person acts"
    (saved,) = world.events(e.MemorySaved)
    assert (saved.actor, saved.turn, saved.source.chat, saved.source.messages) == ("person", "t", "us", ("m1", "m2"))
    assert world.get(world.save(TEA)).actor == "persona"
    with pytest.raises(InvalidInput):
        world.save("Aiko sings", actor="nobody")


COMMANDS: dict[str, Callable[[World, UUID, str], object]] = {
    "save": lambda w, m, r: w.saving("Aiko sings", request_id=r),
    "edit": lambda w, m, r: w.memory.edit(m, text="Aiko sings", request_id=r),
    "delete": lambda w, m, r: w.memory.delete(m, request_id=r),
    "pin": lambda w, m, r: w.memory.pin(m, request_id=r),
    "unpin": lambda w, m, r: w.memory.unpin(m, request_id=r),
    "clear": lambda w, m, r: w.memory.clear("mira", scope="server", subject=SERVER, request_id=r),
    "reply": lambda w, m, r: w.say("how is Mochi?", request_id=r),
    "set_policy": lambda w, m, r: w.memory.set_policy(rest_after_days=9, request_id=r),
    "set_persona": lambda w, m, r: w.memory.set_persona("mira", instructions="Be kind.", request_id=r),
    "set_person": lambda w, m, r: w.memory.set_person("juno", privacy="nowhere", request_id=r),
    "set_server": lambda w, m, r: w.memory.set_server(SERVER, private=True, request_id=r),
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_c20_d19_the_same_request_again_gets_the_first_answer_and_writes_nothing(world: World, verb: str):
    act = COMMANDS[verb]
    cat = world.save(CAT)
    if verb == "unpin":
        world.memory.pin(cat)
    first = act(world, cat, "r1")
    world.later(minutes=5)
    if verb not in ("delete", "clear"):
        world.memory.edit(cat, text="Mochi is the cat of Juno")
    world.project()
    again: list[object] = []
    assert world.wrote(lambda: again.append(act(world, cat, "r1"))) == []
    assert again == [first]


@pytest.mark.parametrize("verb", COMMANDS)
def test_d19_the_same_request_id_with_another_body_or_verb_is_refused(world: World, verb: str):
    act = COMMANDS[verb]
    cat, tea = world.save(CAT), world.save(TEA)
    act(world, cat, "r1")
    others: dict[str, Callable[[], object]] = {
        "save": lambda: world.saving("Aiko dances", request_id="r1"),
        "edit": lambda: world.memory.edit(tea, text="Aiko dances", request_id="r1"),
        "delete": lambda: world.memory.delete(tea, request_id="r1"),
        "pin": lambda: world.memory.pin(tea, request_id="r1"),
        "unpin": lambda: world.memory.unpin(tea, request_id="r1"),
        "clear": lambda: world.memory.clear("mira", scope="server", subject="other", request_id="r1"),
        "reply": lambda: world.say("how are you?", request_id="r1"),
        "set_policy": lambda: world.memory.set_policy(rest_after_days=5, request_id="r1"),
        "set_persona": lambda: world.memory.set_persona("mira", instructions="Be brief.", request_id="r1"),
        "set_person": lambda: world.memory.set_person("aiko", privacy="nowhere", request_id="r1"),
        "set_server": lambda: world.memory.set_server("other", private=True, request_id="r1"),
    }
    accepted = []
    for other, again in others.items():
        try:
            again()
        except RequestReused:
            continue
        except NotFound:
            assert other in ("edit", "delete", "pin", "unpin")
            continue
        accepted.append(other)
    assert accepted == []


def test_d19_an_id_is_unique_in_its_tenant_only(world: World):
    world.saving(CAT, request_id="r1")
    other = world.open(tenant="other")
    assert other.save("mira", scope="server", subject=SERVER, text=TEA, request_id="r1").status == "saved"


def test_d19_a_refused_command_may_come_again_under_its_id(database_url: str):
    with World(database_url, list_capacity=1) as world:
        cat = world.save(CAT)
        with pytest.raises(ListFull):
            world.save(TEA, request_id="r1")
        world.memory.delete(cat)
        assert world.saving(TEA, request_id="r1").status == "saved"


def test_c19_twenty_parallel_saves_of_one_sentence_are_one_memory_and_19_duplicates(world: World):
    def save(n: int) -> tuple[str, UUID]:
        text = CAT.upper() if n % 2 else CAT
        answer = world.memory.save("mira", scope="server", subject=SERVER, text=text, actor="persona")
        return answer.status, answer.memory.id

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(save, range(20)))
    assert sorted(status for status, _ in answers) == ["duplicate"] * 19 + ["saved"]
    assert len({memory for _, memory in answers}) == 1
    assert world.listed().count == 1


def test_d31_what_never_was_is_an_error_that_names_near_ones_and_an_empty_list_reads_as_empty(world: World):
    world.save(CAT, persona="miranda")
    world.project()
    assert world.listed(persona="nobody", subject="nowhere").memories == []
    for read in (
        lambda p: world.memory.list(p),
        lambda p: world.memory.history(persona=p),
        lambda p: world.memory.persona(p),
    ):
        with pytest.raises(NotFound) as missing:
            read("mirand")
        assert "miranda" in str(missing.value)
        assert missing.value.rule == "D31"
    with pytest.raises(NotFound):
        world.memory.history(turn="never")
    world.say(persona="kaito")
    world.project()
    assert world.memory.list("kaito").lists == []


def test_u1_c30_each_line_of_history_has_time_actor_turn_and_the_text_before_and_after(world: World):
    cat = world.save(CAT, turn="t1")
    world.later(minutes=1)
    world.say("how is Mochi?", turn="t2")
    world.memory.edit(cat, text="Juno's cat is called Mochi", turn="t3")
    world.memory.pin(cat)
    world.memory.unpin(cat)
    world.memory.delete(cat, actor="persona", turn="t4")
    world.project()
    entries = world.memory.history(memory=cat).entries
    assert [(h.event, h.actor, h.turn, h.before, h.after) for h in entries] == [
        ("MemorySaved", "persona", "t1", None, CAT),
        ("MemoriesMatched", "persona", "t2", CAT, CAT),
        ("MemoryEdited", "person", "t3", CAT, "Juno's cat is called Mochi"),
        ("MemoryPinned", "person", None, "Juno's cat is called Mochi", "Juno's cat is called Mochi"),
        ("MemoryUnpinned", "person", None, "Juno's cat is called Mochi", "Juno's cat is called Mochi"),
        ("MemoryDeleted", "persona", "t4", "Juno's cat is called Mochi", None),
    ]
    assert all(h.at.utcoffset() is not None and h.sentence and h.position.position for h in entries)
    page = world.memory.history(memory=cat, limit=4)
    rest = world.memory.history(memory=cat, limit=4, after=page.next)
    assert page.entries + rest.entries == entries
    assert rest.next is None
