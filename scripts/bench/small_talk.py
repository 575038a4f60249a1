"""Does small talk leave the memories alone, and does a message find the fact that it touches? The shipped probe set.

    python scripts/bench/small_talk.py [--languages en de]

Each language's facts are one list. Each message is that of a reply, with the built-in model and the shipped score and
threshold. Small talk should match nothing. What touches a fact should have it among its matches: the first three at or
above the threshold. The facts are saved a day apart, and once more a second apart (`in one go`), where neighbours lend
each other a share of their score.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import mean
from typing import NamedTuple

from conversations import SECONDS, Once, rows, verdict
from rich.console import Console
from rich.progress import Progress
from world import database

from remembrancer.services import open_memory
from remembrancer.services.formats.probes import Probes, read_probes
from remembrancer.services.remembrancer import Remembrancer

SMALL_TALK, TOUCHES = 0.03, 0.90
START = datetime(2025, 1, 1, tzinfo=UTC)


class Touched(NamedTuple):
    """Of a message that touches a fact: was it found, was it in one go, was it among the first three at any score."""

    found: bool
    in_one_go: bool
    first_three: bool


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", help="only these")
    wanted = parser.parse_args().languages
    languages = [probes for probes in read_probes(None) if wanted is None or probes.language in wanted]
    with (
        database() as url,
        open_memory(url, embedder="local", list_capacity=2_000, embed_timeout=SECONDS) as memory,
        Progress(console=Console(stderr=True)) as progress,
    ):
        memory.engine.deps.embedder = Once(memory.engine.deps.embedder)
        measured = {probes.language: _measure(memory, probes, progress) for probes in languages}
    measured["overall"] = (
        [each for talk, _ in measured.values() for each in talk],
        [each for _, touches in measured.values() for each in touches],
    )
    print(f"{'':9}{'small talk':>12}{'matched':>9}{'touches':>10}{'found':>8}{'in one go':>11}{'@3, any score':>15}")
    for name, (talk, touches) in measured.items():
        found, in_one_go, first_three = (mean(column) for column in zip(*touches, strict=True))
        print(
            f"{name:9}{len(talk):12}{mean(talk):9.1%}{len(touches):10}{found:8.1%}{in_one_go:11.1%}{first_three:15.1%}"
        )
    matched, found = mean(measured["overall"][0]), mean(one.found for one in measured["overall"][1])
    print(f"  small talk matched: {matched:.3f}, {verdict(matched, SMALL_TALK, at_most=True)}")
    print(f"  touches found: {found:.3f}, {verdict(found, TOUCHES)}")


def _measure(memory: Remembrancer, probes: Probes, progress: Progress) -> tuple[list[bool], list[Touched]]:
    """For each message of small talk whether it matched anything, and what became of each touch."""
    apart, at_once = f"{probes.language}, a day apart", f"{probes.language}, in one go"
    for server, step in ((apart, timedelta(days=1)), (at_once, timedelta(seconds=1))):
        memories = [(text, START + step * n) for n, text in enumerate(probes.facts)]
        brought = memory.import_rows(list(rows(server, memories)))
        assert brought.imported == len(memories)
        assert not brought.without_vector
    memory.engine.waiting.settle(60)
    touches = []
    for message, fact in progress.track(probes.touches, description=f"{probes.language}: touches"):
        text = probes.facts[fact]
        matches, first_three = _search(memory, apart, message)
        in_one_go, _ = _search(memory, at_once, message)
        touches.append(Touched(text in matches, text in in_one_go, text in first_three))
    small_talk = progress.track(probes.small_talk, description=f"{probes.language}: small talk")
    return [bool(_search(memory, apart, message)[0]) for message in small_talk], touches


def _search(memory: Remembrancer, server: str, message: str) -> tuple[Sequence[str], Sequence[str]]:
    """The texts of a reply's matches, and of its first three candidates."""
    search = memory.reply("mira", message=message, server=server).search
    assert search.status == "ok", search.reason
    return [m.text for m in search.matches], [m.text for m in search.candidates[:3]]


if __name__ == "__main__":
    main()
