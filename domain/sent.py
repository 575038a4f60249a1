"""What a reply sent of its lists, and what it would have sent under another policy: desk, late block, tokens (U3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import Line, render_late, render_prefix
from remembrancer.domain.visibility import Place, is_visible

Lists = Sequence[tuple[ListKey, MemoryList]]


@dataclass(slots=True)
class SentDesk:
    """The desk of one reply: list by list, over the lists as they were (or would have been) then."""

    lists: Lists
    order: Sequence[Sequence[UUID]]
    _other: SentDesk | None = None
    ids: frozenset[UUID] = field(init=False)
    prefix_tokens: int | None = None
    """Counted once, where both courses have this desk."""

    def __post_init__(self) -> None:
        self.ids = frozenset(i for ids in self.order for i in ids)

    @property
    def other(self) -> SentDesk:
        """The desk of the same reply in the other course; itself where they are the same."""
        return self if self._other is None else self._other

    def beside(self, other: SentDesk) -> SentDesk:
        """The same desk with its other."""
        return SentDesk(self.lists, self.order, other)


class Sent:
    """Reads recorded desks and chooses others (R12, D2, T10, D28).

    Args:
        count: the tokens of a text. The same text comes with many replies.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._may_be: dict[ListKey, tuple[MemoryList, tuple[object, ...], list[OnDesk]]] = {}
        """The latest choice of each list, since most replies find it as the one before."""

    @staticmethod
    def recorded(ev: e.ReplySearched, lists: Lists) -> SentDesk:
        """The desk that a reply recorded."""
        return SentDesk(lists, [[i for i in ev.prefix if i in s.memories] for _, s in lists])

    def chosen(self, ev: e.ReplySearched, lists: Lists, policy: Policy) -> SentDesk:
        """The desk that this policy chooses for a reply."""
        place = Place(ev.server, ev.channel, ev.tags)
        may_be = [self._of_list(key, s, place, ev.day, policy) for key, s in lists]
        return SentDesk(lists, choose_desk(may_be, policy.desk_limit))

    def _of_list(self, key: ListKey, s: MemoryList, place: Place, today: date, policy: Policy) -> list[OnDesk]:
        asked = (place, today, policy.rest_after_days, policy.decay_enabled)
        known = self._may_be.get(key)
        if known is not None and known[0] is s and known[1] == asked:
            return known[2]
        found = [
            OnDesk(m.id, m.updated_at, m.pinned)
            for m in s.memories.values()
            if is_visible(tags=m.tags, channels=m.channels, until=m.until, place=place, today=today)
            and m.state(s.days, policy, today) == "active"
        ]
        self._may_be[key] = s, asked, found
        return found

    def tokens(self, desk: SentDesk, recalled: Collection[UUID]) -> int:
        """Tokens of the memories in both blocks: without standing instructions and the note on what is recent."""
        if desk.prefix_tokens is None:
            desk.prefix_tokens = self._count(self._prefix(desk))
        found = (next((s.memories[i] for _, s in desk.lists if i in s.memories), None) for i in recalled)
        late = render_late([_line(m) for m in found if m is not None], (), 0)
        return desk.prefix_tokens + (self._count(late) if late else 0)

    @staticmethod
    def _prefix(desk: SentDesk) -> str:
        blocks = [(key, ids) for (key, _), ids in zip(desk.lists, desk.order, strict=True)]
        lines = {i: _line(s.memories[i]) for (_, s), ids in zip(desk.lists, desk.order, strict=True) for i in ids}
        return render_prefix("", blocks, lines)


def _line(m: Memory) -> Line:
    return Line(m.text, m.until, m.pinned)
