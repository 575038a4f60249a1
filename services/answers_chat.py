"""The answers of the verbs of a chat (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from remembrancer.services.answers import Answer, Forgotten, MemoryView, MessageView, NoticeView, Position


class MessagesAnswer(Answer):
    """A page of a chat, oldest first; `before` continues it into the past."""

    chat: str
    messages: Sequence[MessageView]
    before: int | None


class PostAnswer(Answer):
    """A message was posted, edited or deleted."""

    message: UUID
    chat: str
    turn: str | None
    tokens: int
    positions: Sequence[Position] = ()


class DeepMemoryView(Answer):
    """Deep memory in a chat (R16): whether it is active, why not where it is not, and what it has done and cost there.

    `failed` says why the last pass came to nothing; it is tried again. `full`: the last one found a full list.
    """

    active: bool
    why_not: str | None
    failed: str | None
    messages: int
    changes: int
    cost: float
    full: bool


class ChatView(Answer):
    """A chat: who talks where, and how much was said. `unsummarised` messages are in no valid summary yet (R5).

    `summaries_wait` says why summaries do not come, if so: no model is configured, or it failed and is tried again.
    """

    chat: str
    personas: Sequence[str]
    platform: str
    server: str | None
    channel: str | None
    users: Sequence[str]
    messages: int
    unsummarised: int
    parent: str | None
    summaries_wait: str | None = None
    deep_memory: DeepMemoryView | None = None
    positions: Sequence[Position] = ()


class ToolAnswer(Answer):
    """What came of a tool call: `content` is what to tell the model; `notices` are for people alone (T15).

    `forgotten` made room for what was saved.
    """

    ok: bool
    content: str
    did: Literal["saved", "known", "updated", "deleted", "refused"] = "refused"
    memory: MemoryView | None = None
    forgotten: Sequence[Forgotten] = ()
    notices: Sequence[NoticeView] = ()


class ChatImportAnswer(Answer):
    """What an import of a chat came to: messages that are new here, worded anew, known already, and left out because
    the other program hides them."""

    chat: str
    imported: int
    edited: int
    known: int
    hidden: int
