"""The fold of days against a counter for each memory (T1, T4, T8, D1, D3, D14, D22, D28), over random weeks.

Replies of the same day, late replies of yesterday, hidden memories in both written forms, repeated facts, saves that
forget, imports, pins, deletions, restores and undone turns: after each of them the two must agree.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remembrancer.domain import events as e
from remembrancer.domain.persona_memory import MemoryList
from tests.domain.support import DAY, Given, days_after, fold, happening, m, matched, rolled_back, saved, searched
from tests.oracle.naive_decay import Diary


class RandomWeeks(RuleBasedStateMachine):
    """One list; `self.list` is the product's fold, `self.diary` the naive model."""

    def __init__(self) -> None:
        super().__init__()
        self.list = MemoryList()
        self.diary = Diary()
        self.day = DAY
        self.born: dict[int, date] = {}
        self.turns = 0
        self.turn = "turn 0"
        self.undone_turn: str | None = None
        self.facts: list[Given] = []
        self.left_today: set[int] = set()
        self.blind_today: set[int] = set()
        self.in_order = True

    # -- what there is

    def here(self) -> set[int]:
        return {k for k in self.diary.counters() if isinstance(k, int)}

    def pinned(self) -> set[int]:
        return {k for k, c in self.diary.counters().items() if c.pinned and isinstance(k, int)}

    def away(self) -> set[int]:
        return {k.int for k in self.list.gone}

    def hidden_so_far(self, k: int) -> bool:
        """Was it left out of every search of today, of which there was at least one?"""
        today = [t for t in self.diary.told if t.what == "search" and t.day == self.day]
        return bool(today) and all(k in t.hidden for t in today)

    def happens(self, *what: Given) -> None:
        self.list = fold(*what, state=self.list)

    def leaves(self, k: int) -> None:
        self.left_today.add(k)
        if self.hidden_so_far(k):  # whether a second search of the day would have seen it, nobody can say
            self.blind_today.add(k)

    def pick(self, data: st.DataObject, among: set[int], most: int = 1) -> list[int]:
        return data.draw(st.lists(st.sampled_from(sorted(among)), min_size=1, max_size=most, unique=True))

    # -- days and replies

    @initialize(number=st.integers(1, 4))
    def a_list_with_a_few_memories(self, number: int) -> None:
        for _ in range(number):
            self.save(by_turn=False)

    @rule(gap=st.sampled_from([1, 1, 1, 3]))
    def another_day(self, gap: int) -> None:
        self.day = days_after(self.day, gap)
        self.left_today.clear()
        self.blind_today.clear()

    @rule(data=st.data(), late=st.sampled_from([False, False, False, True]), match_first=st.booleans())
    def reply(self, data: st.DataObject, late: bool, match_first: bool) -> None:
        again, self.undone_turn = self.undone_turn, None
        if again is not None and data.draw(st.booleans(), label="a new attempt of the undone turn"):
            self.turn = again
        else:
            self.turns += 1
            self.turn = f"turn {self.turns}"
        day = days_after(self.day, -1) if late else self.day
        self.in_order &= not late
        there = self.here() | self.left_today if late else self.here()
        there = {k for k in there if self.born.get(k, day) <= day}
        hidden = (
            set(data.draw(st.lists(st.sampled_from(sorted(there)), unique=True), label="hidden")) if there else set()
        )
        blind = self.blind_today
        if data.draw(st.booleans(), label="the shorter form names who was seen"):
            search: Given = searched(day, seen=sorted(there - hidden - blind))
        else:
            search = searched(day, hidden=sorted(hidden | blind))
        self.diary.tell(day, "search", hidden=hidden | blind)
        found = there - hidden - self.pinned()
        hits = self.pick(data, found, 3) if found and data.draw(st.booleans(), label="matches") else []
        match: Given = matched(*hits, day=day, turn=self.turn)
        for k in hits:
            self.diary.tell(day, "use", k, turn=self.turn)
        facts = [match, search] if match_first else [search, match]
        self.happens(*facts)
        self.facts = [search, match]

    @precondition(lambda self: self.facts)
    @rule(which=st.integers(0, 1))
    def a_fact_is_told_again(self, which: int) -> None:
        """Of a parallel reply, or folded twice: no change. (Not after an undo or a recount: it would outlive that.)"""
        self.happens(self.facts[which])

    @rule(data=st.data(), by_turn=st.booleans(), edits=st.booleans())
    def edit_or_say_again(self, data: st.DataObject, by_turn: bool, edits: bool) -> None:
        among = self.here() - self.pinned() if by_turn else self.here()
        if not among:
            return
        (k,) = self.pick(data, among)
        who: dict[str, Any] = {"actor": "persona" if by_turn else "person", "turn": self.turn}
        if edits:
            self.happens(happening(e.MemoryEdited, self.day, memory=m(k), text=f"{k}", before="", **who))
        else:
            self.happens(happening(e.MemoryAffirmed, self.day, memory=m(k), **who))
        self.diary.tell(self.day, "use", k, turn=self.turn, by_person=not by_turn)

    # -- coming and going

    @rule(by_turn=st.booleans())
    def save(self, by_turn: bool) -> None:
        k = len(self.born) + 1
        self.born[k] = self.day
        turn = self.turn if by_turn else None
        self.happens(saved(k, day=self.day, turn=turn, actor="persona" if by_turn else "person"))
        self.diary.tell(self.day, "save", k, turn=turn)

    @rule(carried=st.integers(0, 9), back=st.integers(0, 20), is_pinned=st.booleans())
    def import_one(self, carried: int, back: int, is_pinned: bool) -> None:
        k = len(self.born) + 1
        self.born[k] = self.day
        last = days_after(self.day, -back)
        self.happens(saved(k, day=self.day, actor="import", unused_days=carried, last_used_day=last, pinned=is_pinned))
        self.diary.tell(self.day, "save", k, days=carried)
        if is_pinned:
            self.diary.tell(self.day, "pin", k)

    @rule(data=st.data(), who=st.sampled_from(["turn", "person", "person in a turn"]), evict=st.booleans())
    def forget(self, data: st.DataObject, who: str, evict: bool) -> None:
        among = self.here() - self.pinned()
        if not among:
            return
        (k,) = self.pick(data, among)
        by_person = who != "turn"
        turn = None if who == "person" else self.turn
        fields: dict[str, Any] = {"memory": m(k), "actor": "person" if by_person else "persona", "turn": turn}
        if evict:
            self.happens(happening(e.MemoryEvicted, self.day, for_memory=m(99), reason="", **fields))
        else:
            self.happens(happening(e.MemoryDeleted, self.day, **fields))
        self.leaves(k)
        self.diary.tell(self.day, "remove", k, turn=turn, by_person=by_person)

    @precondition(lambda self: self.away())
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        (k,) = self.pick(data, self.away())
        self.happens(happening(e.MemoryRestored, self.day, memory=m(k)))
        self.diary.tell(self.day, "restore", k)

    @rule(data=st.data())
    def pin_or_unpin(self, data: st.DataObject) -> None:
        if not self.here():
            return
        (k,) = self.pick(data, self.here())
        kind, what = (e.MemoryUnpinned, "unpin") if k in self.pinned() else (e.MemoryPinned, "pin")
        self.happens(happening(kind, self.day, memory=m(k)))
        self.diary.tell(self.day, what, k)  # type: ignore[arg-type]

    @rule(data=st.data(), days=st.integers(0, 9))
    def recount(self, data: st.DataObject, days: int) -> None:
        among = self.here() - self.pinned()
        if among:
            (k,) = self.pick(data, among)
            self.happens(happening(e.UseRecounted, self.day, unused_days={m(k): days}))
            self.diary.tell(self.day, "recount", k, days=days)
            self.facts = []

    # -- undo

    @rule(back=st.integers(0, 3))
    def undo_a_turn(self, back: int) -> None:
        """D14: what the model and the search did, unless it is pinned, or a person edited it afterwards."""
        turns = list(dict.fromkeys(t.turn for t in self.diary.told if t.turn and not t.void and not t.by_person))
        if back >= len(turns):
            return
        turn = turns[-1 - back]
        assert turn is not None
        done = [(n, t) for n, t in enumerate(self.diary.told) if t.turn == turn and not t.void and not t.by_person]
        last = max(n for n, _ in done)
        edited_since = {t.memory for t in self.diary.told[last + 1 :] if t.what in ("use", "restore") and t.by_person}
        touched = {t.memory for _, t in done if isinstance(t.memory, int)} - self.pinned() - edited_since
        gone = {k.int: v.turn for k, v in self.list.gone.items()}
        removed = {t.memory for _, t in done if t.what == "save"} & touched
        back_again = {k for k in touched - removed if gone.get(k) == turn}
        self.diary.undo(turn, touched)
        unmatched = {k for k in touched - removed if k in self.here() or k in gone}
        self.happens(
            rolled_back(
                turn,
                self.day,
                removed=[m(k) for k in removed if isinstance(k, int)],
                restored=[m(k) for k in back_again],
                unmatched={m(k): self.diary.last_use(k) for k in unmatched},
            )
        )
        self.facts = []
        self.undone_turn = turn

    # -- and always

    @invariant()
    def the_counters_are_those_of_the_naive_model(self) -> None:
        want = self.diary.counters()
        assert {k.int for k in self.list.memories} == set(want)
        for k, counter in want.items():
            assert isinstance(k, int)
            memory = self.list.memories[m(k)]
            assert memory.pinned is counter.pinned
            if self.in_order or not memory.pinned:  # a pin freezes the counter as it is then; late days do not thaw it
                assert memory.unused_days(self.list.days) == counter.days, f"memory {k}"


TestRandomWeeks = RandomWeeks.TestCase
TestRandomWeeks.settings = settings(max_examples=150, stateful_step_count=40)
