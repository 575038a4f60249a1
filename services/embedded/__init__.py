"""The embedded database: a PostgreSQL of our own, for whoever gives no address of a server.

`open_embedded` returns a running server; all processes that open the same data directory share it, and the last one
that closes stops it. What a process or a server that was killed leaves behind, the next opening puts right.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from remembrancer.domain.errors import Unavailable

if sys.platform == "win32":
    raise Unavailable(
        "The embedded database runs on Linux and macOS.",
        hint="Set REMEMBRANCER_DATABASE_URL to a PostgreSQL server with pgvector, or use WSL.",
    )

from remembrancer.services.embedded.account import server_account
from remembrancer.services.embedded.directory import DataDirectory, default_data_dir, explained
from remembrancer.services.embedded.locks import alone, open_lock, share, try_alone
from remembrancer.services.embedded.programs import find_programs, within_reach
from remembrancer.services.embedded.server import PORT, USER, Postmaster, ensure_running, make_cluster, stop

__all__ = ["EmbeddedPostgres", "open_embedded"]

DATABASE = "remembrancer"


class EmbeddedPostgres:
    """A use of the server of one data directory. Closing it, or the end of the process, gives it up."""

    def __init__(self, directory: DataDirectory, programs: Path, settings: Mapping[str, str], users: int) -> None:
        self._directory = directory
        self._programs = programs
        self._settings = settings
        self._users: int | None = users
        self._sockets = self._ensure_running()
        atexit.register(self.close)

    @property
    def data_dir(self) -> Path:
        """Where everything lies."""
        return self._directory.path

    @property
    def url(self) -> str:
        """The address of the database `remembrancer`, for psycopg. It holds the password."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Returns the address of another database of this server."""
        return _url(self._directory, self._sockets, database)

    def revive(self) -> None:
        """Starts the server again if it was killed; does nothing if it runs. `url` may be another one afterwards.

        Raises:
            Unavailable: it does not start.
        """
        with explained(self.data_dir), alone(self._directory.lock):
            self._sockets = self._ensure_running()

    def _ensure_running(self) -> Path:
        def answers(found: Postmaster) -> bool:
            return _answers(self._directory, found)

        return ensure_running(self._directory, self._programs, self._settings, answers).sockets

    def close(self) -> None:
        """Gives up the use; the last one out stops the server. A second call does nothing."""
        if self._users is None:
            return
        atexit.unregister(self.close)
        os.close(self._users)
        self._users = None
        if self._directory.lock.exists():
            with alone(self._directory.lock):
                _stop_if_unused(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EmbeddedPostgres({str(self.data_dir)!r})"


def open_embedded(data_dir: Path | None = None, *, settings: Mapping[str, str] | None = None) -> EmbeddedPostgres:
    """Returns the running server of a data directory, which is made on first use.

    Any number of processes may open one directory, also at the same moment: they share one server. A server whose user
    was killed is taken over; one that was killed itself is started again and recovers. Nothing above the directory is
    changed.

    Args:
        data_dir: default: the platform's folder for user data; as root `/var/lib/remembrancer`.
        settings: parameters of PostgreSQL beside ours, for tests and benchmarks (`fsync=off`); a server that already
            runs keeps its own.

    Raises:
        Unavailable: the directory is another user's, holds something else, is out of the server's reach, full, not
            writable or of another PostgreSQL version, or the server does not start. Nothing is written then.
    """
    account = server_account()
    programs = find_programs()
    path = (data_dir or default_data_dir()).expanduser()
    with explained(path):
        directory = DataDirectory(path.resolve(), account)
        directory.refuse_what_is_not_ours()
        directory.create()
        with alone(directory.lock) as lock:
            return _open(directory, programs, lock, settings or {})


def _open(directory: DataDirectory, programs: Path, lock: int, settings: Mapping[str, str]) -> EmbeddedPostgres:
    users = open_lock(directory.users)
    share(users)
    try:
        programs = within_reach(programs, directory.account, directory.path)
        if not directory.cluster.exists():
            make_cluster(directory, programs, lock, durable=settings.get("fsync") != "off")
        return EmbeddedPostgres(directory, programs, settings, users)
    except BaseException:
        os.close(users)
        _stop_if_unused(directory)
        directory.remove_failed_start()
        raise


def _stop_if_unused(directory: DataDirectory) -> None:
    """Stops the server if no living process uses it; the lock of the directory is held."""
    users = open_lock(directory.users)
    try:
        if try_alone(users):
            stop(directory)
    finally:
        os.close(users)


def _answers(directory: DataDirectory, running: Postmaster) -> bool:
    """Whether the server lets us in, or would if there were room.

    Raises:
        Unavailable: it does not take our password.
    """
    try:
        psycopg.connect(_url(directory, running.sockets, DATABASE), connect_timeout=10).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise Unavailable(
                f"The database in {directory.path} does not take the password in {directory.password_file}.",
                hint="Restore this file from the backup of the data directory.",
            ) from None
        return "too many clients" in str(error)
    return True


def _url(directory: DataDirectory, sockets: Path, database: str) -> str:
    host = quote(str(sockets), safe="")
    return f"postgresql://{USER}:{quote(directory.password())}@/{quote(database)}?host={host}&port={PORT}"
