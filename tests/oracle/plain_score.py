"""The score of a memory in plain Python, as docs/decisions/the-score.md has it. Imports nothing of the product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True)
class PlainMemory:
    list_no: int
    id: UUID
    vector: tuple[float, ...]
    terms: frozenset[int]
    created_at: datetime


@dataclass(frozen=True)
class PlainNumbers:
    commonness: float
    offset: float
    weight: float
    saturation: float
    prior: int
    before: float
    after: float
    near: timedelta


@dataclass(frozen=True)
class PlainScore:
    id: UUID
    score: float
    similarity: float
    words: float
    created_at: datetime


def plain_scores(
    memories: Sequence[PlainMemory],
    message: Sequence[float],
    mean: Sequence[float],
    forms: Sequence[frozenset[int]],
    numbers: PlainNumbers,
) -> list[PlainScore]:
    """All memories, best first. `forms` has one set of terms for each word of the message."""
    words = _word_match(memories, forms, numbers)
    similarity = {m.id: _dot(m.vector, message) for m in memories}
    own = {
        m.id: similarity[m.id]
        - numbers.commonness * _dot(m.vector, mean)
        + numbers.offset
        + numbers.weight * words[m.id]
        for m in memories
    }
    scores = [
        PlainScore(m.id, own[m.id] + _lift(m, memories, own, numbers), similarity[m.id], words[m.id], m.created_at)
        for m in memories
    ]
    return sorted(scores, key=lambda s: (-s.score, s.created_at, s.id))


def _word_match(
    memories: Sequence[PlainMemory], forms: Sequence[frozenset[int]], numbers: PlainNumbers
) -> dict[UUID, float]:
    weights = []
    for form in forms:
        having = sum(1 for m in memories if m.terms & form)
        weights.append(math.log(1 + (len(memories) + numbers.prior - having + 0.5) / (having + 0.5)))
    matched = {}
    for m in memories:
        s = sum(weight for weight, form in zip(weights, forms, strict=True) if m.terms & form)
        matched[m.id] = s * s / (sum(weights) + numbers.saturation)
    return matched


def _lift(m: PlainMemory, memories: Sequence[PlainMemory], own: dict[UUID, float], numbers: PlainNumbers) -> float:
    """What the neighbours lend: the two nearest in time on either side, of equally near ones the lower ids."""
    best = 0.0
    for other in memories:
        if other.list_no != m.list_no or other.id == m.id or abs(other.created_at - m.created_at) > numbers.near:
            continue
        earlier = (other.created_at, other.id) < (m.created_at, m.id)
        # Whoever lends does so to the two nearest on a side, as seen from it.
        side = [
            x
            for x in memories
            if x.list_no == m.list_no
            and x.id != other.id
            and ((x.created_at, x.id) > (other.created_at, other.id)) == earlier
        ]
        side.sort(key=lambda x: (abs(x.created_at - other.created_at), x.id))
        if m.id in [x.id for x in side[:2]]:
            share = numbers.before if earlier else numbers.after
            best = max(best, share * (own[other.id] - own[m.id]))
    return best


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))
