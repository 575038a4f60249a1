"""Which memories a message brought to mind (T3, D5, D6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain.events import Candidate


class Scored(NamedTuple):
    """One memory that the search scored. `score` ranks; `similarity` (cosine) and `words` are recorded beside it."""

    id: UUID
    list_no: int
    score: float
    similarity: float
    words: float
    created_at: datetime


def rank(scored: Iterable[Scored]) -> list[Scored]:
    """Best first; of equals the older, then the lower id (D6)."""
    return sorted(scored, key=lambda s: (-s.score, s.created_at, s.id))


def choose_matches(
    ranked: Iterable[Scored], *, threshold: float, match_limit: int, on_desk: Collection[UUID]
) -> list[Candidate]:
    """The candidates with those marked that count as used: at most `match_limit`, at or above the threshold (T3).

    A match that is not on this reply's desk is recalled: added to this reply (T6).
    """
    candidates = []
    for n, s in enumerate(ranked, start=1):
        matched = n <= match_limit and s.score >= threshold
        candidates.append(
            Candidate(
                memory=s.id,
                score=s.score,
                similarity=s.similarity,
                words=s.words,
                rank=n,
                matched=matched,
                recalled=matched and s.id not in on_desk,
            )
        )
    return candidates
