"""The one score: the SQL against plain Python, and what it promises (T3, D5, D6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from remembrancer.projections import scoring
from remembrancer.projections.queries import queries
from remembrancer.projections.words import memory_terms, query_terms
from tests.oracle.plain_score import PlainMemory, PlainNumbers, PlainScore, plain_scores

SEARCHED = """WITH searched AS (
  SELECT * FROM unnest(%(list_nos)s::int4[], %(ids)s::uuid[], %(vectors)s::halfvec[], %(term_texts)s::text[],
                       %(times)s::timestamptz[]) AS s (list_no, id, embedding, term_text, created_at)
  CROSS JOIN LATERAL (SELECT s.term_text::int4[] AS terms) t
),"""
NUMBERS = PlainNumbers(
    commonness=0.75, offset=0.4, weight=0.04, saturation=6.0, prior=50, before=0.4, after=0.25, near=timedelta(hours=1)
)
DAY = datetime(2026, 5, 3, 12, tzinfo=UTC)
MEAN = (0.5, 0.25, 0.25, 0.0)


def _half(vector: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(x) for x in np.asarray(vector, dtype=np.float16))


vectors = st.tuples(*[st.integers(-8, 8)] * 4).filter(any).map(lambda v: _half(np.array(v) / np.linalg.norm(v)))
memories = st.lists(
    st.tuples(
        st.integers(1, 3),
        vectors,
        st.frozensets(st.integers(-3, 6), max_size=5),
        st.integers(0, 30).map(lambda tens: DAY + timedelta(minutes=10 * tens)),
    ),
    max_size=25,
).map(lambda rows: [PlainMemory(no, UUID(int=i), v, terms, at) for i, (no, v, terms, at) in enumerate(rows)])
forms = st.lists(st.frozensets(st.integers(-3, 9), min_size=1, max_size=3), max_size=5).map(
    lambda words: [w for i, w in enumerate(words) if not any(w & other for other in words[:i])]
)


@pytest.fixture(scope="module")
def connection(postgres: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url_of("postgres"), autocommit=True) as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(conn)
        yield conn


def search(
    conn: psycopg.Connection[Any],
    found: Sequence[PlainMemory],
    message: Sequence[float],
    words: Sequence[frozenset[int]],
    *,
    candidates: int = 10,
) -> list[PlainScore]:
    pairs = [(term, n) for n, word in enumerate(words) for term in sorted(word)]
    params = {
        "list_nos": [m.list_no for m in found],
        "ids": [m.id for m in found],
        "vectors": [HalfVector(list(m.vector)) for m in found],
        "term_texts": ["{" + ",".join(map(str, m.terms)) + "}" for m in found],
        "times": [m.created_at for m in found],
        "message": HalfVector(list(message)),
        "mean": HalfVector(list(MEAN)),
        "terms": [term for term, _ in pairs],
        "words": [n for _, n in pairs],
        "candidates": candidates,
        **NUMBERS.__dict__,
    }
    query = SEARCHED + queries("score")["score"].split("WITH", 1)[1]
    rows = conn.execute(query.encode(), params).fetchall()
    return [PlainScore(row[0], row[2], row[3], row[4], row[5]) for row in rows]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=memories, message=vectors, words=forms)
@example(found=[], message=MEAN, words=[])
@example(
    found=[PlainMemory(1, UUID(int=1), (1.0, 0.0, 0.0, 0.0), frozenset({1}), DAY)], message=(1.0, 0, 0, 0), words=[]
)
def test_the_sql_scores_as_plain_python_does(
    connection: psycopg.Connection[Any],
    found: list[PlainMemory],
    message: tuple[float, ...],
    words: list[frozenset[int]],
) -> None:
    expected = {s.id: s for s in plain_scores(found, message, MEAN, words, NUMBERS)}
    answer = search(connection, found, message, words)
    assert len(answer) == min(10, len(found))
    for got in answer:
        plain = expected[got.id]
        assert got.score == pytest.approx(plain.score, abs=1e-5)
        assert got.similarity == pytest.approx(plain.similarity, abs=1e-5)
        assert got.words == pytest.approx(plain.words, abs=1e-9)
    tenth = sorted((s.score for s in expected.values()), reverse=True)[: len(answer)]
    assert [s.score for s in answer] == pytest.approx(tenth, abs=1e-5)


def test_equal_scores_come_older_first_and_then_by_id(connection: psycopg.Connection[Any]) -> None:  # D6
    found = [
        PlainMemory(no, UUID(int=n), (1.0, 0.0, 0.0, 0.0), frozenset({7}), at)
        for n, (no, at) in enumerate([(1, DAY), (2, DAY), (1, DAY - timedelta(days=2)), (2, DAY)])
    ]
    answer = search(connection, found, (1.0, 0.0, 0.0, 0.0), [frozenset({7})])
    assert [s.id.int for s in answer] == [2, 0, 1, 3]


def test_a_search_without_memories_finds_nothing(connection: psycopg.Connection[Any]) -> None:
    assert search(connection, [], (1.0, 0.0, 0.0, 0.0), [frozenset({1})]) == []


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=memories.filter(bool), message=vectors, words=forms)
def test_neighbours_never_raise_the_best_score(
    connection: psycopg.Connection[Any],
    found: list[PlainMemory],
    message: tuple[float, ...],
    words: list[frozenset[int]],
) -> None:
    """So a message that matches nothing goes on matching nothing, however memories were saved."""
    apart = [
        PlainMemory(m.list_no, m.id, m.vector, m.terms, m.created_at + timedelta(days=n)) for n, m in enumerate(found)
    ]
    best = search(connection, found, message, words, candidates=1)[0].score
    assert best == pytest.approx(search(connection, apart, message, words, candidates=1)[0].score, abs=1e-9)


def test_lists_are_scored_together_as_they_would_be_in_any_order(connection: psycopg.Connection[Any]) -> None:  # T3
    rng = np.random.default_rng(1)
    found = [
        PlainMemory(n % 4 + 1, UUID(int=n), _half(v / np.linalg.norm(v)), frozenset({n % 7}), DAY + timedelta(days=n))
        for n, v in enumerate(rng.standard_normal((40, 4)))
    ]
    renumbered = [PlainMemory(9 - m.list_no, m.id, m.vector, m.terms, m.created_at) for m in reversed(found)]
    words = [frozenset({3}), frozenset({5})]
    first, second = (search(connection, x, (0.6, 0.8, 0.0, 0.0), words) for x in (found, renumbered))
    assert first == second


def test_the_words_of_the_product_and_its_shipped_numbers_fit_the_query(connection: psycopg.Connection[Any]) -> None:
    model = "local:e5-small-q4"
    scale = scoring.scale_of(model)
    assert scale is not None
    assert math.isclose(np.linalg.norm(scale.mean), 0.9, abs_tol=0.05)
    params = scoring.score_parameters(scale, np.eye(1, 384, dtype=np.float32)[0], "how is Mochi?")
    texts = ["Juno's cat is named Mochi.", "Ana hates coffee."]
    rows = {
        "list_nos": [1, 1],
        "ids": [UUID(int=1), UUID(int=2)],
        "vectors": [HalfVector(np.eye(1, 384)[0])] * 2,
        "term_texts": ["{" + ",".join(map(str, memory_terms(text))) + "}" for text in texts],
        "times": [DAY, DAY],
    }
    query = SEARCHED + queries("score")["score"].split("WITH", 1)[1]
    answer = connection.execute(query.encode(), params | rows).fetchall()
    assert answer[0][0] == UUID(int=1)
    expected = scoring.word_match([set(memory_terms(text)) for text in texts], "how is Mochi?")
    assert [row[4] for row in answer] == pytest.approx(list(expected))
    assert query_terms("how is Mochi?").words == [0]


def test_measuring_a_model_leaves_at_most_three_in_a_hundred_of_the_small_talk_matching() -> None:  # D5
    rng = np.random.default_rng(4)

    def unit(rows: int) -> npt.NDArray[np.float32]:
        found = rng.standard_normal((rows, 8)) + 3
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    facts = [f"fact number {n}" for n in range(20)]
    talk = [f"well {n}" for n in range(100)]
    probe = scoring.Probe(facts, facts, talk, list(range(20)), unit(20), unit(20), unit(100))
    scale = scoring.measure("made:up", [probe])
    assert scoring.scale_from_json(scoring.scale_to_json(scale)) == scale
    terms = [set(memory_terms(text)) for text in facts]
    matched = 0
    for text, vector in zip(talk, probe.talk_vectors, strict=True):
        p = scoring.score_parameters(scale, vector, text)
        own = probe.fact_vectors @ vector - p["commonness"] * probe.fact_vectors @ np.array(scale.mean)
        own = own + p["offset"] + p["weight"] * scoring.word_match(terms, text)
        matched += bool((own >= scale.threshold).any())
    assert matched <= 3
    assert scoring.threshold_of("never:seen") is None
    assert scoring.scale_of("../scales/local:e5-small-q4") is None
