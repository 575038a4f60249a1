"""What a reply sent of its chat, from the events alone: the summary and the messages, as they read then (U1, R1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.summaries import fold_conversation, quoted, render_summary
from remembrancer.domain.transcript import Message
from remembrancer.services.past import NOT_BEGUN, Past, said
from remembrancer.services.tokens import count_tokens


class ChatThen(NamedTuple):
    """The summary's text, its tokens and parts, and the messages, oldest first, the newest one last."""

    summary: str
    tokens: int
    summaries: list[UUID]
    messages: list[Message]


_WRITTEN = (e.MessagePosted, e.MessageEdited, e.TurnRegenerated)


def sent_then(past: Past, r: e.Recorded) -> ChatThen | None:
    """What this reply sent; None where it did not record it. Texts of who was erased since are gone."""
    ev = said(r)
    if (sent := ev.conversation) is None:
        return None
    own: list[e.Recorded] = []

    def read(stream: UUID, upto: int) -> Iterable[e.Recorded]:
        if stream != r.stream:
            return past.upto({stream: upto}).get(stream, NOT_BEGUN).events
        events = past.upto({stream: r.version})[stream].events
        own[:] = [one for one in events if one.version > sent.version and _is_own(one, r)]
        return [one for one in events if one.version <= sent.version] + own

    whole, summaries = fold_conversation(read, r.stream, r.version)
    standing, cover = summaries.standing(), summaries.cover()
    present = [m for m in sorted(whole.messages.values(), key=lambda m: m.n) if m.gone in (None, "erased")]
    new = next((x.event.message for x in own if isinstance(x.event, e.MessagePosted | e.MessageEdited)), None)
    chosen = [
        m
        for m in present
        if m.id == new
        or (sent.window is not None and m.n >= sent.window)
        or (sent.raw is not None and m.n >= sent.raw and m.n not in cover)
    ]
    by_id = {m.id: m for m in present}
    rules = [(by_id[span.message].author, words) for span, words in quoted(summaries.rules.values(), by_id)]
    text = render_summary(standing, rules)
    return ChatThen(
        text, count_tokens(text) if text else 0, [s.id for s in standing],
        [m for m in chosen if m.id != new] + [m for m in chosen if m.id == new],
    )  # fmt: skip


def _is_own(one: e.Recorded, reply: e.Recorded) -> bool:
    """Was it written by this reply, in the same append? The others in between belong to somebody else."""
    same = one.event.turn == reply.event.turn and one.recorded_at == reply.recorded_at
    return same and isinstance(one.event, _WRITTEN)
