"""What is known of a turn: who took part, where, and whether its search succeeded (T14, R13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remembrancer.domain.identity import ListKey
from remembrancer.services.finder import Finder


@dataclass(frozen=True, slots=True)
class Played:
    """The newest attempt of a turn."""

    users: tuple[str, ...]
    server: str | None
    channel: str | None
    searched: bool
    remembers: bool
    attempt: int
    persona: str | None
    """Who spoke; None where history noted it before it kept that."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Played:
        """From what history keeps of a reply."""
        return cls(
            tuple(data["users"]),
            data["server"],
            data["channel"],
            data["search"] == "ok",
            data["memory"],
            data["attempt"],
            data.get("persona"),
        )


class Turns:
    """Turns by id, from history and the events ahead of it: whichever process played an attempt, all know it."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    def find(self, turn: str | None) -> Played | None:
        """The newest attempt of a turn, or None if it never was."""
        replies = [] if turn is None else self._finder.replies(turn)
        return Played.of(replies[-1]) if replies else None

    def search_ok(self, turn: str, key: ListKey) -> bool:
        """Did the search of this turn's reply go through this list? A turn that never was had none (T14)."""
        played = self.find(turn)
        return played is not None and played.searched and (key.scope != "server" or played.server == key.subject)

    def next_attempt(self, turn: str) -> tuple[int, str | None]:
        """1 for a new turn, one more for each that came before; and the chat in which it was played."""
        before = self._finder.replies(turn)
        return len(before) + 1, before[-1]["chat"] if before else None
