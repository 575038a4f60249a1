"""Who is forgotten when a list is full (T12, T13, D6, D22, D28)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain.decay import SearchedDays
from remembrancer.domain.memory import Memory
from remembrancer.domain.policy import Policy

_NEVER = datetime.min.replace(tzinfo=UTC)


class InLine(NamedTuple):
    """The memory that would be forgotten next, and why it is first."""

    memory: Memory
    reason: str


def first_in_line(
    memories: Iterable[Memory],
    days: SearchedDays,
    policy: Policy,
    today: date,
    *,
    is_global: bool = False,
    without_vector: Collection[UUID] = (),
) -> InLine | None:
    """The one memory that may be forgotten first, or None if none may.

    Never one that is global, pinned, protected (T13), active, or not searchable for want of a vector (D22). Expired
    ones come first (D28), then those never matched, then the one matched longest ago (T12); ties go to the older (D6).
    """
    if is_global or not policy.decay_enabled:
        return None
    may_go = (m for m in memories if not m.pinned and not m.protected and m.id not in without_vector)
    line = sorted(may_go, key=lambda m: (m.last_matched_at or _NEVER, m.created_at, m.id))
    for m in line:
        if m.expired(today):
            return InLine(m, f"its date {m.until} has passed")
    for m in line:  # a counter is dear where much was hidden on many days: not one more than needed is looked at
        if m.state(days, policy, today) == "resting":
            return InLine(m, _reason(m, days))
    return None


def _reason(m: Memory, days: SearchedDays) -> str:
    unused = f"resting after {m.unused_days(days)} unused days"
    if m.last_matched_at is None:
        return f"{unused}, never matched"
    return f"{unused}, last matched {m.last_matched_at:%Y-%m-%d %H:%M} UTC, longest ago"
