"""Finds what an id or a name means: from the read model's rows, and from the events that are ahead of them."""

from __future__ import annotations

import difflib
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.domain.identity import ListKey, list_stream, persona_stream
from remembrancer.domain.story import played
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import ArchiveHit
from remembrancer.services.checks import shown
from remembrancer.services.deps import PERSONA, Deps
from remembrancer.services.embedders import Vector
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "finder")
_VECTORS = load_queries("remembrancer.services", "vectors")
_SCOPES = ("server", "personal", "global")


class Home(NamedTuple):
    """The list that a memory is or was in."""

    stream: UUID
    key: ListKey


class Near(NamedTuple):
    """A memory that says nearly the same."""

    id: UUID
    text: str
    similarity: float


_SHOWN_BY = {"memory": "list", "message": "messages", "document": "documents", "summary": "summary"}


def as_uuid(memory: UUID | str, what: str = "memory") -> UUID:
    """An id as it came from outside.

    Raises:
        InvalidInput: no UUID.
    """
    if isinstance(memory, UUID):
        return memory
    if isinstance(memory, str):
        with suppress(ValueError):
            return UUID(memory)
    raise InvalidInput(
        f"{shown(memory)} is not the id of a {what}.", hint=f"Ids look like 3f2b8c1e-…: `{_SHOWN_BY[what]}` shows them."
    )


