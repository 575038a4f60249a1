"""The verbs that take back: undo-turn, rewind, restore (D14, U2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.services.cli.arguments import MemoryId, RequestId
from remembrancer.services.cli.session import Session, full_id
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.answers import UndoAnswer
    from remembrancer.services.cli.screen import Screen

TurnId = Annotated[str, typer.Argument(metavar="TURN", help="The turn, as `reply` and `history` show it.")]


def undo_turn(here: Session, turn: TurnId, request_id: RequestId = None) -> None:
    """Take back what the persona and the search did in a turn; what people did stays."""
    with here.open() as memory:
        answer = memory.undo_turn(turn, request_id=request_id)
        here.show(answer, lambda screen: _told(screen, answer))


def rewind(here: Session, turn: TurnId, request_id: RequestId = None) -> None:
    """Take back all turns after this one in its chat, newest first."""
    with here.open() as memory:
        answer = memory.rewind(turn, request_id=request_id)
        here.show(answer, lambda screen: _told(screen, answer))


def restore(here: Session, memory: MemoryId, request_id: RequestId = None) -> None:
    """Bring back a memory that was forgotten or deleted: counter 0, protected from now on."""
    from remembrancer.services.cli import show

    with here.open() as memories:
        answer = memories.restore(full_id(memories, memory), request_id=request_id)
        what = "Restored" if answer.positions else "It was not gone; nothing was changed:"
        here.show(answer, lambda screen: show.changed(screen, what, answer))


def _told(screen: Screen, answer: UndoAnswer) -> None:
    """What was taken back, memory by memory, and what stays for which reason."""
    said = False
    for what, memories in (("gone", answer.removed), ("back", answer.restored), ("as before", answer.reverted)):
        for m in memories:
            screen.line(f"{what}: {m.text}  {m.memory}")
            said = True
    for kept in answer.kept:
        screen.line(f"stays, since {kept.why}: {kept.text}  {kept.memory}")
        said = True
    if not said:
        which = ", ".join(answer.turns) or "later turns"
        if answer.positions:
            screen.line(f"No memory came or went with {which}; its matches are taken back.")
        else:
            screen.line(f"Nothing of {which} is left to take back.")


def register(app: typer.Typer) -> None:
    """Add these verbs."""
    verb(app, "undo-turn")(undo_turn)
    verb(app)(rewind)
    verb(app)(restore)
