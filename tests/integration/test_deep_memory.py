"""Deep memory: what leaves the window is read once more, for lasting details (R10, R16, R17, D13, D14; C5, C6, C9, C18,
C27)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from remembrancer.domain import events as e
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.read_model import assert_read_model_is_a_fresh_fold
from tests.support.world import PERSONA, USER

NUMBERS: dict[str, Any] = {"chunk_messages": 8, "recent_summaries": 4, "chunks_per_run": 100}


class Deep:
    """A talk whose chat model reads deeply as a test says."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.changes: list[dict[str, Any]] = []
        self.fails: list[script.Behaviour] = []
        self.asked: list[script.Asked] = []
        talk.model.otherwise = self.answer

    def answer(self, exchange: script.Exchange) -> None:
        if exchange.asked.shape != "DeepChanges":
            return script.answers(exchange)
        self.asked.append(exchange.asked)
        if self.fails:
            return self.fails.pop(0)(exchange)
        exchange.chat.writer, kept = lambda _: {"changes": self.changes}, exchange.chat.writer
        script.answers(exchange)
        exchange.chat.writer = kept
        return None

    def wants(self, text: str | None, about: str = "Juno", **how: Any) -> None:
        change = {"action": "save", "memory": None, "text": text, "about": about, "until": None, "messages": [1]}
        self.changes.append(change | how)

    def passes(self) -> list[e.DeepMemoryRead]:
        return self.talk.world.events(e.DeepMemoryRead)

    def texts(self, subject: str = USER) -> set[str]:
        return self.talk.world.texts("personal", subject)

    def view(self, chat: str = CHAT) -> Any:
        self.talk.world.project()
        return self.talk.memory.chat(chat).deep_memory


@pytest.fixture
def deep(database_url: str) -> Iterator[Deep]:
    with talking(database_url, **NUMBERS) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")  # a window of 30 messages
        talk.memory.set_person(USER, deep_memory=True)
        yield Deep(talk)


def first(deep: Deep, text: str = "I keep bees", platform: str = "web", **how: Any) -> None:
    """The chat begins with this, and goes on until it is read."""
    deep.talk.turn(text, platform=platform, **how)
    deep.talk.many(24)
    deep.talk.compact()


def test_r16_when_a_chunk_is_summarised_it_is_read_right_then_and_what_it_finds_is_saved_by_deep(deep: Deep):
    deep.wants("Juno keeps bees")
    first(deep)
    assert deep.texts() == {"Juno keeps bees"}
    (saved,) = deep.talk.world.events(e.MemorySaved)
    assert (saved.actor, saved.source.chat, len(saved.source.messages), saved.protected) == ("deep", CHAT, 1, False)
    read = deep.passes()
    assert (read[0].messages >= 8, len(read[0].changes), read[0].actor) == (True, 1, "deep")
    assert "#1 [2026-05-04 12:00] juno: I keep bees" in deep.asked[0].question
    assert "stays true for weeks" in deep.asked[0].instructions


def test_r16_each_message_is_read_once(deep: Deep):
    first(deep)
    deep.talk.many(40)
    deep.talk.compact()
    deep.talk.compact()
    seen = [n for a in deep.asked for n in re.findall(r"message (\d+) ", a.question)]
    assert len(seen) == len(set(seen)) > 30
    assert sum(p.messages for p in deep.passes()) == sum(a.question.count("\n#") for a in deep.asked)


def test_r16_a_rebuild_does_not_read_again(deep: Deep):
    first(deep)
    before = len(deep.asked)
    deep.talk.memory.rebuild_summary(CHAT)
    deep.talk.compact()
    assert len(deep.asked) == before > 0


def test_c6_r10_a_fork_shares_the_store_and_nothing_is_extracted_twice(deep: Deep):
    first(deep)
    deep.talk.memory.fork(CHAT, "fork")
    deep.wants("Juno sings", messages=[2])
    for _ in range(24):
        for chat in (CHAT, "fork"):
            deep.talk.turn(chat=chat)
    deep.talk.compact()
    seen = [n for a in deep.asked for n in re.findall(r"message (\d+) ", a.question)]
    assert len(seen) == len(set(seen))
    assert deep.texts() == {"Juno sings"}
    for chat in (CHAT, "fork"):
        assert "Juno sings" in deep.talk.turn(chat=chat).prefix.text


def test_r16_it_needs_eight_new_messages(database_url: str):
    with talking(database_url, **NUMBERS | {"chunk_messages": 4}) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        talk.memory.set_person(USER, deep_memory=True)
        deep = Deep(talk)
        talk.turn(platform="web")
        talk.many(17)  # one chunk of four
        talk.compact()
        assert (len(talk.world.events(e.ChunkSummarised)), deep.asked) == (1, [])
        talk.many(2)
        talk.compact()
        assert [p.messages for p in deep.passes()] == [8]


