"""Arguments and options that several verbs share, each declared once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput


def option(*names: str, **more: Any) -> Any:
    """An option; help shows its default only where it is asked to."""
    return typer.Option(*names, **{"show_default": False, **more})


PersonaKey = Annotated[str, typer.Argument(metavar="PERSONA", help="Key of the persona.")]
MaybePersona = Annotated[str | None, typer.Argument(metavar="PERSONA", help="Key of the persona.")]
MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="Id of the memory, or its first 8 digits or more.")]

Scope = Annotated[str | None, option("--scope", metavar="server|personal|global", help="Which kind of list.")]
Subject = Annotated[str | None, option("--subject", metavar="KEY", help="The server or the user of the list.")]
OfServer = Annotated[str | None, option("--server", metavar="KEY", help="Short for --scope server --subject KEY.")]
OfUser = Annotated[str | None, option("--user", metavar="KEY", help="Short for --scope personal --subject KEY.")]
OfEveryone = Annotated[str | None, option("--global", metavar="KEY", help="Short for --scope global --subject KEY.")]

Until = Annotated[str | None, option(metavar="DATE", help="True until this UTC date, like 2026-05-12.")]
Tags = Annotated[list[str] | None, option("--tag", metavar="TAG", help="Only in replies with this tag; repeat.")]
Channels = Annotated[list[str] | None, option("--channel", metavar="KEY", help="Only in this channel; repeat.")]
TextOption = Annotated[str | None, option("--text", metavar="TEXT", help="The text; - reads standard input.")]
MakeRoom = Annotated[
    str | None,
    option("--make-room", metavar="MEMORY", help="Forget this one for it, where the list is full."),
]
ActorOption = Annotated[
    str, option("--actor", metavar="person|persona|deep|import|system", help="Who acts; left out, a person.")
]
Turn = Annotated[str | None, option("--turn", metavar="ID", help="The turn in which it happens.")]
RequestId = Annotated[
    str | None,
    option("--request-id", metavar="ID", help="The same id again gives the same answer."),
]


def which_list(
    scope: str | None, subject: str | None, server: str | None, user: str | None, everyone: str | None
) -> tuple[str | None, str | None]:
    """The scope and the subject, from the long way to say them or from a short one.

    Raises:
        InvalidInput: both ways at once, or two short ones.
    """
    short = [
        (kind, key) for kind, key in (("server", server), ("personal", user), ("global", everyone)) if key is not None
    ]
    if not short:
        return scope, subject
    if len(short) > 1 or scope is not None or subject is not None:
        raise InvalidInput(
            "The list was named in two ways.", hint="Use one of --server, --user, --global, or --scope with --subject."
        )
    return short[0]


def one_list(scope: str | None, subject: str | None) -> tuple[str, str]:
    """Both, where a verb is about one list.

    Raises:
        InvalidInput: one of them is left out.
    """
    if scope is None or subject is None:
        raise InvalidInput("Which list?", hint="Name it with --server KEY, --user KEY or --global KEY.")
    return scope, subject
