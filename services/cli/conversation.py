"""Files of conversations: a JSON list, each with sessions of turns, and the facts that were noted from each session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.transfer import read_file

SHAPE = 'It is a list of {"id", "speakers", "sessions": [{"at", "turns": [{"speaker", "text"}], "facts": [{"text"}]}]}.'


def _moment(given: Any) -> Any:
    """``1:56 pm on 8 May, 2023``, or ISO; UTC where no zone is named."""
    if not isinstance(given, str):
        raise ValueError("a moment is a text like 1:56 pm on 8 May, 2023")
    with suppress(ValueError):
        return datetime.strptime(f"{given} +0000", "%I:%M %p on %d %B, %Y %z")
    with suppress(ValueError):
        moment = datetime.fromisoformat(given)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise ValueError(f"{given!r} is no moment like 1:56 pm on 8 May, 2023")


class Turn(BaseModel):
    """One message."""

    speaker: str = Field(min_length=1)
    text: str


class Fact(BaseModel):
    """One sentence noted from a session."""

    text: str = Field(min_length=1)


class Meeting(BaseModel):
    """A session: what was said on one day."""

    at: Annotated[datetime, BeforeValidator(_moment)]
    turns: Sequence[Turn]
    facts: Sequence[Fact] = ()


class Conversation(BaseModel):
    """Two people who meet again and again."""

    id: str = Field(min_length=1)
    speakers: Sequence[str] = Field(min_length=2)
    sessions: Sequence[Meeting]


def read_conversations(file: Path) -> list[Conversation]:
    """The conversations of a file.

    Raises:
        InvalidInput: it cannot be read, or is no such file; the error names the place.
    """
    text = read_file(str(file))
    try:
        found = TypeAdapter(list[Conversation]).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = " ".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{file} is no file of conversations: {place or 'the whole'}: {said}.", hint=SHAPE) from None
    if not found:
        raise InvalidInput(f"{file} holds no conversation.", hint=SHAPE)
    return found
