"""The desk: which memories are sent with a reply from the start (R12, R15, D2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID


class OnDesk(NamedTuple):
    """One memory that may be sent: what the choice and the print order need."""

    id: UUID
    updated_at: datetime
    pinned: bool


def _age(m: OnDesk) -> tuple[datetime, UUID]:
    return (m.updated_at, m.id)


def choose_desk(lists: Sequence[Sequence[OnDesk]], desk_limit: int) -> list[list[UUID]]:
    """The desk, list by list, each printed oldest first.

    Args:
        lists: the lists in play, in their fixed order, each with its visible pinned and active memories in any order.
        desk_limit: how many unpinned ones there is room for.

    Every pinned one is there. The unpinned are taken newest first (`updated_at`, then id), round robin over the lists,
    so that what a short list leaves goes to the others. The choice does not depend on the order inside a list.
    """
    newest = [sorted((m for m in memories if not m.pinned), key=_age, reverse=True) for memories in lists]
    share = [0] * len(lists)
    room = desk_limit
    open_lists = [i for i, memories in enumerate(newest) if memories]
    while room > 0 and open_lists:
        still_open = []
        for i in open_lists[:room]:
            share[i] += 1
            if share[i] < len(newest[i]):
                still_open.append(i)
        room -= min(room, len(open_lists))
        open_lists = still_open
    return [
        [m.id for m in sorted([*(p for p in memories if p.pinned), *newest[i][: share[i]]], key=_age)]
        for i, memories in enumerate(lists)
    ]


def is_recent(updated_at: datetime, now: datetime, recent_days: int) -> bool:
    """Was its text new or changed in the last `recent_days` days (R12)?"""
    return now - updated_at < timedelta(days=recent_days)
