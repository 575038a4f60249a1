"""Summaries on the real store, by a scripted model over HTTP (R4-R7, R19, D15-D18, D20, D24; C2, C3, C15, C16, C17)."""

from __future__ import annotations

from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotAllowed
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.world import PERSONA, USER


@pytest.fixture
def talk(database_url: str):
    with talking(database_url, chunk_messages=4, recent_summaries=2, merged_summaries=2) as made:
        made.memory.set_persona(PERSONA, detail="key_events")  # a window of 30 messages
        yield made


def nothing_is_lost(talk: Talk, answer: Any) -> None:
    """D16: each message that is there is sent, or in a summary that stands, or counted."""
    talk.world.project()
    sent = {m.id for m in answer.messages}
    present = talk.memory.messages(CHAT, limit=1000).messages
    with talk.memory.engine.store.database.connection() as conn:
        rows = conn.execute(
            "SELECT s.first, s.last FROM remembrancer.summary s JOIN remembrancer.chat c USING (generation, chat)"
            " WHERE c.key = %s AND s.id = ANY (%s)",
            (CHAT, list(answer.summary.summaries)),
        ).fetchall()
        numbers = dict(conn.execute("SELECT id, n FROM remembrancer.message").fetchall())
    left = [m for m in present if m.id not in sent and not any(a <= numbers[m.id] <= b for a, b in rows)]
    assert len(left) <= answer.window.unsent


def test_r4_messages_that_leave_the_window_are_summarised_after_a_turn_and_sent_as_summary(talk: Talk):
    talk.many(16)
    assert talk.compact() >= 1
    assert not talk.world.events(e.ChunkSummarised)
    talk.many(4)
    talk.compact()
    (first, second) = talk.world.events(e.ChunkSummarised)
    assert (first.messages, second.messages) == (4, 4)
    answer = talk.look()
    assert "message 3 " in answer.summary.text
    assert answer.summary.tokens > 0
    assert answer.prompt()[0] == {"role": "system", "content": answer.summary.text}
    assert len(answer.messages) == answer.window.messages + answer.window.unsummarised - 30
    nothing_is_lost(talk, answer)


@pytest.mark.parametrize("projected", [True, False])
def test_r4_recent_summaries_fold_into_merged_ones_and_those_into_the_long_term_one(talk: Talk, projected: bool):
    talk.many(33)
    talk.compact()
    merged = talk.world.events(e.SummariesMerged)
    assert [m.tier for m in merged].count("long_term") >= 1
    if projected:
        talk.world.project()
    answer = talk.look()
    assert "### Chronology" in answer.summary.text
    assert "guild code 4711" in answer.summary.text
    nothing_is_lost(talk, answer)
    assert talk.memory.chat(CHAT).unsummarised == 30 + (66 - 30) % 4


def test_d15_nothing_of_the_last_two_turns_is_summarised(talk: Talk):
    talk.memory.reply(PERSONA, message="begin", users=[USER], chat=CHAT, turn="old")
    talk.memory.reply(PERSONA, message="again", users=[USER], chat=CHAT, turn="new")
    for n in range(40):
        talk.memory.post(CHAT, f"chatter {n}", author="kai")
    talk.compact()
    chunks = talk.world.events(e.ChunkSummarised)
    assert [c.messages for c in chunks] == [4, 4], "what people say after them is none of them"
    assert not any("begin" in c.text or "again" in c.text for c in chunks)
    nothing_is_lost(talk, talk.look())
    talk.turns = 10
    talk.many(2)
    talk.compact()
    (both,) = [c for c in talk.world.events(e.ChunkSummarised) if "again" in c.text]
    assert (both.messages, "begin" in both.text) == (2, True)
    nothing_is_lost(talk, talk.look())


def test_d15_a_rebuild_leaves_the_last_two_turns_out_wherever_they_are(talk: Talk):
    talk.turn("begin")
    for n in range(60):
        talk.memory.post(CHAT, f"chatter {n}", author="kai")
    talk.compact()
    talk.memory.rebuild_summary(CHAT)
    talk.compact()
    done = talk.memory.summary(CHAT)
    assert (done.rebuild.state, done.rebuild.done, done.unsummarised) == ("completed", 30, 32)
    assert not any("begin" in c.text for c in talk.world.events(e.ChunkSummarised))
    assert [m.text for m in talk.look().messages[:1]] == ["begin"]


