"""What a chat model is asked when it summarises, and the shapes of its answers (R4, R6, D16, D20, R19)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from remembrancer.domain.long_term import LongTerm
from remembrancer.domain.summaries import Summary
from remembrancer.domain.transcript import Message
from remembrancer.domain.window import LEVELS, Detail
from remembrancer.services.tokens import count_tokens

WORDS_PER_TOKEN = 0.7
"""Of most languages a token is somewhat less than a word."""
CHUNK_SHARE, MERGED_SHARE = 1 / 20, 1 / 8
"""How long a recent and a merged summary are, of the level's size of the long-term one."""
SHORTEST = 100
"""Characters that are given of a message at least."""


def _stripped(text: object) -> object:
    return text.strip() if isinstance(text, str) else text


Said = Annotated[str, BeforeValidator(_stripped), Field(min_length=1)]


class Quote(BaseModel):
    """A rule that a user gave: which message says it, in which words."""

    message: int
    quote: str


class ChunkDraft(BaseModel):
    """A recent summary."""

    summary: Said
    rules: list[Quote]


class MergedDraft(BaseModel):
    """Recent summaries as one."""

    summary: Said


class LongTermDraft(BaseModel):
    """What newer summaries make of the long-term one."""

    chronology: list[Said] = Field(min_length=1)
    promises: list[str]
    references: list[str]
    state: list[str]


class CondensedDraft(BaseModel):
    """A shorter beginning of the chronology, and which lines of the rest still matter."""

    chronology: list[Said] = Field(min_length=1)
    promises: list[int]
    references: list[int]
    state: list[int]


AnyDraft = TypeVar("AnyDraft", bound=BaseModel)


def instructions(name: str, detail: Detail, share: float = 1.0) -> str:
    """The standing part of a question. `share`: of the level's size."""
    return _prompt(name).replace("{keeps}", LEVELS[detail].keeps).replace("{words}", str(_words(detail, share)))


def _words(detail: Detail, share: float) -> int:
    return max(60, round(LEVELS[detail].summary_tokens * share * WORDS_PER_TOKEN / 10) * 10)


def asked_tokens(detail: Detail, share: float = 1.0) -> int:
    """About so many tokens the model is asked to keep to."""
    return round(_words(detail, share) / WORDS_PER_TOKEN)


def of_messages(messages: Sequence[Message], most: int | None = None) -> str:
    """Messages with number, date and author (D20). `most`: tokens of one; of a longer one the middle is left out."""
    texts = [m.text if most is None or m.tokens <= most else in_part(m.text, most) for m in messages]
    return "\n".join(
        f"#{k} [{m.said_at:%Y-%m-%d %H:%M}] {m.author}: {text}"
        for k, (m, text) in enumerate(zip(messages, texts, strict=True), start=1)
    )


def in_part(text: str, tokens: int) -> str:
    """Beginning and end of a text, with what is between them counted, in about so many tokens at most."""
    made, kept = text, len(text)
    while (takes := count_tokens(made)) > tokens and kept > SHORTEST:
        kept = max(SHORTEST, int(kept * min(0.9, tokens / takes)))
        head = kept // 2
        gap = f" [... {len(text) - kept} characters left out ...] "
        made = f"{text[:head]}{gap}{text[len(text) - (kept - head) :]}"
    return made


def of_summaries(summaries: Sequence[Summary], dates: Sequence[str]) -> str:
    """Summaries with the dates of what they tell."""
    return "\n\n".join(f"## {when}\n{s.text}" for s, when in zip(summaries, dates, strict=True))


def of_long_term(old: Summary | None, newer: Sequence[Summary], dates: Sequence[str]) -> str:
    """The long-term summary as it was, and what follows it."""
    before = "There is none yet." if old is None else old.text
    return f"LONG-TERM SUMMARY\n{before}\n\nNEW SUMMARIES\n{of_summaries(newer, dates)}"


def of_parts(parts: LongTerm) -> str:
    """What of a long-term summary is condensed."""
    lists = (("PROMISES", parts.promises), ("REFERENCES", parts.references), ("STATE", parts.state))
    numbered = [f"{title}\n" + "\n".join(f"{k}. {line}" for k, line in enumerate(of, start=1)) for title, of in lists]
    return "\n\n".join(["OLDER LINES\n" + "\n".join(f"- {line}" for line in parts.older()), *numbered])


@cache
def _prompt(name: str) -> str:
    return files("remembrancer.services").joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
