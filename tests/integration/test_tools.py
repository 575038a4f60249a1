"""What a model can do about memories in mid-reply (R13a, D21, R15, T14, D28), as a bot runs it."""

from __future__ import annotations

import json
from datetime import date

import pytest

from remembrancer.services.answers import ReplyAnswer
from tests.support.world import PERSONA, SERVER, USER, World


@pytest.fixture
def world(database_url: str):
    with World(database_url) as made:
        yield made


def reply(
    world: World, text: str = "hello", users: tuple[str, ...] = (USER, "kai"), server: str | None = SERVER
) -> ReplyAnswer:
    return world.memory.reply(PERSONA, message=text, users=users, server=server)


def call(world: World, given: ReplyAnswer, name: str, **arguments):
    return world.memory.run_tool(PERSONA, given, name, json.dumps(arguments))


def test_the_schemas_are_those_of_chat_completions():
    from remembrancer.services.remembrancer import Remembrancer

    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in Remembrancer.tools()}
    assert set(schemas) == {"remember", "update_memory", "forget_memory"}
    assert schemas["remember"]["required"] == ["text"]
    assert schemas["update_memory"]["required"] == ["memory", "text"]
    assert all(one["additionalProperties"] is False for one in schemas.values())
    assert all("description" in field for one in schemas.values() for field in one["properties"].values())


def test_r13_d21_what_it_remembers_is_the_authors_and_written_by_the_persona_in_that_turn(world: World):
    given = reply(world, "my cat is called Mochi")
    done = call(world, given, "remember", text="Juno's cat is named Mochi")
    assert (done.ok, done.content) == (True, "Saved: Juno's cat is named Mochi")
    m = done.memory
    assert (m.scope, m.subject, m.actor, m.protected) == ("personal", USER, "persona", False)
    (entry,) = world_history(world, m.id)
    assert (entry.turn, entry.actor) == (given.turn, "persona")
    assert call(world, given, "remember", text="juno's cat is named  MOCHI").content.startswith("You knew that already")
    world.memory.undo_turn(given.turn)
    assert world.memory.list(PERSONA, scope="personal", subject=USER).lists[0].memories == []


def world_history(world: World, memory):
    world.project()
    return world.memory.history(memory=memory).entries


@pytest.mark.parametrize(
    ("about", "place"), [("server", ("server", SERVER)), ("Kai", ("personal", "kai")), (USER, ("personal", USER))]
)
def test_r13_it_says_whose_memory_it_is(world: World, about: str, place: tuple[str, str]):
    m = call(world, reply(world), "remember", text="a fact", about=about).memory
    assert (m.scope, m.subject) == place


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("forget_memory", {"memory": "²"}), ("forget_memory", {"memory": "#²."}), ("forget_memory", '{"memory": "٣"}'),
        ("forget_memory", {"memory": "9" * 5_000}), ("forget_memory", {"memory": "0"}),
        ("forget_memory", {"memory": ""}),
        ("forget_memory", {"memory": "\ud800"}), ("forget_memory", '{"memory": "\ud800"}'), ("forget_memory", "\x00"),
        ("update_memory", {"memory": "²", "text": "x"}), ("remember", {"text": "x", "until": "9" * 5_000}),
        ("remember", "[" * 200_000), ("remember", "9" * 5_000), ("remember", None), ("remember", {1: 2}),
        ("remember", {"text": "a\x00b"}), ("remember", {"text": "x", "about": "\ud800"}), (["a"], {}),
        (None, {}), ({}, "{}"),
    ],
)  # fmt: skip
def test_nonsense_of_a_model_is_answered(world: World, name, arguments):
    world.save("Juno's cat is named Mochi", scope="personal", subject=USER)
    given = reply(world)
    assert given.prefix.memories
    done = world.memory.run_tool(PERSONA, given, name, arguments)
    assert not done.ok
    assert done.content.startswith("Not done. ")


def test_d28_what_is_over_already_is_not_saved_and_the_model_is_told(world: World):
    given = reply(world)
    over = call(world, given, "remember", text="Juno is in Lisbon", until="2026-05-03")
    assert (over.ok, over.content) == (
        False, "Not done. 2026-05-03 is over: today is 2026-05-04. Do not save what is over, or leave until out.",
    )  # fmt: skip
    assert call(world, given, "remember", text="Juno is in Lisbon", until="2026-05-04").ok, "its last day is not over"
    given = reply(world)
    assert not call(world, given, "update_memory", memory="Juno is in Lisbon", text="She was", until="2020-01-01").ok