def test_c2_d15_a_regenerated_turn_is_in_no_summary(talk: Talk):
    talk.many(20)
    for _ in range(3):
        talk.memory.reply(PERSONA, message="Where is the key?", users=[USER], chat=CHAT, turn="t21")
        talk.memory.post(CHAT, "REPLACED ANSWER", author=PERSONA, role="persona", turn="t21")
        talk.compact()
    talk.memory.reply(PERSONA, message="Where is the key?", users=[USER], chat=CHAT, turn="t21")
    talk.memory.post(CHAT, "The last answer", author=PERSONA, role="persona", turn="t21")
    talk.turns = 21
    talk.many(20)
    talk.compact()
    assert any("The last answer" in asked.question for asked in talk.model.requests)
    assert not any("REPLACED" in asked.question for asked in talk.model.requests)


@pytest.mark.parametrize("text", ["say it again", "say it otherwise"])
def test_c2_a_turn_that_is_the_last_again_after_a_rewind_is_in_no_summary_when_it_is_regenerated(talk: Talk, text: str):
    talk.turn("begin")
    talk.memory.reply(PERSONA, message="say it again", users=[USER], chat=CHAT, turn="early")
    talk.memory.post(CHAT, "REPLACED ANSWER", author=PERSONA, role="persona", turn="early")
    for _ in range(18):
        talk.turn()
    talk.compact()
    assert "REPLACED" in talk.look().summary.text
    talk.world.project()
    talk.memory.rewind("early")
    talk.world.project()
    answer = talk.memory.reply(PERSONA, message=text, users=[USER], chat=CHAT, turn="early")
    assert "REPLACED" not in answer.summary.text
    assert [m.text for m in answer.messages][-1] == text
    assert "begin" in answer.summary.text + "".join(m.text for m in answer.messages)
    assert (answer.window.total, answer.window.unsent) == (3, 0)


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("how", ["edited", "deleted"])
def test_c3_d17_an_edited_or_deleted_message_makes_its_summaries_stale_at_once(talk: Talk, how: str, projected: bool):
    talk.turn("My sister is called OLDNAME, you know")
    talk.many(33)
    talk.compact()
    assert any(s.tier == "long_term" for s in talk.world.events(e.SummariesMerged))
    talk.world.project()
    message = talk.memory.messages(CHAT, limit=1000).messages[0]
    assert "OLDNAME" in message.text
    asked = len(talk.model.requests)
    if how == "edited":
        talk.memory.edit_message(message.id, "My sister is called NEWNAME, you know")
    else:
        talk.memory.delete_message(message.id)
    if projected:
        talk.world.project()
    answer = talk.look()
    prompt = answer.summary.text + "".join(m.text for m in answer.messages)
    assert "OLDNAME" not in prompt
    assert ("NEWNAME" in prompt) == (how == "edited")
    nothing_is_lost(talk, answer)
    talk.compact()
    anew = talk.look()
    assert "OLDNAME" not in anew.summary.text
    assert not any("OLDNAME" in one.question for one in talk.model.requests[asked:])
    assert ("NEWNAME" in "".join(c.text for c in talk.world.events(e.ChunkSummarised))) == (how == "edited")
    assert len(anew.messages) < len(answer.messages)
    nothing_is_lost(talk, anew)


@pytest.mark.parametrize("bad", script.BAD)
def test_c17_an_answer_that_is_none_is_no_summary_and_is_asked_for_again(talk: Talk, bad):
    talk.many(20)
    talk.model.otherwise = bad
    talk.compact()
    assert not talk.world.events(e.ChunkSummarised)
    assert len(talk.model.requests) == 3
    seen = talk.memory.chat(CHAT)
    assert seen.unsummarised == 40
    assert seen.summaries_wait
    nothing_is_lost(talk, talk.look())
    talk.model.otherwise = script.answers
    assert talk.compact() == 0, "it is not asked again at once"
    talk.world.later(seconds=6)
    talk.compact()
    assert talk.world.events(e.ChunkSummarised)
    assert talk.memory.chat(CHAT).summaries_wait is None


def test_pauses_grow_while_the_model_fails(talk: Talk):
    talk.many(20)
    talk.model.otherwise = script.status(400)
    tries = []
    for _ in range(60):
        before = len(talk.model.requests)
        talk.compact()
        tries.append(len(talk.model.requests) - before)
        talk.world.later(seconds=5)
    assert sum(map(bool, tries)) == 6  # after 0, 5, 15, 35, 75, 155 seconds


