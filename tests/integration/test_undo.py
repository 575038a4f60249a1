"""Taking back turns and bringing back memories on the real store (C1, D8, D13, D14, D19, U2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from remembrancer.domain.errors import NotFound, RequestReused, Tombstoned
from tests.support.read_model import assert_read_model_is_a_fresh_fold
from tests.support.world import PERSONA, SERVER, USER, World


@pytest.fixture
def world(database_url: str):
    with World(database_url) as made:
        yield made


def reply(world: World, message: str, turn: str, **more):
    return world.memory.reply(PERSONA, message=message, users=[USER], server=SERVER, turn=turn, **more)


def learn(world: World, text: str, turn: str, scope: str = "server", subject: str = SERVER):
    return world.memory.save(PERSONA, scope=scope, subject=subject, text=text, actor="persona", turn=turn).memory


def texts(world: World, scope: str = "server", subject: str = SERVER) -> set[str]:
    return {m.text for m in world.memory.list(PERSONA, scope=scope, subject=subject).lists[0].memories}


@pytest.mark.parametrize("projected", [False, True])
def test_of_a_turn_regenerated_three_times_only_the_last_attempts_fact_is_there(world: World, projected: bool):
    """C1, D19: each attempt's desk is without what the earlier ones saved; history shows all four, with the undo."""
    for attempt in range(4):
        answer = reply(world, "tell me a story", "t")
        assert answer.attempt == attempt + 1
        assert "dragon" not in answer.prefix.text
        learn(world, f"dragon number {attempt} is red", "t")
        if projected:
            world.memory.engine.runner.catch_up()
    assert texts(world) == {"dragon number 3 is red"}
    world.memory.engine.runner.catch_up()
    assert_read_model_is_a_fresh_fold(world.memory)
    told = world.memory.history(turn="t", limit=1000).entries
    assert [x.after for x in told if x.event == "MemorySaved"] == [f"dragon number {n} is red" for n in range(4)]
    assert sum(x.event == "TurnRolledBack" for x in told) == 3


def test_a_turn_that_touched_several_lists_is_undone_in_all_of_them_by_one_append(world: World):
    reply(world, "hello", "t")
    learn(world, "the tea house opens at nine", "t")
    learn(world, "juno likes chess", "t", "personal", USER)
    answer = world.memory.undo_turn("t")
    assert {x.text for x in answer.removed} == {"the tea house opens at nine", "juno likes chess"}
    assert texts(world) == texts(world, "personal", USER) == set()
    assert world.memory.undo_turn("t").removed == []


def test_an_undo_brings_back_the_counter_that_the_search_had_set_to_zero(world: World):
    cat = world.memory.save(PERSONA, scope="server", subject=SERVER, text="juno's cat is named mochi").memory
    for day in (1, 2, 3):
        world.day(day)
        reply(world, "chess tonight?", f"day {day}")
    world.day(4)
    reply(world, "juno's cat mochi", "asked")
    assert world.memory.get(cat.id).unused_days == 0
    world.memory.undo_turn("asked")
    assert world.memory.get(cat.id).unused_days == 4, "the chat day stays counted"
    assert world.memory.get(cat.id).last_matched_at is None


def test_a_rewind_takes_back_all_later_turns_of_the_chat_and_none_before(world: World):
    for n in range(5):
        reply(world, f"turn {n}", f"t{n}")
        learn(world, f"learned in turn {n}", f"t{n}")
    answer = world.memory.rewind("t1")
    assert answer.turns == ["t4", "t3", "t2"]
    assert texts(world) == {"learned in turn 0", "learned in turn 1"}
    assert world.memory.rewind("t1").removed == []


@pytest.mark.parametrize("projected", [False, True])
def test_the_next_reply_sees_an_undo_and_a_restore_at_once(world: World, projected: bool):
    def settle():
        if projected:
            world.memory.engine.runner.catch_up()

    kept = world.memory.save(PERSONA, scope="server", subject=SERVER, text="juno lives in lisbon").memory
    reply(world, "hello", "t")
    world.memory.edit(kept.id, text="juno lives in porto", actor="persona", turn="t")
    settle()
    world.memory.undo_turn("t")
    assert "lisbon" in reply(world, "hi", "u").prefix.text
    world.memory.delete(kept.id)
    settle()
    assert "lisbon" not in reply(world, "hi", "v").prefix.text
    back = world.memory.restore(kept.id).memory
    assert (back.protected, back.unused_days) == (True, 0)
    assert "lisbon" in reply(world, "hi", "w").prefix.text
    found = reply(world, "juno lives in lisbon", "x").search
    assert kept.id in [c.memory for c in found.candidates]
    world.memory.engine.runner.catch_up()
    assert_read_model_is_a_fresh_fold(world.memory)


