"""Memories that a person takes out of a conversation: they arrive pinned, all of them or none (R13d, R9, D9, D12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotAllowed, PinsFull
from remembrancer.domain.persona_memory import Context, MemoryList, NewMemory
from remembrancer.domain.text import check_text, folded


class Arrived(NamedTuple):
    """What came of one: the memory, and whether it was there already."""

    memory: UUID
    duplicate: bool


def save_pinned(
    s: MemoryList, new: Sequence[NewMemory], ctx: Context, memories: Sequence[UUID]
) -> tuple[tuple[e.Event, ...], list[Arrived]]:
    """Save memories as pinned ones. What is there already is pinned instead of doubled (D12).

    Args:
        memories: an id for each, used where it is new.

    Raises:
        NotAllowed: only a person pins (R15).
        InvalidInput, TextTooLong: a text (D10).
        PinsFull: not all find room; nothing is saved (D9).
    """
    if ctx.actor != "person":
        raise NotAllowed("Only a person saves from a conversation.", rule="R15", hint="Ask the person to do it.")
    events: list[e.Event] = []
    arrived: list[Arrived] = []
    here: dict[str, UUID] = {}
    pins = 0
    for one, memory in zip(new, memories, strict=True):
        check_text(one.text, ctx.policy.max_characters)
        same = s.same_text(one.text)
        if (before := here.get(folded(one.text))) is not None:
            arrived.append(Arrived(before, True))
        elif same is None:
            arrived.append(Arrived(memory, False))
            events.append(
                e.MemorySaved(
                    **ctx.stamp(), memory=memory, text=one.text, day=ctx.day, until=one.until, tags=one.tags,
                    channels=one.channels, pinned=True, protected=True, source=one.source, policy=ctx.policy_version,
                )
            )  # fmt: skip
            pins += 1
        else:
            arrived.append(Arrived(same.id, True))
            events.append(e.MemoryAffirmed(**ctx.stamp(), memory=same.id, day=ctx.day, protects=True))
            if not same.pinned:
                events.append(e.MemoryPinned(**ctx.stamp(), memory=same.id, day=ctx.day))
                pins += 1
        here.setdefault(folded(one.text), arrived[-1].memory)
    free = max(0, ctx.policy.pin_capacity - s.pinned)
    if pins > free:
        raise _too_many(s, pins, free, ctx)
    return tuple(events), arrived


def _too_many(s: MemoryList, pins: int, free: int, ctx: Context) -> PinsFull:
    pinned = sorted((m for m in s.memories.values() if m.pinned), key=lambda m: (m.created_at, m.id))
    named = "; ".join(f"{m.id} \u201c{m.text}\u201d" for m in pinned)
    return PinsFull(
        f"{pins} memories would be pinned, and {free} of {ctx.policy.pin_capacity} pins are free, so none was saved."
        + (f" Pinned are: {named}." if pinned else ""),
        rule="D9",
        hint="Choose fewer, or unpin some.",
        pinned=[{"id": str(m.id), "text": m.text} for m in pinned],
        capacity=ctx.policy.pin_capacity,
    )
