"""Vectors of texts, asked for once and kept by tenant, subject, model and text (D22, D23)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.identity import Subject, shard_of
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.deps import Deps
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector
from remembrancer.services.passage_vectors import embed_passages
from remembrancer.services.store import EventStore

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "vectors")
BATCH = 64
PATIENCE_SECONDS = 30.0
"""How long the background waits for a batch."""
CHORE_SECONDS = 30.0
RETRY_SECONDS = 2.0
ANY_TEXT = "memory"
"""What every model can embed that can embed at all."""


def kept_dimensions(store: EventStore, model: str) -> int | None:
    """The length of the vectors that are kept of a model; None if there are none."""

    def work(conn: Connection[Any]) -> int | None:
        row = conn.execute(_SQL["dimensions"], {"model": model}).fetchone()
        return None if row is None else int(row[0])

    return store.database.run(work)


class Vectors:
    """Keeps vectors, and makes up later for those that could not be had when a memory was saved."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._due = 0.0
        self._pause = RETRY_SECONDS
        self._refused: set[bytes] = set()
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
            self._due = min(self._due, time.monotonic() + self._pause)
            return None

    def keep(self, texts: Sequence[tuple[Subject, str, Vector]]) -> None:
        """Keep vectors of texts by their subjects. The same again changes nothing."""
        if not texts or self._deps.embedder is None:
            return
        rows = [self._key(owner, text) | {"vector": HalfVector(vector)} for owner, text, vector in texts]

        def work(conn: Connection[Any]) -> None:
            conn.cursor().executemany(_SQL["keep"], rows)

        self._deps.store.database.run(work)

    def forget(self, owner: Subject, text: str) -> None:
        """Drop the vector of a text that was not saved after all."""
        if self._deps.embedder is not None:
            params = self._key(owner, text)
            self._deps.store.database.run(lambda conn: conn.execute(_SQL["forget"], params))

    def _key(self, owner: Subject, text: str) -> dict[str, Any]:
        """What a vector is kept under."""
        assert self._deps.embedder is not None
        return {
            "shard": shard_of(self._deps.tenant, owner),
            "tenant": self._deps.tenant,
            "kind": owner.kind,
            "subject": owner.key,
            "digest": digest(text),
            "model": self._deps.embedder.model,
        }

    def pending(self, limit: int = BATCH) -> int:
        """Embed memories, and passages of documents, that have no vector of the model in use (D22).

        Returns how many got one. A text that the model refuses, while it takes others, is left out until the next
        start.

        Raises:
            EmbedderFailed: the model is still away; nothing is lost, the next call tries again.
        """
        embedder = self._deps.embedder
        if embedder is None:
            return 0
        at = {"tenant": self._deps.tenant, "model": embedder.model, "limit": limit, "refused": list(self._refused)}

        def adopt(conn: Connection[Any]) -> None:
            conn.execute(_SQL["adopt_memories"], at)
            conn.execute(_SQL["adopt_archive"], at)

        def missing(conn: Connection[Any]) -> list[Any]:
            adopt(conn)
            return conn.execute(_SQL["without_vector"], at).fetchall()

        found = self._deps.store.database.run(missing)
        vectors = self._of_all_that_can_be(embedder, [row[4] for row in found])
        got = [
            self._key(Subject(kind, subject), text)
            | {"list": stream, "memory": memory, "text": text, "vector": HalfVector(vector)}
            for (_, stream, kind, subject, text, memory), vector in zip(found, vectors, strict=True)
            if vector is not None
        ]

        def keep(conn: Connection[Any]) -> None:
            conn.cursor().executemany(_SQL["keep_if_there"], got)
            adopt(conn)

        if got:
            self._deps.store.database.run(keep)
            return len(got)
        return embed_passages(
            self._deps.store.database, self._deps.tenant, embedder.model,
            lambda texts: self._of_all_that_can_be(embedder, texts), limit=limit, refused=self._refused,
        )  # fmt: skip

    def _of_all_that_can_be(self, embedder: Embedder, texts: Sequence[str]) -> Sequence[Vector | None]:
        """The vectors of these texts, None for those that the model refuses. Where it fails on all of them together, it
        is asked for one after the other; a text is to blame only if the model takes another one."""
        if not texts:
            return []
        try:
            return embedder.embed_passages(texts, timeout=PATIENCE_SECONDS)
        except EmbedderFailed:
            embedder.embed_passages([ANY_TEXT], timeout=PATIENCE_SECONDS)
        vectors: list[Vector | None] = []
        for text in texts:
            try:
                vectors += embedder.embed_passages([text], timeout=PATIENCE_SECONDS)
            except EmbedderFailed as failed:
                embedder.embed_passages([ANY_TEXT], timeout=PATIENCE_SECONDS)
                log.warning("The model refuses a text, which no search will find: %s", failed.reason)
                self._refused.add(digest(text))
                vectors.append(None)
        return vectors

    def index_archive(self) -> None:
        """Make sure that the archive has its HNSW index for the model in use (DESIGN 4)."""
        embedder = self._deps.embedder
        if embedder is not None and embedder.dimensions is not None:
            at = {"model": embedder.model, "dimensions": embedder.dimensions}
            self._deps.store.database.run(lambda conn: conn.execute(_SQL["index_archive"], at))

    def is_due(self) -> bool:
        """Is it time for `chore`?"""
        return time.monotonic() >= self._due

    def chore(self) -> None:
        """Background work: make up for missing vectors, soon after a failure, else now and then; index the archive.

        Raises:
            Unavailable: the model or the database is away; the next chore tries again, each time a little later.
        """
        try:
            while self.pending():
                pass
            if not self._indexed:
                self.index_archive()
                self._indexed = self._deps.embedder is None or self._deps.embedder.dimensions is not None
        except Unavailable:
            self._due = time.monotonic() + self._pause
            self._pause = min(CHORE_SECONDS, 2 * self._pause)
            raise
        self._due, self._pause = time.monotonic() + CHORE_SECONDS, RETRY_SECONDS
