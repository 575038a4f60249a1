"""What a chat model is asked when it drafts memories, and the shapes of its answers (R13, R16, R19, D20)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator

from remembrancer.domain.transcript import Message


def _day(value: object) -> object:
    """A date that is none is not guessed at: the draft has none."""
    if isinstance(value, str):
        with suppress(ValueError):
            return date.fromisoformat(value.strip())
        return None
    return value


Until = Annotated[date | None, BeforeValidator(_day)]


class DescribedDraft(BaseModel):
    """A memory out of a description."""

    text: str
    about: str
    until: Until


class DescribedDrafts(BaseModel):
    """What a description comes to."""

    memories: list[DescribedDraft]


class HeardDraft(BaseModel):
    """A memory out of messages, named by number."""

    text: str
    about: str
    until: Until
    messages: list[int]


class HeardDrafts(BaseModel):
    """What chosen messages come to."""

    memories: list[HeardDraft]


class DeepChange(BaseModel):
    """One change of the background pass (R16)."""

    action: Literal["save", "update", "delete"]
    memory: int | None
    text: str | None
    about: str | None
    until: Until
    messages: list[int]


class DeepChanges(BaseModel):
    """What the background pass found; nothing is an answer, too."""

    changes: list[DeepChange]


def instructions(name: str, **values: object) -> str:
    """The standing part of a question, with its values put in."""
    text = _prompt(name)
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", str(value))
    return text


def numbered(messages: Sequence[Message], chosen: Sequence[int]) -> list[Message]:
    """The messages that a model names by number; numbers that are none are passed over."""
    return [messages[n - 1] for n in dict.fromkeys(chosen) if 1 <= n <= len(messages)]


@cache
def _prompt(name: str) -> str:
    return files("remembrancer.services").joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
