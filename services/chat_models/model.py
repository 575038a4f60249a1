"""What a chat model is to the rest: a question with a shape, an answer that was checked, or a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from remembrancer.domain.errors import Unavailable

T = TypeVar("T", bound=BaseModel)


class ModelFailed(Unavailable):
    """The model gave no answer that can be used. `reason` says why, in a few words that quote nothing."""

    def __init__(self, reason: str, *, hint: str | None = None, again: bool = True) -> None:
        super().__init__(
            f"The chat model gave no answer: {reason}.",
            hint=hint or "It is asked again later; until then messages are sent as they are (D16).",
        )
        self.reason = reason
        self.again = again
        """Whether the same question may have better luck at once."""


class Usage(NamedTuple):
    """Tokens read and written, all tries of a question together."""

    input_tokens: int
    output_tokens: int


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

    def close(self) -> None:
        """Give connections back; who waits for an answer gets ModelFailed."""
        ...
