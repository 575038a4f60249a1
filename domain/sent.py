"""What a reply sent of its lists, and what it would have sent under another policy: desk, late block, tokens (U3)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import Line, render_late, render_prefix, whose
from remembrancer.domain.visibility import Place, is_visible

Lists = Sequence[tuple[ListKey, MemoryList]]


DESKS_KEPT = 256
"""Desks whose tokens are remembered: most replies send what one before sent."""


@dataclass(slots=True)
class SentDesk:
    """The desk of one reply: list by list, over the lists as they were (or would have been) then."""

    lists: Lists
    order: Sequence[Sequence[UUID]]
    speaker: str = ""
    _other: SentDesk | None = None
    prefix_tokens: int | None = None
    """Counted once, where both courses have this desk."""

    def __len__(self) -> int:
        return sum(len(ids) for ids in self.order)

    def __contains__(self, memory: object) -> bool:
        return any(memory in ids for ids in self.order)

    @property
    def other(self) -> SentDesk:
        """The desk of the same reply in the other course; itself where they are the same."""
        return self if self._other is None else self._other

    def beside(self, other: SentDesk) -> SentDesk:
        """The same desk with its other."""
        return SentDesk(self.lists, self.order, self.speaker, other)


class _MayBe(NamedTuple):
    """What was last found out of a list: most of it holds for the next reply."""

    state: MemoryList
    asked: tuple[object, ...]
    of: dict[int, tuple[Memory, OnDesk | None]]
    """By the identity of a memory's state, which it holds: a memory that was used is another one."""
    found: list[OnDesk]


class _Choice(NamedTuple):
    may_be: list[list[OnDesk]]
    desk_limit: int
    order: list[list[UUID]]


class Sent:
    """Reads recorded desks and chooses others (R12, D2, T10, D28).

    Most replies find their lists as the one before, but for the few memories that it used. So what was found out of a
    memory is kept as long as its state is the same one, and a choice and its tokens as long as they are of the same.

    Args:
        count: the tokens of a text.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._may_be: dict[ListKey, _MayBe] = {}
        self._choices: dict[tuple[ListKey, ...], _Choice] = {}
        self._prefixes: OrderedDict[object, int] = OrderedDict()
        """The tokens of desks by what is printed of them."""

    @staticmethod
    def recorded(ev: e.ReplySearched, lists: Lists) -> SentDesk:
        """The desk that a reply recorded."""
        return SentDesk(lists, [[i for i in ev.prefix if i in s.memories] for _, s in lists], ev.persona)

    def chosen(self, ev: e.ReplySearched, lists: Lists, policy: Policy) -> SentDesk:
        """The desk that this policy chooses for a reply."""
        place = Place(ev.server, ev.channel, ev.tags)
        may_be = [self._of_list(key, s, place, ev.day, policy) for key, s in lists]
        keys = tuple(key for key, _ in lists)
        known = self._choices.get(keys)
        if known is None or known.desk_limit != policy.desk_limit or known.may_be != may_be:
            order = choose_desk(may_be, policy.desk_limit)
            known = self._choices[keys] = _Choice(may_be, policy.desk_limit, order)
        return SentDesk(lists, known.order, ev.persona)

    def _of_list(self, key: ListKey, s: MemoryList, place: Place, today: date, policy: Policy) -> list[OnDesk]:
        """What of a list may be on the desk: the very list of before, where that is the same."""
        asked = (place, today, policy.rest_after_days, policy.decay_enabled)
        known = self._may_be.get(key)
        if known is not None and known.state is s and known.asked == asked:
            return known.found
        still = known.of if known is not None and known.state.days is s.days and known.asked == asked else {}
        of: dict[int, tuple[Memory, OnDesk | None]] = {}
        for m in s.memories.values():
            of[id(m)] = still.get(id(m)) or (m, _on_desk(m, s, place, today, policy))
        found = [one for _, one in of.values() if one is not None]
        if known is not None and known.found == found:
            found = known.found
        self._may_be[key] = _MayBe(s, asked, of, found)
        return found

    def tokens(self, desk: SentDesk, recalled: Collection[UUID]) -> int:
        """Tokens of the memories in both blocks: without standing instructions and the note on what is recent."""
        if desk.prefix_tokens is None:
            desk.prefix_tokens = self._of_prefix(desk)
        held = {i: (s.memories[i], key) for key, s in desk.lists for i in recalled if i in s.memories}
        late = render_late([_line(*held[i], desk.speaker) for i in recalled if i in held], (), 0)
        return desk.prefix_tokens + (self._count(late) if late else 0)

    def _of_prefix(self, desk: SentDesk) -> int:
        blocks = [(key, ids) for (key, _), ids in zip(desk.lists, desk.order, strict=True)]
        lines = {
            i: _line(s.memories[i], key, desk.speaker)
            for (key, s), ids in zip(desk.lists, desk.order, strict=True)
            for i in ids
        }
        printed = (*((key, len(ids)) for key, ids in blocks), *lines.values())
        if (tokens := self._prefixes.pop(printed, None)) is None:
            tokens = self._count(render_prefix("", blocks, lines))
        self._prefixes[printed] = tokens
        if len(self._prefixes) > DESKS_KEPT:
            self._prefixes.popitem(last=False)
        return tokens


def _on_desk(m: Memory, s: MemoryList, place: Place, today: date, policy: Policy) -> OnDesk | None:
    seen = is_visible(tags=m.tags, channels=m.channels, until=m.until, place=place, today=today)
    return OnDesk(m.id, m.updated_at, m.pinned) if seen and m.state(s.days, policy, today) == "active" else None


def _line(m: Memory, key: ListKey, speaker: str) -> Line:
    return Line(m.text, m.until, m.pinned, whose(key.persona, speaker))
