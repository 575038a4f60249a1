"""A chat of several personas: what each reads, what ages, where it is written (R11, R15, D4, D19, D25, D26, C8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound
from remembrancer.services.answers import ReplyAnswer
from tests.support.read_model import assert_read_model_is_a_fresh_fold
from tests.support.world import SERVER, USER, World, desk, matched, recalled

MEMBERS = ("mira", "otto", "lou")
CHAT = "the round table"


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with World(database_url) as one:
        one.memory.open_chat(CHAT, personas=MEMBERS, users=[USER], server=SERVER, platform="web")
        yield one


def say(world: World, message: str = "chess tonight?", persona: str = "mira", **how: Any) -> ReplyAnswer:
    return world.say(message, persona=persona, chat=CHAT, **how)


def remember(world: World, persona: str, reply: ReplyAnswer, text: str, **how: Any) -> Any:
    return world.memory.run_tool(persona, reply, "remember", {"text": text, **how})


@pytest.mark.parametrize("about", [None, "server"])
def test_c8_what_one_saves_goes_to_its_own_list_and_all_three_read_it_there(world: World, about: str | None):
    given = say(world, "my cat is named Mochi", persona="otto")
    saved = remember(world, "otto", given, "Juno's cat is named Mochi", about=about)
    assert (saved.memory.persona, saved.memory.scope) == ("otto", "server" if about else "personal")
    for persona in MEMBERS:
        assert desk(say(world, persona=persona)) == ["Juno's cat is named Mochi"]
    for persona in ("mira", "lou"):
        assert world.texts(saved.memory.scope, persona=persona) == set()
        alone = world.say(persona=persona)  # C7: elsewhere it is otto's alone
        assert (desk(alone), alone.search.candidates) == ([], [])


def test_r11_the_union_of_all_members_and_of_everyones_memories(world: World):
    for persona in MEMBERS:
        world.save(f"{persona} of the house", persona=persona)
        world.save(f"{persona} of Juno", persona=persona, scope="personal")
    world.save("everyone of Juno", persona="*", scope="global", actor="person")
    given = say(world, persona="lou")
    assert len(desk(given)) == 7
    headings = [line for line in given.prefix.text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## This server", "## This server, as mira knows it", "## This server, as otto knows it",
        "## juno, with you", "## juno, with mira", "## juno, with otto", "## juno",
    ]  # fmt: skip


def test_t17_the_beginning_is_the_same_bytes_from_reply_to_reply_of_one_persona(world: World):
    for persona in MEMBERS:
        world.save(f"{persona} of the house", persona=persona)
    assert say(world, "one").prefix.text == say(world, "two").prefix.text
    assert say(world, "three", persona="otto").prefix.text != say(world, "four").prefix.text


def test_t3_three_slots_over_all_lists_together(world: World):
    for persona in MEMBERS:
        world.save(f"cat Mochi says {persona}", persona=persona)
        world.save(f"cat Mochi hears {persona}", persona=persona, scope="personal")
    assert len(say(world, "cat Mochi").search.matches) == 3


def test_d4_only_the_lists_of_who_speaks_age_and_the_others_can_still_be_matched(world: World):
    mine = world.save("Mira's teapot is blue", persona="mira")
    theirs = world.save("Otto's boat is green", persona="otto")
    everyones = world.save("Juno plays the harp", persona="*", scope="global", actor="person")
    for day in range(1, 4):
        world.day(day)
        say(world)
    assert world.unused(mine, theirs, everyones) == [3, 0, 3]
    assert {ev.persona for ev in world.events(e.ListSearched)} == {"mira", "*"}
    world.day(4)
    say(world, persona="otto")
    assert world.unused(mine, theirs, everyones) == [3, 1, 4]
    world.day(5)
    assert matched(say(world, "the boat of Otto is green")) == ["Otto's boat is green"]
    assert world.unused(mine, theirs, everyones) == [4, 0, 5]


def test_t6_what_rests_in_the_list_of_another_is_recalled_by_name_and_active_again(world: World):
    boat = world.save("The boat is green", persona="otto")
    for day in range(1, 8):
        world.day(day)
        say(world, persona="otto")
    assert world.states(boat) == ["resting"]
    given = say(world, "is the boat green?")
    assert recalled(given) == ["The boat is green"]
    assert "- The boat is green (otto knows it)" in given.late.text
    assert world.states(boat) == ["active"]
    world.memory.undo_turn(given.turn)
    assert world.states(boat) == ["resting"], "D14"


@pytest.mark.parametrize("how", ["persona", "person", "server", "deleted"])
def test_d4_d25_a_member_that_does_not_learn_or_is_deleted_is_left_out(world: World, how: str):
    world.save("Otto's boat is green", persona="otto")
    world.save("Juno likes Otto's boat", persona="otto", scope="personal")
    world.save("The teapot is blue", persona="lou")
    match how:
        case "persona":
            world.memory.set_persona("otto", learns=False)
        case "person":
            world.memory.set_person(USER, not_learning=["otto"])
        case "server":
            world.memory.set_server(SERVER, not_learning=["otto"])
        case "deleted":
            world.memory.delete_persona("otto")
    left = {
        "persona": set(), "person": {"Otto's boat is green"}, "server": {"Juno likes Otto's boat"},
        "deleted": {"Juno likes Otto's boat"},  # it is everyone's now (R11)
    }  # fmt: skip
    assert set(desk(say(world))) == {"The teapot is blue"} | left[how]


def test_d4_the_learn_switch_is_that_of_who_speaks(world: World):
    world.save("Otto's boat is green", persona="otto")
    world.memory.set_persona("mira", learns=False)
    given = say(world)
    assert (desk(given), given.search.status) == ([], "off")
    assert desk(say(world, persona="lou")) == ["Otto's boat is green"]


def test_r3_d4_the_level_is_that_of_who_speaks(world: World):
    world.memory.set_person(USER, details={"otto": "detailed", "mira": "key_events"})
    levels = [say(world, persona=persona, platform="web").window for persona in MEMBERS]
    assert [x.detail for x in levels if x is not None] == ["key_events", "detailed", "balanced"]


def test_r15_what_another_member_knows_is_read_but_not_rewritten(world: World):
    boat = world.save("Otto's boat is green", persona="otto")
    given = say(world)
    refused = world.memory.run_tool("mira", given, "update_memory", {"memory": "1", "text": "Otto's boat is red"})
    assert (refused.ok, "otto" in refused.content) == (False, True)
    assert not world.memory.run_tool("mira", given, "forget_memory", {"memory": "1"}).ok
    with pytest.raises(NotAllowed):
        world.memory.save("otto", scope="server", subject=SERVER, text="x", actor="persona", turn=given.turn)
    assert world.get(boat).text == "Otto's boat is green"
    world.project()
    assert "ReplySearched" in [x.event for x in world.memory.history(turn=given.turn).entries]
    assert world.memory.run_tool("otto", say(world, persona="otto"), "forget_memory", {"memory": "1"}).ok


def test_r17_no_memory_in_a_challenge_chat(world: World):
    world.save("Otto's boat is green", persona="otto")
    off = say(world, memory="off")
    assert (desk(off), off.search.status, off.messages) == ([], "off", [])


@pytest.mark.parametrize("about", [None, "juno", "server"])
def test_r17_without_a_user_id_nothing_is_saved(world: World, about: str | None):
    refused = remember(world, "mira", say(world, users=[]), "somebody likes tea", about=about)
    assert not refused.ok
    with pytest.raises(NotAllowed) as error:
        world.saving("somebody likes tea", turn=say(world, users=[]).turn)
    assert error.value.rule == "R17"


def test_u1_at_prints_the_bytes_that_were_sent(world: World):
    for persona in MEMBERS:
        world.save(f"{persona}'s boat is green", persona=persona)
    for day in range(1, 9):
        world.day(day)
        say(world, persona="otto")
    given = [say(world, "the boat of lou is green", persona=persona) for persona in ("mira", "lou")]
    world.memory.edit(UUID(str(given[0].prefix.memories[0].id)), text="sunk")
    world.project()
    for reply, persona in zip(given, ("mira", "lou"), strict=True):
        seen = world.memory.at(turn=reply.turn)
        assert (seen.persona, seen.notes) == (persona, [])
        assert (seen.prefix.text, seen.late.text) == (reply.prefix.text, reply.late.text)


def test_u3_what_if_under_its_own_numbers_changes_nothing_and_with_others_counts_own_days_alone(world: World):
    world.save("Mira's teapot is blue")
    boat = world.save("Otto's boat is green", persona="otto")
    for day in range(1, 10):
        world.day(day)
        say(world, persona="otto" if day % 3 == 0 else "mira")
    world.project()
    same = world.memory.what_if(persona="mira", rest_after_days=7)
    assert same.changes == []
    sooner = world.memory.what_if(persona="otto", rest_after_days=3)
    assert [(c.memory, c.now.state, c.then.state) for c in sooner.changes] == [(boat, "active", "resting")]


def test_prompts_say_which_persona_spoke(world: World):
    for persona in ("mira", "otto"):
        given = say(world, f"hello {persona}", persona=persona)
        world.memory.post(CHAT, f"I am {persona}", author=persona, role="persona", turn=given.turn)
    roles = [(m["role"], m["content"]) for m in say(world, "who are you?", persona="mira").prompt("mira")]
    assert ("assistant", "I am mira") in roles
    assert ("user", "otto: I am otto") in roles


def test_d18_a_fork_of_a_group_is_a_group(world: World):
    world.save("Otto's boat is green", persona="otto")
    say(world)
    world.memory.fork(CHAT, "what if")
    assert tuple(world.memory.chat("what if").personas) == MEMBERS
    assert desk(world.say(chat="what if")) == ["Otto's boat is green"]


def test_the_tables_are_those_of_a_fresh_fold(world: World):
    for persona in MEMBERS:
        world.save(f"{persona}'s boat is green", persona=persona)
        say(world, "the boat is green", persona=persona)
    world.project()
    assert_read_model_is_a_fresh_fold(world.memory)


# -- opening ---------------------------------------------------------------------------------------------------------


def test_d26_a_stranger_does_not_speak_in_a_group_and_leaves_nothing_behind(world: World):
    say(world)

    def speak() -> None:
        with pytest.raises(NotAllowed, match="kai is not a member") as refused:
            say(world, persona="kai")
        assert "mira, otto, lou" in str(refused.value.hint)

    assert world.wrote(speak) == []


def test_d26_a_chat_that_began_with_a_reply_is_no_group(world: World):
    world.save("Otto's boat is green", persona="otto")
    first = world.say(chat="plain")
    other = world.say(chat="plain", persona="otto")
    assert (desk(first), desk(other)) == ([], ["Otto's boat is green"])


def test_d19_the_same_request_opens_once_and_another_of_that_name_is_refused(world: World):
    def open_it(personas: Any = ("mira", "otto"), **how: Any) -> Any:
        return world.memory.open_chat("new", personas=personas, users=[USER], **how)

    first = open_it(request_id="r")
    assert world.wrote(lambda: open_it(request_id="r")) == []
    assert open_it(request_id="r") == first
    with pytest.raises(InvalidInput):
        open_it(personas=["mira"], request_id="r")
    with pytest.raises(NotAllowed, match="already"):
        open_it()
    assert tuple(world.memory.chat("new").personas) == ("mira", "otto")


@pytest.mark.parametrize(
    "personas",
    [[], ["*"], [""], ["  "], "mira", [1], ["mira\x00"], ["\ud800"], [str(n) for n in range(21)], None, ["x" * 301]],
)
def test_what_is_no_group_is_refused_and_leaves_nothing_behind(world: World, personas: Any):
    def open_it() -> None:
        with pytest.raises(InvalidInput):
            world.memory.open_chat("new", personas=personas)

    assert world.wrote(open_it) == []
    with pytest.raises(NotFound):
        world.memory.chat("new")


def test_c23_a_group_of_another_tenant_is_none_of_ours(world: World):
    other = world.open(tenant="other")
    assert other.open_chat(CHAT, personas=["mira", "kai"], users=[USER], server=SERVER).personas == ["mira", "kai"]
    assert tuple(world.memory.chat(CHAT).personas) == MEMBERS
