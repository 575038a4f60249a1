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

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.transcript import Role
from remembrancer.services.checks import shown
from remembrancer.services.settings import invalid

_DATES = ("%B %d, %Y %I:%M%p", "%B %d, %Y %I:%M:%S%p", "%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d @%Hh %Mm %Ss")
_FORMS = "Give SillyTavern's .jsonl, or JSON with messages."
_OF_SILLY_TAVERN = {"mes", "chat_metadata", "user_name"}
_MOMENT = re.compile(r"[0-9]{1,18}")
_MILLISECONDS = re.compile(r"\s*\d{1,3}ms$")


class Heard(NamedTuple):
    """A message of a file. `name` is as the file has it; `said_at` is None where it does not say; `others` are all
    wordings that it may have been chosen from; `where` names its place in the file."""

    role: Role
    name: str
    text: str
    said_at: datetime | None
    where: str
    others: Sequence[str] = ()


class ChatFile(NamedTuple):
    """A file of a chat. `source` is a name for it, made of how it begins."""

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


def read_chat(text: object) -> ChatFile:
    """A chat in either form, known by its shape. A byte order mark in front is passed over.

    Raises:
        InvalidInput: neither, or without a message; says which line or message is at fault.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"The file must be a text, not {type(text).__name__}.", hint=_FORMS)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidInput("The file is empty.", hint=_FORMS)
    whole: Any = None
    with suppress(ValueError, RecursionError):
        whole = _loads(text)
    if isinstance(whole, dict) and isinstance(whole.get("messages"), list):
        whole = whole["messages"]
    if isinstance(whole, dict) and not _OF_SILLY_TAVERN & whole.keys():
        raise InvalidInput("The file is an object without a list of messages.", hint=_FORMS)
    found = _plain(whole) if isinstance(whole, list) else _silly_tavern(text)
    if not found.messages and not found.hidden:
        raise InvalidInput("There is no message in the file.", hint=_FORMS)
    return found


def _loads(text: str) -> Any:
    """JSON as other programs write it: also with control characters in its texts."""
    return json.loads(text, strict=False)


def _plain(messages: list[Any]) -> ChatFile:
    heard = []
    for n, given in enumerate(messages, start=1):
        if not isinstance(given, dict):
            raise InvalidInput(f"Message {n} does not fit: it is no object.", hint=_FORMS)
        try:
            m = _Plain.model_validate(given)
        except ValidationError as error:
            raise InvalidInput(f"Message {n}: {invalid(error).message}", hint=_FORMS) from error
        role: Role = "user" if m.role == "user" else "persona"
        heard.append(Heard(role, m.author, m.text, _moment(m.at, f"message {n}"), f"message {n}"))
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
        others = [swipe for swipe in line.swipes if isinstance(swipe, str)]
        where = f"line {number}"
        heard.append(Heard(role, line.name, said, _moment(line.send_date, where), where, others))
    return ChatFile(_source(heard), heard, hidden)


def _rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = _loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"Line {number} is no JSON.", hint=_FORMS) from None
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
        if _MOMENT.fullmatch(given):
            return _moment(int(given), where)
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(given)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        plain = _MILLISECONDS.sub("", given.strip())
        for form in _DATES:
            with suppress(ValueError):
                return datetime.strptime(plain, form).replace(tzinfo=UTC)
    raise InvalidInput(f"The date of {where} cannot be read: {shown(given)}.", hint="Write it in ISO 8601.")


def _source(heard: Sequence[Heard]) -> str:
    """A name for the chat: of how it began."""
    first = heard[0] if heard else Heard("user", "", "", None, "")
    raw = "\0".join([first.role, first.name, first.text, str(first.said_at)])
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:16]
