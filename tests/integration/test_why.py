"""Why a memory was forgotten, on the real store: one case for each verdict, and the numbers of that day (U1)."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound, Refused
from remembrancer.domain.eviction import first_in_line
from remembrancer.domain.identity import new_id
from remembrancer.services.answers_why import WhyAnswer
from remembrancer.services.deps import LIST
from remembrancer.services.store import Batch, Request
from tests.support.world import PERSONA, SERVER, USER, World

CAT, TEA, CHOIR = "Juno's cat is named Mochi", "Kai drinks green tea", "Aiko sings in a choir"


def why(world: World, q: UUID | str, **how: Any) -> WhyAnswer:
    """The answer, once the tables have caught up. Nothing is written for it."""
    world.project()
    answer: list[WhyAnswer] = []
    assert world.wrote(lambda: answer.append(world.memory.why(q, **how))) == []
    return answer[0]


def three(world: World) -> list[UUID]:
    """Three memories that lie so far apart in time that none is raised by its neighbour, in a list of three."""
    world.reopen(list_capacity=3, rest_after_days=2)
    saved = []
    for text in (CAT, TEA, CHOIR):
        saved.append(world.save(text))
        world.later(hours=3)
    return saved


def story(answer: WhyAnswer) -> list[str]:
    return [line.event for line in answer.story]


# -- finding ----------------------------------------------------------------------------------------------------------


def test_u1_a_memory_is_found_by_its_id_and_by_what_somebody_remembers_of_it(world: World):
    cat, tea = world.save(CAT), world.save(TEA)
    assert why(world, cat).found_by == "id"
    for q, wanted in (("Juno's cat", cat), ("the cat of Juno", cat), ("green tea", tea), (str(cat), cat)):
        assert why(world, q).memory.id == wanted, q
    assert why(world, "Juno's cat").found_by == "similarity and words"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Die Katze von Juno heißt Mochi", "Junos Katzen"),
        ("El gato de Juno se llama Mochi", "los gatos de Juno"),
        ("Кошку Юноны зовут Моти", "кошка Юноны"),
        ("ジュノの猫の名前はモチです", "ジュノの猫"),
        ("주노의 고양이 이름은 모찌입니다", "고양이 이름"),
        ("اسم قطة جونو موتشي", "قطة جونو"),
    ],
)
def test_u1_words_find_it_in_any_language_without_a_model(world: World, text: str, asked: str):
    memory = world.save(text)
    world.save(TEA)
    world.memory.delete(memory)
    world.lose_the_model()
    answer = why(world, asked)
    assert (answer.memory.id, answer.found_by) == (memory, "words")


def test_u1_a_model_that_fails_or_is_not_there_is_said_and_the_words_are_enough(world: World):
    cat = world.save(CAT)
    world.save(TEA)
    world.project()
    world.lose_the_model()
    failing = why(world, "Juno's cat")
    assert (failing.memory.id, failing.found_by) == (cat, "words")
    assert failing.note is not None
    assert "did not answer" in failing.note
    bare = world.open(embedder="none")
    answer = bare.why("Juno's cat")
    assert answer.memory.id == cat
    assert answer.note is not None
    assert "T11" in answer.note


def test_u1_what_no_table_has_read_yet_is_found_and_told_all_the_same(world: World):
    """The projector stands still from the beginning: nothing is in any table."""
    cat = world.save(CAT, turn="t1")
    world.memory.delete(cat)
    for q in (cat, "Juno's cat"):
        answer = world.memory.why(q)
        assert (answer.memory.id, answer.status) == (cat, "deleted")
        assert story(answer) == ["MemorySaved", "MemoryDeleted"]


def test_u1_near_misses_and_matches_that_no_table_has_read_yet_count(world: World):
    cat = world.save(CAT)
    world.save(TEA)
    world.project()
    world.later(days=1)
    world.say("what is for dinner tonight?")
    answer = world.say("how is Mochi, the cat of Juno?")
    told = world.memory.why(cat)
    assert (told.searches.matches, told.searches.near_misses) == (1, 1)
    assert told.searches.matched[0].score == answer.search.matches[0].score
    assert told.searches.matched[0].threshold == answer.search.threshold


def test_d31_a_text_never_known_is_said_to_be_so_and_near_ones_are_named(world: World):
    world.save(CAT)
    world.project()
    with pytest.raises(NotFound) as never:
        world.memory.why("purple submarines")
    assert never.value.rule == "D31"
    assert "was ever saved" in never.value.message
    assert CAT in str(never.value)
    assert [near["text"] for near in never.value.details["near"]] == [CAT]
    assert never.value.exit_code == 1


def test_u1_other_memories_that_may_be_meant_are_named(world: World):
    cat = world.save(CAT)
    other = world.save("Juno's cat hates rain", subject="elsewhere")
    nobody = world.save("Juno's cat is grey", persona="kaito")
    answer = why(world, "Juno's cat Mochi")
    assert answer.memory.id == cat
    assert {one.memory for one in answer.nearest} == {other, nobody}
    only = why(world, "Juno's cat", persona="kaito")
    assert (only.memory.id, only.nearest) == (nobody, [])
    with pytest.raises(NotFound):
        world.memory.why("Juno's cat", persona="kaitoo")


def test_c23_of_another_tenant_nothing_is_found_neither_by_text_nor_by_id(world: World):
    cat = world.save(CAT)
    world.project()
    other = world.open(tenant="other")
    said = []
    for memory in (cat, new_id(cat.bytes[0], uuid4().bytes)):
        with pytest.raises(NotFound) as missing:
            other.why(memory)
        said.append(str(missing.value).replace(str(memory), "…"))
    assert said[0] == said[1]
    with pytest.raises(NotFound) as unknown:
        other.why("Juno's cat")
    assert "Mochi" not in str(unknown.value) + str(unknown.value.details)


@pytest.mark.parametrize("q", ["", "  ", "a\x00b", "a\ud800b", "x" * 2_001, None, 5, b"cat", ["cat"]])
def test_what_cannot_mean_anything_is_refused(world: World, q: Any):
    with pytest.raises(InvalidInput):
        world.memory.why(q)


# -- the verdicts -----------------------------------------------------------------------------------------------------


def test_u1_the_story_of_mochi(world: World):
    """T1, T5, T6, T8: seven days without a match, the drawer, the recall."""
    world.say("my cat is called Mochi", turn="t0")
    cat = world.save(CAT, turn="t0")
    world.say()
    world.talk([*range(1, 7), 14])
    answer = why(world, "Juno's cat")
    assert (answer.status, answer.days.unused_days, answer.days.rested_on) == ("resting", 7, date(2026, 5, 18))
    assert (answer.days.counted, answer.days.without_search) == (7, 7)
    assert [one.unused_days for one in answer.days.counter] == [0, 1, 2, 3, 4, 5, 6, 7]
    (rest,) = [line for line in answer.story if line.event == "Rested"]
    assert rest.at.date() == date(2026, 5, 18)
    assert rest.turn is not None
    assert answer.bring_back == f"remembrancer edit {cat}"
    assert (answer.saved.turn, answer.saved.actor) == ("t0", "persona")
    assert answer.saved.chat == world.say("chess?", turn="t0b").chat

    world.day(16)
    world.say("how is Mochi, the cat of Juno?")
    back = why(world, "Juno's cat")
    assert (back.status, back.bring_back, back.days.unused_days) == ("on_desk", None, 0)
    assert back.searches.matched[0].recalled


def test_u1_deleted_and_by_whom(world: World):
    cat = world.save(CAT)
    tea = world.save(TEA)
    world.memory.delete(cat)
    world.memory.delete(tea, actor="persona", turn="t9")
    by_person, by_persona = why(world, "Juno's cat"), why(world, "green tea")
    assert (by_person.status, by_persona.status) == ("deleted", "deleted")
    assert "by a person" in by_person.verdict
    assert "D13" in by_person.verdict
    assert "by the persona" in by_persona.verdict
    assert "turn t9" in by_persona.verdict
    assert by_person.bring_back == f"remembrancer restore {cat}"
    world.memory.restore(cat)
    assert why(world, cat).status == "on_desk"


def test_u1_evicted_names_what_it_was_forgotten_for_and_who_was_next_in_line(world: World):
    """T12, D6. The next in line is the one that the next save really forgets."""
    first, second, third = three(world)
    world.day(1)
    world.say("Mochi, the cat of Juno")  # so it was matched, and those never matched go first
    world.talk([2, 3, 4])
    world.say("hello", turn="t1")
    new = world.saving("Juno moves to Porto", turn="t1")
    assert [f.memory.id for f in new.forgotten] == [second]
    answer = why(world, "green tea")
    assert answer.status == "evicted"
    assert answer.evicted is not None
    assert (answer.evicted.for_memory, answer.evicted.for_text) == (new.memory.id, "Juno moves to Porto")
    assert answer.evicted.reason == new.forgotten[0].reason
    assert answer.evicted.turn == "t1"
    assert answer.evicted.next_in_line is not None
    assert (answer.evicted.next_in_line.memory, answer.evicted.next_in_line.text) == (third, CHOIR)
    assert answer.bring_back == f"remembrancer restore {second}"

    again = world.saving("Kai has a loud keyboard", turn="t1")
    assert [f.memory.id for f in again.forgotten] == [third]
    after = why(world, third)
    assert after.evicted is not None
    assert after.evicted.next_in_line is not None
    assert after.evicted.next_in_line.memory == first
    assert "last matched 2026-05-05" in after.evicted.next_in_line.reason
    last = world.saving("Rui has a boat", turn="t1")
    assert [f.memory.id for f in last.forgotten] == [first]
    nobody = why(world, first).evicted
    assert nobody is not None
    assert (nobody.next_in_line, nobody.next_unknown) == (None, "no other memory could have been forgotten")


def test_u1_the_next_in_line_knows_that_an_undone_match_was_none(world: World):
    """D14: the search of a turn that was undone gave nobody a place further back."""
    first, second, third = three(world)
    world.day(1)
    world.say("Kai and green tea", turn="u")
    world.memory.undo_turn("u")
    world.day(2)
    world.say("a choir in which Aiko sings")
    world.talk([3, 4, 5])
    world.say("hello", turn="t1")
    new = world.saving("Juno moves to Porto", turn="t1")
    assert [f.memory.id for f in new.forgotten] == [first]
    evicted = why(world, first).evicted
    assert evicted is not None
    assert evicted.next_in_line is not None
    assert evicted.next_in_line.memory == second
    assert "never matched" in evicted.next_in_line.reason
    told = why(world, second).searches
    assert (told.matches, [m.undone for m in told.matched]) == (0, [True])
    assert world.get(third).last_matched_at is not None


@pytest.mark.parametrize("seed", range(2))
def test_u1_the_line_behind_every_eviction_is_the_one_that_a_fold_of_the_whole_stream_gives(world: World, seed: int):
    """Saves, matches, edits, pins, deletes, undos and restores at random in a small list: of each eviction the answer
    names whom the rule names in the list as all of its events before make it."""
    world.reopen(list_capacity=4, rest_after_days=1, embed_timeout=30)
    rng = Random(seed)
    words = ["cat", "tea", "choir", "boat", "drum", "lamp", "moss", "kite"]
    turn = ""
    for n in range(80):
        world.later(hours=rng.choice([1, 5, 13]))
        listed = [m.id for m in world.listed().memories]
        match rng.choice([*["say"] * 5, *["save"] * 6, "edit", "pin", "unpin", "delete", "delete", "undo", "restore"]):
            case "say":
                turn = world.say(" ".join(rng.sample(words, 2)), channel=rng.choice(["den", None])).turn
            case "save" if turn:
                with suppress(Refused):
                    world.save(f"{rng.choice(words)} {n}", turn=turn, channels=rng.choice([[], [], ["den"]]))
            case "edit" if listed:
                with suppress(Refused):
                    world.memory.edit(rng.choice(listed), text=f"{rng.choice(words)} {n}", actor="persona", turn=turn)
            case "pin" | "unpin" | "delete" as act if listed:
                with suppress(Refused):
                    getattr(world.memory, act)(rng.choice(listed))
            case "undo" if turn:
                world.memory.undo_turn(turn)
            case "restore":
                gone = [x.memory for x in world.events(e.MemoryEvicted)]
                with suppress(Refused, NotFound):
                    world.memory.restore(rng.choice(gone or [uuid4()]))
    world.project()
    engine = world.memory.engine
    evictions = [r for r in world.stored() if isinstance(r.event, e.MemoryEvicted)]
    assert evictions
    for r in evictions:
        home, today = engine.finder.home(r.event.memory), r.recorded_at.date()
        before = engine.store.load_at(r.stream, LIST, r.version - 1).state
        policy = engine.configure.policy()
        first = first_in_line(before.memories.values(), before.days, policy, today)
        assert first is not None
        assert first.memory.id == r.event.memory
        others = [m for m in before.memories.values() if m.id != r.event.memory]
        second = first_in_line(others, before.days, policy, today)
        days = engine.store.load(r.stream, LIST).state.days
        told = engine.biographer.lives.next_in_line(home, r, policy, days).line
        assert (told and (told.memory.id, told.reason)) == (second and (second.memory.id, second.reason))


def test_u1_the_next_in_line_is_not_guessed_where_the_record_does_not_give_the_line(world: World):
    """An eviction that an event of another hand claims: the fold names somebody else, so nobody is named."""
    cat, tea = world.save(CAT), world.save(TEA)
    home = world.memory.engine.finder.home(cat)
    event = e.MemoryEvicted(
        id=new_id(cat.bytes[0], uuid4().bytes), tenant="default", actor="persona", memory=cat, for_memory=tea,
        reason="somebody said so", **home.key._asdict(),
    )  # fmt: skip
    world.memory.engine.store.append(
        [Batch(home.stream, [event], None, (home.key.owner,))], request=Request("default", cat.bytes[0]), now=world.now
    )
    evicted = why(world, cat).evicted
    assert evicted is not None
    assert evicted.next_in_line is None
    assert "does not give the same line" in (evicted.next_unknown or "")


def test_r18_cleared_is_final_and_says_so_also_of_what_was_deleted_before(world: World):
    cat, tea = world.save(CAT), world.save(TEA)
    world.memory.delete(tea)
    world.memory.clear(PERSONA, scope="server", subject=SERVER)
    for q in ("Juno's cat", "green tea"):
        answer = why(world, q)
        assert (answer.status, answer.bring_back) == ("cleared", None)
        assert "R18" in answer.verdict
        assert "final" in answer.verdict
    with pytest.raises(NotFound):
        world.memory.restore(cat)


def test_r14_undone_names_the_turn_and_how_to_say_it_again(world: World):
    world.say("hello", turn="t1")
    cat = world.save(CAT, turn="t1")
    world.memory.undo_turn("t1")
    answer = why(world, "Juno's cat")
    assert (answer.memory.id, answer.status) == (cat, "undone")
    assert "turn t1" in answer.verdict
    assert answer.bring_back is not None
    assert answer.bring_back.startswith("remembrancer save mira")
    assert story(answer)[-1] == "TurnRolledBack"


def test_r14_what_was_deleted_and_then_undone_with_its_turn_is_undone(world: World):
    world.say("hello", turn="t1")
    cat = world.save(CAT, turn="t1")
    world.memory.delete(cat)
    world.memory.undo_turn("t1")
    assert why(world, cat).status == "undone"


def test_t11_with_decay_off_everything_is_active_and_nothing_is_said_of_resting(world: World):
    cat = world.save(CAT)
    world.talk(range(1, 9))
    assert why(world, cat).status == "resting"
    world.memory.set_policy(decay_enabled=False)
    answer = why(world, cat)
    assert answer.status == "on_desk"
    assert "rests" not in answer.verdict


def test_c10_edited_away_is_found_by_its_old_wording(world: World):
    cat = world.save("Juno lives in Lisbon")
    world.memory.edit(cat, text="Juno moved up north to Porto")
    answer = why(world, "lives in Lisbon")
    assert (answer.memory.id, answer.status) == (cat, "edited")
    assert answer.memory.wordings == ["Juno lives in Lisbon", "Juno moved up north to Porto"]
    assert "a person edited it" in answer.verdict
    assert "Porto" in answer.verdict
    assert answer.bring_back == f"remembrancer edit {cat} 'Juno lives in Lisbon'"
    (edit,) = [line for line in answer.story if line.event == "MemoryEdited"]
    assert (edit.before, edit.after) == ("Juno lives in Lisbon", "Juno moved up north to Porto")
    assert why(world, "up north to Porto").status == "on_desk"


def test_r12_squeezed_out_of_the_desk(world: World):
    world.reopen(desk_limit=1)
    cat = world.save(CAT)
    world.save(TEA)
    answer = why(world, cat)
    assert (answer.status, answer.bring_back) == ("no_room", f"remembrancer pin {cat}")
    assert "R12" in answer.verdict


def test_d28_expired(world: World):
    cat = world.save(CAT, until="2026-05-06")
    world.day(4)
    answer = why(world, cat)
    assert (answer.status, answer.bring_back) == ("expired", f"remembrancer edit {cat} --until none")
    assert "2026-05-06" in answer.verdict


def test_t10_hidden_by_tags_channels_privacy_blocklist_and_learn_switch(world: World):
    tagged = world.save(CAT, tags=["cats"], channels=["den"])
    answer = why(world, tagged)
    assert (answer.status, answer.bring_back) == ("hidden", f"remembrancer edit {tagged} --no-channels --no-tags")
    assert len(answer.hidden_by) == 2
    world.memory.edit(tagged, tags=[], channels=[])
    assert why(world, tagged).status == "on_desk"

    mine = world.save(TEA, scope="personal")
    assert why(world, mine).status == "on_desk"
    world.memory.set_server(SERVER, blocklist=[USER])
    assert "blocklist" in " ".join(why(world, mine).hidden_by)
    world.memory.set_person(USER, privacy="private_chats_only")
    assert "private chats" in " ".join(why(world, mine).hidden_by)
    world.memory.set_person(USER, privacy="nowhere")
    answer = why(world, mine)
    assert (answer.status, answer.bring_back) == ("hidden", f"remembrancer person set {USER} --privacy everywhere")
    world.memory.set_person(USER, privacy="everywhere", not_learning=[PERSONA])
    assert "R17" in why(world, mine).verdict
    world.memory.set_person(USER, not_learning=[])
    world.memory.set_persona(PERSONA, learns=False)
    assert why(world, mine).bring_back == f"remembrancer persona set {PERSONA} --learns"


def test_t10_days_on_which_it_was_hidden_are_counted_apart(world: World):
    world.save(TEA)
    cat = world.save(CAT, channels=["den"])
    world.talk([1, 2], channel="hall")
    world.talk([3, 4, 5], channel="den")
    days = why(world, cat).days
    assert (days.hidden, days.counted, days.unused_days) == (2, 3, 3)
    assert [one.how for one in days.counter] == ["used", "hidden", "hidden", "counted", "counted", "counted"]


def test_r15_pinned(world: World):
    cat = world.save(CAT, actor="person")
    world.memory.pin(cat)
    assert (why(world, cat).status, why(world, cat).bring_back) == ("pinned", None)


def test_d24_an_erased_memory_has_a_life_without_texts_and_is_not_found_by_its_words(world: World):
    mine = world.save(TEA, scope="personal")
    world.memory.edit(mine, text="Kai drinks black coffee")
    world.memory.erase(USER)
    answer = why(world, mine)
    assert (answer.status, answer.bring_back) == ("erased", None)
    assert story(answer) == ["MemorySaved", "MemoryEdited", "SubjectErased"]
    assert "tea" not in answer.model_dump_json()
    assert "[erased]" in answer.memory.text
    with pytest.raises(NotFound):
        world.memory.why("green tea")


def test_a_memory_that_the_list_says_again_is_not_missing(world: World):
    cat = world.save(CAT)
    world.memory.delete(cat, actor="persona")
    again = world.save(CAT)
    answer = why(world, cat)
    assert (answer.status, answer.bring_back) == ("deleted", None)
    assert str(again) in answer.verdict


# -- searches ---------------------------------------------------------------------------------------------------------


def test_u1_near_misses_and_matches_have_the_numbers_that_the_replies_reported(world: World):
    cat = world.save(CAT)
    world.later(hours=3)
    world.save(TEA)
    reported: dict[bool, list[tuple[Any, ...]]] = {True: [], False: []}
    said = ["what is for tea?", "how is Mochi, the cat of Juno?", "a cat in the rain", "green tea for Kai", "hi"]
    for n, message in enumerate(said):
        world.day(n + 1)
        answer = world.say(message, turn=f"t{n}")
        for c in answer.search.candidates:
            if c.memory == cat:
                numbers = (f"t{n}", answer.chat, c.rank, c.score, c.similarity, c.words, answer.search.threshold)
                reported[c.matched].append(numbers)
    searches = why(world, cat, limit=100).searches
    told = {
        kind: [(s.turn, s.chat, s.rank, s.score, s.similarity, s.words, s.threshold) for s in seen]
        for kind, seen in ((True, searches.matched), (False, searches.nearly))
    }
    assert told == reported
    assert reported[True]
    assert len(reported[False]) >= 3
    assert (searches.matches, searches.near_misses) == (len(reported[True]), len(reported[False]))
    (closest,) = why(world, cat, limit=1).searches.nearly
    assert closest.score == max(numbers[3] for numbers in reported[False])


def test_u1_a_threshold_of_that_day_stays_the_threshold_of_that_day(world: World):
    cat = world.save(CAT)
    world.day(1)
    world.say("what is for dinner?")
    world.reopen(match_threshold=0.9)
    world.day(2)
    world.say("what is for lunch?")
    assert [s.threshold for s in why(world, cat).searches.nearly] == [0.3, 0.9]


def test_u1_it_rested_by_the_policy_of_that_day(world: World):
    world.reopen(rest_after_days=2)
    cat = world.save(CAT)
    world.talk([1, 2])
    world.day(3)
    world.memory.set_policy(rest_after_days=20)
    world.say()
    answer = why(world, cat)
    assert answer.status == "on_desk"
    (rest,) = [line for line in answer.story if line.event == "Rested"]
    assert rest.at.date() == date(2026, 5, 6)


def test_c30_each_line_of_a_life_has_time_with_zone_actor_turn_and_the_text_before_and_after(world: World):
    cat = world.save(CAT, turn="t1")
    world.say("how is Mochi, the cat of Juno?", turn="t2")
    world.memory.edit(cat, text="Juno's cat is called Mochi", actor="persona", turn="t3")
    world.memory.delete(cat)
    lines = why(world, cat).story
    assert [(x.event, x.actor, x.turn, x.before, x.after) for x in lines] == [
        ("MemorySaved", "persona", "t1", None, CAT),
        ("MemoriesMatched", "persona", "t2", CAT, CAT),
        ("MemoryEdited", "persona", "t3", CAT, "Juno's cat is called Mochi"),
        ("MemoryDeleted", "person", None, "Juno's cat is called Mochi", None),
    ]
    assert all(x.at.utcoffset() is not None for x in lines)


def test_an_edit_that_an_undo_took_back_reads_as_it_was(world: World):
    cat = world.save(CAT)
    world.say("hello", turn="t3")
    world.memory.edit(cat, text="Juno's cat is called Bruno", actor="persona", turn="t3")
    world.memory.undo_turn("t3")
    answer = why(world, cat)
    assert answer.memory.text == CAT
    (back,) = [line for line in answer.story if "worded as before" in line.sentence]
    assert (back.before, back.after) == ("Juno's cat is called Bruno", CAT)
    asked = why(world, "called Bruno")
    assert asked.status == "edited"
    assert "the turn t3 that worded it so was undone" in asked.verdict


# -- history ----------------------------------------------------------------------------------------------------------


def test_u1_history_is_filtered_by_kind_and_time_and_paged_over_persona_list_memory_and_turn(world: World):
    cat = world.save(CAT, turn="t1")
    world.say("how is Mochi, the cat of Juno?", turn="t2")
    mine = world.save(TEA, scope="personal")
    world.day(1)
    world.memory.delete(cat)
    world.memory.delete(mine)
    world.project()

    def kinds(**how: Any) -> list[str]:
        return [x.event for x in world.memory.history(**how).entries]

    assert kinds(persona=PERSONA, kinds=["MemorySaved"]) == ["MemorySaved"] * 2
    assert kinds(persona=PERSONA, kinds=["memorydeleted", "MEMORYSAVED"], since=world.now) == ["MemoryDeleted"] * 2
    assert kinds(persona=PERSONA, scope="server", subject=SERVER, kinds=["MemoryDeleted"]) == ["MemoryDeleted"]
    assert kinds(memory=cat, kinds=["MemoriesMatched"]) == ["MemoriesMatched"]
    assert kinds(turn="t2", kinds=["ReplySearched"]) == ["ReplySearched"]
    assert kinds(turn="t2", kinds=["MemoryPinned"]) == []
    first = world.memory.history(persona=PERSONA, kinds=["MemorySaved", "MemoryDeleted"], limit=3)
    rest = world.memory.history(persona=PERSONA, kinds=["MemorySaved", "MemoryDeleted"], after=first.next)
    assert [x.event for x in (*first.entries, *rest.entries)] == ["MemorySaved", "MemorySaved", *["MemoryDeleted"] * 2]
    with pytest.raises(InvalidInput) as unknown:
        world.memory.history(persona=PERSONA, kinds=["MemoryLost"])
    assert "MemoryEvicted" in str(unknown.value)
    with pytest.raises(InvalidInput):
        world.memory.history(persona=PERSONA, kinds="MemorySaved")


def test_a_memory_of_another_persona_is_not_found_for_this_one(world: World):
    """D31, C7: also by its id; globals are everybody's."""
    cat = world.save("Juno's cat is named Mochi")
    everywhere = world.save("Juno is left-handed", scope="global", actor="person")
    world.save("Kaito paints", persona="kaito")
    world.project()
    assert world.memory.why(cat, persona="mira").memory.id == cat
    assert world.memory.why(everywhere, persona="kaito").memory.id == everywhere
    with pytest.raises(NotFound, match="never had"):
        world.memory.why(cat, persona="kaito")
    with pytest.raises(NotFound, match="no persona"):
        world.memory.why(cat, persona="kait")
