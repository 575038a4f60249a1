"""What a switch to another embedding model costs, and what searches cost until the rows have followed it (D23).

    python scripts/bench/change_of_model.py [--memories 100000]

All vectors of the new model are there already, so no model is asked: what is measured is the switch with its check that
nothing is missing, the search of a reply over 12 lists of 100 before it, between it and its rows, and after, and how
quickly the rows follow.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import psycopg
from world import MODEL, TENANT, Prepared, database, fill, p, timed, unit

from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.domain.visibility import Place, in_order
from remembrancer.services import candidates, open_memory
from remembrancer.services.desk_reader import Scene, read_desk

SIZE = 100
MESSAGE = "how is the cat of my sister in lisbon?"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=200)
    args = parser.parse_args()
    users = [f"user-{i}" for i in range(6)]
    keys = in_order(
        [ListKey("mira", "server", "guild"), *(ListKey("mira", "personal", u) for u in users)]
        + [ListKey("*", "global", u) for u in users[:5]]
    )
    others = [ListKey("other", "server", f"guild-{i}") for i in range(args.memories // SIZE - len(keys))]
    with database() as url:
        fill(url, [*keys, *others], SIZE)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("UPDATE remembrancer.memory SET model = 'local:before'")
            conn.execute(
                "INSERT INTO remembrancer.model (tenant, model, state, since)"
                " VALUES (%s, 'local:before', 'serving', now())",
                (TENANT,),
            )
            conn.execute("VACUUM ANALYZE")
        with open_memory(url, background=False, embedder="local") as memory:
            engine, rng = memory.engine, np.random.default_rng(3)
            queries = unit(rng, 500)
            streams = [list_stream(TENANT, key) for key in keys]

            def search(model: str) -> list[float]:
                engine.deps.embedder = Prepared(queries)
                scene = Scene(
                    keys, streams, Place("guild", None, ()), engine.deps.now(), memory.policy(), TENANT, model
                )

                def once() -> None:
                    with engine.store.pool.connection() as c:
                        desk = read_desk(c, engine.store, scene)
                        assert candidates.find(c, scene, desk, MESSAGE, queries[0])

                return timed(once, args.times)

            before = search("local:before")
            change, adopt = engine.change, engine.vectors.adopt
            change._begin(by_itself=True)
            engine.vectors.adopt = lambda *_: None  # type: ignore[method-assign]
            start = time.perf_counter()
            while change.step():
                pass
            switch = time.perf_counter() - start
            between = search(MODEL)
            start = time.perf_counter()
            adopt(MODEL)
            followed = time.perf_counter() - start
            after = search(MODEL)
    print(f"{args.memories:,} memories in {args.memories // SIZE:,} lists; 12 lists of {SIZE} in play")
    print(f"the switch, with the check that nothing is missing: {switch:.2f} s")
    print(f"the rows follow: {followed:.1f} s, {args.memories / followed:,.0f} a second")
    print(f"{'search + desk':34}{'p50 ms':>9}{'p95 ms':>9}")
    for name, values in (("before the switch", before), ("rows yet to follow", between), ("after", after)):
        print(f"{name:34}{p(values, 50):9.2f}{p(values, 95):9.2f}")


if __name__ == "__main__":
    main()
