"""Finds the memory that somebody means, by what they remember of it: among all texts that ever were memories (U1).

By likeness where a model answers, and by words, in any language; both make up the score of a reply's search
(`projections/scoring.py`), so that the threshold of a reasonable match holds here, too. Without a model, words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, Scope
from remembrancer.domain.text import ERASED
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.projections.scoring import PRIOR, SATURATION, scale_of, score_parameters
from remembrancer.projections.words import QueryTerms, memory_terms, query_terms
from remembrancer.services.deps import Deps
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector
from remembrancer.services.finder import Finder
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "memory_search")
MOST = 100
"""Texts that are looked at, by likeness and by words each."""
ENOUGH = 0.5
"""Share of the query's weight in words from which on a text is what was meant."""


@dataclass(frozen=True, slots=True)
class Found:
    """A text that may be meant. `share` is how much of the query's words it has, by weight."""

    memory: UUID
    key: ListKey
    text: str
    similarity: float | None = None
    words: float = 0.0
    share: float = 0.0
    score: float | None = None
    likely: bool = False
    """Passes the threshold, or has most of the words."""


class Answered(NamedTuple):
    """What a search came to: one text a memory, best first; how it was done, and what it could not do."""

    found: list[Found]
    by: Literal["similarity and words", "words"]
    note: str | None


class MemorySearch:
    """See the module."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder

    def find(self, q: str, *, persona: str | None, threshold: float | None) -> Answered:
        """The memories whose texts, of now or of before, are nearest to `q`, of one persona (with globals) or of all.

        Args:
            threshold: the lowest score of a reasonable match with the model in use, where it is known (D5).
        """
        embedder = self._deps.embedder  # once: another model may begin to serve meanwhile (D23)
        vector, note = self._vector(embedder, q)
        texts = self._by_words(q, persona)
        if vector is not None and embedder is not None:
            for hit in self._finder.archive(vector, MOST, embedder.model):
                if persona in (None, hit.persona) or hit.scope == "global":
                    key = ListKey(hit.persona, hit.scope, hit.subject)
                    texts.setdefault((hit.memory, hit.text), Found(hit.memory, key, hit.text, hit.similarity))
        found = list(texts.values())
        if vector is not None and embedder is not None:
            found = self._measured(q, embedder.model, vector, found)
        for n, one in enumerate(found):
            near = one.score is not None and threshold is not None and one.score >= threshold
            found[n] = replace(one, likely=near or one.share >= ENOUGH)
        found.sort(key=lambda f: (-(f.score if f.score is not None else f.words), str(f.memory)))
        best: dict[UUID, Found] = {}
        for one in found:
            best.setdefault(one.memory, one)
        return Answered(list(best.values()), "words" if vector is None else "similarity and words", note)

    def _vector(self, embedder: Embedder | None, q: str) -> tuple[Vector | None, str | None]:
        """The vector of the query, or why there is none."""
        if embedder is None:
            return None, "No embedding model is configured, so it was looked for by its words alone (T11)."
        try:
            return embedder.embed_query(q, timeout=self._deps.settings.embed_timeout), None
        except EmbedderFailed as failed:
            return None, f"The embedding model did not answer, so it was looked for by its words alone: {failed.reason}"

    def _by_words(self, q: str, persona: str | None) -> dict[tuple[UUID, str], Found]:
        """The texts that share words with the query; also those that no table has read yet."""
        terms = query_terms(q)
        at = {
            "tenant": self._deps.tenant, "persona": persona, "terms": terms.terms, "words": terms.words,
            "prior": PRIOR, "saturation": SATURATION, "limit": MOST,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> dict[tuple[UUID, str], Found]:
            ahead = unread(conn, self._deps.store, "history", kinds=[e.MemorySaved, e.MemoryEdited])
            rows = conn.execute(_SQL["worded"], at).fetchall() if terms.terms else []
            found = [
                Found(memory, ListKey(who, scope, subject), text, words=words, share=share)
                for memory, who, scope, subject, text, words, share in rows
            ]
            found += [
                replace(one, share=share, words=share)
                for one, share in _ahead(ahead, self._deps.tenant, persona, terms)
            ]
            return {(one.memory, one.text): one for one in found}

        return self._deps.store.database.run(work)

    def _measured(self, q: str, model: str, vector: Vector, found: Sequence[Found]) -> list[Found]:
        """With their scores. A text without a vector counts as the least like of them, beside its words."""
        score = score_parameters(scale_of(model), vector, q)
        owners = [one.key.owner for one in found]
        at = score | {
            "tenant": self._deps.tenant, "model": model, "shards": [one.memory.bytes[0] for one in found],
            "kinds": [owner.kind for owner in owners], "subjects": [owner.key for owner in owners],
            "digests": [digest(one.text) for one in found],
        }  # fmt: skip
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["measured"], at).fetchall())
        near = {n - 1: (similarity, common) for n, similarity, common in rows}
        bases = {n: s - score["commonness"] * common + score["offset"] for n, (s, common) in near.items()}
        least = min(bases.values(), default=0.0)
        return [
            replace(
                one,
                similarity=near[n][0] if n in near else one.similarity,
                score=bases.get(n, least) + score["weight"] * one.words,
            )
            for n, one in enumerate(found)
        ]


def _ahead(
    ahead: Sequence[e.Recorded], tenant: str, persona: str | None, terms: QueryTerms
) -> list[tuple[Found, float]]:
    """Texts that the tables do not have yet, with the share of the query's words in them (each weighs the same)."""
    found = []
    for r in ahead:
        ev = r.event
        if not isinstance(ev, e.MemorySaved | e.MemoryEdited) or ev.tenant != tenant or ev.text == ERASED:
            continue
        scope: Scope = ev.scope
        if persona not in (None, ev.persona) and scope != "global":
            continue
        has = set(memory_terms(ev.text))
        hit = {word for term, word in zip(*terms, strict=True) if term in has}
        if hit:
            found.append((Found(ev.memory, ev.key, ev.text), len(hit) / len(set(terms.words))))
    return found
