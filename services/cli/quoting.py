"""A stand-in for a chat model, so that the demo can show summaries where none is configured: it only quotes.

It understands nothing. Of what it is given it copies a few sentences, always the same ones, in the shape that was asked
for. It says so of itself, and it is used nowhere but in `demo --play`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel

from remembrancer.services.chat_models import Answered, ModelFailed, Prices, Usage
from remembrancer.services.summary_prompts import ChunkDraft, CondensedDraft, LongTermDraft, MergedDraft
from remembrancer.services.tokens import count_tokens

T = TypeVar("T", bound=BaseModel)
NAME = "a script that quotes"
_MESSAGE = re.compile(r"^#\d+ \[(\d{4}-\d\d-\d\d) \d\d:\d\d\] (.*?): ((?:.|\n(?!#\d+ \[))*)", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")
_PART = re.compile(r"^## (\d{4}-\d\d-\d\d|undated).*\n((?:.|\n(?!## ))*)", re.MULTILINE)
OF_CHUNK, OF_PART, OF_OLD = 3, 4, 3
"""Sentences that are quoted: of a chunk, of each part of a merged summary, and every so many-th line of what is old."""


class Quoting:
    """See the module."""

    name = NAME
    prices: Prices | None = None

    def ask(self, instructions: str, question: str, shape: type[T], *, timeout: float) -> Answered[T]:
        """Quotes out of the question, in this shape. See `ChatModel.ask`.

        Raises:
            ModelFailed: it is no question of a summary.
        """
        if shape not in _SHAPES:
            raise ModelFailed(f"{self.name} makes summaries only", again=False)
        value = shape.model_validate(_SHAPES[shape](question))
        usage = Usage(count_tokens(instructions) + count_tokens(question), count_tokens(value.model_dump_json()))
        return Answered(value, usage, None)

    def converse(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> NoReturn:
        """It cannot talk.

        Raises:
            ModelFailed: always.
        """
        raise ModelFailed(f"{self.name} does not talk", again=False)

    def close(self) -> None:
        """Nothing is open."""


def _chunk(question: str) -> dict[str, Any]:
    """The longest sentences, in the order in which they were said."""
    said = [
        (day, who, sentence)
        for day, who, text in _MESSAGE.findall(question)
        for sentence in _SENTENCE.split(" ".join(text.split()))
    ]
    longest = sorted(sorted(range(len(said)), key=lambda n: -len(said[n][2]))[:OF_CHUNK])
    quotes = [f"{day}, {who}: \u201c{sentence}\u201d" for day, who, sentence in (said[n] for n in longest)]
    return {"summary": "\n".join(quotes), "rules": []}


def _merged(question: str) -> dict[str, Any]:
    """The first quotes of each part."""
    return {"summary": "\n".join(line for _, text in _PART.findall(question) for line in _lines(text)[:OF_PART])}


def _long_term(question: str) -> dict[str, Any]:
    """A line for each new part, and the newest quote as the present state."""
    new = [_lines(text) for _, text in _PART.findall(question.partition("NEW SUMMARIES")[2])]
    return {
        "chronology": [lines[0] for lines in new if lines], "promises": [], "references": [],
        "state": [lines[-1] for lines in new[-1:] if lines],
    }  # fmt: skip


def _condensed(question: str) -> dict[str, Any]:
    """Some of the old lines, and none of the rest."""
    old = [line.removeprefix("- ") for line in _lines(question.partition("PROMISES\n")[0])[1:]]
    return {"chronology": old[::OF_OLD], "promises": [], "references": [], "state": []}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


_SHAPES: Mapping[type[BaseModel], Callable[[str], dict[str, Any]]] = {
    ChunkDraft: _chunk, MergedDraft: _merged, LongTermDraft: _long_term, CondensedDraft: _condensed,
}  # fmt: skip
