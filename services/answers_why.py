"""The answer of `why`: the life of one memory, and how to get it back (U1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from remembrancer.domain.events import Actor
from remembrancer.domain.identity import Scope
from remembrancer.domain.life import How
from remembrancer.domain.verdict import Status
from remembrancer.services.answers import Answer, Position
from remembrancer.services.answers_layers import InChat


class WhyMemory(Answer):
    """The memory that was found. `text` is what it says, or what it said last; `[erased]` where nobody can know."""

    id: UUID
    persona: str
    scope: Scope
    subject: str
    text: str
    wordings: list[str]
    """Every text that it ever had, the first one first."""
    pinned: bool
    protected: bool
    until: date | None
    tags: tuple[str, ...]
    channels: tuple[str, ...]


class WhySaved(Answer):
    """Where it comes from (D21)."""

    at: datetime
    actor: Actor
    turn: str | None
    chat: str | None
    messages: tuple[str, ...]
    day: date


class Seen(Answer):
    """What one search made of the memory: a match, or a near miss. Numbers and threshold are those of that day (D5)."""

    at: datetime
    day: date
    persona: str
    chat: str | None
    turn: str | None
    rank: int
    score: float
    similarity: float
    words: float
    threshold: float | None
    matched: bool
    recalled: bool
    undone: bool = False
    """Its turn was taken back, and with it this use (D14)."""


class Searches(Answer):
    """How often searches found the memory. Of each kind the answer has the `limit` that tell most, oldest first: the
    latest matches, the near misses that came closest."""

    matches: int
    near_misses: int
    matched: list[Seen]
    nearly: list[Seen]


class WhyDay(Answer):
    """The counter at the end of a day, and what the day did to it."""

    day: date
    unused_days: int
    how: How


class Days(Answer):
    """The days of its life."""

    unused_days: int
    """The counter now, or when it went."""
    rest_after_days: int
    counted: int
    """Days on which its list was searched and no message touched it (T4)."""
    hidden: int
    """Days on which its list was searched without it (T10)."""
    without_search: int
    """Days without a successful search: nothing ages on them (T8)."""
    rested_on: date | None
    """When it went to the drawer last, if it was there at the end (T5)."""
    counter: list[WhyDay]


class InLineView(Answer):
    """A memory that was next to be forgotten, and why."""

    memory: UUID
    text: str
    reason: str


class Eviction(Answer):
    """What it was forgotten for, and who was next in line (T12)."""

    at: datetime
    turn: str | None
    for_memory: UUID
    for_text: str | None
    reason: str
    next_in_line: InLineView | None
    next_unknown: str | None
    """Why nobody is named: there was no other, or the record does not give the line again."""


class StoryLine(Answer):
    """One thing that happened to it (C30)."""

    at: datetime
    actor: Actor
    turn: str | None
    event: str
    sentence: str
    before: str | None
    after: str | None
    position: Position | None


class Other(Answer):
    """Another memory that the text might have meant. `similarity` is None where no vector was compared."""

    memory: UUID
    persona: str
    scope: Scope
    subject: str
    text: str
    similarity: float | None
    words: float


class WhyAnswer(Answer):
    """Why a fact is, or is not, in a persona's mind: over saved memories, and over conversations (R1).

    Where it was never saved (`never_saved`), but was said, there is no memory, and `conversation` tells the rest.
    """

    status: Status
    verdict: str
    memory: WhyMemory | None
    saved: WhySaved | None
    story: list[StoryLine]
    searches: Searches | None
    days: Days | None
    evicted: Eviction | None
    conversation: Sequence[InChat] = ()
    """Messages that speak of it, the newest first, with where each stands now: window, summary, dropped, raw."""
    hidden_by: list[str]
    """What keeps it out of replies, or out of some, besides its counter (T10, R17)."""
    bring_back: str | None
    """The command that brings it back; None where nothing has to or can."""
    found_by: Literal["id", "similarity and words", "words"]
    note: str | None
    """What the search for it could not do."""
    nearest: list[Other]
