"""What may be used in a reply (T9, T10, T17, R10, R11, R17, D4, D25, D27, D28), by example and rule by rule."""

from __future__ import annotations

from datetime import date
from itertools import permutations

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.identity import ListKey
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.domain.visibility import Place, ages, is_private, is_visible, lists_in_play
from tests.domain.support import DAY, days_after
from tests.oracle.plain_visibility import Reply, World, lists, visible

SERVER = Place("tea house", "garden", ())
PRIVATE = Place(None, None, ())


def in_play(place: Place = SERVER, users: tuple[str, ...] = ("juno",), **settings: object) -> list[str]:
    """The lists of a reply of `mira`, as scope:subject."""
    have = {"persona": Persona(), "server": Server(), "people": {}} | settings
    return [f"{key.scope}:{key.subject}" for key in lists_in_play("mira", place, users, **have)]


JUNO = ["personal:juno", "global:juno"]


def test_the_server_s_list_and_of_each_participant_the_personal_and_the_global_one():  # T2, D27
    users = ("juno", "kai")
    wanted = ["server:tea house", "personal:juno", "personal:kai", "global:juno", "global:kai"]
    assert in_play(users=users) == wanted


def test_without_a_server_there_is_no_server_list():  # T2
    assert in_play(PRIVATE) == JUNO


def test_who_does_not_take_part_has_no_list_in_play():  # T9, D27
    """So their lists are not searched, and do not age."""
    assert "personal:kai" not in in_play(users=("juno",), people={"kai": Person()})


def test_without_users_only_the_server_s_list_is_in_play():  # D27
    assert in_play(users=()) == ["server:tea house"]


def test_lists_do_not_depend_on_the_channel_the_tags_or_the_chat():  # R10
    """What is learned in a fork, or in another room, is at once visible here."""
    other = SERVER._replace(channel="kitchen", tags=("x",))
    assert in_play(other) == in_play(SERVER)
    assert "chat" not in ListKey._fields


def test_in_a_group_the_lists_of_all_members_are_read_and_globals_once():  # R11
    members = {"otto": Persona(), "mira": Persona()}
    keys = lists_in_play(
        "mira", SERVER, ["juno"], persona=Persona(), server=Server(), people={}, members=members
    )  # fmt: skip
    assert keys == [
        ListKey("mira", "server", "tea house"), ListKey("otto", "server", "tea house"),
        ListKey("mira", "personal", "juno"), ListKey("otto", "personal", "juno"), ListKey("*", "global", "juno"),
    ]  # fmt: skip
    assert [key.persona for key in keys if ages(key, "mira")] == ["mira", "mira", "*"], "D4"


def test_the_order_in_which_users_are_named_changes_nothing():  # T17
    users = ("kai", "juno", "ana", "b\u00e9la")
    assert len({tuple(in_play(users=order)) for order in permutations(users)}) == 1


def test_a_user_named_twice_counts_once():  # D27
    assert in_play(users=("juno", "juno")) == in_play(users=("juno",))


def test_a_global_list_is_the_same_with_every_persona():  # SPEC 1
    keys = {
        key
        for persona in ("mira", "otto")
        for key in lists_in_play(persona, PRIVATE, ["juno"], persona=Persona(), server=Server(), people={})
        if key.scope == "global"
    }
    assert keys == {ListKey("*", "global", "juno")}


# -- privacy


@pytest.mark.parametrize(
    ("privacy", "place", "direct", "users", "used"),
    [
        ("everywhere", SERVER, False, ("juno", "kai"), True),
        ("everywhere", PRIVATE, False, ("juno",), True),
        ("private_chats_only", SERVER, False, ("juno",), False),
        ("private_chats_only", SERVER, True, ("juno",), True),
        ("private_chats_only", SERVER, True, ("juno", "kai"), False),
        ("private_chats_only", PRIVATE, False, ("juno",), True),
        ("private_chats_only", PRIVATE, False, ("juno", "juno"), True),
        ("private_chats_only", PRIVATE, False, ("juno", "kai"), False),
        ("nowhere", SERVER, True, ("juno",), False),
        ("nowhere", PRIVATE, False, ("juno",), False),
    ],
)
def test_the_owner_s_privacy_hides_their_lists(privacy, place, direct, users, used):  # T10
    found = in_play(place, users, server=Server(private=direct), people={"juno": Person(privacy)})
    assert [one in found for one in JUNO] == [used, used]
    if "kai" in users:
        assert "personal:kai" in found, "the others' lists stay"


def test_the_blocklist_hides_those_people_s_lists_in_that_server_only():  # T10
    server = Server(blocklist=("juno",))
    assert in_play(users=("juno", "kai"), server=server) == ["server:tea house", "personal:kai", "global:kai"]
    assert in_play(PRIVATE) == JUNO


def test_a_server_may_switch_personal_memories_off():  # T10
    assert in_play(users=("juno", "kai"), server=Server(personal_memories=False)) == ["server:tea house"]


def test_a_private_chat_is_one_person_alone():  # T10
    assert is_private(PRIVATE, ["juno"], Server())
    assert is_private(SERVER, ["juno"], Server(private=True))
    assert not is_private(SERVER, ["juno"], Server())
    assert not is_private(SERVER, ["juno", "kai"], Server(private=True))
    assert not is_private(PRIVATE, [], Server())


