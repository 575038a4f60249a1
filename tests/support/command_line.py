"""The command line as people and scripts have it: in this process for speed, as a program, and on a terminal.

remembrancer = CommandLine(database_url)
assert remembrancer("save", "mira", "--server", "guild", "Juno's cat is named Mochi").code == 0
assert remembrancer.json("list", "mira")["lists"][0]["count"] == 1
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

PROGRAM = [sys.executable, "-m", "remembrancer.services.cli"]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document of stdout; anything beside it is an error."""
        return json.loads(self.out)


class CommandLine:
    """`remembrancer` on one database."""

    def __init__(self, url: str | None, **environment: str) -> None:
        given = {"REMEMBRANCER_EMBEDDER": "none", **({} if url is None else {"REMEMBRANCER_DATABASE_URL": url})}
        self.environment = given | environment

    def __call__(self, *words: str, typed: str | bytes = "", code: int = 0) -> Said:
        """Run in this process, with pipes for streams."""
        from remembrancer.services.cli.process import call

        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
        raw = typed.encode() if isinstance(typed, str) else typed
        with ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, self._environment(), clear=True))
            stack.enter_context(mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8")))
            stack.enter_context(redirect_stdout(out))
            stack.enter_context(redirect_stderr(err))
            ended = call(list(words))
        said = Said(ended, *(_read(stream) for stream in (out, err)))
        assert said.code == code, said
        return said

    def json(self, *words: str, code: int = 0) -> Any:
        """The answer as JSON; nothing else is said."""
        said = self(*words, "--json", code=code)
        assert said.err == ""
        return said.document

    def process(self, *words: str, typed: str = "", **environment: str) -> Said:
        """Run as a program of its own."""
        done = subprocess.run(
            [*PROGRAM, *words],
            input=typed,
            env=self._environment() | environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def start_waiting(self, *words: str) -> subprocess.Popen[str]:
        """Start as a program that waits for the end of its standard input; the caller ends it."""
        running = subprocess.Popen(
            [*PROGRAM, *words],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        _until_it_waits_for(running.pid)
        return running

    def shell(self, script: str) -> Said:
        """Run a line of bash in which `$REMEMBRANCER` is this program."""
        done = subprocess.run(
            ["bash", "-c", script],
            env=self._environment() | {"REMEMBRANCER": shlex.join(PROGRAM)},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def terminal(
        self, *words: str, columns: int = 80, answers: Sequence[tuple[str, str]] = (), **environment: str
    ) -> Said:
        """Run on a terminal. `answers`: when this text has come, that is typed. Both streams are one there."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        running = subprocess.Popen(
            [*PROGRAM, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self._environment() | {"TERM": "xterm-256color"} | environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that ^C reaches it
        )
        os.close(theirs)
        try:
            seen = _converse(ours, list(answers), time.monotonic() + 120)
            return Said(running.wait(timeout=60), seen.replace("\r\n", "\n"), "")
        finally:
            os.close(ours)
            if running.poll() is None:
                running.kill()
                running.wait()

    def _environment(self) -> dict[str, str]:
        taken = ("REMEMBRANCER_", "MEMORY_DECAY", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES")
        return {k: v for k, v in os.environ.items() if not k.startswith(taken)} | self.environment


def plain(text: str) -> str:
    """The text without a terminal's codes."""
    return ESCAPES.sub("", text)


def _until_it_waits_for(pid: int) -> None:
    """Until the process sleeps in a read of the pipe that is its standard input."""
    deadline = time.monotonic() + 60
    while "pipe" not in Path(f"/proc/{pid}/wchan").read_text("ascii"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _read(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8")


def _converse(terminal: int, answers: list[tuple[str, str]], deadline: float) -> str:
    seen, asked_from = b"", 0
    while True:
        assert time.monotonic() < deadline, f"nothing more came after {seen!r}"
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                more = os.read(terminal, 1 << 16)
            except OSError:  # the other side has closed
                break
            if not more:
                break
            seen += more
        said = plain(seen.decode("utf-8", "replace"))
        if answers and (at := said.find(answers[0][0], asked_from)) >= 0:
            asked_from = at + len(answers[0][0])  # what came with it may be what is waited for next
            os.write(terminal, answers.pop(0)[1].encode())
    assert not answers, f"never asked: {answers} in {seen!r}"
    return seen.decode("utf-8", "replace")
