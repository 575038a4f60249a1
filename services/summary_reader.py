"""Reads what is to be summarised in a chat (R4, D15, D16)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.policy import Policy
from remembrancer.domain.summaries import Rebuild, Summaries, Summary
from remembrancer.domain.transcript import Message
from remembrancer.domain.window import LEVELS, Detail, Live, Sized
from remembrancer.projections.queries import load_queries
from remembrancer.services.live_reader import read_summaries

_CHATS = load_queries("remembrancer.services", "chats")
_SQL = load_queries("remembrancer.services", "summaries")
AT_ONCE = 400
"""The oldest uncovered messages that are looked at; older ones come first."""


class Behind(Unavailable):
    """The rows of the chat are not as far as its events."""

    def __init__(self) -> None:
        super().__init__("The chat's tables are behind its events.", hint="`remembrancer doctor` says why.")


@dataclass(frozen=True, slots=True)
class Backlog:
    """A chat at one version: its summaries, the oldest messages that are in none, and where summarising has to stop.

    While a rebuild runs, it is the rebuild's summaries, and the messages that it has yet to summarise (R7).
    """

    version: int
    standing: Sequence[Summary]
    uncovered: Sequence[Message]
    bound: int
    summaries: Summaries
    rebuild: Rebuild | None
    rebuild_messages: int = 0
    protected: Collection[int] = ()
    """The messages of the last two turns, which are in no summary (D15)."""
    edited: Sequence[UUID] = ()
    """The valid summaries that a person has worded, parts of others included (D17)."""

    @property
    def running(self) -> UUID | None:
        """The rebuild that is under way."""
        return self.rebuild.id if self.rebuild is not None and self.rebuild.state == "running" else None


def read_backlog(conn: Connection[Any], chat: UUID, detail: Detail, policy: Policy) -> Backlog:
    """What is to be summarised, as of one moment.

    Raises:
        Behind: the rows are not as far as the events.
    """
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        return _read(conn, {"shard": chat.bytes[0], "chat": chat}, detail, policy)
    finally:
        conn.execute("COMMIT")


def _read(conn: Connection[Any], at: dict[str, Any], detail: Detail, policy: Policy) -> Backlog:
    row = conn.execute(_CHATS["folded"], at).fetchone()
    assert row is not None
    if row[0] != row[1]:
        raise Behind
    bound = window_begin(conn, at, detail, policy)
    summaries, _ = read_summaries(conn, at)
    found = conn.execute(_SQL["rebuild"], at).fetchone()
    rebuild = Rebuild(*found[:-1]) if found else None
    asked = at | {"limit": AT_ONCE}
    if rebuild is not None and rebuild.state == "running":
        asked |= {"rebuild": rebuild.id, "upto": rebuild.upto}
        uncovered = [Message(*row) for row in conn.execute(_SQL["not_rebuilt"], asked)]
        standing = summaries.standing(rebuild.id)
        bound = min(bound, rebuild.upto + 1)
    else:
        uncovered = [Message(*row) for row in conn.execute(_SQL["oldest_uncovered"], asked)]
        standing = summaries.standing()
    if len(uncovered) == AT_ONCE:  # nothing is known of what lies behind
        standing = [s for s in standing if s.last < uncovered[-1].n]
    return Backlog(
        row[0], standing, uncovered, bound, summaries, rebuild, found[-1] if found else 0,
        protected=last_turns(conn, at), edited=[row[0] for row in conn.execute(_SQL["edited"], at)],
    )  # fmt: skip


def window_begin(conn: Connection[Any], at: dict[str, Any], detail: Detail, policy: Policy) -> int:
    """The number of the oldest message of the live window."""
    live = Live(LEVELS[detail], policy.model_context, policy.model_context)
    rows = conn.execute(_CHATS["newest"], at | {"before": 2**62, "limit": LEVELS[detail].window_messages + 1})
    for row in rows:
        m = Message(*row[:-1])
        live.offer(Sized(m.n, m.tokens, covered=False))
        if not live.takes() or live.full():
            break
    return min(live.chosen[: live.window], default=2**62)


def last_turns(conn: Connection[Any], at: dict[str, Any]) -> frozenset[int]:
    """The numbers of the messages of the last two turns, wherever they are: what others say meanwhile is none (D15)."""
    return frozenset(row[0] for row in conn.execute(_SQL["last_turns"], at))
