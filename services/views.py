"""A memory as a person sees it, from its list's state."""

from __future__ import annotations

from datetime import datetime

from remembrancer.domain.decay import SearchedDays
from remembrancer.domain.desk import is_recent
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import MemoryView


def view(m: Memory, s: MemoryList, key: ListKey, policy: Policy, now: datetime) -> MemoryView:
    """The view of one memory at a moment. `on_desk` is R12's choice for its list alone."""
    state = m.state(s.days, policy, now.date())
    on_desk = state != "expired" and (m.pinned or (state == "active" and _has_room(m, s, policy, now)))
    return view_of(m, s.days, key, policy, now, on_desk=on_desk)


def view_of(m: Memory, days: SearchedDays, key: ListKey, policy: Policy, now: datetime, *, on_desk: bool) -> MemoryView:
    """The view of one memory at a moment, on a desk that was chosen elsewhere."""
    return MemoryView(
        id=m.id,
        persona=key.persona,
        scope=key.scope,
        subject=key.subject,
        text=m.text,
        state=m.state(days, policy, now.date()),
        on_desk=on_desk,
        until=m.until,
        unused_days=m.unused_days(days),
        pinned=m.pinned,
        protected=m.protected,
        actor=m.actor,
        created_at=m.created_at,
        updated_at=m.updated_at,
        last_matched_at=m.last_matched_at,
        recent=is_recent(m.updated_at, now, policy.recent_days),
        tags=m.tags,
        channels=m.channels,
    )


def _has_room(m: Memory, s: MemoryList, policy: Policy, now: datetime) -> bool:
    """Are fewer than `desk_limit` unpinned active memories of the list newer?"""
    if len(s.memories) <= policy.desk_limit:
        return True
    newer = sum(
        1
        for other in s.memories.values()
        if not other.pinned
        and (other.updated_at, other.id) > (m.updated_at, m.id)
        and other.state(s.days, policy, now.date()) == "active"
    )
    return newer < policy.desk_limit


def in_reading_order(views: list[MemoryView]) -> list[MemoryView]:
    """Pinned first, then the active, the resting and the expired; each newest first."""
    rank = {"active": 1, "resting": 2, "expired": 3}
    return sorted(views, key=lambda v: (0 if v.pinned else rank[v.state], -v.updated_at.timestamp(), str(v.id)))
