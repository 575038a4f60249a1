"""How an error is told: a sentence for people on stderr, or with --json a problem on stdout (RFC 9457)."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from remembrancer.domain.errors import RemembrancerError
from remembrancer.services.cli.options import Options
from remembrancer.services.cli.process import INTERRUPTED, cannot_write, had_enough

REPORT = "This is a mistake in Remembrancer. Please report it to the project, with what `--debug` shows."


@contextmanager
def told(options: Options) -> Iterator[None]:
    """Tell what goes wrong inside, and leave with the exit code that stands for it.

    Raises:
        typer.Exit: with 1, 2 or 130.
    """
    try:
        yield
    except RemembrancerError as error:
        if options.debug:
            traceback.print_exc()
        raise typer.Exit(tell(error, as_json=options.json)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise typer.Exit(had_enough()) from None
    except Exception as error:
        if hasattr(error, "exit_code"):  # typer's own ways to leave
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # behind `> file`
            raise typer.Exit(cannot_write(error)) from None
        if options.debug:
            traceback.print_exc()
        said = " ".join(str(error).split())
        unexpected = RemembrancerError(f"{type(error).__name__}: {said}"[:300], hint=REPORT)
        raise typer.Exit(tell(unexpected, as_json=options.json)) from None


def problem(error: RemembrancerError) -> dict[str, Any]:
    """The error as RFC 9457 has it, with the rule, what to do, and its facts."""
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).capitalize()
    fixed = {
        "type": error.type,
        "title": title,
        "status": error.status,
        "detail": error.message,
        "rule": error.rule,
        "hint": error.hint,
    }
    return {**fixed, **{name: value for name, value in error.details.items() if name not in fixed}}


def tell(error: RemembrancerError, *, as_json: bool) -> int:
    """Say what is wrong. Returns the exit code."""
    if as_json:
        from remembrancer.services.cli.screen import json_text

        sys.stdout.write(json_text(problem(error)) + "\n")
        return error.exit_code
    from remembrancer.services.cli.screen import Screen

    screen = Screen(sys.stderr)
    rule = f" ({error.rule})" if error.rule else ""
    screen.labelled("error", f"{error.message}{rule}", "bold red")
    if error.hint:
        screen.labelled("hint", error.hint.replace("make_room=", "--make-room "), "bold")
    return error.exit_code
