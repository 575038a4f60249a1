"""What the benchmarks share: an embedded server in memory, many lists made by COPY, and a clock for percentiles."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from remembrancer.domain.identity import ListKey, list_stream, new_id
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.words import memory_terms
from remembrancer.services.embedded import open_embedded
from remembrancer.services.embedders import Vector
from remembrancer.services.store import migrate

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "2GB"}
MODEL = "local:e5-small-q4"
DIMENSIONS = 384
TENANT = "default"
WORDS = [
    "cat",
    "coffee",
    "lisbon",
    "train",
    "birthday",
    "garden",
    "violin",
    "winter",
    "soup",
    "sister",
    "market",
    "river",
    "lantern",
    "puzzle",
    "marathon",
    "recipe",
    "camera",
    "doctor",
    "island",
    "paper",
    "rocket",
    "school",
    "window",
    "yellow",
    "bicycle",
    "castle",
    "dragon",
    "engine",
    "forest",
    "guitar",
    "harbour",
]


class Prepared:
    """An embedder that gives prepared vectors at once, so that what is left is the store's own time."""

    model = MODEL
    dimensions = DIMENSIONS

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self._next = 0

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """The next prepared vector."""
        self._next = (self._next + 1) % len(self._vectors)
        return self._vectors[self._next]

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """One each."""
        return [self.embed_query(text, timeout=timeout) for text in texts]

    def warm(self, *, timeout: float) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""


@contextmanager
def database(settings: dict[str, str] | None = None) -> Iterator[str]:
    """The address of a migrated database on a memory file system where there is one."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="remembrancer-bench-", dir=place) as folder:
        Path(folder).chmod(0o755)
        with open_embedded(Path(folder) / "data", settings=settings or FAST) as server:
            migrate(server.url)
            yield server.url


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    """`n` random unit vectors, clustered as embeddings of sentences are."""
    centres = rng.standard_normal((64, DIMENSIONS)).astype(np.float32)
    x = centres[rng.integers(0, 64, n)] + 0.9 * rng.standard_normal((n, DIMENSIONS)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def fill(
    url: str, keys: Sequence[ListKey], size: int, *, days: int = 30, vectors: np.ndarray | None = None
) -> np.ndarray:
    """Lists of `size` memories each, written as the projection would have, side by side in list order.

    Returns the vectors, shape (len(keys), size, 384)."""
    rng = np.random.default_rng(7)
    now = datetime.now(UTC)
    searched = [datetime.now(UTC).date() - timedelta(days=d) for d in range(days, 0, -1)]
    made = unit(rng, len(keys) * size).reshape(len(keys), size, DIMENSIONS) if vectors is None else vectors
    with psycopg.connect(url, autocommit=True) as conn:
        register_vector(conn)
        order = sorted(range(len(keys)), key=lambda i: list_stream(TENANT, keys[i]))
        with (
            conn.cursor() as cur,
            cur.copy(
                "COPY remembrancer.list (generation, shard, list, tenant, persona, scope, subject, version, days)"
                " FROM STDIN"
            ) as copy,
        ):
            for i in order:
                stream = list_stream(TENANT, keys[i])
                copy.write_row((1, stream.bytes[0], stream, TENANT, *keys[i], 0, searched))
        ids = {}
        with (
            conn.cursor() as cur,
            cur.copy(
                "COPY remembrancer.memory (generation, shard, list, id, text, terms, created_at, updated_at, tags,"
                " channels,"
                " actor, source, pinned, protected, model, embedding) FROM STDIN (FORMAT BINARY)"
            ) as copy,
        ):
            copy.set_types(["int2", "int2", "uuid", "uuid", "text", "int4[]", "timestamptz", "timestamptz", "text[]",
                            "text[]", "text", "jsonb", "bool", "bool", "text", "halfvec"])  # fmt: skip
            for i in order:
                stream = list_stream(TENANT, keys[i])
                for j in range(size):
                    memory = new_id(stream.bytes[0], rng.bytes(16))
                    text = f"{keys[i].subject} {' '.join(rng.choice(WORDS, 8))} {i} {j}"
                    at = now - timedelta(hours=2 * j)
                    ids[i, j] = memory, at, digest(text)
                    copy.write_row(
                        (1, stream.bytes[0], stream, memory, text, memory_terms(text), at, at, [], [], "persona",
                         psycopg.types.json.Jsonb({}), False, False, MODEL, HalfVector(made[i, j]))
                    )  # fmt: skip
        with (
            conn.cursor() as cur,
            cur.copy(
                "COPY remembrancer.memory_use (generation, shard, list, id, since, carried, pinned, frozen, updated_at,"
                " tags,"
                " channels, base_day, base_days, uses) FROM STDIN"
            ) as copy,
        ):
            for i in order:
                stream = list_stream(TENANT, keys[i])
                for j in range(size):
                    since = datetime.now(UTC).date() - timedelta(days=int(rng.integers(0, 14)))
                    copy.write_row(
                        (
                            1,
                            stream.bytes[0],
                            stream,
                            ids[i, j][0],
                            since,
                            0,
                            False,
                            0,
                            ids[i, j][1],
                            [],
                            [],
                            since,
                            0,
                            "[]",
                        )
                    )
        with (
            conn.cursor() as cur,
            cur.copy(
                "COPY remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)"
                " FROM STDIN (FORMAT BINARY)"
            ) as copy,
        ):
            copy.set_types(["int2", "text", "text", "text", "bytea", "text", "halfvec"])
            for i in order:
                stream, owner = list_stream(TENANT, keys[i]), keys[i].owner
                for j in range(size):
                    copy.write_row((stream.bytes[0], TENANT, *owner, ids[i, j][2], MODEL, HalfVector(made[i, j])))
        conn.execute("VACUUM ANALYZE")
    return made


def timed(work: Callable[[], Any], times: int, warm: int = 20) -> list[float]:
    """Milliseconds of each call, after some that do not count."""
    for _ in range(warm):
        work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e3)
    return taken


def p(values: Sequence[float], percent: float) -> float:
    """A percentile."""
    return statistics.quantiles(values, n=100, method="inclusive")[int(percent) - 1]
