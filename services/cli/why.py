"""The verb `why`: the life of one memory, and how to get it back (U1)."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.session import Session, full_id
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.answers_why import WhyAnswer
    from remembrancer.services.remembrancer import Remembrancer

_ID = re.compile(r"\s*[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{1,4}){0,6}\s*|\s*[0-9a-fA-F-]{32,36}\s*")


def why(
    here: Session,
    q: Annotated[
        str | None, typer.Argument(metavar="TEXT|MEMORY", help="What you remember of it, or its id; - reads it.")
    ] = None,
    persona: Annotated[str | None, option("--persona", metavar="KEY", help="Only memories of this persona.")] = None,
    limit: Annotated[
        int, option(metavar="N", help="At most so many matches and near misses, 1 to 1000; left out, 10.")
    ] = 10,
) -> None:
    """Tell the life of a memory: also of one that was edited, forgotten, deleted or undone.

    Ends with a verdict and the command that brings it back.

    remembrancer why "Juno's cat"
    """
    from remembrancer.services.cli import why_view

    asked = here.read_text(q, None)
    if asked is None:
        raise InvalidInput("Why what?", hint="Give what you remember of it, or the id of a memory.")
    with here.open() as memories:
        answer = _answer(memories, asked, persona, limit)
        here.show(answer, lambda screen: why_view.life(screen, here, answer))


def _answer(memories: Remembrancer, asked: str, persona: str | None, limit: int) -> WhyAnswer:
    """Of an id or the beginning of one; what only looks like one, a date say, may be a text."""
    if not _ID.fullmatch(asked):
        return memories.why(asked, persona=persona, limit=limit)
    try:
        return memories.why(full_id(memories, asked.strip()), persona=persona, limit=limit)
    except NotFound:
        with suppress(NotFound):
            return memories.why(asked, persona=persona, limit=limit)
        raise


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(why)
