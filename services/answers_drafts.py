"""The answers of drafting, and of what is saved out of a conversation (R13)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from remembrancer.domain.identity import Scope
from remembrancer.services.answers import Answer, MemoryView, Position


class DraftView(Answer):
    """A memory that is not saved: a person reviews it. `messages`: where it was said. `warnings`: as of a save."""

    text: str
    about: str | None
    until: date | None
    messages: Sequence[UUID] = ()
    warnings: Sequence[str] = ()


class LeftOut(Answer):
    """What the model drafted, and why it is no draft."""

    text: str
    why: str


class DraftsAnswer(Answer):
    """Drafts for one list. Nothing was saved, and nothing is kept of them. `cost` is None where no price is known."""

    persona: str
    scope: Scope
    subject: str
    drafts: Sequence[DraftView]
    left_out: Sequence[LeftOut]
    model: str
    cost: float | None


class SavedFromChat(Answer):
    """What was saved out of a conversation, in the order given; all of it is pinned. `duplicates` were there before."""

    memories: Sequence[MemoryView]
    duplicates: Sequence[UUID]
    warnings: Sequence[str] = ()
    positions: Sequence[Position] = ()
