"""The messages of a chat as they stand: what its events come to (R1, D17, D18, D19).

A chat may have 100,000 messages, so a transcript is folded in place: an event costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.text import ERASED

Role = Literal["user", "persona"]
Gone = Literal["deleted", "replaced", "rewound", "erased"]


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said. `n` grows from message to message; inherited ones have numbers up to 0."""

    n: int
    id: UUID
    role: Role
    author: str
    text: str
    tokens: int
    said_at: datetime
    turn: str | None = None
    attempt: int = 1
    ref: str | None = None
    edited_at: datetime | None = None
    gone: Gone | None = None


@dataclass(slots=True)
class Transcript:
    """All messages by number, in order; those that are gone keep their place."""

    messages: dict[int, Message] = field(default_factory=dict)
    by_id: dict[UUID, int] = field(default_factory=dict)
    by_turn: dict[str, list[int]] = field(default_factory=dict)

    def apply(self, recorded: e.Recorded) -> list[Message]:
        """Fold one more event; returns the messages that it made or changed. What is unknown is passed over."""
        ev, at = recorded.event, recorded.recorded_at
        match ev:
            case e.MessagePosted():
                said = Message(
                    recorded.version, ev.message, ev.role, ev.author, ev.text, ev.tokens, ev.said_at or at,
                    ev.turn, ev.attempt, ev.ref, gone=_erased(ev.text),
                )  # fmt: skip
                return [self.put(said)]
            case e.MessageEdited():
                return [
                    self.put(replace(m, text=ev.text, tokens=ev.tokens, edited_at=at, gone=_erased(ev.text)))
                    for m in self._named(ev.message)
                ]
            case e.MessageDeleted():
                return [
                    self.put(replace(m, gone="deleted", text="")) for m in self._named(ev.message) if m.gone is None
                ]
            case e.TurnRegenerated():
                return [
                    self.put(replace(m, gone="replaced"))
                    for m in self._of_turn(ev.turn)
                    if m.role == "persona" and m.attempt < ev.attempt
                ]
            case e.ChatRewound():
                return [self.put(replace(m, gone="rewound")) for turn in ev.turns for m in self._of_turn(turn)]
            case e.SubjectErased():
                return [self.put(replace(m, text=ERASED, gone="erased")) for m in [*self.messages.values()]]
        return []

    def inherit(self, parent: Mapping[int, Message], upto: int) -> None:
        """Take over a parent's messages up to a number (D18), before all of one's own; erased ones keep their place."""
        for m in parent.values():
            if m.n <= upto and m.gone in (None, "erased"):
                self.put(replace(m, n=m.n - upto))

    def put(self, m: Message) -> Message:
        """Set one message, as it is or was."""
        if m.n not in self.messages:
            self.by_id[m.id] = m.n
            if m.turn is not None:
                self.by_turn.setdefault(m.turn, []).append(m.n)
        self.messages[m.n] = m
        return m

    def _named(self, message: UUID) -> Iterable[Message]:
        m = None if (n := self.by_id.get(message)) is None else self.messages.get(n)
        return [m] if m is not None and m.gone in (None, "erased") else []

    def _of_turn(self, turn: str | None) -> list[Message]:
        found = [self.messages[n] for n in self.by_turn.get(turn or "", ()) if n in self.messages]
        return [m for m in found if m.gone is None]


ReadChat = Callable[[UUID, int], Iterable[e.Recorded]]
"""Reads the events of a chat's stream up to a version (inclusive)."""


def _erased(text: str) -> Gone | None:
    """A text whose key is gone is no text (D24)."""
    return "erased" if text == ERASED else None
