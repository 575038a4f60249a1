"""Draws the demo as an SVG: the real thing, told on the real store with the real model, on a terminal that records."""

from __future__ import annotations

import io
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from remembrancer.services import open_memory
from remembrancer.services.cli import story_view
from remembrancer.services.cli.demo import PATIENCE
from remembrancer.services.cli.screen import Screen
from remembrancer.services.cli.story import StoryClock, Teller

COLUMNS = 88
NOW = datetime(2026, 5, 25, 18, tzinfo=UTC)
"""Day 20 of the story, so that the picture does not change from day to day."""


def main(picture: Path) -> None:
    screen = Screen(sys.stdout)
    screen.fancy = True
    screen.console = Console(
        file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="truecolor", highlight=False
    )
    story_view.PAUSE = 0.0
    tell(screen)
    svg = screen.console.export_svg(title="remembrancer demo", theme=DIMMED_MONOKAI, unique_id="demo")
    picture.write_text(without_downloads(svg), "utf-8")
    print(f"{picture} is drawn.")


def tell(screen: Screen) -> None:
    clock = StoryClock(NOW)
    view = story_view.View(screen)
    with (
        TemporaryDirectory(prefix="remembrancer-picture-") as folder,
        open_memory(data_dir=folder, tenant="picture", clock=clock, embedder="local", embed_timeout=PATIENCE) as memory,
    ):
        teller = Teller(memory, clock)
        view.opening(teller.model())
        for day in teller.days():
            view.day(day)
        view.full(teller.full())
    if teller.broken:
        sys.exit("\n".join(teller.broken))


def without_downloads(svg: str) -> str:
    """Without the fonts that rich would have a viewer fetch."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace", "font-family: ui-monospace, Menlo, Consolas, monospace")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
