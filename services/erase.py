"""The verb `erase`: everything of a person becomes unreadable, in one transaction (D24).

The keys under which their texts are sealed are destroyed, so that no event, snapshot or kept answer of theirs can be
read again. What the tables hold in the clear is deleted at once, whether or not a projector runs, in every generation;
what a rebuild has poured of their shard is poured again.
And each stream of theirs gets a `SubjectErased`, so that rebuilds, projectors that are behind, parked streams and other
processes come to the same end.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from psycopg import Connection, errors, sql

from remembrancer.domain.errors import NotFound
from remembrancer.domain.events import DocumentAdded, Recorded, SubjectErased
from remembrancer.domain.identity import ListKey, Subject, check_key, person_stream, shard_of
from remembrancer.domain.text import ERASED
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import EraseAnswer
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.mentions import Mentions, Names
from remembrancer.services.remember import names as checked_names
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Request, mapper
from remembrancer.services.store.append import ASSIGN, Call, Placed, append
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "erase")
_ROWS = (
    "memories", "uses", "archive", "wordings", "history", "messages", "summaries", "uncovered", "whole_again", "rules",
    "look", "chats", "document_history", "documents", "passages", "vectors", "snapshots", "parked",
)  # fmt: skip


class _Stream(NamedTuple):
    """A stream of the person's: a list, or their settings or a chat of theirs alone (no key)."""

    stream: UUID
    key: ListKey | None
    memories: int


class _CameBefore(Exception):
    """The request was answered while we looked."""


