"""The answers of the verb `talk` (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.services.answers import Answer, NoticeView, Position, ReplyAnswer
from remembrancer.services.answers_chat import ToolAnswer


class ToolUse(ToolAnswer):
    """What the model called, and what came of it."""

    name: str
    arguments: str


class TalkAnswer(Answer):
    """A whole turn: the `reply` that the model was asked with, what it did to memories, and what it said.

    `notices` are all of them, for the people whom they name (T15). Tokens are those of all questions of this turn;
    `cost` is None where no price is known. `tools` is false where the model was asked without (R17).
    """

    turn: str
    attempt: int
    chat: str
    message: UUID
    text: str
    calls: Sequence[ToolUse]
    notices: Sequence[NoticeView]
    tools: bool
    input_tokens: int
    output_tokens: int
    cost: float | None
    reply: ReplyAnswer
    positions: Sequence[Position] = ()
