"""The verbs on one list: save, edit, delete, list, pin, unpin, clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import (
    ActorOption,
    Channels,
    MakeRoom,
    MaybePersona,
    MemoryId,
    OfEveryone,
    OfServer,
    OfUser,
    RequestId,
    Scope,
    Subject,
    Tags,
    TextOption,
    Turn,
    Until,
    one_list,
    option,
    which_list,
)
from remembrancer.services.cli.session import Session, full_id
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.answers import ClearAnswer
    from remembrancer.services.remembrancer import Remembrancer


def save(
    here: Session,
    persona: MaybePersona = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="One sentence or a few; - reads standard input.")
    ] = None,
    text_option: TextOption = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    until: Until = None,
    tags: Tags = None,
    channels: Channels = None,
    make_room: MakeRoom = None,
    actor: ActorOption = "person",
    turn: Turn = None,
    request_id: RequestId = None,
) -> None:
    """Save a memory.

    remembrancer save mira --server guild-1 "Juno's cat is named Mochi"
    """
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    scope, subject = one_list(*which_list(scope, subject, server, user, everyone))
    if scope == "global" and text is None and text_option is None:
        persona, text = None, persona  # a global memory is every persona's: its text may stand alone
    said = here.read_text(text, text_option)
    if said is None:
        raise InvalidInput("Save what?", hint="Give the text as an argument, with --text, or - for standard input.")
    with here.open() as memory:
        answer = memory.save(
            persona,
            scope=scope,
            subject=subject,
            text=said,
            actor=checked_actor(actor),
            turn=turn,
            until=until,
            tags=tags or (),
            channels=channels or (),
            make_room=None if make_room is None else full_id(memory, make_room),
            request_id=request_id,
        )
        here.show(answer, lambda screen: show.saved(screen, answer))


def edit(
    here: Session,
    memory: MemoryId,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The new text; - reads standard input.")] = None,
    text_option: TextOption = None,
    until: Annotated[str | None, option(metavar="DATE|none", help="A new date, or none.")] = None,
    tags: Tags = None,
    channels: Channels = None,
    no_tags: Annotated[bool, option("--no-tags", help="Take all tags off.")] = False,
    no_channels: Annotated[bool, option("--no-channels", help="Everywhere again.")] = False,
    actor: ActorOption = "person",
    turn: Turn = None,
    request_id: RequestId = None,
) -> None:
    """Edit a memory. What is left out stays; with nothing at all, a person confirms and protects it."""
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    if (tags and no_tags) or (channels and no_channels):
        raise InvalidInput("Set them or take them off, not both.")
    changes: dict[str, Any] = {
        "text": here.read_text(text, text_option),
        "until": until,
        "tags": [] if no_tags else tags or None,
        "channels": [] if no_channels else channels or None,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if until == "none":
        given["until"] = None
    with here.open() as memories:
        answer = memories.edit(
            full_id(memories, memory),
            **given,
            actor=checked_actor(actor),
            turn=turn,
            request_id=request_id,
        )
        here.show(answer, lambda screen: show.changed(screen, "Edited", answer))


def delete(
    here: Session, memory: MemoryId, actor: ActorOption = "person", turn: Turn = None, request_id: RequestId = None
) -> None:
    """Delete a memory. What a person deletes, the persona does not learn again."""
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    with here.open() as memories:
        answer = memories.delete(
            full_id(memories, memory), actor=checked_actor(actor), turn=turn, request_id=request_id
        )
        here.show(answer, lambda screen: show.changed(screen, "Deleted", answer))


def list_(
    here: Session,
    persona: MaybePersona = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    state: Annotated[str | None, option(metavar="active|resting|expired", help="Only these.")] = None,
) -> None:
    """List memories: of one persona, of one list, or all."""
    from remembrancer.services.cli import show

    scope, subject = which_list(scope, subject, server, user, everyone)
    with here.open() as memory:
        answer = memory.list(persona, scope=scope, subject=subject, state=state)
        here.show(answer, lambda screen: show.lists(screen, answer))


def pin(
    here: Session, memory: MemoryId, actor: ActorOption = "person", turn: Turn = None, request_id: RequestId = None
) -> None:
    """Pin a memory: always sent, out of reach of the AI."""
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    with here.open() as memories:
        answer = memories.pin(full_id(memories, memory), actor=checked_actor(actor), turn=turn, request_id=request_id)
        here.show(answer, lambda screen: show.changed(screen, "Pinned", answer))


def unpin(
    here: Session,
    memory: MemoryId,
    make_room: MakeRoom = None,
    actor: ActorOption = "person",
    turn: Turn = None,
    request_id: RequestId = None,
) -> None:
    """Unpin a memory: it counts unused days from 0."""
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    with here.open() as memories:
        answer = memories.unpin(
            full_id(memories, memory),
            make_room=None if make_room is None else full_id(memories, make_room),
            actor=checked_actor(actor),
            turn=turn,
            request_id=request_id,
        )
        here.show(answer, lambda screen: show.changed(screen, "Unpinned", answer))


def clear(
    here: Session,
    persona: MaybePersona = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    pinned: Annotated[bool, option("--pinned", help="The second step: the pinned ones, after the others.")] = False,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    actor: ActorOption = "person",
    request_id: RequestId = None,
) -> None:
    """Clear a list for good.

    First all that is not pinned; then, asked for separately, the pinned ones.
    """
    from remembrancer.services.checks import checked_actor
    from remembrancer.services.cli import show

    scope, subject = one_list(*which_list(scope, subject, server, user, everyone))
    asks = here.screen.can_ask and not here.options.json
    if not yes and not asks:
        raise InvalidInput("A list is cleared for good.", rule="R18", hint="Say --yes to do it without being asked.")

    def step(memory: Remembrancer, with_pinned: bool, request_id: str | None) -> ClearAnswer:
        return memory.clear(
            persona,
            scope=scope,
            subject=subject,
            pinned=with_pinned,
            actor=checked_actor(actor),
            request_id=request_id,
        )

    with here.open() as memory:
        if not yes and not here.screen.ask(show.question(memory.list(persona, scope=scope, subject=subject), pinned)):
            here.screen.line("Nothing was cleared.")
            raise typer.Exit(1)
        answer = step(memory, pinned, request_id)
        here.show(answer, lambda screen: screen.line(answer.message))
        if asks and not yes and answer.pinned_left and here.screen.ask(show.second_question(answer.pinned_left)):
            second = step(memory, True, None)
            here.screen.line(second.message)


def register(app: typer.Typer) -> None:
    """Add these verbs."""
    for function, name in (
        (save, None), (edit, None), (delete, None), (list_, "list"), (pin, None), (unpin, None), (clear, None),
    ):  # fmt: skip
        verb(app, name)(function)
