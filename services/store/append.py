"""The one way in which anything is written: one call of a function in the database, one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from remembrancer.services.store import sql
from remembrancer.services.store.arrays import Byteas, Int2s, Int4s, Int8s, Texts, Uuids
from remembrancer.services.store.errors import KeyGone, VersionConflict
from remembrancer.services.store.keys import KeyRef, columns
from remembrancer.services.store.pool import Connection, ask, moment

ASSIGN = -1
"""As version of an event: whatever is the next one of its stream."""
_POSITION = (1 << 48) - 1
_DONE = Struct("!qqq")
_NO_KEY = (None,) * 5
_NO_REQUEST = (None,) * 6


class Placed(NamedTuple):
    """An event as it is written."""

    shard: int
    stream: UUID
    version: int
    type: str
    state: bytes


class RequestRow(NamedTuple):
    """The row of a request as it is written."""

    shard: int
    tenant: str
    request_id: str
    verb: str
    fingerprint: bytes
    answer: bytes


class Outcome(NamedTuple):
    """Where the events went, in the order in which they were given."""

    shards: list[int]
    positions: list[int]
    versions: list[int]
    times: list[datetime]


@dataclass(slots=True)
class Call:
    """What belongs to an append beside its events; and what came of it, nothing for a request that came before."""

    now: datetime
    request: RequestRow | None = None
    keys: Sequence[KeyRef] = ()
    outcome: Outcome | None = field(default=None, init=False)


def append(connection: Connection, events: Sequence[Placed], call: Call) -> Outcome | None:
    """Writes events and request, or nothing if the request came before.

    Raises:
        VersionConflict: an event's version is not the next one of its stream.
        KeyGone: one of the keys was destroyed.
    """
    try:
        if len(events) == 1 and len(call.keys) <= 1:
            return _append_one(connection, events[0], call)
        return _append_many(connection, events, call)
    except psycopg.DatabaseError as error:
        match error.sqlstate:
            case "23505" if (error.diag.constraint_name or "").startswith("request_pkey"):
                return None
            case "23505" | "RM409":
                raise VersionConflict("The stream moved on.", hint="Load it again and decide again.") from error
            case "RM410":
                raise KeyGone("The subject was erased meanwhile.", hint="Load it again and decide again.") from error
        raise


def _append_one(connection: Connection, event: Placed, call: Call) -> Outcome:
    shard, *rest = event
    (key,) = call.keys or (_NO_KEY,)
    values = (call.now, shard, *(call.request or _NO_REQUEST), *rest, *key)
    return _write(connection, sql.APPEND_ONE, values)


def _append_many(connection: Connection, events: Sequence[Placed], call: Call) -> Outcome:
    counts = Counter(event.shard for event in events)
    heads = sorted(counts)
    place = {shard: n for n, shard in enumerate(heads, 1)}
    shards, streams, versions, types, states = zip(*events, strict=True) if events else ((),) * 5
    values = (
        *(call.now, Int2s(heads), Int4s([counts[shard] for shard in heads]), *(call.request or _NO_REQUEST)),
        *(Int2s([place[shard] for shard in shards]), Uuids(streams), Int8s(versions), Texts(types), Byteas(states)),
        *columns(call.keys),
    )
    return _write(connection, sql.APPEND, values)


def _write(connection: Connection, statement: bytes, values: Sequence[Any]) -> Outcome:
    ((done,),) = ask(connection, statement, values)
    shards, positions, versions, times = [], [], [], []
    for position, version, time in _DONE.iter_unpack(done):
        shards.append(position >> 48)
        positions.append(position & _POSITION)
        versions.append(version)
        times.append(moment(time))
    return Outcome(shards, positions, versions, times)


def unpacked(positions: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns shards and positions of what a request's row holds as `shard << 48 | position`."""
    return [p >> 48 for p in positions], [p & _POSITION for p in positions]
