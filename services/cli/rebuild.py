"""The verb `rebuild`: the read model made anew from the events (U3)."""

from __future__ import annotations

import gc
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.process import INTERRUPTED
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.answers_rebuild import Comparison, RebuildAnswer

STEPS = {
    "events": "Folding events",
    "indexes": "Making indexes",
    "catching up": "Catching up",
    "comparing": "Comparing",
}
GARBAGE = 100_000
"""New objects between two looks for cycles: folding makes many objects and no cycle, and looks cost a sixth."""


def rebuild(
    here: Session,
    projections: Annotated[
        list[str] | None, typer.Argument(metavar="PROJECTION", help="memory, archive, history; left out, all.")
    ] = None,
    yes: Annotated[bool, option("--yes", "-y", help="Switch without being asked where rows differ.")] = False,
    keep_old: Annotated[bool, option("--keep-old", help="Leave the old tables for now.")] = False,
    status: Annotated[bool, option("--status", help="Say how far it is, and what built what.")] = False,
    cancel: Annotated[bool, option("--cancel", help="Give up the one under way.")] = False,
    drop_old: Annotated[bool, option("--drop-old", help="Drop old tables that were left.")] = False,
) -> None:
    """Make the read model anew from the events, compare it, and switch.

    Replies go on meanwhile. Break it off at any time: the same command goes on, also beside others.

    remembrancer rebuild history
    """
    from remembrancer.services.cli import rebuild_view

    if sum((status, cancel, drop_old)) > 1 or ((status or cancel or drop_old) and (projections or yes or keep_old)):
        raise InvalidInput("--status, --cancel and --drop-old stand alone.")
    gc.set_threshold(GARBAGE)
    with here.open() as memory:
        if status:
            found = memory.rebuild_status()
            here.show(found, lambda screen: rebuild_view.status(screen, found))
            return
        if cancel or drop_old:
            answer = memory.rebuild_cancel() if cancel else memory.rebuild_drop_old()
        else:
            with ExitStack() as bars:
                told = bars.enter_context(here.screen.steps(STEPS))

                def agreed(found: Comparison) -> bool:
                    bars.close()
                    rebuild_view.comparison(here.screen, found)
                    return here.screen.ask("The new rows are not the same as the old ones. Switch?")

                asks = not yes and not here.options.json and here.screen.can_ask
                try:
                    answer = memory.rebuild(
                        projections or None, yes=agreed if asks else yes, progress=told, keep_old=keep_old
                    )
                except KeyboardInterrupt:
                    bars.close()
                    sys.stderr.write("Stopped. `remembrancer rebuild` goes on from here; --cancel gives it up.\n")
                    raise typer.Exit(INTERRUPTED) from None
        here.show(answer, lambda screen: rebuild_view.rebuilt(screen, answer))
    _leave(answer)


def _leave(answer: RebuildAnswer) -> None:
    if answer.status == "waiting":
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(rebuild)
