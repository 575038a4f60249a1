"""The options that every verb takes, before the verb or after it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

_PANEL = "Everywhere"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_PANEL, show_default=False, **more)


@dataclass(frozen=True)
class Options:
    """Where the memories are, and how to answer. What is left out comes from the environment, then from the file."""

    json: Annotated[bool, _option("--json", help="Answer with one JSON document on stdout.")] = False
    tenant: Annotated[str | None, _option(metavar="NAME", help="Whose memories. REMEMBRANCER_TENANT")] = None
    data_dir: Annotated[
        Path | None, _option("--data-dir", metavar="DIR", help="Home of the embedded database. REMEMBRANCER_DATA_DIR")
    ] = None
    url: Annotated[
        str | None, _option("--url", metavar="URL", help="A database server instead. REMEMBRANCER_DATABASE_URL")
    ] = None
    redis_url: Annotated[str | None, _option("--redis-url", metavar="URL", hidden=True)] = None
    embedder: Annotated[
        str | None, _option(metavar="local|openai|none", help="Model of the search. REMEMBRANCER_EMBEDDER")
    ] = None
    embedder_url: Annotated[str | None, _option("--embedder-url", metavar="URL", hidden=True)] = None
    embedder_model: Annotated[str | None, _option("--embedder-model", metavar="NAME", hidden=True)] = None
    debug: Annotated[bool, _option("--debug", help="Show the traceback of an unexpected error.")] = False

    def over(self, other: Options | None) -> Options:
        """These options, and the other's where these were not given."""
        if other is None:
            return self
        given = {f.name: value for f in fields(Options) if (value := getattr(self, f.name)) != f.default}
        return replace(other, **given)

    def settings(self) -> dict[str, Any]:
        """What `open_memory` is told."""
        names = ("tenant", "data_dir", "url", "redis_url", "embedder", "embedder_url", "embedder_model")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
