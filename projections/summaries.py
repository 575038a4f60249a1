"""The summaries of a chat in the projection `conversation`: event by event, in its transaction (R4-R7, D17).

The same as `domain.summaries.Summaries`, on rows: a chat may have ten thousand summaries, and an event changes few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.domain.summaries import Span, Summaries, Summary, is_summary
from remembrancer.domain.transcript import Message
from remembrancer.projections.queries import queries, write

_SQL = queries("summaries")
OF_SUMMARIES = (
    e.ChunkSummarised, e.SummariesMerged, e.LongTermCondensed, e.SummaryEdited, e.SummaryInvalidated, e.RebuildStarted,
    e.RebuildCompleted, e.RebuildFailed,
)  # fmt: skip
"""Events that change summaries by themselves; edits and such of messages make them stale."""


class SummaryRows:
    """The rows of one chat. `at` names generation, shard and chat."""

    def __init__(self, conn: Connection[Any], at: dict[str, Any]) -> None:
        self._conn = conn
        self._at = at

    def apply(self, r: Recorded) -> None:
        """One event; all messages that were said before it are in their rows."""
        ev = r.event
        match ev:
            case e.ChunkSummarised():
                self._add(r)
                self._find_rules(ev.rules)
            case e.SummariesMerged() | e.LongTermCondensed():
                self._add(r)
            case e.SummaryEdited():
                self._edit(ev)
            case e.SummaryInvalidated():
                self._stale(list(ev.summaries), ev.reason)
            case e.RebuildStarted():
                self._run("rebuild_started", rebuild=ev.rebuild, upto=ev.upto, detail=ev.detail, messages=ev.messages,
                          at=r.recorded_at)  # fmt: skip
            case e.RebuildFailed():
                self._run("rebuild_ended", rebuild=ev.rebuild, state="failed", reason=ev.reason, at=r.recorded_at)
            case e.RebuildCompleted():
                replaced = self._run("replaced_by_rebuild", rebuild=ev.rebuild).fetchall()
                self._stale([row[0] for row in replaced], "rebuilt")
                self._run("serve_rebuild", rebuild=ev.rebuild)
                self._run("cover_rebuilt")
                self._run("rebuild_ended", rebuild=ev.rebuild, state="completed", reason=None, at=r.recorded_at)

    def changed(self, messages: Sequence[Message]) -> None:
        """Messages are worded anew or gone: what covers them is stale, and their rules go (D17, R6)."""
        if not messages:
            return
        reasons = [m.gone or "edited" for m in messages]
        gone = self._run("stale_by_messages", numbers=[m.n for m in messages], reasons=reasons).fetchall()
        self._uncover(gone)
        self._run("drop_rules", messages=[m.id for m in messages])

    def inherit(self, summaries: Summaries, tenant: str) -> None:
        """All that a fork begins with (D18)."""
        for s in summaries.known.values():
            self._run("add", **_row(s, tenant))
            if s.tier == "recent":
                self._run("cover", first=s.first, last=s.last)
        self._write_rules(summaries.rules.values(), removed=False)
        self._write_rules(summaries.removed.values(), removed=True)

    def recount(self) -> None:
        """Count again how many messages are in no summary."""
        self._run("recount")

    # -- parts -----------------------------------------------------------------------------------------------------

    def _add(self, r: Recorded) -> None:
        folded = Summaries()
        folded.apply(r)
        for s in folded.known.values():
            self._run("add", **_row(s, r.event.tenant))
            self._run("adopt", id=s.id, sources=list(s.sources))
            if s.tier == "recent" and s.rebuild is None:
                self._run("cover", first=s.first, last=s.last)

    def _edit(self, ev: e.SummaryEdited) -> None:
        if ev.summary is not None and ev.text:
            if is_summary(ev.text):
                self._run("edit", id=ev.summary, text=ev.text, tokens=ev.tokens)
            else:
                self._stale([ev.summary], "erased")
        with self._rules_of(ev.removed) as folded:
            folded.remove_rules(ev.removed)

    def _find_rules(self, spans: Sequence[Span]) -> None:
        with self._rules_of(spans) as folded:
            folded.find_rules(spans)

    @contextmanager
    def _rules_of(self, spans: Sequence[Span]) -> Iterator[Summaries]:
        """The rules of the messages that these are of, to be changed; then they are written as they are."""
        folded, messages = Summaries(), list({s.message for s in spans})
        rows = self._run("rules", messages=messages).fetchall() if messages else []
        for message, n, start, end, removed in rows:
            places = folded.removed if removed else folded.rules
            places[message, start, end] = Span(message=message, n=n, start=start, end=end)
        yield folded
        if messages:
            self._run("drop_rules", messages=messages)
            self._write_rules(folded.rules.values(), removed=False)
            self._write_rules(folded.removed.values(), removed=True)

    def _write_rules(self, spans: Iterable[Span], *, removed: bool) -> None:
        rows = [self._at | span.model_dump() | {"removed": removed} for span in spans]
        write(self._conn.cursor(), _SQL["write_rules"], rows)

    def _stale(self, ids: Sequence[UUID], reason: str) -> None:
        self._uncover(self._run("stale_by_ids", ids=list(ids), reason=reason).fetchall())

    def _uncover(self, gone: Sequence[tuple[UUID, int, int, bool]]) -> None:
        if gone:
            self._run("set_free", ids=[row[0] for row in gone])
        for _, first, last, serving in gone:
            if serving:
                self._run("uncover", first=first, last=last)

    def _run(self, query: str, **values: Any) -> Any:
        return self._conn.execute(_SQL[query], self._at | values)


def _row(s: Summary, tenant: str) -> dict[str, Any]:
    return {
        "id": s.id, "tenant": tenant, "tier": s.tier, "first": s.first, "last": s.last, "messages": s.messages,
        "text": s.text, "tokens": s.tokens, "authors": list(s.authors), "detail": s.detail, "made_at": s.made_at,
        "sources": list(s.sources), "edited": s.edited, "rebuild": s.rebuild, "parent": s.parent,
    }  # fmt: skip
