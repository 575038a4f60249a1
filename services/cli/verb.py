"""A verb of the command line: a function of a session and its own arguments, with the options that all verbs share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import typer

from remembrancer.services.cli.options import Options
from remembrancer.services.cli.problems import told
from remembrancer.services.cli.process import USAGE
from remembrancer.services.cli.session import Session

_COMMON = [
    inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hint)
    for f, hint in zip(fields(Options), get_type_hints(Options, include_extras=True).values(), strict=True)
]
_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)


def verb(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a verb of `app`. Its first parameter is the session; errors are told."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        def run(ctx: typer.Context, **given: Any) -> None:
            options = Options(**{p.name: given.pop(p.name) for p in _COMMON}).over(ctx.obj)
            with told(options):
                function(Session(options), **given)

        _take(run, own)
        run.__doc__, run.__name__ = function.__doc__, function.__name__
        app.command(name)(run)
        return function

    return register


def group(app: typer.Typer, *more: inspect.Parameter, alone: Callable[..., None] | None = None) -> None:
    """Take the shared options before the verb, too; without a verb, say which there are.

    Args:
        more: options of the group itself.
        alone: what runs where no verb is named; its own options are the group's, and no verb's.
    """
    own = [] if alone is None else list(inspect.signature(alone, eval_str=True).parameters.values())[1:]

    def remember(ctx: typer.Context, **given: Any) -> None:
        options = ctx.obj = Options(**{p.name: given[p.name] for p in _COMMON}).over(ctx.obj)
        of_group, defaults = {p.name: given[p.name] for p in own}, {p.name: p.default for p in own}
        if ctx.invoked_subcommand is not None:
            if of_group != defaults:
                raise typer.BadParameter(f"the options before {ctx.invoked_subcommand} are not its own.", ctx=ctx)
        elif alone is None or of_group == defaults:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(USAGE)
        else:
            with told(options):
                alone(Session(options), **of_group)

    _take(remember, [*more, *own])
    if alone is not None:
        remember.__doc__ = alone.__doc__
    app.callback(invoke_without_command=True)(remember)


def _take(function: Callable[..., None], own: list[inspect.Parameter]) -> None:
    parameters = [_CONTEXT, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *_COMMON]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
