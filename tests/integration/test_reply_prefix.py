"""What is sent, and that its beginning stays the same bytes (T6, T15-T17, D2, R10, R12, R15, C10, C11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support.world import SERVER, START, USER, World, desk, recalled

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
SISTER = "Aiko has a sister in Osaka"


def furnish(world: World) -> None:
    """Memories in all five lists of Juno and Aiko in the tea house, one pinned."""
    world.save(CAT)
    world.memory.pin(world.save(TEA, actor="person"))
    world.save("Juno paints rivers", scope="personal")
    world.save("Juno lives in Porto", scope="global", actor="person")
    world.save(SISTER, scope="personal", subject="aiko")
    world.save("Aiko is left-handed", scope="global", subject="aiko", actor="person")
    world.memory.set_persona("mira", instructions="You are Mira, who keeps a tea house.")


def prefix(world: World, message: str = "chess tonight?") -> str:
    return world.say(message, users=["juno", "aiko"]).prefix.text


def test_t17_the_prefix_is_the_same_bytes_whatever_is_said_and_in_whatever_order_people_are_named(world: World):
    furnish(world)
    first = world.say("how is Mochi?", users=["juno", "aiko"])
    assert [m.text for m in first.prefix.memories if m.pinned] == [TEA]
    for users in (["juno", "aiko"], ["aiko", "juno"], ["aiko", "juno", "aiko"]):
        for message in ("who paints rivers?", "", "zzz", "Osaka! Porto! Mondays!", "how is Mochi?"):
            for _ in range(2):
                again = world.say(message, users=users, channel="garden", turn="a turn")
                assert again.prefix.text == first.prefix.text
                assert again.prefix.fingerprint == first.prefix.fingerprint
            world.project()
            world.later(minutes=1)


def test_t17_the_prefix_stays_the_same_from_day_to_day_while_no_memory_moves(world: World):
    furnish(world)
    before = prefix(world)
    for number in range(1, 7):
        world.day(number)
        assert prefix(world) == before


CHANGES: dict[str, Callable[[World], object]] = {
    "a save": lambda w: w.save("Juno has a brother"),
    "an edit": lambda w: w.memory.edit(found(w, CAT), text="Juno's cat is called Momo"),
    "another date": lambda w: w.memory.edit(found(w, CAT), until=(START + timedelta(days=9)).date()),
    "a tag": lambda w: w.memory.edit(found(w, CAT), tags=["spring"]),
    "a channel": lambda w: w.memory.edit(found(w, CAT), channels=["kitchen"]),
    "a deletion": lambda w: w.memory.delete(found(w, CAT)),
    "a pin": lambda w: w.memory.pin(found(w, CAT)),
    "an unpin": lambda w: w.memory.unpin(found(w, TEA)),
    "a clear": lambda w: w.memory.clear("mira", scope="server", subject=SERVER),
    "a global memory": lambda w: w.save("Juno has a brother", scope="global", actor="person"),
    "privacy": lambda w: w.memory.set_person("aiko", privacy="nowhere"),
    "a blocklist": lambda w: w.memory.set_server(SERVER, blocklist=["aiko"]),
    "the switch for personal memories": lambda w: w.memory.set_server(SERVER, personal_memories=False),
    "who does not learn": lambda w: w.memory.set_person("juno", not_learning=["mira"]),
    "standing instructions": lambda w: w.memory.set_persona("mira", instructions="You are Mira."),
    "the policy": lambda w: w.memory.set_policy(desk_limit=1),
    "rest": lambda w: w.talk(range(1, 8)),
}


def found(world: World, text: str):
    return next(m.id for m in world.listed().memories if m.text == text)


@pytest.mark.parametrize("change", CHANGES)
def test_t17_the_prefix_changes_with_a_list_with_visibility_with_instructions_and_with_the_policy(
    world: World, change: str
):
    furnish(world)
    before = prefix(world)
    CHANGES[change](world)
    after = prefix(world)
    assert after != before
    assert prefix(world, message="") == after
    world.project()
    assert prefix(world) == after


def test_t17_d28_the_prefix_changes_when_a_date_has_passed(world: World):
    furnish(world)
    world.save("Juno is away", until=START.date())
    before = prefix(world)
    assert "Juno is away (until 4 May 2026)" in before
    world.day(1)
    assert prefix(world) != before


def test_t17_changes_that_nobody_sees_leave_the_prefix_alone(world: World):
    furnish(world)
    before = prefix(world)
    world.save("Ren plays the flute", scope="personal", subject="ren")
    world.save("The chess club meets on Fridays", subject="chess club")
    world.save("Kaito likes rain", persona="kaito")
    world.save("The garden is in bloom", tags=["spring"])
    world.memory.set_person("ren", privacy="nowhere")
    world.memory.set_persona("kaito", instructions="You are Kaito.")
    world.memory.set_server(SERVER, notices="managers")
    world.memory.edit(found(world, CAT), actor="person")
    assert prefix(world) == before


def test_t6_t17_what_is_recalled_stands_in_the_late_block_only(world: World):
    world.save(CAT)
    world.save(TEA)
    world.talk(range(1, 8))
    answer = world.say("how is Mochi?")
    assert recalled(answer) == [CAT]
    assert CAT in answer.late.text
    assert answer.prefix.text == ""


def test_c11_a_match_that_is_on_the_desk_is_in_the_prompt_once(world: World):
    world.save(CAT)
    answer = world.say("how is Mochi?")
    assert [m.text for m in answer.search.matches] == [CAT]
    assert recalled(answer) == []
    assert (answer.prefix.text + answer.late.text).count("Mochi") == 1


def test_c10_a_corrected_memory_is_one_memory_with_the_new_text_and_the_old_one_in_its_history(world: World):
    home = world.save("Juno lives in Lisbon", scope="personal")
    world.day(1)
    world.memory.edit(home, text="Juno lives in Porto", actor="persona", turn="moved")
    answer = world.say("Lisbon or Porto?")
    assert desk(answer) == ["Juno lives in Porto"]
    assert "Lisbon" not in answer.prefix.text + answer.late.text
    world.project()
    assert ("Juno lives in Lisbon", "Juno lives in Porto") in [
        (h.before, h.after) for h in world.memory.history(memory=home).entries
    ]


def test_r12_the_newest_by_text_are_chosen_round_robin_over_the_lists_and_printed_oldest_first(database_url: str):
    with World(database_url, desk_limit=5) as world:
        for number in range(1, 6):
            world.save(f"Server fact {number}")
        for number in range(1, 4):
            world.save(f"Personal fact {number}", scope="personal")
        world.save("Global fact 1", scope="global", actor="person")
        assert desk(world.say()) == [
            "Server fact 4", "Server fact 5", "Personal fact 2", "Personal fact 3", "Global fact 1",
        ]  # fmt: skip
        world.project()
        assert len(desk(world.say(server=None))) == 4, "what a short list leaves goes to the others"


def test_r12_only_a_changed_text_makes_a_memory_newer(database_url: str):
    with World(database_url, desk_limit=2) as world:
        oldest, older, _ = (world.save(text) for text in (CAT, TEA, SISTER))
        world.say("how is Mochi?")
        world.memory.edit(oldest, tags=[])
        world.saving(CAT)
        world.memory.pin(oldest)
        world.memory.unpin(oldest)
        assert desk(world.say()) == [TEA, SISTER]
        world.later(minutes=1)
        world.memory.edit(oldest, text="Juno's cat is called Mochi")
        assert desk(world.say()) == [SISTER, "Juno's cat is called Mochi"]
        assert world.get(older).on_desk is False


def test_r12_what_was_updated_in_the_last_7_days_is_marked_recent_by_its_number(world: World):
    world.save(CAT)
    world.day(4)
    world.save(TEA)
    world.day(7)
    answer = world.say()
    assert [(m.text, m.recent) for m in answer.prefix.memories] == [(CAT, False), (TEA, True)]
    assert f"2. {TEA}" in answer.prefix.text
    assert "7 days: 2" in answer.late.text
    before = answer.prefix.text
    world.day(11, hour=11)
    assert "7 days: 2" in world.say().late.text
    world.day(11, hour=13)
    answer = world.say()
    assert (answer.late.text, answer.prefix.text) == ("", before), "that it is no longer recent changes no prefix"


def test_r15_pinned_memories_are_sent_whole_every_turn_and_never_squeezed_out(database_url: str):
    with World(database_url, desk_limit=1) as world:
        long = "Juno's promise: " + "word " * 90
        for text in (long, TEA, CAT):
            world.memory.pin(world.save(text, actor="person"))
        world.save("Newest fact")
        world.save("Even newer fact")
        world.talk(range(1, 30, 4))
        answer = world.say()
        assert [m.text for m in answer.prefix.memories if m.pinned] == [long, TEA, CAT]
        assert long in answer.prefix.text
        assert [m.text for m in answer.prefix.memories if not m.pinned] == []
        world.save("Newest of all")
        assert desk(world.say()) == [long, TEA, CAT, "Newest of all"]


def test_r10_memory_is_not_split_by_chat_or_platform(world: World):
    world.save("Juno paints rivers", scope="personal")
    for chat, platform in (("one", "web"), ("fork of one", "web"), ("two", "discord"), (None, "telegram")):
        assert desk(world.say(server=None, chat=chat, platform=platform)) == ["Juno paints rivers"]


def test_t15_a_notice_is_never_fed_back_into_a_prompt(database_url: str):
    with World(database_url, list_capacity=1) as world:
        world.save(CAT)
        world.talk(range(1, 8))
        answer = world.saving(TEA, turn=world.say(turn="t").turn)
        assert [f.memory.text for f in answer.forgotten] == [CAT]
        assert "Mochi" in answer.notices[0].text
        reply = world.say("how is Mochi?")
        assert (desk(reply), recalled(reply)) == ([TEA], [])
        assert "Mochi" not in reply.prefix.text + reply.late.text
        assert "Remembered" not in reply.prefix.text + reply.late.text


def test_t16_standing_instructions_stand_at_the_beginning_of_every_prefix(world: World):
    order = "Always answer Juno in Spanish."
    world.memory.set_persona("mira", instructions=order)
    for message, users in (("hola", [USER]), ("", [USER]), ("hello", ["aiko"])):
        assert world.say(message, users=users).prefix.text.startswith(order)
    assert world.say(persona="kaito").prefix.text == ""
    world.memory.set_persona("mira", learns=False)
    assert world.say(memory="off").prefix.text == order
