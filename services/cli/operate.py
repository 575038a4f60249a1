"""The verbs of whoever runs it: doctor, calibrate, change-model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb


def doctor(
    here: Session,
    repair: Annotated[bool, option("--repair", help="Take up again what the projections had to leave.")] = False,
) -> None:
    """Check this installation. Exit code 1 where something is not well."""
    from remembrancer.services.cli import show

    with here.open() as memory, here.screen.busy("Looking"):
        report = memory.engine.doctor.repair() if repair else memory.doctor()
    here.show(report, lambda screen: show.doctor(screen, report))
    if not report.ok:
        raise typer.Exit(1)


def calibrate(
    here: Session,
    probes: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Your own probes; left out, ours in six languages.")
    ] = None,
) -> None:
    """Measure the match threshold for the model in use."""
    from remembrancer.services.cli import show

    with here.open() as memory, here.screen.progress("Calibrating") as progress:
        measured = memory.calibrate(probes, progress=progress)
    here.show(measured, lambda screen: show.calibration(screen, measured))


def change_model(here: Session) -> None:
    """Bring this tenant to the embedding model of the settings. Replies go on with the old one until it is done."""
    with here.open() as memory, here.screen.progress("Embedding") as progress:
        now = memory.change_model(progress=progress)
    here.show(now, lambda screen: screen.line(f"{now.serving} serves since {now.since:%Y-%m-%d %H:%M:%S} UTC."))


def register(app: typer.Typer) -> None:
    """Add these verbs."""
    verb(app)(doctor)
    verb(app)(calibrate)
    verb(app)(change_model)
