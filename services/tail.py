"""The events that a projection has not read yet: what look-ups in its tables have to add."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from psycopg import Connection

from remembrancer.domain.events import Event, Recorded
from remembrancer.projections.queries import load_queries
from remembrancer.services.store import EventStore

_SQL = load_queries("remembrancer.services", "tail")


def unread(
    conn: Connection[Any],
    store: EventStore,
    projection: str,
    *,
    kinds: Collection[type[Event]] | None = None,
    shards: Collection[int] | None = None,
) -> list[Recorded]:
    """The events that the live generation of a projection has not read yet, shard by shard, in their order.

    Args:
        conn: the caller's transaction, so that the tables and their tail can be of one moment.
        kinds: only these events; shards: only there. None is all.
    """
    asked = {
        "projection": projection,
        "types": None if kinds is None else [kind.__name__ for kind in kinds],
        "shards": None if shards is None else list(shards),
    }
    rows = conn.execute(_SQL["unread"], asked).fetchall()
    return store.decode(rows, conn) if rows else []
