"""Where a fact stands in conversations: the two layers beside saved memories (R1, U1)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.services.answers import Answer

Where = Literal["window", "summary", "rule", "dropped", "raw"]


class InChat(Answer):
    """A message that speaks of it, and what became of it in its chat.

    `where`: in the live *window*; in a *summary* that stands; kept word for word as a *rule* of the user; *dropped*
    from the summary that covers it; *raw*: in no valid summary, and sent as it is as far as there is room (D16).
    `summary`, `tier` and `at` are those of the summary that has it, or that dropped it.
    """

    chat: str
    message: UUID
    author: str
    said_at: datetime
    text: str
    where: Where
    summary: UUID | None = None
    tier: Literal["recent", "merged", "long_term"] | None = None
    at: datetime | None = None
    sentence: str
