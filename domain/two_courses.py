"""One list in two courses of its history: as it is, and as it would be under other numbers (U3).

Both are folded by the same fold. As long as nothing has come out differently they are one and the same state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.text import folded

_EMPTY = MemoryList()
"""Where both courses begin: one state, not two that are equal."""


@dataclass(slots=True)
class TwoCourses:
    """One list, as it is and as it would be."""

    key: ListKey
    now: MemoryList = _EMPTY
    then: MemoryList = _EMPTY
    version: int = 0
    room: e.Recorded | None = None
    """An eviction whose save comes next."""
    same: dict[UUID, UUID] = field(default_factory=dict)
    """Memories that would have been a duplicate of another one, which was not forgotten (D12)."""
    refused: set[UUID] = field(default_factory=set)
    was_full: bool = False
    """Has it ever been without room? Then saves may have been refused, and left no event."""
    unsearched: set[UUID] = field(default_factory=set)
    """Memories that would have been there for searches that did not see them."""
    forgotten_by: dict[str, list[UUID]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def apart(cls, key: ListKey) -> TwoCourses:
        """A list whose courses are two states from the start: each is folded for itself, also where nothing differs.

        Slower, and the same: what it comes to checks what is spared otherwise.
        """
        return cls(key, then=MemoryList())

    @property
    def one(self) -> bool:
        """Has nothing come out differently so far?"""
        return self.now is self.then

    def then_id(self, memory: UUID) -> UUID:
        """The memory that would stand for this one."""
        return self.same.get(memory, memory)

    @property
    def only_then(self) -> set[UUID]:
        """Memories that are gone and would not be."""
        return set() if self.one else self.then.memories.keys() - self.now.memories.keys() - set(self.same.values())

    def still_says(self, text: str) -> UUID | None:
        """The memory that is gone, would not be, and says this (D12)."""
        wanted = folded(text)
        return next((k for k in sorted(self.only_then) if self.then.memories[k].folded == wanted), None)

    def has(self, memory: UUID) -> bool:
        """Is or was it in this list?"""
        return memory in self.now.memories or memory in self.now.gone

    def lost(self, memory: UUID) -> bool:
        """Is it in this list, and would not be?"""
        would = self.then_id(memory)
        gone_in_both = memory in self.now.gone and would in self.then.gone
        return self.has(memory) and would not in self.then.memories and not gone_in_both

    def take(self, facts: Sequence[e.Recorded], instead: Sequence[e.Recorded] | None = None) -> None:
        """Fold events into both courses; into the other one `instead`, if that is given."""
        one = self.one
        for r in facts:
            self.now = evolve(self.now, r)
        if one and instead is None:
            self.then = self.now
            return
        for r in facts if instead is None else instead:
            self.then = evolve(self.then, self._renamed(r))

    def _renamed(self, r: e.Recorded) -> e.Recorded:
        ev = r.event
        memory = getattr(ev, "memory", None)
        if memory in self.same and not isinstance(ev, e.MemorySaved):
            return with_fields(r, memory=self.same[memory])
        if isinstance(ev, e.MemoriesMatched) and any(m.memory in self.same for m in ev.matches):
            renamed = [m.model_copy(update={"memory": self.then_id(m.memory)}) for m in ev.matches]
            return with_fields(r, matches=tuple(renamed))
        return r


def with_fields(r: e.Recorded, **changes: Any) -> e.Recorded:
    """The same event, but for these fields."""
    return e.Recorded(r.event.model_copy(update=changes), r.stream, r.version, r.shard, r.position, r.recorded_at)


def uses_of(s: MemoryList, turn: str | None) -> dict[UUID, Any]:
    """The memories with uses by a turn, and the base that is left without them."""
    held = [*s.memories.values(), *(gone.memory for gone in s.gone.values())]
    return {m.id: m.base_day for m in held if not m.pinned and any(u.turn == turn for u in m.uses)}


def may_return(s: MemoryList, memory: UUID) -> bool:
    """Can an undo bring it back? Not if the list says the same by then (D12)."""
    return memory in s.gone and s.same_text(s.gone[memory].memory.text) is None
