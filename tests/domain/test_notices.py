"""Who is told what was remembered and what was forgotten (T15, C12)."""

from __future__ import annotations

import pytest

from remembrancer.domain.notices import Audience, refused_notice, saved_notice
from remembrancer.domain.settings import Notices
from tests.domain.support import GLOBAL, KEY, PERSONAL

SETTINGS: list[Notices] = ["everyone", "managers", "hidden"]
MOCHI, OBOE = "Juno's cat is named Mochi.", "Juno plays the oboe."


def test_the_confirmation_shows_what_was_saved_and_what_was_forgotten():  # T15
    notice = saved_notice(KEY, "everyone", MOCHI, OBOE)
    assert MOCHI in notice.text
    assert OBOE in notice.text
    assert notice.text.index(MOCHI) < notice.text.index("Forgotten") < notice.text.index(OBOE)


def test_where_nothing_was_forgotten_it_says_nothing_of_forgetting():  # T15
    assert "orgotten" not in saved_notice(KEY, "everyone", MOCHI, None).text


@pytest.mark.parametrize(
    ("setting", "audience"), [("everyone", "everyone"), ("managers", "managers"), ("hidden", "nobody")]
)
def test_a_notice_on_a_server_memory_follows_the_server_s_setting(setting: Notices, audience: Audience):  # T15
    assert saved_notice(KEY, setting, MOCHI, OBOE).audience == audience
    assert saved_notice(KEY, setting, MOCHI, OBOE).user is None


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("key", [PERSONAL, GLOBAL])
def test_a_notice_on_a_person_s_memory_goes_to_its_owner_only(setting: Notices, key):  # T15
    for notice in (saved_notice(key, setting, MOCHI, None), refused_notice(key, setting, MOCHI, "Full.")):
        assert (notice.audience, notice.user) == ("owner", key.subject)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_refusal_reaches_those_whom_a_confirmation_would_reach(setting: Notices):  # T15, C12
    refused = refused_notice(KEY, setting, MOCHI, "The list is full: 100 of 100.")
    assert refused.audience == saved_notice(KEY, setting, MOCHI, None).audience
    assert MOCHI in refused.text
    assert "100 of 100" in refused.text
