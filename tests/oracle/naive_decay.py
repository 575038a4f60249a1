"""Memory decay as the rules tell it: a counter for each memory, and a walk over everything that happened.

Slow and plain on purpose. It imports nothing of the product, so that a test can hold the product against it. An undo is
the same story told without what the turn did; its searched day stays (D14). A fact that comes late is told on its day.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from datetime import date
from typing import Literal

Id = Hashable
What = Literal["save", "use", "search", "pin", "unpin", "remove", "restore", "recount"]


@dataclass
class Told:
    """One thing that happened."""

    day: date
    what: What
    memory: Id | None = None
    turn: str | None = None
    hidden: frozenset[Id] = frozenset()
    days: int = 0
    by_person: bool = False
    void: bool = False


@dataclass
class Counter:
    """A memory as T1 and D1 describe it."""

    days: int
    counted_on: date
    """The last day whose tick is used up: one that was counted, or one with a save, edit, restore, unpin or match."""
    pinned: bool = False
    away: bool = False


class Diary:
    """Everything that happened to one list, and what the counters are because of it."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def tell(
        self,
        day: date,
        what: What,
        memory: Id | None = None,
        *,
        turn: str | None = None,
        hidden: Collection[Id] = (),
        days: int = 0,
        by_person: bool = False,
    ) -> None:
        """Write down one thing. `days` is what an import or a recount carries; a person's act is never undone."""
        self.told.append(Told(day, what, memory, turn, frozenset(hidden), days, by_person))

    def undo(self, turn: str, memories: Collection[Id]) -> None:
        """Take back what the model and the search did to these memories in this turn."""
        for entry in self.told:
            if entry.turn == turn and entry.memory in memories and not entry.by_person:
                entry.void = True

    def counters(self) -> dict[Id, Counter]:
        """Every memory that is there, with its counter."""
        memories: dict[Id, Counter] = {}
        for entry in sorted(self.told, key=lambda t: t.day):
            if not entry.void:
                self._walk(memories, entry)
        return {k: m for k, m in memories.items() if not m.away}

    def last_use(self, memory: Id) -> date:
        """The day of the last thing that used up a tick of this memory, told in any order."""
        uses = ("save", "use", "unpin", "restore", "recount")
        return max(t.day for t in self.told if t.memory == memory and t.what in uses and not t.void)

    @staticmethod
    def _walk(memories: dict[Id, Counter], entry: Told) -> None:
        if entry.what == "search":
            for k, m in memories.items():
                in_it = not (m.away or m.pinned or k in entry.hidden)
                if in_it and m.counted_on < entry.day:
                    m.days += 1
                    m.counted_on = entry.day
            return
        if entry.what == "save":
            memories[entry.memory] = Counter(entry.days, entry.day)
            return
        m = memories.get(entry.memory)
        if m is None:
            return
        match entry.what:
            case "pin":
                m.pinned = True
            case "remove":
                m.away = True
            case "use":
                m.days, m.counted_on = 0, entry.day
            case "unpin":
                m.days, m.counted_on, m.pinned = 0, entry.day, False
            case "restore":
                m.days, m.counted_on, m.pinned, m.away = 0, entry.day, False, False
            case "recount":
                m.days, m.counted_on = entry.days, entry.day
