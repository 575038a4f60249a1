"""Looking back at a moment, from the events alone (U1, C23, D24, D31)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from psycopg import sql

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound, RemembrancerError, Unavailable
from remembrancer.services import candidates
from remembrancer.services.answers import Position, ReplyAnswer
from remembrancer.services.answers_moment import MomentAnswer
from tests.support.world import PERSONA, SERVER, START, USER, World

TABLES = ("list", "list_day", "memory", "memory_use", "archive", "history")


def forget_the_read_model(world: World) -> None:
    """As before the first event was projected: every row is gone."""
    with world.memory.engine.store.database.connection() as conn:
        for table in TABLES:
            conn.execute(sql.SQL("TRUNCATE remembrancer.{}").format(sql.Identifier(table)))
        conn.execute("UPDATE remembrancer.checkpoint SET position = 0")


def assert_the_same(seen: MomentAnswer, sent: ReplyAnswer) -> None:
    """Both blocks byte for byte, and all that the reply's answer said of its memories and its search."""
    assert seen.prefix is not None
    assert seen.prefix.text == sent.prefix.text
    assert seen.prefix.fingerprint == sent.prefix.fingerprint
    assert seen.late is not None
    assert seen.late.text == sent.late.text
    assert seen.prefix == sent.prefix
    assert seen.late == sent.late
    assert seen.search == sent.search
    assert (seen.turn, seen.attempt, seen.chat) == (sent.turn, sent.attempt, sent.chat)
    assert seen.exact, seen.notes


def learned(answer: MomentAnswer) -> set[str]:
    return {m.text for one in answer.lists for m in one.memories}


# -- a turn -----------------------------------------------------------------------------------------------------------


def test_u1_a_turn_shows_the_very_bytes_that_were_sent_whatever_happened_to_its_memories_since(world: World):
    cat = world.save("Juno's cat is named Mochi")
    tea = world.save("The tea house opens at nine")
    drum = world.save("Juno plays the drum", scope="personal")
    world.memory.pin(tea)
    world.memory.set_persona(PERSONA, instructions="You are Mira.")
    world.day(3)
    sent = world.say("how is Mochi the cat?", tags=["x"], channel="garden")
    world.memory.edit(cat, text="Juno's cat is named Bean")
    world.memory.delete(drum)
    world.memory.unpin(tea)
    world.memory.set_persona(PERSONA, instructions="You are somebody else.", learns=False)
    world.memory.set_server(SERVER, blocklist=[USER])
    world.memory.set_policy(recent_days=1, desk_limit=0, rest_after_days=1)
    world.memory.clear(PERSONA, scope="server", subject=SERVER)
    assert_the_same(world.memory.at(turn=sent.turn), sent)
    world.project()
    seen = world.memory.at(turn=sent.turn)
    assert_the_same(seen, sent)
    assert learned(seen) == {"Juno's cat is named Mochi", "The tea house opens at nine", "Juno plays the drum"}
    assert (seen.policy.recent_days, seen.policy.desk_limit) == (7, 100)
    assert (seen.settings.persona.instructions, seen.settings.persona.learns) == ("You are Mira.", True)
    assert seen.settings.server is not None
    assert seen.settings.server.blocklist == ()
    assert (seen.users, seen.server, seen.channel, seen.tags) == ((USER,), SERVER, "garden", ("x",))
    forget_the_read_model(world)
    assert_the_same(world.memory.at(turn=sent.turn), sent)


def test_u1_each_attempt_of_a_turn_is_seen_without_what_the_attempts_before_it_did(world: World):
    """C1, D19: of the last one, unless another is named."""
    world.save("Juno's cat is named Mochi")
    sent = []
    for n in range(4):
        sent.append(world.say("how is Mochi, Juno's cat?", turn="t"))
        world.save(f"dragon number {n} is red", turn="t")
        world.save(f"Juno likes number {n}", scope="personal", turn="t")
    world.memory.undo_turn("t")
    for attempt, one in enumerate(sent, start=1):
        seen = world.memory.at(turn="t", attempt=attempt)
        assert_the_same(seen, one)
        assert "dragon" not in " ".join(learned(seen))
        assert seen.attempts == 4
    assert_the_same(world.memory.at(turn="t"), sent[-1])
    with pytest.raises(NotFound, match="no attempt 5"):
        world.memory.at(turn="t", attempt=5)


