"""The fold of days against a counter for each memory (T1, T4, T8, D1, D3, D14, D22, D28), over random weeks.

Replies of the same day, late replies of yesterday, hidden memories in both written forms, repeated facts, saves that
forget, imports, pins, deletions, restores, recounts and undone turns: after each of them the two must agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.persona_memory import MemoryList
from tests.domain.support import DAY, Given, days_after, fold, happening, m, matched, rolled_back, saved, searched
from tests.oracle.naive_decay import Diary


class Step(NamedTuple):
    """One thing that happens. What it happens to is picked among what there is then."""

    what: str
    gap: int
    which: int
    hidden: int
    how: int


class Weeks:
    """One list; `list` is the product's fold, `diary` the naive model."""

    def __init__(self) -> None:
        self.list = MemoryList()
        self.diary = Diary()
        self.day = DAY
        self.born: dict[int, date] = {}
        self.turns = 0
        self.turn = "turn 0"
        self.undone_turn: str | None = None
        self.facts: list[Given] = []
        self.left_today: set[int] = set()
        self.blind: dict[date, set[int]] = defaultdict(set)
        self.in_order = True

    def take(self, step: Step) -> None:
        """Let it happen, and compare."""
        if step.gap:
            self.day = days_after(self.day, step.gap)
            self.left_today.clear()
        getattr(self, step.what)(step)
        self.agree()

    def agree(self) -> None:
        want = self.diary.counters()
        assert {k.int for k in self.list.memories} == set(want)
        for k, counter in want.items():
            assert isinstance(k, int)
            memory = self.list.memories[m(k)]
            assert memory.pinned is counter.pinned
            if self.in_order or not memory.pinned:  # a pin freezes the counter as it is then; late days do not thaw it
                assert memory.unused_days(self.list.days) == counter.days, f"memory {k}"

    # -- what there is

    def here(self) -> set[int]:
        return {k.int for k in self.list.memories}

    def pinned(self) -> set[int]:
        return {k.int for k, x in self.list.memories.items() if x.pinned}

    def hidden_so_far(self, k: int) -> bool:
        """Was it left out of every search of today, of which there was at least one?"""
        today = [t for t in self.diary.told if t.what == "search" and t.day == self.day]
        return bool(today) and all(k in t.hidden for t in today)

    def happens(self, *what: Given) -> None:
        self.list = fold(*what, state=self.list)

    # -- replies

    def reply(self, step: Step) -> None:
        """A search, in which some are hidden, and up to three matches, in either order; perhaps of yesterday."""
        late, short_form, match_first, new_attempt = (bool(step.how >> bit & 1) for bit in range(4))
        late &= step.how % 3 == 0
        again, self.undone_turn = self.undone_turn, None
        if again is not None and new_attempt:
            self.turn = again
        else:
            self.turns += 1
            self.turn = f"turn {self.turns}"
        day = days_after(self.day, -1) if late else self.day
        self.in_order &= not late
        there = self.here() | self.left_today if late else self.here()
        there = {k for k in there if self.born[k] <= day}
        hidden = set(some_of(there, step.hidden))
        blind = self.blind[day]
        if short_form:
            search: Given = searched(day, seen=sorted(there - hidden - blind))
        else:
            search = searched(day, hidden=sorted(hidden | blind))
        self.diary.tell(day, "search", hidden=hidden | blind)
        hits = some_of(there - hidden - self.pinned(), step.which)[:3]
        match: Given = matched(*hits, day=day, turn=self.turn)
        for k in hits:
            self.diary.tell(day, "use", k, turn=self.turn)
        self.happens([match, search] if match_first else [search, match])
        self.facts = [search, match]

    def told_again(self, step: Step) -> None:
        """A fact of a parallel reply, or folded twice. (Not after an undo or a recount: it would outlive that.)"""
        self.happens(self.facts)

    def use(self, step: Step) -> None:
        """An edit or a duplicate save, by the persona in this turn, or by a person who may name the turn too."""
        by_turn, edits, names_turn = (bool(step.how >> bit & 1) for bit in range(3))
        for k in one_of(self.here() - self.pinned() if by_turn else self.here(), step.which):
            turn = self.turn if by_turn or names_turn else None
            who: dict[str, Any] = {"actor": "persona" if by_turn else "person", "turn": turn}
            if edits:
                self.happens(happening(e.MemoryEdited, self.day, memory=m(k), text=f"{k}", before="", **who))
            else:
                self.happens(happening(e.MemoryAffirmed, self.day, memory=m(k), **who))
            self.diary.tell(self.day, "use", k, turn=turn, by_person=not by_turn)

    # -- coming and going

    def save(self, step: Step) -> None:
        """By the persona in this turn, or by a person; on a day that may never be searched."""
        by_turn = bool(step.how & 1)
        k = len(self.born) + 1
        self.born[k] = self.day
        turn = self.turn if by_turn else None
        self.happens(saved(k, day=self.day, turn=turn, actor="persona" if by_turn else "person"))
        self.diary.tell(self.day, "save", k, turn=turn)

    def arrive(self, step: Step) -> None:
        """An import, with the days that it had, and perhaps pinned."""
        k = len(self.born) + 1
        self.born[k] = self.day
        carried, is_pinned = step.how % 10, step.hidden % 8 == 0
        happened = saved(k, day=self.day, actor="import", unused_days=carried, pinned=is_pinned)
        self.happens(happened)
        self.diary.tell(self.day, "save", k, days=carried)
        if is_pinned:
            self.diary.tell(self.day, "pin", k)

    def forget(self, step: Step) -> None:
        """Evicted or deleted: by the persona in this turn, by a person, by a person who names the turn."""
        for k in one_of(self.here() - self.pinned(), step.which):
            by_person, names_turn = step.how % 3 == 0, bool(step.how & 8)
            turn = self.turn if names_turn or not by_person else None
            fields: dict[str, Any] = {"memory": m(k), "actor": "person" if by_person else "persona", "turn": turn}
            if step.how & 16:
                self.happens(happening(e.MemoryEvicted, self.day, for_memory=m(99), reason="", **fields))
            else:
                self.happens(happening(e.MemoryDeleted, self.day, **fields))
            self.left_today.add(k)
            if self.hidden_so_far(k):  # whether a second search of the day would have seen it, nobody can say
                self.blind[self.day].add(k)
            self.diary.tell(self.day, "remove", k, turn=turn, by_person=by_person)

    def restore(self, step: Step) -> None:
        for k in one_of({k.int for k in self.list.gone}, step.which):
            self.happens(happening(e.MemoryRestored, self.day, memory=m(k)))
            self.diary.tell(self.day, "restore", k, by_person=True)

    def pin_or_unpin(self, step: Step) -> None:
        for k in one_of(self.here(), step.which):
            if k in self.pinned():
                self.happens(happening(e.MemoryUnpinned, self.day, memory=m(k)))
                self.diary.tell(self.day, "unpin", k)
            else:
                self.happens(happening(e.MemoryPinned, self.day, memory=m(k)))
                self.diary.tell(self.day, "pin", k)

    def recount(self, step: Step) -> None:
        for k in one_of(self.here() - self.pinned(), step.which):
            self.happens(happening(e.UseRecounted, self.day, unused_days={m(k): step.how % 10}))
            self.diary.tell(self.day, "recount", k, days=step.how % 10)
            self.facts = []

    # -- undo

    def undo(self, step: Step) -> None:
        """D14: what the model and the search did in one of the last turns, unless a person edited it afterwards."""
        effects = [t for t in self.diary.told if t.turn and not t.void and not t.by_person]
        turns = list(dict.fromkeys(t.turn for t in effects))[-4:]
        for turn in one_of(set(turns), step.which):
            done = [n for n, t in enumerate(self.diary.told) if t in effects and t.turn == turn]
            later = self.diary.told[max(done) + 1 :]
            edited_since = {t.memory for t in later if t.what in ("use", "restore") and t.by_person}
            touched = {self.diary.told[n].memory for n in done} - self.pinned() - edited_since
            removed = {self.diary.told[n].memory for n in done if self.diary.told[n].what == "save"} & touched
            away = {k.int: v.turn for k, v in self.list.gone.items()}
            self.diary.undo(turn, touched)
            self.happens(
                rolled_back(
                    turn,
                    self.day,
                    removed=[m(k) for k in removed],
                    restored=[m(k) for k in touched - removed if away.get(k) == turn],
                    unmatched={
                        m(k): self.diary.last_use(k) for k in touched - removed if k in self.here() or k in away
                    },
                )
            )
            self.facts = []
            self.undone_turn = turn


