"""Names, streams and ids: what is kept apart, what is one, what is refused (SPEC 1, R10, C22)."""

from __future__ import annotations

from itertools import combinations, product
from uuid import UUID

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import (
    EVERY_PERSONA,
    MAX_KEY,
    SHARDS,
    ListKey,
    Subject,
    SubjectKind,
    chat_stream,
    check_key,
    list_key,
    list_stream,
    new_id,
    person_stream,
    persona_stream,
    server_stream,
    shard_of,
    shard_of_id,
    tenant_stream,
)
from tests.domain.support import in_words

NAMES = ["a", "A", "a/b", "a b", "a&b=c", "a%2Fb", "a:b", "\u00e4", "a\u0308", "x" * 300, "b", " a", "**"]
"""Names that some system has taken for one another (C22)."""


def test_no_two_names_share_a_list_by_mistake():  # C22
    """Every persona with every user and server, in two tenants: as many streams as combinations."""
    keys = [
        list_key(persona, scope, subject) for persona, scope, subject in product(NAMES, ["server", "personal"], NAMES)
    ] + [list_key(None, "global", user) for user in NAMES]
    streams = {list_stream(tenant, key) for tenant in ("acme", "acme/a") for key in keys}
    assert len(streams) == 2 * len(keys)


def test_a_user_and_a_server_of_the_same_name_are_two():  # C22
    assert list_key("mira", "server", "42") != list_key("mira", "personal", "42")
    assert list_stream("t", list_key("mira", "server", "42")) != list_stream("t", list_key("mira", "personal", "42"))
    assert list_key("mira", "personal", "42").owner == Subject("user", "42") != Subject("server", "42")
    assert person_stream("t", "42") != server_stream("t", "42") != persona_stream("t", "42")


@pytest.mark.parametrize("pair", list(combinations([("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")], 2)))
def test_parts_of_a_name_do_not_run_together(pair):  # C22
    (t1, k1), (t2, k2) = pair
    assert list_stream("t", ListKey(t1, "server", k1)) != list_stream("t", ListKey(t2, "server", k2))
    assert person_stream(t1, k1) != person_stream(t2, k2)


@for_all(
    st.lists(
        st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)), min_size=2, max_size=2, unique=True
    )
)
def test_two_lists_are_two_streams(both):  # C22
    (t1, p1, s1), (t2, p2, s2) = both
    assert list_stream(t1, ListKey(p1, "server", s1)) != list_stream(t2, ListKey(p2, "server", s2))


@pytest.mark.parametrize("what", ["persona", "subject", "server", "channel", "tag"])
def test_the_star_is_no_name_and_the_refusal_says_why(what: str):  # SPEC 1, C22
    with pytest.raises(InvalidInput) as refused:
        check_key(what, "*")
    in_words(refused.value, "*", what, "every persona")


def test_the_star_is_refused_where_a_persona_a_user_or_a_server_belongs():  # SPEC 1, C22
    for persona, scope, subject in (
        ("*", "server", "s"),
        ("*", "personal", "u"),
        ("mira", "server", "*"),
        (None, "global", "*"),
    ):
        with pytest.raises(InvalidInput):
            list_key(persona, scope, subject)


@pytest.mark.parametrize("key", ["", " ", "\n\t", "x" * 301, "a\x00b", "\ud800", None, 42, ["a"], b"a"])
def test_what_cannot_be_a_name_is_refused(key: object):  # C22
    with pytest.raises(InvalidInput) as refused:
        check_key("user", key)
    assert refused.value.exit_code == 2
    assert refused.value.status == 422


@pytest.mark.parametrize("name", [n for n in NAMES if n.strip()])
def test_a_name_is_kept_exactly_as_given(name: str):  # C22
    assert check_key("user", name) is name


def test_300_characters_are_a_name_and_301_are_not():  # C22
    assert check_key("user", "\U0001f431" * MAX_KEY)
    with pytest.raises(InvalidInput) as refused:
        check_key("user", "\U0001f431" * (MAX_KEY + 1))
    in_words(refused.value, 300, 301)


@pytest.mark.parametrize("scope", ["", "Server", "user", "everything", None, ["server"]])
def test_an_unknown_scope_is_refused_with_the_three_there_are(scope: object):
    with pytest.raises(InvalidInput) as refused:
        list_key("mira", scope, "s")
    in_words(refused.value, "server", "personal", "global")


@pytest.mark.parametrize("scope", ["server", "personal"])
def test_a_list_that_is_not_global_needs_a_persona(scope: str):
    with pytest.raises(InvalidInput):
        list_key(None, scope, "s")


def test_a_global_list_is_one_whichever_persona_was_named():  # SPEC 1
    assert list_key("mira", "global", "juno") == list_key("otto", "global", "juno") == list_key(None, "global", "juno")
    assert list_key("mira", "global", "juno").persona == EVERY_PERSONA


def test_a_list_is_named_by_persona_scope_and_subject_and_nothing_else():  # R10
    assert ListKey._fields == ("persona", "scope", "subject")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (ListKey("mira", "server", "tea"), "mira in server tea"),
        (ListKey("mira", "personal", "juno"), "mira and user juno"),
        (ListKey("*", "global", "juno"), "every persona and user juno"),
    ],
)
def test_a_list_reads_as_words(key: ListKey, words: str):
    assert str(key) == words


# -- shards and ids


def test_lists_of_a_subject_are_in_its_shard_whatever_the_persona():  # DESIGN 2
    """So a personal memory can become global without moving, and erasing a user is local."""
    shard = shard_of("t", Subject("user", "juno"))
    keys = [ListKey("mira", "personal", "juno"), ListKey("otto", "personal", "juno"), ListKey("*", "global", "juno")]
    assert {shard_of_id(list_stream("t", key)) for key in keys} == {shard}
    assert shard_of_id(person_stream("t", "juno")) == shard
    assert shard_of_id(chat_stream("t", "c", Subject("user", "juno"))) == shard


def test_the_shard_of_a_subject_is_the_same_for_ever():
    """A store that exists would not find its lists again; these values may never change."""
    kinds: list[SubjectKind] = ["server", "user", "chat", "persona", "tenant"]
    assert [shard_of("default", Subject(kind, "42")) for kind in kinds] == [81, 35, 45, 159, 109]
    key = ListKey("mira", "personal", "42")
    assert list_stream("default", key) == UUID("2301fe61-35c9-8709-8561-e0fb51f639df")
    assert tenant_stream("default") == UUID("81adcb8e-1e8b-8aef-9b7c-0b836106fe8b")


def test_subjects_spread_over_all_shards():
    hit = [0] * SHARDS
    for n in range(256 * 40):
        hit[shard_of("t", Subject("user", str(n)))] += 1
    assert min(hit) > 10
    assert max(hit) < 90


@for_all(st.integers(0, 255), st.binary(min_size=16, max_size=16))
def test_an_id_says_its_shard_and_that_it_is_of_version_8(shard: int, entropy: bytes):
    made = new_id(shard, entropy)
    assert shard_of_id(made) == shard
    assert made.version == 8
    assert made.variant == UUID(int=0, version=4).variant
    assert new_id(shard, entropy) == made


def test_different_entropy_makes_different_ids():
    """All but the bits that hold shard, version and variant come from the entropy: 114 of 128."""
    bits = [1 << n for n in range(120)]
    assert len({new_id(7, bit.to_bytes(16, "big")) for bit in bits}) == 120 - 6 + 1


def test_chats_of_one_name_in_two_homes_are_two():  # D26
    assert chat_stream("t", "c", Subject("user", "a")) != chat_stream("t", "c", Subject("server", "b"))
