"""TomoriBot's memory files of version 2.

A file holds buckets, one a persona: `main` or `persona-2` is the name of its place in the file, and the label is the
persona's nickname; `global` are a person's memories that every persona has. Neither servers nor people are named, and
a memory has a content and tags, no stamps. What is newest stands first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import ListKey, list_key
from remembrancer.services.formats.rows import said

VERSIONS = (2, "2", "2.0")
TYPES = ("workspace_memories", "personal_memories")
_PLACE = re.compile(r"main|selected|persona|personal|workspace|persona-\d+")


class TomoriMemory(BaseModel):
    """A memory; a plain text is one without tags."""

    model_config = ConfigDict(frozen=True)

    content: str
    tags: tuple[str, ...] = ()


class TomoriBucket(BaseModel):
    """The memories of one persona."""

    model_config = ConfigDict(frozen=True)

    name: str
    label: str = ""
    memories: tuple[
        Annotated[TomoriMemory, BeforeValidator(lambda m: {"content": m} if isinstance(m, str) else m)], ...
    ]


class TomoriData(BaseModel):
    """What a file holds."""

    model_config = ConfigDict(frozen=True)

    buckets: tuple[TomoriBucket, ...]


class TomoriFile(BaseModel):
    """A file of version 2."""

    model_config = ConfigDict(frozen=True)

    type: Literal["workspace_memories", "personal_memories"]
    exported_at: Any = None
    data: TomoriData

    def key(self, bucket: TomoriBucket, persona: str | None, subject: str | None) -> ListKey:
        """The list that a bucket's memories go to.

        Raises:
            InvalidInput: nobody says of which server or user these are.
        """
        if subject is None:
            what = "server" if self.type == "workspace_memories" else "user"
            raise InvalidInput(
                f"A TomoriBot file does not say which {what} its memories are of.",
                hint=f"Give the {what} as the subject.",
            )
        if self.type == "workspace_memories":
            return list_key(persona or _persona_of(bucket), "server", subject)
        if persona is None and bucket.name == "global":
            return list_key(None, "global", subject)
        return list_key(persona or _persona_of(bucket), "personal", subject)


def _persona_of(bucket: TomoriBucket) -> str:
    return bucket.label if bucket.label.strip() and _PLACE.fullmatch(bucket.name) else bucket.name


def read_tomori(data: object) -> TomoriFile:
    """The file, checked as a whole.

    Raises:
        InvalidInput: it is something else, of another version, or does not fit.
    """
    if not isinstance(data, Mapping) or "version" not in data or "type" not in data:
        raise InvalidInput("This is no file of TomoriBot: it has no version and type.", hint="Export it again.")
    if data["version"] not in VERSIONS:
        raise InvalidInput(
            f"The TomoriBot file has version {data['version']!r}, and only version 2 can be read.",
            hint="Update TomoriBot and export again.",
        )
    if data["type"] not in TYPES:
        raise InvalidInput(
            f"A TomoriBot file of type {data['type']!r} has no memories that can be imported.",
            hint=f"Export {' or '.join(TYPES)}.",
        )
    try:
        return TomoriFile.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(
            f"The TomoriBot file does not fit: {said(error)}.", hint="Was it changed by hand?"
        ) from error
