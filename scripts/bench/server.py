"""A PostgreSQL for benchmarks: the product's own, on a memory file system, with a flush of known length."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remembrancer.services.embedded import open_embedded, server

SHIM = Path(__file__).with_name("slowflush.c")
MEMORY = Path("/dev/shm")


@contextmanager
def running(flush_us: int) -> Iterator[str]:
    """Yields the address of an empty database whose flushes take `flush_us` microseconds, 0 for next to nothing.

    Raises:
        SystemExit: there is no memory file system, or no C compiler for a flush of known length.
    """
    if not os.access(MEMORY, os.W_OK):
        raise SystemExit(f"{MEMORY} is not there: figures from a disk would measure the disk.")
    folder = Path(tempfile.mkdtemp(prefix="remembrancer-bench-", dir=MEMORY))
    folder.chmod(0o755)
    passed_on = server.PASSED_ON
    try:
        if flush_us:
            server.PASSED_ON = (*passed_on, "LD_PRELOAD", "SLOWFLUSH_US")
            os.environ |= {"LD_PRELOAD": str(_compiled(folder)), "SLOWFLUSH_US": str(flush_us)}
        with open_embedded(folder / "data", settings={"max_wal_size": "4GB", "checkpoint_timeout": "1h"}) as postgres:
            for name in ("LD_PRELOAD", "SLOWFLUSH_US"):
                os.environ.pop(name, None)
            yield postgres.url
    finally:
        server.PASSED_ON = passed_on
        shutil.rmtree(folder, ignore_errors=True)


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("No C compiler: run with --flush 0 only.")
    library = folder / "slowflush.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SHIM, "-ldl"], check=True)
    library.chmod(0o755)
    return library
