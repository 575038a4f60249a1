"""The numbers of the one score, per embedding model (D5), and how they are measured. The formula is in `sql/score.sql`.

A cosine alone cannot be compared between messages: small talk lies near everything, and so does a memory in few or
plain words. So a score is the cosine less how near either text lies to the mean of many texts (the common direction of
sentence vectors: Mu and Viswanath, "All-but-the-Top", 2018; hubness: Radovanović et al., 2010), on the level of a plain
cosine, plus how much the message looks like one that speaks of somebody's facts (a ridge regression on its vector).
What is taken off for the message is the same for every memory: it moves no rank, only what passes the threshold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from remembrancer.projections.words import memory_terms, query_terms

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

COMMONNESS = 0.75  # share of a memory's nearness to the mean that is taken off its score
SATURATION = 6.0  # a message's words count half where they weigh this much together: about one and a half rare words
BEFORE = 0.4  # share of the lead of a memory that was saved shortly before: an answer follows its question
AFTER = 0.25  # share of the lead of one that was saved shortly after
NEAR = timedelta(hours=1)
PRIOR = 50  # memories without the word that every list is thought to have besides: so a name tells in a list of one
CANDIDATES = 10

# For spreads like that of e5-small; other models get theirs in proportion.
_SPREAD = 0.0155
_WORD_WEIGHT = 0.0375
_TALK_WEIGHT = 0.05
_RIDGE = 1.0
_SMALL_TALK = 0.03  # share of small talk that may match


@dataclass(frozen=True)
class Scale:
    """What was measured for a model. Vectors have its dimensions.

    Attributes:
        threshold: lowest score of a reasonable match, on the cosine's scale (D5).
        near_duplicate: cosine of two memories from which on one is likely the other in new words (D12).
        word_weight: score of one unit of word match.
        talk_weight: how far the look of a message moves its scores, up or down at most.
        level: what brings the score of an average memory and message back to their cosine.
        mean: the vector of an average text.
        about: `about . (message - mean)` is near 1 for messages that speak of facts, near -1 for small talk.
    """

    model: str
    threshold: float
    near_duplicate: float
    word_weight: float
    talk_weight: float
    level: float
    mean: tuple[float, ...]
    about: tuple[float, ...]


@dataclass(frozen=True)
class Probe:
    """Texts of one language with their vectors: facts as passages, messages as queries, unit length, one a row.

    `touches[i]` speaks of `facts[touched[i]]`; `talk` speaks of none.
    """

    facts: Sequence[str]
    touches: Sequence[str]
    talk: Sequence[str]
    touched: Sequence[int]
    fact_vectors: Vector
    touch_vectors: Vector
    talk_vectors: Vector


@cache
def scale_of(model: str) -> Scale | None:
    """The shipped scale of a model; None for one that nobody has measured yet."""
    file = files("remembrancer.projections").joinpath("scales", f"{model.replace(':', '-')}.json")
    if "/" in model or "\\" in model or not file.is_file():
        return None
    return scale_from_json(json.loads(file.read_text(encoding="utf-8")))


def scale_from_json(values: Mapping[str, Any]) -> Scale:
    """The scale that `scale_to_json` wrote. Raises TypeError if fields are missing or unknown."""
    return Scale(**{**values, "mean": tuple(values["mean"]), "about": tuple(values["about"])})


def scale_to_json(scale: Scale) -> dict[str, Any]:
    """A scale as plain values."""
    return asdict(scale)


def threshold_of(model: str) -> float | None:
    """The shipped threshold of a model; None for one that has to be measured first."""
    scale = scale_of(model)
    return None if scale is None else scale.threshold


def near_duplicate_of(model: str) -> float | None:
    """The cosine from which on two memories are likely the same; None for a model that has to be measured first."""
    scale = scale_of(model)
    return None if scale is None else scale.near_duplicate


def score_parameters(scale: Scale | None, vector: Vector, text: str) -> dict[str, Any]:
    """The parameters of the query `score` for a message and its vector (unit length).

    Without a scale the score is the cosine plus the word match at its usual weight: it ranks, and has no threshold.
    """
    terms = query_terms(text)
    mean = np.asarray(scale.mean if scale else np.zeros_like(vector), dtype=np.float64)
    return {
        "message": HalfVector(vector),
        "mean": HalfVector(mean),
        "commonness": COMMONNESS,
        "offset": _offset(scale, vector) if scale else 0.0,
        "terms": terms.terms,
        "words": terms.words,
        "weight": scale.word_weight if scale else _WORD_WEIGHT,
        "saturation": SATURATION,
        "prior": PRIOR,
        "before": BEFORE,
        "after": AFTER,
        "near": NEAR,
        "candidates": CANDIDATES,
    }


def _offset(scale: Scale, vector: Vector) -> float:
    """What all scores of a message have in common."""
    message = np.asarray(vector, dtype=np.float64)
    mean = np.asarray(scale.mean)
    about = float(np.clip(np.asarray(scale.about) @ (message - mean), -1, 1))
    return scale.level - float(message @ mean) + scale.talk_weight * about


def measure(model: str, probes: Sequence[Probe]) -> Scale:
    """The scale of a model from probes in several languages: D5's `calibrate`.

    The threshold is the lowest at which no more than 3 % of the small talk matches anything, each message searching
    the facts of its own language. Raises ValueError without probes.
    """
    if not probes:
        raise ValueError("there is nothing to measure a model with")
    facts, touches, talk = (
        np.concatenate([np.asarray(v, np.float64) for v in vectors])
        for vectors in (
            [p.fact_vectors for p in probes],
            [p.touch_vectors for p in probes],
            [p.talk_vectors for p in probes],
        )
    )
    mean = (facts.mean(0) + touches.mean(0) + talk.mean(0)) / 3
    messages = np.concatenate([touches, talk])
    spread = float(np.mean([np.std(_less_common(p, mean)) for p in probes])) / _SPREAD
    scale = Scale(
        model=model,
        threshold=0.0,
        near_duplicate=_near_duplicate(probes),
        word_weight=_short(_WORD_WEIGHT * spread),
        talk_weight=_short(_TALK_WEIGHT * spread),
        level=_short(COMMONNESS * float(np.mean(facts @ mean)) + float(np.mean(messages @ mean))),
        mean=tuple(map(_short, mean)),
        about=tuple(map(_short, _direction(messages - mean, len(touches)))),
    )
    best = np.concatenate([_best_scores(scale, p) for p in probes])
    allowed = int(_SMALL_TALK * len(best))
    threshold = float(np.sort(best)[::-1][allowed])
    return Scale(**{**scale.__dict__, "threshold": float(np.ceil(threshold * 1000 + 0.001) / 1000)})


def _less_common(probe: Probe, mean: Floats) -> Floats:
    return (probe.touch_vectors - mean) @ (probe.fact_vectors - mean).T


def _direction(messages: Floats, touches: int) -> Floats:
    """Ridge regression of +1 for the first `touches` messages and -1 for the others (Hoerl and Kennard, 1970)."""
    target = np.where(np.arange(len(messages)) < touches, 1.0, -1.0)
    gram = messages.T @ messages + _RIDGE * np.eye(messages.shape[1])
    direction: Floats = np.linalg.solve(gram, messages.T @ (target - target.mean()))
    return direction


def _near_duplicate(probes: Sequence[Probe]) -> float:
    """Half-way to 1 from what different facts come to: the nearest other fact of 999 in 1,000 is not so near."""
    nearest = []
    for p in probes:
        cosines = p.fact_vectors @ p.fact_vectors.T
        np.fill_diagonal(cosines, -1)
        nearest.append(cosines.max(axis=1))
    return _short((1 + float(np.quantile(np.concatenate(nearest), 0.999))) / 2)


def _best_scores(scale: Scale, probe: Probe) -> Floats:
    """What the best memory of the list scores, for each message of small talk. Neighbours never raise a best score."""
    vectors = np.asarray(probe.talk_vectors, np.float64)
    own = vectors @ probe.fact_vectors.T - COMMONNESS * (probe.fact_vectors @ np.asarray(scale.mean))
    terms = [set(memory_terms(text)) for text in probe.facts]
    words = np.stack([word_match(terms, text) for text in probe.talk])
    offsets = np.array([_offset(scale, v) for v in probe.talk_vectors])
    best: Floats = (own + scale.word_weight * words).max(axis=1) + offsets
    return best


def word_match(memories: Sequence[set[int]], message: str) -> Floats:
    """The word match of a message with each memory, given by its terms: as in `sql/score.sql`, shape (memories,)."""
    query = query_terms(message)
    has = np.zeros((max(query.words, default=-1) + 1, len(memories)), dtype=bool)
    for term, word in zip(*query, strict=True):
        has[word] |= [term in terms for terms in memories]
    found = has.sum(axis=1)
    weight = np.log(1 + (len(memories) + PRIOR - found + 0.5) / (found + 0.5))
    matched: Floats = (weight @ has) ** 2 / (weight.sum() + SATURATION)
    return matched


def _short(number: float) -> float:
    return round(float(number), 5)
