"""The background worker: holds leases on shards, projects them, sleeps until woken.

Leases only share the work between processes; they are judged by the database's clock, with one heartbeat a worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.projections.queries import queries
from remembrancer.projections.runner import Runner

log = logging.getLogger("remembrancer.projections")
_SQL = queries("runner")
SLOTS = 16
"""Leases: slot n holds the shards from 16 n on."""
POLL_SECONDS = 1.0
"""A lost signal costs at most this much."""


class Worker:
    """One thread of one process.

    Args:
        wait: the signal's wait: the shards where something was appended, none on time-out. News may be lost: every
            shard is looked at once a second all the same.
        wake: ends a wait at once; left out, an end takes as long as a wait may last.
        chores: what else is to be done between batches.
        revive: starts the database again where it is ours; asked when it is not there.
    """

    def __init__(
        self,
        worker: UUID,
        connect: Callable[[], AbstractContextManager[Connection[Any]]],
        runner: Runner,
        wait: Callable[[float], Collection[int]],
        *,
        wake: Callable[[], None] | None = None,
        chores: Sequence[Callable[[], None]] = (),
        revive: Callable[[], None] | None = None,
        lease_seconds: float = 10.0,
    ) -> None:
        self.worker = worker
        self._connect = connect
        self._runner = runner
        self._wait = wait
        self._wake = wake
        self._chores = chores
        self._revive = revive
        self._lease_seconds = lease_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="remembrancer-projector", daemon=True)

    def start(self) -> None:
        """Begin to work in the background."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Finish the batch at hand, hand the leases back."""
        self._stop.set()
        if self._wake is not None:
            self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _loop(self) -> None:
        slots: list[int] = []
        leased_until = looked_everywhere = 0.0
        news: Collection[int] = ()
        pause = 0.05
        while not self._stop.is_set():
            try:
                if time.monotonic() >= leased_until:
                    slots = self.lease()
                    leased_until = time.monotonic() + self._lease_seconds / 3
                everywhere = not news or time.monotonic() >= looked_everywhere + POLL_SECONDS
                if everywhere:
                    looked_everywhere = time.monotonic()
                if slots:
                    held = None if len(slots) == SLOTS else slots
                    self._runner.catch_up(held, shards=None if everywhere else sorted(news))
                for chore in self._chores:
                    chore()
                pause = 0.05
                if not self._stop.is_set():
                    news = self._wait(POLL_SECONDS)
            except (Unavailable, psycopg.OperationalError) as error:
                log.warning("The projections pause: the database is not there (%s).", str(error).splitlines()[0])
                self._stop.wait(pause)
                pause = min(2.0, pause * 2)
                self._start_again()
            except Exception:
                log.exception("The projections stumble and go on.")
                self._stop.wait(pause)
                pause = min(2.0, pause * 2)
        try:
            with self._connect() as conn:
                conn.execute(_SQL["leave"], {"worker": self.worker})
        except Exception:  # noqa: BLE001 (nothing depends on it)
            log.debug("The leases were not handed back; they run out by themselves.")

    def _start_again(self) -> None:
        """An embedded server that was killed is started by whoever uses it."""
        if self._revive is None:
            return
        try:
            self._revive()
        except Unavailable as error:
            log.warning("The embedded database does not start: %s", error)

    def lease(self) -> list[int]:
        """Say that this worker is alive; give back what is too much, take what is free. Returns the slots held."""
        me = {"worker": self.worker, "lease_seconds": self._lease_seconds}
        with self._connect() as conn:
            conn.execute(_SQL["heartbeat"], me)
            conn.execute(_SQL["release"], me)
            conn.execute(_SQL["take"], me)
            return [row[0] for row in conn.execute(_SQL["mine"], me)]