def test_r13_of_nobody_who_is_away_and_of_no_server_in_private(world: World):
    away = call(world, reply(world), "remember", text="a fact", about="rui")
    assert (away.ok, away.content) == (
        False, "Not done. 'rui' does not take part here. about is one of: juno, kai, server.",
    )  # fmt: skip
    assert not call(world, reply(world, users=(USER,), server=None), "remember", text="a fact", about="server").ok


def test_c10_it_updates_by_number_or_by_text_and_the_old_wording_is_history(world: World):
    lisbon = world.save("Juno lives in Lisbon")
    given = reply(world, "I moved to Porto")
    number = [m.id for m in given.prefix.memories].index(lisbon) + 1
    done = call(world, given, "update_memory", memory=str(number), text="Juno lives in Porto")
    assert done.content == "Done. It now reads: Juno lives in Porto"
    again = reply(world, "to Braga now")
    assert "Lisbon" not in again.prefix.text
    assert call(world, again, "update_memory", memory="juno lives in porto", text="Juno lives in Braga").ok
    world.project()
    texts = [(x.before, x.after) for x in world.memory.history(memory=lisbon).entries if x.event == "MemoryEdited"]
    assert texts == [("Juno lives in Lisbon", "Juno lives in Porto"), ("Juno lives in Porto", "Juno lives in Braga")]


def test_d28_a_date_until_which_it_is_true(world: World):
    done = call(world, reply(world), "remember", text="Juno is on holiday", until="2026-05-12")
    assert done.memory.until == date(2026, 5, 12)
    assert "until" in call(world, reply(world), "remember", text="x", until="soon").content


def test_r15_a_pinned_memory_is_out_of_its_reach(world: World):
    cat = world.save("Juno's cat is named Mochi")
    world.memory.pin(cat)
    given = reply(world)
    for name, more in (("forget_memory", {}), ("update_memory", {"text": "no cat"})):
        refused = call(world, given, name, memory="1", **more)
        assert not refused.ok
        assert "pinned" in refused.content
    assert world.memory.get(cat).text == "Juno's cat is named Mochi"


def test_it_forgets_and_a_restore_brings_it_back(world: World):
    cat = world.save("Juno's cat is named Mochi")
    assert call(world, reply(world), "forget_memory", memory="Juno's cat is named Mochi").ok
    assert "Mochi" not in reply(world).prefix.text
    world.memory.restore(cat)
    assert "Mochi" in reply(world).prefix.text


def test_t14_t15_a_full_list_is_told_to_the_model_and_the_notice_to_people(world: World):
    world.memory.set_policy(list_capacity=1)
    world.save("one")
    refused = call(world, reply(world), "remember", text="two", about="server")
    assert not refused.ok
    assert "full" in refused.content
    assert [n.audience for n in refused.notices] == ["everyone"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("dance", {}, "There is no tool"),
        ("remember", "{not json", "does not fit"),
        ("remember", {}, "text"),
        ("remember", {"text": "x", "mood": "sad"}, "mood"),
        ("remember", {"text": "  "}, "empty"),
        ("forget_memory", {"memory": "99"}, "You remember nothing that reads"),
        ("forget_memory", {"memory": "Juno's cat is named Moshi"}, "Did you mean: Juno's cat is named Mochi"),
        ("remember", 5, "does not fit"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_and_writes_nothing(world: World, name: str, arguments, said: str):
    world.save("Juno's cat is named Mochi")
    given = reply(world)

    def act():
        done = world.memory.run_tool(PERSONA, given, name, arguments)
        assert not done.ok
        assert said in done.content

    assert world.wrote(act) == []


def test_d19_the_same_request_saves_once(world: World):
    given = reply(world)
    first = world.memory.run_tool(PERSONA, given, "remember", {"text": "once"}, request_id="call-1")
    assert (
        world.memory.run_tool(PERSONA, given, "remember", {"text": "once"}, request_id="call-1").memory == first.memory
    )
