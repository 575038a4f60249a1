"""Documents of a persona or a server: lore that replies look up (T17, R19).

A *shelf* is what a persona or a server has of them. Its stream says which documents there are; the passages of each
stand in a stream of their own, so that whoever decides on a shelf reads no texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from remembrancer.domain import events as e
from remembrancer.domain.errors import DocumentTooLarge, InvalidInput, NotFound, ShelfFull
from remembrancer.domain.identity import Subject
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import ERASED
from remembrancer.domain.visibility import Place

# -- passages ------------------------------------------------------------------------------------------------------


class Passage(NamedTuple):
    """A piece of a document: its number from 1 on, the page of a PDF, the headings above it, the text."""

    n: int
    page: int | None
    heading: str | None
    text: str

    @property
    def place(self) -> str:
        """Where in the document it stands, for people: empty where nothing says so."""
        parts = [] if self.page is None else [f"page {self.page}"]
        return ", ".join([*parts, *([self.heading] if self.heading else [])])


_BODY = TypeAdapter(tuple[Passage, ...])
PASSAGES_AN_EVENT = 100


def bodies(passages: Sequence[Passage]) -> list[str]:
    """The passages as the sealed texts of `PassagesAdded`, some hundred in each."""
    parts = (passages[at : at + PASSAGES_AN_EVENT] for at in range(0, len(passages), PASSAGES_AN_EVENT))
    return [_BODY.dump_json(tuple(part)).decode() for part in parts]


def passages_of(ev: e.PassagesAdded) -> tuple[Passage, ...]:
    """The passages of one event; none once their key is gone (D24)."""
    return () if ev.body == ERASED else _BODY.validate_json(ev.body)


# -- the shelf -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """A document on its shelf."""

    id: UUID
    owner: Subject
    name: str
    digest: str
    media_type: str
    bytes: int
    characters: int
    pages: int | None
    passages: int
    channels: tuple[str, ...]
    user: str | None
    added_at: datetime

    @property
    def keeper(self) -> Subject:
        """Under whom its vectors are kept: whoever added it, so that they go with them (D24)."""
        return keeper_of(self.owner, self.user)


def keeper_of(owner: Subject, user: str | None) -> Subject:
    """Whose are the vectors of a document: the user's who added it; without one, the owner's."""
    return owner if user is None else Subject("user", user)


def sealed_by(owner: Subject, user: str | None) -> tuple[Subject, ...]:
    """Under whose keys the texts of a document are sealed: erasing any of them makes it unreadable (D24)."""
    return (owner,) if user is None else (owner, Subject("user", user))


@dataclass(frozen=True, slots=True)
class Shelf:
    """The documents of a persona or a server, oldest first."""

    documents: Mapping[UUID, Document] = field(default_factory=dict)

    @property
    def passages(self) -> int:
        """How many passages a reply looks through, at most."""
        return sum(d.passages for d in self.documents.values())


def evolve_shelf(s: Shelf, recorded: e.Recorded) -> Shelf:
    """The shelf after one more event. A document whose key is gone is not there (D24)."""
    ev = recorded.event
    match ev:
        case e.DocumentAdded() if ERASED not in (ev.name, ev.digest):
            document = Document(
                ev.document, Subject(ev.owner_kind, ev.owner), ev.name, ev.digest, ev.media_type, ev.bytes,
                ev.characters, ev.pages, ev.passages, ev.channels, ev.user, recorded.recorded_at,
            )  # fmt: skip
            return Shelf({**s.documents, ev.document: document})
        case e.DocumentRemoved():
            return Shelf({k: d for k, d in s.documents.items() if k != ev.document})
    return s


def same_document(s: Shelf, digest: str) -> Document | None:
    """The document of the shelf that has the same bytes."""
    return next((d for d in s.documents.values() if d.digest == digest), None)


def check_room(s: Shelf, passages: int, policy: Policy) -> None:
    """Nothing, if so many more passages find room.

    Raises:
        DocumentTooLarge: they would on no shelf; ShelfFull: they do not on this one. Both name the numbers.
    """
    most = policy.document_passages
    if passages > most:
        raise too_large("passages", passages, most, "Add a part of it.", "document_passages")
    if s.passages + passages > most:
        raise ShelfFull(
            f"The document has {passages} passages, and there are {s.passages} already; at most {most} are possible.",
            hint="Remove another document first, or raise document_passages.",
            passages=passages, present=s.passages, document_passages=most,
        )  # fmt: skip


def too_large(what: str, found: int | None, most: int, hint: str, setting: str) -> DocumentTooLarge:
    """The error that names both numbers and the setting. `found` is None where nobody counted to the end."""
    has = f"more than {most}" if found is None else found
    return DocumentTooLarge(
        f"The document has {has} {what}; at most {most} are possible.",
        hint=f"{hint} The setting is {setting}.",
        found=found,
        most=most,
        setting=setting,
    )


def removed(s: Shelf, document: UUID) -> Document:
    """The document that is taken off.

    Raises:
        NotFound: it is not there, or no longer.
    """
    if (found := s.documents.get(document)) is None:
        raise no_such_document(document)
    return found


def no_such_document(document: UUID) -> NotFound:
    """The error that says so (C23, D31)."""
    return NotFound(
        f"There is no document {document}.", rule="D31", hint="`document list` shows them.", document=str(document)
    )


def owner_of(persona: str | None, server: str | None) -> Subject:
    """Whose document it is.

    Raises:
        InvalidInput: both or none.
    """
    if (persona is None) == (server is None):
        raise InvalidInput("A document belongs to a persona or to a server.", hint="Name one of the two.")
    return Subject("persona", persona) if persona is not None else Subject("server", server or "")


# -- in a reply ----------------------------------------------------------------------------------------------------


def documents_in_play(shelves: Iterable[Shelf], place: Place) -> list[Document]:
    """The documents that a reply looks through, in a fixed order: those of no channel, and those of this one (T10)."""
    every = [d for s in shelves for d in s.documents.values() if d.passages]
    return [d for d in every if not d.channels or place.channel in d.channels]


class Excerpt(NamedTuple):
    """What is printed of a passage."""

    name: str
    place: str
    text: str


def within_budget(tokens: Sequence[int], *, limit: int, budget: int) -> list[int]:
    """Which passages, given best first by their tokens, are sent: at most `limit`, together within the budget.

    One that does not fit is passed over, and a later one may.
    """
    chosen: list[int] = []
    left = budget
    for n, cost in enumerate(tokens):
        if len(chosen) < limit and cost <= left:
            chosen.append(n)
            left -= cost
    return chosen


def render_documents(excerpts: Sequence[Excerpt]) -> str:
    """The part of the late block that stands beside what was recalled; empty without passages (T17)."""
    if not excerpts:
        return ""
    parts = []
    for x in excerpts:
        name = " ".join(x.name.split())
        title = f"{name}, {x.place}" if x.place else name
        parts.append(f"## {title}\n{x.text}")
    return "\n\n".join(["# From documents", *parts])
