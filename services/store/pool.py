"""The one place that opens connections to PostgreSQL, and that knows what its failures mean."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
import stamina
from pgvector.psycopg import register_vector
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool, PoolTimeout

from remembrancer.domain.errors import Unavailable
from remembrancer.services.store import arrays

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

_LOST = ("08", "57P01", "57P02", "57P03")
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_INT8 = struct.Struct("!q")


class _Lost(Exception):
    """The connection broke or the server cannot take one now; the same call may succeed in a moment."""


class Database:
    """A pool of connections in autocommit mode, with pgvector's types and every moment in UTC.

    No session state is used, so a transaction pooler may stand in between.

    Args:
        url: address of the database, as libpq reads it.
        min_size, max_size: connections kept and connections at most.
        patience: seconds for which a broken connection or a starting server is tried again.
        prepare: whether statements are prepared; off for a pooler that cannot keep them.

    Raises:
        Unavailable: the database cannot be reached, or has no pgvector.
    """

    def __init__(
        self, url: str, *, min_size: int = 1, max_size: int = 10, patience: float = 10.0, prepare: bool = True
    ):
        self.url = url
        self.patience = patience
        with connected(url) as first:
            _adapt(first)
            options = {"autocommit": True, "prepare_threshold": 5 if prepare else None, "context": first}
            self.pool: ConnectionPool[Connection] = ConnectionPool(
                url,
                min_size=min_size,
                max_size=max_size,
                timeout=patience,
                # Tries get rarer up to this, and then begin anew: after a long outage nobody waits longer than that.
                reconnect_timeout=patience,
                kwargs=options,
                open=False,
                name="remembrancer",
            )
            self.pool.open(wait=False)

    def close(self) -> None:
        """Closes every connection. A second call does nothing."""
        self.pool.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode; failures of the database leave as Unavailable.

        Raises:
            Unavailable: the database is stopped, full or read-only, or no connection is free in time.
        """
        try:
            with self.pool.connection() as connection:
                yield connection
        except psycopg.Error as error:
            if (said := unavailable(error)) is not None:
                raise said from error
            raise

    def run(self, work: Callable[[Connection], T]) -> T:
        """Returns what `work` returns, which may be run several times: when the connection breaks, or on a deadlock.

        Raises:
            Unavailable: the database is full or read-only, or stayed away for `patience` seconds.
        """
        until = time.monotonic() + self.patience
        try:
            return self._once(work, until)
        except _Lost:
            self.pool.check()
        left = max(0.01, until - time.monotonic())
        try:
            for attempt in stamina.retry_context(on=_Lost, attempts=None, timeout=left, wait_max=0.5):
                with attempt:
                    return self._once(work, until)
        except _Lost as lost:
            raise Unavailable(
                f"The database cannot be reached: {_first_line(lost.__cause__)}", hint="Start it, then try again."
            ) from lost
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], T], until: float) -> T:
        try:
            left = max(0.01, until - time.monotonic())
            connection = self.pool.getconn(left)  # without its context manager: there is no transaction to end
            try:
                return work(connection)
            finally:
                self.pool.putconn(connection)
        except _AGAIN as error:
            raise _Lost from error
        except psycopg.Error as error:
            if is_lost(error):
                raise _Lost from error
            if (said := unavailable(error)) is not None:
                raise said from error
            raise


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """One connection outside the pool, in autocommit mode.

    Raises:
        Unavailable: it cannot be made, with the server's own words.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        raise Unavailable(
            f"The database cannot be reached: {_first_line(error)}",
            hint="Start it, or correct REMEMBRANCER_DATABASE_URL.",
        ) from error
    with connection:
        yield connection


def ask(connection: Connection, statement: bytes, values: Sequence[Any] = ()) -> list[Any]:
    """All rows of a prepared statement, by a cursor that the connection keeps.

    A new cursor has forgotten how to convert values, which costs 18 µs.
    """
    kept = connection.__dict__
    cursor = kept.get("our_cursor") or kept.setdefault("our_cursor", connection.cursor())
    rows: list[Any] = cursor.execute(statement, values, prepare=True, binary=True).fetchall()
    return rows


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke or was refused, so that nobody knows what became of the last statement."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_LOST)


def unavailable(error: psycopg.Error) -> Unavailable | None:
    """What a failure of the database means to a person; nothing if the failure is not the database's."""
    state = error.sqlstate or ""
    said = _first_line(error)
    if isinstance(error, PoolTimeout) or is_lost(error):
        return Unavailable(f"The database cannot be reached: {said}", hint="Start it, then try again.")
    if state == "53100":
        return Unavailable(f"The database's disk is full: {said}", hint="Make room, then try again.")
    if state == "25006":
        return Unavailable(f"The database is read-only: {said}", hint="Connect to the primary server.")
    if state.startswith(("53", "58")):
        return Unavailable(f"The database has run out of something: {said}", hint="See the log of the server.")
    if state in ("3F000", "42P01", "42883"):
        return Unavailable(f"The database lacks a table of ours: {said}", hint="It was not migrated by this version.")
    return None


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."


def _adapt(connection: Connection) -> None:
    """Teaches a connection pgvector's types and UTC; every other one is opened after its example."""
    try:
        register_vector(connection)
    except psycopg.ProgrammingError as error:
        raise Unavailable(
            "The database has no pgvector.", hint="Install the extension `vector` on the server, then try again."
        ) from error
    arrays.register(connection)
    connection.adapters.register_loader("timestamptz", _UtcText)
    connection.adapters.register_loader("timestamptz", _UtcBinary)


def moment(microseconds: int) -> datetime:
    """A timestamptz out of its binary form."""
    return _EPOCH + timedelta(microseconds=microseconds)


class _UtcText(TimestamptzLoader):
    def load(self, data: Buffer) -> datetime:
        return super().load(data).astimezone(UTC)


class _UtcBinary(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return moment(_INT8.unpack(data)[0])
