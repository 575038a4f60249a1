"""The verb `erase`: a person, for good (D24)."""

from __future__ import annotations

from typing import Annotated

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import RequestId, option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb


def erase(
    here: Session,
    user: Annotated[str | None, option("--user", metavar="KEY", help="Whom; the key as in saves and replies.")] = None,
    names: Annotated[
        list[str] | None, option("--name", metavar="NAME", help="What else they are called, to find mentions; repeat.")
    ] = None,
    compact: Annotated[
        bool, option("--compact", help="Also rewrite the tables, for the disk's sake: replies wait meanwhile.")
    ] = False,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    request_id: RequestId = None,
) -> None:
    """Erase a person for good: all their lists, and what was deleted or forgotten.

    remembrancer erase --user juno --name "Juno Moon"
    """
    from remembrancer.services.cli import erase_view

    if user is None:
        raise InvalidInput("Erase whom?", hint="Name them with --user KEY.")
    if not yes and (here.options.json or not here.screen.can_ask):
        raise InvalidInput("A person is erased for good.", rule="D24", hint="Say --yes to do it without being asked.")
    with here.open() as memory:
        if not yes and not erase_view.confirmed(here.screen, user, memory.list(subject=user)):
            here.screen.line("Nothing was erased.")
            raise typer.Exit(1)
        with here.screen.busy("Erasing"):
            answer = memory.erase(user, names=names or (), compact=compact, request_id=request_id)
        here.show(answer, lambda screen: erase_view.erased(screen, user, answer, compact=compact))


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(erase)
