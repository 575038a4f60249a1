"""The verb `reply`: what a message would bring to mind, as a reply of the persona records it."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import PersonaKey, RequestId, option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb


def reply(
    here: Session,
    persona: PersonaKey,
    text: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The newest message; - reads standard input.")
    ] = None,
    message: Annotated[str | None, option("--message", metavar="TEXT", help="The same as an option.")] = None,
    users: Annotated[list[str] | None, option("--user", metavar="KEY", help="Who takes part; repeat.")] = None,
    server: Annotated[str | None, option(metavar="KEY", help="Where.")] = None,
    channel: Annotated[str | None, option(metavar="KEY", help="In which room of it.")] = None,
    tags: Annotated[list[str] | None, option("--tag", metavar="TAG", help="Tagged memories to use; repeat.")] = None,
    chat: Annotated[str | None, option(metavar="KEY", help="In which conversation.")] = None,
    platform: Annotated[
        str, option(metavar="web|discord|telegram|api", help="Where people talk; left out, api.")
    ] = "api",
    turn: Annotated[str | None, option(metavar="ID", help="An id for this turn.")] = None,
    memory: Annotated[str, option(metavar="on|off", help="off: a chat without memory; left out, on.")] = "on",
    model_context: Annotated[
        int | None, option("--model-context", metavar="N", help="Tokens that the chat model reads.")
    ] = None,
    request_id: RequestId = None,
    show_prompt: Annotated[bool, option("--show-prompt", help="Print both blocks of the prompt.")] = False,
) -> None:
    """Search and desk of one reply. It counts: what matches is used, the rest gains a day.

    remembrancer reply mira "how is Mochi?" --server guild-1 --user juno
    """
    from remembrancer.services.cli import show

    if text is not None and message is not None:
        raise InvalidInput("The message was given twice.", hint="Give it as an argument or with --message.")
    said = here.read_text(text, message)
    if said is None:
        raise InvalidInput("A reply to what?", hint="Give the newest message; - reads standard input.")
    with here.open() as memories:
        answer = memories.reply(
            persona,
            message=said,
            users=users or (),
            server=server,
            channel=channel,
            tags=tags or (),
            chat=chat,
            platform=cast("Any", platform),  # checked behind
            turn=turn,
            memory=cast("Any", memory),
            model_context=model_context,
            request_id=request_id,
        )
        here.show(answer, lambda screen: show.reply(screen, answer, show_prompt=show_prompt))


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(reply)
