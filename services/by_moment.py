"""The history of many lists and of the replies that searched them, as one stream of events by moment.

Streamed from a cursor of the server: however long the history is, a batch of it is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.identity import EVERY_PERSONA, ListKey, list_stream
from remembrancer.projections.queries import load_queries
from remembrancer.services.deps import Deps
from remembrancer.services.finder import Finder
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "what_if")
_OF_CHATS = ("ReplySearched", "TurnRegenerated", "ChatRewound")
BATCH = 2_000

Progress = Callable[[int, int | None], None]


class Streams(NamedTuple):
    """Whose events they are."""

    lists: Mapping[UUID, ListKey]
    chats: frozenset[UUID]


class ByMoment:
    """Finds and reads such histories."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder

    def streams(self, persona: str | None) -> Streams:
        """The lists that a persona's replies may search, the global ones of its people included, and every chat in
        which they were searched; of the whole tenant if there is no persona. Events that no table has read yet count.
        """
        tenant = self._deps.tenant

        def work(conn: Connection[Any]) -> tuple[list[str], frozenset[UUID]]:
            # What is ahead of the tables first: what they read meanwhile is then found in both, not in neither.
            ahead = [
                (r.stream, ev)
                for r in unread(conn, self._deps.store, "history", kinds=[e.ReplySearched])
                if isinstance(ev := r.event, e.ReplySearched) and ev.tenant == tenant
            ]
            at: dict[str, Any] = {"tenant": tenant, "persona": persona, "people": []}
            if persona is not None:
                met = {row[0] for row in conn.execute(_SQL["people"], at)}
                met |= {user for _, ev in ahead if ev.persona == persona for user in ev.users}
                at["people"] = sorted(met)
            chats = {row[0] for row in conn.execute(_SQL["chats"], at)}
            chats |= {
                stream for stream, ev in ahead
                if persona in (None, ev.persona) or not set(ev.users).isdisjoint(at["people"])
            }  # fmt: skip
            return at["people"], frozenset(chats)

        people, chats = self._deps.store.database.run(work)
        keys = [home.key for home in self._finder.lists(persona)]
        keys += [ListKey(EVERY_PERSONA, "global", user) for user in people]
        return Streams({list_stream(tenant, key): key for key in keys}, chats)

    def read(
        self, streams: Streams, versions: Mapping[UUID, int], progress: Progress | None = None
    ) -> Iterator[list[e.Recorded]]:
        """The events of these streams after these versions, by moment, shard and position, all as of one moment."""
        order = sorted({*streams.lists, *streams.chats})
        at = {
            "shards": [stream.bytes[0] for stream in order],
            "streams": order,
            "versions": [versions.get(stream, 0) for stream in order],
            "chat": [stream in streams.chats for stream in order],
            "types": list(_OF_CHATS),
        }
        with self._deps.store.database.connection() as conn, _cursor(conn, at) as rows:
            many = conn.execute(_SQL["many"], at).fetchone() if progress is not None else None
            done = 0
            while batch := rows.fetchmany(BATCH):
                yield self._deps.store.decode(batch, conn)
                done += len(batch)
                if progress is not None and many is not None:
                    progress(min(done, many[0]), many[0])
            if progress is not None and many is not None:  # other events of the chats were not needed
                progress(many[0], many[0])


@contextmanager
def _cursor(conn: Connection[Any], at: Mapping[str, Any]) -> Iterator[Any]:
    """A cursor of the server on the events, in a transaction of its own."""
    with conn.transaction(), conn.cursor(name="by_moment") as rows:
        rows.execute(_SQL["events"], at, binary=True)
        yield rows
