"""The event store: load a stream, decide, append, and on a conflict again.

Everything that is written goes through `append`. The `eventsourcing` library is kept behind this module.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from threading import Lock
from typing import Any, TypeVar, cast
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import InfrastructureFactory
from eventsourcing.utils import Environment
from psycopg_pool import ConnectionPool

from remembrancer.domain.identity import SHARDS
from remembrancer.services.store import blobs, sql
from remembrancer.services.store.append import ASSIGN, Call, unpacked
from remembrancer.services.store.batch import Appended, Batch, Decision
from remembrancer.services.store.errors import KeyGone, VersionConflict, reused
from remembrancer.services.store.folds import Fold, Loaded
from remembrancer.services.store.library import Factory, Pending
from remembrancer.services.store.pool import Connection, Database, ask
from remembrancer.services.store.reading import Reading
from remembrancer.services.store.request import Request

S = TypeVar("S")
OnCommit = Callable[[Mapping[int, int]], None]

MOST_TRIES = 100
"""So often a command decides again before its conflict is reported."""


def open_store(
    url: str,
    *,
    clock: Callable[[], datetime] | None = None,
    min_size: int = 1,
    max_size: int = 10,
    patience: float = 10.0,
    prepare: bool = True,
    remembered: int = 2_000,
    on_commit: OnCommit | None = None,
) -> EventStore:
    """Opens the event store of a database that `migrate` has brought up to date.

    Args:
        url: address of the database, as libpq reads it.
        clock: returns the present moment, aware and UTC; left out, the system's.
        min_size, max_size: connections kept, and at most.
        patience: seconds for which a lost connection is tried again.
        prepare: off for a pooler that cannot keep prepared statements.
        remembered: folded states that this process keeps.
        on_commit: called after each commit with the last position in each shard that was written to.

    Raises:
        Unavailable: the database cannot be reached or has no pgvector.
    """
    database = Database(url, min_size=min_size, max_size=max_size, patience=patience, prepare=prepare)
    return EventStore(database, clock=clock or (lambda: datetime.now(UTC)), remembered=remembered, on_commit=on_commit)


class EventStore(Reading, Application[UUID]):
    """Streams of events in 256 shards. Safe to share between threads."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], datetime],
        remembered: int,
        on_commit: OnCommit | None,
    ) -> None:
        Reading.__init__(self, database, remembered)
        self.clock = clock
        self.on_commit = on_commit
        self._turns = [Lock() for _ in range(SHARDS)]
        Application.__init__(self)

    def construct_env(self, name: str, env: Any = None) -> Environment:
        """The library reads no setting from the environment: its caches and snapshots stay off."""
        return Environment(name, env)

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        """The library gets our recorder and our mapper."""
        return Factory(env, self.database)

    @property
    def pool(self) -> ConnectionPool[Connection]:
        """The connections, for readers with statements of their own."""
        return self.database.pool

    def load_at(self, stream: UUID, fold: Fold[S], version: int) -> Loaded[S]:
        """Returns the state that a stream had at a version."""

        def project(_: object, stored: Iterable[Any]) -> Any:
            events = self.decode([one.row for one in stored])
            return Loaded(reduce(fold.evolve, events, fold.initial), events[-1].version if events else 0)

        loaded: Any = self.repository.get(stream, version=version, projector_func=project)
        return cast("Loaded[S]", loaded)

    def append(
        self, batches: Sequence[Batch], *, request: Request, answer: bytes = b"", now: datetime | None = None
    ) -> Appended:
        """Writes all events and the row of the request in one transaction, or nothing.

        A request that came before writes nothing and gets its first answer. Where the connection breaks in the middle,
        the same request is sent again: nothing is written twice, and nothing acknowledged is lost.

        Args:
            batches: of any streams.
            request: whose command it is.
            answer: kept for repetitions of the request.
            now: aware UTC; left out, the clock's. Events are recorded at this moment or at the last one of their shard,
                whichever is later.

        Raises:
            VersionConflict: a stream is no longer at the expected version.
            KeyGone: a subject was erased since its texts were read.
            RequestReused: the id came before with another verb or body (D19).
            Unavailable: the database is stopped, full or read-only.
        """
        now = now or self.clock()
        if now.tzinfo is None:
            raise ValueError("a moment without a time zone says nothing")
        key = self.keys.for_writing(request.tenant, request.owners) if request.owners else None
        events = [event for batch in batches for event in self._pending(request.tenant, batch)]
        keys = sorted({ref for held in (key, *(e.key for e in events)) if held for ref in held.refs})
        call = Call(now, request.row(key, answer), keys)
        try:
            self.save(*events, call=call)
        except KeyGone:
            self.keys.forget(keys)
            raise
        done = Appended(True, answer, *call.outcome) if call.outcome else self._came_before(request, answer)
        if self.on_commit is not None:
            self.on_commit(done.reached)
        return done

    def _came_before(self, request: Request, answer: bytes) -> Appended:
        """A repetition; or the same call, sent again because nobody knew whether it had arrived."""
        before = self.find(request)
        assert before is not None
        if request.request_id is not None or (request.once is not None and before.answer != answer):
            return before
        return replace(before, fresh=True)

    def transact(
        self, request: Request, load: Callable[[], S], decide: Callable[[S], Decision], *, now: datetime | None = None
    ) -> Appended:
        """Loads, decides and appends; when somebody else was faster, loads again and decides again.

        Args:
            request: with an id of the caller's, a repetition gets the first answer and nothing is decided (D19).
            load: returns what the decision needs, e.g. with `load_many`.
            decide: returns what to write, without I/O; it may run several times. What it raises leaves nothing behind.
            now: as for `append`.

        Raises:
            VersionConflict: others were faster `MOST_TRIES` times.
        """
        for tries in range(MOST_TRIES):
            # Whoever was overtaken waits in line behind the others of this process.
            with self._turns[request.shard] if tries else nullcontext():
                state = load()
                # After loading, not before: a request that is not committed here is not in the state either.
                if request.request_id is not None and (before := self.find(request)) is not None:
                    return before
                decision = decide(state)
                try:
                    return self.append(decision.batches, request=request, answer=decision.answer, now=now)
                except VersionConflict as conflict:
                    last = conflict
            time.sleep(random.uniform(0, min(0.05, 0.001 * 2**tries)))  # noqa: S311 (not a secret)
        raise last

    def find(self, request: Request) -> Appended | None:
        """Returns what a request did that came before; nothing if it never came.

        Raises:
            RequestReused: it came with another verb or body (D19).
        """
        return self.database.run(lambda connection: self._find(connection, request))

    def _find(self, connection: Connection, request: Request) -> Appended | None:
        values = (request.home, request.tenant, request.key)
        found = ask(connection, sql.FIND_REQUEST, values)
        if not found:
            return None
        verb, fingerprint, sealed, positions, versions, times = found[0]
        refs = blobs.refs_of(sealed)
        key = self.keys.for_reading(connection, [refs] if refs else []).get(refs)
        comparable = key is not None or not refs
        if verb != request.verb or (comparable and fingerprint != request.authenticated(key)):
            raise reused()
        return Appended(False, request.unsealed(sealed, key), *unpacked(positions), versions, times)

    def _pending(self, tenant: str, batch: Batch) -> Iterator[Pending]:
        personal = any(type(event).personal for event in batch.events)
        key = (batch.key or self.keys.for_writing(tenant, batch.owners)) if personal else None
        for n, event in enumerate(batch.events, 1):
            yield Pending(event, batch.stream, ASSIGN if batch.expected is None else batch.expected + n, key)

    def close(self) -> None:
        """Closes the connections. A second call does nothing."""
        super().close()
        self.database.close()
