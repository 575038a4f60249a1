"""The server: making its cluster, starting it, finding one that already runs, stopping it.

Every function here is called by one process at a time, the holder of the directory's lock.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded.account import Account, initdb_account
from remembrancer.services.embedded.directory import OTHER_PLACE, DataDirectory
from remembrancer.services.embedded.locks import POLL_SECONDS, is_held, open_lock, try_alone

logger = logging.getLogger(__name__)

USER = "remembrancer"
PORT = 5432
TEMPORARY = "remembrancer-"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the closing zero included.
SOCKET_BYTES = 107 if sys.platform == "linux" else 103

PASSED_ON = ("PATH", "LD_LIBRARY_PATH")

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "huge_pages": "off",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # A file for each day of the week, emptied when its day comes again.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
}


@dataclass(frozen=True)
class Postmaster:
    """What a running server writes about itself into `postmaster.pid`."""

    pid: int
    sockets: Path
    ready: bool

    @classmethod
    def of(cls, cluster: Path) -> Postmaster | None:
        """Reads it; None if there is none or it is not complete yet."""
        try:
            lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        if len(lines) < 8:
            return None
        return cls(pid=int(lines[0]), sockets=Path(lines[4]), ready=lines[7].strip() == "ready")

    def works_in(self, cluster: Path) -> bool:
        """Whether the process of this number is a server on this cluster, as far as we can see (numbers are reused)."""
        try:
            return str(cluster) in psutil.Process(self.pid).cmdline()
        except psutil.Error:
            return False


def make_cluster(directory: DataDirectory, programs: Path, lock: int, *, durable: bool) -> None:
    """Makes a cluster with its password; it appears in its place in one step, complete, or not at all.

    Raises:
        Unavailable: `initdb` failed; its own words are in the message.
    """
    account = initdb_account(directory.account)
    shutil.rmtree(directory.unfinished, ignore_errors=True)
    directory.unfinished.mkdir(mode=0o700)
    password = directory.unfinished / "password"
    password.touch(mode=0o600)
    password.write_text(directory.make_password(), encoding="utf-8")
    if account.switched:
        os.chown(password, account.uid, account.gid)
        os.chown(directory.unfinished, account.uid, account.gid)
    cluster = directory.unfinished / "cluster"
    initdb = _launch(
        [
            *(programs / "initdb", f"--pgdata={cluster}", f"--username={USER}", f"--pwfile={password}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums"),
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *(() if durable else ("--no-sync",)),
        ],
        account,
        directory.start_log,
        holding=lock,
    )
    if initdb.wait():
        raise Unavailable(
            f"No database could be made in {directory.path}: {_last_line(_read(directory.start_log))}", hint=OTHER_PLACE
        )
    if account.switched:
        _give(cluster, directory.account)
    cluster.rename(directory.cluster)
    shutil.rmtree(directory.unfinished)


def ensure_running(
    directory: DataDirectory, programs: Path, settings: Mapping[str, str], answers: Callable[[Postmaster], bool]
) -> Postmaster:
    """Returns the running server: the one that is there, also if whoever started it was killed, or a new one.

    Args:
        answers: says whether a server that calls itself ready takes connections.

    Raises:
        Unavailable: it does not start, or not in `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    alive = open_lock(directory.alive)
    try:
        while time.monotonic() < deadline:
            if try_alone(alive):
                _remove_what_a_dead_server_left(directory)
                return _start(directory, programs, settings, alive, deadline)
            running = Postmaster.of(directory.cluster)
            if running and running.ready and answers(running):
                return running
            time.sleep(POLL_SECONDS)
    finally:
        os.close(alive)
    raise Unavailable(
        f"The database server of {directory.path} runs but has not answered for {START_SECONDS:.0f} s.",
        hint=f"Its log is in {directory.logs}.",
    )


def stop(directory: DataDirectory) -> None:
    """Stops the server and waits until its last process has ended; what is committed is on disk."""
    running = Postmaster.of(directory.cluster)
    if running is None or not running.works_in(directory.cluster):
        return
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGINT)  # PostgreSQL's "fast" stop: roll back what is open, checkpoint, end
    deadline = time.monotonic() + STOP_SECONDS
    while is_held(directory.alive):
        if time.monotonic() > deadline:
            logger.warning("The database server of %s is still stopping.", directory.path)
            return
        time.sleep(POLL_SECONDS)
    _remove_sockets(directory, running.sockets)


def _start(
    directory: DataDirectory, programs: Path, settings: Mapping[str, str], alive: int, deadline: float
) -> Postmaster:
    directory.create_for_server(directory.logs)
    sockets = _make_sockets(directory)
    options = {
        **SETTINGS,
        "unix_socket_directories": '"{}"'.format(str(sockets).replace('"', '""')),
        "log_directory": str(directory.logs),
        **settings,
    }
    server = _launch(
        [
            *(programs / "postgres", "-D", directory.cluster, "-p", str(PORT)),
            *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
        ],
        directory.account,
        directory.start_log,
        holding=alive,
    )
    # The server may outlive us or end before us; somebody has to take note of its end.
    threading.Thread(target=server.wait, name="embedded-postgres", daemon=True).start()
    while time.monotonic() < deadline:
        running = Postmaster.of(directory.cluster)
        if running and running.ready:
            return running
        if server.poll() is not None:
            raise Unavailable(
                f"The database server of {directory.path} did not start: {_why_it_ended(directory)}",
                hint=f"Its log is in {directory.logs} and {directory.start_log}.",
            )
        time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The database server of {directory.path} is not ready after {START_SECONDS:.0f} s.",
        hint=f"It may be recovering after a crash: try again in a while. Its log is in {directory.logs}.",
    )


def _launch(command: Sequence[str | Path], account: Account, log: Path, *, holding: int) -> subprocess.Popen[bytes]:
    """Runs a program of the server as `account`, in a session of its own so that Ctrl-C in a terminal, or its end, does
    not reach it, and holding the lock `holding` as long as it lives. It keeps no pipe and no variable of ours.
    """
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(holding,),
            start_new_session=True,
            cwd="/",
            env={"LC_ALL": "C"} | {name: os.environ[name] for name in PASSED_ON if name in os.environ},
            user=account.uid if account.switched else None,
            group=account.gid if account.switched else None,
            extra_groups=() if account.switched else None,
            umask=0o077,
        )


def _make_sockets(directory: DataDirectory) -> Path:
    """Makes the folder that the server listens in: in the data directory, or, where that path is too long for a socket,
    one with a random name among the temporary files, which nobody can have made before. Others find it through
    `postmaster.pid`.
    """
    if _fits(directory.sockets):
        directory.create_for_server(directory.sockets)
        return directory.sockets
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108
        if _fits(Path(parent, f"{TEMPORARY}12345678")) and directory.account.way_blocked_at(Path(parent, "x")) is None:
            folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
            directory.create_for_server(folder)
            return folder
    raise Unavailable(
        f"{directory.sockets} is too long for a socket ({SOCKET_BYTES} bytes), and so is every temporary folder.",
        hint="Choose a shorter data directory or a shorter TMPDIR.",
    )


def _fits(folder: Path) -> bool:
    # A comma separates hosts in a connection string.
    return len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= SOCKET_BYTES and "," not in str(folder)


def _remove_sockets(directory: DataDirectory, folder: Path) -> None:
    """Removes a folder that `_make_sockets` made, and no other."""
    ours = folder == directory.sockets or folder.name.startswith(TEMPORARY)
    with suppress(FileNotFoundError):
        if ours and folder.lstat().st_uid == directory.account.uid:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_what_a_dead_server_left(directory: DataDirectory) -> None:
    """Removes `postmaster.pid` and sockets after a crash: PostgreSQL would trust the process number in them, which may
    be somebody else's by now. We know better, as no process holds `alive`.

    Raises:
        Unavailable: a server that we did not start works on the cluster.
    """
    dead = Postmaster.of(directory.cluster)
    if dead is not None:
        if dead.works_in(directory.cluster):
            raise Unavailable(
                f"A server that Remembrancer did not start (process {dead.pid}) works on {directory.cluster}.",
                hint="Stop it, then try again.",
            )
        _remove_sockets(directory, dead.sockets)
    (directory.cluster / "postmaster.pid").unlink(missing_ok=True)
    _remove_sockets(directory, directory.sockets)


def _give(folder: Path, account: Account) -> None:
    os.chown(folder, account.uid, account.gid)
    for path in folder.rglob("*"):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _why_it_ended(directory: DataDirectory) -> str:
    """Returns the last words of the start that failed: from the log, or from before there was one."""
    log = max(directory.logs.glob("*.log"), key=lambda log: log.stat().st_mtime, default=directory.start_log)
    of_this_start = _read(log).rpartition("starting PostgreSQL")[2]
    return _last_line(of_this_start if "FATAL" in of_this_start else _read(directory.start_log))


def _read(log: Path) -> str:
    with suppress(FileNotFoundError):
        return log.read_text(encoding="utf-8", errors="replace")
    return ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or ["it says nothing about the reason"]
    return next((line for line in reversed(lines) if re.search("error|FATAL|PANIC", line)), lines[-1]).strip()
