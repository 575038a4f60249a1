"""What is sent with a reply, dealt out like cards (R12, R15). It imports nothing of the product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def deal(lists: Sequence[Sequence[tuple[Any, Any, bool]]], room: int) -> list[set[Any]]:
    """The ids on the desk, list by list, of memories given as (id, updated_at, pinned).

    Every list holds its unpinned memories as a pile, newest on top. The lists take turns, in their order, each taking
    one card if it has one, until the room is used or the piles are.
    """
    desk = [{one for one, _, pinned in memories if pinned} for memories in lists]
    piles = [sorted((updated, one) for one, updated, pinned in memories if not pinned) for memories in lists]
    while room and any(piles):
        for number, pile in enumerate(piles):
            if pile and room:
                desk[number].add(pile.pop()[1])
                room -= 1
    return desk
