"""The group `document`: what a persona or a server can look things up in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.text import Text

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.services.cli.arguments import Channels, RequestId, option
from remembrancer.services.cli.screen import Column, Screen, one_line, shown
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import group, verb

if TYPE_CHECKING:
    from remembrancer.services.answers_documents import DocumentAnswer, DocumentsAnswer, DocumentView
    from remembrancer.services.remembrancer import Remembrancer

OfPersona = Annotated[str | None, option("--persona", metavar="KEY", help="The persona that it belongs to.")]
OfServer = Annotated[str | None, option("--server", metavar="KEY", help="The server that it belongs to.")]
DocumentId = Annotated[
    str, typer.Argument(metavar="DOCUMENT", help="Id of the document, or its first 8 digits or more.")
]
_SHORT = 8


def document_add(
    here: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text, markdown or PDF.")],
    persona: OfPersona = None,
    server: OfServer = None,
    name: Annotated[str | None, option("--name", metavar="NAME", help="Known as this; left out, the file's.")] = None,
    channels: Channels = None,
    user: Annotated[
        str | None, option("--user", metavar="KEY", help="Who adds it: then it is erased with them.")
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Add a document that replies look things up in.

    remembrancer document add lore.md --persona mira
    """
    with here.open() as memory, here.screen.progress("Reading") as progress:
        answer = memory.add_document(
            file, persona=persona, server=server, name=name, channels=channels or (), user=user, request_id=request_id,
            progress=progress,
        )  # fmt: skip
    here.show(answer, lambda screen: _added(screen, answer.status, answer.document))


def document_list(here: Session, persona: OfPersona = None, server: OfServer = None) -> None:
    """List the documents of a persona, of a server, or all."""
    with here.open() as memory:
        answer = memory.documents(persona=persona, server=server)
    here.show(answer, lambda screen: _list(screen, answer))


def document_show(
    here: Session,
    document: DocumentId,
    limit: Annotated[int, option(metavar="N", help="At most so many passages, 1 to 1000; left out, 20.")] = 20,
    after: Annotated[int, option(metavar="NUMBER", help="Go on after a page.")] = 0,
) -> None:
    """Show a document and its passages."""
    with here.open() as memory:
        answer = memory.document(_resolve(memory, document), limit=limit, after=after)
    here.show(answer, lambda screen: _show(screen, answer))


def document_remove(here: Session, document: DocumentId, request_id: RequestId = None) -> None:
    """Remove a document: no reply finds it any more."""
    with here.open() as memory:
        answer = memory.remove_document(_resolve(memory, document, request_id), request_id=request_id)
    here.show(answer, lambda screen: screen.line(Text("Removed", "bold"), f" {answer.document.name}."))


def _resolve(memory: Remembrancer, given: str, request_id: str | None = None) -> UUID | str:
    """The id that this is, or that begins like this. With a request id only a whole one: what it names may be gone.

    Raises:
        InvalidInput: more than one document begins like that; NotFound: none does (D31).
    """
    digits = given.strip().lower().replace("-", "")
    if request_id is not None or not _SHORT <= len(digits) < 32:
        return given
    found = [d.id for d in memory.documents().documents if d.id.hex.startswith(digits)]
    if not found:
        raise NotFound(f"There is no document {given}…", rule="D31", hint="`document list` shows the ids.")
    if len(found) > 1:
        raise InvalidInput(f"More than one document begins with {given}.", hint="Give more of its id.")
    return found[0]


def _added(screen: Screen, status: str, d: DocumentView) -> None:
    if status == "duplicate":
        screen.line(Text("There already", "bold"), f": {_whole(d)}.")
    else:
        screen.line(Text("Added", "bold green"), f" {_whole(d)}.")
    if d.searchable < d.passages:
        left = d.passages - d.searchable
        screen.line(Text(f"{left} of them can be found once the embedding model has read them.", "dim"))


def _whole(d: DocumentView) -> str:
    pages = "" if d.pages is None else f"{d.pages} page{'s' * (d.pages != 1)}, "
    return f"{d.name} ({d.id.hex[:_SHORT]}): {pages}{d.passages} passage{'s' * (d.passages != 1)}"


_LIST = (
    Column("id", style="dim"), Column("of"), Column("name", wide=True), Column("pages", number=True),
    Column("passages", number=True), Column("found by", number=True), Column("channels"), Column("added by"),
    Column("added"),
)  # fmt: skip


def _list(screen: Screen, answer: DocumentsAnswer) -> None:
    if not answer.documents:
        screen.line("There are no documents.")
    screen.table(_LIST, [_row(d) for d in answer.documents])


def _row(d: DocumentView) -> list[str]:
    of = f"persona {d.persona}" if d.persona is not None else f"server {d.server}"
    found = "" if d.searchable == d.passages else f"{d.searchable} yet"
    return [
        d.id.hex[:_SHORT], one_line(of), one_line(d.name), "" if d.pages is None else str(d.pages), str(d.passages),
        found, one_line(", ".join(d.channels)), one_line(d.user or ""), f"{d.added_at:%Y-%m-%d %H:%M}",
    ]  # fmt: skip


def _show(screen: Screen, answer: DocumentAnswer) -> None:
    screen.heading(answer.document.name, str(answer.document.id))
    screen.table(_LIST, [_row(answer.document)])
    for p in answer.passages:
        place = ", ".join([*([f"page {p.page}"] if p.page is not None else []), *([p.heading] if p.heading else [])])
        screen.line("")
        screen.line(Text(f"{p.n}", "bold"), Text(shown(f"  {place}") if place else "", "dim"))
        screen.block(p.text)
    if answer.next is not None:
        screen.line("")
        screen.labelled("more", f"--after {answer.next}", "bold")


def register(app: typer.Typer) -> None:
    """Add this group."""
    documents = typer.Typer(
        help="What a persona or a server can look things up in.", rich_markup_mode=app.rich_markup_mode
    )
    group(documents)
    for name, function in (
        ("add", document_add), ("list", document_list), ("show", document_show), ("remove", document_remove),
    ):  # fmt: skip
        verb(documents, name)(function)
    app.add_typer(documents, name="document")
