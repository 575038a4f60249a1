"""The answers of `at` and `diff` (U1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain.identity import Scope
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import (
    Answer,
    Late,
    MemoryView,
    MessageView,
    PersonaView,
    PersonView,
    Position,
    Prefix,
    Search,
    ServerView,
    SummaryView,
)


class MomentList(Answer):
    """A list as it was. `hidden` could not be used there and then (T10, D28)."""

    persona: str
    scope: Scope
    subject: str
    version: int
    """How many events it had."""
    erased: bool
    """Its texts were erased since and read `[erased]` (D24)."""
    memories: list[MemoryView]
    hidden: list[UUID]


class MomentSettings(Answer):
    """What had been set by then, of whoever took part."""

    persona: PersonaView
    server: ServerView | None
    people: list[PersonView]


class NearReply(Answer):
    """A reply before or after a moment."""

    turn: str
    attempt: int
    at: datetime
    chat: str
    server: str | None
    users: tuple[str, ...]


class MomentAnswer(Answer):
    """A past moment: whose lists, as they were, and what was sent, or would have been."""

    what: Literal["turn", "time", "position"]
    at: datetime
    turn: str | None = None
    """The turn whose reply this is; None where no reply was given at this very moment."""
    attempt: int | None = None
    attempts: int | None = None
    """How many the turn has by now."""
    chat: str | None = None
    position: Position | None = None
    persona: str
    users: tuple[str, ...]
    server: str | None
    channel: str | None
    tags: tuple[str, ...]
    policy: Policy
    policy_version: int
    settings: MomentSettings
    lists: list[MomentList]
    prefix: Prefix | None
    """Of a turn: what was sent, byte for byte, if `exact`. Of a time or another position: what a reply would have had;
    None where nobody said who takes part, and where."""
    late: Late | None = None
    summary: SummaryView | None = None
    """Of a turn: the summary that was sent; None where that was not recorded."""
    messages: list[MessageView] | None = None
    """Of a turn: the messages of the chat that were sent, as they read then, the newest one last."""
    search: Search | None = None
    exact: bool
    """Nothing is missing: the texts are those of then. False where somebody was erased since."""
    notes: list[str]
    """Why it is not exact."""
    before: NearReply | None = None
    after: NearReply | None = None


class MemoryChange(Answer):
    """A memory that differs between two moments. None: it was not there, or its list was not in play."""

    memory: UUID
    before: MemoryView | None
    after: MemoryView | None
    fields: list[str]
    """What differs, of a memory that is in both."""
    why: str | None
    """What happened to it last, in between; None where the second moment is the earlier one."""


class SettingChange(Answer):
    """A setting or a number of the policy that differs."""

    of: str
    field: str
    before: Any
    after: Any


class DiffAnswer(Answer):
    """From one moment to another. Texts are compared line by line, as `diff -u` prints them."""

    before: MomentAnswer
    after: MomentAnswer
    added: list[MemoryChange]
    removed: list[MemoryChange]
    changed: list[MemoryChange]
    unchanged: int
    settings: list[SettingChange]
    prefix: str
    """Empty: the same bytes, or no prompt on one of the sides."""
    late: str
    exact: bool