def old_form(world: World, turn: str, attempt: int) -> None:
    """As it was recorded before replies said when they were asked: without the moment, and with the versions of before
    the old attempt was taken back."""
    (r,) = [r for r in world.stored() if isinstance(r.event, e.ReplySearched) and r.event.turn == turn
            and r.event.attempt == attempt]  # fmt: skip
    assert isinstance(r.event, e.ReplySearched)
    back = {s.stream: s.version for s in world.stored() if isinstance(s.event, e.TurnRolledBack)
            and s.event.turn == turn and s.recorded_at == r.recorded_at}  # fmt: skip
    lists = [x.model_copy(update={"version": x.version - (x.stream in back)}) for x in r.event.lists]
    assert not back or any(x.version == back[x.stream] for x in r.event.lists), "recorded with it taken back"
    old = r.event.model_copy(update={"lists": tuple(lists), "asked_at": None})
    from remembrancer.services.store import mapper

    with world.memory.engine.store.database.connection() as conn:
        conn.execute("UPDATE remembrancer.event SET state = %s WHERE shard = %s AND position = %s",
                     (mapper.encode(old, None), r.shard, r.position))  # fmt: skip


def test_a_reply_that_recorded_no_moment_and_the_versions_before_its_undo_is_seen_as_it_was(world: World):
    world.save("Juno's cat is named Mochi")
    sent = []
    for n in range(3):
        world.later(hours=1)
        sent.append(world.say("how is Mochi?", turn="t"))
        world.save(f"dragon number {n} is red", turn="t")
    world.later(hours=1)
    world.memory.undo_turn("t")
    for attempt in (1, 2, 3):
        old_form(world, "t", attempt)
    for attempt, one in enumerate(sent, start=1):
        assert_the_same(world.memory.at(turn="t", attempt=attempt), one)


def test_what_was_recent_is_told_by_the_moment_of_asking_also_where_the_clock_went_back(world: World):
    """R12: what is recorded stands at the shard's last moment, which is later."""
    world.save("Juno's cat is named Mochi")
    world.day(7, hour=13)
    world.save("Juno plays chess")
    world.day(7, hour=11)
    sent = world.say()
    assert "Recent\nNew or changed in the last 7 days: 1, 2" in sent.late.text
    seen = world.memory.at(turn=sent.turn)
    assert_the_same(seen, sent)
    assert seen.at == world.now


def test_a_memory_edited_between_desk_and_search_is_seen_as_the_late_block_had_it(world: World, monkeypatch: Any):
    cat = world.save("Juno's cat is named Mochi")
    world.memory.set_policy(rest_after_days=1)
    world.project()
    world.talk([1])
    world.project()
    find = candidates.find

    def slowly(*asked: Any) -> Any:
        if not world.get(cat).text.endswith("Bean"):
            world.memory.edit(cat, text="Juno's cat is named Mochi or Bean")
            world.project()
        return find(*asked)

    monkeypatch.setattr(candidates, "find", slowly)
    world.day(2)
    sent = world.say("Juno's cat is named Mochi")
    assert [m.text for m in sent.late.recalled] == ["Juno's cat is named Mochi or Bean"]
    seen = world.memory.at(turn=sent.turn)
    assert_the_same(seen, sent)
    assert learned(seen) == {"Juno's cat is named Mochi"}


def test_a_turn_without_memory_or_without_a_working_search_is_seen_as_well(world: World):
    world.save("Juno's cat is named Mochi")
    off = world.say(memory="off")
    world.lose_the_model()
    away = world.say("Mochi?")
    for sent in (off, away):
        assert_the_same(world.memory.at(turn=sent.turn), sent)
    assert world.memory.at(turn=off.turn).lists == []


