"""File locks that outlive nobody: the kernel lets go of them when the last holder ends, also after kill -9.

`flock` and not `lockf`: such a lock belongs to the open file, not to the process, so a child inherits it. A running
`initdb` keeps the directory locked after the death of whoever started it, and the server's processes, down to the last
backend, keep saying that the server lives. No list of process ids could say that across a kill or a container's wall.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from remembrancer.domain.errors import Unavailable

LOCK_SECONDS = 330.0  # longer than a server may take to start
POLL_SECONDS = 0.01


def open_lock(path: Path) -> int:
    """Returns a descriptor to lock, making the file if need be. Give the lock back with `os.close`, never with LOCK_UN,
    which would take it from forked children too.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def share(descriptor: int) -> None:
    """Takes a shared lock; waits while somebody holds it alone."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def try_alone(descriptor: int) -> bool:
    """Takes the lock alone if nobody holds it; never waits."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def is_held(path: Path) -> bool:
    """Whether anybody, in whatever way, holds the lock of this file."""
    descriptor = open_lock(path)
    try:
        return not try_alone(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: Path, seconds: float = LOCK_SECONDS) -> Iterator[int]:
    """Holds the lock of this file alone; yields its descriptor, so that a child can be made to hold it too.

    Raises:
        Unavailable: somebody else held it for `seconds`.
    """
    descriptor = _wait_for(path, time.monotonic() + seconds)
    if descriptor is None:
        raise Unavailable(
            f"Another process has been starting or stopping the database of {path.parent} for {seconds:.0f} s.",
            hint="Wait for it or end it, then try again.",
        )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for(path: Path, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        descriptor = open_lock(path)
        # A first start that failed takes its files away: what we have locked may not be what stands there now.
        if try_alone(descriptor) and path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)
        time.sleep(POLL_SECONDS)
    return None
