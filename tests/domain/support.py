"""Given, when, then for one list of memories.

    given(saved(1, "Juno's cat is named Mochi."), searched(DAY))
        .when(lambda s: pin(s, m(1), by("person")))
        .then(MemoryPinned, memory=m(1), day=DAY)

`given` folds what happened before, `when` takes a decision, `then` says what came of it, `refused` why nothing did.
Ids are numbers, stamps are written out or noon of their day; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from typing import Any, Self
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import Context, MemoryList, Saved, evolve
from remembrancer.domain.policy import Policy

TENANT = "acme"
KEY = ListKey("mira", "server", "tea house")
PERSONAL = ListKey("mira", "personal", "juno")
GLOBAL = ListKey("*", "global", "juno")
DAY = date(2026, 5, 4)
"""The day on which most of it happens, a Monday."""
POLICY = Policy()

Happening = tuple[e.Event, datetime]
Given = Happening | Iterable["Given"]


def m(number: int) -> UUID:
    """The id of the memory with this number; a lower number is a lower id."""
    return UUID(int=number)


def days_after(day: date, number: int) -> date:
    return day + timedelta(days=number)


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


_event_ids = count(1 << 64)


def happening(kind: type[e.Event], day: date, at: datetime | None = None, /, **fields: Any) -> Happening:
    """One event of `KEY`'s list, recorded at noon of its day or at `at`."""
    body: dict[str, Any] = {"tenant": TENANT, "day": day}
    if issubclass(kind, e.ListEvent):
        body |= {"persona": KEY.persona, "scope": KEY.scope, "subject": KEY.subject}
    return kind(**(body | {"id": UUID(int=next(_event_ids))} | fields)), at or noon(day)


def saved(
    number: int, text: str | None = None, day: date = DAY, at: datetime | None = None, **fields: Any
) -> Happening:
    """A memory saved, by the persona unless said otherwise: unprotected, never matched, with a counter of 0."""
    body = {"memory": m(number), "text": text or f"Fact number {number}.", "actor": "persona"}
    return happening(e.MemorySaved, day, at, **(body | fields))


def edited(number: int, text: str, day: date = DAY, at: datetime | None = None, **fields: Any) -> Happening:
    body = {"memory": m(number), "text": text, "before": "", "actor": "persona"}
    return happening(e.MemoryEdited, day, at, **(body | fields))


def searched(day: date = DAY, hidden: Sequence[int] = (), seen: Sequence[int] | None = None) -> Happening:
    return happening(
        e.ListSearched, day, hidden=[m(n) for n in hidden], seen=None if seen is None else [m(n) for n in seen]
    )


def matched(*numbers: int, day: date = DAY, at: datetime | None = None, turn: str | None = "turn") -> Happening:
    matches = [
        e.Match(memory=m(n), score=0.9, similarity=0.9, words=0.0, rank=rank) for rank, n in enumerate(numbers, start=1)
    ]
    return happening(e.MemoriesMatched, day, at, matches=matches, turn=turn)


def affirmed(number: int, day: date = DAY, **fields: Any) -> Happening:
    return happening(e.MemoryAffirmed, day, memory=m(number), **fields)


def pinned(number: int, day: date = DAY) -> Happening:
    return happening(e.MemoryPinned, day, memory=m(number))


def unpinned(number: int, day: date = DAY) -> Happening:
    return happening(e.MemoryUnpinned, day, memory=m(number))


def evicted(number: int, day: date = DAY, **fields: Any) -> Happening:
    body = {"memory": m(number), "for_memory": m(999), "reason": "", "actor": "persona"}
    return happening(e.MemoryEvicted, day, **(body | fields))


def deleted(number: int, day: date = DAY, **fields: Any) -> Happening:
    return happening(e.MemoryDeleted, day, memory=m(number), **fields)


def restored(number: int, day: date = DAY, **fields: Any) -> Happening:
    return happening(e.MemoryRestored, day, memory=m(number), **fields)


def rolled_back(turn: str, day: date = DAY, **fields: Any) -> Happening:
    return happening(e.TurnRolledBack, day, turn=turn, **fields)


def cleared(day: date = DAY, *, pinned: bool = False) -> Happening:
    return happening(e.MemoriesCleared, day, pinned=pinned)


def searched_days(first: date, number: int, **how: Any) -> list[Happening]:
    """So many days in a row, from `first` on, on which the list was searched."""
    return [searched(days_after(first, i), **how) for i in range(number)]