def test_two_processes_with_policies_of_their_own_are_each_seen_by_their_own(world: World):
    """SPEC 6: a reply records the version of the policy that it went by, not of the one recorded last."""
    world.save("Juno's cat is named Mochi")
    other = world.open(desk_limit=0)
    sent = []
    for memory in (world.memory, other, world.memory, other):
        world.later(minutes=1)
        sent.append(memory.reply(PERSONA, message="hello", users=[USER], server=SERVER))
    assert [len(one.prefix.memories) for one in sent] == [1, 0, 1, 0]
    for one in sent:
        assert_the_same(world.memory.at(turn=one.turn), one)
        assert_the_same(other.at(turn=one.turn), one)
    assert len(world.events(e.PolicyChanged)) == 2


def test_a_layout_of_a_newer_version_is_not_guessed_at(world: World):
    sent = world.say()
    with world.memory.engine.store.database.connection() as conn:
        conn.execute("UPDATE remembrancer.event SET state = convert_to(replace(convert_from(state, 'UTF8'),"
                     " '\"renderer\":2', '\"renderer\":99'), 'UTF8') WHERE type = 'ReplySearched'")  # fmt: skip
    with pytest.raises(Unavailable, match="layout 99"):
        world.memory.at(turn=sent.turn)


def test_d31_a_turn_that_never_was_names_near_ones(world: World):
    world.say(turn="monday-1")
    world.say(turn="monday-2")
    for project in (lambda: None, world.project):
        project()
        with pytest.raises(NotFound, match="Did you mean monday-2 or monday-1") as error:
            world.memory.at(turn="monday-22")
        assert error.value.details["near"] == ["monday-2", "monday-1"]
    with pytest.raises(NotFound, match="There is no turn"):
        world.memory.at(turn="something else")


# -- erased -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projected", [False, True])
def test_d24_what_was_erased_reads_erased_and_the_answer_says_that_it_is_not_exact(world: World, projected: bool):
    world.save("Juno's cat is named Mochi", scope="personal")
    world.save("The tea house opens at nine")
    sent = world.say()
    world.later(hours=1)
    if projected:
        world.project()
    world.memory.erase(USER)
    for seen in (
        world.memory.at(turn=sent.turn),
        world.memory.at(time=world.now - timedelta(minutes=30), persona=PERSONA, users=[USER], server=SERVER),
    ):
        assert not seen.exact
        assert seen.notes == ["The list of mira and user juno was erased since: its texts read [erased]."]
        assert [one.erased for one in seen.lists if one.scope == "personal"] == [True]
        assert learned(seen) == {"[erased]", "The tea house opens at nine"}
        assert seen.prefix is not None
        assert "[erased]" in seen.prefix.text
        assert seen.prefix.fingerprint != sent.prefix.fingerprint
        assert "Mochi" not in seen.model_dump_json()


def test_d24_a_person_who_comes_again_is_seen_from_then_on(world: World):
    world.save("Juno's cat is named Mochi", scope="personal")
    world.say()
    world.memory.erase(USER)
    world.later(hours=1)
    world.save("Juno's dog is named Bean", scope="personal")
    assert_the_same(world.memory.at(turn=(sent := world.say()).turn), sent)
    assert "Bean" in sent.prefix.text


def test_a_memory_that_reads_erased_by_itself_is_exact(world: World):
    world.save("[erased]")
    sent = world.say()
    assert_the_same(world.memory.at(turn=sent.turn), sent)


# -- a time -----------------------------------------------------------------------------------------------------------


