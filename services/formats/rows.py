"""Our own format: lines of JSON, each complete in itself (docs/import-export.md).

The first line is the header. The others have a `kind`: what a tenant, a persona, a person or a server has set, and
memories with everything that is known of them, so that what was exported and imported exports as the same lines again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
    ValidationError,
)

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.events import Actor, Source
from remembrancer.domain.identity import EVERY_PERSONA, Scope
from remembrancer.domain.memory import State

FORMAT: Literal["remembrancer"] = "remembrancer"
VERSION: Literal[1] = 1

Moment = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class Row(BaseModel):
    """Base of all lines. A field that we do not know is an error: it would be lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> dict[str, Any]:
        """The row as plain JSON."""
        return self.model_dump(mode="json")


class Header(Row):
    """The first line."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["remembrancer"] = FORMAT
    version: Literal[1] = VERSION
    tenant: str
    exported_at: Moment
    persona: str | None = None
    """Set where only one persona and its people were exported."""
    longest: int = Field(0, ge=0, le=20_000)
    """So many characters a text of this file may have, whatever the policy is where it is imported (D8)."""


class PolicyRow(Row):
    """The numbers that the tenant itself has set (SPEC 6)."""

    kind: Literal["policy"] = "policy"
    own: dict[str, Any]


class PersonaRow(Row):
    """What is set for a persona (T16, R17)."""

    kind: Literal["persona"] = "persona"
    persona: str
    name: str
    instructions: str = ""
    learns: StrictBool = True
    detail: Literal["key_events", "balanced", "detailed"] | None = None
    deleted: StrictBool = False


class PersonRow(Row):
    """What a person has set (T10, R17)."""

    kind: Literal["person"] = "person"
    user: str
    privacy: Literal["everywhere", "private_chats_only", "nowhere"] = "everywhere"
    not_learning: tuple[str, ...] = ()
    details: dict[str, Literal["key_events", "balanced", "detailed"]] = {}


class ServerRow(Row):
    """What a server has set (T10, T15, R17)."""

    kind: Literal["server"] = "server"
    server: str
    notices: Literal["everyone", "managers", "hidden"] = "everyone"
    blocklist: tuple[str, ...] = ()
    personal_memories: StrictBool = True
    private: StrictBool = False
    not_learning: tuple[str, ...] = ()


class MemoryRow(Row):
    """A memory. Only scope, subject and text have to be there, and the persona where the scope is not global.

    Moments are aware UTC, `unused_days` is the counter of T1. `state` follows from the counter and the policy: it is
    written for readers and not read.
    """

    kind: Literal["memory"] = "memory"
    id: UUID | None = None
    persona: str = EVERY_PERSONA
    scope: Scope
    subject: str
    text: str
    state: State | None = None
    until: date | None = None
    unused_days: int = Field(0, ge=0, le=1_000_000, strict=True)
    pinned: StrictBool = False
    protected: StrictBool = False
    actor: Actor = "import"
    created_at: Moment | None = None
    updated_at: Moment | None = None
    last_matched_at: Moment | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    source: Source = Source()


AnyRow = PolicyRow | PersonaRow | PersonRow | ServerRow | MemoryRow
_ROW: TypeAdapter[AnyRow] = TypeAdapter(Annotated[AnyRow, Field(discriminator="kind")])


def read_header(rows: Iterator[Any]) -> Header:
    """The header, taken from the front of the rows.

    Raises:
        InvalidInput: there is none, or a version of ours that is too new; then nothing else is worth reading.
    """
    first = next(rows, None)
    if not isinstance(first, Mapping) or first.get("format") != FORMAT:
        raise InvalidInput(
            "This is no export of Remembrancer: its first line is not our header.",
            hint='It begins with {"format":"remembrancer","version":1,…}; `remembrancer export` writes it.',
        )
    version = first.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InvalidInput(
            f"The file has version {version} of our format, and this installation reads up to {VERSION}.",
            hint="Update this installation.",
        )
    try:
        return Header.model_validate(first)
    except ValidationError as error:
        raise InvalidInput(f"The header does not fit: {said(error)}.", hint="Was the file changed by hand?") from error


def read_row(raw: object) -> AnyRow:
    """One line after the header.

    Raises:
        InvalidInput: it does not fit; the error says which field and why.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"it is not a JSON object, but {type(raw).__name__}")
    try:
        return _ROW.validate_python(raw)
    except ValidationError as error:
        raise InvalidInput(said(error, below=1)) from error


def said(error: ValidationError, *, below: int = 0) -> str:
    """What pydantic found, in a line, without what was given. Fields are named from a depth of `below` on."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc'][below:])) or 'row'}: {e['msg'][:1].lower()}{e['msg'][1:]}"
        for e in error.errors(include_url=False, include_input=False)
    )


def as_moment(text: object) -> datetime | None:
    """A moment as other products write it, or None."""
    try:
        return _MOMENT.validate_python(text)
    except ValidationError:
        return None


_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
