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
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded.account import Account, initdb_account
from remembrancer.services.embedded.directory import OTHER_PLACE, DataDirectory, flush
from remembrancer.services.embedded.locks import POLL_SECONDS, is_held, open_lock, try_alone

logger = logging.getLogger(__name__)

USER = "remembrancer"
PORT = 5432
CREATE_DATABASE = Path(__file__).with_name("create_database.sql")
# Recovery after a crash reads up to a gigabyte of log; giving up on it would only make the next start begin again.
START_SECONDS = 300.0
STOP_SECONDS = 30.0
STARTS = 3  # a start that ends without a word was killed, and is tried again
# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the closing zero included.
SOCKET_BYTES = 107 if sys.platform == "linux" else 103
TEMPORARY = "remembrancer-"
# What impatient clients are told, and what the other processes of a killed server say.
NO_REASON = "the database system is|unexpected postmaster exit"
# The wheel's libraries are found by their relative path; some systems keep zlib where only LD_LIBRARY_PATH says.
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
    # No log line carries what people said: neither rows that a constraint refused, nor statements.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    # A file for each day of the week, emptied when its day comes again.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    # /dev/shm of a container has 64 MB, too little for a parallel build of an HNSW index.
    **({"dynamic_shared_memory_type": "sysv"} if sys.platform == "linux" else {}),
}


@dataclass(frozen=True)
class Postmaster:
    """What a server writes about itself into `postmaster.pid`."""

    pid: int
    sockets: Path
    ready: bool

    @classmethod
    def of(cls, cluster: Path) -> Postmaster | None:
        """Reads it; None if there is none or it is not complete yet."""
        try:
            lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            return cls(pid=int(lines[0]), sockets=Path(lines[4]), ready=lines[7].strip() == "ready")
        except (FileNotFoundError, IndexError, ValueError):
            return None

    def works_in(self, cluster: Path) -> bool:
        """Whether the process of this number is a server on this cluster, as far as we can see (numbers are reused)."""
        try:
            return str(cluster) in psutil.Process(self.pid).cmdline()
        except psutil.Error:
            return False


def make_cluster(directory: DataDirectory, programs: Path, lock: int, *, durable: bool) -> None:
    """Makes a cluster with its password; it appears in its place in one step, complete, or not at all.

    Args:
        lock: the descriptor of the directory's lock, which `initdb` holds as long as it runs.
        durable: whether the new files are flushed to disk.

    Raises:
        Unavailable: `initdb` failed; its own words are in the message.
    """
    account = initdb_account(directory.account)
    shutil.rmtree(directory.unfinished, ignore_errors=True)
    directory.create_for(account, directory.unfinished)
    cluster = directory.unfinished / "cluster"
    password = directory.unfinished / "password"
    password.touch(mode=0o600)
    password.write_text(directory.make_password(), encoding="utf-8")
    account.give(password)
    initdb: list[str | Path] = [
        *(programs / "initdb", f"--pgdata={cluster}", f"--username={USER}", f"--pwfile={password}"),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums"),
        *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        "--set=scram_iterations=1",  # stretching helps weak passwords; ours is random, and connecting gets faster
        *(() if durable else ("--no-sync",)),
    ]
    postgres: list[str | Path] = [
        programs / "postgres",
        "--single",
        "-D",
        cluster,
        "-c",
        "exit_on_error=on",
        "postgres",
    ]
    for command, read in ((initdb, Path(os.devnull)), (postgres, CREATE_DATABASE)):
        if _finish(_launch(command, account, directory.start_log, holding=lock, read=read)):
            reason = _said(directory.start_log)
            raise Unavailable(f"No database could be made in {directory.path}: {reason}", hint=OTHER_PLACE)
    password.unlink()
    if account != directory.account:
        for path in (cluster, *cluster.rglob("*")):
            directory.account.give(path)
    cluster.rename(directory.cluster)
    if durable:
        flush(directory.path)
    directory.unfinished.rmdir()