def test_u1_a_time_shows_the_lists_and_the_prompt_that_a_reply_would_have_had(world: World):
    cat = world.save("Juno's cat is named Mochi")
    world.save("Juno plays the drum", scope="personal")
    world.save("Juno is left-handed", scope="global", actor="person")
    world.save("Kai heals", scope="personal", subject="kai")
    world.save("only in spring", tags=["spring"])
    world.day(1)
    sent = world.say()
    then = world.now
    world.day(2)
    world.memory.delete(cat)
    world.memory.set_policy(desk_limit=1)
    here = {"persona": PERSONA, "users": [USER], "server": SERVER}
    seen = world.memory.at(time=then, **here)
    assert seen.prefix is not None
    assert seen.prefix.text == sent.prefix.text
    held = {"Juno's cat is named Mochi", "Juno plays the drum", "Juno is left-handed", "only in spring"}
    assert learned(seen) == held
    assert [len(one.hidden) for one in seen.lists] == [1, 0, 0]
    assert seen.policy.desk_limit == 100
    assert seen.turn is None
    assert seen.before is not None
    assert (seen.before.turn, seen.after) == (sent.turn, None)
    spring = world.memory.at(time=then, tags=["spring"], **here)
    assert spring.prefix is not None
    assert "only in spring" in spring.prefix.text

    anywhere = world.memory.at(time=then, persona=PERSONA)
    assert learned(anywhere) == {*held, "Kai heals"}
    assert anywhere.prefix is None

    now = world.memory.at(time=world.now, **here)
    assert "Juno's cat is named Mochi" not in learned(now)
    assert now.prefix is not None
    assert now.prefix.text == world.say().prefix.text


def test_a_time_is_read_in_its_zone_in_utc_where_it_names_none_and_a_date_is_its_beginning(world: World):
    world.save("Juno's cat is named Mochi")
    noon = START.replace(hour=12, minute=30)
    same = ["2026-05-04T12:30", "2026-05-04 12:30", "2026-05-04T14:30+02:00", "2026-05-04T12:30:00Z", noon]
    for time in same:
        assert world.memory.at(time=START, persona=PERSONA).at == START
        world.now = START + timedelta(hours=2)
        seen = world.memory.at(time=time, persona=PERSONA)
        assert seen.at == noon
        assert learned(seen) == {"Juno's cat is named Mochi"}
    for time in ("2026-05-04", date(2026, 5, 4)):
        seen = world.memory.at(time=time, persona=PERSONA)
        assert seen.at == datetime(2026, 5, 4, tzinfo=UTC)
        assert seen.lists == []


def test_before_anything_happened_there_was_nothing(world: World):
    world.save("Juno's cat is named Mochi")
    world.later(hours=1)
    sent = world.say()
    here = {"persona": PERSONA, "users": [USER], "server": SERVER}
    seen = world.memory.at(time="1999-12-31", **here)
    assert learned(seen) == set()
    assert [one.version for one in seen.lists] == [0, 0, 0]
    assert seen.prefix is not None
    assert seen.prefix.text == ""
    assert seen.before is None
    assert seen.after is not None
    assert seen.after.turn == sent.turn


def test_a_time_to_come_is_refused_but_not_one_that_a_clock_gone_back_has_recorded(world: World):
    world.save("Juno's cat is named Mochi")
    with pytest.raises(InvalidInput, match="still to come"):
        world.memory.at(time=world.now + timedelta(days=1), persona=PERSONA)
    world.later(hours=5)
    world.save("Juno plays chess")
    late = world.now - timedelta(minutes=1)
    world.later(hours=-5)
    assert learned(world.memory.at(time=late, persona=PERSONA)) == {"Juno's cat is named Mochi"}


def test_the_settings_of_then_decide_which_lists_were_in_play(world: World):
    """T10, R17."""
    world.save("Juno plays the drum", scope="personal")
    world.later(hours=1)
    open_then = world.now
    world.later(hours=1)
    world.memory.set_person(USER, privacy="nowhere")
    world.later(hours=1)
    here = {"persona": PERSONA, "users": [USER], "server": SERVER}
    assert [one.scope for one in world.memory.at(time=open_then, **here).lists] == ["server", "personal", "global"]
    shut = world.memory.at(time=world.now, **here)
    assert [one.scope for one in shut.lists] == ["server"]
    assert [one.privacy for one in shut.settings.people] == ["nowhere"]


# -- a position -------------------------------------------------------------------------------------------------------


def test_u1_a_position_is_the_reply_recorded_there_or_the_moment_after_that_event(world: World):
    first = world.saving("Juno's cat is named Mochi").positions[0]
    world.now -= timedelta(seconds=1)
    second = world.saving("Juno plays chess").positions[0]
    sent = world.say()
    assert learned(world.memory.at(position=first)) == {"Juno's cat is named Mochi"}
    after = world.memory.at(position=f"{second.shard}:{second.position}")
    assert learned(after) == {"Juno's cat is named Mochi", "Juno plays chess"}
    assert (after.server, after.users, after.what) == (SERVER, (), "position")
    (reply,) = [r for r in world.stored() if isinstance(r.event, e.ReplySearched)]
    seen = world.memory.at(position=Position(shard=reply.shard, position=reply.position))
    assert_the_same(seen, sent)
    assert seen.what == "position"