def test_r16_at_most_five_changes_a_pass(deep: Deep):
    for n in range(7):
        deep.wants(f"Juno keeps {n} bees")
    first(deep)
    assert len(deep.passes()[0].changes) == 5
    assert deep.passes()[0].left_out == 2


def test_r16_it_updates_and_deletes_what_is_its_and_every_act_can_be_restored(deep: Deep):
    lisbon = deep.talk.world.save("Juno lives in Lisbon", scope="personal")
    cat = deep.talk.world.save("Juno has a cat", scope="personal")
    deep.wants("Juno lives in Porto", action="update", memory=1)
    deep.wants(None, action="delete", memory=2)
    first(deep, "I moved to Porto, and the cat died")
    assert "M1 Juno lives in Lisbon\nM2 Juno has a cat" in deep.asked[0].question
    assert deep.talk.memory.get(lisbon).text == "Juno lives in Porto"
    assert deep.texts() == {"Juno lives in Porto"}
    deep.talk.memory.restore(cat)
    assert deep.texts() == {"Juno lives in Porto", "Juno has a cat"}


def test_r15_r16_it_never_touches_pinned_ones(deep: Deep):
    cat = deep.talk.world.save("Juno has a cat", scope="personal")
    deep.talk.memory.pin(cat)
    deep.wants("Juno has no cat", action="update", memory=1)
    deep.wants(None, action="delete", memory=1)
    first(deep)
    assert deep.talk.memory.get(cat).text == "Juno has a cat"
    assert (deep.passes()[0].changes, deep.passes()[0].left_out) == ((), 2)


def test_r16_it_never_evicts_a_full_list_ends_the_pass_with_a_report(deep: Deep):
    deep.talk.memory.set_policy(list_capacity=1)
    deep.talk.world.save("Juno has a cat", scope="personal")
    deep.wants("Juno keeps bees")
    deep.wants("Juno sings")
    first(deep)
    assert deep.texts() == {"Juno has a cat"}
    assert (deep.passes()[0].full, deep.passes()[0].left_out) == (True, 2)
    assert deep.view().full
    assert not deep.talk.world.events(e.MemoryEvicted)


def test_c5_d13_what_a_person_deleted_is_not_learned_again(deep: Deep):
    bees = deep.talk.world.save("Juno keeps bees", scope="personal")
    deep.talk.memory.delete(bees)
    deep.wants("juno  KEEPS bees")
    first(deep)
    assert deep.texts() == set()
    assert deep.passes()[0].left_out == 1
    deep.talk.memory.save(PERSONA, scope="personal", subject=USER, text="juno  KEEPS bees")


def test_c9_c18_what_is_claimed_of_the_wrong_one_or_of_a_passing_day_is_not_saved(deep: Deep):
    deep.wants("Juno hates coffee")
    deep.wants("Juno meets Mira tomorrow at nine")
    deep.wants("Juno's friend Ana hates coffee", "Ana")
    deep.wants("Juno meets Mira on 5 May 2026 at nine")
    deep.wants("Juno sings", messages=[])
    first(deep, "my friend Ana hates coffee, see you tomorrow at nine")
    assert deep.texts() == {"Juno's friend Ana hates coffee", "Juno meets Mira on 5 May 2026 at nine"}
    assert "[2026-05-04 12:00]" in deep.asked[0].question


@pytest.mark.parametrize("bad", [b for b in script.BAD if b is not script.blank])
def test_c27_a_model_that_fails_is_reported_and_tried_again_and_never_taken_for_nothing_to_save(
    deep: Deep, bad: script.Behaviour
):
    deep.fails = [bad] * 3
    deep.wants("Juno keeps bees")
    first(deep)
    assert (deep.passes(), deep.texts()) == ([], set())
    seen = deep.view()
    assert seen.failed
    assert deep.talk.memory.chat(CHAT).summaries_wait is None
    assert deep.talk.world.events(e.ChunkSummarised), "the summaries are made"
    deep.talk.world.later(minutes=10)
    deep.talk.compact()
    assert deep.texts() == {"Juno keeps bees"}
    assert deep.view().failed is None


def test_c27_nothing_is_an_answer(deep: Deep):
    first(deep)
    assert [(p.changes, p.left_out) for p in deep.passes()] == [((), 0)] * len(deep.asked)
    assert deep.view().failed is None


def test_r16_its_cost_is_booked_apart(database_url: str):
    prices = {"scripted": (1.0, 1.0)}
    with talking(database_url, **NUMBERS, chat_prices=prices) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        talk.memory.set_person(USER, deep_memory=True)
        deep = Deep(talk)
        first(deep)
        assert deep.passes()[0].cost == pytest.approx(120 / 1_000_000)
        assert deep.view().cost == pytest.approx(len(deep.asked) * 120 / 1_000_000)
        assert not talk.world.events(e.ReplyCosted)


