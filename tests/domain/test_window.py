"""The live window, and what no summary covers (R2, R3, D16)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.window import LEVELS, Level, Live, Sized, level_for
from tests.oracle.plain_window import PlainMessage, plain_sent


def sent(messages: list[PlainMessage], level: Level, context: int, room: int) -> tuple[list[int], int]:
    live = Live(level, context, room)
    for n in range(len(messages) - 1, -1, -1):
        live.offer(Sized(n, messages[n].tokens, messages[n].covered))
    return sorted(live.chosen), live.window


@given(
    messages=st.lists(st.builds(PlainMessage, st.integers(1, 60), st.booleans()), min_size=1, max_size=40),
    tokens=st.integers(1, 300),
    most=st.integers(1, 12),
    context=st.integers(4, 2_000),
    room=st.integers(0, 1_000),
)
def test_r2_d16_the_messages_sent_are_those_of_the_plain_rule(messages, tokens, most, context, room):
    expected = plain_sent(messages, tokens=tokens, most=most, context=context, room=room)
    assert sent(messages, Level(tokens, most, 0, ""), context, room) == expected


@pytest.mark.parametrize(
    ("detail", "tokens", "most"), [("key_events", 6_000, 30), ("balanced", 10_000, 50), ("detailed", 16_000, 80)]
)
def test_r3_a_level_ends_at_its_tokens_or_its_messages(detail, tokens, most):
    level = LEVELS[detail]
    assert sent([PlainMessage(1, True)] * 200, level, 10**6, 10**6)[1] == most
    assert sent([PlainMessage(1_000, True)] * 200, level, 10**6, 10**6)[1] == tokens // 1_000


def test_r2_a_quarter_of_a_small_context_is_the_bound_and_a_bigger_model_does_not_widen_the_window():
    messages = [PlainMessage(100, True)] * 200
    assert sent(messages, LEVELS["balanced"], 8_000, 7_000)[1] == 20
    assert sent(messages, LEVELS["balanced"], 10**6, 10**6) == sent(messages, LEVELS["balanced"], 10**5, 10**5)


def test_d16_the_newest_message_is_always_whole():
    assert sent([PlainMessage(5, False), PlainMessage(50_000, False)], LEVELS["balanced"], 8_000, 6_000) == ([1], 1)


@pytest.mark.parametrize("platform", ["discord", "telegram"])
def test_r3_discord_and_telegram_are_always_balanced(platform):
    assert level_for(platform, "detailed", "key_events") == "balanced"


def test_r3_the_person_chooses_before_the_persona_and_api_counts_as_web():
    assert level_for("web", "detailed", "key_events") == "detailed"
    assert level_for("api", None, "key_events") == "key_events"
    assert level_for("web", None, None) == "balanced"
