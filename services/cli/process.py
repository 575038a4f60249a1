"""What a command is to the shell that runs it: UTF-8, signals, exit codes, and no noise of libraries."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130
FAILED = 1
USAGE = 2


def run(args: Sequence[str]) -> int:
    """Run one command. Returns its exit code; nothing is raised but what ends the process on purpose."""
    _open_streams()
    _speak_utf8()
    _be_quiet()
    _close_on_signals()
    try:
        code = call(args)
        sys.stdout.flush()
    except BrokenPipeError:
        return had_enough()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:  # a full disk behind `> file`
        return cannot_write(error)
    return code


def call(args: Sequence[str]) -> int:
    """Run one command in this process as it is. Returns the exit code; every error has been told."""
    import typer

    from remembrancer.domain.errors import InvalidInput
    from remembrancer.services.cli.app import app
    from remembrancer.services.cli.problems import tell

    try:
        # Not standalone: usage errors come back, so that with --json they are JSON like every other.
        code = typer.main.get_command(app)(args, prog_name="remembrancer", standalone_mode=False)
    except typer.Abort:  # the end of the input, where a question was asked
        return USAGE
    except Exception as error:
        if not hasattr(error, "format_message"):  # a usage error; its class moved between versions of typer
            raise
        ctx = getattr(error, "ctx", None)
        path = ctx.command_path if ctx else "remembrancer"
        return tell(
            InvalidInput(error.format_message(), hint=f"`{path} --help` shows what there is."), as_json=wants_json(args)
        )
    return code if isinstance(code, int) else 0


def wants_json(args: Sequence[str]) -> bool:
    """Is --json among the options, whether or not the rest of the line can be understood?"""
    options = args[: args.index("--")] if "--" in args else args
    return "--json" in options


def had_enough() -> int:
    """The reader is gone, as in `remembrancer list | head`: what is left goes nowhere, and all is well."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def cannot_write(error: OSError) -> int:
    """What is said where the output finds no room."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"error: The output cannot be written: {error.strerror}.", file=sys.stderr)  # noqa: T201
    return FAILED


def _open_streams() -> None:
    """A stream that the caller has closed is one that goes nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def _speak_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _be_quiet() -> None:
    """Warnings and log lines are for developers: REMEMBRANCER_LOG=debug shows them, on stderr."""
    level = os.environ.get("REMEMBRANCER_LOG", "").upper()
    if level in logging.getLevelNamesMapping():
        logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        return
    logging.getLogger().addHandler(logging.NullHandler())
    logging.lastResort = None
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def _close_on_signals() -> None:
    """An end by SIGTERM or SIGHUP closes as tidily as any other, so that no database is left running."""

    def leave(number: int, _frame: object) -> NoReturn:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
