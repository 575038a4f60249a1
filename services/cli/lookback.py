"""The verb `history`: what happened, in plain sentences."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import (
    MaybePersona,
    OfEveryone,
    OfServer,
    OfUser,
    Scope,
    Subject,
    option,
    which_list,
)
from remembrancer.services.cli.session import Session, full_id
from remembrancer.services.cli.verb import verb

_MOMENT = "2026-05-03T10:00Z, or a date"


def history(
    here: Session,
    persona: MaybePersona = None,
    persona_option: Annotated[str | None, option("--persona", hidden=True)] = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    memory: Annotated[str | None, option("--memory", metavar="MEMORY", help="Of this one, also when gone.")] = None,
    document: Annotated[
        str | None, option("--document", metavar="DOCUMENT", help="Of this one, also when gone.")
    ] = None,
    turn: Annotated[str | None, option(metavar="ID", help="Of this turn.")] = None,
    since: Annotated[str | None, option(metavar="MOMENT", help=f"From: {_MOMENT}.")] = None,
    until: Annotated[str | None, option(metavar="MOMENT", help=f"Before: {_MOMENT}.")] = None,
    kind: Annotated[
        list[str] | None, option("--kind", metavar="EVENT", help="Only these events, like MemoryEvicted; repeat.")
    ] = None,
    limit: Annotated[int, option(metavar="N", help="At most so many lines, 1 to 1000; left out, 100.")] = 100,
    after: Annotated[str | None, option(metavar="NEXT", help="Go on after a page.")] = None,
) -> None:
    """Tell what happened, in plain sentences.

    To a persona, a list or a memory, or in a turn; oldest first.

    remembrancer history mira --server guild-1
    """
    from remembrancer.services.cli import show

    scope, subject = which_list(scope, subject, server, user, everyone)
    if (scope is None) is not (subject is None):
        raise InvalidInput("Which list?", hint="Name it with --server KEY, --user KEY or --global KEY.")
    with here.open() as memories:
        answer = memories.history(
            persona=persona if persona is not None else persona_option,
            scope=scope,
            subject=subject,
            memory=None if memory is None else full_id(memories, memory),
            document=document,
            turn=turn,
            since=_moment(since),
            until=_moment(until),
            kinds=kind,
            limit=limit,
            after=after,
        )
        here.show(answer, lambda screen: show.history(screen, answer))


def _moment(given: str | None) -> datetime | None:
    """A moment; a date is its beginning, UTC."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{given} 00:00Z" if len(given) == len("2026-05-03") else given)
    except ValueError:
        raise InvalidInput(f"{given!r} is not a moment.", hint=f"Write {_MOMENT}.") from None
    if moment.tzinfo is None:
        raise InvalidInput(f"{given!r} has no time zone.", hint=f"Write {_MOMENT}.")
    return moment


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(history)
