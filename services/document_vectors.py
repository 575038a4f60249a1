"""The vectors of a document that is about to be added."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remembrancer.domain.identity import Subject, shard_of
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.deps import Deps
from remembrancer.services.passage_vectors import PASSAGES
from remembrancer.services.vectors import Vectors

_SQL = load_queries("remembrancer.services", "documents")
PATIENCE_SECONDS = 120.0
"""For each part: whoever adds a document sees how far it is."""
Progress = Callable[[int, int | None], None]


class DocumentVectors:
    """Embeds the passages of a document that is about to be added, and keeps their vectors."""

    def __init__(self, deps: Deps, vectors: Vectors, keeper: Subject) -> None:
        self._deps = deps
        self._vectors = vectors
        self._keeper = keeper
        self._new: list[str] = []

    def embed(self, texts: Sequence[str], progress: Progress | None) -> int:
        """Returns how many of the texts have a vector now: all, unless the model failed. What was embedded before,
        for another document or an attempt that was given up, is not asked for again."""
        kept = self._kept(texts)
        missing = [text for text in dict.fromkeys(texts) if digest(text) not in kept]
        lacking = set(missing)
        for at in range(0, len(missing), PASSAGES):
            if progress is not None:
                progress(len(texts) - len(missing) + at, len(texts))
            part = missing[at : at + PASSAGES]
            vectors = self._vectors.of_passages(part, timeout=PATIENCE_SECONDS)
            if vectors is None:
                break
            self._vectors.keep([(self._keeper, text, v) for text, v in zip(part, vectors, strict=True)])
            self._new += part
            lacking -= set(part)
        found = sum(text not in lacking for text in texts)
        if progress is not None:
            progress(found, len(texts))
        return found

    def forget(self) -> None:
        """Drop those that are new: the document was not added after all."""
        for text in self._new:
            self._vectors.forget(self._keeper, text)

    def _kept(self, texts: Sequence[str]) -> set[bytes]:
        embedder, tenant = self._deps.embedder, self._deps.tenant
        if embedder is None:
            return set()
        at = {
            "shard": shard_of(tenant, self._keeper), "tenant": tenant, "kind": self._keeper.kind,
            "subject": self._keeper.key, "digests": [digest(text) for text in texts], "model": embedder.model,
        }  # fmt: skip
        return {row[0] for row in self._deps.store.database.run(lambda conn: conn.execute(_SQL["kept"], at).fetchall())}
