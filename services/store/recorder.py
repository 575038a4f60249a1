"""Writes and reads stored events by shard heads, behind the recorder interfaces of the `eventsourcing` library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Never, cast
from uuid import UUID

from eventsourcing.persistence import (
    IntegrityError,
    Notification,
    NotSupportedError,
    ProcessRecorder,
    StoredEvent,
    Tracking,
)

from remembrancer.domain.identity import shard_of_id
from remembrancer.services.store import sql
from remembrancer.services.store.append import Call, Outcome, Placed, append
from remembrancer.services.store.mapper import Row
from remembrancer.services.store.pool import Connection, Database, ask


@dataclass(frozen=True)
class StoredRow(StoredEvent):
    """A stored event together with where and when it was recorded."""

    row: Row


class ShardRecorder(ProcessRecorder):
    """Records the events of one shard; their positions are its notification ids, without gaps and in commit order."""

    def __init__(self, database: Database, shard: int = 0) -> None:
        self._database = database
        self._shard = shard

    def shard_of(self, stream: UUID) -> int:
        """The shard that a stream is in."""
        return self._shard

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],
        *,
        tracking: Tracking | None = None,
        call: Call | None = None,
        **_: Any,
    ) -> Sequence[int]:
        """Records events in one transaction and returns their positions; none for a request that came before.

        Raises:
            VersionConflict: a version is not the next one of its stream; an IntegrityError to the library.
            IntegrityError: the tracking has come this far already.
            KeyGone: a subject was erased.
        """
        call = call or Call(datetime.now(UTC))
        events: Sequence[Any] = stored_events  # to the library, the id of a stream may be a text
        placed = [
            Placed(self.shard_of(e.originator_id), e.originator_id, e.originator_version, e.topic, e.state)
            for e in events
        ]

        def work(connection: Connection) -> Outcome | None:
            if tracking is None:
                return append(connection, placed, call)
            with connection.transaction():
                self._track(connection, tracking)
                return append(connection, placed, call)

        call.outcome = self._database.run(work)
        return call.outcome.positions if call.outcome else []

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Reads the events of one stream."""
        stream = cast("UUID", originator_id)
        statement = sql.SELECT_EVENTS_DESC if desc else sql.SELECT_EVENTS
        values = (self.shard_of(stream), stream, gt, lte, limit)
        rows: list[Row] = self._rows(statement, values)
        return [StoredRow(row[2], row[3], row[4], row[5], row) for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Reads the events of the shard in the order of their positions."""
        first = (start or 0) + (0 if inclusive_of_start else 1)
        values = (self._shard, first, stop, list(topics), list(topics), limit)
        rows = self._rows(sql.SELECT_NOTIFICATIONS, values)
        return [Notification(row[2], row[3], row[4], row[5], row[1]) for row in rows]

    def max_notification_id(self) -> int | None:
        """The last position of the shard, nothing if it has no event."""
        return self._number(sql.HEAD_POSITION, (self._shard,)) or None

    def subscribe(self, *_: Any, **__: Any) -> Never:
        """Not here: readers tail shards with `EventStore.read_shards`."""
        raise NotSupportedError("subscriptions are not used; tail the shards with EventStore.read_shards")

    def insert_tracking(self, tracking: Tracking) -> None:
        """Records how far an application has come.

        Raises:
            IntegrityError: it has come this far already.
        """
        self._database.run(lambda connection: self._track(connection, tracking))

    def max_tracking_id(self, application_name: str) -> int | None:
        """How far an application has come."""
        return self._number(sql.TRACKING_POSITION, (self._shard, application_name))

    def _track(self, connection: Connection, tracking: Tracking) -> None:
        values = (self._shard, tracking.application_name, tracking.notification_id)
        if connection.execute(sql.INSERT_TRACKING, values).fetchone() is None:
            raise IntegrityError(f"{tracking.application_name} has come to {tracking.notification_id} before")

    def _rows(self, statement: bytes, values: Sequence[Any]) -> list[Any]:
        return self._database.run(lambda connection: ask(connection, statement, values))

    def _number(self, statement: bytes, values: Sequence[Any]) -> int | None:
        rows = self._rows(statement, values)
        return rows[0][0] if rows else None


class StoreRecorder(ShardRecorder):
    """Records events of any shards in one transaction: each stream's shard is the first byte of its id."""

    def shard_of(self, stream: UUID) -> int:
        """The shard that a stream's id carries."""
        return shard_of_id(stream)

    def select_notifications(self, *_: Any, **__: Any) -> Never:
        """Not here: 256 shards have no common order."""
        raise NotSupportedError("256 shards have no common sequence; use a ShardRecorder or EventStore.read_shards")

    def max_notification_id(self) -> Never:
        """Not here: 256 shards have no common order."""
        raise NotSupportedError("256 shards have no common sequence; use a ShardRecorder or EventStore.heads")
