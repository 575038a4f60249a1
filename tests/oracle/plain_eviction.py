"""Who is forgotten first, as a comparison of two (T12, T13, D6, D22, D28). It imports nothing of the product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Kept:
    """A memory in a full list."""

    id: int
    state: str
    created_at: datetime
    last_matched_at: datetime | None
    pinned: bool
    protected: bool
    has_vector: bool


def may_go(a: Kept) -> bool:
    """T13, D22, D28: what rests or has expired, unless somebody wanted it or it cannot be searched yet."""
    return a.state in ("resting", "expired") and not a.pinned and not a.protected and a.has_vector


def goes_before(a: Kept, b: Kept) -> bool:
    """Is `a` forgotten before `b`?"""
    if (a.state == "expired") != (b.state == "expired"):
        return a.state == "expired"
    if a.last_matched_at != b.last_matched_at:
        if a.last_matched_at is None:
            return True
        if b.last_matched_at is None:
            return False
        return a.last_matched_at < b.last_matched_at
    if a.created_at != b.created_at:
        return a.created_at < b.created_at
    return a.id < b.id


def forgotten_first(memories: Sequence[Kept], *, is_global: bool, decay_enabled: bool) -> int | None:
    """The id of the one before which none goes."""
    if is_global or not decay_enabled:
        return None
    candidates = [a for a in memories if may_go(a)]
    for a in candidates:
        if all(a is b or goes_before(a, b) for b in candidates):
            return a.id
    return None
