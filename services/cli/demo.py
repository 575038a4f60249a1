"""The verb `demo`: three weeks of memory on a real store, or with --play a whole conversation from a file."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import Subject, shard_of
from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.remembrancer import Remembrancer

PATIENCE = 30.0
"""Seconds for an embedding: nobody waits for these replies, and a busy machine is no reason to go without search."""
MOST_NAMES = 5_000
_PLAY = "With --play"


def _play_option(*names: str, **more: Any) -> Any:
    return option(*names, rich_help_panel=_PLAY, **more)


def demo(
    here: Session,
    file: Annotated[Path | None, option("--play", metavar="FILE", help="Play the conversations of a file.")] = None,
    conversations: Annotated[int | None, _play_option(metavar="N", help="Only the first ones.")] = None,
    limit_sessions: Annotated[int | None, _play_option(metavar="N", help="Only the first of each.")] = None,
    persona: Annotated[str | None, _play_option(metavar="KEY", help="Who remembers; else the second speaker.")] = None,
    list_capacity: Annotated[int | None, _play_option(metavar="N", help="Memories that a list holds.")] = None,
    desk_limit: Annotated[int | None, _play_option(metavar="N", help="Memories that are always sent.")] = None,
    rest_after_days: Annotated[int | None, _play_option(metavar="N", help="Unused days until a memory rests.")] = None,
    match_limit: Annotated[int | None, _play_option(metavar="N", help="Memories that a message matches.")] = None,
    match_threshold: Annotated[float | None, _play_option(metavar="X", help="Lowest score of a match.")] = None,
) -> None:  # fmt: skip
    """Watch memories rest, return and be forgotten.

    On a real store with the real local model. Each run is a tenant of its own, in a data directory beside yours.
    """
    policy = {
        "list_capacity": list_capacity, "desk_limit": desk_limit, "rest_after_days": rest_after_days,
        "match_limit": match_limit, "match_threshold": match_threshold,
    }  # fmt: skip
    asked = {"conversations": conversations, "limit_sessions": limit_sessions, "persona": persona, **policy}
    if file is None:
        if given := [name for name, value in asked.items() if value is not None]:
            raise InvalidInput(f"--{given[0].replace('_', '-')} goes with --play FILE.")
        from remembrancer.services.cli.story import tell_story

        tell_story(here, own_place(here))
        return
    from remembrancer.services.cli.play import play

    for name, many in (("conversations", conversations), ("limit-sessions", limit_sessions)):
        if many is not None and many < 1:
            raise InvalidInput(f"--{name} is 1 or more.")
    play(here, own_place(here), file, conversations, limit_sessions, persona, policy)


def own_place(here: Session) -> Mapping[str, Any]:
    """Settings of `open_memory` that keep a demo apart: a new tenant, and a data directory beside the usual one."""
    place: dict[str, Any] = {"tenant": here.options.tenant or f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"}
    given = here.options.url or here.options.data_dir
    if not given and not any(os.environ.get(f"REMEMBRANCER_{name}") for name in ("DATABASE_URL", "DATA_DIR")):
        from remembrancer.services.embedded.directory import default_data_dir

        usual = default_data_dir()
        place["data_dir"] = usual.with_name(f"{usual.name}-demo")
    return place


class Told(NamedTuple):
    """What a demo writes in the shard of one subject, or of its tenant: from when until when it tells."""

    subject: Subject | None
    first: datetime
    last: datetime


def with_room(here: Session, place: Mapping[str, Any], story: Sequence[Told]) -> tuple[Mapping[str, Any], bool]:
    """The place with a tenant whose shards can take a story of the past, and whether there is one.

    Moments never go back within a shard, and a shard is shared: what another tenant wrote later than the story begins
    would move the story to that moment. A tenant that was named stays. Where none will do, the nearest to it is taken.
    """
    with here.open(**{**place, "embedder": "none"}) as memory:
        taken = memory.engine.store.last_moments()
    name = place["tenant"]
    names = [name] if here.options.tenant else [name, *(f"{name}-{n}" for n in range(1, MOST_NAMES))]
    best, fewest = name, len(story) + 1
    for candidate in names:
        if (late := _too_late(candidate, story, taken)) < fewest:
            best, fewest = candidate, late
        if not fewest:
            break
    return {**place, "tenant": best}, not fewest


def _too_late(tenant: str, story: Sequence[Told], taken: Mapping[int, datetime]) -> int:
    """How many of these begin before their shard's last moment."""
    last, late = dict(taken), 0
    for told in story:
        shard = shard_of(tenant, told.subject or Subject("tenant", tenant))
        late += shard in last and last[shard] > told.first
        last[shard] = max(told.last, last.get(shard, told.last))
    return late


def where_it_is(memory: Remembrancer) -> str:
    """Where the data are, for people."""
    embedded = memory.engine.embedded
    return "the database that you named" if embedded is None else str(embedded.data_dir)


def command(here: Session, place: Mapping[str, Any], *words: str) -> str:
    """A command that works on the data of this demo, as it would be typed in this shell."""
    options = {**here.options.settings(), **place}
    said = [part for option, value in options.items() for part in (f"--{option.replace('_', '-')}", str(value))]
    return shlex.join([*_program(), *said, *words])


def _program() -> Sequence[str]:
    """How this command line was started."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return Path(sys.executable).name, "-m", "remembrancer.services.cli"
    found = shutil.which("remembrancer")
    if not path.is_file() or (found is not None and Path(found).samefile(path)):
        return ("remembrancer",)
    return (os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path),)


def register(app: typer.Typer) -> None:
    """Add this verb."""
    verb(app)(demo)
