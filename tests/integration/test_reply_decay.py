"""What a reply does to counters: days tick, memories rest, matches bring them back (T1-T9, T11, D1-D3, D28, D30)."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import ListFull
from tests.support.world import START, USER, World, desk, matched, recalled

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
SISTER = "Aiko has a sister in Osaka"


def test_t1_the_counter_starts_at_0_and_goes_on_counting_beyond_the_limit(world: World):
    cat = world.save(CAT)
    assert world.unused(cat) == [0]
    world.talk(range(10))
    assert world.unused(cat) == [9]


def test_t1_a_later_rule_of_10_days_brings_back_what_rested_after_7(world: World):
    cat = world.save(CAT)
    world.talk(range(10))
    assert world.states(cat) == ["resting"]
    world.memory.set_policy(rest_after_days=10)
    assert world.states(cat) == ["active"]
    assert desk(world.say()) == [CAT]


def test_t2_one_search_looks_through_the_server_and_the_lists_of_each_participant(world: World):
    world.save(CAT)
    world.save("Juno paints rivers", scope="personal")
    world.save("Juno paints bridges", scope="global", actor="person")
    world.save("Aiko paints boats", scope="personal", subject="aiko")
    world.save("Aiko paints lanterns", scope="global", subject="aiko", actor="person")
    answer = world.say("who paints rivers, bridges, boats, lanterns? Mochi?", users=["juno", "aiko"])
    assert {c.text for c in answer.search.candidates} == {
        CAT, "Juno paints rivers", "Juno paints bridges", "Aiko paints boats", "Aiko paints lanterns",
    }  # fmt: skip


def test_t3_up_to_3_of_all_lists_together_count_as_used_best_first(world: World):
    world.save("Mochi sleeps")
    world.save("Mochi eats", scope="personal")
    world.save("Mochi plays chess", scope="global", actor="person")
    world.later(hours=2)  # what was said together is remembered together
    world.save("Mochi has been seen near the harbour again")
    answer = world.say("Mochi sleeps")
    assert len(answer.search.candidates) == 4
    assert matched(answer) == ["Mochi sleeps", "Mochi eats", "Mochi plays chess"]
    assert [m.rank for m in answer.search.matches] == [1, 2, 3]


def test_t3_the_fourth_best_match_gains_a_day_like_all_the_others(world: World):
    saved = []
    for text in ("Mochi sleeps", "Mochi eats", "Mochi plays chess", "Mochi saw the harbour"):
        saved.append(world.save(text))
        world.later(hours=2)
    world.day(1)
    answer = world.say("Mochi sleeps")
    assert {c.memory for c in answer.search.candidates if c.score >= 0.3} == set(saved)
    assert world.unused(*saved) == [0, 0, 0, 1]


def test_t3_what_is_no_reasonable_match_does_not_count_as_used(world: World):
    cat = world.save(CAT)
    world.day(1)
    assert matched(world.say("is the weather nice?", turn="t")) == []
    assert world.unused(cat) == [1]
    assert not world.events(e.MemoriesMatched)


def test_t4_a_memory_gains_one_day_a_utc_day_however_many_messages_are_sent(world: World):
    cat = world.save(CAT)
    for number in (1, 2):
        world.day(number, hour=0)
        for _ in range(5):
            world.say()
            world.later(hours=4)
    assert world.unused(cat) == [2]
    assert [ev.day for ev in world.events(e.ListSearched)] == [date(2026, 5, 5), date(2026, 5, 6)]


def test_t5_at_7_counted_days_a_memory_rests_and_is_kept_and_searched(world: World):
    cat = world.save(CAT)
    world.talk(range(1, 7))
    assert world.states(cat) == ["active"]
    world.talk([7])
    assert world.states(cat) == ["resting"]
    answer = world.say()
    assert desk(answer) == []
    assert [c.memory for c in answer.search.candidates] == [cat]


def test_t6_a_match_that_rests_is_added_to_this_reply_and_is_on_the_next_desk(world: World):
    cat = world.save(CAT)
    world.talk(range(1, 9))
    answer = world.say("how is Mochi?")
    assert desk(answer) == []
    assert recalled(answer) == [CAT]
    assert CAT in answer.late.text
    assert CAT not in answer.prefix.text
    assert world.unused(cat) == [0]
    assert desk(world.say()) == [CAT]


def test_t6_a_match_that_was_squeezed_off_the_desk_is_added_to_this_reply(database_url: str):
    with World(database_url, desk_limit=2) as world:
        world.save(CAT)
        for text in (TEA, SISTER):
            world.later(minutes=1)
            world.save(text)
        assert desk(world.say()) == [TEA, SISTER]
        answer = world.say("how is Mochi?")
        assert recalled(answer) == [CAT]
        assert answer.search.matches[0].recalled
        assert desk(world.say()) == [TEA, SISTER], "updated_at alone decides who is on the desk (R12)"


def test_t7_being_on_the_desk_is_not_being_used(world: World):
    cat, tea = world.save(CAT), world.save(TEA)
    world.talk(range(1, 8), "how is Mochi?")
    assert world.unused(cat, tea) == [0, 7]
    assert world.states(cat, tea) == ["active", "resting"]


def test_t8_a_day_without_chat_and_a_day_whose_search_failed_change_nothing(world: World):
    cat = world.save(CAT)
    world.talk([1])
    world.lose_the_model()
    answer = world.talk([2, 3], "how is Mochi?")
    assert answer is not None
    assert (answer.search.status, answer.search.matches) == ("unavailable", [])
    assert desk(answer) == [CAT]
    world.find_the_model()
    assert world.unused(cat) == [1]
    world.day(40)
    assert world.unused(cat) == [1]
    assert world.states(cat) == ["active"]
    world.say()
    assert world.unused(cat) == [2]


def test_t8_a_failed_search_writes_nothing_to_any_list(world: World):
    world.save(CAT)
    world.say()
    world.lose_the_model()
    world.day(1)
    assert world.wrote(lambda: world.say("how is Mochi?")) == ["MessagePosted", "ReplySearched"]


def test_t8_a_search_that_succeeds_later_on_the_day_counts_the_day(world: World):
    cat = world.save(CAT)
    world.day(1)
    world.lose_the_model()
    world.say()
    world.find_the_model()
    world.say()
    assert world.unused(cat) == [1]


def test_t9_server_memories_age_only_where_the_persona_talks(world: World):
    here, there = world.save(CAT), world.save(CAT, subject="chess club")
    world.talk(range(1, 4))
    world.talk(range(4, 6), server="chess club")
    assert world.unused(here, there) == [3, 2]


def test_t9_d27_personal_memories_age_only_on_days_on_which_their_owner_takes_part(world: World):
    juno = world.save("Juno paints rivers", scope="personal")
    aiko = world.save("Aiko paints boats", scope="personal", subject="aiko")
    world.talk([1], users=["juno"])
    world.talk([2], users=["aiko", "juno"])
    world.talk([3], "ask juno about it", users=["aiko"])
    assert world.unused(juno, aiko) == [2, 2]


def test_t9_a_global_list_ages_once_a_day_with_whichever_persona(world: World):
    paints = world.save("Juno paints rivers", scope="global", actor="person")
    for number, personas in enumerate((["mira", "kaito"], ["kaito"], ["ren", "mira", "kaito"]), start=1):
        world.day(number)
        for persona in personas:
            world.say(persona=persona)
            world.say(persona=persona, server=None)
    assert world.unused(paints) == [3]


def test_t9_another_persona_does_not_age_the_lists_of_this_one(world: World):
    cat = world.save(CAT)
    world.talk([1, 2], persona="kaito")
    assert world.unused(cat) == [0]


@pytest.mark.parametrize("order", [["match", "talk", "save"], ["save", "talk", "match"], ["talk", "match", "save"]])
def test_d1_the_counter_at_the_end_of_a_day_does_not_depend_on_the_order_of_its_messages(
    world: World, order: list[str]
):
    known = {"cat": world.save(CAT), "tea": world.save(TEA)}
    world.talk([1])
    world.day(2)
    for what in order:
        if what == "save":
            known["new"] = world.save(SISTER)
        else:
            world.say("how is Mochi?" if what == "match" else "chess tonight?")
        world.later(minutes=1)
    assert world.unused(known["cat"], known["tea"], known["new"]) == [0, 2, 0]


@pytest.mark.parametrize("first", ["talk", "act"])
@pytest.mark.parametrize("act", ["edit", "duplicate", "unpin", "match"])
def test_d1_d11_d12_d3_an_edit_a_duplicate_an_unpin_and_a_match_use_up_the_tick_of_the_day(
    world: World, act: str, first: str
):
    cat = world.save(CAT)
    world.talk([1, 2])
    if act == "unpin":
        world.memory.pin(cat)
    world.day(3)
    acts = {
        "edit": lambda: world.memory.edit(cat, text="Juno's cat is called Mochi", actor="persona"),
        "duplicate": lambda: world.saving(CAT.upper()),
        "unpin": lambda: world.memory.unpin(cat),
        "match": lambda: world.say("how is Mochi?"),
    }
    both = [world.say, acts[act]]
    for step in both if first == "talk" else reversed(both):
        step()
    assert world.unused(cat) == [0]
    world.talk([4])
    assert world.unused(cat) == [1]


def test_d1_a_clock_that_went_back_never_ticks_a_day_again(world: World):
    cat = world.save(CAT)
    world.talk([1, 2, 3, 2, 1, 3])
    assert world.unused(cat) == [3]


def test_d1_the_day_is_the_utc_day(world: World):
    cat = world.save(CAT)
    world.day(1, hour=23)
    world.say()
    world.later(hours=1)
    world.say()
    assert world.unused(cat) == [2]


def test_d2_what_reaches_7_in_this_reply_is_still_on_this_desk_and_gone_from_the_next(world: World):
    cat = world.save(CAT)
    world.talk(range(1, 7))
    world.day(7)
    assert desk(world.say()) == [CAT]
    assert world.states(cat) == ["resting"]
    assert desk(world.say()) == []


def test_d3_pinned_memories_neither_tick_nor_rest_nor_take_one_of_the_3_places(world: World):
    pinned = world.save("Mochi sleeps on a drum")
    others = [world.save(text) for text in ("Mochi eats", "Mochi plays", "Mochi jumps")]
    world.memory.pin(pinned)
    world.talk(range(1, 9))
    assert world.unused(pinned) == [0]
    assert world.states(pinned, *others) == ["active", "resting", "resting", "resting"]
    answer = world.say("Mochi sleeps on a drum")
    assert pinned not in [c.memory for c in answer.search.candidates]
    assert len(matched(answer)) == 3


def test_d3_pinning_stops_the_counter_where_it_is_and_unpinning_starts_it_at_0(world: World):
    cat = world.save(CAT)
    world.talk(range(1, 4))
    world.memory.pin(cat)
    world.talk(range(4, 8))
    assert world.unused(cat) == [3]
    world.memory.unpin(cat)
    assert world.unused(cat) == [0]
    assert not world.get(cat).protected, "pinning does not protect"
    world.talk(range(7, 9))
    assert world.unused(cat) == [1], "unpinning used up the tick of day 7"


def test_d6_of_equally_good_matches_the_older_comes_first(world: World):
    texts = ["Mochi sleeps", "Sleeps Mochi", "mochi, sleeps!", "MOCHI... sleeps?"]
    for text in texts:
        world.save(text)
        world.later(minutes=1)
    for _ in range(2):
        answer = world.say("Mochi sleeps")
        assert [c.text for c in answer.search.candidates] == texts
        assert matched(answer) == texts[:3]
        world.project()


def test_t11_decay_off_in_the_environment_wins_over_the_tenants_own_setting(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    cat, tea = world.save(CAT), world.save(TEA)
    world.memory.pin(tea)
    world.talk(range(1, 9))
    world.memory.set_policy(decay_enabled=True, list_capacity=2)
    monkeypatch.setenv("MEMORY_DECAY_ENABLED", "false")
    world.reopen()
    assert world.memory.policy().decay_enabled is False
    assert world.states(cat) == ["active"]
    answer = world.talk(range(9, 12), "how is Mochi?")
    assert answer is not None
    assert desk(answer) == [TEA, CAT]
    assert (answer.search.status, answer.search.candidates) == ("off", [])
    monkeypatch.delenv("MEMORY_DECAY_ENABLED")
    world.reopen()
    assert (world.unused(cat), world.states(cat)) == ([8], ["resting"]), "counters are kept and hold again"


def test_t11_decay_off_by_policy_counts_everything_as_active_ticks_nothing_and_refuses_a_full_list(world: World):
    world.memory.set_policy(list_capacity=2)
    cat, tea = world.save(CAT), world.save(TEA)
    world.talk(range(1, 9))
    world.memory.set_policy(decay_enabled=False)
    assert world.states(cat, tea) == ["active", "active"]
    world.talk(range(9, 20), "how is Mochi?")
    turn = world.say(turn="full").turn
    for how in ({"turn": turn}, {}, {"actor": "person"}, {"actor": "person", "make_room": cat}):
        with pytest.raises(ListFull) as full:
            world.save(SISTER, **how)
        assert full.value.rule == "T14"
    world.memory.set_policy(decay_enabled=True)
    assert (world.unused(cat, tea), world.states(cat, tea)) == ([8, 8], ["resting", "resting"])
    assert recalled(world.say("how is Mochi?")) == [CAT]


def test_t11_without_an_embedding_model_everything_counts_as_active_and_nothing_is_evicted(world: World):
    world.memory.set_policy(list_capacity=2)
    cat, tea = world.save(CAT), world.save(TEA)
    world.talk(range(1, 9))
    assert world.states(cat, tea) == ["resting", "resting"]
    world.reopen(embedder="none")
    assert world.states(cat, tea) == ["active", "active"]
    answer = world.say("how is Mochi?", turn="none")
    assert desk(answer) == [CAT, TEA]
    assert answer.search.status == "off"
    for how in ({"turn": "none"}, {}, {"actor": "person", "make_room": cat}):
        with pytest.raises(ListFull):
            world.save(SISTER, **how)
    world.talk(range(9, 12))
    world.reopen()
    assert (world.unused(cat, tea), world.states(cat, tea)) == ([8, 8], ["resting", "resting"])


def test_d28_the_day_after_its_date_a_memory_is_neither_sent_nor_searched_nor_aged(world: World):
    until = (START + timedelta(days=2)).date()
    away = world.save("Juno is on holiday in Nara", until=until)
    world.talk([1])
    answer = world.talk([2], "how was Nara?")
    assert answer is not None
    assert matched(answer) == ["Juno is on holiday in Nara"]
    assert desk(answer) == ["Juno is on holiday in Nara"]
    answer = world.talk([3, 4], "how was Nara?")
    assert answer is not None
    assert (desk(answer), answer.search.candidates) == ([], [])
    assert "Nara" not in answer.prefix.text + answer.late.text
    assert (world.unused(away), world.states(away)) == ([0], ["expired"])
    world.memory.edit(away, until=(START + timedelta(days=9)).date(), actor="persona")
    assert world.states(away) == ["active"]
    world.talk([5])
    assert world.unused(away) == [1]


def test_d28_holds_for_pinned_memories_and_with_decay_off(world: World):
    pinned = world.save("Juno is on holiday in Nara", until=START.date())
    world.save("Aiko is on holiday in Porto", until=START.date())
    world.memory.pin(pinned)
    assert len(desk(world.say())) == 2
    world.day(1)
    assert desk(world.say()) == []
    world.memory.set_policy(decay_enabled=False)
    assert desk(world.say()) == []
    assert world.states(pinned) == ["expired"]


@pytest.mark.parametrize("message", ["", "  \n", "\u2003"])
def test_d30_a_message_without_text_is_not_searched_with_and_ticks_nothing(world: World, message: str):
    cat = world.save(CAT)
    world.day(1)
    answer = world.say(message)
    assert (answer.search.status, desk(answer)) == ("off", [CAT])
    assert world.unused(cat) == [0]
    assert len(world.fake.requests) == 1, "the save alone was embedded"


def test_d30_r17_learn_off_and_challenge_chats_tick_nothing(world: World):
    cat, paints = world.save(CAT), world.save("Juno paints rivers", scope="personal")
    world.talk([1], "how is Mochi?", memory="off")
    world.memory.set_persona("mira", learns=False)
    world.talk([2], "how is Mochi?")
    assert world.unused(cat, paints) == [0, 0]
    assert not world.events(e.ListSearched)


def test_d27_only_who_the_caller_names_takes_part(world: World):
    world.save("Juno paints rivers", scope="personal")
    world.save("Aiko paints boats", scope="personal", subject="aiko")
    answer = world.say("juno, who paints boats?", users=["aiko"])
    assert desk(answer) == ["Aiko paints boats"]
    assert [c.text for c in answer.search.candidates] == ["Aiko paints boats"]


def test_d26_a_reply_without_a_chat_belongs_to_the_chat_of_that_place_or_of_its_one_user(world: World):
    in_server = world.say(channel="garden").chat
    assert world.say(channel="garden", users=["aiko"]).chat == in_server
    assert world.say(channel="kitchen").chat != in_server
    alone = world.say(server=None, users=[USER]).chat
    assert world.say(server=None, users=[USER]).chat == alone
    assert world.say(server=None, users=["aiko"]).chat != alone
    assert world.say(server=None, persona="kaito").chat != alone
    assert len(world.events(e.ChatStarted)) == 5


def test_d5_a_model_whose_threshold_nobody_has_measured_is_no_search_and_ticks_nothing(database_url: str):
    with World(database_url, match_threshold=None) as world:
        cat = world.save(CAT)
        world.day(1)
        answer = world.say("how is Mochi?")
        assert (answer.search.status, desk(answer), world.unused(cat)) == ("unavailable", [CAT], [0])
        assert "calibrate" in (answer.search.reason or "")
        world.memory.set_policy(match_threshold=0.3)
        assert matched(world.say("how is Mochi?")) == [CAT]


def test_d5_the_threshold_is_the_lowest_score_that_counts(world: World):
    world.save(CAT)
    (found,) = world.say("how is Mochi?").search.candidates
    for threshold, expected in ((found.score, [CAT]), (found.score + 1e-6, [])):
        world.memory.set_policy(match_threshold=threshold)
        answer = world.say("how is Mochi?")
        assert (answer.search.threshold, matched(answer)) == (threshold, expected)


def test_t4_a_tick_is_one_event_and_rewrites_no_memory_however_many_there_are(world: World):
    for n in range(60):
        world.save(f"Fact number {n}", tags=["spring"] if n % 3 else [])
    world.say()
    world.project()
    before = versions_of_rows(world)
    for number, tags in ((1, []), (2, ["spring"]), (3, [])):
        world.day(number)
        assert world.wrote(lambda tags=tags: world.say(tags=tags)).count("ListSearched") == 1
        world.project()
    assert versions_of_rows(world) == before


def versions_of_rows(world: World) -> list[tuple[str, str]]:
    """Which version of each row of `memory` and `memory_use` is the present one."""
    with world.memory.engine.store.database.connection() as conn:
        found = conn.execute(
            "SELECT id::text, xmin::text FROM remembrancer.memory"
            " UNION ALL SELECT id::text, xmin::text FROM remembrancer.memory_use ORDER BY 1, 2"
        )
        return [(row[0], row[1]) for row in found]


def test_d28_d12_saying_it_again_with_a_new_date_extends_it(world: World):
    away = world.save("Juno is on holiday", until=START.date())
    world.day(2)
    assert world.states(away) == ["expired"]
    answer = world.saving("Juno is on holiday", until=(START + timedelta(days=5)).date())
    assert (answer.status, answer.memory.id, answer.memory.state) == ("duplicate", away, "active")
    assert desk(world.say()) == ["Juno is on holiday"]


def test_t17_one_embedding_request_a_reply(world: World):
    world.save(CAT)
    world.save("Juno paints rivers", scope="personal")
    before = len(world.fake.requests)
    world.say("how is Mochi?", users=["juno", "aiko"])
    assert [r.texts for r in world.fake.requests[before:]] == [["how is Mochi?"]]