class Finder:
    """Look-ups that are ahead of the projections where they have to be."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def home(self, memory: UUID) -> Home:
        """The list of a memory of this tenant, also if it is gone by now.

        Raises:
            NotFound: there never was one, or it is another tenant's (C23, D31).
        """

        def work(conn: Connection[Any]) -> Home | None:
            at = {"shard": memory.bytes[0], "memory": memory}
            # A memory that is gone is in the archive alone, so what the archive has not read counts; and it may have
            # read that just now, so its rows are asked again.
            for look in ("home", "archived_home", "tail", "archived_home", "told_home"):
                if look == "tail":
                    saved = self._saved_ahead(conn, "archive", memory.bytes[0])
                    if (ev := next((ev for ev in saved if ev.memory == memory), None)) is not None:
                        home = Home(list_stream(ev.tenant, ev.key), ev.key)
                        return home if ev.tenant == self._deps.tenant else None
                elif row := conn.execute(_SQL[look], at).fetchone():
                    return Home(row[0], ListKey(*row[1:4])) if row[4] == self._deps.tenant else None
            return None

        found = self._deps.store.database.run(work)
        if found is None:
            raise NotFound(
                f"There is no memory {memory}.", rule="D31", hint="`list` shows the memories that there are.",
                memory=str(memory),
            )  # fmt: skip
        return found

    def replies(self, turn: str) -> list[dict[str, Any]]:
        """What was recorded of a turn's replies, oldest first; empty if it never was."""

        def work(conn: Connection[Any]) -> list[dict[str, Any]]:
            ahead = [
                (ev.attempt, played(ev))
                for r in unread(conn, self._deps.store, "history", kinds=[e.ReplySearched])
                if isinstance(ev := r.event, e.ReplySearched) and ev.turn == turn and ev.tenant == self._deps.tenant
            ]
            rows = conn.execute(_SQL["turn"], {"tenant": self._deps.tenant, "turn": turn}).fetchall()
            known = {row[0]["attempt"]: row[0] for row in rows}
            return [data for _, data in sorted({**known, **dict(ahead)}.items())]

        return self._deps.store.database.run(work)

    def events_of_turn(self, turn: str) -> list[e.Recorded]:
        """What a turn did to lists, shard by shard, in its order; empty if it never did anything."""

        def work(conn: Connection[Any]) -> list[e.Recorded]:
            # What is ahead of the tables first: what they read meanwhile is then found in both, not in neither.
            ahead = unread(conn, self._deps.store, "history")
            rows = conn.execute(_SQL["events_of_turn"], {"tenant": self._deps.tenant, "turn": turn}).fetchall()
            return [*ahead, *(self._deps.store.decode(rows, conn) if rows else ())]

        found = {
            (r.shard, r.position): r
            for r in self._deps.store.database.run(work)
            if isinstance(r.event, e.ListEvent) and r.event.turn == turn and r.event.tenant == self._deps.tenant
        }
        return [found[k] for k in sorted(found)]

    def knows_turn(self, turn: str) -> bool:
        """Has anything ever happened in this turn (D31)?"""
        return bool(self.replies(turn) or self.events_of_turn(turn))

    def no_such_turn(self, turn: str) -> NotFound:
        """The error that names turns with a similar id (D31)."""

        def work(conn: Connection[Any]) -> set[str]:
            ahead = unread(conn, self._deps.store, "history", kinds=[e.ReplySearched])
            rows = conn.execute(_SQL["turns_beside"], {"tenant": self._deps.tenant, "turn": turn}).fetchall()
            return {row[0] for row in rows} | {
                r.event.turn for r in ahead if r.event.tenant == self._deps.tenant and r.event.turn is not None
            }

        near = difflib.get_close_matches(turn, sorted(self._deps.store.database.run(work)), n=3, cutoff=0.7)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`history PERSONA` shows the turns."
        return NotFound(f"There is no turn {turn!r}.", rule="D31", hint=hint, near=near)

    def _saved_ahead(self, conn: Connection[Any], projection: str, shard: int | None = None) -> list[e.MemorySaved]:
        """Saves that a projection has not read yet."""
        shards = None if shard is None else [shard]
        tail = unread(conn, self._deps.store, projection, kinds=[e.MemorySaved], shards=shards)
        return [r.event for r in tail if isinstance(r.event, e.MemorySaved)]

    def without_vector(self, stream: UUID) -> frozenset[UUID]:
        """Memories of a list that no search can find for want of a vector (D22)."""
        if self._deps.embedder is None:
            return frozenset()
        at = {"shard": stream.bytes[0], "list": stream}

        def work(conn: Connection[Any]) -> frozenset[UUID]:
            return frozenset(row[0] for row in conn.execute(_VECTORS["without_vector_in"], at))

        return self._deps.store.database.run(work)

    def nearest(self, home: Home, vector: Vector, model: str, *, but: UUID) -> Near | None:
        """The memory of a list whose text is nearest to a vector of this model."""
        owner = home.key.owner
        at = {
            "shard": home.stream.bytes[0], "list": home.stream, "vector": HalfVector(vector), "model": model,
            "but": but, "tenant": self._deps.tenant, "kind": owner.kind, "subject": owner.key,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> Near | None:
            row = conn.execute(_VECTORS["near_duplicate"], at).fetchone()
            return None if row is None else Near(*row)

        return self._deps.store.database.run(work)

    def archive(self, vector: Vector, limit: int, model: str | None = None) -> list[ArchiveHit]:
        """The texts nearest to a vector of this model (left out, the one that serves) among all that ever were memories
        of this tenant."""
        model = model or (self._deps.embedder.model if self._deps.embedder else None)
        at = {
            "tenant": self._deps.tenant, "model": model, "dimensions": len(vector), "vector": HalfVector(vector),
            "limit": limit,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> list[ArchiveHit]:
            names = ("memory", "persona", "scope", "subject", "text", "recorded_at", "current", "similarity")
            return [
                ArchiveHit(**dict(zip(names, row, strict=True))) for row in conn.execute(_SQL["search_archive"], at)
            ]

        return self._deps.store.database.run(work)

    def lists(self, persona: str | None) -> list[Home]:
        """The lists of a persona that have ever held something, with the global ones of its people; all if None."""

        def work(conn: Connection[Any]) -> list[Home]:
            ahead = {
                Home(list_stream(ev.tenant, ev.key), ev.key)
                for ev in self._saved_ahead(conn, "memory")
                if ev.tenant == self._deps.tenant
            }
            people = [h.key.subject for h in ahead if h.key.persona == persona and h.key.scope == "personal"]
            at = {"tenant": self._deps.tenant, "persona": persona, "people": people}
            found = {Home(row[0], ListKey(*row[1:4])) for row in conn.execute(_SQL["lists_of_persona"], at)}
            people += [h.key.subject for h in found if h.key.scope == "personal"]
            found |= {
                h for h in ahead
                if persona in (None, h.key.persona) or (h.key.scope == "global" and h.key.subject in people)
            }  # fmt: skip
            return sorted(found, key=lambda h: (_SCOPES.index(h.key.scope), h.key.persona, h.key.subject))

        return self._deps.store.database.run(work)

    def knows(self, persona: str) -> bool:
        """Has this persona ever been saved for, replied as, or set up (D31)?"""

        def work(conn: Connection[Any]) -> bool:
            ahead = unread(conn, self._deps.store, "history", kinds=[e.MemorySaved, e.ReplySearched])
            if any(getattr(r.event, "persona", "") == persona and r.event.tenant == self._deps.tenant for r in ahead):
                return True
            row = conn.execute(_SQL["knows_persona"], {"tenant": self._deps.tenant, "persona": persona}).fetchone()
            return row is not None and bool(row[0])

        stream = persona_stream(self._deps.tenant, persona)
        return self._deps.store.load(stream, PERSONA).version > 0 or self._deps.store.database.run(work)

    def _personas(self) -> list[str]:
        def work(conn: Connection[Any]) -> list[str]:
            return [row[0] for row in conn.execute(_SQL["personas"], {"tenant": self._deps.tenant})]

        return self._deps.store.database.run(work)

    def no_such_persona(self, persona: str) -> NotFound:
        """The error that names personas with a similar key (D31)."""
        near = difflib.get_close_matches(persona, self._personas(), n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(near)}?" if near else "It comes into being with its first save or reply."
        return NotFound(f"There is no persona {persona!r}.", rule="D31", hint=hint, near=near)
