"""Another version of the product beside this one: a copy of it with some lines changed, in a process of its own.

with other_version(folder, {"domain/events.py": [("old line", "new line")]}, url) as tomorrow:
    tomorrow.do("save", "mira", scope="server", subject="guild", text="Juno's cat is named Mochi")

As a program it carries out verbs, a line each: name, arguments, keyword arguments as JSON; it says what came of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
Changes = Mapping[str, Sequence[tuple[str, str]]]


class Refused(Exception):
    """The error that a verb of the other version raised: its type, its sentence."""


class OtherVersion:
    """The process. It opens the memories of one database; its projector runs if asked to."""

    def __init__(self, code: Path | None, url: str, *, background: bool) -> None:
        ours = ("REMEMBRANCER_", "MEMORY_DECAY", "PYTHONPATH")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        paths = [*([] if code is None else [str(code)]), str(REPOSITORY)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps({"url": url, "background": background, "embedder": "none"})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
            cwd=code or REPOSITORY,
            encoding="utf-8",
        )
        self.where = self._said()["where"]

    def do(self, verb: str, *arguments: Any, **named: Any) -> Any:
        """What the verb answered, as JSON.

        Raises:
            Refused: what it raised.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([verb, arguments, named]) + "\n")
        self._process.stdin.flush()
        said = self._said()
        if "error" in said:
            raise Refused(*said["error"])
        return said["answer"]

    def _said(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the process ended with {self._process.wait()}"
        return json.loads(line)

    def end(self) -> None:
        """Closes the memories and ends the process; a second call does nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


def copy_with(folder: Path, changes: Changes) -> Path:
    """A copy of the product in this folder, each of these passages replaced. Returns what belongs on the path."""
    package = folder / "remembrancer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for part in ("domain", "projections", "services"):
        shutil.copytree(REPOSITORY / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name, passages in changes.items():
        text = (package / name).read_text("utf-8")
        for before, after in passages:
            assert text.count(before) == 1, f"{name} has {text.count(before)} times: {before}"
            text = text.replace(before, after)
        (package / name).write_text(text, "utf-8")
    return folder


@contextmanager
def other_version(code: Path | None, url: str, *, background: bool = False) -> Iterator[OtherVersion]:
    """A process with this code (None: the present one)."""
    process = OtherVersion(code, url, background=background)
    try:
        yield process
    finally:
        process.end()


def _main() -> None:
    import remembrancer.services
    from remembrancer.domain.errors import RemembrancerError
    from remembrancer.services import open_memory

    def say(what: Any) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    with open_memory(**json.loads(sys.argv[1])) as memory:
        say({"where": remembrancer.services.__file__})
        for line in sys.stdin:
            verb, arguments, named = json.loads(line)
            try:
                answer = getattr(memory, verb)(*arguments, **named)
            except RemembrancerError as error:
                say({"error": [type(error).__name__, str(error)]})
            else:
                say({"answer": answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer})


if __name__ == "__main__":
    _main()