def test_a_position_of_a_list_of_every_persona_needs_one(world: World):
    where = world.saving("Juno is left-handed", scope="global", actor="person").positions[0]
    with pytest.raises(InvalidInput, match="Whose memories"):
        world.memory.at(position=where)
    world.say()
    assert learned(world.memory.at(position=where, persona=PERSONA)) == {"Juno is left-handed"}


# -- tenants, and what is no moment -----------------------------------------------------------------------------------


def test_c23_another_tenants_turn_position_and_persona_are_not_found_like_any_that_never_was(world: World):
    sent = world.say(turn="t1")
    where = world.saving("Juno's cat is named Mochi").positions[0]
    world.project()
    other = world.open(tenant="other")
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"turn": sent.turn}, {"turn": "t9"}),
        ({"turn": sent.turn, "attempt": 7}, {"turn": "t9", "attempt": 7}),
        ({"position": where}, {"position": Position(shard=where.shard, position=999)}),
        ({"time": world.now, "persona": PERSONA}, {"time": world.now, "persona": "nobody"}),
        ({"time": world.now, "persona": PERSONA, "server": SERVER}, {"time": world.now, "persona": "nobody"}),
    ]
    for theirs, never in pairs:
        said = []
        for which in (theirs, never):
            with pytest.raises(NotFound) as error:
                other.at(**which)
            text = str(error.value)
            for name in (sent.turn, "t9", PERSONA, "nobody", f":{where.position}", ":999"):
                text = text.replace(name, "…")
            said.append((text, error.value.details.get("near")))
        assert said[0] == said[1]


@pytest.mark.parametrize(
    "which",
    [
        {},
        {"turn": "t", "time": "2026-05-04"},
        {"turn": ""},
        {"turn": "a\x00b"},
        {"turn": "\ud800"},
        {"turn": "x" * 301},
        {"turn": 7},
        {"turn": "t", "attempt": 0},
        {"turn": "t", "attempt": True},
        {"turn": "t", "attempt": "1"},
        {"turn": "t", "attempt": 2**40},
        {"turn": "t", "persona": PERSONA},
        {"turn": "t", "server": SERVER},
        {"time": "2026-05-04"},
        {"time": "2026-05-04", "persona": "*"},
        {"time": "2026-05-04", "persona": PERSONA, "attempt": 1},
        {"time": "2026-05-04", "persona": PERSONA, "channel": "c"},
        {"time": "2026-05-04", "persona": PERSONA, "users": "juno"},
        {"time": "2026-05-04", "persona": PERSONA, "users": [""]},
        {"time": "2026-13-04", "persona": PERSONA},
        {"time": "20260504", "persona": PERSONA},
        {"time": "yesterday", "persona": PERSONA},
        {"time": "0001-01-01T00:00+23:00", "persona": PERSONA},
        {"time": datetime(2026, 5, 4), "persona": PERSONA},  # noqa: DTZ001
        {"time": 7, "persona": PERSONA},
        {"position": "256:1"},
        {"position": "-1:1"},
        {"position": "1"},
        {"position": "1:99999999999999999999"},
        {"position": 7},
        {"position": Position(shard=3, position=-1)},
    ],
)
def test_what_is_no_moment_is_refused_with_what_to_do(world: World, which: dict[str, Any]):
    with pytest.raises(InvalidInput) as error:
        world.memory.at(**which)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("spec", [None, "t1", 7, {"turn": "t", "nonsense": 1}, {}])
def test_what_is_no_moment_is_no_side_of_a_diff(world: World, spec: Any):
    sent = world.say()
    for sides in ((spec, {"turn": sent.turn}), ({"turn": sent.turn}, spec)):
        with pytest.raises(RemembrancerError):
            world.memory.diff(*sides)
