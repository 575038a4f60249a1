"""What deep memory has read of a chat, and what waits to be read (R16)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from remembrancer.domain import events as e

MOST_CHUNKS = 200
"""Chunks that wait to be read; older ones are let go, so that a chat that nobody reads deeply stays small."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A chunk of messages that was summarised and has not been read: numbers of the first and the last, and when."""

    first: int
    last: int
    at: datetime


@dataclass(frozen=True, slots=True)
class DeepState:
    """A chat as deep memory knows it."""

    upto: int = 0
    waiting: tuple[Waiting, ...] = ()
    messages: int = 0
    changes: int = 0
    cost: float = 0.0
    full: bool = False
    """The last pass found a full list."""
    lost: int = 0
    """How often messages have gone since there was a first pass: memories may have lost their sources (D14)."""


def evolve_deep(s: DeepState, recorded: e.Recorded) -> DeepState:
    """After one more event. What a rebuild summarises anew is not read again (R16)."""
    match recorded.event:
        case e.MessageDeleted() | e.ChatRewound() | e.TurnRegenerated() if s.upto:
            return replace(s, lost=s.lost + 1)
        case e.ChunkSummarised(rebuild=None) as ev if ev.last > s.upto:
            return replace(s, waiting=(*s.waiting, Waiting(ev.first, ev.last, recorded.recorded_at))[-MOST_CHUNKS:])
        case e.DeepMemoryRead() as ev:
            return replace(
                s, upto=max(s.upto, ev.upto), waiting=tuple(w for w in s.waiting if w.last > ev.upto),
                messages=s.messages + ev.messages, changes=s.changes + len(ev.changes),
                cost=s.cost + (ev.cost or 0.0), full=ev.full,
            )  # fmt: skip
    return s
