"""All verbs together."""

from __future__ import annotations

import sys
from inspect import Parameter
from typing import Annotated

import typer

from remembrancer.services.cli import (
    at,
    chat,
    configure,
    demo,
    document,
    erase,
    lookback,
    memories,
    operate,
    rebuild,
    replies,
    summary,
    transfer,
    undo,
    ways_in,
    what_if,
    why,
)
from remembrancer.services.cli.verb import group

app = typer.Typer(
    name="remembrancer",
    help="Memory for characters that talk: what they remember, why they forgot it, and how to bring it back.",
    epilog="Try it: remembrancer demo. Exit codes: 0 done, 1 refused with the reason, 2 usage.",
    add_completion=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"remembrancer {version('remembrancer')}")
        raise typer.Exit


_VERSION = Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Say which one this is.")]
group(app, Parameter("version", Parameter.KEYWORD_ONLY, default=False, annotation=_VERSION))
for part in (
    demo, memories, replies, chat, summary, document, undo, lookback, why, at, what_if, transfer, operate, rebuild,
    erase, configure, ways_in,
):  # fmt: skip
    part.register(app)
