"""Chats on the real store: what is said, worded anew, taken out, forked and erased (R1, R2, R3, D16, D18, D19)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound
from tests.support.world import PERSONA, SERVER, USER, World


@pytest.fixture
def world(database_url: str):
    with World(database_url) as made:
        yield made


def chat_of(world: World) -> str:
    return world.memory.reply(PERSONA, message="hello", users=[USER], server=SERVER, turn="t0").chat


def said(answer) -> list[tuple[str, str]]:
    return [(m.author, m.text) for m in answer.messages]


def ask(world: World, text: str, turn: str, **more):
    return world.memory.reply(PERSONA, message=text, users=[USER], server=SERVER, turn=turn, **more)


def answer(world: World, chat: str, text: str, turn: str):
    return world.memory.post(chat, text, author=PERSONA, role="persona", turn=turn)


@pytest.mark.parametrize("projected", [False, True])
def test_r1_a_reply_has_what_was_said_before_it_the_newest_message_last(world: World, projected: bool):
    chat = chat_of(world)
    answer(world, chat, "Hello, Juno!", "t0")
    if projected:
        world.project()
    second = ask(world, "how are you?", "t1")
    assert said(second) == [(USER, "hello"), (PERSONA, "Hello, Juno!"), (USER, "how are you?")]
    assert (second.window.messages, second.window.total, second.window.unsummarised, second.window.unsent) == (
        3,
        3,
        3,
        0,
    )
    assert second.window.tokens == sum(m.tokens for m in second.messages)


@pytest.mark.parametrize("projected", [False, True])
def test_d19_a_new_attempt_takes_the_place_of_the_old_answer(world: World, projected: bool):
    """R14: and what the old one saved is gone with it."""
    chat = chat_of(world)
    answer(world, chat, "First try", "t0")
    world.save("Juno said hello", turn="t0")
    if projected:
        world.project()
    again = ask(world, "hello", "t0")
    assert said(again) == [(USER, "hello")]
    assert again.prefix.memories == []
    answer(world, chat, "Second try", "t0")
    if projected:
        world.project()
    assert said(ask(world, "and now?", "t1")) == [(USER, "hello"), (PERSONA, "Second try"), (USER, "and now?")]
    world.project()
    assert [m.text for m in world.memory.messages(chat).messages] == ["hello", "Second try", "and now?"]


def test_d19_a_turn_that_comes_again_with_another_wording_edits_its_message(world: World):
    chat = chat_of(world)
    answer(world, chat, "Hello!", "t0")
    again = ask(world, "hello there", "t0")
    assert said(again) == [(USER, "hello there")]
    world.project()
    shown = world.memory.messages(chat).messages
    assert [(m.text, m.edited_at is not None) for m in shown] == [("hello there", True)]


@pytest.mark.parametrize("projected", [False, True])
def test_edited_and_deleted_messages_are_sent_as_they_are_now(world: World, projected: bool):
    chat = chat_of(world)
    first = answer(world, chat, "My name is Mira", "t0")
    second = world.memory.post(chat, "psst", author="kai")
    world.memory.edit_message(first.message, "My name is Mira Bell")
    world.memory.delete_message(second.message)
    if projected:
        world.project()
    assert said(ask(world, "so?", "t1")) == [(USER, "hello"), (PERSONA, "My name is Mira Bell"), (USER, "so?")]
    with pytest.raises(NotFound, match="no message"):
        world.memory.edit_message(second.message, "back")


@pytest.mark.parametrize("projected", [False, True])
def test_d14_a_rewind_takes_the_later_messages_out(world: World, projected: bool):
    chat = chat_of(world)
    for n in range(1, 4):
        ask(world, f"message {n}", f"t{n}")
        answer(world, chat, f"answer {n}", f"t{n}")
    world.project()
    world.memory.rewind("t1")
    if projected:
        world.project()
    assert [text for _, text in said(ask(world, "again", "t9"))] == ["hello", "message 1", "answer 1", "again"]


@pytest.mark.parametrize("projected", [False, True])
def test_d18_a_fork_inherits_up_to_its_point_and_both_go_on_by_themselves(world: World, projected: bool):
    chat = chat_of(world)
    point = answer(world, chat, "Hello!", "t0")
    ask(world, "only in the original", "t1")
    forked = world.memory.fork(chat, "what if", message=point.message)
    assert (forked.messages, forked.parent) == (2, chat)
    world.memory.edit_message(point.message, "Hello, hello!")
    if projected:
        world.project()
    there = world.memory.reply(PERSONA, message="in the fork", users=[USER], server=SERVER, chat="what if", turn="f1")
    assert [text for _, text in said(there)] == ["hello", "Hello!", "in the fork"]
    assert [text for _, text in said(ask(world, "here", "t2"))] == [
        "hello",
        "Hello, hello!",
        "only in the original",
        "here",
    ]
    again = world.memory.fork("what if", "what if again")
    assert again.messages == 3
    world.project()
    assert [m.text for m in world.memory.messages("what if again").messages] == ["hello", "Hello!", "in the fork"]
    with pytest.raises(NotAllowed, match="already"):
        world.memory.fork(chat, "what if")


def test_d18_r10_a_fork_shares_the_memories(world: World):
    chat = chat_of(world)
    world.memory.fork(chat, "other")
    world.save("Juno's cat is named Mochi")
    there = world.memory.reply(PERSONA, message="hm", users=[USER], server=SERVER, chat="other", turn="f1")
    assert "Mochi" in there.prefix.text


def test_r17_a_challenge_chat_keeps_nothing(world: World):
    chat = chat_of(world)
    quiet = ask(world, "secret", "t1", memory="off")
    assert quiet.messages == []
    assert "secret" not in str(said(ask(world, "so?", "t2")))
    world.project()
    assert world.memory.chat(chat).messages == 2


def test_r2_d16_outside_the_window_is_sent_raw_as_far_as_there_is_room_and_the_rest_is_counted(world: World):
    chat = chat_of(world)
    for n in range(99):
        world.memory.post(chat, f"line {n} " + "and so on " * 6, author="kai")
    world.project()
    all_of_it = ask(world, "so?", "t1")
    assert len(all_of_it.messages) == 101
    assert all_of_it.window.messages == 50
    assert all_of_it.window.unsent == 0
    world.memory.set_policy(answer_tokens=0)
    small = ask(world, "and?", "t2", model_context=2_000)
    assert small.window.tokens <= 2_000
    assert small.window.unsent == 102 - len(small.messages) > 0
    assert small.messages[-1].text == "and?"


def test_r3_the_level_is_the_persons_then_the_personas(world: World):
    chat_of(world)
    world.memory.set_persona(PERSONA, detail="key_events")
    assert ask(world, "a", "t1").window.detail == "key_events"
    world.memory.set_person(USER, details={PERSONA: "detailed"})
    assert ask(world, "b", "t2").window.detail == "detailed"
    assert ask(world, "c", "t3", platform="discord").window.detail == "balanced"
    with pytest.raises(InvalidInput):
        world.memory.set_person(USER, details={PERSONA: "all of it"})


def test_d19_the_same_request_gets_the_same_messages_and_posts_once(world: World):
    chat = chat_of(world)
    first = ask(world, "hi", "t1", request_id="r1")
    answer(world, chat, "later", "t1")
    assert said(ask(world, "hi", "t1", request_id="r1")) == said(first)
    posted = world.memory.post(chat, "once", author="kai", request_id="p1")
    assert world.memory.post(chat, "once", author="kai", request_id="p1").message == posted.message
    world.project()
    assert [m.text for m in world.memory.messages(chat).messages].count("once") == 1


def test_d31_c23_chats_and_messages_that_never_were_here_are_not_found(world: World, database_url: str):
    chat_of(world)
    world.memory.reply(PERSONA, message="x", users=[USER], chat="campaign", turn="c1")
    world.project()
    with pytest.raises(NotFound) as told:
        world.memory.chat("campain")
    assert told.value.details["near"] == ["campaign"]
    other = world.open(tenant="other")
    for look in (lambda: other.chat("campaign"), lambda: other.post("campaign", "hi", author="kai")):
        with pytest.raises(NotFound):
            look()
    (message,) = world.memory.messages("campaign").messages
    with pytest.raises(NotFound):
        other.edit_message(message.id, "mine")
    with pytest.raises(NotFound):
        other.delete_message(message.id)


def test_an_explicit_chat_stays_one_chat_whoever_takes_part(world: World):
    world.memory.reply(PERSONA, message="one", users=[USER], chat="table", turn="a")
    there = world.memory.reply(PERSONA, message="two", users=[USER, "kai"], chat="table", turn="b")
    assert [m.text for m in there.messages] == ["one", "two"]


def test_messages_are_paged_into_the_past(world: World):
    chat = chat_of(world)
    for n in range(9):
        world.memory.post(chat, f"m{n}", author="kai", said_at=datetime(2026, 1, 1, n, tzinfo=UTC), ref=f"discord-{n}")
    world.project()
    page = world.memory.messages(chat, limit=4)
    assert [m.ref for m in page.messages] == [f"discord-{n}" for n in range(5, 9)]
    before = world.memory.messages(chat, limit=6, before=page.before)
    assert [m.text for m in before.messages] == ["hello", "m0", "m1", "m2", "m3", "m4"]
    assert before.before is None


def test_d24_what_an_erased_person_said_is_nowhere_and_the_others_stay(world: World):
    chat = chat_of(world)
    world.memory.post(chat, "kai was here", author="kai")
    answer(world, chat, "Hi!", "t0")
    world.memory.reply(PERSONA, message="alone", users=["kai"], turn="k1")
    world.project()
    world.memory.erase("kai")
    assert said(ask(world, "who?", "t1")) == [(USER, "hello"), (PERSONA, "Hi!"), (USER, "who?")]
    world.project()
    assert world.memory.chat(chat).messages == 3
    with world.memory.engine.store.database.connection() as conn:
        texts = [row[0] for row in conn.execute("SELECT text FROM remembrancer.message").fetchall()]
    assert not any("kai" in text or "alone" in text for text in texts)


@pytest.mark.parametrize("text", ["", "  ", "a\x00b", "\ud800", 5, "x" * 200_001])
def test_bad_messages_are_refused(world: World, text):
    chat = chat_of(world)
    with pytest.raises(InvalidInput):
        world.memory.post(chat, text, author="kai")


def test_the_prompt_is_that_of_chat_completions(world: World):
    world.memory.set_persona(PERSONA, instructions="Be kind.")
    world.save("Juno's cat is named Mochi")
    chat = chat_of(world)
    answer(world, chat, "Hello, Juno!", "t0")
    prompt = ask(world, "how is Mochi?", "t1").prompt(PERSONA)
    assert [m["role"] for m in prompt] == ["system", "user", "assistant", "system", "user"]
    assert prompt[0]["content"].startswith("Be kind.\n\n# What you remember")
    assert [m["content"] for m in prompt[1:3]] == ["hello", "Hello, Juno!"]
    assert prompt[3]["content"].startswith("# Recent")
    assert prompt[4]["content"] == "how is Mochi?"
    world.memory.post(chat, "and I?", author="kai")
    world.memory.post(chat, "Hey there", author="rui", role="persona")
    named = [m["content"] for m in ask(world, "all well", "t2").prompt(PERSONA) if m["role"] == "user"]
    assert named == ["juno: hello", "juno: how is Mochi?", "kai: and I?", "rui: Hey there", "juno: all well"]


@pytest.mark.parametrize(
    "moment",
    [
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-10))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=10))), datetime(1899, 12, 31, tzinfo=UTC),
        datetime(3000, 1, 1, tzinfo=UTC), datetime(2026, 5, 4, 12),  # noqa: DTZ001
    ],
)  # fmt: skip
def test_a_moment_that_no_table_holds_is_refused_and_the_chat_goes_on(world: World, moment: datetime):
    chat = chat_of(world)
    with pytest.raises(InvalidInput):
        world.memory.post(chat, "x", author=USER, said_at=moment)
    assert ask(world, "still here?", "t1").messages[-1].text == "still here?"


def test_d16_two_first_replies_at_once_are_one_chat_and_neither_is_lost(world: World):
    def reply(user: str) -> str:
        barrier.wait(10)
        return world.memory.reply(PERSONA, message=f"hello from {user}", users=[user], chat=f"room {n}").turn

    for n in range(4):
        barrier = Barrier(2)
        with ThreadPoolExecutor(2) as both:
            list(both.map(reply, ["juno", "kai"]))
        world.project()
        texts = {m.text for m in world.memory.messages(f"room {n}").messages}
        assert texts == {"hello from juno", "hello from kai"}
        started = [ev for ev in world.events(e.ChatStarted) if ev.chat == f"room {n}"]
        assert len(started) == 1


def test_d14_d19_a_turn_belongs_to_its_chat_and_is_undone_by_no_other(world: World):
    first = world.memory.reply(PERSONA, message="I love tea", users=[USER], chat="A", turn="1")
    world.memory.run_tool(PERSONA, first, "remember", {"text": "Juno loves tea"})
    world.memory.fork("A", "B")
    for chat in ("other", "B"):
        with pytest.raises(NotAllowed, match="was played in the chat 'A'") as error:
            world.memory.reply(PERSONA, message="I love beer", users=["kai"], chat=chat, turn="1")
        assert error.value.rule == "D19"
    assert world.texts("personal") == {"Juno loves tea"}
    assert world.memory.reply(PERSONA, message="I love tea", users=[USER], chat="A", turn="1").attempt == 2


@pytest.mark.parametrize("verb", ["edit", "delete"])
def test_d19_a_change_of_a_message_asked_again_is_the_first_answer_also_when_it_is_gone(world: World, verb: str):
    chat = chat_of(world)
    posted = world.memory.post(chat, "once", author=USER)

    def change() -> Any:
        if verb == "edit":
            return world.memory.edit_message(posted.message, "twice", request_id="c1")
        return world.memory.delete_message(posted.message, request_id="c1")

    first = change()
    if verb == "edit":
        world.memory.delete_message(posted.message)
    assert world.wrote(change) == []
    assert change() == first
    with pytest.raises(InvalidInput):
        world.memory.edit_message(posted.message, "other", request_id="c1")


def test_d19_the_late_answer_of_a_replaced_attempt_is_refused(world: World):
    chat = chat_of(world)
    ask(world, "hi", "t9")
    again = ask(world, "hi", "t9")
    with pytest.raises(NotAllowed, match="attempt 1 of the turn, and there is attempt 2"):
        world.memory.post(chat, "too late", author=PERSONA, role="persona", turn="t9", attempt=1)
    world.memory.post(chat, "in time", author=PERSONA, role="persona", turn="t9", attempt=again.attempt)
    for bad in (0, -1, "1", 1.5, True):
        with pytest.raises(InvalidInput):
            world.memory.post(chat, "x", author=PERSONA, role="persona", turn="t9", attempt=bad)


@pytest.mark.parametrize("platform", ["discord", "telegram"])
def test_r3_a_chat_that_began_on_discord_stays_balanced_also_where_a_reply_does_not_say_so(world: World, platform: str):
    world.memory.set_person(USER, details={PERSONA: "detailed"})
    where = {"users": [USER], "server": "guild", "channel": "tea"}
    world.memory.reply(PERSONA, message="a", platform=platform, **where)
    assert world.memory.reply(PERSONA, message="b", **where).window.detail == "balanced"


@pytest.mark.parametrize("played", [0, 1])
def test_d19_the_same_turn_several_times_at_once_is_one_turn_with_one_attempt_after_the_other(
    world: World, played: int
):
    chat = chat_of(world)
    for _ in range(played):
        ask(world, "hi", "t1")
    barrier = Barrier(4)

    def reply(_: int) -> int:
        barrier.wait(10)
        return ask(world, "hi", "t1").attempt

    with ThreadPoolExecutor(4) as four:
        attempts = sorted(four.map(reply, range(4)))
    assert attempts == [played + n for n in range(1, 5)]
    world.project()
    assert [m.text for m in world.memory.messages(chat).messages].count("hi") == 1


def test_d16_a_name_is_one_chat_whoever_opens_forks_or_imports_it_at_the_same_moment(world: World):
    chat_of(world)
    world.memory.reply(PERSONA, message="hi", users=[USER], chat="source")

    def act(which: int) -> None:
        barrier.wait(10)
        with suppress(NotAllowed):
            match which:
                case 0:
                    world.memory.open_chat(name, personas=[PERSONA, "otto"], users=["rui"])
                case 1:
                    world.memory.fork("source", name)
                case 2:
                    world.memory.import_chat('[{"role": "user", "text": "x"}]', chat=name, persona=PERSONA, user="kai")
                case 3:
                    world.memory.reply(PERSONA, message="hello", users=["juno", "ana"], chat=name)

    for n in range(3):
        name, barrier = f"name {n}", Barrier(4)
        with ThreadPoolExecutor(4) as four:
            list(four.map(act, range(4)))
        began = [ev for ev in world.events(e.ChatStarted) + world.events(e.ChatForked) if ev.chat == name]
        assert len(began) == 1
        world.project()
        assert world.memory.chat(name).personas