def rested(number: int, text: str | None = None, **fields: Any) -> list[Happening]:
    """A memory saved ten days before `DAY` that rests by then: the list was searched on each day but `DAY`."""
    day = days_after(DAY, -10)
    return [saved(number, text, day, **fields), *searched_days(days_after(day, 1), 9)]


def flat(what: Iterable[Given]) -> list[Happening]:
    """Happenings out of any nesting of lists."""
    out: list[Happening] = []
    for one in what:
        if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], e.Event):
            out.append(one)
        else:
            out += flat(one)
    return out


def fold(*what: Given, state: MemoryList | None = None) -> MemoryList:
    """The state of a list after all this."""
    state = state or MemoryList()
    for version, (event, at) in enumerate(flat(what), start=1):
        state = evolve(state, recorded(event, at, version))
    return state


def recorded(event: e.Event, at: datetime, version: int = 1) -> e.Recorded:
    stream = list_stream(TENANT, KEY)
    return e.Recorded(event, stream, version, stream.bytes[0], version, at)


def by(actor: e.Actor, *, key: ListKey = KEY, day: date = DAY, policy: Policy = POLICY, **fields: Any) -> Context:
    """What a decision knows: who acts, on which day, under which policy."""
    ids = count(1 << 96)
    return Context(
        tenant=TENANT, key=key, actor=actor, day=day, policy=policy, new_id=lambda: UUID(int=next(ids)), **fields
    )


def unused(state: MemoryList, number: int) -> int:
    """The counter of a memory."""
    return state.memories[m(number)].unused_days(state.days)


def state_of(state: MemoryList, number: int, *, policy: Policy = POLICY, today: date = DAY) -> str:
    """Active, resting or expired."""
    return state.memories[m(number)].state(state.days, policy, today)


Outcome = Saved | tuple[e.Event, ...] | tuple[tuple[e.Event, ...], Any]


@dataclass
class Came:
    """What came of a decision: its events, or its refusal."""

    before: MemoryList
    day: date
    events: tuple[e.Event, ...] = ()
    answer: Any = None
    error: RemembrancerError | None = None
    read: int = field(default=0, repr=False)

    @property
    def state(self) -> MemoryList:
        """The list afterwards."""
        return fold([(ev, noon(self.day)) for ev in self.events], state=self.before)

    def memory(self, number: int) -> Memory:
        return self.state.memories[m(number)]

    def then(self, kind: type[e.Event], **fields: Any) -> Self:
        """The next event is of this kind and says at least this."""
        assert self.error is None, f"refused: {self.error}"
        assert len(self.events) > self.read, f"nothing more happened; expected {kind.__name__}"
        event = self.events[self.read]
        self.read += 1
        assert type(event) is kind
        assert {name: getattr(event, name) for name in fields} == fields
        return self

    def and_nothing_else(self) -> Self:
        """All events have been named."""
        assert self.error is None, f"refused: {self.error}"
        assert [type(ev).__name__ for ev in self.events[self.read :]] == []
        return self

    def refused(self, kind: type[RemembrancerError], *, rule: str | None = None, **details: Any) -> RemembrancerError:
        """Refused by this rule, with these details; nothing happened."""
        assert self.error is not None, f"not refused, but {self.events}"
        assert type(self.error) is kind, repr(self.error)
        assert self.error.rule == rule
        assert {name: self.error.details.get(name) for name in details} == details
        assert self.events == ()
        return self.error


@dataclass(frozen=True)
class Before:
    """A list on which a decision is to be taken."""

    state: MemoryList
    day: date = DAY

    def when(self, decide: Callable[[MemoryList], Outcome]) -> Came:
        """Take the decision."""
        try:
            answer = decide(self.state)
        except RemembrancerError as error:
            return Came(self.state, self.day, error=error)
        events = answer.events if isinstance(answer, Saved) else answer
        if events and isinstance(events[0], tuple):
            events = events[0]
        elif events == ((), None):
            events = ()
        return Came(self.state, self.day, tuple(events), answer)


def given(*what: Given, day: date = DAY) -> Before:
    """A list to which all this has happened."""
    return Before(fold(*what), day)


def in_words(error: RemembrancerError, *parts: object) -> None:
    """The sentence for a person names all of these."""
    for part in parts:
        if str(part) not in str(error):
            pytest.fail(f"{part!r} is not in {str(error)!r}")
