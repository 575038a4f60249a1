"""Every search of a reply is exact, also after PostgreSQL has settled on a generic plan (C28, DESIGN 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest
from pgvector import HalfVector
from psycopg import Connection, sql

from remembrancer.domain.identity import ListKey, list_stream, new_id
from remembrancer.domain.visibility import in_order
from tests.support.world import START, World

LISTS, SIZE, SEARCHES = 1_000, 40, 50
DIMENSIONS = 256
Vectors = npt.NDArray[np.float16]


def keys_of(number: int) -> list[ListKey]:
    """A third each: of servers, of people with Mira, of people with everybody."""
    third = number // 3
    servers = [ListKey("mira", "server", f"server {n}") for n in range(number - 2 * third)]
    people = [f"person {n}" for n in range(third)]
    return [*servers, *(ListKey("mira", "personal", p) for p in people), *(ListKey("*", "global", p) for p in people)]


def fill(conn: Connection[Any], keys: Sequence[ListKey]) -> dict[UUID, tuple[ListKey, Vectors]]:
    """Copies the one memory that there is into lists of forty, each with a vector of its own."""
    rng = np.random.default_rng(28)
    vectors = rng.standard_normal((len(keys) * SIZE, DIMENSIONS)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    made: dict[UUID, tuple[ListKey, Vectors]] = {}
    conn.execute(
        "CREATE TEMPORARY TABLE copies (shard int2, list uuid, id uuid, persona text, scope text, subject text,"
        " created_at timestamptz, updated_at timestamptz, embedding halfvec)"
    )
    with conn.cursor() as cur, cur.copy("COPY copies FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int2", "uuid", "uuid", "text", "text", "text", "timestamptz", "timestamptz", "halfvec"])
        for n, key in enumerate(keys):
            stream = list_stream("default", key)
            for i in range(n * SIZE, (n + 1) * SIZE):
                memory = new_id(stream.bytes[0], i.to_bytes(16, "big"))
                made[memory] = (key, vectors[i])
                saved = START - timedelta(hours=2 * (i % SIZE))  # too far apart to be remembered together
                copy.write_row((stream.bytes[0], stream, memory, *key, saved, saved, HalfVector(vectors[i])))
    own = ["shard", "list", "id", "persona", "scope", "subject", "created_at", "updated_at", "embedding"]
    for table, distinct in (("list", "shard, list, persona, scope, subject"), ("memory", "*"), ("memory_use", "*")):
        columns = [
            row[0]
            for row in conn.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                (f"remembrancer.{table}",),
            )
        ]
        conn.execute(
            sql.SQL("INSERT INTO remembrancer.{0} ({1}) SELECT {2} FROM (SELECT DISTINCT {3} FROM copies) c,"
                    " (SELECT * FROM remembrancer.{0} LIMIT 1) t ORDER BY c.shard, c.list").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, columns)),
                sql.SQL(", ").join(sql.Identifier("c" if name in own else "t", name) for name in columns),
                sql.SQL(distinct),
            )
        )  # fmt: skip
    conn.execute("ANALYZE remembrancer.memory, remembrancer.memory_use, remembrancer.list")
    return made


def exact(made: dict[UUID, tuple[ListKey, Vectors]], in_play: Sequence[ListKey], message: Vectors) -> dict[UUID, float]:
    """The similarity of every memory in play, by numpy."""
    lists = set(in_play)
    here = [(m, v) for m, (key, v) in made.items() if key in lists]
    scores = np.stack([v for _, v in here]).astype(np.float64) @ message.astype(np.float64)
    return {m: float(s) for (m, _), s in zip(here, scores, strict=True)}


def test_c28_t2_fifty_searches_in_a_row_on_one_connection_over_1000_lists_equal_the_exact_answer(database_url: str):
    keys = keys_of(LISTS)
    with World(database_url, match_threshold=9) as world:
        world.save("template")
        world.project()
        with world.memory.engine.store.database.connection() as conn:
            made = fill(conn, keys)
        random = Random(28)
        for number in range(SEARCHES):
            users = random.sample([k.subject for k in keys if k.scope == "global"], random.choice([1, 2, 4]))
            server = random.choice([k.subject for k in keys if k.scope == "server"])
            in_play = in_order([ListKey("mira", "server", server)] + [k for k in keys if k.subject in users])
            message = f"question {number} of {random.random()}"
            answer = world.say(message, users=users, server=server)

            wanted = world.fake.vector_of(message)
            right = exact(made, in_play, (wanted / np.linalg.norm(wanted)).astype(np.float16))
            best = sorted(right.values(), reverse=True)[:10]
            assert len(right) == SIZE * (2 * len(users) + 1)
            assert [c.similarity for c in answer.search.candidates] == pytest.approx(best, abs=1e-4)
            assert [right[c.memory] for c in answer.search.candidates] == pytest.approx(best, abs=1e-4)
            assert len({c.memory for c in answer.search.candidates}) == 10
            if number in (30, 40):  # until then all ticks are ahead of the tables
                world.project()
        assert generic_plans(world) > 0


def generic_plans(world: World) -> int:
    """How often the connection has run the statement of the search by its generic plan."""
    with world.memory.engine.store.database.connection() as conn:
        found = conn.execute(
            "SELECT coalesce(sum(generic_plans), 0) FROM pg_prepared_statements"
            " WHERE statement LIKE '%here AS MATERIALIZED%'"
        ).fetchone()
        assert found is not None
        return int(found[0])
