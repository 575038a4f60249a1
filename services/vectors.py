"""Vectors of texts, asked for once and kept by tenant, subject, model and text (D22, D23)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain.identity import Subject, shard_of
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.deps import Deps
from remembrancer.services.embedders import EmbedderFailed, Vector

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "vectors")
BATCH = 64
CHORE_SECONDS = 30.0
RETRY_SECONDS = 2.0


class Vectors:
    """Keeps vectors, and makes up later for those that could not be had when a memory was saved."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._due = 0.0
        self._failed = False
        self._indexed = False

    def of_passage(self, text: str, *, timeout: float | None = None) -> Vector | None:
        """The vector of a memory's text, or None: then it is saved without, and embedded later (D22)."""
        vectors = self.of_passages([text], timeout=timeout or self._deps.settings.embed_timeout)
        return None if vectors is None else vectors[0]

    def of_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector] | None:
        """The vectors of several texts in at most `timeout` seconds, all of them or None."""
        embedder = self._deps.embedder
        if embedder is None:
            return None
        try:
            return embedder.embed_passages(texts, timeout=timeout)
        except EmbedderFailed as failed:
            log.warning("Memories are saved without a vector for now: %s", failed.reason)
            self._failed, self._due = True, min(self._due, time.monotonic() + RETRY_SECONDS)
            return None

    def keep(self, texts: Sequence[tuple[Subject, str, Vector]]) -> None:
        """Keep vectors of texts by their subjects. The same again changes nothing."""
        if not texts or self._deps.embedder is None:
            return
        model, tenant = self._deps.embedder.model, self._deps.tenant
        rows = [
            {
                "shard": shard_of(tenant, owner),
                "tenant": tenant,
                "kind": owner.kind,
                "subject": owner.key,
                "digest": digest(text),
                "model": model,
                "vector": HalfVector(vector),
            }
            for owner, text, vector in texts
        ]

        def work(conn: Connection[Any]) -> None:
            conn.cursor().executemany(_SQL["keep"], rows)

        self._deps.store.database.run(work)

    def forget(self, owner: Subject, text: str) -> None:
        """Drop the vector of a text that was not saved after all."""
        if self._deps.embedder is None:
            return
        params = {
            "shard": shard_of(self._deps.tenant, owner),
            "tenant": self._deps.tenant,
            "kind": owner.kind,
            "subject": owner.key,
            "digest": digest(text),
            "model": self._deps.embedder.model,
        }
        self._deps.store.database.run(lambda conn: conn.execute(_SQL["forget"], params))

    def pending(self, limit: int = BATCH) -> int:
        """Embed memories that have no vector of the model in use. Returns how many got one (D22).

        Raises:
            EmbedderFailed: the model is still away; nothing is lost, the next call tries again.
        """
        embedder = self._deps.embedder
        if embedder is None:
            return 0
        at = {"tenant": self._deps.tenant, "model": embedder.model, "limit": limit}

        def work(conn: Connection[Any]) -> int:
            conn.execute(_SQL["adopt_memories"], at)
            conn.execute(_SQL["adopt_archive"], at)
            found = conn.execute(_SQL["without_vector"], at).fetchall()
            if not found:
                return 0
            vectors = embedder.embed_passages([row[4] for row in found], timeout=30.0)
            self.keep([(Subject(row[2], row[3]), row[4], v) for row, v in zip(found, vectors, strict=True)])
            conn.execute(_SQL["adopt_memories"], at)
            conn.execute(_SQL["adopt_archive"], at)
            return len(found)

        return self._deps.store.database.run(work)

    def index_archive(self) -> None:
        """Make sure that the archive has its HNSW index for the model in use (DESIGN 4)."""
        embedder = self._deps.embedder
        if embedder is not None and embedder.dimensions is not None:
            at = {"model": embedder.model, "dimensions": embedder.dimensions}
            self._deps.store.database.run(lambda conn: conn.execute(_SQL["index_archive"], at))

    def chore(self) -> None:
        """Background work: make up for missing vectors, often after a failure, else now and then; index the archive.

        Raises:
            EmbedderFailed: the model is away; the next chore tries again.
        """
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (CHORE_SECONDS if not self._failed else RETRY_SECONDS)
        while self.pending():
            pass
        self._failed = False
        if not self._indexed:
            self.index_archive()
            self._indexed = self._deps.embedder is None or self._deps.embedder.dimensions is not None
