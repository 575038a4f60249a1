"""What a reply reads of documents: the passages that its one embedding finds, for the late block (T17).

The shelves in play are folded from their events together with the settings, so a reply of which no document is in play
asks the database nothing more. Passages are read from rows; those of a document that has none yet, from its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.documents import (
    Document,
    Excerpt,
    Passage,
    Shelf,
    documents_in_play,
    evolve_shelf,
    passages_of,
    render_documents,
    within_budget,
)
from remembrancer.domain.identity import Subject, shard_of, shelf_stream
from remembrancer.domain.policy import Policy
from remembrancer.domain.visibility import Place
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.projections.scoring import scale_of, score_parameters
from remembrancer.projections.words import memory_terms
from remembrancer.services.answers import Late, PassageView
from remembrancer.services.embedders import Vector
from remembrancer.services.store import EventStore, Fold
from remembrancer.services.tokens import count_tokens_of_each

_SQL = load_queries("remembrancer.services", "documents")
SHELF: Fold[Shelf] = Fold("shelf@1", Shelf(), evolve_shelf)
PASSED_OVER = 10
"""So many more are brought than may be sent: some may not fit into the budget."""


@dataclass(frozen=True, slots=True)
class Excerpts:
    """The passages of a reply, best first; or why the documents in play were not searched."""

    passages: Sequence[PassageView] = ()
    missing: str | None = None

    @property
    def text(self) -> str:
        """Their part of the late block."""
        return render_documents([Excerpt(p.name, p.place, p.text) for p in self.passages])

    def beside(self, late: str) -> str:
        """The late block with them in it."""
        return "\n\n".join(part for part in (late, self.text) if part)

    def event(self, stamp: dict[str, Any], *, chat: str, attempt: int, persona: str) -> list[e.Event]:
        """What the chat records of them; nothing where nothing was sent."""
        found = tuple(
            e.FoundPassage(document=p.document, n=p.n, score=p.score, similarity=p.similarity, words=p.words)
            for p in self.passages
        )
        return (
            [e.DocumentsSearched(**stamp, chat=chat, attempt=attempt, persona=persona, passages=found)] if found else []
        )


def shelves_of(tenant: str, persona: str, server: str | None) -> list[tuple[UUID, Fold[Shelf]]]:
    """The streams of the shelves in play, as `load_many` takes them: the persona's, and the server's."""
    owners = [Subject("persona", persona), *([] if server is None else [Subject("server", server)])]
    return [(shelf_stream(tenant, owner), SHELF) for owner in owners]


def in_play(shelves: Sequence[Shelf], place: Place, policy: Policy) -> list[Document]:
    """The documents that this reply looks through."""
    wanted = policy.document_limit > 0 and policy.document_tokens > 0
    return documents_in_play(shelves, place) if wanted and any(s.documents for s in shelves) else []


def passage_threshold(policy: Policy, model: str) -> float | None:
    """The lowest score of a passage that is sent; None for a model that nobody has measured (D5).

    A passage has ten times the words of a memory, so one of them is a little like most messages: where no number is
    set, it has to be better than a memory by one unit of word match (scripts/bench/passages.py).
    """
    for own in (policy.document_threshold, policy.match_threshold):
        if own is not None:
            return own
    scale = scale_of(model)
    return None if scale is None else scale.threshold + scale.word_weight


class Asked(NamedTuple):
    """A search of documents: for what, with which model, and from which score on."""

    tenant: str
    message: str
    vector: Vector
    model: str
    threshold: float
    policy: Policy


def find_passages(
    conn: Connection[Any], store: EventStore, documents: Sequence[Document], asked: Asked
) -> list[PassageView]:
    """The best passages above the threshold, best first, within the budget of the policy."""
    at = {"shards": [d.id.bytes[0] for d in documents], "documents": [d.id for d in documents]}
    known = {row[0] for row in conn.execute(_SQL["known"], at, prepare=True, binary=True)}
    ahead = _ahead(conn, store, [d for d in documents if d.id not in known])
    params = at | _overlay(documents, ahead, asked.tenant)
    params |= score_parameters(scale_of(asked.model), asked.vector, asked.message)
    params |= {
        "model": asked.model, "tenant": asked.tenant, "threshold": asked.threshold, "skip": list(ahead),
        "near": timedelta(), "candidates": asked.policy.document_limit + PASSED_OVER,
    }  # fmt: skip
    found = conn.execute(_SQL["search"], params, prepare=True, binary=True).fetchall()
    if not found:
        return []
    wanted = [(documents[no - 1], n) for no, n, *_ in found]
    texts = read_passages(conn, [(d.id, n) for d, n in wanted if d.id not in ahead])
    texts |= {(k, p.n): p for k, passages in ahead.items() for p in passages}
    best = [
        (d, texts[d.id, n], numbers)
        for (d, n), (_, _, *numbers) in zip(wanted, found, strict=True)
        if (d.id, n) in texts  # removed or erased this moment
    ]
    tokens = count_tokens_of_each([p.text for _, p, _ in best])
    chosen = within_budget(tokens, limit=asked.policy.document_limit, budget=asked.policy.document_tokens)
    return [_view(*best[n], tokens[n]) for n in chosen]


def read_passages(conn: Connection[Any], wanted: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], Passage]:
    """Passages by document and number, as the rows have them."""
    if not wanted:
        return {}
    at = {
        "shards": [k.bytes[0] for k, _ in wanted], "documents": [k for k, _ in wanted], "ns": [n for _, n in wanted],
    }  # fmt: skip
    rows = conn.execute(_SQL["texts"], at, prepare=True, binary=True)
    return {(k, n): Passage(n, page, heading, text) for k, n, page, heading, text in rows}


def _ahead(conn: Connection[Any], store: EventStore, documents: Sequence[Document]) -> dict[UUID, list[Passage]]:
    """The passages of documents that have no rows yet, from their events."""
    found: dict[UUID, list[Passage]] = {d.id: [] for d in documents}
    if documents:
        for r in store.decode(store.select_streams(conn, [(d.id, 0) for d in documents]), conn):
            if isinstance(r.event, e.PassagesAdded):
                found[r.event.document] += passages_of(r.event)
    return found


def _overlay(documents: Sequence[Document], ahead: dict[UUID, list[Passage]], tenant: str) -> dict[str, Any]:
    """Those passages as columns."""
    rows = [(no, d.keeper, p) for no, d in enumerate(documents, start=1) for p in ahead.get(d.id, ())]
    return {
        "o_no": [no for no, _, _ in rows],
        "o_n": [p.n for _, _, p in rows],
        "o_shard": [shard_of(tenant, keeper) for _, keeper, _ in rows],
        "o_kind": [keeper.kind for _, keeper, _ in rows],
        "o_subject": [keeper.key for _, keeper, _ in rows],
        "o_digest": [digest(p.text) for _, _, p in rows],
        "o_terms": ["{" + ",".join(map(str, memory_terms(p.text))) + "}" for _, _, p in rows],
    }


def _view(document: Document, passage: Passage, numbers: Sequence[float], tokens: int) -> PassageView:
    score, similarity, words = numbers
    return PassageView(
        document=document.id, name=document.name, n=passage.n, page=passage.page, heading=passage.heading,
        place=passage.place, text=passage.text, tokens=tokens, score=score, similarity=similarity, words=words,
    )  # fmt: skip


# -- the answer to a request that comes again (D19) ----------------------------------------------------------------


def without_texts(late: Late) -> Late:
    """The late block as it is kept: of passages their numbers, since their shelf keeps the texts, and may lose them."""
    if not late.documents:
        return late
    text = late.text.removesuffix(Excerpts(late.documents).text).removesuffix("\n\n")
    kept = [p.model_copy(update={"text": "", "name": "", "heading": None, "place": ""}) for p in late.documents]
    return late.model_copy(update={"text": text, "documents": kept})


def with_texts(conn: Connection[Any], store: EventStore, late: Late, shelves: Sequence[Shelf]) -> Late:
    """The late block as it was given, less what has been removed or erased since."""
    there = {d.id: d for s in shelves for d in s.documents.values()}
    wanted = [p for p in late.documents if p.document in there]
    texts = read_passages(conn, [(p.document, p.n) for p in wanted])
    lacking = [there[k] for k in {p.document for p in wanted if (p.document, p.n) not in texts}]
    texts |= {(k, p.n): p for k, ps in _ahead(conn, store, lacking).items() for p in ps}
    again = [
        _view(there[p.document], texts[p.document, p.n], (p.score, p.similarity, p.words), p.tokens)
        for p in wanted
        if (p.document, p.n) in texts
    ]
    return late.model_copy(update={"text": Excerpts(again).beside(late.text), "documents": again})
