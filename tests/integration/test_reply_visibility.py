"""A hidden memory is not sent, searched, aged, recalled or named, pinned or not (T10, R13, R17, D4, D27, C7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotAllowed
from tests.support.world import SERVER, World, desk, matched

CAT = "Juno's cat is named Mochi"

HIDINGS: dict[str, tuple[dict[str, Any], Callable[[World], object], dict[str, Any]]] = {
    "a tag that the reply does not carry": ({"tags": ["spring"]}, lambda w: None, {"tags": ["autumn"]}),
    "another channel": ({"channels": ["garden"]}, lambda w: None, {"channel": "kitchen"}),
    "no channel": ({"channels": ["garden"]}, lambda w: None, {}),
    "the owner's privacy: nowhere": (
        {"scope": "personal"}, lambda w: w.memory.set_person("juno", privacy="nowhere"), {"server": None},
    ),
    "the owner's privacy: private chats only, and this is a server": (
        {"scope": "personal"}, lambda w: w.memory.set_person("juno", privacy="private_chats_only"), {},
    ),
    "the owner's privacy: private chats only, and here are two": (
        {"scope": "personal"}, lambda w: w.memory.set_person("juno", privacy="private_chats_only"),
        {"server": None, "users": ["juno", "aiko"], "chat": "us"},
    ),
    "the server's blocklist": (
        {"scope": "personal"}, lambda w: w.memory.set_server(SERVER, blocklist=["juno"]), {},
    ),
    "the server's switch for personal memories": (
        {"scope": "personal"}, lambda w: w.memory.set_server(SERVER, personal_memories=False), {},
    ),
    "a blocklist, for a global memory": (
        {"scope": "global", "actor": "person"}, lambda w: w.memory.set_server(SERVER, blocklist=["juno"]), {},
    ),
    "privacy, for a global memory": (
        {"scope": "global", "actor": "person"}, lambda w: w.memory.set_person("juno", privacy="nowhere"), {},
    ),
    "the learn switch of the persona": ({}, lambda w: w.memory.set_persona("mira", learns=False), {}),
    "the learn switch of the persona and this server": (
        {}, lambda w: w.memory.set_server(SERVER, not_learning=["mira"]), {},
    ),
    "the learn switch of the persona and this user": (
        {"scope": "personal"}, lambda w: w.memory.set_person("juno", not_learning=["mira"]), {},
    ),
    "the learn switch, for a global memory": (
        {"scope": "global", "actor": "person"}, lambda w: w.memory.set_person("juno", not_learning=["mira"]), {},
    ),
    "a challenge chat": ({}, lambda w: None, {"memory": "off"}),
}  # fmt: skip


@pytest.mark.parametrize("pinned", [False, True], ids=["unpinned", "pinned"])
@pytest.mark.parametrize("hiding", HIDINGS)
def test_t10_r17_a_hidden_memory_is_not_sent_searched_aged_recalled_or_named(world: World, hiding: str, pinned: bool):
    how, hide, where = HIDINGS[hiding]
    cat = world.save(CAT, **how)
    if pinned:
        world.memory.pin(cat)
    hide(world)
    for number in range(1, 4):
        world.day(number)
        answer = world.say("how is Mochi?", **where)
        assert (desk(answer), answer.search.candidates, answer.late.recalled) == ([], [], [])
        assert "Mochi" not in answer.prefix.text + answer.late.text
        assert str(cat) not in answer.model_dump_json()
        if number == 2:
            world.project()
    assert world.unused(cat) == [0]


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ({"tags": ["spring", "tea"]}, {"tags": ["tea", "night"]}),
        ({"channels": ["garden", "kitchen"]}, {"channel": "kitchen"}),
        ({"tags": ["tea"], "channels": ["garden"]}, {"tags": ["tea"], "channel": "garden"}),
        ({}, {"tags": ["tea"], "channel": "garden"}),
    ],
)
def test_t10_a_memory_is_seen_where_its_tags_and_channels_say(world: World, how: dict[str, Any], where: dict[str, Any]):
    cat = world.save(CAT, **how)
    assert desk(world.say(**where)) == [CAT]
    world.project()
    world.day(1)
    assert matched(world.say("how is Mochi?", **where)) == [CAT]
    world.talk(range(2, 5), **where)
    assert world.unused(cat) == [3]


@pytest.mark.parametrize("where", [{"server": None}, {"server": "a direct message"}])
def test_t10_private_chats_only_is_met_in_private_chats(world: World, where: dict[str, Any]):
    world.save(CAT, scope="personal")
    world.memory.set_person("juno", privacy="private_chats_only")
    world.memory.set_server("a direct message", private=True)
    assert matched(world.say("how is Mochi?", **where)) == [CAT]


def test_t10_a_list_ages_what_was_seen_in_one_reply_of_the_day_and_leaves_what_was_hidden_in_all(world: World):
    plain, spring, autumn = world.save(CAT), world.save("Tea blooms", tags=["spring"]), world.save(
        "Tea withers", tags=["autumn"]
    )  # fmt: skip
    for number in range(1, 4):
        world.day(number)
        world.say()
        world.say(tags=["spring"])
        if number == 2:
            world.say(tags=["autumn"])
    assert world.unused(plain, spring, autumn) == [3, 3, 1]


def test_t10_where_almost_all_is_hidden_the_few_that_are_seen_are_recorded(world: World):
    hidden = [world.save(f"Secret number {n}", tags=["secret"]) for n in range(8)]
    plain = world.save(CAT)
    world.talk(range(1, 4))
    assert all(ev.hidden == () and ev.seen == (plain,) for ev in world.events(e.ListSearched))
    late = world.save("Secret number 9", tags=["secret"])
    world.talk([4])
    world.talk([5], tags=["secret"])
    for _ in range(2):
        assert world.unused(plain, hidden[0], late) == [5, 1, 1]
        answer = world.say(tags=["secret"])
        assert [m.unused_days for m in answer.prefix.memories] == [1] * 8 + [5, 1]
        world.project()


def test_t10_nothing_is_written_into_the_lists_of_people_whom_a_server_hides(world: World):
    world.memory.set_server(SERVER, blocklist=["juno"])
    turn = world.say(users=["juno", "aiko"]).turn
    with pytest.raises(NotAllowed) as refused:
        world.save(CAT, scope="personal", turn=turn)
    assert refused.value.rule == "T10"
    world.save("Aiko has a sister in Osaka", scope="personal", subject="aiko", turn=turn)
    world.memory.set_server(SERVER, personal_memories=False)
    with pytest.raises(NotAllowed):
        world.save("Aiko paints boats", scope="personal", subject="aiko", turn=turn)
    assert world.texts("personal") == set()


def test_t10_privacy_stops_the_persona_and_not_the_person(world: World):
    world.memory.set_person("juno", privacy="nowhere")
    turn = world.say(server=None).turn
    with pytest.raises(NotAllowed) as refused:
        world.save(CAT, scope="personal", turn=turn)
    assert refused.value.rule == "T10"
    world.save(CAT, scope="personal", actor="person")


def test_r17_off_the_persona_neither_saves_into_nor_reads_that_list_and_others_go_on(world: World):
    world.save(CAT)
    world.save("Juno paints rivers", scope="personal")
    world.save("Juno lives in Porto", scope="global", actor="person")
    world.memory.set_person("juno", not_learning=["mira"])
    answer = world.say()
    assert desk(answer) == [CAT], "the server's list is another switch"
    with pytest.raises(NotAllowed) as refused:
        world.save("Juno sings", scope="personal", turn=answer.turn)
    assert refused.value.rule == "R17"
    assert desk(world.say(persona="kaito")) == ["Juno lives in Porto"]
    world.memory.set_server(SERVER, not_learning=["mira"])
    assert desk(world.say()) == []
    with pytest.raises(NotAllowed):
        world.save("The tea house closes on Mondays")
    world.memory.set_person("juno", not_learning=[])
    assert desk(world.say()) == ["Juno paints rivers", "Juno lives in Porto"]


def test_r17_a_persona_that_does_not_learn_anywhere_has_no_memory_and_no_search(world: World):
    world.memory.pin(world.save(CAT))
    world.memory.set_persona("mira", learns=False)
    answer = world.say("how is Mochi?")
    assert (desk(answer), answer.search.status) == ([], "off")
    with pytest.raises(NotAllowed) as refused:
        world.save("The tea house closes on Mondays", turn=answer.turn)
    assert refused.value.rule == "R17"
    world.save("The tea house closes on Mondays", actor="person")


def test_r17_in_a_challenge_chat_nothing_is_read_and_nothing_is_saved(world: World):
    world.save(CAT)
    answer = world.say("how is Mochi?", memory="off")
    assert (answer.prefix.text, answer.late.text, answer.search.status) == ("", "", "off")
    for how in ({}, {"scope": "personal"}):
        with pytest.raises(NotAllowed) as refused:
            world.save("The tea house closes on Mondays", turn=answer.turn, **how)
        assert refused.value.rule == "R17"
    assert world.texts() == {CAT}


def test_r13_the_persona_writes_for_those_who_take_part_and_globals_only_a_person(world: World):
    turn = world.say(users=["juno"]).turn
    world.save("Juno paints rivers", scope="personal", turn=turn)
    for how, text in (({"scope": "personal", "subject": "aiko"}, "Aiko paints"), ({"scope": "global"}, "Juno sings")):
        with pytest.raises(NotAllowed) as refused:
            world.save(text, turn=turn, **how)
        assert refused.value.rule == "R13"


def test_r17_no_user_id_nothing_personal_is_saved(world: World):
    from remembrancer.domain.errors import InvalidInput

    for subject in ("", "  "):
        for scope in ("personal", "global"):
            with pytest.raises(InvalidInput):
                world.memory.save("mira", scope=scope, subject=subject, text=CAT)
    assert not world.events(e.MemorySaved)


def test_c7_of_what_one_persona_knows_of_a_user_the_other_one_sees_nothing(world: World):
    world.save("Juno cries at night", scope="personal")
    world.save("Juno paints rivers", scope="personal", persona="kaito")
    world.project()
    answer = world.say("who cries at night and paints rivers?", persona="kaito")
    assert desk(answer) == ["Juno paints rivers"]
    assert [c.text for c in answer.search.candidates] == ["Juno paints rivers"]
    world.project()
    assert "cries" not in world.memory.history(persona="kaito").model_dump_json()
    assert "cries" not in world.memory.list("kaito").model_dump_json()
    assert "cries" not in answer.model_copy(update={"messages": []}).model_dump_json()
