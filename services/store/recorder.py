"""Writes and reads stored events by shard heads, behind the recorder interfaces of the `eventsourcing` library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Never, Self, cast
from uuid import UUID

import psycopg
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
from remembrancer.services.store.errors import KeyGone, VersionConflict, reused
from remembrancer.services.store.keys import KeyRef, columns
from remembrancer.services.store.mapper import Row
from remembrancer.services.store.pool import Connection, Database

ASSIGN = -1
"""As version of an event: whatever is the next one of its stream."""
_POSITION = (1 << 48) - 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the append function answered; lists are in the order of the events as given."""

    fresh: bool
    shards: list[int]
    positions: list[int]
    versions: list[int]
    times: list[datetime]
    answer: bytes | None

    @classmethod
    def of(
        cls,
        fresh: bool,
        packed: list[int],
        versions: list[int],
        times: list[datetime],
        answer: bytes | None,
    ) -> Self:
        """Unpacks the positions."""
        return cls(fresh, [p >> 48 for p in packed], [p & _POSITION for p in packed], versions, times, answer)


@dataclass(slots=True)
class Call:
    """What belongs to an append beside its events, and what came of it."""

    now: datetime
    home: int | None = None
    tenant: str | None = None
    request: str | None = None
    verb: str = ""
    fingerprint: bytes = b""
    answer: bytes | None = None
    about: UUID | None = None
    keys: Sequence[KeyRef] = ()
    outcome: Outcome | None = field(default=None, init=False)


@dataclass(frozen=True)
class StoredRow(StoredEvent):
    """A stored event together with where and when it was recorded."""

    row: Row


class ShardRecorder(ProcessRecorder):
    """Records the events of one shard; their positions are its notification ids, without gaps and in commit order."""

    def __init__(self, database: Database, shard: int = 0) -> None:
        self._database = database
        self._shard = shard

    def shard_of(self, stream: UUID) -> int:  # noqa: ARG002 (another recorder tells them apart)
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
            KeyGone, RequestReused: as the append function says.
        """
        call = call or Call(datetime.now(UTC))

        def work(connection: Connection) -> None:
            if tracking is None:
                call.outcome = self._append(connection, stored_events, call)
            else:
                with connection.transaction():
                    call.outcome = self._append(connection, stored_events, call)
                    self._track(connection, tracking)

        self._database.run(work)
        assert call.outcome is not None
        return call.outcome.positions if call.outcome.fresh else []

    def _append(self, connection: Connection, events: Sequence[StoredEvent], call: Call) -> Outcome:
        shards = [self.shard_of(cast("UUID", e.originator_id)) for e in events]
        order = sorted(range(len(events)), key=shards.__getitem__)
        counts = {shard: len(list(group)) for shard, group in groupby(sorted(shards))}
        if call.home is not None:
            counts.setdefault(call.home, 0)
        heads = sorted(counts)
        grouped = [events[n] for n in order]
        try:
            found = connection.execute(
                sql.APPEND,
                (
                    *(call.now, heads, [counts[shard] for shard in heads]),
                    *(call.home, call.tenant, call.request, call.verb, call.fingerprint, call.answer, call.about),
                    [e.originator_id for e in grouped],
                    [e.originator_version for e in grouped],
                    [e.topic for e in grouped],
                    [e.state for e in grouped],
                    *columns(call.keys),
                ),
                prepare=True,
                binary=True,
            ).fetchone()
        except psycopg.DatabaseError as error:
            raise _meaning(error) from error
        assert found is not None
        fresh, packed, versions, times, answer = found
        if fresh and len(heads) > 1:
            back = sorted(order, key=order.__getitem__)
            packed, versions, times = ([values[n] for n in back] for values in (packed, versions, times))
        return Outcome.of(fresh, packed, versions, times, answer)

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
        return self._database.run(lambda c: c.execute(statement, values, prepare=True, binary=True).fetchall())

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


def _meaning(error: psycopg.DatabaseError) -> Exception:
    meanings: Mapping[str | None, Exception] = {
        "RM409": VersionConflict("The stream moved on since it was read.", hint="Load it again and decide again."),
        "23505": VersionConflict("The stream moved on since it was read.", hint="Load it again and decide again."),
        "RM410": KeyGone("The subject was erased meanwhile.", hint="Load it again and decide again."),
        "RM422": reused(),
    }
    return meanings.get(error.sqlstate, error)