def test_c16_when_the_model_fails_half_way_each_message_is_raw_or_covered(talk: Talk):
    talk.many(45)
    good = 0
    while True:
        talk.model.script = [script.answers] * good + [script.status(400)]
        talk.model.otherwise = script.status(400)
        talk.compact()
        nothing_is_lost(talk, talk.look())
        if talk.model.script:
            break
        good = 2
        talk.world.later(hours=2)
    talk.model.otherwise = script.answers
    talk.world.later(hours=2)
    talk.compact()
    nothing_is_lost(talk, talk.look())
    assert talk.memory.chat(CHAT).unsummarised < 36


def test_c15_r6_ten_condensations_keep_the_users_rules_word_for_word(database_url: str):
    rules = [
        "Rule: always call me Captain Ünal-O’Neill, never just Juno.", "Rule: the toll is 1,250.50 crowns — not 1250.",
        "Rule: nobody\tmay open the red door before 3 May 2026!", "Rule: my cat is MOCHI,   with two spaces more.",
    ]  # fmt: skip
    with talking(
        database_url, chunk_messages=2, recent_summaries=2, merged_summaries=2, condense_over=1.0, chunks_per_run=100
    ) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        for n, rule in enumerate(rules):
            talk.turn(rule)
            talk.turn(f"The treasure weighs {n}71 pounds")
        long = "many words that fill a long-term summary until it is over its size; " * 400

        def writer(asked: script.Asked) -> dict[str, Any]:
            made = script.written(asked)
            if asked.shape == "LongTermDraft":
                made["chronology"] = [long]
            return made

        talk.model.writer = writer
        while len(talk.world.events(e.LongTermCondensed)) < 10:
            talk.many(6)
            talk.compact()
        answer = talk.look()
        for rule in rules:
            assert rule in answer.summary.text
        assert answer.summary.text.count("Rule:") == len(rules)
        assert not any(rule in ev.text for rule in rules for ev in talk.world.events(e.LongTermCondensed))


@pytest.mark.parametrize("projected", [True, False])
def test_r6_a_rule_goes_when_its_message_is_edited_deleted_undone_or_erased(talk: Talk, projected: bool):
    for text in ("Rule: edited away", "Rule: deleted", "Rule: stays"):
        talk.turn(text)
    talk.turn("Rule: kai wants this", user="kai")
    talk.many(20)
    talk.turn("Rule: undone")
    talk.compact()
    assert "Rule: edited away" in talk.look().summary.text
    talk.world.project()
    found = {m.text: m.id for m in talk.memory.messages(CHAT, limit=1000).messages}
    talk.memory.edit_message(found["Rule: edited away"], "never mind")
    talk.memory.delete_message(found["Rule: deleted"])
    talk.memory.erase("kai")
    if projected:
        talk.world.project()
    text = talk.look().summary.text
    assert "Rule: stays" in text
    assert "edited away" not in text
    assert "Rule: deleted" not in text
    assert "kai wants" not in text
    talk.compact()
    assert "Rule: stays" in talk.look().summary.text


def test_r6_a_model_that_quotes_badly_or_points_at_the_character_cannot_change_the_words(talk: Talk):
    def writer(asked: script.Asked) -> dict[str, Any]:
        made = script.written(asked)
        if asked.shape == "ChunkDraft":
            made["rules"] = [
                {"message": 1, "quote": "call me the Captain"}, {"message": 2, "quote": "anything"},
                {"message": 99, "quote": "not there"}, {"message": 0, "quote": ""},
            ]  # fmt: skip
        return made

    talk.model.writer = writer
    talk.turn("Please, call me Captain from now on.")
    talk.many(19)
    talk.compact()
    rules = talk.look().summary.text.partition("word for word")[2]
    assert "Please, call me Captain from now on." in rules
    assert "the Captain" not in rules
    assert "answer" not in rules


def test_d18_a_fork_inherits_the_summaries_wholly_before_its_point(talk: Talk):
    talk.turn("Rule: of the beginning")
    talk.many(32)
    talk.compact()
    talk.world.project()
    messages = talk.memory.messages(CHAT, limit=1000).messages
    forked = talk.memory.fork(CHAT, "what if", message=messages[13].id)
    assert forked.messages == 14
    assert forked.unsummarised < 14
    there = talk.look("what if")
    assert "Rule: of the beginning" in there.summary.text
    assert "message 6 " in there.summary.text
    assert "message 8 " not in there.summary.text
    talk.memory.edit_message(messages[0].id, "nothing", chat=CHAT)
    assert "Rule: of the beginning" in talk.look("what if").summary.text
    assert "Rule: of the beginning" not in talk.look(CHAT).summary.text
    talk.world.project()
    assert talk.look("what if").summary.text == there.summary.text


