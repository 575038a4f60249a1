"""What a test lets another process do. Started by `processes.client`: a role and its arguments as JSON.

Every role says `ready` when it is at work, and ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.events import Recorded
from remembrancer.projections.projection import Projection
from remembrancer.projections.runner import Runner
from remembrancer.projections.worker import Worker
from remembrancer.services import open_memory, rebuild
from remembrancer.services.store import StoreSource
from tests.support import mixed_load


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def mixer(*, names: list[str], acts: int, now: str, **settings: Any) -> None:
    """Several writers of `mixed_load`, after a line of input; says their books."""
    moment = datetime.fromisoformat(now)
    with open_memory(clock=lambda: moment, background=False, **settings) as memory:
        say("ready")
        sys.stdin.readline()
        books = mixed_load.write_side_by_side([memory], names, acts)
        say(json.dumps([book.as_json() for book in books]))
        sys.stdin.read()


def saver(*, who: str, ledger: str, patience: float = 10.0, **settings: Any) -> None:
    """Saves one memory after the other. Each acknowledged id is on disk before the next save begins.

    A save that failed for want of the database is sent again, with its request id, until it is acknowledged.
    """
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    settings |= {"list_capacity": 100_000}
    with open_memory(**settings) as memory, Path(ledger).open("a", encoding="utf-8") as book:
        memory.engine.store.database.patience = patience
        n = 0
        while not ended.is_set():
            n += 1
            while not ended.is_set():
                try:
                    answer = memory.save(
                        "mira", scope="server", subject=f"guild of {who}", text=f"fact {n} of {who}",
                        request_id=f"{who} {n}",
                    )  # fmt: skip
                except Unavailable as unavailable:
                    say(f"unavailable: {unavailable}")
                    continue
                book.write(f"{n} {answer.memory.id}\n")
                book.flush()
                os.fsync(book.fileno())
                if n == 1:
                    say("ready")
                break


def projector(
    *, lease_seconds: float = 10.0, standstill_seconds: float = 30.0, hold: str | None = None, **settings: Any
) -> None:
    """Projects in the background.

    Args:
        lease_seconds, standstill_seconds: see `Worker` and `Runner`.
        hold: `reading`: once it has read events and before it moves a checkpoint, it says `holding` and waits for a
            line. `writing`: the same inside its transaction, when the rows of its first batch are written.
    """
    with open_memory(background=False, **settings) as memory:
        engine = memory.engine
        source, projections = StoreSource(engine.store), list(engine.runner.projections)
        holding = _Hold(hold)
        runner = Runner(
            engine.store.database.connection,
            source,
            [_HoldingProjection(one, holding) for one in projections],
            standstill_seconds=standstill_seconds,
        )
        if hold == "reading":
            inner = runner._advance
            runner._advance = lambda *at: (holding.at("reading"), inner(*at))  # type: ignore[method-assign]
        listener = engine.signal.listen()
        worker = Worker(
            uuid4(), engine.store.database.connection, runner, lambda timeout: bool(listener.wait(min(timeout, 0.05))),
            lease_seconds=lease_seconds,
        )  # fmt: skip
        worker.start()
        say("ready")
        holding.released.wait() if hold else sys.stdin.read()
        if hold:
            sys.stdin.read()
        worker.stop()


class _Hold:
    """Holds the projector once, at one place."""

    def __init__(self, place: str | None) -> None:
        self._place = place
        self.released = threading.Event()

    def at(self, place: str) -> None:
        if place == self._place and not self.released.is_set():
            say("holding")
            sys.stdin.readline()
            self.released.set()


class _HoldingProjection:
    def __init__(self, inner: Projection, hold: _Hold) -> None:
        self.name, self._inner, self._hold = inner.name, inner, hold

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        self._inner.apply(conn, generation, events)
        self._hold.at("writing")


def rebuilder(*, pause: float = 0.0, standstill: float = 60.0, **settings: Any) -> None:
    """Rebuilds, whatever differs; says each step once it has begun, and in the end the answer.

    Args:
        pause: seconds that it takes over each shard, so that it can be killed in the middle of one.
        standstill: seconds after which it loses a shard in the middle of which it stands still.
    """
    rebuild.STANDSTILL_SECONDS = standstill
    begun: set[str] = set()

    def told(step: str, done: int, in_all: int) -> None:
        if step not in begun and done:
            begun.add(step)
            say(step)
        time.sleep(pause if step == "events" else 0)

    with open_memory(background=False, **settings) as memory:
        say("ready")
        say(memory.rebuild(yes=True, progress=told).model_dump_json())
        sys.stdin.read()


def keeper(**settings: Any) -> None:
    """Stays open in the background, as a bot does: it projects, embeds, and brings in a new model."""
    with open_memory(**settings):
        say("ready")
        sys.stdin.read()


def summariser(**settings: Any) -> None:
    """Projects and summarises in the background."""
    with open_memory(**settings):
        say("ready")
        sys.stdin.read()


ROLES: dict[str, Callable[..., None]] = {
    "mixer": mixer, "saver": saver, "projector": projector, "keeper": keeper, "rebuilder": rebuilder,
    "summariser": summariser,
}  # fmt: skip

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
