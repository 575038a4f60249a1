"""What of a chat is sent, in the plainest words: R2 and D16 told again, with nothing of the product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class PlainMessage(NamedTuple):
    tokens: int
    covered: bool


def plain_sent(
    messages: Sequence[PlainMessage], *, tokens: int, most: int, context: int, room: int
) -> tuple[list[int], int]:
    """Which messages are sent (by place, oldest first), and how many of them are the window's."""
    budget, frame = min(tokens, context // 4), 4
    window: list[int] = []
    for place in range(len(messages) - 1, -1, -1):
        in_all = sum(messages[i].tokens for i in [*window, place])
        if window and (in_all > budget or len(window) == most):
            break
        if window and in_all + frame * (len(window) + 1) > room:
            return sorted(window), len(window)
        window.append(place)
    sent = list(window)
    for place in range(len(messages) - len(window) - 1, -1, -1):
        if messages[place].covered:
            continue
        if sum(messages[i].tokens + frame for i in [*sent, place]) > room:
            break
        sent.append(place)
    return sorted(sent), len(window)
