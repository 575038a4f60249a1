"""Waiting until the read model shows what was written: for readers that do not look at the events themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from psycopg import Connection

from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.domain.identity import SHARDS
from remembrancer.projections.queries import queries
from remembrancer.services.answers import Position
from remembrancer.services.checks import checked_number, checked_seconds, shown
from remembrancer.services.deps import Deps

_SQL = queries("runner")
PROJECTIONS = ("memory", "archive", "history", "conversation", "documents")
_PAUSES = (0.001, 0.005, 0.02)
OURS_SECONDS = 5.0
"""So long after its last batch our own projector is thought to be at work."""
OURS_PATIENCE = 0.02


class Waiting:
    """Waits for positions: told by this process's own projector, else asking after 1, 5, then every 20 ms."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._progress = threading.Condition()
        self._reached: dict[tuple[str, int], int] = {}
        self._last_told = float("-inf")

    def progressed(self, projection: str, positions: Mapping[int, int]) -> None:
        """The projector of this process has finished a batch."""
        with self._progress:
            self._last_told = time.monotonic()
            for shard, position in positions.items():
                self._reached[projection, shard] = max(position, self._reached.get((projection, shard), 0))
            self._progress.notify_all()

    def wait(
        self,
        positions: Iterable[Position],
        *,
        timeout: float = 5.0,
        mode: Literal["raise", "stale"] = "raise",
        projections: Iterable[str] = PROJECTIONS,
    ) -> bool:
        """Until the projections have reached these positions; True if they have.

        Args:
            positions: as an answer gave them.
            timeout: seconds.
            mode: ``raise`` or ``stale``: what to do when time is up.

        Raises:
            Unavailable: time is up, and the mode says so.
            InvalidInput: no positions, no time, no mode.
        """
        if mode not in ("raise", "stale"):
            raise InvalidInput(f"mode is raise or stale, not {shown(mode)}.")
        return self._until(_wanted(positions), checked_seconds("timeout", timeout), mode, tuple(projections))

    def settle(self, timeout: float = 2.0) -> bool:
        """Until the read model has all that is committed now; False when it lags behind longer than that."""
        return self._until(self._deps.store.heads(), timeout, "stale", PROJECTIONS)

    def _until(self, wanted: Mapping[int, int], timeout: float, mode: str, projections: Iterable[str]) -> bool:
        end, n = time.monotonic() + timeout, 0
        left = list(projections)
        # Where our own projector is at work it will tell, and asking the database would only get in its way.
        if wanted and time.monotonic() - self._last_told < OURS_SECONDS:
            left = self._told(left, wanted, OURS_PATIENCE)
        while wanted and left:
            left = [p for p in left if self._behind(p, wanted)]
            if not left:
                break
            if time.monotonic() >= end:
                if mode == "stale":
                    return False
                raise Unavailable(
                    f"The read model ({', '.join(left)}) has not caught up within {timeout} seconds.",
                    hint="Is a projector running? `remembrancer doctor` tells.",
                )
            left = self._told(left, wanted, _PAUSES[min(n, len(_PAUSES) - 1)])
            n += 1
        return True

    def _told(self, left: list[str], wanted: Mapping[int, int], pause: float) -> list[str]:
        """The projections that have not told in time that they are there."""

        def behind() -> list[str]:
            reached = self._reached
            return [p for p in left if any(reached.get((p, shard), -1) < at for shard, at in wanted.items())]

        with self._progress:
            self._progress.wait_for(lambda: not behind(), pause)
            return behind()

    def _behind(self, projection: str, wanted: Mapping[int, int]) -> bool:
        at = {"projection": projection, "shards": list(wanted), "positions": list(wanted.values())}

        def work(conn: Connection[Any]) -> bool:
            return conn.execute(_SQL["reached"], at).fetchone() is not None

        return self._deps.store.database.run(work)


def _wanted(positions: object) -> dict[int, int]:
    """The highest position of each shard."""
    if not isinstance(positions, Iterable) or isinstance(positions, str | bytes | Mapping):
        raise InvalidInput(f"positions must be a list, not {shown(positions)}.", hint="Pass `positions` of an answer.")
    wanted: dict[int, int] = {}
    for one in positions:
        if not isinstance(one, Position):
            raise InvalidInput(f"{shown(one)} is no position.", hint="Pass `positions` of an answer.")
        shard = checked_number("shard", one.shard, 0, SHARDS - 1)
        wanted[shard] = max(wanted.get(shard, 0), checked_number("position", one.position, 0, 2**63 - 1))
    return wanted
