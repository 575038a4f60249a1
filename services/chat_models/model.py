"""What a chat model is to the rest: a question with a shape or a conversation, an answer, or a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from remembrancer.domain.errors import Unavailable

T = TypeVar("T", bound=BaseModel)
Cause = Literal["away", "refused", "answer"]
"""The endpoint cannot be used now; it does not take this question; what it answered is of no use."""


class ModelFailed(Unavailable):
    """The model gave no answer that can be used. `reason` says why, in a few words that quote nothing."""

    def __init__(
        self, reason: str, *, hint: str | None = None, again: bool = True, refused: int | None = None,
        of_tools: bool = False, cause: Cause = "answer",
    ) -> None:  # fmt: skip
        super().__init__(
            f"The chat model gave no answer: {reason}.",
            hint=hint or "It is asked again later; until then messages are sent as they are (D16).",
        )
        self.reason = reason
        self.advice = hint
        """What to look at, where the failure tells."""
        self.again = again
        """Whether the same question may have better luck at once."""
        self.refused = refused
        """The status by which the endpoint refused the request as such."""
        self.of_tools = of_tools
        """Whether it spoke of tools then."""
        self.cause = cause
        self.after_progress = False
        """Whether other questions of the same run were answered."""


class Usage(NamedTuple):
    """Tokens read and written, all tries of a question together."""

    input_tokens: int
    output_tokens: int

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


class Prices(NamedTuple):
    """What a million tokens cost, read and written."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """What so many tokens cost."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """An answer of the shape that was asked for. `cost` is None where no price is known."""

    value: T
    usage: Usage
    cost: float | None


class ToolCall(NamedTuple):
    """What a model wants done. `arguments` are JSON as it wrote it, whether or not it can be read."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a model says next in a conversation, what it wants done first, or both.

    `offered` is false where the endpoint takes no tools, so that it was asked without (R17).
    """

    text: str
    calls: Sequence[ToolCall]
    usage: Usage
    offered: bool


class ChatModel(Protocol):
    """Answers questions. Safe to share between threads."""

    @property
    def name(self) -> str:
        """The endpoint's name of the model."""
        ...

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost, if that is known."""
        ...

    def ask(self, instructions: str, question: str, shape: type[T], *, timeout: float) -> Answered[T]:
        """An answer that fits `shape`.

        Args:
            instructions: what the model is to do; question: what with.
            timeout: seconds for all tries together.

        Raises:
            ModelFailed: no answer, an empty or unfinished one, or one that does not fit, also when asked again.
        """
        ...

    def converse(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]], only_talk: bool = False,
        may_be_silent: bool = False, timeout: float,
    ) -> Spoken:  # fmt: skip
        """What it says next.

        Args:
            messages, tools: those of a chat-completions request. An endpoint that refuses tools is asked without.
            only_talk: it may see the tools, but call none.
            may_be_silent: no words and no call are an answer, too.
            timeout: seconds for all tries together.

        Raises:
            ModelFailed: no answer, or an empty one, also when asked again.
        """
        ...

    def close(self) -> None:
        """Give connections back; who waits for an answer gets ModelFailed."""
        ...
