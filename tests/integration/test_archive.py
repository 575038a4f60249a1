"""The archive: every text that ever was a memory, searched over all personas of a tenant with an HNSW index."""

from __future__ import annotations

from uuid import uuid4

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from remembrancer.services import open_memory

DIMENSIONS = 64
MODEL = "openai:fake"
SEARCH = "SELECT memory, similarity FROM remembrancer.search_archive_v1(%s, %s, %s, %s, 10)"


@pytest.fixture
def archive(database_url: str):
    """5,000 texts of a large tenant and 30 of a small one, with the index that the product makes."""
    rng = np.random.default_rng(11)
    centres = rng.standard_normal((40, DIMENSIONS))
    vectors = centres[rng.integers(0, 40, 5_030)] + 0.8 * rng.standard_normal((5_030, DIMENSIONS))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    ids = [uuid4() for _ in vectors]
    with psycopg.connect(database_url, autocommit=True) as conn:
        register_vector(conn)
        with (
            conn.cursor() as cur,
            cur.copy(
                "COPY remembrancer.archive (generation, shard, list, memory, version, tenant, persona, scope, subject,"
                " text,"
                " recorded_at, model, embedding) FROM STDIN"
            ) as copy,
        ):
            for i, (memory, vector) in enumerate(zip(ids, vectors, strict=True)):
                tenant = "large" if i < 5_000 else "small"
                where = (1, i % 256, uuid4(), memory, 1, tenant, f"persona-{i % 50}", "server", "s", f"text {i}")
                copy.write_row((*where, "2026-01-01T00:00:00Z", MODEL, HalfVector(vector)))
        conn.execute("SELECT remembrancer.index_archive_v1(%s, %s)", (MODEL, DIMENSIONS))
        conn.execute("ANALYZE remembrancer.archive")
        yield conn, vectors, ids


def exact(vectors: np.ndarray, ids: list, query: np.ndarray, tenant: slice) -> set:
    """The ten nearest by all products."""
    best = np.argsort(-(vectors[tenant] @ query), kind="stable")[:10]
    return {ids[tenant][i] for i in best}


@pytest.mark.parametrize(("tenant", "rows"), [("large", slice(0, 5_000)), ("small", slice(5_000, 5_030))])
def test_the_archive_finds_at_least_99_of_100_nearest_texts_of_a_tenant_large_or_small(archive, tenant, rows):
    conn, vectors, ids = archive
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(60):
        query = vectors[rng.integers(0, 5_000)] + 0.3 * rng.standard_normal(DIMENSIONS).astype(np.float32)
        query /= np.linalg.norm(query)
        hits = conn.execute(SEARCH, (tenant, MODEL, DIMENSIONS, HalfVector(query))).fetchall()
        assert len(hits) == 10, "a filtered index search must not come back short"
        found += len({h[0] for h in hits} & exact(vectors, ids, query, rows))
    assert found / 600 >= 0.99


def test_a_large_tenant_is_searched_by_the_hnsw_index(archive):
    conn, _, _ = archive
    query = (
        "EXPLAIN SELECT memory FROM remembrancer.archive"
        " WHERE tenant = 'large' AND model = 'openai:fake' AND generation = 1"
        " ORDER BY embedding::halfvec(64) <=> (SELECT embedding::halfvec(64) FROM remembrancer.archive LIMIT 1)"
        " LIMIT 10"
    )
    plan = "\n".join(row[0] for row in conn.execute(query))
    assert "archive_1_embedding_idx" in plan or "hnsw" in plan, plan


def test_find_reads_deleted_texts_too_and_says_what_is_still_there(database_url: str):
    with open_memory(database_url, background=False) as memory:
        kept = memory.save("mira", scope="server", subject="s", text="Juno's cat is named Mochi.").memory
        gone = memory.save(
            "rui", scope="personal", subject="ana", text="Ana keeps three turtles in the bathtub."
        ).memory
        memory.delete(gone.id)
        memory.engine.runner.catch_up()
        memory.engine.vectors.index_archive()
        cats = memory.find("a cat called Mochi")
        turtles = memory.find("turtles at home")
    assert (cats[0].memory, cats[0].current) == (kept.id, True)
    assert (turtles[0].memory, turtles[0].current) == (gone.id, False)


def test_find_shows_nothing_of_another_tenant(database_url: str):
    with open_memory(database_url, background=False, tenant="one") as memory:
        memory.save("mira", scope="server", subject="s", text="Juno's cat is named Mochi.")
        memory.engine.runner.catch_up()
    with open_memory(database_url, background=False, tenant="two") as memory:
        assert memory.find("Mochi") == []
