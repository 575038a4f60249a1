"""The answers of the verbs about documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.services.answers import Answer, Position


class DocumentView(Answer):
    """A document of a persona or a server. `searchable` of its `passages` can be found: the others still lack a vector.

    `characters` are code points of its text; `pages` those of a PDF; `user` is who added it, where that was said.
    """

    id: UUID
    persona: str | None
    server: str | None
    name: str
    media_type: str
    bytes: int
    characters: int
    pages: int | None
    passages: int
    searchable: int
    channels: tuple[str, ...]
    user: str | None
    added_at: datetime


class AddDocumentAnswer(Answer):
    """What adding came to: `duplicate` where the same file is there already, which is then the document."""

    status: Literal["added", "duplicate"]
    document: DocumentView
    positions: Sequence[Position] = ()


class RemoveDocumentAnswer(Answer):
    """The document as it was."""

    document: DocumentView
    positions: Sequence[Position] = ()


class DocumentsAnswer(Answer):
    """Documents, oldest first."""

    documents: list[DocumentView]


class PassageText(Answer):
    """A passage of a document and where it stands."""

    n: int
    page: int | None
    heading: str | None
    text: str


class DocumentAnswer(Answer):
    """A document and a page of its passages; `next` continues them."""

    document: DocumentView
    passages: list[PassageText]
    next: int | None
