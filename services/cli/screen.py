"""Where people read: colours and tables on a terminal, one plain line a row in a pipe.

What is shown was written by strangers. Nothing that a terminal would obey gets through: control characters, and those
that turn the direction of writing, are shown as their escapes.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_ENDLESS = 100_000
"""Columns of a pipe: nothing is wrapped there."""


class Progress(Protocol):
    """Told what is done of how much, and what is being done if that changes."""

    def __call__(self, done: int, total: int | None, what: str = "") -> None: ...  # noqa: D102


def shown(text: str) -> str:
    """The text with everything escaped that a terminal would obey; ends of line stay."""
    return _OBEYED.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str) -> str:
    """The same on a single line."""
    return shown(text).replace("\n", "\\n")


def json_text(document: Any, *, indent: int | None = 2) -> str:
    """JSON that can be shown on a terminal: the same document, with escapes for what a terminal would obey."""
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=str)
    return "\n".join(_OBEYED.sub(lambda m: f"\\u{ord(m[0]):04x}", line) for line in text.split("\n"))


class Column:
    """A column of a table. `wide` ones share what room is left; numbers stand right."""

    def __init__(self, title: str, *, number: bool = False, wide: bool = False, style: str = "") -> None:
        self.title, self.number, self.wide, self.style = title, number, wide, style


class Screen:
    """One stream. `fancy` if it is a terminal that can do more than print."""

    def __init__(self, stream: IO[str], *, bare: bool = False) -> None:
        self._bare = bare
        self.fancy = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
        self.console = Console(
            file=stream,
            force_terminal=self.fancy,
            color_system="auto" if self.fancy and not os.environ.get("NO_COLOR") else None,
            width=None if self.fancy else _ENDLESS,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )

    @property
    def can_ask(self) -> bool:
        """Is there somebody who can answer?"""
        return sys.stdin.isatty() and self.console.file.isatty()

    def line(self, *parts: str | Text) -> None:
        """One line of text; it wraps on a terminal."""
        self.draw(Text.assemble(*(Text(shown(p)) if isinstance(p, str) else p for p in parts)))

    def draw(self, drawing: RenderableType) -> None:
        """Anything that rich can draw; without blanks at the ends of lines in a pipe."""
        if self.fancy:
            self.console.print(drawing)
            return
        with self.console.capture() as captured:
            self.console.print(drawing, crop=False, overflow="ignore", no_wrap=True)
        for line in captured.get().splitlines():
            self.console.file.write(line.rstrip() + "\n")

    def labelled(self, label: str, text: str, style: str = "") -> None:
        """`label: text`, the text beside its label where it wraps."""
        if not self.fancy:
            self.line(f"{label}: {one_line(text)}")
            return
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(f"{label}:", style), Text(shown(text)))
        self.draw(grid)

    def heading(self, text: str, more: str = "") -> None:
        """A line that begins a part."""
        self.line(Text(shown(text), "bold"), Text(f"  {shown(more)}" if more else "", "dim"))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> None:
        """Rows under their titles. Columns that are empty in every row are left out."""
        made = [[self._cell(value) for value in row] for row in rows]
        used = [n for n in range(len(columns)) if any(row[n].plain for row in made)] if made else []
        table = Table(
            box=SIMPLE_HEAD if self.fancy else None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            show_edge=False,
            header_style="dim" if self.fancy else "",
        )
        for n in used:
            c = columns[n]
            table.add_column(
                c.title, justify="right" if c.number else "left", style=c.style, overflow="fold", no_wrap=not c.wide
            )
        for row in made:
            table.add_row(*(row[n] for n in used))
        if used:
            self.draw(table)

    def block(self, text: str) -> None:
        """A text of several lines, set off by a margin."""
        if self.fancy:
            self.draw(Padding(Text(shown(text)), (0, 0, 0, 2)))
        else:
            for line in text.split("\n"):
                self.console.file.write(shown(line) + "\n")

    def typed(self, command: str) -> None:
        """A command to copy: the terminal breaks its lines, not we."""
        self.console.print(Text(shown(command), "bold"), soft_wrap=True)

    def ask(self, question: str) -> bool:
        """A question that is answered with yes or no; an end of the input is no."""
        self.console.print(Text(f"{shown(question)} [y/N] "), end="")
        self.console.file.flush()
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):
            self.console.print()
        return answer.strip().casefold() in ("y", "yes")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Say what is going on while it goes on."""
        aside = self._aside()
        if not aside.fancy:
            yield
            return
        with aside.console.status(Text(f"{what} …"), spinner="dots"):
            yield

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """A bar for what takes its time; gone when it is done. What is drawn meanwhile stands above it."""
        aside = self._aside()
        if not aside.fancy:
            yield lambda done, total, what="": None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=aside.console, transient=True) as bar:
            task = bar.add_task(what, total=None)

            def told(done: int, total: int | None, what: str = "") -> None:
                bar.update(task, completed=done, total=total, description=shown(what) or None)

            yield told

    @contextmanager
    def steps(self, names: Mapping[str, str]) -> Iterator[Callable[[str, int, int], None]]:
        """A bar for each step of what takes long, with rate and time left; gone when all is done."""
        aside = self._aside()
        if not aside.fancy:
            yield lambda _step, _done, _total: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        name, rate = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
        columns = (name, BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
        tasks: dict[str, tuple[TaskID, int, float]] = {}
        with Bar(*columns, console=aside.console, transient=True) as bar:

            def told(step: str, done: int, total: int) -> None:
                if step not in tasks:
                    tasks[step] = (bar.add_task(names[step], total=total, rate=""), done, time.monotonic())
                task, first, began = tasks[step]
                seconds = time.monotonic() - began
                speed = f"{(done - first) / seconds:,.0f}/s" if seconds > 0.5 else ""
                bar.update(task, completed=done, total=total, rate=speed)

            yield told

    def _aside(self) -> Screen:
        """Where what passes is shown: here if people read here, else on the error stream, if that is a terminal."""
        return self if self.fancy and not self._bare else Screen(sys.stderr)

    def _cell(self, value: str | Text) -> Text:
        text = value if isinstance(value, Text) else Text(shown(value))
        if self.fancy or "\n" not in text.plain:
            return text
        return Text(text.plain.replace("\n", "\\n"))
