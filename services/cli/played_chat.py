"""What `demo --play` says of a conversation as a chat: its window, its summaries, and the tokens that they spare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from remembrancer.services.answers import Answer, ReplyAnswer
from remembrancer.services.cli.quoting import NAME, Quoting
from remembrancer.services.cli.screen import Screen

if TYPE_CHECKING:
    from remembrancer.services.remembrancer import Remembrancer


class PlayedChat(Answer):
    """A chat after it was played. `sent` are the tokens of messages and summary in all replies together; `whole` what
    they had been, had each reply sent the whole chat."""

    messages: int = 0
    tokens: int = 0
    window: int = 0
    recent: int = 0
    merged: int = 0
    long_term: int = 0
    summary_tokens: int = 0
    unsummarised: int = 0
    unsent: int = 0
    sent: int = 0
    whole: int = 0


def summarise_in_step(memory: Remembrancer) -> str:
    """From here on summaries are made where `Kept.catch_up` says so. By whom: the configured model, or a script."""
    compactor = memory.engine.compactor
    compactor.automatic = False
    if compactor.model is None:
        compactor.model = Quoting()
    return compactor.model.name


class Kept:
    """Follows one chat while it is played."""

    def __init__(self, memory: Remembrancer) -> None:
        self._memory = memory
        self._last: ReplyAnswer | None = None
        self._tokens = self._sent = self._whole = 0

    def heard(self, reply: ReplyAnswer) -> None:
        """One more message, and the reply to it."""
        self._last = reply
        self._tokens += reply.messages[-1].tokens
        self._whole += self._tokens
        self._sent += reply.summary.tokens + sum(m.tokens for m in reply.messages)

    def catch_up(self) -> PlayedChat:
        """Summarise what is due, and see how the chat stands."""
        if self._last is None:
            return PlayedChat()
        self._memory.engine.runner.catch_up()
        self._memory.engine.compactor.work()
        now = self._memory.summary(self._last.chat)
        tiers = [part.tier for part in now.parts]
        window = self._last.window
        assert window is not None
        return PlayedChat(
            messages=now.messages, tokens=self._tokens, window=window.messages, recent=tiers.count("recent"),
            merged=tiers.count("merged"), long_term=tiers.count("long_term"), summary_tokens=now.tokens,
            unsummarised=now.unsummarised, unsent=window.unsent, sent=self._sent, whole=self._whole,
        )  # fmt: skip


def in_progress(chat: PlayedChat) -> str:
    """In a few words."""
    made = chat.recent + chat.merged + chat.long_term
    return f"Playing: {chat.messages} messages, {chat.window} live, {made} summaries, {chat.unsummarised} in none"


def draw(screen: Screen, chat: PlayedChat, turns: int) -> None:
    """Under a conversation."""
    left = f", {chat.unsent} of them without room" if chat.unsent else ""
    tiers = f"{chat.long_term} long-term, {chat.merged} merged, {chat.recent} recent"
    screen.line(f"chat: {chat.messages:,} messages, {chat.window} live, {chat.unsummarised} in no summary{left}")
    screen.line(f"summaries: {tiers}; {chat.summary_tokens:,} tokens")
    screen.line(_tokens(chat.sent, chat.whole, turns))


def draw_all(screen: Screen, chats: Sequence[PlayedChat], turns: int, by: str) -> None:
    """Under all of them."""
    screen.line(_tokens(sum(c.sent for c in chats), sum(c.whole for c in chats), turns))
    if by == NAME:
        screen.labelled("note", f"summaries by {NAME}; set REMEMBRANCER_CHAT_MODEL for real ones.", "yellow")
    else:
        screen.line(Text(f"summaries by {by}", "dim"))


def _tokens(sent: int, whole: int, turns: int) -> str:
    a, b = (round(n / turns) if turns else 0 for n in (sent, whole))
    return f"sent: {a:,} tokens of messages and summary a reply; the whole chat: {b:,}"
