"""The answers of the verbs of summaries (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.services.answers import Answer, NoticeView, Position


class SummaryPart(Answer):
    """One summary that is sent: of which tier, of how many messages, written by a person if `edited`."""

    id: UUID
    tier: Literal["recent", "merged", "long_term"]
    messages: int
    text: str
    tokens: int
    detail: str
    edited: bool
    made_at: datetime


class RuleView(Answer):
    """A rule or correction of a user, in the words of its message (R6)."""

    id: str
    message: UUID
    author: str
    text: str


class RebuildView(Answer):
    """A conversation's memory made anew (R7): how many of its messages are done."""

    id: UUID
    state: Literal["running", "completed", "failed"]
    detail: str
    messages: int
    done: int
    started_at: datetime
    ended_at: datetime | None
    reason: str | None


class SummaryAnswer(Answer):
    """The whole summary of a chat as it is sent (R5), part by part, and what is not yet in it."""

    chat: str
    detail: str
    text: str
    tokens: int
    parts: Sequence[SummaryPart]
    rules: Sequence[RuleView]
    messages: int
    unsummarised: int
    waits: str | None
    rebuild: RebuildView | None


class SummaryChange(Answer):
    """A summary was edited, or a rule removed."""

    chat: str
    summary: UUID | None
    rule: str | None
    positions: Sequence[Position] = ()


class RebuildEstimate(Answer):
    """What a rebuild would take (R7). `cost` is None where no price is known.

    `extra_tokens` more are read with each reply at this level than at the present one, at most; fewer if negative.
    """

    chat: str
    detail: str
    messages: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    extra_tokens: int
    edited: Sequence[UUID]


class SummaryRebuild(Answer):
    """A rebuild was started, or goes on; `summary` shows how far it is."""

    chat: str
    rebuild: UUID
    messages: int
    positions: Sequence[Position] = ()


class SummariesRun(Answer):
    """What was due was done: so many runs, each of one chat. `waiting` chats are still to be looked at, by others or
    later; `failing` of them failed, the newest `error` says why, and `next_try` when the next one is tried again."""

    runs: int
    waiting: int
    failing: int
    error: str | None
    next_try: datetime | None


class CostAnswer(Answer):
    """What a reply cost, beside the median of its chat; `notice` if it is unusual, once a chat (R8)."""

    turn: str
    chat: str
    cost: float
    median: float
    notice: NoticeView | None
    positions: Sequence[Position] = ()
