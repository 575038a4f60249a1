"""What changed from one past moment to another (U1)."""

from __future__ import annotations

import pytest

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.answers_moment import DiffAnswer
from tests.support.world import PERSONA, SERVER, USER, World


def told(answer: DiffAnswer) -> dict[str, tuple[str, list[str], str | None]]:
    """Text -> added, removed or changed, which fields, and why."""
    return {
        (c.after or c.before).text: (what, c.fields, c.why)  # type: ignore[union-attr]
        for what, changes in (("added", answer.added), ("removed", answer.removed), ("changed", answer.changed))
        for c in changes
    }


def test_u1_a_diff_of_two_turns_says_what_came_went_and_changed_and_what_happened_to_it(world: World):
    cat = world.save("Juno's cat is named Mochi")
    tea = world.save("The tea house opens at nine")
    drum = world.save("Juno plays the drum", scope="personal")
    world.save("Kai heals")
    first = world.say(turn="t1")
    world.later(hours=1)
    world.save("Juno plays chess", scope="global", actor="person")
    world.memory.edit(cat, text="Juno's cat is called Bean")
    world.memory.pin(tea)
    world.memory.delete(drum)
    world.memory.set_policy(recent_days=3)
    world.memory.set_persona(PERSONA, instructions="Be kind.")
    world.memory.set_person(USER, not_learning=["nobody"])
    second = world.say(turn="t2")
    answer = world.memory.diff({"turn": "t1"}, {"turn": "t2"})
    assert told(answer) == {
        "Juno plays chess": ("added", [], "A person saved it."),
        "Juno plays the drum": ("removed", [], "A person deleted it."),
        "Juno's cat is called Bean": (
            "changed", ["text", "protected", "updated_at"], "A person edited it. It is protected from now on."
        ),
        "The tea house opens at nine": ("changed", ["pinned"], "A person pinned it."),
    }  # fmt: skip
    assert answer.unchanged == 1
    assert [(s.of, s.field, s.before, s.after) for s in answer.settings] == [
        ("policy", "recent_days", 7, 3),
        ("persona mira", "instructions", "", "Be kind."),
        ("user juno", "not_learning", [], ["nobody"]),
    ]
    lines = answer.prefix.split("\n")
    assert "+Be kind." in lines
    assert "-1. Juno's cat is named Mochi" in lines
    assert "+3. Juno's cat is called Bean" in lines
    assert lines[0].startswith("@@")
    assert (answer.before.prefix, answer.after.prefix) == (first.prefix, second.prefix)
    assert answer.exact
    assert told(world.memory.diff({"turn": "t2"}, {"turn": "t2"})) == {}


def test_a_diff_back_in_time_claims_no_reason(world: World):
    world.save("Juno's cat is named Mochi")
    world.say(turn="t1")
    world.later(hours=1)
    world.save("Juno plays chess")
    world.save("Kai heals", scope="global", actor="person")
    world.say(turn="t2")
    back = told(world.memory.diff({"turn": "t2"}, {"turn": "t1"}))
    assert back == {"Juno plays chess": ("removed", [], None), "Kai heals": ("removed", [], None)}


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda w, m, t: w.memory.undo_turn(t), "The turn t0 was undone, and with it its saving."),
        (lambda w, m, t: w.memory.clear(PERSONA, scope="server", subject=SERVER),
         "A person cleared all 1 unpinned memories of the list for good."),
        (lambda w, m, t: w.say(turn=t), "The turn t0 was undone, and with it its saving."),
    ],
)  # fmt: skip
def test_what_was_undone_cleared_or_regenerated_away_is_said(world: World, act, why: str):
    world.say(turn="t0")
    memory = world.save("Juno's cat is named Mochi", turn="t0")
    world.say(turn="t1")
    world.later(hours=1)
    act(world, memory, "t0")
    world.say(turn="t2")
    assert told(world.memory.diff({"turn": "t1"}, {"turn": "t2"})) == {
        "Juno's cat is named Mochi": ("removed", [], why)
    }


def test_what_was_deleted_before_the_rest_was_cleared_is_said_to_be_deleted(world: World):
    for text in ("Juno's cat is named Mochi", "Juno plays chess"):
        last = world.save(text)
    world.say(turn="t1")
    world.later(hours=1)
    world.memory.delete(last)
    world.memory.clear(PERSONA, scope="server", subject=SERVER)
    world.say(turn="t2")
    reasons = [c.why for c in world.memory.diff({"turn": "t1"}, {"turn": "t2"}).removed]
    assert sorted(map(str, reasons)) == [
        "A person cleared all 1 unpinned memories of the list for good.", "A person deleted it."
    ]  # fmt: skip


def test_two_attempts_of_a_turn_are_compared(world: World):
    world.say("hello", turn="t")
    world.save("Juno's cat is named Mochi", turn="t")
    world.later(minutes=1)
    world.say("hello", turn="t")
    world.save("Juno plays chess", turn="t")
    world.later(minutes=1)
    world.say("hello", turn="t")
    answer = world.memory.diff({"turn": "t", "attempt": 1}, {"turn": "t", "attempt": 3})
    assert told(answer) == {}
    assert answer.prefix == ""


def test_a_memory_of_a_list_that_is_not_in_play_there_is_said_to_be_so(world: World):
    world.save("Juno's cat is named Mochi", scope="personal")
    world.later(minutes=1)
    world.say(turn="here")
    world.say(turn="elsewhere", users=["kai"])
    answer = world.memory.diff({"turn": "here"}, {"turn": "elsewhere"})
    assert told(answer) == {"Juno's cat is named Mochi": ("removed", [], "Its list is not in play there.")}


def test_days_and_states_between_two_dates_of_a_persona(world: World):
    cat = world.save("Juno's cat is named Mochi")
    world.talk(range(1, 8))
    world.day(8)
    world.save("Juno plays chess")
    world.day(9)
    answer = world.memory.diff({"time": "2026-05-05", "persona": PERSONA}, {"time": "2026-05-13", "persona": PERSONA})
    (change,) = answer.changed
    assert (change.memory, change.fields) == (cat, ["state", "on_desk", "unused_days"])
    assert change.before is not None
    assert change.after is not None
    assert (change.before.unused_days, change.after.unused_days) == (0, 7)
    assert [c.why for c in answer.added] == ["The persona saved it."]
    began = world.memory.diff({"time": "2026-05-01", "persona": PERSONA}, {"time": "2026-05-13", "persona": PERSONA})
    assert {c.why for c in began.added} == {"The persona saved it."}


def test_a_time_beside_a_turn_is_looked_at_where_the_turn_was(world: World):
    world.save("Juno's cat is named Mochi", channels=["garden"])
    world.save("Juno plays the drum", scope="personal")
    sent = world.say(turn="t", channel="garden")
    world.later(hours=1)
    for sides in (({"turn": "t"}, {"time": world.now}), ({"time": world.now}, {"turn": "t"})):
        answer = world.memory.diff(*sides)
        assert answer.before.prefix is not None
        assert answer.after.prefix is not None
        assert answer.before.prefix.text == answer.after.prefix.text == sent.prefix.text
        assert told(answer) == {}
    with pytest.raises(InvalidInput, match="Whose memories"):
        world.memory.diff({"time": world.now}, {"time": world.now})
