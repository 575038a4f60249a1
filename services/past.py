"""Reads events as they stood at a past moment: streams up to a version, a moment or a position.

The read model says where the events of a turn are, no more, and what it has not read yet counts. So what comes out does
not depend on how far it is, or by which rules it was made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import Position
from remembrancer.services.deps import Deps
from remembrancer.services.store import Row
from remembrancer.services.tail import unread

_SQL = load_queries("remembrancer.services", "past")


class Stream(NamedTuple):
    """The events of a stream up to a moment."""

    events: list[e.Recorded]
    erased: bool = False
    """Its subject was erased since: these texts read `[erased]` (D24)."""

    @property
    def version(self) -> int:
        """The version that the stream had; 0 where it had not begun."""
        return self.events[-1].version if self.events else 0


NOT_BEGUN = Stream([])


class Past:
    """Look-ups in the events. See the module."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def upto(self, versions: Mapping[UUID, int]) -> dict[UUID, Stream]:
        """Each stream up to and including a version."""
        at = {"shards": [s.bytes[0] for s in versions], "streams": list(versions), "versions": list(versions.values())}
        return _streams(self._ask("upto", at), lambda r: r.version <= versions[r.stream])

    def until(self, streams: Collection[UUID], moment: datetime, position: Position | None) -> dict[UUID, Stream]:
        """Each stream up to and including a moment; in the shard of a position up to and including that."""
        shard, last = (None, None) if position is None else (position.shard, position.position)
        at = {"shards": [s.bytes[0] for s in streams], "streams": list(streams), "moment": moment, "shard": shard}
        found = self._ask("until", at | {"position": last})
        return _streams(found, lambda r: r.position <= (last or 0) if r.shard == shard else r.recorded_at <= moment)

    def event(self, position: Position) -> e.Recorded | None:
        """The event at a position, if it is this tenant's."""
        found = self._ask("at_position", {"shard": position.shard, "position": position.position})
        return next((r for r in found if r.event.tenant == self._deps.tenant), None)

    def replies(self, turn: str) -> list[e.Recorded]:
        """The replies of a turn, the newest attempt last; empty if it never was."""
        found = self._replies("replies_of_turn", {"turn": turn}, lambda ev: ev.turn == turn)
        return sorted(found, key=lambda r: (said(r).attempt, r.recorded_at, r.shard, r.position))

    def nearest(
        self, persona: str, moment: datetime, server: str | None, *, anywhere: bool
    ) -> tuple[e.Recorded | None, e.Recorded | None]:
        """A persona's last reply up to a moment, and its first one after it, in one server (or none) or anywhere."""
        asked = {"persona": persona, "moment": moment, "server": server, "anywhere": anywhere}
        found = sorted(
            self._replies(
                "nearest_replies", asked, lambda ev: ev.persona == persona and (anywhere or ev.server == server)
            ),
            key=lambda r: (r.recorded_at, r.shard, r.position),
        )
        before = [r for r in found if r.recorded_at <= moment]
        after = [r for r in found if r.recorded_at > moment]
        return (before[-1] if before else None), (after[0] if after else None)

    def _replies(self, query: str, asked: Mapping[str, Any], wanted: Any) -> list[e.Recorded]:
        """Replies that history knows, and those that it has not read yet."""
        tenant = self._deps.tenant

        def work(conn: Connection[Any]) -> list[e.Recorded]:
            # What is ahead of the tables first: what they read meanwhile is then found in both, not in neither.
            ahead = unread(conn, self._deps.store, "history", kinds=[e.ReplySearched])
            rows: list[Row] = conn.execute(_SQL[query], {"tenant": tenant, **asked}, binary=True).fetchall()
            return [*ahead, *self._deps.store.decode(rows, conn)] if rows else ahead

        found = {(r.shard, r.position): r for r in self._deps.store.database.run(work)}
        return [r for r in found.values() if r.event.tenant == tenant and wanted(said(r))]

    def _ask(self, query: str, at: Mapping[str, Any]) -> list[e.Recorded]:
        def work(conn: Connection[Any]) -> list[e.Recorded]:
            rows: list[Row] = conn.execute(_SQL[query], at, prepare=True, binary=True).fetchall()
            return self._deps.store.decode(rows, conn) if rows else []

        return self._deps.store.database.run(work)


def said(r: e.Recorded) -> e.ReplySearched:
    """What a reply recorded."""
    assert isinstance(r.event, e.ReplySearched)
    return r.event


def _streams(found: Iterable[e.Recorded], belongs: Any) -> dict[UUID, Stream]:
    """Sorted by stream; an erasure that comes later only says that the texts are gone."""
    events: dict[UUID, list[e.Recorded]] = defaultdict(list)
    erased = set()
    for r in found:
        if belongs(r):
            events[r.stream].append(r)
        else:
            erased.add(r.stream)
    return {stream: Stream(sorted(one, key=lambda r: r.version), stream in erased) for stream, one in events.items()}
