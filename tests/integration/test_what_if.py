"""The same history under other numbers, on the real store (U3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound, RequestReused
from remembrancer.services.answers_what_if import ChangeView, WhatIfAnswer
from remembrancer.services.tokens import count_tokens
from tests.support.read_model import assert_read_model_is_a_fresh_fold, count_of_everything
from tests.support.world import PERSONA, SERVER, USER, World

CAT = "juno's cat is named mochi"


def by_text(answer: WhatIfAnswer) -> dict[str, ChangeView]:
    return {c.text: c for c in answer.changes}


def unknown(answer: WhatIfAnswer) -> dict[str, int]:
    return {u.what: u.count for u in answer.unknown}


def counters(world: World) -> dict[str, tuple[int, Any]]:
    lists = world.memory.list(None).lists
    return {m.text: (m.unused_days, m.last_matched_at) for one in lists for m in one.memories}


def test_u3_a_memory_that_rests_after_seven_days_would_be_active_under_fourteen(world: World):
    world.save(CAT)
    world.talk(range(1, 9))
    before = count_of_everything(world.memory)
    answer = world.memory.what_if(rest_after_days=14)
    assert count_of_everything(world.memory) == before, "nothing is written"
    change = by_text(answer)[CAT]
    assert (change.now.state, change.now.unused_days, change.now.on_desk) == ("resting", 8, False)
    assert (change.then.state, change.then.unused_days, change.then.on_desk) == ("active", 8, True)
    assert answer.now.resting == answer.then.active == 1
    assert answer.numbers["rest_after_days"].now == 7
    assert answer.now.desk == round(7 / 8, 2), "the reply of the seventh day still had it (D2)"
    assert answer.then.desk == 1
    assert answer.unknown == []


def test_the_tokens_of_a_reply_are_those_of_the_blocks_that_it_sent(world: World):
    world.save(CAT)
    sent = world.say("hello").prefix.text
    assert world.memory.what_if(rest_after_days=14).now.tokens == count_tokens(sent)


def test_u3_a_lower_threshold_and_a_larger_limit_judge_the_recorded_candidates_again(world: World):
    """T3: the counters are those of a match on that day."""
    cat, dog = world.save(CAT), world.save("juno's dog is named rex")
    world.day(1)
    answer = world.say("juno's cat is named what?")
    assert {m.memory for m in answer.search.matches} == {cat, dog}
    world.talk([2, 3])
    under = world.memory.what_if(match_limit=1)
    assert {c.text: (c.now.unused_days, c.then.unused_days) for c in under.changes} == {
        "juno's dog is named rex": (2, 3)
    }
    assert (under.now.matches, under.then.matches) == (2, 1)
    none = world.memory.what_if(match_threshold=9.0)
    assert {c.then.unused_days for c in none.changes} == {3}
    assert {c.then.last_matched_at for c in none.changes} == {None}
    assert none.then.matches == 0


def test_t12_what_was_forgotten_would_still_be_there_in_a_larger_list_and_its_days_are_said_to_be_uncertain(
    world: World,
):
    world.reopen(list_capacity=2, rest_after_days=2)
    world.save("a river runs by")
    world.save("drums are loud")
    world.talk([1, 2, 3])
    turn = world.say("hm").turn
    world.save("porto has bridges", turn=turn)
    assert world.texts() == {"drums are loud", "porto has bridges"}
    world.talk([4])
    answer = world.memory.what_if(list_capacity=10)
    change = by_text(answer)["a river runs by"]
    assert change.now.state == "forgotten"
    assert change.now.unused_days is None
    assert (change.then.state, change.then.unused_days, change.uncertain) == ("resting", 4, True)
    assert (answer.now.evictions, answer.then.evictions) == (1, 0)
    assert unknown(answer) == {"not_searched": 1, "refused_saves": 1}


def test_t12_t14_a_smaller_list_would_have_forgotten_more_and_refused_what_found_nobody_resting(world: World):
    world.reopen(rest_after_days=2)
    world.save("a river runs by")
    world.save("drums are loud")
    world.talk([1, 2])
    world.save("porto has bridges", turn=world.say("hm").turn)
    world.save("chess is a game", turn=world.say("hm").turn)
    world.save("mochi sleeps", turn=world.say("hm").turn)
    answer = world.memory.what_if(list_capacity=2)
    then = {text: c.then.state for text, c in by_text(answer).items()}
    assert then == {"a river runs by": "forgotten", "drums are loud": "forgotten", "mochi sleeps": "not saved"}
    assert (answer.now.evictions, answer.then.evictions, answer.then.refused) == (0, 2, 1)


def test_t13_a_person_s_own_is_never_what_would_have_been_forgotten(world: World):
    world.reopen(rest_after_days=2)
    world.save("a river runs by", actor="person")
    world.talk([1, 2, 3])
    world.save("porto has bridges", turn=world.say("hm").turn)
    answer = world.memory.what_if(list_capacity=1)
    assert {t: c.then.state for t, c in by_text(answer).items()} == {"porto has bridges": "not saved"}


def test_d12_the_same_again_would_have_been_a_duplicate_of_what_was_not_forgotten(world: World):
    world.reopen(list_capacity=1, rest_after_days=2)
    world.save("a river runs by")
    world.talk([1, 2])
    world.save("drums are loud", turn=world.say("hm").turn)
    world.talk([3, 4])
    world.save("A river runs by", turn=world.say("hm").turn)
    answer = world.memory.what_if(list_capacity=5)
    assert {t: (c.now.state, c.then.state) for t, c in by_text(answer).items()} == {
        "drums are loud": ("forgotten", "resting")
    }


def test_a_smaller_desk_sends_fewer_memories_and_changes_no_counter(world: World):
    for text in ("a river runs by", "drums are loud", "porto has bridges"):
        world.save(text)
    world.talk([1])
    answer = world.memory.what_if(desk_limit=1)
    assert (answer.now.desk, answer.then.desk) == (3, 1)
    assert answer.then.tokens < answer.now.tokens
    assert {c.then.on_desk for c in answer.changes} == {False}
    assert all(c.now.unused_days == c.then.unused_days for c in answer.changes)


def test_d9_with_fewer_pins_the_last_would_have_been_refused(world: World):
    pinned = [world.save(text, actor="person") for text in ("a river runs by", "drums are loud")]
    for memory in pinned:
        world.memory.pin(memory)
    world.save("mochi sleeps")
    world.talk([1])
    answer = world.memory.what_if(pin_capacity=1)
    assert {t: (c.now.unused_days, c.then.unused_days) for t, c in by_text(answer).items()} == {
        "drums are loud": (None, 1)
    }


def test_d5_a_threshold_is_not_for_replies_of_another_model(world: World):
    world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.reopen(embedder_model="other words")
    world.project()
    world.memory.change_model()
    world.day(2)
    answer = world.memory.what_if(match_threshold=9.0)
    assert answer.changes == []
    assert unknown(answer) == {"another_model": 1}


def test_t8_replies_without_a_search_are_said_to_be_without(world: World):
    world.save(CAT)
    world.lose_the_model()
    world.say(CAT)
    assert unknown(world.memory.what_if(match_limit=5)) == {"without_search": 1}
    assert unknown(world.memory.what_if(rest_after_days=5)) == {}


def test_only_a_persona_or_a_list_is_shown_and_another_persona_that_searches_the_same_globals_counts(world: World):
    """T9, C7."""
    world.save(CAT)
    world.save("juno sings", scope="global", actor="person")
    world.save("otto has a bike", persona="otto")
    world.day(1)
    world.say("juno sings", persona="otto")
    world.talk([2])
    world.say("chess?", persona="otto")
    every = world.memory.what_if(match_threshold=9.0, rest_after_days=2)
    assert {"juno sings", CAT, "otto has a bike"} >= set(by_text(every)) >= {"juno sings", "otto has a bike"}
    mira = world.memory.what_if(match_threshold=9.0, rest_after_days=2, persona=PERSONA)
    assert set(by_text(mira)) == {"juno sings"}
    assert by_text(mira)["juno sings"] == by_text(every)["juno sings"]
    assert mira.now.replies == 1
    one = world.memory.what_if(match_threshold=9.0, scope="global", subject=USER)
    assert set(by_text(one)) == {"juno sings"}
    with pytest.raises(NotFound):
        world.memory.what_if(rest_after_days=2, persona="miro")


def test_u3_apply_records_what_the_answer_says_and_twice_writes_nothing_new(world: World):
    world.save(CAT)
    world.save("juno sings", scope="personal")
    world.day(1)
    world.say("juno's cat is named what, juno sings?")
    world.talk([2, 3])
    said = world.memory.what_if(match_threshold=9.0)
    assert (len(said.changes), said.recounted, said.applied) == (2, 2, False)
    wrote = world.wrote(lambda: world.memory.what_if(match_threshold=9.0, apply=True))
    assert wrote == ["UseRecounted", "UseRecounted"]
    assert counters(world) == {c.text: (c.then.unused_days, c.then.last_matched_at) for c in said.changes}
    again = world.memory.what_if(match_threshold=9.0, apply=True)
    assert (again.recounted, again.changes, again.positions) == (0, [], [])
    assert world.wrote(lambda: world.memory.what_if(match_threshold=9.0, apply=True)) == []
    world.talk([4])
    assert {days for days, _ in counters(world).values()} == {4}, "later days go on counting (T4)"
    world.project()
    assert_read_model_is_a_fresh_fold(world.memory)
    back = world.memory.what_if(match_threshold=0.3, apply=True)
    assert back.recounted == 2
    assert {days for days, _ in counters(world).values()} == {3}, "what was recorded of the searches is still there"


def test_d3_a_pinned_memory_keeps_its_pin_and_loses_a_last_match_that_would_not_have_been(world: World):
    cat = world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.talk([2])
    world.memory.pin(cat)
    world.talk([3])
    said = world.memory.what_if(match_threshold=9.0, apply=True)
    assert [(c.now.state, c.then.state, c.then.last_matched_at) for c in said.changes] == [("active", "active", None)]
    assert counters(world)[CAT] == (2, None), "as it would have been pinned"
    again = world.memory.what_if(match_threshold=9.0, apply=True)
    assert (again.recounted, again.changes) == (0, [])
    world.project()
    assert_read_model_is_a_fresh_fold(world.memory)
    world.memory.unpin(cat)
    assert counters(world)[CAT] == (0, None), "it begins anew with the day of the unpinning"


def test_a_recount_on_a_day_whose_search_comes_later_counts_that_day_once(world: World):
    """D1: as if it had been counted like that from the start."""
    world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.day(2)
    world.memory.what_if(match_threshold=9.0, apply=True)
    world.say("chess?")
    assert counters(world)[CAT] == (2, None)


def test_history_tells_of_a_recount_and_under_which_numbers(world: World):
    """C30."""
    cat = world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.talk([2])
    world.memory.what_if(match_threshold=9.0, apply=True)
    world.project()
    told = world.memory.history(memory=cat).entries[-1]
    assert told.sentence == "Its unused days were counted anew under match_threshold 9.0: 2."
    assert told.after == CAT


def test_apply_has_nothing_to_record_for_numbers_that_show_at_once(world: World):
    world.save(CAT)
    world.talk(range(1, 9))
    assert world.wrote(lambda: world.memory.what_if(rest_after_days=14, apply=True)) == []


def test_evictions_stand_when_a_recount_is_applied(world: World):
    world.reopen(list_capacity=1, rest_after_days=2)
    world.save("a river runs by")
    world.talk([1, 2])
    world.save("drums are loud", turn=world.say("hm").turn)
    world.memory.what_if(list_capacity=9, match_limit=1, apply=True)
    assert world.texts() == {"drums are loud"}


def test_d14_an_undo_after_a_recount_takes_back_the_use_that_the_turn_has_by_now(world: World):
    """One that it had, and one that only the recount gave it; the use before, which a recount gave, too, stands."""
    world.reopen(match_limit=1)
    world.save(CAT)
    world.save("juno's dog is named rex")
    world.day(1)
    world.say("juno's dog is named rex")
    world.day(2)
    turn = world.say("juno's cat is named what?").turn
    world.talk([3])
    world.memory.what_if(match_limit=2, apply=True)
    assert {text: days for text, (days, _) in counters(world).items()} == {CAT: 1, "juno's dog is named rex": 1}
    world.memory.undo_turn(turn)
    assert {text: days for text, (days, _) in counters(world).items()} == {CAT: 2, "juno's dog is named rex": 2}
    assert world.memory.undo_turn(turn).turns == [turn]
    assert world.wrote(lambda: world.memory.undo_turn(turn)) == []
    world.project()
    assert_read_model_is_a_fresh_fold(world.memory)


def test_d14_an_undo_after_a_recount_leaves_uses_alone_that_the_recount_took_from_the_turn(world: World):
    world.save(CAT)
    world.day(1)
    world.say("juno's cat is named mochi")
    world.day(2)
    turn = world.say("is juno's cat big").turn
    world.talk([3])
    strong = world.memory.what_if(match_threshold=0.9, apply=True)
    assert strong.changes[0].then.unused_days == 2
    world.memory.undo_turn(turn)
    assert counters(world)[CAT][0] == 2


def test_d19_the_same_request_gets_the_first_answer_with_the_texts_of_today(world: World):
    world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.talk([2])
    first = world.memory.what_if(match_threshold=9.0, apply=True, request_id="r")
    assert first.recounted == 1
    again = world.memory.what_if(match_threshold=9.0, apply=True, request_id="r")
    assert again == first
    with pytest.raises(RequestReused):
        world.memory.what_if(match_threshold=8.0, apply=True, request_id="r")


def test_replies_that_come_while_a_recount_is_applied_are_in_it_or_after_it(world: World):
    """Decided again on what is there then; nothing is lost of either."""
    world.save(CAT)
    world.day(1)
    world.say(CAT)
    world.day(2)
    others = [world.open() for _ in range(3)]

    def talk(memory: Any) -> None:
        for n in range(8):
            memory.reply(PERSONA, message=CAT if n % 2 else "chess?", users=[USER], server=SERVER)

    def count(memory: Any) -> list[WhatIfAnswer]:
        return [memory.what_if(match_threshold=9.0, apply=True) for _ in range(6)]

    with ThreadPoolExecutor(4) as pool:
        talks = [pool.submit(talk, memory) for memory in others]
        pool.submit(count, world.memory).result()
        for one in talks:
            one.result()
    assert len(world.events(e.ReplySearched)) == 1 + 24
    world.memory.what_if(match_threshold=9.0, apply=True)
    assert counters(world)[CAT] == (2, None)


def test_c23_nothing_of_another_tenant_is_counted(world: World):
    theirs = world.open(tenant="theirs")
    theirs.save(PERSONA, scope="server", subject=SERVER, text=CAT)
    for day in range(1, 9):
        world.day(day)
        theirs.reply(PERSONA, message="hm", users=[USER], server=SERVER)
    answer = world.memory.what_if(rest_after_days=14)
    assert (answer.changes, answer.events, answer.lists) == ([], 0, 0)


def test_d24_a_list_that_was_erased_is_said_to_be(world: World):
    world.save("juno sings", scope="personal")
    world.talk([1])
    world.memory.erase(USER)
    answer = world.memory.what_if(match_threshold=9.0)
    assert (answer.changes, unknown(answer)) == ([], {"erased": 1})


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"rest_after_days": 0}, {"match_limit": 11}, {"match_threshold": float("nan")}, {"list_capacity": "many"},
        {"desk_limit": -1}, {"rest_after_days": 5, "scope": "server"}, {"rest_after_days": 5, "subject": "x"},
        {"rest_after_days": 5, "apply": "yes"}, {"rest_after_days": 5, "scope": "else", "subject": "x"},
        {"rest_after_days": 5, "persona": "*"}, {"rest_after_days": 5, "apply": True, "request_id": ""},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(world: World, asked: dict[str, Any]):
    with pytest.raises(InvalidInput):
        world.memory.what_if(**asked)


@pytest.mark.parametrize("wrong", [True, "7", [7], {}])
def test_a_number_is_a_number(world: World, wrong: Any):
    for name in ("rest_after_days", "match_limit", "match_threshold", "list_capacity", "desk_limit", "pin_capacity"):
        with pytest.raises(InvalidInput, match=name):
            world.memory.what_if(**{name: wrong})


def test_a_list_needs_its_persona(world: World):
    with pytest.raises(InvalidInput, match="Whose list"):
        world.memory.what_if(match_limit=5, scope="server", subject=SERVER)
