"""Vectors of texts, asked for once and kept by tenant, subject, model and text (D22, D23)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.identity import Subject, shard_of
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.deps import Deps
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector
from remembrancer.services.passage_vectors import embed_passages

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "vectors")
BATCH = 64
PATIENCE_SECONDS = 30.0
"""How long the background waits for a batch."""
CHORE_SECONDS = 30.0
RETRY_SECONDS = 2.0
ADOPTED_AT_ONCE = {"adopt_memories": 5_000, "adopt_archive": 1_000}
"""Rows; one of the archive costs an insertion into its index."""
ANY_TEXT = "memory"
"""What every model can embed that can embed at all."""


class Embedded(NamedTuple):
    """The vector of a text by the model that serves; while a change is on, also by the one that is to take over."""

    model: str
    vector: Vector
    coming: tuple[str, Vector] | None = None

    def each(self) -> list[tuple[str, Vector]]:
        """Model and vector, one or two."""
        return [(self.model, self.vector), *([self.coming] if self.coming else [])]


class Vectors:
    """Keeps vectors, and makes up later for those that could not be had when a memory was saved."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._due = 0.0
        self._pause = RETRY_SECONDS
        self._refused: set[bytes] = set()
        self._indexed: str | None = None
        self._beside: ThreadPoolExecutor | None = None
        self._leave_coming_until = 0.0
        self._closed = False

    def of_passage(self, text: str, *, timeout: float | None = None) -> Embedded | None:
        """The vector of a memory's text, or None: then it is saved without, and embedded later (D22)."""
        vectors = self.of_passages([text], timeout=timeout or self._deps.settings.embed_timeout)
        return None if vectors is None else vectors[0]

    def of_passages(self, texts: Sequence[str], *, timeout: float) -> list[Embedded] | None:
        """The vectors of several texts in at most `timeout` seconds, all of them or None. While a model is about to
        take over, its vectors come along where it gives them; the others are asked for in the background (D23)."""
        serving, coming = self._deps.embedder, self._deps.models.coming
        if serving is None:
            return None
        beside = None if coming is None or coming is serving else self._ask_beside(coming, texts, timeout)
        try:
            vectors = serving.embed_passages(texts, timeout=timeout)
        except EmbedderFailed as failed:
            log.warning("Memories are saved without a vector for now: %s", failed.reason)
            self._due = min(self._due, time.monotonic() + self._pause)
            return None
        others = self._come_along(beside, len(texts), timeout)
        return [Embedded(serving.model, v, o) for v, o in zip(vectors, others, strict=True)]

    def _ask_beside(
        self, coming: Embedder, texts: Sequence[str], timeout: float
    ) -> tuple[str, Future[list[Vector]]] | None:
        """Ask the model that is to take over in another thread, unless it failed a moment ago."""
        if time.monotonic() < self._leave_coming_until:
            return None
        self._beside = self._beside or ThreadPoolExecutor(4, thread_name_prefix="remembrancer-embed-coming")
        return coming.model, self._beside.submit(coming.embed_passages, texts, timeout=timeout)

    def _come_along(
        self, beside: tuple[str, Future[list[Vector]]] | None, count: int, timeout: float
    ) -> list[tuple[str, Vector] | None]:
        if beside is not None:
            model, asked = beside
            try:
                return [(model, vector) for vector in asked.result(timeout)]
            except (EmbedderFailed, TimeoutError, CancelledError) as failed:
                asked.cancel()
                self._leave_coming_until = time.monotonic() + CHORE_SECONDS
                log.info("The model that is to take over is asked again later: %s", failed)
        return [None] * count

    def keep(self, texts: Sequence[tuple[Subject, str, Embedded]]) -> None:
        """Keep vectors of texts by their subjects. The same again changes nothing. Where another model has begun to
        serve since they were made, its vectors are made and kept as well, so that no search misses them."""
        if not texts or self._deps.embedder is None:
            return
        self._keep(texts)
        serving = self._deps.models.look_again()
        stale = [(owner, text) for owner, text, one in texts if serving and serving.model not in dict(one.each())]
        if stale:
            again = self.of_passages([text for _, text in stale], timeout=self._deps.settings.embed_timeout)
            self._keep([(*both, one) for both, one in zip(stale, again or (), strict=bool(again))])

    def _keep(self, texts: Sequence[tuple[Subject, str, Embedded]]) -> None:
        rows = [
            self._key(owner, text) | {"model": model, "vector": HalfVector(vector)}
            for owner, text, one in texts
            for model, vector in one.each()
        ]

        def work(conn: Connection[Any]) -> None:
            conn.cursor().executemany(_SQL["keep"], rows)

        self._deps.store.database.run(work)
        for model, vector in {model: vector for *_, one in texts for model, vector in one.each()}.items():
            self._deps.models.measured(model, len(vector))

    def forget(self, owner: Subject, text: str) -> None:
        """Drop the vectors of a text that was not saved after all."""
        params = self._key(owner, text)
        self._deps.store.database.run(lambda conn: conn.execute(_SQL["forget"], params))

    def close(self) -> None:
        """Give the threads back, and end what the background is at."""
        self._closed = True
        if self._beside is not None:
            self._beside.shutdown(wait=False, cancel_futures=True)

    def _key(self, owner: Subject, text: str) -> dict[str, Any]:
        """What the vectors of a text are kept under."""
        return {
            "shard": shard_of(self._deps.tenant, owner),
            "tenant": self._deps.tenant,
            "kind": owner.kind,
            "subject": owner.key,
            "digest": digest(text),
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
        model = embedder.model
        at = {"tenant": self._deps.tenant, "model": model, "limit": limit, "refused": list(self._refused)}
        self.adopt(model)
        found = self._deps.store.database.run(lambda conn: conn.execute(_SQL["without_vector"], at).fetchall())
        vectors = of_all_that_can_be(embedder, [row[4] for row in found], self._refused)
        got = [
            self._key(Subject(kind, subject), text)
            | {"list": stream, "memory": memory, "text": text, "model": model, "vector": HalfVector(vector)}
            for (_, stream, kind, subject, text, memory), vector in zip(found, vectors, strict=True)
            if vector is not None
        ]
        if got:
            self._deps.store.database.run(lambda conn: conn.cursor().executemany(_SQL["keep_if_there"], got))
            self._deps.models.measured(model, len(got[0]["vector"].to_list()))
            self.adopt(model)
            return len(got)
        return embed_passages(
            self._deps.store.database, self._deps.tenant, model,
            lambda texts: of_all_that_can_be(embedder, texts, self._refused), limit=limit, refused=self._refused,
        )  # fmt: skip

    def adopt(self, model: str) -> None:
        """Bring the vectors of a model that are kept into the rows of their texts, some at a time. Searches find them
        before that, only less quickly."""
        for query, limit in ADOPTED_AT_ONCE.items():
            at = {"tenant": self._deps.tenant, "model": model, "limit": limit}
            adopted = limit
            while adopted >= limit and not self._closed:
                adopted = self._adopt(query, at)

    def _adopt(self, query: str, at: dict[str, Any]) -> int:
        return self._deps.store.database.run(lambda conn: conn.execute(_SQL[query], at).rowcount)

    def index_archive(self, embedder: Embedder | None = None) -> bool:
        """Make sure that the archive has its HNSW index for a model, the one that serves if none is named (DESIGN 4).
        False if nobody knows yet how long its vectors are."""
        embedder = embedder or self._deps.embedder
        if embedder is None:
            return True
        if embedder.dimensions is None:
            return False
        at = {"model": embedder.model, "dimensions": embedder.dimensions}
        self._deps.store.database.run(lambda conn: conn.execute(_SQL["index_archive"], at))
        return True

    def is_due(self) -> bool:
        """Is it time for `chore`?"""
        return time.monotonic() >= self._due

    def chore(self) -> None:
        """Background work: make up for missing vectors, soon after a failure, else now and then; index the archive.

        Raises:
            Unavailable: the model or the database is away; the next chore tries again, each time a little later.
        """
        try:
            embedder = self._deps.models.look_again()
            while not self._closed and self.pending():
                pass
            if embedder is not None and self._indexed != embedder.model and self.index_archive(embedder):
                self._indexed = embedder.model
        except Unavailable:
            self._due = time.monotonic() + self._pause
            self._pause = min(CHORE_SECONDS, 2 * self._pause)
            raise
        self._due, self._pause = time.monotonic() + CHORE_SECONDS, RETRY_SECONDS


def of_all_that_can_be(embedder: Embedder, texts: Sequence[str], refused: set[bytes]) -> Sequence[Vector | None]:
    """The vectors of these texts, None for those that the model refuses, whose digests come into `refused`.

    Where it fails on all of them together, it is asked for one after the other; a text is to blame only if the model
    takes another one.

    Raises:
        EmbedderFailed: the model is away.
    """
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
            log.warning("The model refuses the text of a memory, which no search will find: %s", failed.reason)
            refused.add(digest(text))
            vectors.append(None)
    return vectors
