"""The answer of `what-if` (U3)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from remembrancer.domain.identity import Scope
from remembrancer.domain.outcome import Where
from remembrancer.domain.what_if import Unknown
from remembrancer.services.answers import Answer, Position

UNKNOWN: dict[Unknown, tuple[str, str, str]] = {
    "not_searched": (
        "reply", "replies",
        "could not find what was forgotten by then and would still be there: its days are counted as unused",
    ),
    "beyond_the_record": ("reply", "replies", "might have matched a memory behind the ten recorded candidates"),
    "another_model": (
        "reply", "replies",
        "went through another embedding model, whose scores the threshold asked about is not for: theirs stands",
    ),
    "without_search": ("reply", "replies", "had no search, so nothing could match"),
    "without_record": ("match", "matches", "cannot be judged again, for want of a record of the search"),
    "refused_saves": (
        "list", "lists",
        "had no room at times: what was refused then left no event, so what would have had room is not known",
    ),
    "refused_pins": ("list", "lists", "had no pin left at times: what was refused then left no event"),
    "erased": ("list", "lists", "cannot be counted from before an erasure"),
}  # fmt: skip
"""What the record cannot answer: of what one, of what several, and what about it."""


class Number(Answer):
    """A number of the policy: the one in force, and the one asked about."""

    now: float | int | None
    then: float | int | None


class StandingView(Answer):
    """How a memory stands. No counter where it is pinned (D3) or not there."""

    state: Where
    unused_days: int | None
    on_desk: bool
    last_matched_at: datetime | None


class ChangeView(Answer):
    """A memory that would stand otherwise."""

    memory: UUID
    persona: str
    scope: Scope
    subject: str
    text: str
    now: StandingView
    then: StandingView
    uncertain: bool
    """It would still be there, but searches ran without it: one of them may have matched it, so its counter is at most
    this."""


class Course(Answer):
    """What a history came to, or would have come to."""

    replies: int
    desk: float
    """Memories on the desk, the mean over the replies."""
    tokens: float
    """Tokens of the memories that were sent, desk and recalled, the mean over the replies (o200k_base)."""
    matches: int
    recalls: int
    evictions: int
    refused: int
    """Saves and pins that happened and would have been refused."""
    active: int
    resting: int
    expired: int


class UnknownView(Answer):
    """Something that the record cannot answer, and how often."""

    what: Unknown
    count: int
    sentence: str


class WhatIfAnswer(Answer):
    """The same history under other numbers: what would be different, and what cannot be known."""

    numbers: dict[str, Number]
    persona: str | None
    scope: Literal["server", "personal", "global"] | None
    subject: str | None
    events: int
    lists: int
    memories: int
    """That are there now."""
    changes: list[ChangeView]
    now: Course
    then: Course
    unknown: list[UnknownView]
    applied: bool = False
    recounted: int = 0
    """Memories whose use was recorded anew by `apply`; if it was not applied, would be."""
    positions: list[Position] = Field(default_factory=list)
