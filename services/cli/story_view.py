"""How the story looks: a line a day, and desk and drawer side by side whenever something has moved between them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.box import ROUNDED
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from remembrancer.services.answers import MemoryView
from remembrancer.services.cli.screen import Column, Screen, shown
from remembrancer.services.cli.show import STATE, kind
from remembrancer.services.cli.story import MOCHI, Day, Full, Story

PAUSE = 0.4
"""Seconds between two days, for people who watch."""
ROOMY, WIDEST = 80, 100
"""Columns from which on every memory of the story fits into one line; columns that are used at most."""


class View:
    """Draws on a terminal as it happens; in a pipe, the days are one table."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._days: list[Day] = []
        self._drawn: object = None

    def opening(self, model: str) -> None:
        """What is going to be seen."""
        self._screen.heading("Three weeks with Mira", f"on a real store, with the model {model}")
        self._screen.line("What no message touches for 7 chat days rests: kept and searched, not sent.")
        self._screen.line("")

    def day(self, day: Day) -> None:
        """One day."""
        if not self._screen.fancy:
            self._days.append(day)
            return
        time.sleep(PAUSE)
        said = f"{day.who}: {day.message}" if day.message else "nobody talks"
        row = Table.grid(padding=(0, 1), expand=True)
        row.add_column(no_wrap=True)
        row.add_column(ratio=1)
        row.add_column(no_wrap=True)
        row.add_row(
            Text(f"day {day.day:>2}  {day.date:%a} {day.date.day:>2} {day.date:%b} ", "bold"),
            Text(shown(said)),
            _gauge(day),
        )
        self._fit(row)
        if day.what:
            self._screen.line(Text(f"        {day.what}", "italic cyan"))
        where = ({m.id for m in day.desk}, {m.id for m in day.drawer})
        if where != self._drawn:
            self._drawn = where
            both = Table.grid(padding=(0, 1), expand=True)
            both.add_column(ratio=1)
            both.add_column(ratio=1)
            rows = max(len(day.desk), len(day.drawer)) if self._screen.console.width >= ROOMY else None
            desk = _panel("Desk: sent with every reply", day.desk, rows)
            both.add_row(desk, _panel("Drawer: resting", day.drawer, rows))
            self._fit(both)

    def full(self, full: Full) -> None:
        """The list without room."""
        screen = self._screen
        if not screen.fancy:
            self._table()
        screen.line("")
        screen.heading("A full list", f"the list now holds at most {full.capacity}")
        screen.labelled("Mira saves", full.saved, "bold green")
        screen.labelled("forgotten", f"{full.forgotten}: {full.reason}", "bold blue")
        screen.labelled("notice to everyone", full.notice, "dim")
        screen.labelled("Mira saves", full.refused, "bold green")
        screen.labelled("refused", full.refusal, "bold red")
        screen.labelled("notice to everyone", full.refusal_notice, "dim")

    def ending(self, story: Story) -> None:
        """Where it is, and what to try."""
        screen = self._screen
        screen.line("")
        for what in story.broken:
            screen.labelled("not as claimed", what, "bold red")
        if not story.broken:
            screen.line(Text("All as the rules say", "bold green"), f", in {story.seconds:.1f} s.")
        screen.line(f"The data are in {story.data}, tenant {story.tenant}. Try:")
        for one in story.try_these:
            screen.typed(one)

    def _fit(self, table: Table) -> None:
        table.width = min(self._screen.console.width, WIDEST)
        self._screen.draw(table)

    def _table(self) -> None:
        columns = ("day", "date", "message", "unused", "state", "desk", "drawer", "recalled")
        rows = [
            (str(d.day), f"{d.date}", f"{d.who}: {d.message}" if d.message else "nobody talks", str(d.unused_days),
             d.state, _texts(d.desk), _texts(d.drawer), "; ".join(d.recalled))
            for d in self._days
        ]  # fmt: skip
        self._screen.table([Column(c, number=c in ("day", "unused")) for c in columns], rows)


def _gauge(day: Day) -> Text:
    """Mochi's counter: seven marks until it rests."""
    n = min(day.unused_days, 7)
    style = "blue" if day.state == "resting" else "green"
    return Text.assemble(
        "Mochi ", ("\u25b0" * n, style), ("\u25b1" * (7 - n), "dim"), (f" {day.unused_days} {day.state:<7}", style)
    )


def _panel(title: str, memories: Sequence[MemoryView], lines: int | None) -> Panel:
    rows = Table.grid(padding=(0, 1), expand=True)
    rows.add_column(ratio=1)
    rows.add_column(no_wrap=True, justify="right")
    for m in memories:
        style = STATE[kind(m)]
        text = Text(shown(m.text), "bold" if m.text == MOCHI else "")
        rows.add_row(text, Text("pinned" if m.pinned else str(m.unused_days), style))
    inside = rows if memories else Text("empty", "dim")
    height = None if lines is None else lines + 2
    return Panel(
        inside, title=Text(title, "not dim"), title_align="left", box=ROUNDED, border_style="dim", height=height
    )


def _texts(memories: Sequence[MemoryView]) -> str:
    return "; ".join(f"{m.text} ({'pinned' if m.pinned else m.unused_days})" for m in memories) or "-"
