"""A past moment: lists as their events had made them, the desk by the rules of that day, the prompt (U1).

Whoever asks brings the events up to the moment, and the settings and policy of that day. Nothing that is later counts,
but for erasures: what was erased since cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import reduce
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.decay import SearchedDays
from remembrancer.domain.desk import OnDesk, choose_desk, is_recent
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import Line, Renderer, whose
from remembrancer.domain.visibility import Place, is_visible


class ListThen(NamedTuple):
    """A list as it was."""

    key: ListKey
    state: MemoryList


class Blocks(NamedTuple):
    """What goes into a prompt; `order` is the desk in the order of its numbers."""

    prefix: str
    late: str
    order: list[UUID]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where, when and under which rules a reply was given, or would have been, and the lists in play in their order."""

    at: datetime
    place: Place
    policy: Policy
    instructions: str
    lists: Sequence[ListThen]
    persona: str = ""
    """Who speaks: of the other personas of a group it is printed that the memories are theirs (R11)."""

    @property
    def today(self) -> date:
        """The UTC day."""
        return self.at.date()

    def visible(self, m: Memory) -> bool:
        """Might it be sent, searched and aged (T10, D28)?"""
        return is_visible(tags=m.tags, channels=m.channels, until=m.until, place=self.place, today=self.today)

    def find(self, memory: UUID) -> tuple[ListThen, Memory] | None:
        """A memory of the lists, with its list."""
        return next(((x, x.state.memories[memory]) for x in self.lists if memory in x.state.memories), None)

    def desk(self) -> list[list[UUID]]:
        """The desk by the rules, list by list (R12, R15, D2)."""
        return choose_desk([self._may_be(x.state.memories.values(), x.state.days) for x in self.lists],
                           self.policy.desk_limit)  # fmt: skip

    def _may_be(self, memories: Iterable[Memory], days: SearchedDays) -> list[OnDesk]:
        return [
            OnDesk(m.id, m.updated_at, m.pinned)
            for m in memories
            if self.visible(m) and m.state(days, self.policy, self.today) == "active"
        ]

    def by_list(self, ids: Sequence[UUID]) -> list[list[UUID]]:
        """A recorded desk, list by list; what is in none of the lists is left out."""
        return [[i for i in ids if i in x.state.memories] for x in self.lists]

    def blocks(
        self, desk: Sequence[Sequence[UUID]], recalled: Sequence[tuple[ListThen, Memory]], renderer: Renderer
    ) -> Blocks:
        """Both blocks of the prompt with this desk and what was recalled, as that version of the layout prints them."""
        held = {m.id: m for x in self.lists for m in x.state.memories.values()}
        lines = {i: self._line(x, held[i]) for x, ids in zip(self.lists, desk, strict=True) for i in ids}
        order = renderer.order(desk, lines)
        days = self.policy.recent_days
        recent = [n for n, i in enumerate(order, start=1) if is_recent(held[i].updated_at, self.at, days)]
        listed = [(x.key, ids) for x, ids in zip(self.lists, desk, strict=True)]
        prefix = renderer.prefix(self.instructions, listed, lines)
        return Blocks(prefix, renderer.late([self._line(x, m) for x, m in recalled], recent, days), order)

    def _line(self, x: ListThen, m: Memory) -> Line:
        return Line(m.text, m.until, m.pinned, whose(x.key.persona, self.persona))


# -- what a reply recorded -----------------------------------------------------------------------------------------


def asked_at(reply: e.ReplySearched, recorded_at: datetime) -> datetime:
    """The moment that a reply took for now. Where it did not say, when it was recorded, on the day that it recorded."""
    if reply.asked_at is not None:
        return reply.asked_at
    if recorded_at.date() == reply.day:
        return recorded_at
    return datetime.combine(reply.day, time.max, UTC)


def seen_by(reply: e.ReplySearched, seen: e.ListSeen, events: Sequence[e.Recorded]) -> list[e.Recorded]:
    """The events of a list that a reply saw.

    Args:
        events: the list's, from its first one to the one after `seen.version` or further.

    A new attempt sees the list with the old one taken back. Where it did not record that version (it has no
    `asked_at`), the taking back is the event that comes next.
    """
    known = [r for r in events if r.version <= seen.version]
    if reply.asked_at is None and reply.attempt > 1:
        after = [r for r in events if r.version == seen.version + 1]
        known += [r for r in after if isinstance(r.event, e.TurnRolledBack) and r.event.turn == reply.turn]
    return known


def folded(events: Sequence[e.Recorded]) -> MemoryList:
    """The list that these events, from the first one on, add up to."""
    return reduce(evolve, events, MemoryList())
