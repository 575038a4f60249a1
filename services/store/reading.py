"""Reads streams and shards, and folds streams into states."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import shard_of_id
from remembrancer.services.store import mapper, snapshots, sql
from remembrancer.services.store.arrays import Int2s, Int8s, Uuids
from remembrancer.services.store.folds import Fold, FoldCache, Loaded, Remembered
from remembrancer.services.store.keys import KeyRef, SubjectKeys, columns
from remembrancer.services.store.mapper import Row
from remembrancer.services.store.pool import Connection, Database, ask

S = TypeVar("S")


class Reading:
    """The half of the event store that writes nothing but snapshots."""

    database: Database
    keys: SubjectKeys

    def __init__(self, database: Database, remembered: int) -> None:
        self.database = database
        self.keys = SubjectKeys(database)
        self._folded = FoldCache(remembered)

    # -- states --------------------------------------------------------------------------------------------------------

    def load(self, stream: UUID, fold: Fold[S]) -> Loaded[S]:
        """Returns the state of a stream; every event committed before the call is in it."""
        return self.load_many([(stream, fold)])[0]

    def load_many(self, wanted: Sequence[tuple[UUID, Fold[Any]]]) -> list[Loaded[Any]]:
        """Returns the states of several streams as of one moment; one round trip for those that are remembered."""
        return self.database.run(lambda connection: self._load(connection, wanted))

    def forget(self, streams: Collection[UUID]) -> None:
        """Drops the states of these streams that this process remembers."""
        self._folded.forget(streams)

    def _load(self, connection: Connection, wanted: Sequence[tuple[UUID, Fold[Any]]]) -> list[Loaded[Any]]:
        known = {stream: found for stream, fold in wanted if (found := self._folded.get(fold.name, stream))}
        known |= snapshots.read(connection, self.keys, [one for one in wanted if one[0] not in known])
        tails = self._tails(connection, [stream for stream, _ in wanted], known)
        if tails is None:  # a subject was erased: what is remembered of it is not used
            known = {}
            tails = self._tails(connection, [stream for stream, _ in wanted], known) or []
        return [
            self._advance(connection, stream, fold, known.get(stream) or Remembered(fold.initial), tail)
            for (stream, fold), tail in zip(wanted, tails, strict=True)
        ]

    def _tails(
        self, connection: Connection, streams: Sequence[UUID], known: Mapping[UUID, Remembered]
    ) -> list[list[Row]] | None:
        """The events after what is known of each stream; nothing at all if a key of what is known is gone."""
        keys: set[KeyRef] = set().union(*(one.keys for one in known.values()))
        versions = [known[stream].version if stream in known else 0 for stream in streams]
        tails: list[list[Row]] = [[] for _ in streams]
        for n, *row in ask(connection, sql.LOAD, (*columns(sorted(keys)), *_after(streams, versions))):
            if n is None:
                return None
            tails[n - 1].append(tuple(row))
        for tail in tails:
            tail.sort(key=itemgetter(3))
        return tails

    def _advance(
        self, connection: Connection, stream: UUID, fold: Fold[S], start: Remembered, tail: Sequence[Row]
    ) -> Loaded[S]:
        if not tail:
            return Loaded(start.state, start.version)
        events, keys = mapper.decode(tail, connection, self.keys)
        state: S = start.state
        for event in events:
            state = fold.evolve(state, event)
        now = Remembered(state, events[-1].version, start.keys | keys, start.saved)
        if fold.encode is not None and now.version - now.saved > snapshots.AFTER:
            snapshots.write(connection, self.keys, stream, fold, now)
            now = replace(now, saved=now.version)
        self._folded.put(fold.name, stream, now)
        return Loaded(state, now.version)

    # -- events --------------------------------------------------------------------------------------------------------

    def read(self, streams: Sequence[tuple[UUID, int]]) -> list[Recorded]:
        """Returns the events of each stream after a version, stream by stream, all as of one moment."""
        return self.database.run(lambda connection: self.decode(self.select_streams(connection, streams), connection))

    def read_shards(self, positions: Mapping[int, int], limit: int) -> list[Recorded]:
        """Returns the next events of each shard after a position, at most `limit` of each, shard by shard."""
        return self.database.run(
            lambda connection: self.decode(self.select_shards(connection, positions, limit), connection)
        )

    def select_streams(self, connection: Connection, streams: Sequence[tuple[UUID, int]]) -> list[Row]:
        """The rows behind `read`, in the caller's transaction; for `decode`."""
        after = _after([stream for stream, _ in streams], [version for _, version in streams])
        return ask(connection, sql.READ_STREAMS, after)

    def select_shards(self, connection: Connection, positions: Mapping[int, int], limit: int) -> list[Row]:
        """The rows behind `read_shards`, in the caller's transaction; for `decode`."""
        return ask(connection, sql.READ_SHARDS, (Int2s(list(positions)), Int8s(list(positions.values())), limit))

    def decode(self, rows: Sequence[Row], connection: Connection | None = None) -> list[Recorded]:
        """Returns the events of these rows. A text whose key is gone reads `ERASED`.

        Args:
            rows: as the statements above select them.
            connection: where the keys are looked up, once for all rows; left out, one of the pool.

        Raises:
            UnknownEvent: a newer version wrote one of them.
            Tampered: a sealed text was changed or moved.
        """
        if connection is not None:
            return mapper.decode(rows, connection, self.keys)[0]
        return self.database.run(lambda own: mapper.decode(rows, own, self.keys)[0])

    def heads(self) -> dict[int, int]:
        """Returns the last position of each shard that has an event."""
        return dict(self.database.run(lambda connection: ask(connection, sql.HEADS)))

    def last_moments(self) -> dict[int, datetime]:
        """Returns when the last event of each shard was recorded: nothing is recorded there with an earlier moment."""
        return dict(self.database.run(lambda connection: ask(connection, sql.LAST_MOMENTS)))


def _after(streams: Sequence[UUID], versions: Sequence[int]) -> tuple[Int2s, Uuids, Int8s]:
    """Streams and versions as three arrays, as the statements take them."""
    return Int2s([shard_of_id(stream) for stream in streams]), Uuids(streams), Int8s(versions)