def test_d24_summaries_of_a_shared_chat_are_made_anew_without_an_erased_person(talk: Talk):
    talk.turn("hi")
    talk.turn("I am KAISWORD and was here", user="kai")
    talk.many(33)
    talk.compact()
    assert "KAISWORD" in "".join(c.text for c in talk.world.events(e.ChunkSummarised))
    talk.memory.erase("kai")
    nothing_is_lost(talk, talk.look())
    with talk.memory.engine.store.database.connection() as conn:
        texts = [row[0] for row in conn.execute("SELECT text FROM remembrancer.summary").fetchall()]
    assert texts
    assert not any("KAISWORD" in text for text in texts)
    assert not any("KAISWORD" in c.text for c in talk.world.events(e.ChunkSummarised))
    asked = len(talk.model.requests)
    talk.compact()
    assert talk.model.requests[asked:]
    assert not any("KAISWORD" in one.question for one in talk.model.requests[asked:])
    answer = talk.look()
    nothing_is_lost(talk, answer)
    assert talk.memory.chat(CHAT).unsummarised <= 36


def test_without_a_chat_model_summaries_wait_and_the_chat_says_so(database_url: str):
    with talking(database_url, chunk_messages=4) as talk:
        talk.world.reopen(chat_model=None)
        talk.many(30)
        talk.compact()
        seen = talk.memory.chat(CHAT)
        assert seen.unsummarised == 60
        assert "no chat model" in seen.summaries_wait
        checks = {c.name: c for c in talk.memory.doctor().checks}
        assert "not configured" in checks["chat model"].detail
        nothing_is_lost(talk, talk.look())
        talk.world.reopen()
        talk.compact()
        assert talk.world.events(e.ChunkSummarised)


def test_r5_a_reply_reads_summaries_that_the_tables_do_not_know_yet(talk: Talk):
    talk.turn("Rule: no ghosts")
    talk.many(32)
    engine = talk.memory.engine
    here = engine.chats.require(CHAT)
    policy, detail = engine.summariser.setting(here)
    backlog = engine.summariser.backlog(here, detail, policy)
    step = engine.summariser._next(backlog, policy, detail)
    made = engine.summariser._make(here, step, backlog, detail, policy, engine.compactor.model)
    assert engine.summariser._write(here, made, backlog, detail, policy)
    ahead = talk.look()
    talk.world.project()
    shown = talk.look()
    assert "no ghosts" in ahead.summary.text.partition("word for word")[2]
    assert ahead.summary.text == shown.summary.text
    assert [m.text for m in ahead.messages] == [m.text for m in shown.messages]
    assert ahead.window == shown.window
    assert ahead.window.unsummarised == 63


def test_d20_the_questions_carry_the_dates_of_the_messages_and_ask_for_absolute_ones(talk: Talk):
    talk.turn("See you tomorrow at nine!")
    talk.many(32)
    talk.compact()
    first = talk.model.requests[0]
    assert "#1 [2026-05-04 12:00] juno: See you tomorrow at nine!" in first.question
    assert "absolute dates" in first.instructions
    for shape in ("MergedDraft", "LongTermDraft"):
        one = next(one for one in talk.model.requests if one.shape == shape)
        assert "## 2026-05-04 12:00 to 2026-05-04 12:00" in one.question
        assert "Dates are" in one.instructions
        assert "absolute" in one.instructions


def test_r19_plot_and_mood_belong_to_the_summary_and_its_question_says_so(talk: Talk):
    talk.many(20)
    talk.compact()
    assert "Plot, mood and how" in talk.model.requests[0].instructions
    assert "the main plot, relationships, promises and lasting facts" in talk.model.requests[0].instructions


def test_d19_a_reply_that_is_asked_for_again_has_the_summary(talk: Talk):
    talk.many(20)
    talk.compact()
    how: dict[str, Any] = {"message": "so?", "users": [USER], "chat": CHAT, "turn": "x", "request_id": "r"}
    first = talk.memory.reply(PERSONA, **how)
    assert first.summary.text
    again = talk.memory.reply(PERSONA, **how)
    assert again.summary == first.summary


