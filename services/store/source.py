"""The event store as the projection runner sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from remembrancer.domain.events import Recorded
from remembrancer.services.store.mapper import Row
from remembrancer.services.store.reading import Reading


class StoreSource:
    """Hands the runner rows and events, inside the transaction of its connection."""

    def __init__(self, store: Reading) -> None:
        self._store = store

    def fetch_shards(self, conn: psycopg.Connection[Any], positions: Mapping[int, int], limit: int) -> Sequence[Row]:
        """The next stored rows of each shard after its position, at most `limit` a shard, in order."""
        return self._store.select_shards(conn, positions, limit)

    def decode(self, conn: psycopg.Connection[Any], rows: Sequence[Row]) -> list[Recorded]:
        """The events of stored rows."""
        return self._store.decode(rows, conn)