def test_history_tells_the_wording_that_an_undo_brought_back(world: World):
    """C30: the text before and after."""
    kept = world.memory.save(PERSONA, scope="server", subject=SERVER, text="juno lives in lisbon").memory
    for split in (True, False):
        reply(world, "hello", "t")
        world.memory.edit(kept.id, text="juno lives in porto", actor="persona", turn="t")
        world.memory.edit(kept.id, text="juno lives in braga", actor="persona", turn="t")
        if split:
            world.memory.engine.runner.catch_up()
        world.memory.undo_turn("t")
        world.memory.engine.runner.catch_up()
    told = [x for x in world.memory.history(memory=kept.id).entries if "worded as before" in x.sentence]
    assert [(x.before, x.after) for x in told] == [("juno lives in braga", "juno lives in lisbon")] * 2


def test_a_restore_lifts_the_tombstone(world: World):
    """D13: what a person deleted the persona may not learn again, until a person has restored it."""
    kept = world.memory.save(PERSONA, scope="server", subject=SERVER, text="juno snores").memory
    world.memory.delete(kept.id)
    with pytest.raises(Tombstoned):
        learn(world, "Juno  SNORES", "t")
    world.memory.restore(kept.id)
    assert learn(world, "Juno  SNORES", "t").id == kept.id


def test_undo_and_restore_never_forget_anything_for_room(database_url: str):
    """D8: a list may stand over its cap."""
    with World(database_url, list_capacity=1, rest_after_days=1) as world:
        old = world.memory.save(PERSONA, scope="server", subject=SERVER, text="first of all", actor="persona").memory
        world.day(1)
        reply(world, "something else entirely", "t")
        learn(world, "second of all", "t")
        assert texts(world) == {"second of all"}
        world.memory.restore(old.id)
        assert texts(world) == {"first of all", "second of all"}


def test_the_same_request_undoes_once_and_is_answered_alike(world: World):
    reply(world, "hello", "t")
    learn(world, "juno likes tea", "t")
    first = world.memory.undo_turn("t", request_id="r")
    assert world.memory.undo_turn("t", request_id="r") == first
    with pytest.raises(RequestReused):
        world.memory.undo_turn("u", request_id="r")


def test_eight_undos_at_once_with_replies_between_them_leave_one_undo(world: World):
    reply(world, "hello", "t")
    learn(world, "juno likes tea", "t")
    with ThreadPoolExecutor(8) as pool:
        undos = [pool.submit(world.memory.undo_turn, "t") for _ in range(8)]
        others = [pool.submit(reply, world, "juno likes tea", f"o{n}") for n in range(8)]
        removed = sum(len(u.result().removed) for u in undos)
        assert all(o.result().search.status == "ok" for o in others)
    assert removed == 1
    assert texts(world) == set()
    world.memory.engine.runner.catch_up()
    assert_read_model_is_a_fresh_fold(world.memory)


def test_a_turn_that_never_was_is_not_found(world: World):
    for verb in (world.memory.undo_turn, world.memory.rewind):
        with pytest.raises(NotFound):
            verb("never")


def test_find_names_as_present_the_wording_that_an_undo_brought_back(world: World):
    """U1, U2: also when the memory is deleted and restored afterwards, and across later edits."""
    cat = world.save("Juno's cat is called Mochi")
    world.memory.edit(cat, text="Juno's cat is called Bean", actor="persona", turn=(turn := world.say("Bean!").turn))

    def present() -> dict[str, bool]:
        world.project()
        return {hit.text: hit.current for hit in world.memory.find("Juno's cat")}

    assert present() == {"Juno's cat is called Mochi": False, "Juno's cat is called Bean": True}
    world.memory.undo_turn(turn)
    undone = {"Juno's cat is called Mochi": True, "Juno's cat is called Bean": False}
    assert present() == undone
    world.memory.delete(cat)
    assert not any(present().values())
    world.memory.restore(cat)
    assert present() == undone


def test_d19_a_request_that_had_nothing_to_take_back_is_answered_alike_when_it_comes_again(world: World):
    """Whatever has happened meanwhile; and its id is taken."""
    here = reply(world, "hello", "a")
    nothing = world.memory.undo_turn("a", request_id="undo")
    later = world.memory.rewind("a", request_id="rewind")
    cat = world.save("Juno's cat is named Mochi")
    there = world.memory.restore(cat, request_id="restore")
    assert (nothing.removed, later.turns, there.memory.text) == ([], [], "Juno's cat is named Mochi")
    learn(world, "kai keeps bees", "a")
    reply(world, "and now?", "b", chat=here.chat)
    learn(world, "juno sings", "b")
    world.memory.delete(cat)

    def again() -> None:
        assert world.memory.undo_turn("a", request_id="undo").removed == []
        assert world.memory.rewind("a", request_id="rewind").turns == []
        assert world.memory.restore(cat, request_id="restore").memory.id == cat

    assert world.wrote(again) == []
    assert {"kai keeps bees", "juno sings"} <= texts(world)
    assert "Juno's cat is named Mochi" not in texts(world)
    for taken in ("undo", "rewind", "restore"):
        with pytest.raises(RequestReused):
            world.memory.undo_turn("b", request_id=taken)
