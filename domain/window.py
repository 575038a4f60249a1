"""What of a chat is sent word for word: the live window, and what no summary covers (R2, R3, D16)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

Detail = Literal["key_events", "balanced", "detailed"]
"""How much of a conversation is kept (R3)."""
CONTEXT_SHARE = 0.25
"""Of the model's context the window takes at most this much (R2)."""

FRAME_TOKENS = 4
"""What a message costs beside its text: its role and name, as chat-completions models frame them."""


@dataclass(frozen=True, slots=True)
class Level:
    """The numbers of a level of detail: tokens and messages of the window, tokens of the long-term summary."""

    window_tokens: int
    window_messages: int
    summary_tokens: int
    keeps: str


LEVELS: MappingProxyType[Detail, Level] = MappingProxyType(
    {
        "key_events": Level(
            6_000, 30, 4_000,
            "the main plot, relationships, promises and lasting facts; scene detail goes, older detail fades sooner",
        ),
        "balanced": Level(10_000, 50, 8_000, "important events, promises, how things changed, and moderate detail"),
        "detailed": Level(16_000, 80, 16_000, "more scenes and side details, and a longer chronology"),
    }
)  # fmt: skip


def level_for(platform: str, chosen: Detail | None, default: Detail | None) -> Detail:
    """The level of a chat: on Discord and Telegram always balanced; else the person's, else the persona's (R3)."""
    if platform in ("discord", "telegram"):
        return "balanced"
    return chosen or default or "balanced"


def most_sent(detail: Detail, context: int) -> int:
    """Tokens that window and long-term summary take of each reply at this level, at most (R2, R3)."""
    level = LEVELS[detail]
    return min(level.window_tokens, int(context * CONTEXT_SHARE)) + level.summary_tokens


class Sized(NamedTuple):
    """A message as the window sees it: its number in the chat, its tokens, whether a valid summary covers it."""

    n: int
    tokens: int
    covered: bool


class Live:
    """Chooses the messages of one reply, from the newest on, as they are read page by page.

    The window comes first, as far as there is room; after it only what no valid summary covers, newest first, as far as
    there is room (D16). Nothing is sent over a gap: once an uncovered message finds no room, no older one is sent.
    """

    def __init__(self, level: Level, context: int, room: int) -> None:
        """`room`: tokens that messages may take, after the other blocks and the answer to come."""
        self._tokens = min(level.window_tokens, int(context * CONTEXT_SHARE))
        self._messages = level.window_messages
        self._room = room
        self.chosen: list[int] = []
        self.window = 0
        """How many of the chosen are the window's."""
        self._open = True
        self._full = False

    def takes(self) -> bool:
        """Does the window still take messages?"""
        return self._open

    def full(self) -> bool:
        """No message can follow."""
        return self._full

    def offer(self, m: Sized) -> None:
        """The next older message."""
        if self._full:
            return
        if self._open and self.chosen and (m.tokens > self._tokens or self.window >= self._messages):
            self._open = False
        if not self._open and m.covered:
            return
        takes = m.tokens + FRAME_TOKENS
        if self.chosen and takes > self._room:
            self._full = True
            return
        self._room -= takes
        self.chosen.append(m.n)
        if self._open:
            self._tokens -= m.tokens
            self.window += 1
