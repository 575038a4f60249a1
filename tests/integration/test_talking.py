"""A whole turn with a chat model over real HTTP: what it is asked, what it does, what is kept (R13a, R17, T15, D19)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, Refused, RequestReused
from remembrancer.services.answers import ReplyAnswer
from remembrancer.services.answers_talk import TalkAnswer
from remembrancer.services.chat_models import ModelFailed
from remembrancer.services.talking import MOST_CALLS, MOST_ROUNDS
from tests.support import scripted_chat as script
from tests.support.scripted_chat import ScriptedChat, calls, says
from tests.support.world import PERSONA, SERVER, USER, World

CAT = "Juno's cat is named Mochi"
REMEMBERS = calls(("remember", {"text": CAT}))


@pytest.fixture
def model() -> Iterator[ScriptedChat]:
    with ScriptedChat() as made:
        yield made


@pytest.fixture
def world(database_url: str, model: ScriptedChat) -> Iterator[World]:
    with World(database_url, chat_model="scripted", chat_model_url=model.url, chat_model_timeout=20.0) as made:
        yield made


def talk(world: World, message: str = "hello", **how: Any) -> TalkAnswer:
    given = {"users": [USER], "server": SERVER} | how
    return world.memory.talk(PERSONA, message=message, **given)


def personal(world: World) -> set[str]:
    return world.texts("personal")


def test_r13_a_turn_from_the_message_to_the_answer(world: World, model: ScriptedChat):
    world.save("Kai plays the oboe")
    model.script = [REMEMBERS, says("What a name!")]
    seen: list[Any] = []
    answer = talk(world, "my cat is called Mochi", turn="t1", watch=seen.append)
    assert (answer.text, answer.turn, answer.attempt, answer.tools) == ("What a name!", "t1", 1, True)
    (call,) = answer.calls
    assert (call.name, call.did, call.memory.text) == ("remember", "saved", CAT)
    assert isinstance(seen[0], ReplyAnswer)
    assert seen[1:] == [call]
    first, second = model.requests
    assert first.messages == answer.reply.prompt(PERSONA)
    assert (first.tools, first.choice) == (["remember", "update_memory", "forget_memory"], "auto")
    assert second.messages[: len(first.messages)] == first.messages
    asked, told = second.messages[len(first.messages) :]
    assert (asked["role"], told["role"], told["content"]) == ("assistant", "tool", f"Saved: {CAT}")
    assert asked["tool_calls"][0]["id"] == told["tool_call_id"]
    world.project()
    page = world.memory.messages(answer.chat).messages
    assert [(m.author, m.text, m.turn) for m in page] == [
        (USER, "my cat is called Mochi", "t1"), (PERSONA, "What a name!", "t1"),
    ]  # fmt: skip
    assert page[1].id == answer.message
    assert (answer.input_tokens, answer.output_tokens, answer.cost) == (200, 40, None)
    assert [ev.cost for ev in world.events(e.ReplyCosted)] == [240]


def test_t15_notices_are_for_whom_they_name_and_in_no_prompt(world: World, model: ScriptedChat):
    model.script = [
        calls(("remember", {"text": CAT}), ("remember", {"text": "Kai sings", "about": "server"})),
        says("Yes"),
    ]
    answer = talk(world)
    assert [(n.audience, n.user) for n in answer.notices] == [("owner", USER), ("everyone", None)]
    talk(world, "and now?")
    said = [str(m["content"]) for asked in model.requests for m in asked.messages]
    assert any(CAT in text for text in said)
    assert not any(notice.text in text for notice in answer.notices for text in said)


def test_r11_in_a_group_each_member_talks_as_itself(world: World, model: ScriptedChat):
    world.memory.open_chat("party", personas=["mira", "rui"], users=[USER])
    model.script = [REMEMBERS, says("What a name!"), says("A cat? Where?")]
    world.memory.talk("mira", message="my cat is called Mochi", users=[USER], chat="party", platform="web")
    answer = world.memory.talk("rui", message="and you, Rui?", users=[USER], chat="party", platform="web")
    said = [(m["role"], m["content"]) for m in model.requests[-1].messages]
    assert any(role == "system" and CAT in text for role, text in said), "Rui reads what Mira remembers"
    assert ("user", "mira: What a name!") in said
    assert (answer.text, personal(world)) == ("A cat? Where?", {CAT})


def test_what_is_noted_stands_before_the_newest_message_and_is_not_kept(world: World, model: ScriptedChat):
    talk(world, "who am I?", note="juno is Juno Abara")
    *_, note, newest = model.requests[0].messages
    assert (note["content"], newest["content"]) == ("juno is Juno Abara", "who am I?")
    talk(world, "and now?")
    assert "Abara" not in str(model.requests[1].messages)


def test_r17_an_endpoint_that_refuses_tools_is_asked_without_from_then_on(world: World, model: ScriptedChat):
    model.otherwise = script.no_tools
    first, second = talk(world, "one"), talk(world, "two")
    assert (first.text, first.tools, second.text, second.tools) == ("You say: one", False, "You say: two", False)
    assert [bool(asked.tools) for asked in model.requests] == [True, False, False]


def test_a_prompt_that_only_just_was_too_long_with_the_tools_says_nothing_of_the_next(
    world: World, model: ScriptedChat
):
    model.script = [script.status(400), says("Short."), REMEMBERS, says("Noted.")]
    assert not talk(world, "a long story").tools
    assert talk(world, "and a short one").tools


def test_d19_an_answer_that_comes_after_a_newer_attempt_of_its_turn_is_not_kept(world: World, model: ScriptedChat):
    def ask_again(exchange: script.Exchange) -> None:
        world.memory.reply(PERSONA, message="hello", users=[USER], server=SERVER, turn="t1")
        exchange.say("Too late.")

    model.script = [ask_again]
    with pytest.raises(Refused, match="newer attempt"):
        talk(world, turn="t1")
    world.project()
    assert [m.text for m in world.memory.messages("server:tea%20house:mira").messages] == ["hello"]


def test_a_model_that_stalls_is_given_up_in_time(world: World, model: ScriptedChat):
    world.reopen(chat_model_timeout=0.5)
    model.script = [script.stall]
    began = time.monotonic()
    with pytest.raises(ModelFailed, match="too long"):
        talk(world)
    assert time.monotonic() - began < 5


def test_a_request_that_is_refused_with_and_without_tools_says_nothing_of_tools(world: World, model: ScriptedChat):
    model.script = [script.status(400)] * 2
    with pytest.raises(ModelFailed, match="status 400"):
        talk(world, turn="t1")
    model.script = [REMEMBERS, says("Yes")]
    assert talk(world, turn="t1").tools


def test_r17_a_model_may_be_kept_from_its_tools(world: World, model: ScriptedChat):
    assert not talk(world, tools=False).tools
    assert model.requests[0].tools == []


def test_a_model_that_only_calls_has_to_say_something_in_the_end(world: World, model: ScriptedChat):
    one = calls(("remember", {"text": "x"}))
    model.script = [*[one] * MOST_ROUNDS, says("Well.")]
    answer = talk(world)
    assert (answer.text, len(answer.calls)) == ("Well.", MOST_ROUNDS)
    assert [asked.choice for asked in model.requests] == [*["auto"] * MOST_ROUNDS, "none"]
    model.otherwise = one
    with pytest.raises(ModelFailed, match="nothing but tool calls"):
        talk(world)


def test_calls_of_one_turn_have_a_bound(world: World, model: ScriptedChat):
    many = [("remember", {"text": f"fact {n}"}) for n in range(MOST_CALLS + 2)]
    model.script = [calls(*many), says("All noted.")]
    assert [call.ok for call in talk(world).calls] == [True] * MOST_CALLS + [False] * 2
    assert len(personal(world)) == MOST_CALLS


def test_what_is_said_beside_a_call_counts_if_nothing_comes_after_it(world: World, model: ScriptedChat):
    model.script = [calls(("remember", {"text": CAT}), text="I shall remember Mochi."), says("")]
    assert talk(world).text == "I shall remember Mochi."


@pytest.mark.parametrize("bad", [says(""), script.reasoning_only, script.no_choices, script.not_json, script.drop])
def test_c17_an_answer_without_words_is_asked_for_again(world: World, model: ScriptedChat, bad: script.Behaviour):
    model.script = [bad, says("<think>Who is that?</think>Hello, Juno.")]
    assert talk(world).text == "Hello, Juno."


def test_arguments_that_are_no_json_are_told_to_the_model(world: World, model: ScriptedChat):
    model.script = [calls(("remember", "{text: ")), says("Never mind.")]
    (call,) = talk(world).calls
    assert (call.ok, call.did) == (False, "refused")
    assert "does not fit" in model.requests[1].messages[-1]["content"]


def test_d19_after_a_failure_the_same_turn_again_takes_back_what_was_done_and_asks_again(
    world: World, model: ScriptedChat
):
    model.script = [REMEMBERS, script.status(401)]
    with pytest.raises(ModelFailed):
        talk(world, "my cat is called Mochi", turn="t1")
    assert personal(world) == {CAT}
    model.script = [says("What a name!")]
    answer = talk(world, "my cat is called Mochi", turn="t1")
    assert answer.attempt == 2
    assert personal(world) == set()
    world.project()
    texts = [m.text for m in world.memory.messages(answer.chat).messages]
    assert texts == ["my cat is called Mochi", "What a name!"]


def test_d19_the_same_request_gets_the_first_answer_and_writes_nothing(world: World, model: ScriptedChat):
    model.script = [REMEMBERS, says("What a name!")]
    first = talk(world, request_id="r1")
    assert world.wrote(lambda: talk(world, request_id="r1")) == []
    again = talk(world, request_id="r1")
    assert again.model_dump(exclude={"positions", "reply"}) == first.model_dump(exclude={"positions", "reply"})
    assert [m.id for m in again.reply.messages] == [m.id for m in first.reply.messages]
    assert len(model.requests) == 2
    with pytest.raises(RequestReused):
        talk(world, "something else", request_id="r1")


def test_d24_an_answer_about_somebody_who_was_erased_is_not_repeated(world: World, model: ScriptedChat):
    talk(world, request_id="r1", server=None)
    world.memory.erase(USER)
    with pytest.raises((InvalidInput, NotAllowed), match="erased"):
        talk(world, request_id="r1", server=None)


def test_r8_a_turn_that_costs_far_more_than_usual_is_noticed(world: World, model: ScriptedChat):
    for _ in range(6):
        assert talk(world).notices == []
    model.usage = {"prompt_tokens": 5_000, "completion_tokens": 20, "total_tokens": 5_020}
    (notice,) = talk(world).notices
    assert "High cost" in notice.text
    assert talk(world).notices == []


def test_prices_make_a_cost_of_the_tokens(world: World):
    world.reopen(chat_prices={"scripted": (1.0, 10.0)})
    assert talk(world).cost == pytest.approx(0.0003)


def test_without_a_model_it_says_so_and_writes_nothing(world: World):
    world.reopen(chat_model=None)

    def refused() -> None:
        with pytest.raises(NotAllowed, match=r"REMEMBRANCER_CHAT_MODEL .*REMEMBRANCER_CHAT_MODEL_URL"):
            talk(world)

    assert world.wrote(refused) == []


@pytest.mark.parametrize("bad", [{"message": " "}, {"note": 5}, {"tools": "yes"}, {"request_id": "\x00"}, {"users": 3}])
def test_bad_input_is_refused_and_writes_nothing(world: World, bad: dict[str, Any]):
    def refused() -> None:
        with pytest.raises(InvalidInput):
            talk(world, **bad)

    assert world.wrote(refused) == []