@pytest.mark.parametrize("how", ["off", "discord", "telegram", "api", "no learning", "nowhere", "persona", "deleted"])
def test_r16_r17_where_it_does_not_apply_nothing_is_read(deep: Deep, how: str):
    platform = how if how in ("discord", "telegram", "api") else "web"
    match how:
        case "off":
            deep.talk.memory.set_person(USER, deep_memory=False)
        case "no learning":
            deep.talk.memory.set_person(USER, not_learning=[PERSONA])
        case "nowhere":
            deep.talk.memory.set_person(USER, privacy="nowhere")
        case "persona":
            deep.talk.memory.set_persona(PERSONA, learns=False)
    deep.wants("Juno keeps bees")
    deep.talk.turn("I keep bees", platform=platform)
    deep.talk.many(30)
    if how == "deleted":
        deep.talk.memory.delete_persona(PERSONA)
    deep.talk.compact()
    assert (deep.asked, deep.passes()) == ([], [])
    seen = deep.view()
    assert (seen.active, bool(seen.why_not)) == (False, True)


def test_r16_the_panel_shows_that_it_is_active_and_what_it_did(deep: Deep):
    deep.wants("Juno keeps bees")
    first(deep)
    seen = deep.view()
    assert (seen.active, seen.why_not, seen.changes) == (True, None, 1)
    assert seen.messages == sum(p.messages for p in deep.passes())


def test_r16_what_was_summarised_before_it_was_on_is_not_read(deep: Deep):
    deep.talk.memory.set_person(USER, deep_memory=False)
    first(deep, "I keep bees")
    deep.talk.world.later(days=1)
    deep.talk.memory.set_person(USER, deep_memory=True)
    deep.talk.compact()
    assert deep.asked == []
    deep.talk.many(10)
    deep.talk.compact()
    assert deep.asked
    assert "I keep bees" not in deep.asked[0].question


def test_r17_of_another_person_who_has_not_got_it_nothing_is_learned(deep: Deep):
    deep.talk.turn("I paint", user="kai", platform="web")
    deep.wants("Kai paints", "Kai")
    deep.talk.many(24)
    deep.talk.compact()
    assert deep.texts("kai") == set()


# -- taking back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["delete", "rewind"])
def test_d14_a_deep_memory_whose_messages_are_all_gone_goes_with_them(deep: Deep, how: str):
    deep.talk.turn("hello", platform="web")
    deep.wants("Juno keeps bees", messages=[3])
    deep.talk.turn("I keep bees")
    deep.talk.many(24)
    deep.talk.compact()
    assert deep.texts() == {"Juno keeps bees"}
    if how == "delete":
        (saved,) = deep.talk.world.events(e.MemorySaved)
        deep.talk.memory.delete_message(saved.source.messages[0])
    else:
        deep.talk.memory.rewind("t1")
    assert deep.texts() == set()
    (gone,) = deep.talk.world.events(e.MemoryDeleted)
    assert gone.actor == "system"


@pytest.mark.parametrize("how", ["pinned", "edited", "another message"])
def test_d14_unless_it_is_pinned_or_a_person_edited_it_or_another_message_says_it(deep: Deep, how: str):
    deep.wants("Juno keeps bees", messages=[1, 2] if how == "another message" else [1])
    first(deep)
    (saved,) = deep.talk.world.events(e.MemorySaved)
    if how == "pinned":
        deep.talk.memory.pin(saved.memory)
    elif how == "edited":
        deep.talk.memory.edit(saved.memory, text="Juno keeps many bees")
    deep.talk.memory.delete_message(saved.source.messages[0])
    assert len(deep.texts()) == 1


def test_d14_whoever_is_killed_after_the_deletion_another_one_goes_on(deep: Deep):
    deep.wants("Juno keeps bees")
    first(deep)
    (saved,) = deep.talk.world.events(e.MemorySaved)
    deep.talk.memory.engine.chats.on_gone = None  # as if it had been killed there
    deep.talk.memory.delete_message(saved.source.messages[0])
    assert deep.texts() == {"Juno keeps bees"}
    deep.talk.world.reopen()
    deep.talk.compact()
    assert deep.texts() == set()


def test_d24_erasing_the_person_leaves_nothing_of_it(deep: Deep):
    deep.wants("Juno keeps bees")
    first(deep)
    deep.talk.memory.erase(USER)
    deep.talk.compact()
    assert deep.texts() == set()
    assert "bees" not in repr(deep.talk.world.stored())


def test_several_at_once_read_nothing_twice_and_the_tables_are_those_of_a_fresh_fold(deep: Deep):
    deep.wants("Juno keeps bees")
    deep.talk.turn("I keep bees", platform="web")
    deep.talk.many(24)
    deep.talk.world.project()
    others = [deep.talk.world.open() for _ in range(2)]
    for one in others:
        one.engine.compactor.work()
    deep.talk.compact()
    assert len(deep.passes()) == len(deep.asked) > 0
    assert_read_model_is_a_fresh_fold(deep.talk.memory)
