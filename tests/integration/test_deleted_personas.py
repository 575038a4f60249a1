"""A persona is deleted and comes back, on the real store (R11, D25, D31, D19)."""

from __future__ import annotations

import pytest

from remembrancer.domain.errors import NotAllowed, NotFound
from tests.support.read_model import assert_read_model_is_a_fresh_fold
from tests.support.world import PERSONA, SERVER, USER, World


@pytest.fixture
def world(database_url: str):
    with World(database_url) as made:
        yield made


def personal(world: World, text: str, user: str = USER):
    return world.memory.save(PERSONA, scope="personal", subject=user, text=text).memory


def texts(world: World, persona: str | None, scope: str, subject: str) -> set[str]:
    return {m.text for m in world.memory.list(persona, scope=scope, subject=subject).lists[0].memories}


def test_r11_what_it_knew_of_people_is_read_by_every_persona_afterwards(world: World):
    personal(world, "Juno's cat is named Mochi")
    personal(world, "Kai plays healer", "kai")
    world.save("The garden opens at nine")
    gone = world.memory.delete_persona(PERSONA)
    assert (gone.moved, gone.people) == (2, 2)
    world.project()
    assert texts(world, None, "global", USER) == {"Juno's cat is named Mochi"}
    rui = world.memory.reply("rui", message="mochi the cat", users=[USER, "kai"], server=SERVER)
    assert {m.text for m in rui.prefix.memories} == {"Juno's cat is named Mochi", "Kai plays healer"}
    assert [m.text for m in rui.search.matches] == ["Juno's cat is named Mochi"]
    world.project()
    assert_read_model_is_a_fresh_fold(world.memory)


def test_d25_its_server_memories_wait_for_its_return(world: World):
    world.save("The garden opens at nine")
    world.memory.delete_persona(PERSONA)
    assert world.say("hello").prefix.memories == []
    world.memory.set_persona(PERSONA, name="Mira")
    assert [m.text for m in world.say("hello").prefix.memories] == ["The garden opens at nine"]


def test_d25_where_a_global_memory_says_the_same_one_stays_pinned_if_either_was(world: World):
    mine = personal(world, "Juno is afraid of spiders")
    world.memory.pin(mine.id)
    world.memory.save(None, scope="global", subject=USER, text="juno is afraid of SPIDERS", actor="person")
    world.memory.delete_persona(PERSONA)
    (only,) = world.memory.list(None, scope="global", subject=USER).lists[0].memories
    assert (only.text, only.pinned, only.protected) == ("juno is afraid of SPIDERS", True, True)


def test_history_tells_where_it_went_and_it_is_not_restored_here(world: World):
    mine = personal(world, "Juno's cat is named Mochi")
    world.memory.delete_persona(PERSONA)
    world.project()
    assert "moved to another list" in world.memory.history(memory=mine.id).entries[-1].sentence
    with pytest.raises(NotFound):
        world.memory.restore(mine.id)


def test_d31_d19_unknown_personas_twice_and_the_same_request(world: World):
    personal(world, "Juno's cat is named Mochi")
    world.project()
    with pytest.raises(NotFound) as told:
        world.memory.delete_persona("mirra")
    assert told.value.details["near"] == [PERSONA]
    first = world.memory.delete_persona(PERSONA, request_id="r")
    assert world.memory.delete_persona(PERSONA, request_id="r") == first
    with pytest.raises(NotAllowed, match="deleted already"):
        world.memory.delete_persona(PERSONA)


def test_r11_what_is_saved_while_it_is_deleted_is_not_stranded(world: World):
    personal(world, "Juno has a cat")

    def in_between(done: int, total: int) -> None:
        world.memory.save(
            PERSONA, scope="personal", subject=USER, text="Juno moved to Graz", actor="persona", turn=None
        )  # fmt: skip

    world.memory.delete_persona(PERSONA, progress=in_between)
    assert texts(world, None, "global", USER) == {"Juno has a cat", "Juno moved to Graz"}


def test_r11_nobody_saves_for_a_deleted_persona_what_nobody_would_read(world: World):
    personal(world, "Juno has a cat")
    world.memory.delete_persona(PERSONA)
    with pytest.raises(NotAllowed) as error:
        personal(world, "Juno moved to Graz")
    assert (error.value.rule, "global" in str(error.value.hint)) == ("R11", True)
    world.memory.set_persona(PERSONA, name="Mira")
    assert personal(world, "Juno moved to Graz").on_desk