def ensure_running(
    directory: DataDirectory, programs: Path, settings: Mapping[str, str], answers: Callable[[Postmaster], bool]
) -> Postmaster:
    """Returns the running server: the one that is there, also if whoever started it was killed, or a new one.

    Args:
        settings: parameters for a new server, over ours.
        answers: says whether a server that calls itself ready lets us in.

    Raises:
        Unavailable: it does not start, or not in `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    starts = 0
    while time.monotonic() < deadline:
        running = Postmaster.of(directory.cluster)
        if not is_held(directory.alive):
            complaint = _complaint_of_start(directory) if starts else None
            if complaint or starts == STARTS:
                raise Unavailable(
                    f"The database server of {directory.path} did not start: {complaint or 'it was killed each time.'}",
                    hint=f"Its log is in {directory.logs}.",
                )
            _remove_what_a_dead_server_left(directory, running)
            _start(directory, programs, settings)
            starts += 1
        elif running and running.ready and answers(running):
            return running
        time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The database server of {directory.path} runs but has not answered for {START_SECONDS:.0f} s.",
        hint=f"It may be recovering after a crash: try again in a while. Its log is in {directory.logs}.",
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


def _start(directory: DataDirectory, programs: Path, settings: Mapping[str, str]) -> None:
    directory.create_for(directory.account, directory.logs)
    sockets = str(_make_sockets(directory)).replace('"', '""')
    options = {"unix_socket_directories": f'"{sockets}"', "log_directory": str(directory.logs), **SETTINGS, **settings}
    postgres: list[str | Path] = [
        *(programs / "postgres", "-D", directory.cluster, "-p", str(PORT)),
        *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
    ]
    alive = open_lock(directory.alive)
    try:
        # By way of a shell that ends at once, so that the server is no child of ours that we would have to wait for.
        if try_alone(alive):
            command = ["/bin/sh", "-c", '"$@" &', "sh", *postgres]
            _finish(_launch(command, directory.account, directory.start_log, holding=alive))
    finally:
        os.close(alive)


def _launch(
    command: Sequence[str | Path], account: Account, log: Path, *, holding: int, read: Path = Path(os.devnull)
) -> subprocess.Popen[bytes]:
    """Runs a program of the server as `account`, in a session of its own so that Ctrl-C in a terminal, or its end, does
    not reach it, and holding the lock `holding` as long as it lives. It keeps no pipe and no variable of ours.
    """
    with read.open("rb") as source, log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=source,
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


def _finish(program: subprocess.Popen[bytes]) -> int:
    """Waits for a program and returns its exit code; whoever is interrupted in waiting ends it first."""
    try:
        return program.wait()
    except BaseException:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        raise


def _make_sockets(directory: DataDirectory) -> Path:
    """Makes the folder that the server listens in: in the data directory, or, where that path is too long for a socket,
    one with a random name among the temporary files, which nobody can have made before. Others find it through
    `postmaster.pid`.
    """
    if _fits(directory.sockets):
        directory.create_for(directory.account, directory.sockets)
        return directory.sockets
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108
        if (
            _fits(Path(parent, f"{TEMPORARY}12345678"))
            and directory.account.blocked_on_way_to(Path(parent, "x")) is None
        ):
            folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
            directory.account.give(folder)
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


def _remove_what_a_dead_server_left(directory: DataDirectory, dead: Postmaster | None) -> None:
    """Removes `postmaster.pid` and sockets after a crash: PostgreSQL would trust the process number in them, which may
    be somebody else's by now. We know better, as no process holds `alive`.

    Raises:
        Unavailable: a server that we did not start works on the cluster.
    """
    if dead is not None:
        if dead.works_in(directory.cluster):
            raise Unavailable(
                f"A server that Remembrancer did not start (process {dead.pid}) works on {directory.cluster}.",
                hint="Stop it, then try again.",
            )
        _remove_sockets(directory, dead.sockets)
    (directory.cluster / "postmaster.pid").unlink(missing_ok=True)
    _remove_sockets(directory, directory.sockets)


def _complaint_of_start(directory: DataDirectory) -> str | None:
    """Returns why the last start failed: from the log, or from before there was one; None if it was killed."""
    log = max(directory.logs.glob("*.log"), key=lambda log: log.stat().st_mtime, default=directory.start_log)
    return _complaint(log, since="starting PostgreSQL") or _complaint(directory.start_log)


def _said(log: Path) -> str:
    """Returns what a log says first of an error, or else its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return _complaint(log) or (lines or ["it does not say why."])[-1].strip()


def _complaint(log: Path, since: str = "") -> str | None:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = (text.rpartition(since)[2] if since else text).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        error = re.search(r"\b(error while|error:|ERROR:|FATAL:|PANIC:|sh:) .*", line)
        if error and not re.search(NO_REASON, line):
            advice = re.search(r"(DETAIL|HINT): .*", following)
            return f"{error[0].rstrip('.')}.{' ' + advice[0] if advice else ''}"
    return None
