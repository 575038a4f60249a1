"""Follower `summary_work`: notes which chats somebody has to look at, since something was said or changed there (R4).

A process manager's first half: it follows the events with checkpoints of its own, so that nothing is forgotten when a
process is killed; `services.compactor` does what is noted, in whichever process claims it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.projections.queries import queries, write

_SQL = queries("summary_work")
_CALLS = (
    e.MessagePosted, e.MessageEdited, e.MessageDeleted, e.TurnRegenerated, e.ChatRewound, e.ChatForked,
    e.SummaryInvalidated, e.RebuildStarted,
)  # fmt: skip


class SummaryWorkFollower:
    """Writes `summary_work`. The same events again only make somebody look once more."""

    name = "summary_work"
    version = 1
    tables: tuple[str, ...] = ()
    """None that a rebuild makes anew: what is noted is work to do, and is gone once it is done."""

    def build(self, generation: int, shard: int) -> None:
        """Nothing to build."""

    def apply(self, conn: Connection[Any], _generation: int, events: Sequence[Recorded]) -> None:
        """Note the chats of a batch."""
        anew = {r.stream for r in events if isinstance(r.event, e.RebuildStarted)}
        last: dict[UUID, Recorded] = {r.stream: r for r in events if isinstance(r.event, _CALLS)}
        rows = [
            {"shard": r.shard, "chat": chat, "tenant": r.event.tenant, "version": r.version, "at": r.recorded_at,
             "anew": chat in anew}
            for chat, r in sorted(last.items())
        ]  # fmt: skip
        write(conn.cursor(), _SQL["due"], rows)
