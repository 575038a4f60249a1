"""`why` over all three layers: saved memories, summaries, live messages (R1, R6, U1, D16, C7, C23)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remembrancer.domain.errors import NotFound
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.world import PERSONA, USER

FACT = "the vault of Porto opens with 4711"
QUESTION = "vault of Porto 4711"


class Teller:
    """Summaries tell the fact as far as a test says: by the shape of the question."""

    def __init__(self, talk: Talk, *tell: str) -> None:
        self.tell = set(tell)
        talk.model.writer = self.write

    def write(self, asked: script.Asked) -> dict[str, Any]:
        made = script.written(asked)
        fact = FACT if asked.shape in self.tell and "4711" in asked.question else "They talked."
        match asked.shape:
            case "ChunkDraft":
                return made | {"summary": fact}
            case "MergedDraft":
                return {"summary": fact}
            case "LongTermDraft":
                return {"chronology": [fact], "promises": [], "references": [], "state": ["They are here."]}
            case "CondensedDraft":
                return {"chronology": [fact], "promises": [], "references": [], "state": []}
        return made


@pytest.fixture
def talk(database_url: str) -> Iterator[Talk]:
    with talking(database_url, chunk_messages=4, recent_summaries=2, merged_summaries=2, chunks_per_run=100) as made:
        made.memory.set_persona(PERSONA, detail="key_events")  # a window of 30 messages
        yield made


def why(talk: Talk, q: Any = QUESTION, **how: Any) -> Any:
    talk.world.project()
    return talk.memory.why(q, **how)


def test_u1_never_saved_and_in_the_window(talk: Talk):
    talk.turn(FACT)
    told = why(talk)
    assert (told.status, told.memory) == ("never_saved", None)
    assert told.verdict == (
        "It was never saved as a memory. juno said it on 2026-05-04 in the chat campaign. It is in the live window, "
        "sent as it was said."
    )
    assert [(x.where, x.chat, x.author, x.text) for x in told.conversation] == [("window", CHAT, USER, FACT)]
    assert told.bring_back == f"remembrancer chat save campaign {told.conversation[0].message}"


def test_u1_d16_outside_the_window_and_in_no_summary(talk: Talk):
    talk.turn(FACT)
    talk.many(20)
    assert [x.where for x in why(talk).conversation] == ["raw"]


def test_u1_r5_in_a_summary_that_tells_it(talk: Talk):
    Teller(talk, "ChunkDraft")
    talk.turn(FACT)
    talk.many(17)
    talk.compact()
    (one,) = why(talk).conversation
    assert (one.where, one.tier) == ("summary", "recent")
    assert one.summary in [p.id for p in talk.memory.summary(CHAT).parts]
    assert one.sentence == "It is in the recent summary of 2026-05-04."


@pytest.mark.parametrize(
    ("tell", "tier", "how"),
    [
        ((), "recent", "left out when its messages were summarised"),
        (("ChunkDraft",), "merged", "dropped when it was merged into the merged summary"),
        (("ChunkDraft", "MergedDraft"), "long_term", "dropped when it was merged into the long-term summary"),
    ],
)
def test_u1_dropped_on_the_way_up_is_told_with_where_and_when(talk: Talk, tell: tuple[str, ...], tier: str, how: str):
    Teller(talk, *tell)
    talk.turn(FACT)
    talk.many(34)
    talk.compact()
    (one,) = why(talk).conversation
    assert (one.where, one.tier, one.sentence) == ("dropped", tier, f"It was {how}, on 2026-05-04.")


def test_u1_r6_dropped_when_the_long_term_summary_was_condensed(database_url: str):
    numbers = {"chunk_messages": 2, "recent_summaries": 2, "merged_summaries": 2, "condense_over": 1.0}
    with talking(database_url, **numbers, chunks_per_run=100) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        long = "and so on, word by word " * 1_000
        teller = Teller(talk, "ChunkDraft", "MergedDraft", "LongTermDraft")

        def write(asked: script.Asked) -> dict[str, Any]:
            made = teller.write(asked)
            if asked.shape == "LongTermDraft":
                return made | {"chronology": [FACT if "4711" in asked.question else "They talked.", long]}
            return made

        talk.model.writer = write
        talk.turn(FACT)
        talk.many(24)
        talk.compact()
        (one,) = why(talk).conversation
        assert one.sentence == "It was dropped when the long-term summary was condensed, on 2026-05-04."


def test_r6_u1_a_rule_of_the_user_is_kept_word_for_word(talk: Talk):
    talk.turn("Rule: the vault of Porto opens with 4711")
    talk.many(17)
    talk.compact()
    assert [x.where for x in why(talk).conversation] == ["rule"]


def test_u1_a_memory_has_the_messages_that_it_was_learned_from(talk: Talk):
    given = talk.turn("my number at the bank is 4711")
    talk.memory.run_tool(PERSONA, given, "remember", {"text": "Juno keeps 4711 in mind"})
    told = why(talk, "Juno keeps 4711 in mind")
    assert told.status == "on_desk"
    assert told.memory.text == "Juno keeps 4711 in mind"
    assert [(x.where, x.text) for x in told.conversation] == [("window", "my number at the bank is 4711")]
    assert why(talk, told.memory.id).conversation == told.conversation


@pytest.mark.parametrize("how", ["deleted", "rewound", "erased", "other persona", "other tenant", "edited"])
def test_c7_c23_d24_what_may_not_be_seen_is_not_told(talk: Talk, how: str):
    talk.turn("hello")
    given = talk.turn(FACT)
    who: dict[str, Any] = {}
    memory = talk.memory
    match how:
        case "deleted":
            memory.delete_message(given.messages[-1].id)
        case "edited":
            memory.edit_message(given.messages[-1].id, "never mind")
        case "rewound":
            memory.rewind("t1")
        case "erased":
            memory.erase(USER)
        case "other persona":
            memory.set_persona("otto", name="Otto")
            memory.save("otto", scope="personal", subject=USER, text="x")
            who = {"persona": "otto"}
        case "other tenant":
            memory = talk.world.open(tenant="other")
    talk.world.project()
    with pytest.raises(NotFound) as error:
        memory.why(QUESTION, **who)
    assert "opens" not in str(error.value)


def test_a_question_with_signs_that_mean_something_to_the_database_is_taken_as_it_is(talk: Talk):
    talk.turn("100% of the under_scores \\ and 'quotes'")
    assert [x.where for x in why(talk, "100% under_scores \\ 'quotes'").conversation] == ["window"]
    with pytest.raises(NotFound):
        why(talk, "%%%")
    with pytest.raises(NotFound):
        why(talk, "underscores")


def test_u1_forms_of_a_word_are_the_word(talk: Talk):
    talk.turn("Juno's cats were sleeping on the windowsills")
    assert [x.where for x in why(talk, "cat sleeps on the windowsill").conversation] == ["window"]


def test_u1_a_question_without_small_words_finds_the_one_message_among_many_that_share_a_word(talk: Talk):
    talk.many(300)
    told = why(talk, "message 7")
    assert [x.text.split(" and")[0] for x in told.conversation] == ["message 7"]


def test_why_writes_nothing_not_even_the_policy_of_its_process(talk: Talk):
    talk.turn(FACT)
    other = talk.world.open(rest_after_days=9)
    talk.world.project()
    assert talk.world.wrote(lambda: other.why(QUESTION)) == []
