"""Drafts of a description, and what is saved out of a conversation (R13 c and d, R19, D9, D10, D19-D21; C9, C18)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import uuid4

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound, PinsFull, TextTooLong, Unavailable
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.world import PERSONA, USER, desk


@pytest.fixture
def talk(database_url: str) -> Iterator[Talk]:
    with talking(database_url) as made:
        yield made


def draft(text: str, about: str = "Juno", until: str | None = None, messages: Any = (1,)) -> dict[str, Any]:
    return {"text": text, "about": about, "until": until, "messages": list(messages)}


def drafting(talk: Talk, *drafts: dict[str, Any]) -> None:
    """The model answers these."""

    def written(asked: script.Asked) -> dict[str, Any]:
        fields = ("text", "about", "until") + (("messages",) if asked.shape == "HeardDrafts" else ())
        return {"memories": [{f: d[f] for f in fields} for d in drafts]}

    talk.model.writer = written


def generate(talk: Talk, description: str = "I keep bees", **how: Any) -> Any:
    return talk.memory.generate(PERSONA, **{"scope": "personal", "subject": USER} | how, description=description)


def said(talk: Talk, *texts: str) -> list[Any]:
    """The ids of these messages of Juno's, in the chat."""
    for text in texts:
        talk.turn(text)
    talk.world.project()
    page = talk.memory.messages(CHAT, limit=1000).messages
    return [m.id for text in texts for m in page if m.text == text]


# -- generate --------------------------------------------------------------------------------------------------------


def test_r13_drafts_are_reviewed_and_a_confirmed_one_is_a_persons(talk: Talk):
    drafting(talk, draft("Juno keeps bees"), draft("Juno is on holiday", until="2026-05-12"))
    wrote = talk.world.wrote(lambda: generate(talk))
    assert not [w for w in wrote if w != "PolicyChanged"], "nothing is saved, and nothing is kept of a draft"
    answer = generate(talk)
    assert [(d.text, d.until) for d in answer.drafts] == [
        ("Juno keeps bees", None), ("Juno is on holiday", date(2026, 5, 12)),
    ]  # fmt: skip
    saved = talk.memory.save(PERSONA, scope="personal", subject=USER, text=answer.drafts[0].text)
    assert (saved.memory.protected, saved.memory.pinned) == (True, False)


def test_r13_the_chat_is_not_read_for_it(talk: Talk):
    said(talk, "the vault's number is 4711")
    drafting(talk)
    generate(talk, "I keep bees")
    assert "4711" not in talk.model.requests[-1].question + talk.model.requests[-1].instructions


def test_r19_d20_the_question_has_the_day_and_says_what_memories_are_for(talk: Talk):
    drafting(talk)
    generate(talk)
    told = talk.model.requests[-1].instructions
    assert "2026-05-04" in told
    assert "stays true for weeks" in told


def test_r13_at_most_five_drafts_of_at_most_1000_characters(talk: Talk):
    drafting(talk, *(draft(f"Juno keeps {n} bees") for n in range(7)))
    answer = generate(talk, "x" * 1_000)
    assert (len(answer.drafts), len(answer.left_out)) == (5, 2)
    with pytest.raises(TextTooLong, match="1001"):
        generate(talk, "x" * 1_001)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (draft("x" * 501 + " Juno"), "506"), (draft(" "), "nothing"), (draft("Juno leaves tomorrow"), "tomorrow"),
        (draft("keeps bees"), "Juno"),
    ],
)  # fmt: skip
def test_d10_d20_c9_what_is_no_memory_is_left_out_with_the_reason(talk: Talk, bad: dict[str, Any], why: str):
    drafting(talk, bad, draft("Juno keeps bees"))
    answer = generate(talk)
    assert [d.text for d in answer.drafts] == ["Juno keeps bees"]
    assert why in answer.left_out[0].why


def test_t16_d12_a_draft_says_what_a_save_would_warn_of(talk: Talk):
    talk.memory.save(PERSONA, scope="personal", subject=USER, text="Juno keeps bees")
    drafting(talk, draft("juno keeps BEES"), draft("Always answer Juno in Spanish"))
    warned = [d.warnings for d in generate(talk).drafts]
    assert "already" in warned[0][0]
    assert "instruction" in warned[1][0]


