"""Brings memories of another store into their lists, many at a time (D8, D22)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, Subject, list_stream, shard_of
from remembrancer.domain.imports import Brought, Incoming, bring, new_ones
from remembrancer.domain.persona_memory import Context, MemoryList
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.clock import make_id
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.store import Batch, Decision, Fold, Loaded, Request
from remembrancer.services.tail import unread
from remembrancer.services.vectors import BATCH, Vectors

_SQL = load_queries("remembrancer.services", "transfer")
AT_ONCE = 256
"""Memories that are loaded for, embedded and appended together; those of one list are one append."""
EMBED_SECONDS = 30.0


class _NothingNew(Exception):
    """The list says all of it already."""


class Intake:
    """Collects memories and writes them in batches. What was written stays: the same again brings the rest.

    A model that does not answer is left alone for the rest of the import: memories come in without a vector, are active
    as far as their counter says, do not tick, are not forgotten, and are embedded in the background (D22, C26).
    """

    def __init__(self, deps: Deps, vectors: Vectors) -> None:
        self._deps = deps
        self._vectors = vectors
        self._collected: list[tuple[ListKey, Incoming]] = []
        self._ahead: dict[int, set[UUID]] = {}
        self._model_answers = deps.embedder is not None
        self.imported = 0
        self.duplicates = 0
        self.without_vector = 0

    def add(self, key: ListKey, memory: Incoming) -> bool:
        """One memory more. True if a batch was written now."""
        self._collected.append((key, memory))
        if len(self._collected) < AT_ONCE:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Write what has been collected."""
        by_list: dict[ListKey, list[Incoming]] = {}
        for key, memory in self._collected:
            by_list.setdefault(key, []).append(memory)
        self._collected = []
        streams = {key: list_stream(self._deps.tenant, key) for key in by_list}
        wanted: list[tuple[UUID, Fold[Any]]] = [
            (self._deps.tenant_stream, TENANT),
            *((stream, LIST) for stream in streams.values()),
        ]
        tenant, *lists = self._deps.store.load_many(wanted)
        new = {key: new_ones(at.state, by_list[key]) for key, at in zip(by_list, lists, strict=True)}
        embedded = self._embed([(key.owner, one.text) for key, ones in new.items() for one in ones])
        taken = self._taken({one.id for ones in new.values() for one in ones if one.id is not None})
        policy = self._deps.policy(tenant)
        for key, ones in by_list.items():
            ctx = self._context(key, streams[key], policy)
            brought = self._append(key, streams[key], ones, ctx, taken) if new[key] else Brought((), len(ones))
            self.imported += len(brought.events)
            self.duplicates += brought.duplicates
            if self._deps.embedder is not None:
                self.without_vector += sum(1 for ev in brought.events if (key.owner, ev.text) not in embedded)

    def _context(self, key: ListKey, stream: UUID, policy: tuple[Any, int]) -> Context:
        return Context(
            tenant=self._deps.tenant,
            key=key,
            actor="import",
            day=self._deps.now().date(),
            policy=policy[0],
            policy_version=policy[1],
            new_id=lambda: make_id(stream.bytes[0]),
        )

    def _append(
        self, key: ListKey, stream: UUID, incoming: Sequence[Incoming], ctx: Context, taken: Collection[UUID]
    ) -> Brought:
        brought = Brought((), len(incoming))

        def decide(at: Loaded[MemoryList]) -> Decision:
            nonlocal brought
            brought = bring(at.state, incoming, ctx, taken=taken)
            if not brought.events:
                raise _NothingNew
            return Decision([Batch(stream, brought.events, at.version, (key.owner,))])

        request = Request(self._deps.tenant, stream.bytes[0], verb="import", owners=(key.owner,))
        with suppress(_NothingNew):
            self._deps.store.transact(
                request, lambda: self._deps.store.load(stream, LIST), decide, now=self._deps.now()
            )
        for ev in brought.events:
            self._ahead.setdefault(stream.bytes[0], set()).add(ev.memory)
        return brought

    def _embed(self, texts: Sequence[tuple[Subject, str]]) -> set[tuple[Subject, str]]:
        """Make sure that these texts have vectors. Returns those that do."""
        done = self._with_vector(texts)
        missing = [one for one in dict.fromkeys(texts) if one not in done]
        for start in range(0, len(missing), BATCH):
            if not self._model_answers:
                break
            part = missing[start : start + BATCH]
            vectors = self._vectors.of_passages([text for _, text in part], timeout=EMBED_SECONDS)
            if vectors is None:
                self._model_answers = False
                break
            self._vectors.keep([(owner, text, vector) for (owner, text), vector in zip(part, vectors, strict=True)])
            done.update(part)
        return done

    def _with_vector(self, texts: Sequence[tuple[Subject, str]]) -> set[tuple[Subject, str]]:
        """Texts of which a vector is kept, so that nobody is asked again (D23)."""
        if self._deps.embedder is None or not texts:
            return set()
        params = {
            "tenant": self._deps.tenant,
            "model": self._deps.embedder.model,
            "shards": [shard_of(self._deps.tenant, owner) for owner, _ in texts],
            "kinds": [owner.kind for owner, _ in texts],
            "subjects": [owner.key for owner, _ in texts],
            "digests": [digest(text) for _, text in texts],
        }

        def work(conn: Connection[Any]) -> set[tuple[str, str, bytes]]:
            return {(row[0], row[1], row[2]) for row in conn.execute(_SQL["kept_vectors"], params)}

        kept = self._deps.store.database.run(work)
        return {(owner, text) for owner, text in texts if (*owner, digest(text)) in kept}

    def _taken(self, ids: Collection[UUID]) -> set[UUID]:
        """Those of these ids that ever were a memory's, in this or another tenant."""
        if not ids:
            return set()
        shards = sorted({i.bytes[0] for i in ids})

        def work(conn: Connection[Any]) -> tuple[set[UUID], Mapping[int, set[UUID]]]:
            # What is ahead of the read model first: what it reads meanwhile is then found in both, not in neither.
            ahead: dict[int, set[UUID]] = {shard: set() for shard in shards if shard not in self._ahead}
            if ahead:
                for recorded in unread(conn, self._deps.store, "history", kinds=[e.MemorySaved], shards=ahead):
                    if isinstance(recorded.event, e.MemorySaved):
                        ahead[recorded.shard].add(recorded.event.memory)
            at = {"shards": [i.bytes[0] for i in ids], "ids": list(ids)}
            return {row[0] for row in conn.execute(_SQL["taken"], at)}, ahead

        read, ahead = self._deps.store.database.run(work)
        self._ahead.update(ahead)
        return read | {i for i in ids if i in self._ahead[i.bytes[0]]}
