"""Measures the match threshold for the model of the settings, by the product's own score (D5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain.errors import InvalidInput
from remembrancer.projections.queries import load_queries, queries
from remembrancer.projections.scoring import scale_of, score_parameters, threshold_of
from remembrancer.projections.words import memory_terms
from remembrancer.services.answers import Calibration, ProbeResult
from remembrancer.services.deps import Deps
from remembrancer.services.embedders import Embedder, Vector
from remembrancer.services.formats.probes import Probes, read_probes

_SQL = load_queries("remembrancer.services", "calibrate")
_SCORE = queries("score")

SMALL_TALK = 0.03
"""Share of small talk that may match."""
FOUND_IN = 3
LIST = 100
"""Facts of a list: as many as a list holds by default."""
AT_ONCE = 64
EMBED_SECONDS = 60.0
ASKED_AT_ONCE = 4
STEPS = 1_000
"""Thresholds are rounded up to a thousandth."""
_DAY = datetime(2026, 1, 1, tzinfo=UTC)

Progress = Callable[[int, int | None], None]


class Hit(NamedTuple):
    """How well a message found its fact: the best score of all, and rank and score of the right one if it was found."""

    best: float
    rank: int | None
    score: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of one language."""

    language: str
    facts: int
    touches: Sequence[Hit]
    small_talk: Sequence[Hit]

    def at(self, threshold: float) -> ProbeResult:
        """What this language comes to at a threshold."""
        return ProbeResult(
            language=self.language,
            facts=self.facts,
            touches=len(self.touches),
            small_talk=len(self.small_talk),
            found=_share(_is_found(hit, threshold) for hit in self.touches),
            ranked=_share(_is_found(hit, -math.inf) for hit in self.touches),
            matched_small_talk=_share(hit.best >= threshold for hit in self.small_talk),
        )


class Calibrator:
    """See `Remembrancer.calibrate`."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def calibrate(self, probes: Path | None, progress: Progress | None) -> Calibration:
        """The lowest threshold at which at most 3 % of the small talk matches, and how many facts are found by it.

        Each language's facts are lists of their own, which all its messages search; they are scored by the statement
        that replies are. Nothing is written.

        Raises:
            InvalidInput: no model is in use, or the probes do not fit.
            EmbedderFailed: the model does not answer.
        """
        embedder = self._deps.models.own
        if embedder is None:
            raise InvalidInput(
                "There is no model to calibrate.", rule="T11", hint="Set REMEMBRANCER_EMBEDDER to local or openai."
            )
        languages = read_probes(None if probes is None else Path(probes))
        told = _Told(progress, sum(len(p.facts) + len(p.touches) + len(p.small_talk) for p in languages))
        measured = [self._measure(embedder, language, told) for language in languages]
        threshold = lowest_threshold([hit.best for one in measured for hit in one.small_talk])
        touches = [hit for one in measured for hit in one.touches]
        return Calibration(
            model=embedder.model,
            threshold=threshold,
            shipped=threshold_of(embedder.model),
            found=_share(_is_found(hit, threshold) for hit in touches),
            ranked=_share(_is_found(hit, -math.inf) for hit in touches),
            matched_small_talk=_share(hit.best >= threshold for one in measured for hit in one.small_talk),
            languages=[one.at(threshold) for one in measured],
        )

    def _measure(self, embedder: Embedder, probes: Probes, told: _Told) -> Measured:
        facts: list[Vector] = []
        for start in range(0, len(probes.facts), AT_ONCE):
            part = probes.facts[start : start + AT_ONCE]
            facts += embedder.embed_passages(part, timeout=EMBED_SECONDS)
            told.more(len(part))
        messages = [text for text, _ in probes.touches] + list(probes.small_talk)
        vectors = list(told.each(_embedded(embedder, messages)))
        right: list[int | None] = [fact for _, fact in probes.touches]
        right += [None] * len(probes.small_talk)

        def work(conn: Connection[Any]) -> list[Hit]:
            # One transaction: a pooler may give the next one another session, without our table.
            with conn.transaction():
                conn.execute(_SQL["make"])
                conn.cursor().executemany(_SQL["fill"], _searched(probes.facts, facts))
                return [
                    _hit(conn, embedder.model, text, vector, fact)
                    for text, vector, fact in zip(messages, vectors, right, strict=True)
                ]

        hits = self._deps.store.database.run(work)
        return Measured(probes.language, len(facts), hits[: len(probes.touches)], hits[len(probes.touches) :])


def lowest_threshold(small_talk: Sequence[float]) -> float:
    """The lowest threshold, in thousandths, that at most 3 % of these best scores reach.

    Args:
        small_talk: the best score of each message that should match nothing.
    """
    ranked = sorted(small_talk, reverse=True)
    first_without = ranked[int(SMALL_TALK * len(ranked))]
    return (math.floor(first_without * STEPS) + 1) / STEPS


def _embedded(embedder: Embedder, messages: Sequence[str]) -> Iterator[Vector]:
    """The vectors of messages, a few asked for at the same time."""
    with ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="remembrancer-calibrate") as pool:
        yield from pool.map(lambda text: embedder.embed_query(text, timeout=EMBED_SECONDS), messages)


def _searched(texts: Sequence[str], vectors: Sequence[Vector]) -> list[dict[str, Any]]:
    """Facts as memories in lists of a hundred. A day lies between them, so that none stands beside another."""
    return [
        {
            "list_no": 1 + n // LIST,
            "id": UUID(int=n),
            "embedding": HalfVector(vector),
            "terms": memory_terms(text),
            "created_at": _DAY + timedelta(days=n),
        }
        for n, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


def _hit(conn: Connection[Any], model: str, text: str, vector: Vector, fact: int | None) -> Hit:
    params = score_parameters(scale_of(model), vector, text)
    rows = conn.execute(_SCORE["score"], params, prepare=True).fetchall()
    best = rows[0][2] if rows else -math.inf
    for rank, (memory, _, score, *_) in enumerate(rows, start=1):
        if fact is not None and memory == UUID(int=fact):
            return Hit(best, rank, score)
    return Hit(best, None, -math.inf)


def _is_found(hit: Hit, threshold: float) -> bool:
    return hit.rank is not None and hit.rank <= FOUND_IN and hit.score >= threshold


def _share(of: Iterator[bool]) -> float:
    counted = list(of)
    return sum(counted) / len(counted) if counted else 0.0


class _Told:
    """How far the measuring is, in texts."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def more(self, count: int) -> None:
        """So many more."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)

    def each(self, vectors: Iterator[Vector]) -> Iterator[Vector]:
        """The same, told one by one."""
        for vector in vectors:
            self.more(1)
            yield vector