def one_of(among: set[Any], number: int) -> Iterable[Any]:
    """The one that this number names, if there is any. Low numbers name what is newest."""
    return [sorted(among, reverse=True)[number % len(among)]] if among else []


def some_of(among: set[int], mask: int) -> list[int]:
    """Those whose bit is set."""
    return [k for bit, k in enumerate(sorted(among)) if mask >> bit & 1]


HAPPENINGS = [
    *["reply"] * 8, *["undo"] * 4, *["save"] * 3, *["forget"] * 3, *["use"] * 2, *["pin_or_unpin"] * 2, "restore",
    "arrive", "recount", "told_again",
]  # fmt: skip
MASKS = st.sampled_from([0, 0]) | st.integers(0, 255)
STEPS = st.builds(
    Step,
    what=st.sampled_from(HAPPENINGS),
    gap=st.sampled_from([0, 0, 0, 0, 1, 1, 3]),
    which=st.integers(0, 7),
    hidden=MASKS,
    how=st.integers(0, 31),
)


@for_all(st.lists(STEPS, min_size=25, max_size=45))
@settings(max_examples=250)
def test_after_any_weeks_the_counters_are_those_of_the_naive_model(steps: list[Step]):
    weeks = Weeks()
    for _ in range(3):
        weeks.save(Step("save", 0, 0, 0, 0))
    for step in steps:
        weeks.take(step)
