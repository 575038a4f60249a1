"""Projection `documents`: documents and their passages, as replies look through them (T17)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.documents import Passage, keeper_of, passages_of
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import Subject, shard_of
from remembrancer.domain.text import ERASED
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import queries, write
from remembrancer.projections.words import memory_terms

_SQL = queries("documents")


class DocumentsProjection:
    """Writes `document` and `passage`. A document's passages come before it, so that it is never seen in part."""

    name = "documents"
    version = 1
    tables: tuple[str, ...] = ("document", "passage")

    def build(self, generation: int, shard: int) -> None:
        """A rebuild leaves documents to the runner."""

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch, event by event. A document that is gone stays gone, whatever comes again."""
        for r in events:
            ev = r.event
            if not isinstance(ev, e.DocumentEvent):
                continue
            at = {"generation": generation, "shard": r.shard, "document": ev.document}
            match ev:
                case e.PassagesAdded():
                    rows = [at | passage_row(ev, passage) for passage in passages_of(ev)]
                    write(conn.cursor(), _SQL["add_passage"], rows)
                case e.DocumentAdded():
                    conn.execute(_SQL["add"], at | _document_row(ev, r))
                case e.DocumentRemoved():
                    conn.execute(_SQL["remove"], at)
                    conn.execute(_SQL["remove_passages"], at)


def passage_row(ev: e.PassagesAdded, passage: Passage) -> dict[str, Any]:
    """A passage as a row, with whose its vector is and what that is found by."""
    keeper = keeper_of(Subject(ev.owner_kind, ev.owner), ev.user)
    return {
        "n": passage.n, "tenant": ev.tenant, "added_by": ev.user, "page": passage.page, "heading": passage.heading,
        "text": passage.text, "terms": memory_terms(passage.text), "digest": digest(passage.text),
        "keeper_shard": shard_of(ev.tenant, keeper), "keeper_kind": keeper.kind, "keeper": keeper.key,
    }  # fmt: skip


def _document_row(ev: e.DocumentAdded, r: Recorded) -> dict[str, Any]:
    erased = ERASED in (ev.name, ev.digest)
    return {
        "tenant": ev.tenant, "owner_kind": ev.owner_kind, "owner": ev.owner, "added_by": ev.user,
        "name": "" if erased else ev.name, "media_type": ev.media_type, "bytes": ev.bytes, "characters": ev.characters,
        "pages": ev.pages, "passages": ev.passages, "channels": list(ev.channels), "added_at": r.recorded_at,
        "gone": "erased" if erased else None,
    }  # fmt: skip
