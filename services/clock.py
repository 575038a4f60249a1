"""The one clock and the one maker of ids."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import new_id

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """The present moment, aware, UTC. Asked at each use, so that freezegun can stop it."""
    return datetime.now(UTC)


def utc(clock: Clock) -> Clock:
    """The same clock, held to its promise.

    Raises:
        InvalidInput: at each use, if the clock gives no moment, or one without a zone.
    """

    def now() -> datetime:
        moment: object = clock()
        if not isinstance(moment, datetime):
            raise InvalidInput(f"The clock gave no moment but {moment!r}.", hint="Return datetime.now(timezone.utc).")
        if moment.tzinfo is None:
            raise InvalidInput(
                "The clock gave a moment without a time zone.", hint="Return datetime.now(timezone.utc)."
            )
        return moment.astimezone(UTC)

    return now


def make_id(shard: int) -> UUID:
    """A new id of version 8 that carries its shard."""
    return new_id(shard, os.urandom(16))