# -- the learn switch


def test_a_persona_that_does_not_learn_from_a_user_reads_neither_their_list_nor_their_globals():  # R17
    people = {"juno": Person(not_learning=("mira",))}
    assert in_play(users=("juno", "kai"), people=people) == ["server:tea house", "personal:kai", "global:kai"]
    assert in_play(people={"juno": Person(not_learning=("otto",))}) == ["server:tea house", *JUNO]


def test_a_persona_that_does_not_learn_in_a_server_does_not_read_its_list():  # R17
    assert in_play(server=Server(not_learning=("mira",))) == JUNO


@pytest.mark.parametrize("persona", [Persona(learns=False), Persona(deleted=True)])
def test_a_persona_that_is_off_or_deleted_reads_nothing(persona: Persona):  # R17, D25
    assert in_play(persona=persona) == []


# -- a memory of a list in play


def memory_visible(place: Place = SERVER, today: date = DAY, **limits: object) -> bool:
    have = {"tags": (), "channels": (), "until": None} | limits
    return is_visible(place=place, today=today, **have)


def test_a_memory_with_channels_is_visible_only_there():  # T10
    assert memory_visible(channels=("garden", "kitchen"))
    assert not memory_visible(channels=("kitchen",))
    assert not memory_visible(PRIVATE, channels=("garden",))


def test_a_memory_with_tags_is_visible_only_in_replies_that_carry_one_of_them():  # T10
    tagged = SERVER._replace(tags=("work", "play"))
    assert memory_visible(tagged, tags=("play", "sleep"))
    assert not memory_visible(tagged, tags=("sleep",))
    assert not memory_visible(tags=("play",))
    assert memory_visible(tagged), "a memory without tags is visible with any"


def test_with_both_tags_and_channels_both_must_fit():  # T10
    tagged = SERVER._replace(tags=("work",))
    assert memory_visible(tagged, tags=("work",), channels=("garden",))
    assert not memory_visible(tagged, tags=("work",), channels=("kitchen",))
    assert not memory_visible(tagged, tags=("play",), channels=("garden",))


def test_names_are_compared_exactly():  # T10, C22
    assert not memory_visible(channels=("Garden",))
    assert not memory_visible(SERVER._replace(tags=("caf\u00e9",)), tags=("cafe\u0301",))


@pytest.mark.parametrize(("today", "seen"), [(days_after(DAY, -1), True), (DAY, True), (days_after(DAY, 1), False)])
def test_a_memory_with_a_date_is_visible_on_that_day_and_not_from_the_next(today: date, seen: bool):  # D28
    assert memory_visible(until=DAY, today=today) is seen


# -- against the rules, one by one

NAMES = st.sampled_from(["juno", "kai", "ana"])
PERSONAS = st.sampled_from(["mira", "otto", "lou"])
PRIVACY = st.sampled_from(["everywhere", "private_chats_only", "nowhere"])
SOME = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True).map(tuple)

REPLIES = st.builds(
    Reply,
    persona=PERSONAS,
    users=st.lists(NAMES, max_size=4).map(tuple),
    server=st.none() | st.just("tea house"),
    channel=st.none() | st.sampled_from(["a", "b"]),
    tags=SOME,
    day=st.sampled_from([days_after(DAY, -1), DAY, days_after(DAY, 1)]),
)
WORLDS = st.builds(
    World,
    privacy=st.dictionaries(NAMES, PRIVACY),
    blocked=st.frozensets(NAMES),
    personal_memories=st.sampled_from([True, True, False]),
    direct_messages=st.booleans(),
    persona_learns=st.sampled_from([True, True, True, False]),
    persona_deleted=st.sampled_from([False, False, False, True]),
    server_not_learning=st.frozensets(PERSONAS),
    user_not_learning=st.dictionaries(NAMES, st.frozensets(PERSONAS)),
    members=st.frozensets(PERSONAS),
    members_off=st.frozensets(PERSONAS, max_size=1),
)


@for_all(REPLIES, WORLDS)
def test_the_lists_in_play_are_those_that_no_rule_hides(reply: Reply, world: World):  # T10, R11, R17, D4, D25, D27
    found = lists_in_play(
        reply.persona,
        Place(reply.server, reply.channel, reply.tags),
        reply.users,
        persona=Persona(learns=world.persona_learns, deleted=world.persona_deleted),
        server=Server(
            blocklist=tuple(world.blocked),
            personal_memories=world.personal_memories,
            private=world.direct_messages,
            not_learning=tuple(world.server_not_learning),
        ),
        people={
            user: Person(world.privacy.get(user, "everywhere"), tuple(world.user_not_learning.get(user, ())))
            for user in ("juno", "kai", "ana")
        },
        members={
            one: Persona(learns=one not in world.members_off or one > "n", deleted=one in world.members_off)
            for one in world.members
        },
    )
    assert set(found) == lists(reply, world)
    assert len(found) == len(set(found))


@for_all(REPLIES, SOME, SOME, st.none() | st.just(DAY))
def test_a_memory_is_visible_if_no_rule_hides_it(reply: Reply, tags, channels, until):  # T10, D28
    place = Place(reply.server, reply.channel, reply.tags)
    seen = is_visible(tags=tags, channels=channels, until=until, place=place, today=reply.day)
    assert seen == visible(reply, tags=tags, channels=channels, until=until)
