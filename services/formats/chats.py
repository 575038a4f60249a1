"""Chats of other programs: SillyTavern's JSON lines, and a plain JSON that anything can write.

SillyTavern: a line with the names, then a line a message. A message may have been made several times (`swipes`); the
one that was chosen counts, and what its interface hides from the model (`is_system`) is left out.

Plain: ``{"messages": [{"role": "user" | "persona", "author"?, "text", "at"?}]}``, or the list alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.transcript import Role
from remembrancer.services.settings import invalid

_DATES = ("%B %d, %Y %I:%M%p", "%B %d, %Y %I:%M:%S%p", "%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d @%Hh %Mm %Ss")
_MILLISECONDS = re.compile(r"\s*\d{1,3}ms$")


class Heard(NamedTuple):
    """A message of a file. `name` is as the file has it; `said_at` is None where it does not say."""

    role: Role
    name: str
    text: str
    said_at: datetime | None


class ChatFile(NamedTuple):
    """A file of a chat. `source` is the same for every state of the same chat, so that a later one brings the rest."""

    source: str
    messages: Sequence[Heard]
    hidden: int


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str = ""
    is_user: bool = False
    is_system: bool = False
    send_date: Any = None
    mes: str
    swipes: list[Any] = []
    swipe_id: int | None = None


class _Plain(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["user", "persona", "assistant"]
    author: str = ""
    text: str = Field(min_length=1)
    at: Any = None


_PLAIN = TypeAdapter(list[_Plain])


def read_chat(text: str) -> ChatFile:
    """A chat in either form, known by its shape.

    Raises:
        InvalidInput: neither; says which line or message is at fault.
    """
    if not text.strip():
        raise InvalidInput("The file is empty.", hint="Give SillyTavern's .jsonl, or JSON with messages.")
    whole: Any = None
    with suppress(ValueError):
        whole = json.loads(text)
    if isinstance(whole, dict) and "mes" not in whole and "chat_metadata" not in whole and "user_name" not in whole:
        whole = whole.get("messages")
    if isinstance(whole, list):
        return _plain(whole)
    return _silly_tavern(text)


def _plain(messages: list[Any]) -> ChatFile:
    try:
        found = _PLAIN.validate_python(messages)
    except ValidationError as error:
        raise invalid(error) from error
    heard = [
        Heard("user" if m.role == "user" else "persona", m.author, m.text, _moment(m.at, f"message {n}"))
        for n, m in enumerate(found, start=1)
    ]
    return ChatFile(_source(heard), heard, 0)


def _silly_tavern(text: str) -> ChatFile:
    heard, hidden = [], 0
    for number, row in _rows(text):
        if "mes" not in row:
            if number == 1:
                continue  # the names, and what SillyTavern keeps for itself
            raise InvalidInput(f"Line {number} is no message.", hint="A message of SillyTavern has name and mes.")
        try:
            line = _Line.model_validate(row)
        except ValidationError as error:
            raise InvalidInput(f"Line {number}: {invalid(error).message}") from error
        said = _chosen(line)
        if line.is_system or not said.strip():
            hidden += 1
            continue
        role: Role = "user" if line.is_user else "persona"
        heard.append(Heard(role, line.name, said, _moment(line.send_date, f"line {number}")))
    return ChatFile(_source(heard), heard, hidden)


def _rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise InvalidInput(f"Line {number} is no JSON.", hint="Give SillyTavern's .jsonl, or plain JSON.") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"Line {number} is no message.", hint="Each line is an object.")
        yield number, row


def _chosen(line: _Line) -> str:
    """The swipe that was chosen; `mes` is a copy of it."""
    n = line.swipe_id
    if n is not None and 0 <= n < len(line.swipes) and isinstance(line.swipes[n], str):
        return str(line.swipes[n])
    return line.mes


def _moment(given: Any, where: str) -> datetime | None:
    """When it was said: SillyTavern's ways to write it, ISO, or milliseconds since 1970. UTC where no zone is named.

    Raises:
        InvalidInput: something that is none of these.
    """
    if given in (None, ""):
        return None
    if isinstance(given, int | float) and not isinstance(given, bool):
        with suppress(ValueError, OverflowError, OSError):
            return datetime.fromtimestamp(given / 1000, UTC)
    if isinstance(given, str):
        if given.isdigit():
            return _moment(int(given), where)
        with suppress(ValueError):
            moment = datetime.fromisoformat(given)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        plain = _MILLISECONDS.sub("", given.strip())
        for form in _DATES:
            with suppress(ValueError):
                return datetime.strptime(plain, form).replace(tzinfo=UTC)
    raise InvalidInput(f"The date of {where} cannot be read: {str(given)[:40]!r}.", hint="Write it in ISO 8601.")


def _source(heard: Sequence[Heard]) -> str:
    """Which chat it is: by how it began."""
    first = heard[0] if heard else Heard("user", "", "", None)
    raw = "\0".join([first.role, first.name, first.text, str(first.said_at)])
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:16]