@pytest.mark.parametrize("bad", script.BAD)
def test_a_model_that_fails_is_said_and_nothing_is_saved(talk: Talk, bad: script.Behaviour):
    talk.model.otherwise = bad
    if bad in (script.blank, script.wrong_shape):
        drafting(talk)
        bad = script.no_choices
        talk.model.otherwise = bad
    with pytest.raises(Unavailable) as error:
        generate(talk)
    assert "again" in str(error.value.hint)


@pytest.mark.parametrize("description", ["", "  ", "\x00", "\ud800", 7, None])
def test_a_description_that_is_none_is_refused(talk: Talk, description: Any):
    with pytest.raises(InvalidInput):
        generate(talk, description)
    assert not talk.model.requests


def test_without_a_model_it_says_what_to_set(database_url: str):
    with talking(database_url) as talk:
        talk.world.reopen(chat_model=None)
        with pytest.raises(Unavailable) as error:
            generate(talk)
        assert "REMEMBRANCER_CHAT_MODEL" in str(error.value.hint)
        (one,) = said(talk, "I keep bees")
        assert talk.memory.save_from_chat(CHAT, [one]).memories[0].text == "I keep bees"


# -- save from conversation ------------------------------------------------------------------------------------------


def test_r13_d21_messages_as_they_are_arrive_pinned_with_where_they_were_said(talk: Talk):
    ids = said(talk, "I keep bees", "and I sing")
    answer = talk.memory.save_from_chat(CHAT, list(reversed(ids)))
    assert [(m.text, m.pinned, m.protected, m.subject) for m in answer.memories] == [
        ("I keep bees", True, True, USER), ("and I sing", True, True, USER),
    ]  # fmt: skip
    saved = talk.world.events(e.MemorySaved)
    assert [(ev.actor, ev.source.chat, ev.source.messages) for ev in saved] == [
        ("person", CHAT, (str(ids[0]),)), ("person", CHAT, (str(ids[1]),)),
    ]  # fmt: skip
    assert "I keep bees" in desk(talk.turn("hello"))


def test_r13_one_that_is_too_long_refuses_the_call_and_is_named(talk: Talk):
    short, long = said(talk, "I keep bees", "y" * 501)
    with pytest.raises(TextTooLong, match=str(long)):
        talk.memory.save_from_chat(CHAT, [short, long])
    assert not talk.world.events(e.MemorySaved)


def test_d9_all_or_nothing_when_pins_are_short(talk: Talk):
    talk.memory.set_policy(pin_capacity=2)
    ids = said(talk, "one", "two", "three")
    with pytest.raises(PinsFull, match="3 memories would be pinned, and 2 of 2"):
        talk.memory.save_from_chat(CHAT, ids)
    assert not talk.world.events(e.MemorySaved)
    assert len(talk.memory.save_from_chat(CHAT, ids[:2]).memories) == 2


def test_d12_what_is_remembered_is_pinned_and_not_doubled(talk: Talk):
    there = talk.memory.save(PERSONA, scope="personal", subject=USER, text="i keep BEES").memory.id
    answer = talk.memory.save_from_chat(CHAT, said(talk, "I keep bees"))
    assert (answer.duplicates, answer.memories[0].id, answer.memories[0].pinned) == ([there], there, True)


def test_d19_the_same_request_again_is_the_first_answer_also_when_the_message_is_gone(talk: Talk):
    (one,) = said(talk, "I keep bees")
    first = talk.memory.save_from_chat(CHAT, [one], request_id="r")
    talk.memory.delete_message(one)
    assert talk.memory.save_from_chat(CHAT, [one], request_id="r") == first
    assert len(talk.world.events(e.MemorySaved)) == 1
    with pytest.raises(InvalidInput):
        talk.memory.save_from_chat(CHAT, [one], scope="global", request_id="r")


def test_r13_drafts_of_messages_are_reviewed_and_what_comes_of_that_is_saved(talk: Talk):
    ids = said(talk, "shall we meet tomorrow at nine?", "yes, tomorrow")
    drafting(talk, draft("Juno and Mira meet on 5 May 2026 at nine", "Juno", "2026-05-05", [1, 2]))
    answer = talk.memory.draft_from_chat(CHAT, ids)
    asked = talk.model.requests[-1].question
    assert "#1 [2026-05-04 12:00] juno: shall we meet tomorrow at nine?" in asked
    assert "yes, tomorrow" in asked
    assert list(answer.drafts[0].messages) == ids
    wording = answer.drafts[0].model_copy(update={"text": "We meet on 5 May 2026"})
    saved = talk.memory.save_from_chat(CHAT, ids, drafts=[wording])
    assert [(m.text, m.until, m.pinned) for m in saved.memories] == [
        ("We meet on 5 May 2026", date(2026, 5, 5), True)
    ]  # fmt: skip
    assert talk.world.events(e.MemorySaved)[0].source.messages == tuple(map(str, ids))


