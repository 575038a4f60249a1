"""Clearing a list, names that look alike, other tenants, and the policy (R18, D31, C21-C23, SPEC 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound, Refused
from remembrancer.domain.identity import new_id
from remembrancer.services.remembrancer import Remembrancer
from tests.support.world import SERVER, World, desk

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
NAMES = ["a", "a/b", "a&b=c", "a%2Fb", "a:b", "\u00e4", "a\u0308", "A", "n" * 300, "server", "%", "\u202ea"]


def clear(world: World, **how: Any) -> Any:
    return world.memory.clear("mira", scope="server", subject=SERVER, **how)


def test_c21_r18_clear_all_takes_every_unpinned_memory_and_a_second_call_the_pinned(world: World):
    for n in range(120):
        world.save(f"Fact number {n}", actor="import")
    pinned = [world.save(f"Promise number {n}", actor="import") for n in range(3)]
    for memory in pinned:
        world.memory.pin(memory)
    world.save("Kaito's own", persona="kaito")
    world.save("Juno paints rivers", scope="personal")
    answer = clear(world)
    assert (answer.cleared, answer.pinned_left) == (120, 3)
    assert "protected from the AI" in answer.message
    assert world.texts() == {"Promise number 0", "Promise number 1", "Promise number 2"}
    assert len(desk(world.say(users=[]))) == 3
    answer = clear(world, pinned=True)
    assert (answer.cleared, answer.pinned_left) == (3, 0)
    assert world.texts() == set()
    assert (world.texts("personal"), world.texts(persona="kaito")) == ({"Juno paints rivers"}, {"Kaito's own"})


def test_r18_the_pinned_are_asked_about_only_after_the_others_are_gone(world: World):
    cat = world.save(CAT)
    world.memory.pin(cat)
    with pytest.raises(Refused) as early:
        clear(world, pinned=True)
    assert early.value.rule == "R18"
    clear(world)
    world.save(TEA)
    with pytest.raises(Refused):
        clear(world, pinned=True)
    clear(world)
    assert clear(world, pinned=True).cleared == 1


def test_r18_only_a_person_clears(world: World):
    world.save(CAT)
    with pytest.raises(NotAllowed):
        clear(world, actor="persona")
    assert world.texts() == {CAT}


def test_r18_no_tombstone_stays_and_history_still_shows_what_was_there(world: World):
    world.memory.delete(world.save("Aiko sings"))
    cat = world.save(CAT)
    clear(world)
    for text in ("Aiko sings", CAT):
        world.save(text)
    world.project()
    assert CAT in [h.after for h in world.memory.history(memory=cat).entries]
    with pytest.raises(NotFound):
        world.get(cat)


def test_c22_names_that_look_alike_share_no_list(world: World):
    for persona in NAMES[:5]:
        for subject in NAMES:
            for scope in ("server", "personal"):
                world.memory.save(
                    persona, scope=scope, subject=subject, text=f"{persona} {scope} {subject}", actor="person"
                )
    world.project()
    for persona in NAMES[:5]:
        for subject in NAMES:
            for scope in ("server", "personal"):
                assert world.texts(scope, subject, persona) == {f"{persona} {scope} {subject}"}
    for name in NAMES:
        answer = world.say(persona="a/b", server=name, users=[name])
        assert desk(answer) == [f"a/b server {name}", f"a/b personal {name}"]


def test_c22_a_user_and_a_server_of_the_same_name_are_two(world: World):
    world.memory.set_server("42", private=True)
    world.memory.set_person("42", privacy="nowhere")
    world.save("of the server", subject="42")
    world.save("of the user", scope="personal", subject="42", actor="person")
    assert world.memory.server("42").private
    assert desk(world.say(server="42", users=["42"])) == ["of the server"]
    world.memory.set_person("42", privacy="everywhere")
    assert desk(world.say(server="42", users=["42"])) == ["of the server", "of the user"]


@pytest.mark.parametrize("name", ["*", "", " ", "n" * 301, "a\x00b", "\ud800", 42, None])
def test_c22_what_is_no_name_is_refused_with_the_reason(world: World, name: Any):
    def refused() -> None:
        for act in (
            lambda: world.memory.save(name, scope="server", subject=SERVER, text=CAT),
            lambda: world.memory.save("mira", scope="server", subject=name, text=CAT),
            lambda: world.memory.reply(name, message="hello", users=["juno"]),
            lambda: world.memory.reply("mira", message="hello", users=[name]),
            lambda: world.memory.set_persona(name, learns=False),
        ):
            with pytest.raises(InvalidInput) as error:
                act()
            assert str(error.value)

    assert world.wrote(refused) == []


@pytest.mark.parametrize(
    "how",
    [
        {"scope": "everywhere"},
        {"tags": "spring"},
        {"channels": 7},
        {"until": "tomorrow"},
        {"actor": "god"},
        {"turn": "a\x00b"},
        {"turn": "\ud800"},
        {"turn": 7},
        {"source_chat": 7},
        {"source_messages": "m1"},
        {"source_messages": ["\ud800"]},
        {"make_room": "that one"},
        {"request_id": ""},
    ],
)
def test_d21_d31_wrong_input_is_refused_and_writes_nothing(world: World, how: dict[str, Any]):
    def refused() -> None:
        with pytest.raises(InvalidInput):
            world.saving(CAT, **({"subject": SERVER} | how))

    assert world.wrote(refused) == []


@pytest.mark.parametrize("text", ["", " \n\t", "a\x00b", "\ud83d", 42, None, ["a"]])
def test_d10_what_is_no_text_is_refused_and_writes_nothing(world: World, text: Any):
    memory = world.save(CAT)

    def refused() -> None:
        for act in (lambda: world.saving(text), lambda: world.memory.edit(memory, text=text)):
            with pytest.raises(InvalidInput):
                act()

    assert world.wrote(refused) == []


READS: dict[str, Callable[[Remembrancer, UUID], object]] = {
    "get": lambda m, i: m.get(i),
    "edit": lambda m, i: m.edit(i, text="stolen"),
    "delete": lambda m, i: m.delete(i),
    "pin": lambda m, i: m.pin(i),
    "unpin": lambda m, i: m.unpin(i),
    "history": lambda m, i: m.history(memory=i),
    "why": lambda m, i: m.why(i),
}


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("verb", READS)
def test_c23_an_id_of_another_tenant_is_not_found_in_the_same_words_as_one_that_never_was(
    world: World, verb: str, projected: bool
):
    cat = world.save(CAT)
    never = new_id(cat.bytes[0], uuid4().bytes)
    if projected:
        world.project()
    other = world.open(tenant="other")
    said = []
    for memory in (cat, never):
        with pytest.raises(NotFound) as missing:
            READS[verb](other, memory)
        said.append(str(missing.value).replace(str(memory), "…"))
        assert missing.value.status == 404
    assert said[0] == said[1]
    assert world.get(cat).text == CAT


def test_c23_tenants_share_names_and_nothing_else(world: World):
    world.save(CAT)
    world.say("how is Mochi?", turn="t")
    world.memory.set_persona("mira", instructions="You are Mira.")
    other = world.open(tenant="other")
    other.save("mira", scope="server", subject=SERVER, text=TEA)
    world.project()
    answer = other.reply("mira", message="how is Mochi?", users=["juno"], server=SERVER)
    assert desk(answer) == [TEA]
    assert [c.text for c in answer.search.candidates] == [TEA]
    world.project()
    assert "Mochi" not in other.history(persona="mira").model_dump_json()
    assert [m.text for one in other.list().lists for m in one.memories] == [TEA]
    assert "Mochi" not in str(other.find("Mochi"))
    with pytest.raises(NotFound):
        other.history(turn="t")


def test_spec_6_a_change_of_the_effective_policy_is_recorded_once_and_decisions_name_it(world: World):
    world.save(CAT)
    world.say()
    assert len(world.events(e.PolicyChanged)) == 1, "the policy of the first day"
    world.memory.set_policy(rest_after_days=9)
    world.memory.set_policy(rest_after_days=9)
    world.reopen(pin_capacity=5)
    world.say()
    world.say()
    changes = world.events(e.PolicyChanged)
    assert [(c.policy["rest_after_days"], c.policy["pin_capacity"], dict(c.own)) for c in changes] == [
        (7, 20, {}), (9, 20, {"rest_after_days": 9}), (9, 5, {"rest_after_days": 9}),
    ]  # fmt: skip
    assert [c.actor for c in changes] == ["system", "person", "system"]
    assert [r.policy for r in world.events(e.ReplySearched)] == [1, 3, 3]


def test_spec_6_the_tenants_own_setting_stands_over_keyword_and_environment_and_can_be_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("REMEMBRANCER_REST_AFTER_DAYS", "3")
    assert world.reopen().policy().rest_after_days == 3
    assert world.reopen(rest_after_days=4).policy().rest_after_days == 4
    assert world.memory.set_policy(rest_after_days=5).rest_after_days == 5
    assert world.reopen(rest_after_days=4).policy().rest_after_days == 5
    assert world.memory.set_policy(rest_after_days=None).rest_after_days == 4


@pytest.mark.parametrize("fields", [{"rest_after_days": 0}, {"rest": 3}, {"match_threshold": float("nan")}])
def test_spec_6_a_policy_that_cannot_be_is_refused_and_nothing_is_written(world: World, fields: dict[str, Any]):
    def refused() -> None:
        with pytest.raises(InvalidInput):
            world.memory.set_policy(**fields)

    assert world.wrote(refused) == []
