"""Projection `conversation`: chats, their messages and summaries, as replies read them (R1, R2, R5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.chat import home_of
from remembrancer.domain.events import Recorded
from remembrancer.domain.summaries import fold_conversation
from remembrancer.domain.transcript import Message, Transcript
from remembrancer.projections.projection import ReadStream
from remembrancer.projections.queries import queries, write
from remembrancer.projections.summaries import OF_SUMMARIES, SummaryRows

_SQL = queries("conversation")
_OF_A_CHAT = tuple(kind for kind in e.EVENTS.values() if "chat" in kind.model_fields)
"""Also those that change no row here: a chat's row says how far its stream is folded."""


class ConversationProjection:
    """Writes `chat` and `message`. A batch loads the messages that its events name, and writes what changed."""

    name = "conversation"
    version = 1
    tables: tuple[str, ...] = ("chat", "message", "summary", "summary_rule", "summary_rebuild")

    def build(self, generation: int, shard: int) -> None:
        """Forks read other chats, so a rebuild leaves chats to the runner."""

    def __init__(self, read_stream: ReadStream) -> None:
        self._read_stream = read_stream

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        """Fold a batch. Events that a chat's row has already folded are passed over."""
        by_stream: dict[UUID, list[Recorded]] = defaultdict(list)
        for r in events:
            by_stream[r.stream].append(r)
        chats = {s: rs for s, rs in by_stream.items() if any(isinstance(r.event, _OF_A_CHAT) for r in rs)}
        erased = {s: rs for s, rs in by_stream.items() if any(isinstance(r.event, e.SubjectErased) for r in rs)}
        if not (wanted := {**chats, **erased}):
            return
        at = {"generation": generation, "shards": [s.bytes[0] for s in wanted], "chats": list(wanted)}
        known = {row[0]: row[1] for row in conn.execute(_SQL["chats"], at)}
        for stream, recorded in wanted.items():
            if stream in chats or stream in known:
                self._fold(conn, generation, [r for r in recorded if r.version > known.get(stream, 0)])

    def _fold(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        if not events:
            return
        last = events[-1]
        at = {"generation": generation, "shard": last.shard, "chat": last.stream}
        transcript = self._named(conn, at, events)
        summaries = SummaryRows(conn, at)
        before = {n: m.gone is None for n, m in transcript.messages.items()}
        changed: dict[int, Message] = {}
        waiting: dict[int, Message] = {}
        tenant = last.event.tenant

        def flush() -> None:
            write(conn.cursor(), _SQL["write_messages"], [at | _row(m, tenant) for m in waiting.values()])
            waiting.clear()

        recount = False
        for r in events:
            ev = r.event
            if isinstance(ev, e.ChatStarted | e.ChatForked):
                conn.execute(_SQL["write_chat"], at | _chat(ev) | {"version": 0})
            if isinstance(ev, e.ChatForked):
                transcript, inherited = fold_conversation(partial(self._read_stream, conn), last.stream, r.version)
                changed |= transcript.messages
                waiting |= transcript.messages
                flush()
                summaries.inherit(inherited, tenant)
                recount = True
                continue
            made = transcript.apply(r)
            changed |= {m.n: m for m in made}
            waiting |= {m.n: m for m in made}
            if isinstance(ev, OF_SUMMARIES):
                flush()
                summaries.apply(r)
                recount = True
            elif made and not isinstance(ev, e.MessagePosted):
                flush()
                summaries.changed(made)
                recount = True
        flush()
        more = sum((m.gone is None) - before.get(n, False) for n, m in changed.items())
        conn.execute(_SQL["advance"], at | {"version": last.version, "messages": more})
        if recount:
            summaries.recount()

    @staticmethod
    def _named(conn: Connection[Any], at: dict[str, Any], events: Sequence[Recorded]) -> Transcript:
        """The messages that the events name, as they are in the rows."""
        ids = [r.event.message for r in events if isinstance(r.event, e.MessageEdited | e.MessageDeleted)]
        turns = [r.event.turn for r in events if isinstance(r.event, e.TurnRegenerated)]
        turns += [turn for r in events if isinstance(r.event, e.ChatRewound) for turn in r.event.turns]
        everything = any(isinstance(r.event, e.SubjectErased) for r in events)
        transcript = Transcript()
        if ids or turns or everything:
            for row in conn.execute(_SQL["named"], at | {"ids": ids, "turns": turns, "all": everything}):
                transcript.put(Message(*row))
        return transcript


def _chat(ev: e.ChatStarted | e.ChatForked) -> dict[str, Any]:
    home = home_of(ev)
    return {
        "tenant": ev.tenant, "key": ev.chat, "home_kind": home.kind, "home_key": home.key, "platform": ev.platform,
        "personas": list(ev.personas), "server": ev.server, "channel": ev.channel, "users": list(ev.users),
        "parent": ev.parent_stream if isinstance(ev, e.ChatForked) else None,
    }  # fmt: skip


def _row(m: Message, tenant: str) -> dict[str, Any]:
    return {
        "n": m.n, "id": m.id, "tenant": tenant, "role": m.role, "author": m.author, "text": m.text, "tokens": m.tokens,
        "said_at": m.said_at, "turn": m.turn, "attempt": m.attempt, "ref": m.ref, "edited_at": m.edited_at,
        "gone": m.gone,
    }  # fmt: skip
