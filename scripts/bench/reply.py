"""Search and desk of a reply over 12 lists of 100 in a store of many, beside the bare statements in the same run.

    python scripts/bench/reply.py [--memories 100000]

The embedding is prepared, so that what is measured is the store's and our own time. `bare` is psycopg running the two
statements that a reply needs (desk; candidates and scores) with prepared parameters and fetching their rows, and no
more. Recall is against numpy over the same vectors.
"""

from __future__ import annotations

import argparse

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from world import DIMENSIONS, MODEL, TENANT, Prepared, database, fill, p, timed, unit

from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.domain.visibility import Place, in_order
from remembrancer.projections.scoring import COMMONNESS, scale_of, score_parameters
from remembrancer.services import candidates, open_memory
from remembrancer.services.desk_reader import Scene, read_desk

SIZE = 100
MESSAGE = "how is the cat of my sister in lisbon?"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=300)
    args = parser.parse_args()
    users = [f"user-{i}" for i in range(6)]
    keys = in_order(
        [ListKey("mira", "server", "guild"), *(ListKey("mira", "personal", u) for u in users)]
        + [ListKey("*", "global", u) for u in users[:5]]
    )
    others = [ListKey("other", "server", f"guild-{i}") for i in range(args.memories // SIZE - len(keys))]
    with database() as url:
        vectors = fill(url, [*keys, *others], SIZE)[: len(keys)]
        queries = unit(np.random.default_rng(3), 500)
        queries[::2] = vectors.reshape(-1, DIMENSIONS)[:: len(vectors) * SIZE // 250][:250] + 0.02 * queries[::2]
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        with open_memory(url, background=False, embedder="local") as memory:
            engine = memory.engine
            engine.deps.embedder = Prepared(queries)
            memory.reply("mira", message=MESSAGE, users=users, server="guild")
            engine.runner.catch_up()
            scene = Scene(
                keys, [list_stream(TENANT, key) for key in keys], Place("guild", None, ()), engine.deps.now(),
                memory.policy(), TENANT, MODEL,
            )  # fmt: skip
            bare, ours, whole = _measure(url, engine, memory, scene, queries, users, args.times)
            print(f"{args.memories:,} memories in {args.memories // SIZE:,} lists; 12 lists of {SIZE} in play")
            print(f"{'':34}{'p50 ms':>9}{'p95 ms':>9}")
            for name, values in (
                ("bare SQL: desk + candidates", bare),
                ("ours: search + desk", ours),
                ("whole reply, embedding prepared", whole),
            ):
                print(f"{name:34}{p(values, 50):9.2f}{p(values, 95):9.2f}")
            print(f"search + desk / bare SQL: {p(ours, 50) / p(bare, 50):.2f} (at most 1.5)")
            print(f"recall@10 against numpy: {_recall(engine, scene, vectors, queries[:100]):.3f}")


def _measure(url, engine, memory, scene, queries, users, times):  # type: ignore[no-untyped-def]
    from remembrancer.projections.queries import load_queries

    desk_sql = load_queries("remembrancer.services", "reply")["desk"]
    best_sql = load_queries("remembrancer.services", "candidates")["candidates"]
    conn = psycopg.connect(url, autocommit=True)
    register_vector(conn)
    empty = {k: [] for k in ("o_no", "o_shard", "o_id", "o_kind", "o_subject", "o_digest", "o_terms", "o_created_at",
                             "o_visible", "skip", "off_no", "off_day", "off_all_but", "off_ids")}  # fmt: skip
    params = scene.parameters() | empty
    params |= {"days": [None] * len(scene.keys), "decay": True, "rest_after_days": 7, "desk_limit": 100}
    params |= {"tenant": TENANT}
    scale = scale_of(MODEL)
    n = [0]

    def bare() -> None:
        n[0] += 1
        conn.execute(desk_sql, params, prepare=True, binary=True).fetchall()
        score = score_parameters(scale, queries[n[0] % len(queries)], MESSAGE)
        conn.execute(best_sql, params | score, prepare=True, binary=True).fetchall()

    def ours() -> None:
        n[0] += 1
        with engine.store.pool.connection() as c:
            desk = read_desk(c, engine.store, scene)
            candidates.find(c, scene, desk, MESSAGE, queries[n[0] % len(queries)])

    taken: list[list[float]] = [[], []]
    timed(bare, 1, 30), timed(ours, 1, 30)
    for _ in range(times):  # turn by turn, so that a noisy moment meets both
        taken[0] += timed(bare, 1, 0)
        taken[1] += timed(ours, 1, 0)
    whole = timed(lambda: memory.reply("mira", message=MESSAGE, users=users, server="guild"), times // 3)
    return taken[0], taken[1], whole


def _recall(engine, scene, vectors, queries):  # type: ignore[no-untyped-def]
    """The ten best by the statement, words left out, against all scores in numpy from the embedder's own vectors."""
    scale = scale_of(MODEL)
    flat = vectors.reshape(-1, DIMENSIONS)
    common = COMMONNESS * (flat @ np.asarray(scale.mean))
    hits = []
    for q in queries:
        with engine.store.pool.connection() as c:
            rows = candidates.find(c, scene, read_desk(c, engine.store, scene), "", q)
        exact = np.sort(flat @ q - common)[::-1][:10]
        offset = rows[0].score - exact[0]
        hits.append(np.mean([abs(r.score - offset - e) < 1e-3 for r, e in zip(rows, exact, strict=True)]))
    return float(np.mean(hits))


if __name__ == "__main__":
    main()
