"""Documents of personas and servers: added, shown, removed (T17, R19, D19, D24).

A file is read, split and embedded before anything is decided, outside any transaction. All its events are one append:
the passages in a stream of the document's own, and that it is there in the stream of its owner's shelf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.documents import (
    Document,
    Passage,
    Shelf,
    bodies,
    check_room,
    evolve_shelf,
    keeper_of,
    no_such_document,
    owner_of,
    removed,
    same_document,
    sealed_by,
)
from remembrancer.domain.errors import Refused, RemembrancerError
from remembrancer.domain.identity import Subject, check_key, shard_of, shelf_stream
from remembrancer.domain.policy import Policy
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers_documents import (
    AddDocumentAnswer,
    DocumentAnswer,
    DocumentsAnswer,
    DocumentView,
    PassageText,
    RemoveDocumentAnswer,
)
from remembrancer.services.checks import answer_erased, checked_number
from remembrancer.services.clock import make_id
from remembrancer.services.deps import TENANT, Deps
from remembrancer.services.document_vectors import DocumentVectors, Progress
from remembrancer.services.finder import Finder
from remembrancer.services.formats.documents import File, Parsed, parse, take_file
from remembrancer.services.remember import names
from remembrancer.services.requests import positions, request_for
from remembrancer.services.shelf_reader import SHELF
from remembrancer.services.store import Batch, Decision, Loaded
from remembrancer.services.tail import unread
from remembrancer.services.vectors import Vectors
from remembrancer.services.waiting import Waiting

_SQL = load_queries("remembrancer.services", "documents")


class Documents:
    """Commands and look-ups of documents. See the module."""

    def __init__(self, deps: Deps, vectors: Vectors, finder: Finder, waiting: Waiting) -> None:
        self._deps = deps
        self._finder = finder
        self._vectors = vectors
        self._waiting = waiting

    # -- commands --------------------------------------------------------------------------------------------------

    def add(
        self,
        source: object,
        *,
        persona: str | None,
        server: str | None,
        name: str | None,
        channels: Sequence[str],
        user: str | None,
        request_id: str | None,
        progress: Progress | None,
    ) -> AddDocumentAnswer:
        """Add a document. See `Remembrancer.add_document`."""
        owner, only_in = _owner(persona, server), names("channel", channels)
        if user is not None:
            check_key("user", user)
        policy, tenant = self._policy(), self._deps.tenant
        file = take_file(source, name, policy)
        body = {"owner": str(owner), "name": file.name, "digest": file.digest, "channels": only_in, "user": user}
        owners = sealed_by(owner, user)
        request = request_for(tenant, shard_of(tenant, owner), "add_document", request_id, body, owners)
        done = self._deps.store.find(request) if request_id is not None else None
        if done is None:
            draft = None
            if same_document((shelf := self._load(owner).state), file.digest) is None:
                parsed = parse(file, policy)
                check_room(shelf, len(parsed.passages), policy)
                draft = self._draft(file, parsed, owner, only_in, user, request_id, progress)

            def load() -> _Known:
                shelf = self._load(owner)
                return _Known(shelf.version, shelf.state, self._view(same_document(shelf.state, file.digest)))

            def decide(at: _Known) -> Decision:
                if at.document is not None:
                    return Decision([], _kept("duplicate", at.document))
                if draft is None:
                    raise Refused("The same document was removed this moment.", hint="Ask again.")
                check_room(at.shelf, draft.event.passages, policy)
                return Decision(self._batches(draft, at.version), _kept("added", self._added(draft)))

            try:
                done = self._deps.store.transact(request, load, decide, now=self._deps.now())
            except RemembrancerError:
                if draft is not None:
                    draft.vectors.forget()
                raise
        if done.answer is None:
            raise answer_erased()
        return AddDocumentAnswer(**orjson.loads(done.answer), positions=positions(done))

    def remove(self, document: UUID, *, request_id: str | None) -> RemoveDocumentAnswer:
        """Take a document off its shelf. See `Remembrancer.remove_document`."""
        tenant = self._deps.tenant
        owner, user = self._home(document)
        request = request_for(
            tenant,
            shard_of(tenant, owner),
            "remove_document",
            request_id,
            {"document": document},
            sealed_by(owner, user),
        )

        def load() -> _Known:
            shelf = self._load(owner)
            return _Known(shelf.version, shelf.state, self._view(shelf.state.documents.get(document)))

        def decide(at: _Known) -> Decision:
            found = removed(at.shelf, document)
            assert at.document is not None
            event = e.DocumentRemoved(
                id=make_id(document.bytes[0]), tenant=tenant, request_id=request_id, document=document,
                owner_kind=owner.kind, owner=owner.key, user=found.user,
            )  # fmt: skip
            batch = Batch(shelf_stream(tenant, owner), [event], at.version)
            return Decision([batch], orjson.dumps({"document": at.document.model_dump(mode="json")}))

        done = self._deps.store.transact(request, load, decide, now=self._deps.now())
        if done.answer is None:
            raise answer_erased()
        return RemoveDocumentAnswer(**orjson.loads(done.answer), positions=positions(done))

    # -- look-ups --------------------------------------------------------------------------------------------------

    def listed(self, *, persona: str | None, server: str | None) -> DocumentsAnswer:
        """The documents of a persona, of a server, or all. See `Remembrancer.documents`."""
        every = persona is None and server is None
        owners = self._owners() if every else [_owner(persona, server)]
        shelves = self._deps.store.load_many([(shelf_stream(self._deps.tenant, owner), SHELF) for owner in owners])
        found = [document for one in shelves for document in one.state.documents.values()]
        if persona is not None and not shelves[0].version and not self._finder.knows(persona):
            raise self._finder.no_such_persona(persona)
        self._waiting.settle()
        return DocumentsAnswer(documents=self._views(sorted(found, key=lambda d: (d.added_at, d.id))))

    def show(self, document: UUID, *, limit: int, after: int) -> DocumentAnswer:
        """A document and its passages. See `Remembrancer.document`."""
        checked_number("limit", limit, 1, 1_000)
        checked_number("after", after, 0, 2**31 - 1)
        owner, _ = self._home(document)
        found = removed(self._load(owner).state, document)
        self._waiting.settle()
        at = {"shard": document.bytes[0], "document": document, "after": after, "limit": limit + 1}
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["passages"], at).fetchall())
        page = [PassageText(n=n, page=page, heading=heading, text=text) for n, page, heading, text in rows[:limit]]
        more = page[-1].n if len(rows) > limit else None
        return DocumentAnswer(document=self._views([found])[0], passages=page, next=more)

    def require(self, document: UUID) -> None:
        """Nothing, if there is or ever was such a document of this tenant.

        Raises:
            NotFound: there never was (C23, D31).
        """
        self._home(document)

    def _home(self, document: UUID) -> tuple[Subject, str | None]:
        """Whose a document of this tenant is or was, and who added it.

        Raises:
            NotFound: there never was one (C23, D31).
        """
        tenant, shard = self._deps.tenant, document.bytes[0]

        def work(conn: Connection[Any]) -> tuple[Subject, str | None] | None:
            for r in unread(conn, self._deps.store, "documents", kinds=[e.DocumentAdded], shards=[shard]):
                ev = r.event
                if isinstance(ev, e.DocumentAdded) and ev.document == document and ev.tenant == tenant:
                    return Subject(ev.owner_kind, ev.owner), ev.user
            at = {"shard": shard, "document": document, "tenant": tenant}
            row = conn.execute(_SQL["owner_of"], at).fetchone()
            return None if row is None else (Subject(row[0], row[1]), row[2])

        if (found := self._deps.store.database.run(work)) is None:
            raise no_such_document(document)
        return found

    def _owners(self) -> list[Subject]:
        """Who has a shelf."""
        tenant = self._deps.tenant

        def work(conn: Connection[Any]) -> list[Subject]:
            ahead = [r.event for r in unread(conn, self._deps.store, "documents", kinds=[e.DocumentAdded])]
            new = {
                Subject(ev.owner_kind, ev.owner)
                for ev in ahead
                if isinstance(ev, e.DocumentAdded) and ev.tenant == tenant
            }
            rows = conn.execute(_SQL["owners"], {"tenant": tenant})
            return sorted(new | {Subject(kind, key) for kind, key in rows})

        return self._deps.store.database.run(work)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _load(self, owner: Subject) -> Loaded[Shelf]:
        return self._deps.store.load(shelf_stream(self._deps.tenant, owner), SHELF)

    def _policy(self) -> Policy:
        return self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))[0]

    def _draft(
        self, file: File, parsed: Parsed, owner: Subject, channels: tuple[str, ...], user: str | None,
        request_id: str | None, progress: Progress | None,
    ) -> _Draft:  # fmt: skip
        """The document as it will be added, its vectors kept: those that the model gives now (D22)."""
        shard = shard_of(self._deps.tenant, owner)
        event = e.DocumentAdded(
            id=make_id(shard), tenant=self._deps.tenant, request_id=request_id, document=make_id(shard),
            owner_kind=owner.kind, owner=owner.key, user=user, name=file.name, digest=file.digest,
            media_type=parsed.media_type, bytes=len(file.data), characters=parsed.characters, pages=parsed.pages,
            passages=len(parsed.passages), channels=channels,
        )  # fmt: skip
        vectors = DocumentVectors(self._deps, self._vectors, keeper_of(owner, user))
        searchable = vectors.embed([p.text for p in parsed.passages], progress)
        return _Draft(event, parsed.passages, searchable, vectors)

    def _batches(self, draft: _Draft, version: int) -> list[Batch]:
        """Its events: the passages first, so that nobody sees a document in part."""
        added = draft.event
        owner = Subject(added.owner_kind, added.owner)
        keys = sealed_by(owner, added.user)
        parts = [
            e.PassagesAdded(
                id=make_id(added.document.bytes[0]), tenant=added.tenant, request_id=added.request_id,
                document=added.document, owner_kind=added.owner_kind, owner=added.owner, user=added.user, body=body,
            )
            for body in bodies(draft.passages)
        ]  # fmt: skip
        return [
            Batch(added.document, parts, 0, keys),
            Batch(shelf_stream(added.tenant, owner), [added], version, keys),
        ]

    def _added(self, draft: _Draft) -> DocumentView:
        """The view of what is about to be added."""
        document = draft.event.document
        recorded = e.Recorded(draft.event, document, 1, document.bytes[0], 0, self._deps.now())
        return _view(evolve_shelf(Shelf(), recorded).documents[document], draft.searchable)

    def _view(self, document: Document | None) -> DocumentView | None:
        return None if document is None else self._views([document])[0]

    def _views(self, documents: Sequence[Document]) -> list[DocumentView]:
        embedder = self._deps.embedder
        at = {
            "shards": [d.id.bytes[0] for d in documents], "documents": [d.id for d in documents],
            "model": embedder.model if embedder is not None else "",
        }  # fmt: skip
        counts: dict[UUID, int] = dict(
            self._deps.store.database.run(lambda conn: conn.execute(_SQL["searchable"], at).fetchall())
        )
        return [_view(d, counts.get(d.id, 0)) for d in documents]


class _Known(NamedTuple):
    """A shelf, and the view of the document on it that a command is about."""

    version: int
    shelf: Shelf
    document: DocumentView | None


class _Draft(NamedTuple):
    """A document that is about to be added. So many of its passages have a vector."""

    event: e.DocumentAdded
    passages: Sequence[Passage]
    searchable: int
    vectors: DocumentVectors


def _owner(persona: str | None, server: str | None) -> Subject:
    owner = owner_of(persona, server)
    check_key(owner.kind, owner.key)
    return owner


def _kept(status: str, document: DocumentView) -> bytes:
    return orjson.dumps({"status": status, "document": document.model_dump(mode="json")})


def _view(d: Document, searchable: int) -> DocumentView:
    return DocumentView(
        id=d.id, persona=d.owner.key if d.owner.kind == "persona" else None,
        server=d.owner.key if d.owner.kind == "server" else None, name=d.name, media_type=d.media_type, bytes=d.bytes,
        characters=d.characters, pages=d.pages, passages=d.passages, searchable=searchable, channels=d.channels,
        user=d.user, added_at=d.added_at,
    )  # fmt: skip