class Erase:
    """Erases. See the module."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._mentions = Mentions(deps)

    def erase(self, user: str, *, names: Sequence[str], compact: bool, request_id: str | None) -> EraseAnswer:
        """Erase a person. See `Remembrancer.erase`."""
        subject = Subject("user", check_key("user", user))
        called = Names([user, *checked_names("name", names, in_order=True)])
        tenant = self._deps.tenant
        request = request_for(tenant, shard_of(tenant, subject), "erase", request_id, {"user": user})
        done = self._deps.store.find(request) if request_id is not None else None
        if done is None:
            done = self._erase(subject, request)
        if compact:
            self._compact()
        said = orjson.loads(done.answer or b"{}")
        return EraseAnswer(**said, mentions=self._mentions.of(called), positions=positions(done))

    def _erase(self, subject: Subject, request: Request) -> Appended:
        store = self._deps.store
        streams: set[UUID] = set()

        def work(conn: Connection[Any]) -> Appended:
            with conn.transaction():
                return self._in_one_transaction(conn, subject, request, streams)

        try:
            done = store.database.run(work)
        except _CameBefore:  # in another process; or here, and the connection broke before anybody knew
            found = store.find(request)
            assert found is not None
            done = found
        store.keys.let_go(self._deps.tenant, subject)
        store.forget(streams)
        if store.on_commit is not None:
            store.on_commit(done.reached)
        return done

    def _in_one_transaction(
        self, conn: Connection[Any], subject: Subject, request: Request, found: set[UUID]
    ) -> Appended:
        tenant, now = self._deps.tenant, self._deps.now()
        at: dict[str, Any] = {"shard": request.shard, "tenant": tenant, "subject": subject.key, "now": now}

        # 1. nobody builds, nobody projects, nobody writes in this shard
        for shard in sorted({request.shard, *self._shelves(conn, at)}):
            conn.execute(_SQL["build_anew"], {"shard": shard})
        conn.execute(_SQL["checkpoints"], at)
        conn.execute(_SQL["head"], at)

        # 2. what is theirs
        streams, every = self._streams(conn, subject, at)
        found.update(every)

        # 3. it is said in each stream that has something to erase
        answer = orjson.dumps({
            "erased_lists": sum(one.key is not None for one in streams),
            "memories": sum(one.memories for one in streams),
            "documents": self._documents(conn, at),
        })  # fmt: skip
        events = [self._event(one, subject, request) for one in streams]
        call = Call(now, request.row(None, answer))
        outcome = append(conn, events, call)
        if outcome is None:
            raise _CameBefore

        # 4. keys and rows
        self._deps.store.keys.destroy(tenant, subject, now=now, connection=conn)
        at["streams"] = every
        for rows in _ROWS:
            conn.execute(_SQL[rows], at)
        return Appended(True, answer, *outcome)

    def _event(self, one: _Stream, subject: Subject, request: Request) -> Placed:
        event = SubjectErased(
            id=make_id(request.shard),
            tenant=request.tenant,
            request_id=request.request_id,
            persona=one.key.persona if one.key else "",
            scope=one.key.scope if one.key else None,
            subject=subject.key,
        )
        return Placed(request.shard, one.stream, ASSIGN, type(event).__name__, mapper.encode(event, None))

    def _streams(
        self, conn: Connection[Any], subject: Subject, at: Mapping[str, Any]
    ) -> tuple[list[_Stream], list[UUID]]:
        """The streams of a person that say something since they were last erased; and all of them.

        Whose a stream is, its first event says: the tables may be behind. They are asked, too, since their rows have to
        go whatever a first event says.

        Raises:
            NotFound: nothing was ever theirs (D31).
        """
        settings = person_stream(self._deps.tenant, subject.key)
        found: dict[UUID, ListKey | None] = {
            stream: ListKey(persona, scope, subject.key)
            for stream, persona, scope in conn.execute(_SQL["lists"], at).fetchall()
        }
        for stream, kind, state in conn.execute(_SQL["first_events"], at):
            said = mapper.open_fields(state)
            if said.get("tenant") != self._deps.tenant:
                continue
            if said.get("scope") in ("personal", "global") and said.get("subject") == subject.key:
                found[stream] = ListKey(said["persona"], said["scope"], subject.key)
            elif stream == settings or (kind in ("ChatStarted", "ChatForked") and _is_alone(said, subject.key)):
                found[stream] = None
        if not found and not _one(conn, "key", at):
            raise self._nobody(conn, subject.key)
        counted = conn.execute(_SQL["since_last_time"], {**at, "streams": list(found)}).fetchall()
        return [_Stream(stream, found[stream], memories) for stream, events, memories in counted if events], list(found)

    def _documents(self, conn: Connection[Any], at: Mapping[str, Any]) -> int:
        """How many documents of theirs there are, those included that the tables do not know yet."""
        return len(self._documents_ahead(conn, at)) + int(_one(conn, "document_count", at))

    def _documents_ahead(self, conn: Connection[Any], at: Mapping[str, Any]) -> list[Recorded]:
        """Documents of theirs that the tables do not know yet."""
        return [
            r for r in unread(conn, self._deps.store, "documents", kinds=[DocumentAdded])
            if isinstance(r.event, DocumentAdded) and r.event.name != ERASED
            and (r.event.tenant, r.event.user) == (at["tenant"], at["subject"])
        ]  # fmt: skip

    def _shelves(self, conn: Connection[Any], at: Mapping[str, Any]) -> set[int]:
        """The shards of the shelves on which documents of theirs are or were: history tells of them there."""
        known = {row[0] for row in conn.execute(_SQL["shelves"], at)}
        return known | {r.shard for r in self._documents_ahead(conn, at)}

    def _nobody(self, conn: Connection[Any], user: str) -> NotFound:
        people = {row[0].casefold(): row[0] for row in conn.execute(_SQL["people"], {"tenant": self._deps.tenant})}
        near = [people[name] for name in difflib.get_close_matches(user.casefold(), people, n=3)]
        hint = f"Did you mean {' or '.join(near)}?" if near else "Write the key as it is used in saves and replies."
        return NotFound(f"Nothing here is or was of a user {user!r}.", rule="D31", hint=hint, near=near)

    def _compact(self) -> None:
        """Rewrite the tables without what was deleted."""

        def work(conn: Connection[Any]) -> None:
            conn.execute(_SQL["compact"])
            for (name,) in conn.execute(_SQL["standing_alone"]).fetchall():
                with suppress(errors.UndefinedTable):  # given up meanwhile
                    one = sql.SQL(_SQL["compact_one"]).format(table=sql.Identifier("remembrancer", name))
                    conn.execute(one)
            with suppress(errors.InsufficientPrivilege):
                conn.execute(_SQL["checkpoint"])

        self._deps.store.database.run(work)


def _is_alone(chat: Mapping[str, Any], user: str) -> bool:
    """Is this the chat of one person?"""
    return chat.get("server") is None and chat.get("users") == [user]


def _one(conn: Connection[Any], query: str, at: Mapping[str, Any]) -> Any:
    row = conn.execute(_SQL[query], at).fetchone()
    return None if row is None else row[0]
