"""A reply sees every acknowledged write, the projector stopped too: rows plus events ahead (DESIGN 4, C4, T10, D22)."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest

from remembrancer.services.answers import ReplyAnswer
from tests.support.world import SERVER, World, desk, matched

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"


def seen(answer: ReplyAnswer) -> dict[str, Any]:
    """What an answer shows of memory: all that must not depend on how far the tables are."""
    return {
        "prefix": answer.prefix.model_dump(),
        "late": answer.late.model_dump(),
        "candidates": [(c.text, c.matched, c.recalled, round(c.score, 5)) for c in answer.search.candidates],
    }


def say_throughout(world: World, **how: Any) -> ReplyAnswer:
    """The first reply of a moment. Once it has ticked and matched, replies stay the same while the tables catch up."""
    first = world.say("how is Mochi?", **how)
    before = seen(world.say("how is Mochi?", **how))
    runner = world.memory.engine.runner
    for step in (lambda: runner.run_batch(runner.projections[0]), world.project, world.project):
        assert seen(world.say("how is Mochi?", **how)) == before
        step()
    assert seen(world.say("how is Mochi?", **how)) == before
    return first


@pytest.fixture(params=[False, True], ids=["no row yet", "rows there"])
def cat(request: pytest.FixtureRequest, world: World) -> UUID:
    """A memory, whose row is there or not."""
    memory = world.save(CAT)
    world.save(TEA)
    if request.param:
        world.say()
        world.project()
    return memory


def test_t6_d2_a_save_is_on_the_next_desk_and_found_at_once(world: World, cat: UUID):
    world.save("Mochi sleeps on a drum")
    answer = say_throughout(world)
    assert desk(answer) == [CAT, TEA, "Mochi sleeps on a drum"]
    assert {"Mochi sleeps on a drum", CAT} <= {c.text for c in answer.search.candidates}


def test_c4_d11_an_edit_is_found_by_its_new_text_at_once_and_by_its_old_one_no_more(world: World):
    nuts = world.save("Juno is allergic to peanuts")
    world.project()
    world.memory.edit(nuts, text="Juno is allergic to walnuts", actor="persona")
    for projected in (False, True):
        assert matched(world.say("peanuts?")) == [], projected
        assert matched(world.say("walnuts?")) == ["Juno is allergic to walnuts"], projected
        world.project()


def test_d13_r15_a_deletion_is_effective_at_once(world: World, cat: UUID):
    world.memory.delete(cat)
    answer = say_throughout(world)
    assert desk(answer) == [TEA]
    assert [c.text for c in answer.search.candidates] == [TEA]


def test_r15_d3_a_pin_and_an_unpin_are_effective_at_once(world: World, cat: UUID):
    world.memory.pin(cat)
    answer = say_throughout(world)
    assert [m.pinned for m in answer.prefix.memories] == [True, False]
    assert [c.text for c in answer.search.candidates] == [TEA]
    world.memory.unpin(cat)
    answer = say_throughout(world)
    assert [m.pinned for m in answer.prefix.memories] == [False, False]
    assert CAT in matched(answer)


def test_r18_a_clear_is_effective_at_once(world: World, cat: UUID):
    world.memory.pin(cat)
    world.memory.clear("mira", scope="server", subject=SERVER)
    assert desk(say_throughout(world)) == [CAT]
    world.memory.clear("mira", scope="server", subject=SERVER, pinned=True)
    assert desk(say_throughout(world)) == []


def test_t12_an_eviction_is_effective_at_once(world: World, cat: UUID):
    world.memory.set_policy(list_capacity=2)
    world.talk(range(1, 8))
    world.save("Aiko has a sister in Osaka")
    answer = say_throughout(world)
    assert desk(answer) == ["Aiko has a sister in Osaka"]
    assert CAT not in [c.text for c in answer.search.candidates]


def test_t5_t6_ticks_and_matches_are_effective_at_once(world: World, cat: UUID):
    world.talk(range(1, 8))
    world.day(8)
    answer = say_throughout(world)
    assert (desk(answer), matched(answer)) == ([], [CAT])
    assert (desk(world.say()), world.states(cat)) == ([CAT], ["active"])


def test_t10_a_change_of_tags_or_channels_is_effective_at_once(world: World, cat: UUID):
    world.memory.edit(cat, tags=["spring"], channels=["garden"])
    assert desk(say_throughout(world)) == [TEA]
    assert desk(say_throughout(world, tags=["spring"], channel="garden")) == [CAT, TEA]


def test_t10_who_was_hidden_on_a_day_that_the_tables_have_not_seen_does_not_age(world: World):
    spring = world.save("The garden opens at nine", tags=["spring"])
    world.project()
    world.talk(range(1, 4))
    world.talk([4], tags=["spring"])
    for projected in (False, True):
        answer = world.say(tags=["spring"])
        assert [m.unused_days for m in answer.prefix.memories] == world.unused(spring) == [1], projected
        world.project()


def test_d22_the_vector_of_a_save_that_came_later_is_found_without_a_row(world: World):
    world.lose_the_model()
    world.save(CAT)
    world.find_the_model()
    assert world.say("how is Mochi?").search.candidates == []
    world.project()
    assert world.memory.embed_pending() == 1
    assert matched(world.say("how is Mochi?")) == [CAT]


def test_t17_d2_while_a_projector_runs_each_reply_has_each_acknowledged_write_and_the_right_counters(world: World):
    stop = threading.Event()

    def project() -> None:
        runner = world.memory.engine.runner
        while not stop.is_set():
            runner.run_batch(runner.projections[0])

    expected: list[str] = []
    projector = threading.Thread(target=project)
    projector.start()
    try:
        for number in range(40):
            world.day(number)
            if number % 3 == 2:
                gone = expected.pop(0)
                world.memory.delete(next(m.id for m in world.listed().memories if m.text == gone))
            text = f"Word{number} is a word"
            memory = world.save(text, tags=["odd"] if number % 2 else [])
            expected.append(text)
            if number % 5 == 4:
                world.memory.edit(memory, text=f"{text}, edited")
                expected[-1] = f"{text}, edited"
            answer = world.say(f"Word{number}?", tags=["odd"])
            assert text in matched(answer)[0]
            world.say(f"Word{number - 1}?")
            folded = world.listed().memories
            assert {m.text for m in folded} == set(expected)
            on_desk = {m.text: m.unused_days for m in world.say("", tags=["odd"]).prefix.memories}
            assert on_desk == {m.text: m.unused_days for m in folded if m.state == "active"}
    finally:
        stop.set()
        projector.join()


def test_settings_need_no_projector(world: World, cat: UUID):
    world.save("Juno paints rivers", scope="personal")
    for change in (
        lambda: world.memory.set_person("juno", privacy="nowhere"),
        lambda: world.memory.set_persona("mira", learns=False),
    ):
        before = len(desk(world.say()))
        change()
        assert len(desk(world.say())) < before
