"""Reading, editing and rebuilding summaries, and what replies cost, on the real store (R5-R8, D17)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound, RequestReused
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.world import PERSONA, USER


@pytest.fixture
def talk(database_url: str):
    with talking(
        database_url, chunk_messages=4, recent_summaries=2, merged_summaries=2, chat_prices={"scripted": (1.0, 10.0)}
    ) as made:
        made.memory.set_persona(PERSONA, detail="key_events")
        yield made


def test_r5_a_summary_is_read_part_by_part_with_what_is_in_none(talk: Talk):
    talk.turn("Rule: no ghosts")
    talk.many(27)
    talk.compact()
    seen = talk.memory.summary(CHAT)
    assert [p.tier for p in seen.parts] == ["long_term", "merged"]
    assert sum(p.messages for p in seen.parts) == seen.messages - seen.unsummarised == 24
    assert [r.text for r in seen.rules] == ["Rule: no ghosts"]
    assert all(p.text in seen.text for p in seen.parts)
    assert seen.text == talk.look().summary.text
    costs = [s.cost for s in talk.world.events(e.ChunkSummarised)]
    assert costs == [pytest.approx((100 * 1 + 20 * 10) / 1e6)] * len(costs)


@pytest.mark.parametrize("projected", [True, False])
def test_r5_a_person_edits_a_summary_and_it_is_sent_like_that(talk: Talk, projected: bool):
    talk.many(20)
    talk.compact()
    (part,) = talk.memory.summary(CHAT).parts
    talk.memory.edit_summary(CHAT, part.id, "WORDED BY HAND", request_id="r1")
    talk.memory.edit_summary(CHAT, part.id, "WORDED BY HAND", request_id="r1")
    assert len(talk.world.events(e.SummaryEdited)) == 1
    if projected:
        talk.world.project()
    assert talk.look().summary.text == "WORDED BY HAND"
    assert talk.memory.summary(CHAT).parts[0].edited
    for bad in ("", "  ", "a\x00b", "x" * 200_001, 5):
        with pytest.raises(InvalidInput):
            talk.memory.edit_summary(CHAT, part.id, bad)
    with pytest.raises(NotFound):
        talk.memory.edit_summary(CHAT, "00000000-0000-4000-8000-000000000000", "x")
    talk.memory.edit_message(talk.memory.messages(CHAT, limit=1000).messages[0].id, "worded anew")
    assert "HAND" not in talk.look().summary.text  # D17: a hand-edited one, too
    assert talk.world.events(e.SummaryEdited)[0].text == "WORDED BY HAND"


@pytest.mark.parametrize("projected", [True, False])
def test_r6_a_person_removes_a_rule_and_no_model_brings_it_back(talk: Talk, projected: bool):
    talk.turn("Rule: no ghosts")
    talk.many(19)
    talk.compact()
    (rule,) = talk.memory.summary(CHAT).rules
    talk.memory.remove_rule(CHAT, rule.id)
    if projected:
        talk.world.project()
    assert "ghosts" not in talk.look().summary.text.partition("word for word")[2]
    with pytest.raises(NotFound):
        talk.memory.remove_rule(CHAT, rule.id)
    talk.memory.edit_message(talk.memory.messages(CHAT, limit=1000).messages[1].id, "another answer")
    talk.compact()
    assert not talk.memory.summary(CHAT).rules


@pytest.mark.parametrize("projected", [True, False])
def test_r6_of_rules_that_lie_over_each_other_no_word_is_lost(talk: Talk, projected: bool):
    quotes = ["never lie to me", "never lie to me, and always answer in Spanish", "Spanish, please"]

    def writer(asked: script.Asked) -> dict[str, Any]:
        made = script.written(asked)
        if asked.shape == "ChunkDraft" and "never lie" in asked.question:
            made["rules"] = [{"message": 1, "quote": quote} for quote in quotes]
        return made

    talk.model.writer = writer
    talk.turn("Well: never lie to me, and always answer in Spanish, please. Agreed?")
    talk.many(17)
    talk.compact()
    if projected:
        talk.world.project()
    (rule,) = talk.memory.summary(CHAT).rules
    assert rule.text == "never lie to me, and always answer in Spanish, please"
    assert rule.text in talk.look().summary.text
    talk.memory.remove_rule(CHAT, rule.id)
    talk.memory.rebuild_summary(CHAT)
    talk.compact()
    assert not talk.memory.summary(CHAT).rules, "what a person removed stays removed"


def test_r7_a_rebuild_makes_everything_anew_while_the_old_serves(talk: Talk):
    talk.turn("Rule: no ghosts")
    talk.many(32)
    talk.compact()
    old = talk.memory.summary(CHAT)
    expected = talk.memory.estimate_rebuild(CHAT, detail="detailed")
    assert (expected.messages, expected.extra_tokens) == (36, 16_000 - 6_000 + 16_000 - 4_000)
    assert expected.cost == pytest.approx((expected.input_tokens + 10 * expected.output_tokens) / 1e6)
    started = talk.memory.rebuild_summary(CHAT)
    assert started.messages == 36
    with pytest.raises(NotAllowed, match="under way"):
        talk.memory.rebuild_summary(CHAT)
    with pytest.raises(NotAllowed, match="under way"):
        talk.memory.edit_summary(CHAT, old.parts[0].id, "x")
    talk.many(4)
    talk.world.project()
    chunks = len(talk.world.events(e.ChunkSummarised))
    assert talk.memory.engine.compactor.work(1) == 1
    half = talk.memory.summary(CHAT)
    assert half.text == old.text
    assert (half.rebuild.state, half.rebuild.done) == ("running", 12)
    assert all(s.rebuild for s in talk.world.events(e.ChunkSummarised)[chunks:])
    talk.world.reopen()  # R7: it goes on when the process restarts
    talk.compact()
    done = talk.memory.summary(CHAT)
    assert (done.rebuild.state, done.rebuild.done) == ("completed", 36)
    assert {p.id for p in done.parts}.isdisjoint(p.id for p in old.parts)
    assert [r.text for r in done.rules] == ["Rule: no ghosts"]
    assert done.unsummarised == 74 - 36 - 8  # new messages waited, and were summarised afterwards
    talk.world.project()
    assert talk.look().summary.text == done.text


def test_r7_a_rebuild_that_fails_leaves_the_old_summary_and_is_resumed(talk: Talk):
    talk.many(33)
    talk.compact()
    old = talk.memory.summary(CHAT)
    talk.memory.rebuild_summary(CHAT)
    talk.model.script = [script.answers] * 4
    talk.model.otherwise = script.status(400)
    for _ in range(6):
        talk.compact()
        talk.world.later(hours=2)
    failed = talk.memory.summary(CHAT)
    assert (failed.rebuild.state, failed.rebuild.reason) == ("failed", "status 400")
    assert 0 < failed.rebuild.done < 36
    assert failed.text == old.text
    assert len(talk.world.events(e.RebuildFailed)) == 1
    talk.model.otherwise = script.answers
    asked = len(talk.model.requests)
    again = talk.memory.rebuild_summary(CHAT, resume=True)
    assert again.rebuild == failed.rebuild.id
    talk.compact()
    assert talk.memory.summary(CHAT).rebuild.state == "completed"
    chunks = [one for one in talk.model.requests[asked:] if one.shape == "ChunkDraft"]
    assert len(chunks) == (36 - failed.rebuild.done) // 4
    with pytest.raises(NotAllowed, match="none can be resumed"):
        talk.memory.rebuild_summary(CHAT, resume=True)


def test_r7_a_rebuild_that_a_person_starts_waits_for_no_old_pause_and_counts_its_own_failures(talk: Talk):
    talk.many(33)
    talk.compact()
    talk.many(8)
    talk.model.otherwise = script.status(400)
    for _ in range(6):
        talk.compact()
        talk.world.later(hours=2)
    talk.compact()
    assert talk.memory.summary(CHAT).waits is not None
    talk.memory.rebuild_summary(CHAT)
    assert talk.compact() == 1, "it is tried at once"
    assert talk.memory.summary(CHAT).rebuild.state == "running"
    for _ in range(4):
        talk.world.later(hours=2)
        talk.compact()
    assert talk.memory.summary(CHAT).rebuild.state == "failed"
    talk.model.otherwise = script.answers
    talk.memory.rebuild_summary(CHAT, resume=True)
    talk.compact()
    assert talk.memory.summary(CHAT).rebuild.state == "completed"


def test_d17_a_rebuild_asks_before_it_replaces_what_a_person_has_worded(talk: Talk):
    talk.many(20)
    talk.compact()
    (part,) = talk.memory.summary(CHAT).parts
    talk.memory.edit_summary(CHAT, part.id, "WORDED BY HAND")
    assert talk.memory.estimate_rebuild(CHAT).edited == [part.id]
    with pytest.raises(NotAllowed, match="worded by a person"):
        talk.memory.rebuild_summary(CHAT)
    talk.memory.rebuild_summary(CHAT, replace_edited=True)
    talk.compact()
    assert "HAND" not in talk.look().summary.text
    assert not any(p.edited for p in talk.memory.summary(CHAT).parts)


def test_d16_a_message_edited_during_a_rebuild_is_in_the_new_summary_as_it_is_now(talk: Talk):
    talk.many(33)
    talk.compact()
    talk.memory.rebuild_summary(CHAT)
    talk.world.project()
    talk.memory.engine.compactor.work(1)
    message = talk.memory.messages(CHAT, limit=1000).messages[0]
    talk.memory.edit_message(message.id, "NEWNAME it is")
    talk.compact()
    assert talk.memory.summary(CHAT).rebuild.state == "completed"
    last = [c for c in talk.world.events(e.ChunkSummarised) if c.first <= 3][-1]
    assert "NEWNAME" in last.text
    assert talk.memory.chat(CHAT).unsummarised <= 34


def test_r7_switching_the_level_says_what_each_reply_takes_more(talk: Talk):
    said = talk.memory.set_person(USER, details={PERSONA: "detailed", "rui": "balanced"})
    (one,) = said.switched  # Mira's own level was key_events, Rui's balanced
    assert (one.persona, one.before, one.after) == (PERSONA, "key_events", "detailed")
    assert one.extra_tokens == 16_000 - 6_000 + 16_000 - 4_000
    assert one.extra_cost == pytest.approx(0.022)
    assert talk.memory.person(USER).switched == ()
    assert talk.memory.set_person(USER, privacy="nowhere").switched == ()
    assert talk.memory.set_person(USER, details={PERSONA: "detailed"}).switched == ()
    (back,) = talk.memory.set_persona(PERSONA, detail=None, request_id="r").switched
    assert (back.before, back.after, back.extra_tokens) == ("key_events", "balanced", 8_000)
    assert talk.memory.set_persona(PERSONA, detail=None, request_id="r").switched == (back,)
    talk.world.reopen(chat_model=None)
    (free,) = talk.memory.set_persona(PERSONA, detail="key_events").switched
    assert (free.extra_tokens, free.extra_cost) == (-8_000, None)


def test_r8_an_unusual_cost_is_noticed_once_from_the_sixth_reply_on(talk: Talk):
    talk.many(9)
    for n in range(1, 11):
        talk.memory.reply(PERSONA, message="hm", users=[USER], chat=CHAT, turn=f"c{n}")
    report = talk.memory.report_cost
    assert report("c1", cost=5.0).notice is None
    talk.world.project()
    assert talk.memory.estimate_rebuild(CHAT).messages == 0  # the tables are as far as the chat
    for n in range(2, 5):
        assert report(f"c{n}", cost=1.0).notice is None
    assert report("c5", cost=50.0).notice is None, "not before the sixth"
    assert report("c6", cost=3.0).notice is None, "three times is not over three times"
    noticed = report("c7", cost=10.0, request_id="x")
    assert noticed.notice is not None
    assert "key_events" in noticed.notice.text
    assert report("c7", cost=10.0, request_id="x") == noticed
    assert report("c8", cost=1000.0).notice is None, "once a chat"
    assert len(talk.world.events(e.HighCostNoticed)) == 1
    assert report("c9", input_tokens=1_000_000, output_tokens=100_000).cost == pytest.approx(2.0)
    for bad in ({}, {"cost": -1}, {"cost": float("nan")}, {"cost": 10**400}, {"cost": "a"}, {"input_tokens": -1}):
        with pytest.raises(InvalidInput):
            report("c10", **bad)
    with pytest.raises(NotFound):
        report("never", cost=1.0)


def test_c23_d31_another_tenants_chat_is_one_that_never_was(talk: Talk):
    talk.many(20)
    talk.compact()
    (part,) = talk.memory.summary(CHAT).parts
    other = talk.world.open(tenant="other")
    for act in (
        lambda: other.summary(CHAT), lambda: other.edit_summary(CHAT, part.id, "mine"),
        lambda: other.remove_rule(CHAT, "x"), lambda: other.estimate_rebuild(CHAT),
        lambda: other.rebuild_summary(CHAT), lambda: other.report_cost("t1", cost=1.0),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            act()


def test_r7_nothing_to_rebuild_is_said(talk: Talk):
    talk.many(3)
    with pytest.raises(NotAllowed, match="old enough"):
        talk.memory.rebuild_summary(CHAT)
    talk.world.reopen(chat_model=None)
    with pytest.raises(NotAllowed, match="No chat model"):
        talk.memory.rebuild_summary(CHAT)


def test_d19_the_same_request_happens_once_and_with_another_body_is_refused(talk: Talk):
    talk.turn("Rule: no ghosts")
    talk.many(19)
    talk.compact()
    seen = talk.memory.summary(CHAT)
    rule, part = seen.rules[0].id, seen.parts[0].id
    calls = {
        "SummaryEdited": (
            lambda r, text="By hand": talk.memory.edit_summary(CHAT, part, text, request_id=r), {"text": "Otherwise"},
        ),
        "ReplyCosted": (lambda r, cost=1.0: talk.memory.report_cost("t1", cost=cost, request_id=r), {"cost": 2.0}),
        "RebuildStarted": (
            lambda r, replace=True: talk.memory.rebuild_summary(CHAT, replace_edited=replace, request_id=r),
            {"replace": False},
        ),
    }  # fmt: skip
    removed = talk.memory.remove_rule(CHAT, rule, request_id="rule")
    assert talk.memory.remove_rule(CHAT, rule, request_id="rule") == removed
    for kind, (call, other) in calls.items():
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(call, [kind] * 8))
        assert all(a == answers[0] for a in answers)
        assert sum(type(r.event).__name__ == kind for r in talk.world.stored()) == 1 + (kind == "SummaryEdited")
        with pytest.raises(RequestReused):
            call(kind, **other)


@pytest.mark.parametrize("bad", ["", "a\x00b", "\ud800", 5, None, "x" * 2000, ["a"]])
def test_bad_input_is_refused(talk: Talk, bad):
    talk.many(1)
    memory = talk.memory
    for act in (
        lambda: memory.summary(bad), lambda: memory.estimate_rebuild(bad), lambda: memory.rebuild_summary(bad),
        lambda: memory.edit_summary(CHAT, bad, "x"), lambda: memory.report_cost(bad, cost=1.0),
        lambda: memory.rebuild_summary(CHAT, resume=bad), lambda: memory.remove_rule(CHAT, bad),
        lambda: memory.estimate_rebuild(CHAT, detail=bad or "none"),
    ):  # fmt: skip
        with pytest.raises((InvalidInput, NotFound)):
            act()
    assert not talk.world.events(e.SummaryEdited)
