"""The answers of `rebuild`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from remembrancer.services.answers import Answer


class TableComparison(Answer):
    """A table in the live generation and in the new one: how many rows each has, and how many are not the same."""

    table: str
    before: int
    after: int
    different: int


class Difference(Answer):
    """A row that is not the same: what differs. `before` is None where it is new, `after` where it is gone."""

    table: str
    key: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ParkedStream(Answer):
    """A stream that the new generation could not take. `also_live`: the live one could not either."""

    projection: str
    stream: UUID
    error: str
    also_live: bool


class Comparison(Answer):
    """The new generation beside the live one, in all shards where both have come equally far."""

    tables: tuple[TableComparison, ...] = ()
    sample: tuple[Difference, ...] = ()
    """Some of the differences."""
    parked: tuple[ParkedStream, ...] = ()
    shards: int = 0
    shards_left_out: int = 0
    """Where talk went on so fast that the two were never seen at the same event."""

    @property
    def differs(self) -> bool:
        """Is anything not the same, not known to be the same, or newly parked?"""
        parked = any(not p.also_live for p in self.parked)
        return any(t.different for t in self.tables) or parked or self.shards_left_out > 0


class RebuildAnswer(Answer):
    """What a rebuild came to.

    ``switched``: the new generation is live. ``waiting``: it is ready, and differs; nobody has agreed yet.
    ``cancelled``: it is gone, and the live one was never touched. ``nothing``: there was none to cancel or drop.
    """

    status: Literal["switched", "waiting", "cancelled", "dropped", "nothing"]
    generation: int | None = None
    projections: tuple[str, ...] = ()
    events: int = 0
    seconds: float = 0.0
    comparison: Comparison | None = None
    dropped: tuple[str, ...] = ()
    """Old generations whose tables were dropped, like ``history 1``."""
    kept: tuple[str, ...] = ()
    """Old ones that somebody may still be reading: `rebuild --drop-old`, or the next rebuild, drops them."""


class GenerationView(Answer):
    """One generation of a projection. `version` built it; `current` is that of this installation's code."""

    projection: str
    generation: int
    live: bool
    version: int
    current: int | None


class RebuildStatus(Answer):
    """The rebuild that is under way, if one is, and all generations."""

    state: Literal["none", "building", "catching up"] = "none"
    generation: int | None = None
    projections: tuple[str, ...] = ()
    started_at: datetime | None = None
    changed_at: datetime | None = None
    """When somebody last finished a part of it."""
    idle_seconds: float = 0.0
    """So long ago that was, by the database's clock."""
    events: int = 0
    events_in_all: int = 0
    shards: int = 0
    shards_in_all: int = 0
    generations: tuple[GenerationView, ...] = ()