def test_c18_see_you_tomorrow_at_nine_has_the_date_or_is_not_drafted(talk: Talk):
    ids = said(talk, "see you tomorrow at nine")
    drafting(talk, draft("Juno meets Mira tomorrow at nine"), draft("Juno meets Mira on 5 May 2026 at nine"))
    answer = talk.memory.draft_from_chat(CHAT, ids)
    assert [d.text for d in answer.drafts] == ["Juno meets Mira on 5 May 2026 at nine"]
    assert "D20" in answer.left_out[0].why


def test_c9_my_friend_ana_hates_coffee_is_claimed_of_ana_alone(talk: Talk):
    ids = said(talk, "my friend Ana hates coffee")
    drafting(talk, draft("Juno hates coffee"), draft("hates coffee", "Ana"), draft("Juno's friend Ana hates coffee"))
    answer = talk.memory.draft_from_chat(CHAT, ids)
    assert [d.text for d in answer.drafts] == ["Juno's friend Ana hates coffee"]


def test_a_draft_that_rests_on_no_message_is_left_out(talk: Talk):
    ids = said(talk, "I keep bees")
    drafting(talk, draft("Juno keeps bees", messages=[]), draft("Juno sings", messages=[2, 0, -1]))
    assert [out.why for out in talk.memory.draft_from_chat(CHAT, ids).left_out] == ["no message says it"] * 2


@pytest.mark.parametrize(
    "messages", [[], "abc", None, [7], ["no id"], [uuid4() for _ in range(21)], [uuid4()], ["\x00"]]
)
def test_messages_that_are_none_are_refused(talk: Talk, messages: Any):
    said(talk, "I keep bees")
    for verb in (talk.memory.draft_from_chat, talk.memory.save_from_chat):
        with pytest.raises((InvalidInput, NotFound)):
            verb(CHAT, messages)
    assert not talk.world.events(e.MemorySaved)
    assert not talk.model.requests


def test_c23_messages_of_another_chat_or_tenant_are_not_found(talk: Talk):
    (mine,) = said(talk, "I keep bees")
    talk.turn("elsewhere", chat="other")
    talk.world.project()
    elsewhere = talk.memory.messages("other").messages[0].id
    stranger = talk.world.open(tenant="stranger", chat_model=None)
    stranger.reply(PERSONA, message="hi", users=[USER], chat=CHAT)
    for memory, message in ((talk.memory, elsewhere), (stranger, mine)):
        with pytest.raises(NotFound) as error:
            memory.save_from_chat(CHAT, [message])
        assert str(error.value).startswith(f"There is no message {message}.")


def test_whose_memory_it_is_has_to_be_clear(talk: Talk):
    talk.memory.open_chat("group", personas=["mira", "otto"], users=["juno", "kai"])
    talk.memory.reply("otto", message="I sing", users=["juno"], chat="group")
    talk.world.project()
    ids = [talk.memory.messages("group").messages[0].id]
    for how in ({}, {"persona": "otto"}, {"subject": "juno"}, {"persona": "otto", "scope": "server"}):
        with pytest.raises(InvalidInput):
            talk.memory.save_from_chat("group", ids, **how)
    with pytest.raises(NotAllowed):
        talk.memory.save_from_chat("group", ids, persona="lou", subject="juno")
    saved = talk.memory.save_from_chat("group", ids, persona="otto", subject="juno")
    assert (saved.memories[0].persona, saved.memories[0].subject) == ("otto", "juno")


@pytest.mark.parametrize("drafts", [[], "x", [{"until": None}], [{"text": "x", "messages": [str(uuid4())]}], [7]])
def test_drafts_that_are_none_are_refused(talk: Talk, drafts: Any):
    ids = said(talk, "I keep bees")
    with pytest.raises(InvalidInput):
        talk.memory.save_from_chat(CHAT, ids, drafts=drafts)
    assert not talk.world.events(e.MemorySaved)
