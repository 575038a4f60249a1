"""A personal list becomes part of its user's global one (R11, D25): no memory disappears."""

from __future__ import annotations

from typing import NamedTuple

from remembrancer.domain import events as e
from remembrancer.domain.identity import EVERY_PERSONA
from remembrancer.domain.persona_memory import Context, MemoryList


class Moved(NamedTuple):
    """What leaves the personal list, and what comes into the global one."""

    out: tuple[e.Event, ...]
    into: tuple[e.Event, ...]


def to_global(personal: MemoryList, everywhere: MemoryList, ctx: Context, global_ctx: Context) -> Moved:
    """Move all memories of a personal list into the global list of the same user.

    Each keeps its stamps, counter, pin, protection and source; no cap binds, and nothing is forgotten for it (D8).
    Where the global list says the same already, that one stays, pinned and protected if either was (D25).
    """
    out: list[e.Event] = []
    into: list[e.Event] = []
    for m in sorted(personal.memories.values(), key=lambda m: (m.created_at, m.id)):
        out.append(
            e.MemoryMoved(
                **ctx.stamp(), memory=m.id, to_persona=EVERY_PERSONA, to_scope="global", to_subject=ctx.key.subject
            )
        )
        if (same := everywhere.same_text(m.text)) is not None:
            if m.protected and not same.protected:
                into.append(e.MemoryAffirmed(**global_ctx.stamp(), memory=same.id, day=ctx.day, protects=True))
            if m.pinned and not same.pinned:
                into.append(e.MemoryPinned(**global_ctx.stamp(), memory=same.id, day=ctx.day))
            continue
        into.append(
            e.MemorySaved(
                **global_ctx.stamp(), memory=global_ctx.new_id(), text=m.text, day=ctx.day, until=m.until, tags=m.tags,
                channels=m.channels, pinned=m.pinned, protected=m.protected, source=m.source,
                policy=ctx.policy_version, created_at=m.created_at, updated_at=m.updated_at,
                last_matched_at=m.last_matched_at, unused_days=m.unused_days(personal.days), by=m.actor,
            )
        )  # fmt: skip
    return Moved(tuple(out), tuple(into))