def test_u1_r1_at_shows_the_summary_and_the_messages_that_were_sent_whatever_was_changed_since(talk: Talk):
    """Through compactions, edits, deletions, regenerated turns and a fork."""
    sent = []

    def look(chat: str = CHAT, **how: Any) -> None:
        sent.append(talk.turn(chat=chat, **how))

    look()
    for n in range(6):
        talk.many(9)
        talk.compact()
        look(text="Rule: never lie" if n == 2 else None)
        if n % 2:
            look(chat="fork") if n > 1 else talk.memory.fork(CHAT, "fork")
        talk.world.project()
        here = talk.memory.messages(CHAT, limit=1000).messages
        talk.memory.edit_message(here[3 * n].id, f"worded anew {n}")
        talk.memory.delete_message(here[3 * n + 1].id)
        look()
        again = talk.memory.reply(PERSONA, message="another wording", users=[USER], chat=CHAT, turn=f"t{talk.turns}")
        sent.append(again)
    talk.compact()
    assert any(a.summary.text for a in sent)
    for _ in range(2):
        for one in sent:
            then = talk.memory.at(turn=one.turn, attempt=one.attempt)
            assert then.summary == one.summary
            assert [(m.id, m.text) for m in then.messages] == [(m.id, m.text) for m in one.messages]
        talk.memory.rebuild_summary(CHAT)
        talk.compact()


def test_d24_at_shows_no_text_of_who_was_erased(talk: Talk):
    sent = talk.turn("my secret")
    talk.memory.erase(USER)
    then = talk.memory.at(turn=sent.turn)
    assert "secret" not in then.model_dump_json()


def test_r4_d15_two_turns_of_long_ago_keep_nothing_else_from_being_summarised(talk: Talk):
    talk.turn("the first turn")
    for n in range(60):
        talk.memory.post(CHAT, f"said among themselves {n}", author="kai")
    talk.compact()
    assert talk.memory.chat(CHAT).unsummarised <= 2 + 30 + 4
    answer = talk.look()
    assert "the first turn" in [m.text for m in answer.messages], "D15, D16"
    assert "the first turn" not in answer.summary.text
    nothing_is_lost(talk, answer)
    talk.turn("another turn")
    talk.turn("and another")
    talk.compact()
    assert "the first turn" in talk.look().summary.text


def test_r6_a_long_term_summary_that_cannot_be_condensed_keeps_nothing_from_being_summarised(talk: Talk):
    talk.many(33)
    talk.compact()
    (part,) = [p for p in talk.memory.summary(CHAT).parts if p.tier == "long_term"]
    lines = "\n".join(f"- reference number {n} of the guild, exactly as it was" for n in range(800))
    talk.memory.edit_summary(CHAT, str(part.id), f"### Exact references\n{lines}")
    before = talk.model.writer

    def keeps_all(asked: script.Asked) -> dict[str, Any]:
        if asked.shape == "CondensedDraft":
            return {"chronology": ["All."], "promises": [], "references": list(range(1, 801)), "state": []}
        return before(asked)

    talk.model.writer = keeps_all
    talk.many(12)
    talk.compact()
    assert talk.memory.chat(CHAT).unsummarised <= 30 + 4
    assert talk.memory.chat(CHAT).summaries_wait is None
    asked = sum(r.shape == "CondensedDraft" for r in talk.model.requests)
    talk.many(4)
    talk.compact()
    assert sum(r.shape == "CondensedDraft" for r in talk.model.requests) == asked, "it is not asked again for the same"


def test_d17_what_a_person_worded_is_asked_about_also_where_it_became_part_of_another_one(talk: Talk):
    talk.many(20)
    talk.compact()
    talk.memory.edit_summary(CHAT, str(talk.memory.summary(CHAT).parts[0].id), "HAND WRITTEN SUMMARY")
    talk.many(16)
    talk.compact()
    assert "HAND WRITTEN SUMMARY" not in [p.text for p in talk.memory.summary(CHAT).parts]
    assert len(talk.memory.estimate_rebuild(CHAT).edited) == 1
    with pytest.raises(NotAllowed) as error:
        talk.memory.rebuild_summary(CHAT)
    assert error.value.rule == "D17"
    talk.memory.rebuild_summary(CHAT, replace_edited=True)
