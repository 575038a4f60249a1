"""Moves events into tables: batch after batch, many shards at once.

Guarantees. A batch's rows and its checkpoints are one transaction, and the checkpoints move by compare and set, so a
worker that was stopped past its lease and wakes up again changes nothing; one that was stopped inside its transaction
loses it, so that it holds up nobody. An event that a projection cannot take parks its *stream*, visibly, while all
others go on; an outage of the database is never taken for that. Checkpoints advance over events that a projection
ignores, so that whoever waits for a position gets it.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import psycopg
from psycopg import Connection

from remembrancer.domain.events import Recorded
from remembrancer.projections.projection import Projection
from remembrancer.projections.queries import queries

log = logging.getLogger("remembrancer.projections")
_SQL = queries("runner")
_NOT_THE_EVENT = ("25006", "25P03", "3F000", "42501", "42703", "42883", "42P01")
"""The database is read-only, has ended our transaction, or is of another version: all of that passes."""

Row = tuple[int, int, UUID, int, str, bytes, datetime]
"""An event as it stands in the store: shard, position, stream, version, type, state, recorded_at."""


class EventSource(Protocol):
    """Where the runner gets events from; both inside the transaction of the given connection."""

    def fetch_shards(self, conn: Connection[Any], positions: Mapping[int, int], limit: int) -> Sequence[Row]:
        """The next stored rows of each shard after its position, at most `limit` a shard, in order."""
        ...

    def decode(self, conn: Connection[Any], rows: Sequence[Row]) -> list[Recorded]:
        """The events of stored rows."""
        ...


class Fenced(Exception):
    """Somebody else has moved a checkpoint meanwhile: the batch is dropped, nothing is lost."""


class Parked(NamedTuple):
    """A stream that a projection has left aside, from which position on, and why."""

    projection: str
    generation: int
    shard: int
    stream: UUID
    position: int
    error: str


class Runner:
    """Runs projections over shards; used by the background worker, by tests, and by whoever has to wait."""

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Connection[Any]]],
        source: EventSource,
        projections: Sequence[Projection],
        *,
        batch: int = 2_000,
        standstill_seconds: float = 30.0,
    ) -> None:
        """`standstill_seconds`: after so long without a sign from us, the database ends the transaction of a batch."""
        self._connect = connect
        self._source = source
        self.projections = projections
        self._batch = batch
        self._of_a_shard = max(1, batch // 4)
        self._standstill = {"milliseconds": str(round(standstill_seconds * 1000))}
        self.on_progress: Callable[[str, Mapping[int, int]], None] | None = None
        """Told after each batch of a live generation how far its projection has come, for whoever waits here."""

    def catch_up(
        self,
        slots: Sequence[int] | None = None,
        *,
        projections: Sequence[str] | None = None,
        shards: Sequence[int] | None = None,
    ) -> int:
        """Project all that there is now, in the shards of these slots or in all. Returns how many events were read.

        `shards`: where something is known to have happened; looking there alone is quicker.
        """
        done = 0
        for projection in self.projections:
            if projections is None or projection.name in projections:
                while (n := self.run_batch(projection, slots, shards=shards)) >= self._of_a_shard:
                    done += n  # a shard may have more
                done += n
        return done

    def run_batch(
        self,
        projection: Projection,
        slots: Sequence[int] | None = None,
        *,
        generation: int | None = None,
        shards: Sequence[int] | None = None,
    ) -> int:
        """Project one batch, of the live generation if none is named. Returns the number of events read; 0 if there was
        nothing to do or another worker was faster."""
        asked = {
            "projection": projection.name, "generation": generation, "limit": self._batch,
            "of_a_shard": self._of_a_shard, "slots": None if slots is None else list(slots),
            "shards": None if shards is None else list(shards),
        }  # fmt: skip
        with self._connect() as conn:
            found = conn.execute(_SQL["next"], asked, prepare=True, binary=True).fetchall()
            if not found:
                return 0
            at = {"projection": projection.name, "generation": found[0][0]}
            old = {row[3]: row[1] for row in found}
            new = {row[3]: row[4] for row in found}
            taken: list[Row] = [row[3:] for row in found if not row[2]]
            try:
                with conn.transaction():
                    self._advance(conn, at, old, new)
                    if taken:
                        projection.apply(conn, at["generation"], self._source.decode(conn, taken))
            except Fenced:
                return 0
            except Exception as error:
                if is_outage(error):
                    raise
                log.error(
                    "Projection %s failed on a batch; looking for the stream to blame.\n%s",
                    projection.name,
                    where(error),
                )
                self._one_by_one(conn, projection, at, old, new, taken)
        if self.on_progress is not None and generation is None:
            self.on_progress(projection.name, new)
        return len(found)

    def _one_by_one(
        self,
        conn: Connection[Any],
        projection: Projection,
        at: dict[str, Any],
        old: Mapping[int, int],
        new: Mapping[int, int],
        taken: Sequence[Row],
    ) -> None:
        """The batch again, each stream in a savepoint of its own: those that fail are parked."""
        streams: dict[UUID, list[Row]] = {}
        for row in taken:
            streams.setdefault(row[2], []).append(row)
        try:
            with conn.transaction():
                self._advance(conn, at, old, new)
                for stream, rows in streams.items():
                    try:
                        with conn.transaction():
                            projection.apply(conn, at["generation"], self._source.decode(conn, rows))
                    except Exception as error:
                        if is_outage(error):
                            raise
                        log.error(
                            "Stream %s is parked in %s; `doctor` says why.\n%s", stream, projection.name, where(error)
                        )
                        place = {"shard": rows[0][0], "stream": stream, "position": rows[0][1]}
                        conn.execute(_SQL["park"], at | place | {"error": _said(error)})
        except Fenced:
            return

    def _advance(
        self, conn: Connection[Any], at: dict[str, Any], old: Mapping[int, int], new: Mapping[int, int]
    ) -> None:
        shards = sorted(new)
        moved = conn.execute(
            _SQL["advance"],
            at
            | self._standstill
            | {"shards": shards, "old": [old[s] for s in shards], "new": [new[s] for s in shards]},
        )
        if moved.rowcount != len(shards):
            raise Fenced

    def parked(self) -> list[Parked]:
        """All parked streams, the oldest first."""
        with self._connect() as conn:
            return [Parked(*row[:6]) for row in conn.execute(_SQL["all_parked"]).fetchall()]

    def repair(self, parked: Parked) -> None:
        """Take up a parked stream again, from where it was parked to its projection's checkpoint.

        Raises:
            Exception: whatever the projection raises; the stream stays parked then.
        """
        projection = next(p for p in self.projections if p.name == parked.projection)
        at = {"projection": parked.projection, "generation": parked.generation}
        with self._connect() as conn, conn.transaction():
            conn.execute(_SQL["limit_transaction"], self._standstill)
            found = conn.execute(_SQL["lock_checkpoint"], at | {"shard": parked.shard}).fetchone()
            if found is None:
                return
            position, upto = parked.position - 1, found[0]
            while position < upto:
                rows = self._source.fetch_shards(conn, {parked.shard: position}, self._batch)
                if not rows:
                    break
                mine = [row for row in rows if row[2] == parked.stream and row[1] <= upto]
                projection.apply(conn, parked.generation, self._source.decode(conn, mine))
                position = rows[-1][1]
            conn.execute(_SQL["unpark"], at | {"shard": parked.shard, "stream": parked.stream})

    def take_up_again(self, error: str) -> int:
        """Take up the streams that were parked for this kind of error (the name of its class), such as an event that
        only a newer version knew. Where it is still an error, they stay parked. Returns how many go on."""
        done = 0
        for parked in self.parked():
            if parked.error.partition(":")[0] == error:
                try:
                    self.repair(parked)
                except Exception as still:
                    if is_outage(still):
                        raise
                    log.debug("Stream %s stays parked.\n%s", parked.stream, where(still))
                else:
                    log.info("Stream %s is no longer parked in projection %s.", parked.stream, parked.projection)
                    done += 1
        return done


def where(error: Exception) -> str:
    """What is logged of an error: its kind and place. Its own words may quote a text, and logs are not erased (D24)."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}"


def _said(error: Exception) -> str:
    """What is kept of an error, until its stream is repaired. It may quote a text, and is erased with it."""
    message = error.diag.message_primary if isinstance(error, psycopg.Error) and error.sqlstate else str(error)
    return f"{type(error).__name__}: {message}".replace("\x00", "")[:500]


def is_outage(error: Exception) -> bool:
    """Is it the database's failure, not the event's?"""
    if isinstance(error, psycopg.Error) and error.sqlstate in _NOT_THE_EVENT:
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
