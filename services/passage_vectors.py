"""Vectors of passages that could not be had when their document was added: made up in the background (D22)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain.documents import keeper_of
from remembrancer.domain.identity import Subject, shard_of
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.embedders import Vector
from remembrancer.services.store.pool import Database

_SQL = load_queries("remembrancer.services", "documents")


PASSAGES = 8
"""So many are embedded at a time: they are longer than memories, and a model has a bounded time for each call."""


def embed_passages(
    database: Database,
    tenant: str,
    model: str,
    embed: Callable[[Sequence[str]], Sequence[Vector | None]],
    *,
    limit: int,
    refused: Collection[bytes],
) -> int:
    """Give passages without a vector of this model one: a kept one, or one of `embed`. Returns how many got one.

    Args:
        embed: the vectors of texts, None for those that the model refuses.
        refused: digests of texts that the model has refused before.
    """
    at = {"tenant": tenant, "model": model, "limit": min(limit, PASSAGES), "refused": list(refused)}

    def missing(conn: Connection[Any]) -> tuple[list[dict[str, Any]], list[bool]]:
        rows = [_row(tenant, model, *row) for row in conn.execute(_SQL["without_vector"], at)]
        return rows, [conn.execute(_SQL["adopt"], row).rowcount > 0 for row in rows]

    rows, adopted = database.run(missing)
    left = [row for row, done in zip(rows, adopted, strict=True) if not done]
    vectors = embed([row["text"] for row in left])
    got = [row | {"vector": HalfVector(v)} for row, v in zip(left, vectors, strict=True) if v is not None]

    def keep(conn: Connection[Any]) -> None:
        cur = conn.cursor()
        cur.executemany(_SQL["keep_if_there"], got)
        cur.executemany(_SQL["adopt"], got)

    if got:
        database.run(keep)
    return len(rows) - len(left) + len(got)


def _row(
    tenant: str, model: str, shard: int, document: Any, n: int, kind: str, owner: str, user: str | None, text: str
) -> dict[str, Any]:
    """A passage, and what its vector is kept under."""
    keeper = keeper_of(Subject(kind, owner), user)  # type: ignore[arg-type]
    return {
        "at_shard": shard, "document": document, "n": n, "text": text, "tenant": tenant, "model": model,
        "shard": shard_of(tenant, keeper), "kind": keeper.kind, "subject": keeper.key, "digest": digest(text),
    }  # fmt: skip
