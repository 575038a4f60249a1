"""What stands in the way of one summary holds up no other one, and nothing of it is silently lost (R4, R6, D16)."""

from __future__ import annotations

from typing import Any

import pytest

from remembrancer.domain import events as e
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.world import PERSONA


@pytest.fixture
def talk(database_url: str):
    with talking(database_url, chunk_messages=4, recent_summaries=2, merged_summaries=2, model_context=20_000) as made:
        made.memory.set_persona(PERSONA, detail="key_events")  # a window of 30 messages
        yield made


def refusing(characters: int) -> script.Behaviour:
    """An endpoint whose model reads no more than that."""

    def behave(exchange: script.Exchange) -> None:
        if len(exchange.asked.question) > characters:
            return exchange.answer({"error": {"message": "context_length_exceeded"}}, 400)
        return script.answers(exchange)

    return behave


def uncovered(talk: Talk) -> int:
    return talk.memory.chat(CHAT).unsummarised


@pytest.mark.parametrize("reads", [30_000, 8_000])
def test_d16_a_message_longer_than_the_model_reads_is_read_in_part_which_is_said_and_the_others_are_summarised(
    talk: Talk, reads: int
):
    talk.turn("begin")
    text = "START " + "記憶の長い手紙" * 8_000 + " FINISH"
    talk.memory.post(CHAT, text, author="kai")
    talk.many(24)
    talk.model.otherwise = refusing(reads)
    talk.compact()
    assert uncovered(talk) < 30 + 4
    assert talk.memory.chat(CHAT).summaries_wait is None
    (asked,) = [
        one for one in talk.model.requests
        if "START" in one.question and one.shape == "ChunkDraft" and len(one.question) <= reads
    ]  # fmt: skip
    assert "FINISH" in asked.question
    assert "characters left out ...]" in asked.question
    (chunk,) = [c for c in talk.world.events(e.ChunkSummarised) if "too long to be read whole" in c.text]
    assert (chunk.messages, chunk.rules) == (1, ())
    assert talk.memory.messages(CHAT, limit=1000).messages[2].text == text, "the message itself stays as it is"


def test_d16_a_chunk_that_a_model_does_not_take_whole_is_done_in_parts(talk: Talk):
    talk.turn("begin")
    for n in range(8):
        talk.memory.post(CHAT, f"letter {n}: " + "and then it rained again, " * 250, author="kai")
    talk.many(20)
    talk.model.otherwise = refusing(15_000)
    talk.compact()
    assert uncovered(talk) < 30 + 4
    chunks = talk.world.events(e.ChunkSummarised)
    assert {c.messages for c in chunks} == {2, 4}
    assert not any("too long" in c.text for c in chunks)


def test_r4_a_chunk_of_which_a_model_makes_nothing_is_passed_by_and_tried_again(talk: Talk):
    talk.turn("POISON")
    talk.many(29)

    def writer(asked: script.Asked) -> dict[str, Any]:
        return {"summary": " ", "rules": []} if "POISON" in asked.question else script.written(asked)

    talk.model.writer = writer
    for _ in range(8):
        talk.compact()
        talk.world.later(seconds=6)
    assert uncovered(talk) == 30 + 4 + 2
    assert talk.memory.chat(CHAT).summaries_wait is not None
    assert "POISON" in [m.text for m in talk.look().messages], "it is sent as it is"
    talk.model.writer = script.written
    talk.world.later(hours=1)
    talk.compact()
    assert uncovered(talk) == 30 + 2
    assert talk.memory.chat(CHAT).summaries_wait is None


@pytest.mark.parametrize("bad", ["nothing", "refused"])
def test_r6_a_long_term_summary_that_cannot_be_condensed_holds_nothing_up(talk: Talk, bad: str):
    long = "many words that fill a long-term summary until it is over its size; " * 400

    def writer(asked: script.Asked) -> dict[str, Any]:
        made = script.written(asked)
        if asked.shape == "LongTermDraft":
            made["chronology"] = [long]
        if asked.shape == "CondensedDraft":
            made["chronology"] = [" "]
        return made

    def behave(exchange: script.Exchange) -> None:
        refused = bad == "refused" and exchange.asked.shape == "CondensedDraft"
        return exchange.answer({"error": {}}, 400) if refused else script.answers(exchange)

    talk.model.writer, talk.model.otherwise = writer, behave
    talk.many(33)
    talk.compact()
    assert [s.tier for s in talk.world.events(e.SummariesMerged)][-1] == "long_term"
    assert not talk.world.events(e.LongTermCondensed)
    assert uncovered(talk) < 30 + 4
    assert talk.memory.chat(CHAT).summaries_wait is not None
    chunks = len(talk.world.events(e.ChunkSummarised))
    talk.many(4)
    talk.compact()
    assert len(talk.world.events(e.ChunkSummarised)) == chunks + 2, "new messages wait for no pause"
    talk.model.writer, talk.model.otherwise = script.written, script.answers
    talk.world.later(hours=2)
    talk.compact()
    assert talk.world.events(e.LongTermCondensed), "it is tried again"
    assert talk.memory.chat(CHAT).summaries_wait is None


def test_d16_a_summary_far_longer_than_was_asked_for_is_none(talk: Talk):
    talk.many(20)
    talk.model.writer = lambda asked: {"summary": "blah lah " * 100_000, "rules": []}
    talk.compact()
    assert not talk.world.events(e.ChunkSummarised)
    assert "longer than what it tells" in talk.memory.chat(CHAT).summaries_wait
    talk.model.writer = script.written
    talk.world.later(seconds=6)
    talk.compact()
    talk.model.writer = lambda asked: {"summary": "blah lah " * 2_000, "rules": []}
    talk.many(8)
    talk.compact()
    assert all(s.tokens <= 800 for s in talk.world.events(e.ChunkSummarised))
    assert all(s.tokens <= 2_000 for s in talk.world.events(e.SummariesMerged))
