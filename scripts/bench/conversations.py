"""What the benchmarks of quality share: long conversations with questions (LoCoMo, Maharana et al., ACL 2024), an
embedder that embeds each text once, and the table's last column.

The file of conversations is not part of this project; its licence keeps it out. Times in it are taken as UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from remembrancer.services.embedders import Embedder, Vector

SECONDS = 60.0
"""What a reply may wait for its embedding here: a benchmark of quality must not depend on how busy the machine is."""
SECONDS_OF_MANY = 600.0


@dataclass(frozen=True)
class Turn:
    """What somebody said. `id` is what evidence names."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Fact:
    """What a session taught, in a line, with the turns that show it."""

    text: str
    shown_by: frozenset[str]


@dataclass(frozen=True)
class Session:
    """A talk on one day."""

    at: datetime
    turns: Sequence[Turn]
    facts: Sequence[Fact]


@dataclass(frozen=True)
class Question:
    """Asked about the whole conversation; the turns in `evidence` hold the answer."""

    text: str
    evidence: frozenset[str]

    def needs(self, fact: Fact) -> bool:
        """Does the fact help to answer?"""
        return not self.evidence.isdisjoint(fact.shown_by)


@dataclass(frozen=True)
class Conversation:
    """Sessions in their order, and questions that have an answer."""

    name: str
    sessions: Sequence[Session]
    questions: Sequence[Question]

    @property
    def facts(self) -> list[Fact]:
        """All of them, in the order of their sessions."""
        return [fact for session in self.sessions for fact in session.facts]


def read(file: Path, first: int | None = None) -> list[Conversation]:
    """The conversations of the file, or the first few."""
    return [_conversation(found) for found in json.loads(file.read_bytes())[:first]]


def _conversation(found: dict[str, Any]) -> Conversation:
    return Conversation(
        found["id"],
        [
            Session(
                datetime.strptime(session["at"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC),
                [Turn(turn["id"], turn["speaker"], turn["text"]) for turn in session["turns"]],
                [Fact(fact["text"], frozenset(fact["evidence"])) for fact in session["facts"]],
            )
            for session in found["sessions"]
        ],
        [Question(q["question"], frozenset(q["evidence"])) for q in found["questions"] if q["evidence"]],
    )


def rows(server: str, texts: Sequence[tuple[str, datetime]]) -> Iterator[dict[str, Any]]:
    """Memories of a server with their moments, as an export that `import_rows` takes."""
    yield {"format": "remembrancer", "version": 1, "tenant": "bench", "exported_at": datetime.now(UTC).isoformat()}
    for text, at in texts:
        yield {
            "kind": "memory", "persona": "mira", "scope": "server", "subject": server, "text": text, "actor": "persona",
            "created_at": at.isoformat(), "updated_at": at.isoformat(),
        }  # fmt: skip


def a_second_apart(at: datetime, texts: Iterable[str]) -> list[tuple[str, datetime]]:
    """The texts of one session with their moments."""
    return [(text, at + timedelta(seconds=n)) for n, text in enumerate(texts)]


class Once:
    """The real model, with patience; what comes again, under another policy or in another list, is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self._queries: dict[str, Vector] = {}
        self._passages: dict[str, Vector] = {}

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """See `Embedder`."""
        if text not in self._queries:
            self._queries[text] = self._embedder.embed_query(text, timeout=timeout)
        return self._queries[text]

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """See `Embedder`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            self._passages.update(zip(new, self._embedder.embed_passages(new, timeout=SECONDS_OF_MANY), strict=True))
        return [self._passages[text] for text in texts]

    def warm(self, *, timeout: float) -> None:
        """See `Embedder`."""
        self._embedder.warm(timeout=timeout)

    def close(self) -> None:
        """The model goes on: the next store of this run uses it, too."""


def verdict(value: float, target: float, *, at_most: bool = False) -> str:
    """The end of a line with a target."""
    reached = value <= target if at_most else value >= target
    return f"{'at most' if at_most else 'at least'} {target:g}: {'reached' if reached else 'MISSED'}"
