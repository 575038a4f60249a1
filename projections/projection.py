"""What a projection is: a name, and how a batch of events changes its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from uuid import UUID

from psycopg import Connection

from remembrancer.domain.events import Recorded
from remembrancer.projections.building import Build

ReadStream = Callable[[Connection[Any], UUID, int], Sequence[Recorded]]
"""Reads a whole stream up to a version (inclusive), inside the caller's transaction."""


class Projection(Protocol):
    """Folds events into tables of one generation.

    `apply` gets events of many streams, each stream's in its order, and may be given the same events again: then it
    changes nothing. It runs inside the runner's transaction and commits nothing itself.
    """

    name: str
    version: int
    """Raise it when the same events come out as other rows: `doctor` then asks for a rebuild."""
    tables: tuple[str, ...]
    """What it writes: tables that are partitioned by `generation`, with a column `shard`."""

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch."""
        ...

    def build(self, generation: int, shard: int) -> Build | None:
        """Fold one shard from its first event into the same rows, in memory: for a rebuild. None where the runner is to
        take a rebuild's events batch by batch, as it does any others."""
        ...
