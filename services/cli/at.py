"""The verbs that look back at a moment: at and diff (U1)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb

_WHEN = "A turn; a moment like 2026-05-03T10:00 (UTC) or a date; or a position like 12:345."
Persona = Annotated[str | None, option("--persona", metavar="KEY", help="Of a moment: whose memories.")]
Users = Annotated[list[str] | None, option("--user", metavar="KEY", help="Of a moment: who takes part; repeat.")]
Server = Annotated[str | None, option("--server", metavar="KEY", help="Of a moment: where.")]
Channel = Annotated[str | None, option("--channel", metavar="KEY", help="Of a moment: in which room.")]
Tags = Annotated[list[str] | None, option("--tag", metavar="TAG", help="Of a moment: a tag that a reply has; repeat.")]


def at(
    here: Session,
    when: Annotated[str | None, typer.Argument(metavar="WHEN", help=_WHEN)] = None,
    turn: Annotated[str | None, option("--turn", metavar="ID", help="A turn, whatever its id looks like.")] = None,
    attempt: Annotated[int | None, option("--attempt", metavar="N", help="Which one; left out, the last.")] = None,
    persona: Persona = None,
    users: Users = None,
    server: Server = None,
    channel: Channel = None,
    tags: Tags = None,
) -> None:
    """Show lists, desk and prompt exactly as they were: in a turn, or at a moment.

    remembrancer at 2026-05-03T10:00 --persona mira --server guild-1 --user juno
    """
    from remembrancer.services.cli import at_view

    if (when is None) is (turn is None):
        raise InvalidInput("Which moment?" if turn is None else "The moment was named twice.",
                           hint="Name a turn, a moment or a position.")  # fmt: skip
    which: dict[str, Any] = {"turn": turn} if when is None else _which(when)
    which |= {"persona": persona, "users": users or (), "server": server, "channel": channel, "tags": tags or ()}
    with here.open() as memory:
        answer = memory.at(**which, attempt=attempt)
        here.show(answer, lambda screen: at_view.moment(screen, answer))


def diff(
    here: Session,
    a: Annotated[str, typer.Argument(metavar="FROM", help=_WHEN)],
    b: Annotated[str, typer.Argument(metavar="TO", help="Another one.")],
    from_attempt: Annotated[int | None, option("--from-attempt", metavar="N", help="Of the first turn.")] = None,
    to_attempt: Annotated[int | None, option("--to-attempt", metavar="N", help="Of the second turn.")] = None,
    persona: Persona = None,
    users: Users = None,
    server: Server = None,
    channel: Channel = None,
    tags: Tags = None,
) -> None:
    """Show what changed from one moment to another. A moment beside a turn is looked at where the turn was.

    remembrancer diff 2026-05-03 2026-05-10 --persona mira
    """
    from remembrancer.services.cli import at_view

    place = {"persona": persona, "users": users or None, "server": server, "channel": channel, "tags": tags or None}
    sides = [_which(a) | {"attempt": from_attempt}, _which(b) | {"attempt": to_attempt}]
    placed = [side for side in sides if "turn" not in side] or sides
    for side in placed:
        side.update(place)
    with here.open() as memory:
        answer = memory.diff(*sides)
        here.show(answer, lambda screen: at_view.difference(screen, answer))


def _which(given: str) -> dict[str, Any]:
    """What an argument means, by how it looks."""
    from remembrancer.services.when import MOMENT, POSITION

    kind = "time" if MOMENT.fullmatch(given) else "position" if POSITION.fullmatch(given) else "turn"
    return {kind: given}


def register(app: typer.Typer) -> None:
    """Add these verbs."""
    verb(app)(at)
    verb(app)(diff)
