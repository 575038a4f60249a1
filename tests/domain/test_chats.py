"""Which chat a reply belongs to when it names none (D26, D31, C22)."""

from __future__ import annotations

from itertools import product

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.chat import Chat, chat_home, default_chat, evolve_chat
from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import Subject
from tests.domain.support import DAY, happening, in_words, recorded

NAMES = ["a", "a/b", "a:b", "a%2Fb", "b", "\u00e4", "a\u0308"]


def test_a_reply_in_a_server_belongs_to_the_persona_s_chat_of_that_channel():  # D26
    here = default_chat("mira", server="tea house", channel="garden", users=["juno"])
    assert here == default_chat("mira", server="tea house", channel="garden", users=["kai", "ana"])
    assert here != default_chat("mira", server="tea house", channel="kitchen", users=["juno"])
    assert here != default_chat("mira", server="tea house", channel=None, users=["juno"])
    assert here != default_chat("otto", server="tea house", channel="garden", users=["juno"])


def test_a_reply_without_a_server_belongs_to_the_chat_with_the_one_user():  # D26
    here = default_chat("mira", server=None, channel=None, users=["juno"])
    assert here == default_chat("mira", server=None, channel=None, users=["juno", "juno"])
    assert here != default_chat("mira", server=None, channel=None, users=["kai"])
    assert here != default_chat("mira", server="juno", channel=None, users=["juno"])


@pytest.mark.parametrize("users", [[], ["juno", "kai"]])
def test_several_users_without_a_server_need_a_chat_id(users: list[str]):  # D26
    with pytest.raises(InvalidInput) as refused:
        default_chat("mira", server=None, channel=None, users=users)
    assert refused.value.rule == "D26"
    in_words(refused.value, len(users), "chat", "server")


def test_no_two_places_share_a_chat_by_mistake():  # C22
    chats = [
        default_chat(persona, server=server, channel=channel, users=[])
        for persona, server, channel in product(NAMES, NAMES, [None, *NAMES])
    ] + [default_chat(persona, server=None, channel=None, users=[user]) for persona, user in product(NAMES, NAMES)]
    assert len(set(chats)) == len(chats)


def test_a_chat_lives_with_its_server_or_its_one_user_otherwise_by_itself():  # DESIGN 2
    assert chat_home("c", server="tea house", users=["juno"]) == Subject("server", "tea house")
    assert chat_home("c", server=None, users=["juno", "juno"]) == Subject("user", "juno")
    assert chat_home("c", server=None, users=["juno", "kai"]) == Subject("chat", "c")
    assert chat_home("c", server=None, users=[]) == Subject("chat", "c")


def test_a_chat_comes_into_being_with_its_first_reply():  # D31
    started = happening(e.ChatStarted, DAY, chat="c", personas=("mira",), users=("juno",))
    assert not Chat().started
    assert evolve_chat(Chat(), recorded(*started)) == Chat(True, ("mira",), "api")
    assert evolve_chat(Chat(), recorded(*happening(e.PersonaDeleted, DAY))) == Chat()
