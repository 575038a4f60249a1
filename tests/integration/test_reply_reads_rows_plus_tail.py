"""A reply sees every acknowledged write, with the projector stopped too: rows plus the events ahead of them (DESIGN 4)."""

from __future__ import annotations

import pytest

from tests.support.world import World, desk

CAT = "Juno's cat is named Mochi"


def test_t10_who_was_hidden_on_a_day_that_the_tables_have_not_seen_does_not_age(world: World):
    spring = world.save("The garden opens at nine", tags=["spring"])
    world.project()
    world.talk(range(1, 4))
    world.talk([4], tags=["spring"])
    for projected in (False, True):
        answer = world.say(tags=["spring"])
        assert [m.unused_days for m in answer.prefix.memories] == world.unused(spring) == [1], projected
        world.project()
