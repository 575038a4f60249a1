"""What documents cost a reply: without any in play, and with shelves of growing size, all with 12 lists of 100 in play.

    python scripts/bench/documents.py [--times 200]

The embedding is prepared, so that what is measured is the store's and our own time. The replies of all rows take turns,
so that a noisy moment meets each of them. Recall is against numpy over the same vectors.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from world import DIMENSIONS, MODEL, TENANT, WORDS, Prepared, database, fill, p, timed, unit

from remembrancer.domain.identity import ListKey
from remembrancer.projections.scoring import COMMONNESS, scale_of
from remembrancer.services import open_memory
from remembrancer.services.shelf_reader import Asked, find_passages, shelves_of

SIZES = (0, 100, 1_000, 10_000)
USERS = [f"user-{i}" for i in range(6)]
MESSAGE = "how is the cat of my sister in lisbon?"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(5)
    with database() as url:
        keys = [
            key
            for size in SIZES
            for key in (
                *(ListKey(f"mira-{size}", "personal", u) for u in USERS), ListKey(f"mira-{size}", "server", "guild"),
            )
        ]  # fmt: skip
        fill(url, [*keys, *(ListKey("*", "global", u) for u in USERS[:5])], 100)
        queries = unit(rng, 500)
        with open_memory(url, background=False, embedder="local") as memory:
            engine = memory.engine
            engine.deps.embedder = Prepared(queries)  # type: ignore[assignment]
            for size in SIZES[1:]:
                text = "\n\n".join(f"# {n}\n\n{' '.join(rng.choice(WORDS, 25))}" for n in range(size))
                memory.add_document(text.encode(), persona=f"mira-{size}", name="lore.md")
            engine.runner.catch_up()
            with psycopg.connect(url, autocommit=True) as conn:
                conn.execute("VACUUM ANALYZE")
            works = [_reply(memory, size) for size in SIZES]
            for work in works:
                timed(work, 20, 0)
            taken: list[list[float]] = [[] for _ in SIZES]
            for _ in range(args.times):
                for n, work in enumerate(works):
                    taken[n] += timed(work, 1, 0)
            print(f"{'passages in play':>20}{'reply p50 ms':>14}{'p95 ms':>10}{'their search p50 ms':>22}")
            for size, values in zip(SIZES, taken, strict=True):
                alone = "" if size == 0 else f"{p(timed(_search(memory, size, queries[0]), args.times), 50):.2f}"
                print(f"{size:>20,}{p(values, 50):>14.2f}{p(values, 95):>10.2f}{alone:>22}")
            print(f"recall@4 against numpy, 10,000 passages: {_recall(url, memory, queries[:50]):.3f}")


def _reply(memory: Any, size: int) -> Any:
    return lambda: memory.reply(f"mira-{size}", message=MESSAGE, users=USERS, server="guild")


def _search(memory: Any, size: int, vector: Any) -> Any:
    """The search of documents alone, as a reply makes it."""
    store = memory.engine.store
    (shelf,) = [one.state for one in store.load_many(shelves_of(TENANT, f"mira-{size}", None))]
    asked = Asked(TENANT, MESSAGE, vector, MODEL, 0.8, memory.policy())
    return lambda: store.database.run(lambda conn: find_passages(conn, store, list(shelf.documents.values()), asked))


def _recall(url: str, memory: Any, queries: Any) -> float:
    """The four best by the statement, words left out, against all scores in numpy."""
    engine, scale = memory.engine, scale_of(MODEL)
    assert scale is not None
    policy = memory.policy().model_copy(update={"document_tokens": 1_000_000})
    (shelf,) = [one.state for one in engine.store.load_many(shelves_of(TENANT, "mira-10000", None))]
    documents = list(shelf.documents.values())
    with psycopg.connect(url) as conn:
        register_vector(conn)
        rows = conn.execute("SELECT n, embedding FROM remembrancer.passage WHERE document = %s", (documents[0].id,))
        found = {n: v.to_numpy().astype(np.float64) for n, v in rows}
    flat = np.stack([found[n] for n in sorted(found)])
    assert flat.shape == (10_000, DIMENSIONS)
    common = COMMONNESS * (flat @ np.asarray(scale.mean))
    hits = []
    for q in queries:
        asked = Asked(TENANT, "", q, MODEL, -10.0, policy)
        best = engine.store.database.run(lambda conn, asked=asked: find_passages(conn, engine.store, documents, asked))
        scores = flat @ q.astype(np.float64) - common
        exact = np.sort(scores)[::-1][:4]
        hits.append(np.mean([abs(scores[b.n - 1] - x) < 1e-3 for b, x in zip(best, exact, strict=True)]))
    return float(np.mean(hits))


if __name__ == "__main__":
    main()
