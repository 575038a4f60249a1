"""Folded states kept in the database, sealed under the keys of every text in them. Any of them may be lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg

from remembrancer.domain.identity import shard_of_id
from remembrancer.services.store import blobs, sql
from remembrancer.services.store.arrays import Int2s, Texts, Uuids
from remembrancer.services.store.folds import Fold, Remembered
from remembrancer.services.store.keys import SubjectKeys
from remembrancer.services.store.pool import Connection, ask

AFTER = 200
"""So many events after the last snapshot, a new one is taken."""


def read(
    connection: Connection, keys: SubjectKeys, wanted: Sequence[tuple[UUID, Fold[Any]]]
) -> Mapping[UUID, Remembered]:
    """Returns the snapshots of these streams that fit their folds and that can still be read."""
    folds = {stream: fold for stream, fold in wanted if fold.decode is not None}
    if not folds:
        return {}
    values = (Int2s([shard_of_id(s) for s in folds]), Uuids(list(folds)), Texts([fold.name for fold in folds.values()]))
    rows = ask(connection, sql.READ_SNAPSHOTS, values)
    standing = keys.for_reading(connection, filter(None, (blobs.refs_of(blob) for _, _, blob in rows)))
    found = {}
    for stream, version, blob in rows:
        refs = blobs.refs_of(blob)
        state = blobs.unseal(blob, standing.get(refs), "snapshot", str(stream))
        decode = folds[stream].decode
        if state is not None and decode is not None:
            found[stream] = Remembered(decode(state), version, frozenset(refs), saved=version)
    return found


def write(connection: Connection, keys: SubjectKeys, stream: UUID, fold: Fold[Any], state: Remembered) -> None:
    """Keeps a state, unless there is a later one or a subject of it was erased meanwhile. A failure costs nothing."""
    assert fold.encode is not None
    refs = tuple(sorted(state.keys))
    with suppress(psycopg.Error):
        key = keys.for_reading(connection, [refs] if refs else []).get(refs)
        if refs and key is None:
            return
        blob = blobs.seal(fold.encode(state.state), key, "snapshot", str(stream))
        connection.execute(sql.WRITE_SNAPSHOT, (shard_of_id(stream), stream, state.version, fold.name, blob))
