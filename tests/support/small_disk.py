"""A file system with little room, for tests of full disks. Only root with the right to mount can make one."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """Mounts a new folder in memory; skips the test where that is not allowed."""
    disk = folder / "disk"
    disk.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={megabytes}m,mode=0755".encode()
    if os.geteuid() != 0 or libc.mount(b"small", os.fsencode(disk), b"tmpfs", 0, options):
        pytest.skip("only root with the right to mount can make a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk: Path) -> Path:
    """Leaves no byte free. Returns the file to delete when there shall be room again."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return ballast
