"""What-if over random histories (U3): under its own numbers nothing changes; under others it comes to what the same
history comes to when it is lived under those numbers from the start; and rest days are those of a naive diary.

Where the record can answer: lists so small that every candidate is among the ten recorded ones, and room for all, or
numbers of their own for what is forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from remembrancer.domain.errors import Refused
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.services.answers import MemoryView
from remembrancer.services.answers_what_if import WhatIfAnswer
from remembrancer.services.remembrancer import Remembrancer
from tests.oracle.naive_decay import Diary
from tests.support.apart import folded_apart
from tests.support.world import PERSONA, SERVER, START, USER, World

TEXTS = (
    "mochi sleeps", "mochi sleeps late", "chess by the river", "a drum in porto", "porto by the river",
    "late chess", "drum and river", "mochi in porto",
)  # fmt: skip
TALK = (*TEXTS, "mochi", "river", "porto porto", "good morning", "chess late drum")
LISTS: dict[str, dict[str, Any]] = {
    "server": {"scope": "server", "subject": SERVER},
    "personal": {"scope": "personal", "subject": USER},
    "global": {"scope": "global", "subject": USER},
}
_runs = count()
_open: deque[Remembrancer] = deque()
AT_ONCE = 3
"""Lives that are looked at together; older ones give their connections back."""
MOST_DAYS = 60

text = st.integers(0, len(TEXTS) - 1)
lists = st.sampled_from(["server", "server", "personal", "global"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("day"), st.integers(1, 2)),
        st.tuples(st.just("reply"), st.integers(0, len(TALK) - 1), st.sampled_from(["web", "guild", "guild"])),
        st.tuples(st.just("reply"), st.integers(0, len(TALK) - 1), st.just("guild")),
        st.tuples(st.just("save"), text, lists, st.sampled_from(["persona", "persona", "person"])),
        st.tuples(st.just("edit"), text, text),
        st.tuples(st.just("delete"), text),
        st.tuples(st.just("pin"), text),
        st.tuples(st.just("unpin"), text),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("again"), st.integers(0, 1), st.integers(0, len(TALK) - 1)),
    ),
    min_size=8,
    max_size=30,
)
numbers = st.fixed_dictionaries({
    "rest_after_days": st.integers(1, 3), "match_limit": st.integers(0, 4),
    "match_threshold": st.sampled_from([0.3, 0.5, 0.8, 1.1]), "desk_limit": st.integers(0, 4),
})  # fmt: skip
relaxed = settings(
    max_examples=15, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@dataclass
class Life:
    """A history as it is lived by one tenant, on days of its own: shards are shared, and time never goes back."""

    world: World
    memory: Remembrancer
    begins: datetime
    turns: list[tuple[str, int, str]] = field(default_factory=list)
    replies: int = 0

    @classmethod
    def of(cls, world: World, **policy: Any) -> Life:
        number = next(_runs)
        world.now = begins = START + timedelta(days=MOST_DAYS * number)
        while len(_open) >= AT_ONCE:
            _open.popleft().close()
        _open.append(world.open(tenant=f"life {number}", **policy))
        return cls(world, _open[-1], begins)

    def live(self, happens: Sequence[tuple[Any, ...]]) -> Life:
        self.world.now = max(self.world.now, self.begins)
        for what, *how in happens:
            self.world.later(seconds=1)
            with suppress(Refused):
                getattr(self, what)(*how)
        return self

    # -- what happens

    def day(self, days: int) -> None:
        self.world.later(days=days)

    def reply(self, message: int, where: str, turn: str | None = None) -> None:
        turn = turn or f"turn {len(self.turns)}"
        if all(turn != known for known, *_ in self.turns):
            self.turns.append((turn, message, where))
        self.replies += 1
        server = SERVER if where == "guild" else None
        self.memory.reply(PERSONA, message=TALK[message], users=[USER], server=server, turn=turn)

    def save(self, text: int, where: str, actor: str) -> None:
        turn = self.turns[-1][0] if self.turns and actor == "persona" else None
        self.memory.save(PERSONA, **LISTS[where], text=TEXTS[text], actor=actor, turn=turn)

    def edit(self, text: int, other: int) -> None:
        for m in self.texts(text):
            self.memory.edit(m.id, text=TEXTS[other])

    def delete(self, text: int) -> None:
        for m in self.texts(text):
            self.memory.delete(m.id)

    def pin(self, text: int) -> None:
        for m in self.texts(text):
            self.memory.pin(m.id)

    def unpin(self, text: int) -> None:
        for m in self.texts(text):
            self.memory.unpin(m.id)

    def undo(self, back: int) -> None:
        if back < len(self.turns):
            self.memory.undo_turn(self.turns[-1 - back][0])

    def again(self, back: int, message: int) -> None:
        if back < len(self.turns):
            turn, _, where = self.turns[-1 - back]
            self.reply(message, where, turn)

    # -- what is there

    def texts(self, text: int) -> list[MemoryView]:
        return [m for m in self.all() if m.text == TEXTS[text]]

    def all(self) -> list[MemoryView]:
        return [m for one in self.memory.list(None).lists for m in one.memories]

    def days(self, at: datetime | None) -> timedelta | None:
        return None if at is None else at - self.begins


def stand(m: MemoryView, life: Life) -> tuple[Any, ...]:
    return m.state, None if m.pinned else m.unused_days, m.on_desk, life.days(m.last_matched_at)


def assert_nothing_changes_where_each_course_is_folded_for_itself(memory: Remembrancer, policy: dict[str, Any]):
    """Every match, desk and eviction decided again, and the states those of the plain fold of each list."""
    fold = folded_apart(memory, policy)
    assert fold.then == fold.now
    for stream, x in fold.lists.items():
        assert not x.one
        plain = MemoryList()
        for r in memory.engine.store.read([(stream, 0)]):
            plain = evolve(plain, r)
        assert x.now == plain
        assert x.then == plain


@given(happens=steps, policy=numbers, capacity=st.integers(1, 4))
@relaxed
def test_u3_under_its_own_numbers_nothing_changes(
    world: World, happens: Sequence[Any], policy: dict[str, Any], capacity: int
):
    """Forgetting, refusing, undoing and regenerating included."""
    policy |= {"list_capacity": capacity, "pin_capacity": 2}
    life = Life.of(world, **policy).live(happens)
    before = life.all()
    answer = life.memory.what_if(**policy)
    assert answer.changes == []
    assert answer.now == answer.then
    assert answer.now.replies == len([h for h in happens if h[0] == "reply"]) + answer.now.replies - len(life.turns), (
        "every reply is counted"
    )
    assert_nothing_changes_where_each_course_is_folded_for_itself(life.memory, policy)
    assert life.memory.what_if(**policy, apply=True).recounted == 0
    assert life.all() == before


@given(happens=steps, policy=numbers, other=numbers)
@example(
    [
        ("day", 1), ("reply", 1, "guild"), ("day", 1), ("again", 0, 11), ("reply", 4, "guild"),
        ("save", 2, "personal", "persona"), ("reply", 12, "web"), ("day", 1), ("reply", 5, "guild"), ("day", 2),
        ("save", 5, "server", "persona"), ("again", 0, 3), ("reply", 2, "guild"),
    ],
    {"match_threshold": 0.3, "match_limit": 3, "rest_after_days": 1, "desk_limit": 3}, {"match_threshold": 1.1},
)  # fmt: skip
@relaxed
def test_u3_it_comes_to_what_the_same_history_comes_to_when_it_is_lived_under_those_numbers(
    world: World, happens: Sequence[Any], policy: dict[str, Any], other: dict[str, Any]
):
    """T3, T4, T5, D1, D14; and applied, the counters are those."""
    lived = Life.of(world, **policy).live(happens)
    answer: WhatIfAnswer = lived.memory.what_if(**other)
    lived.memory.what_if(**other, apply=True)
    recounted = {(m.scope, m.text): stand(m, lived)[1::2] for m in lived.all()}
    known = {(m.scope, m.text): stand(m, lived) for m in lived.all()}
    begin = lived.begins
    for c in answer.changes:
        at = None if c.then.last_matched_at is None else c.then.last_matched_at - begin
        known[c.scope, c.text] = (c.then.state, c.then.unused_days, c.then.on_desk, at)
    instead = Life.of(world, **policy | other).live(happens)
    there = {(m.scope, m.text): stand(m, instead) for m in instead.all()}
    own = instead.memory.what_if(**other)
    assert {k: v[1::2] for k, v in known.items()} == {k: v[1::2] for k, v in there.items()}
    for k in {(c.scope, c.text) for c in answer.changes}:
        assert known[k] == there[k]
    assert recounted == {k: v[1::2] for k, v in there.items()}
    assert answer.then == own.now, "desks, tokens, matches, recalls, evictions of all replies, and how memories stand"


@given(happens=steps, rest=st.integers(1, 4), other=st.integers(1, 6))
@relaxed
def test_u3_other_rest_days_are_those_of_a_diary(world: World, happens: Sequence[Any], rest: int, other: int):
    """T5 against the naive model, which walks through every day."""
    happens = [h for h in happens if h[0] in ("day", "reply", "save")]
    life = Life.of(world, rest_after_days=rest)
    diary: dict[str, Diary] = {scope: Diary() for scope in LISTS}
    for what in happens:
        known = {(m.scope, m.text) for m in life.all()}
        life.live([what])
        today: date = life.world.now.date()
        if what[0] == "save":
            scope, text = what[2], TEXTS[what[1]]
            if any((m.scope, m.text) == (scope, text) for m in life.all()):
                diary[scope].tell(today, "use" if (scope, text) in known else "save", text)
        elif what[0] == "reply":
            used = {(m.scope, m.text) for m in life.all() if m.last_matched_at == life.world.now}
            for scope in LISTS if what[2] == "guild" else ("personal", "global"):
                if any(s == scope for s, _ in known):
                    diary[scope].tell(today, "search")
                for s, text in used:
                    if s == scope:
                        diary[scope].tell(today, "use", text)
    answer = life.memory.what_if(rest_after_days=other)
    changed = {(c.scope, c.text): c.then.state for c in answer.changes}
    for m in life.all():
        counter = diary[m.scope].counters()[m.text]
        assert m.unused_days == counter.days
        assert changed.get((m.scope, m.text), m.state) == ("resting" if counter.days >= other else "active")
