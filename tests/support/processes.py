"""Other processes of a test: started, spoken with line by line, stopped, continued and killed by their number alone.

with client("saver", url, who="a") as other:
    assert other.line() == "ready"
    other.kill()
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

PROGRAM = Path(__file__).with_name("client_process.py")
REPOSITORY = PROGRAM.parents[2]


class Client:
    """A process that runs a role of `client_process.py`."""

    def __init__(self, role: str, **arguments: Any) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("REMEMBRANCER_", "MEMORY_DECAY"))}
        paths = [str(REPOSITORY), *filter(None, [environment.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM, role, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
            cwd=REPOSITORY,
            bufsize=0,
        )
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self, timeout: float = 60.0) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                assert selector.select(max(0.0, deadline - time.monotonic())), "the process says nothing"
                said = os.read(self._process.stdout.fileno(), 1 << 16)
                assert said, f"the process ended with {self._process.wait()}"
                self._rest += said
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def tell(self, line: str) -> None:
        """Sends it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """SIGSTOP: it holds whatever it holds, and does nothing any more."""
        os.kill(self.pid, signal.SIGSTOP)
        while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)

    def go_on(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(30)

    def end(self) -> int:
        """Closes its input, which ends every role. Returns its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(60)

    def close(self) -> None:
        """Whatever state it is in, afterwards it is gone."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def client(role: str, **arguments: Any) -> Iterator[Client]:
    """A process, killed at the end of the block if it still runs."""
    other = Client(role, **arguments)
    try:
        yield other
    finally:
        other.close()
