"""The verb `what-if`: the same history under other numbers (U3)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import (
    OfEveryone,
    OfServer,
    OfUser,
    RequestId,
    Scope,
    Subject,
    option,
    which_list,
)
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb


def what_if(
    here: Session,
    rest_after_days: Annotated[int | None, option(metavar="N", help="Unused days until a memory rests.")] = None,
    match_limit: Annotated[int | None, option(metavar="N", help="Memories that a message matches.")] = None,
    match_threshold: Annotated[float | None, option(metavar="X", help="Lowest score of a match.")] = None,
    list_capacity: Annotated[int | None, option(metavar="N", help="Memories that a list holds.")] = None,
    desk_limit: Annotated[int | None, option(metavar="N", help="Memories that are always sent.")] = None,
    pin_capacity: Annotated[int | None, option(metavar="N", help="Pinned memories of a list.")] = None,
    persona: Annotated[str | None, option("--persona", metavar="KEY", help="Whose; left out, everybody's.")] = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    apply: Annotated[bool, option("--apply", help="Record the recounted use; what was forgotten stays so.")] = False,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    request_id: RequestId = None,
) -> None:
    """See what other numbers would have come to: the same history, counted again.

    Nothing is written without --apply.

    remembrancer what-if --rest-after-days 14
    """
    from remembrancer.services.cli import what_if_view

    numbers: dict[str, Any] = {
        "rest_after_days": rest_after_days, "match_limit": match_limit, "match_threshold": match_threshold,
        "list_capacity": list_capacity, "desk_limit": desk_limit, "pin_capacity": pin_capacity,
    }  # fmt: skip
    if not any(value is not None for value in numbers.values()):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in numbers)
        raise InvalidInput("What if what?", rule="U3", hint=f"Name at least one of {named}.")
    scope, subject = which_list(scope, subject, server, user, everyone)
    if apply and not yes and (here.options.json or not here.screen.can_ask):
        raise InvalidInput("Counters are recorded anew.", rule="U3", hint="Say --yes to do it without being asked.")
    asked: dict[str, Any] = {"persona": persona, "scope": scope, "subject": subject, **numbers}
    with here.open() as memory:
        with here.screen.progress("Folding the history") as progress:
            answer = memory.what_if(**asked, apply=apply and yes, request_id=request_id, progress=progress)
        here.show(answer, lambda screen: what_if_view.answered(screen, answer))
        if not apply or yes:
            return
        if not answer.recounted:
            what_if_view.recorded(here.screen, answer)
            return
        if not what_if_view.confirmed(here.screen):
            raise typer.Exit(1)
        with here.screen.progress("Recording") as progress:
            done = memory.what_if(**asked, apply=True, request_id=request_id, progress=progress)
        what_if_view.recorded(here.screen, done)


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app, "what-if")(what_if)
