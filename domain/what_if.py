"""The same history under other numbers (U3): what would be active, resting, forgotten.

Every list is folded twice, by the same fold: as it was, and as it would have been. Facts stand in both: what was saved,
edited and pinned, who was searched on which day, which candidates a search found with which scores. What the numbers
decide is decided again: which of the recorded candidates matched, who was forgotten for whom. Where nothing comes out
differently both courses are one and the same state, so a history under its own numbers changes nothing.

What no record can answer is counted, not guessed (`Unknown`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.eviction import first_in_line
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import MAX_USES
from remembrancer.domain.persona_memory import evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.sent import Sent, SentDesk
from remembrancer.domain.two_courses import TwoCourses, may_return, uses_of, with_fields

NUMBERS = ("rest_after_days", "match_limit", "match_threshold", "list_capacity", "desk_limit", "pin_capacity")
"""What may be asked about."""
MATCHING = ("match_limit", "match_threshold")
CANDIDATES = 10
"""So many of a search are recorded; no policy lets more of them match."""
TURNS_KEPT = 10_000

Unknown = Literal[
    "not_searched", "beyond_the_record", "another_model", "without_search", "without_record", "refused_saves", "erased",
    "refused_pins",
]  # fmt: skip
"""What the record cannot answer, see `services/answers_what_if.py`."""


@dataclass(slots=True)
class Totals:
    """What one course of the history came to."""

    replies: int = 0
    desk: int = 0
    """Memories on the desk, summed over the replies."""
    tokens: int = 0
    """Tokens of the memories that were sent, summed over the replies."""
    matches: int = 0
    recalls: int = 0
    evictions: int = 0
    refused: int = 0
    """Saves and pins that happened and would have been refused."""


class WhatIf:
    """Folds a history in order (see `in_order`), event by event, in memory of the lists' size.

    Args:
        numbers: the numbers asked about; for all others each day's own policy holds.
        policy_of: the policy that was in force, by its version (an int) or at a moment.
        model: the embedding model that a threshold asked about is meant for (D5).
        counts: does a reply, or a list, belong to what the totals are of?
        tokens: counts the tokens of a text.
    """

    def __init__(
        self,
        numbers: Mapping[str, Any],
        *,
        policy_of: Callable[[int | datetime], Policy],
        model: str | None,
        counts: Callable[[e.ReplySearched | ListKey], bool],
        tokens: Callable[[str], int],
    ) -> None:
        self.lists: dict[UUID, TwoCourses] = {}
        self.now, self.then = Totals(), Totals()
        self.unknown: Counter[Unknown] = Counter()
        self.events = 0
        self._numbers, self._policy_of, self._model, self._counts = numbers, policy_of, model, counts
        self._sent = Sent(tokens)
        self._matching = any(name in numbers for name in MATCHING)
        self._searched: OrderedDict[str, tuple[bool, str | None]] = OrderedDict()
        """Of the latest turns: was there a search, and of which server (T14)?"""
        self._differs: dict[tuple[UUID, str], list[bool]] = defaultdict(list)
        """Of a list and a turn, attempt by attempt: were other matches put in the place of those that come?"""
        self._used: dict[str, set[UUID]] = defaultdict(set)
        """Lists in which a turn has uses that it had not."""

    def know(self, lists: Mapping[UUID, ListKey]) -> None:
        """These lists, by stream, are folded, too; what was taken of others before is not looked at again."""
        for stream, key in lists.items():
            self.lists.setdefault(stream, TwoCourses(key))

    def under(self, policy: Policy) -> Policy:
        """A policy with the numbers asked about in place of its own."""
        return policy.model_copy(update=dict(self._numbers))

    def take(self, r: e.Recorded) -> None:
        """Fold the next event."""
        self.events += 1
        match r.event:
            case e.ReplySearched() as ev:
                self._reply(ev, r)
            case e.TurnRegenerated() as ev:
                self._take_back(ev.turn, r)
            case e.ChatRewound() as ev:
                for turn in ev.turns:
                    self._take_back(turn, r)
            case _ if (x := self.lists.get(r.stream)) is not None:
                x.version = r.version
                self._list(x, r)

    def end(self) -> None:
        """Nothing more comes for now."""
        for x in self.lists.values():
            self._no_save_came(x)

    # -- lists -----------------------------------------------------------------------------------------------------

    def _no_save_came(self, x: TwoCourses) -> None:
        room, x.room = x.room, None
        if room is not None:
            self._evicted(x, 1, 1)
            x.take([room])

    def _list(self, x: TwoCourses, r: e.Recorded) -> None:
        ev = r.event
        if isinstance(ev, e.MemorySaved | e.MemoryUnpinned):
            if x.room is not None and getattr(x.room.event, "for_memory", None) != ev.memory:
                self._no_save_came(x)
            room, x.room = x.room, None
            self._comes_in(x, r, ev, room)
            return
        self._no_save_came(x)
        match ev:
            case e.MemoryEvicted():
                x.room = r
            case e.MemoriesMatched():
                self._matched(x, r, ev)
            case e.TurnRolledBack():
                self._rolled_back(x, r, ev)
            case e.UseRecounted() if self._matching:  # it was counted from what is counted again here
                x.take([r], [])
            case e.ListSearched() if ev.seen is not None and (more := x.only_then):
                x.take([r], [with_fields(r, seen=(*ev.seen, *sorted(more)))])
            case e.MemoryPinned() if self._no_pin(x, ev):
                self.then.refused += self._counts(x.key)
                x.take([r], [])
            case _:
                if isinstance(ev, e.SubjectErased) and self._counts(x.key):
                    self.unknown["erased"] += 1
                x.take([r])

    def _no_pin(self, x: TwoCourses, ev: e.MemoryPinned) -> bool:
        most = self._numbers.get("pin_capacity")
        m = x.then.memories.get(x.then_id(ev.memory))
        return most is not None and m is not None and not m.pinned and x.then.pinned >= most

    def _comes_in(
        self, x: TwoCourses, r: e.Recorded, ev: e.MemorySaved | e.MemoryUnpinned, room: e.Recorded | None
    ) -> None:
        """A memory that counts for the list comes, and may need room (T12-T14, D7, D29, R16)."""
        recorded = self._policy_of(ev.policy if isinstance(ev, e.MemorySaved) and ev.policy else r.recorded_at)
        policy = self.under(recorded)
        facts = [r] if room is None else [room, r]
        if x.one and (policy.list_capacity, policy.rest_after_days) == (
            recorded.list_capacity,
            recorded.rest_after_days,
        ):
            self._evicted(x, room is not None, room is not None)
            x.take(facts)
        else:
            instead = self._with_room(x, r, ev, policy, room)
            self._evicted(x, room is not None, len(instead) > 1)
            x.take(facts, None if instead == facts else instead)
        x.was_full |= room is not None or x.now.unpinned >= recorded.list_capacity

    def _with_room(
        self,
        x: TwoCourses,
        r: e.Recorded,
        ev: e.MemorySaved | e.MemoryUnpinned,
        policy: Policy,
        room: e.Recorded | None,
    ) -> list[e.Recorded]:
        """What would have been recorded: with an eviction or without; as a duplicate; nothing, if it was refused."""
        s = x.then
        if isinstance(ev, e.MemorySaved):
            if ev.actor == "import" or ev.pinned:
                return [r]
            if (same := x.still_says(ev.text)) is not None:
                x.same[ev.memory] = same
                again = e.MemoryAffirmed(**_stamp(ev), memory=same, day=ev.day, protects=ev.actor == "person")
                return [e.Recorded(again, r.stream, r.version, r.shard, r.position, r.recorded_at)]
        elif (m := s.memories.get(x.then_id(ev.memory))) is None or not m.pinned:
            return []
        if s.unpinned < policy.list_capacity:
            return [r]
        first = first_in_line(s.memories.values(), s.days, policy, ev.day, is_global=x.key.scope == "global")
        if first is None or not self._may_forget(x, ev, forgot=room is not None):
            self.then.refused += self._counts(x.key)
            if isinstance(ev, e.MemorySaved):
                x.refused.add(ev.memory)
            return []
        if ev.turn is not None and ev.actor != "person":
            x.forgotten_by[ev.turn].append(first.memory.id)
        if room is not None and getattr(room.event, "memory", None) == first.memory.id:
            return [room, r]
        gone = e.MemoryEvicted(**_stamp(ev), memory=first.memory.id, for_memory=ev.memory, reason=first.reason)
        return [e.Recorded(gone, r.stream, r.version, r.shard, r.position, r.recorded_at), r]

    def _may_forget(self, x: TwoCourses, ev: e.MemorySaved | e.MemoryUnpinned, *, forgot: bool) -> bool:
        """May this actor make room? A person is taken to agree to whatever is first in line (D7)."""
        if forgot or ev.actor in ("person", "system"):
            return True
        if ev.actor == "deep":
            return False
        if ev.turn is None:
            return ev.day in x.then.days
        searched, server = self._searched.get(ev.turn, (False, None))
        return searched and (x.key.scope != "server" or server == x.key.subject)

    def _evicted(self, x: TwoCourses, now: int, then: int) -> None:
        if self._counts(x.key):
            self.now.evictions += now
            self.then.evictions += then

    # -- taking back -----------------------------------------------------------------------------------------------

    def _rolled_back(self, x: TwoCourses, r: e.Recorded, ev: e.TurnRolledBack) -> None:
        """Take back what the turn would have done (D14)."""
        if x.one:
            x.take([r])
        else:
            unmatched = uses_of(x.then, ev.turn)
            for k, day in ev.unmatched.items():  # a use that is one of many is no longer told apart: the record says it
                m = x.then.memories.get(x.then_id(k))
                if m is not None and m.id not in unmatched and len(m.uses) >= MAX_USES:
                    unmatched[m.id] = day
            back = [k for k in x.forgotten_by.pop(ev.turn or "", []) if k not in ev.restored and may_return(x.then, k)]
            removed = tuple(k for k in ev.removed if k not in x.same)
            x.take([r], [with_fields(r, removed=removed, restored=(*ev.restored, *back), unmatched=unmatched)])
        self._take_back(ev.turn, r)

    def _take_back(self, turn: str | None, r: e.Recorded) -> None:
        """Uses that the turn would have had in lists that say nothing of it."""
        for stream in self._used.pop(turn or "", ()):
            x = self.lists[stream]
            if unmatched := uses_of(x.then, turn):
                fields = x.key._asdict() | {"id": r.event.id, "tenant": r.event.tenant, "turn": turn}
                back = e.TurnRolledBack(**fields, unmatched=unmatched)
                x.then = evolve(x.then, e.Recorded(back, stream, r.version, r.shard, r.position, r.recorded_at))

    # -- replies ---------------------------------------------------------------------------------------------------

    def _matched(self, x: TwoCourses, r: e.Recorded, ev: e.MemoriesMatched) -> None:
        decided = self._differs.get((r.stream, ev.turn or ""))
        if not decided:
            self.unknown["without_record"] += self._matching and self._counts(x.key)
            x.take([r])
            return
        x.take([r], [] if decided.pop(0) else None)
        if not decided:
            del self._differs[r.stream, ev.turn or ""]

    def _reply(self, ev: e.ReplySearched, r: e.Recorded) -> None:
        lists = [self.lists[seen.stream] for seen in ev.lists if seen.stream in self.lists]
        streams = [seen.stream for seen in ev.lists if seen.stream in self.lists]
        counts = self._counts(ev)
        if not (lists or counts):
            return
        turn = ev.turn or ""
        self._searched[turn] = ev.search == "ok", ev.server
        while len(self._searched) > TURNS_KEPT:
            self._searched.popitem(last=False)
        recorded = self._policy_of(ev.policy or r.recorded_at)
        policy = self.under(recorded)
        desk = self._desk(ev, lists, recorded, policy) if counts else None
        matched = [c for c in ev.candidates if c.matched]
        then = matched if ev.search != "ok" else self._decide(ev, lists, policy, counts=counts)
        if ev.search == "unavailable" and counts and self._matching:
            self.unknown["without_search"] += 1
        for stream, x in zip(streams, lists, strict=True):
            self._use(x, stream, r, ev, matched, then)
        if desk is not None:
            self._count(desk, matched, then)

    def _decide(
        self, ev: e.ReplySearched, lists: Sequence[TwoCourses], policy: Policy, *, counts: bool
    ) -> list[e.Candidate]:
        """Which of the recorded candidates would have matched (T3)."""

        def home(memory: UUID) -> TwoCourses | None:
            return next((x for x in lists if x.has(memory)), None)

        threshold = ev.threshold
        if (asked := self._numbers.get("match_threshold")) is not None:
            if ev.model == self._model:
                threshold = asked
            else:
                self.unknown["another_model"] += counts
        there = []
        for c in ev.candidates:
            x = home(c.memory)
            if x is None or not x.lost(c.memory):
                other = c.memory if x is None else x.then_id(c.memory)
                there.append(c if other is c.memory else c.model_copy(update={"memory": other}))
        best = there[: policy.match_limit]
        chosen = [c for c in best if threshold is not None and c.score >= threshold]
        if counts and len(there) < len(ev.candidates) == CANDIDATES and len(chosen) == len(there) < policy.match_limit:
            self.unknown["beyond_the_record"] += 1
        missed = False
        for x in lists:
            if more := x.only_then:
                x.unsearched |= more
                missed = True
        self.unknown["not_searched"] += missed and counts
        return chosen

    def _use(
        self, x: TwoCourses, stream: UUID, r: e.Recorded, ev: e.ReplySearched,
        matched: Collection[e.Candidate], then: Collection[e.Candidate],
    ) -> None:  # fmt: skip
        """What the search does to a list. Where it is the same, the list's own event comes and says it."""
        turn = ev.turn or ""
        facts = {x.then_id(c.memory) for c in matched if x.has(c.memory)}
        here = [c for c in then if c.memory in x.then.memories or (c.memory in facts and c.memory in x.then.gone)]
        differs = {c.memory for c in here} != facts
        if facts:
            self._differs[stream, turn].append(differs)
        if differs and here:
            made = e.MemoriesMatched(
                id=ev.id, tenant=ev.tenant, actor=ev.actor, turn=ev.turn, **x.key._asdict(), day=ev.day,
                matches=tuple(e.Match(**c.model_dump(exclude={"matched"})) for c in here),
            )  # fmt: skip
            x.take([], [e.Recorded(made, stream, x.version, r.shard, r.position, r.recorded_at)])
            self._used[turn].add(stream)

    def _desk(self, ev: e.ReplySearched, lists: list[TwoCourses], recorded: Policy, policy: Policy) -> SentDesk:
        same = (policy.rest_after_days, policy.desk_limit) == (recorded.rest_after_days, recorded.desk_limit)
        desk = self._sent.recorded(ev, [(x.key, x.now) for x in lists])
        if same and all(x.one for x in lists):
            return desk
        return desk.beside(self._sent.chosen(ev, [(x.key, x.then) for x in lists], policy))

    def _count(self, desk: SentDesk, matched: Collection[e.Candidate], then: Collection[e.Candidate]) -> None:
        recalled = [c.memory for c in matched if c.recalled]
        for totals, sent, used, late in (
            (self.now, desk, matched, recalled),
            (self.then, desk.other, then, [c.memory for c in then if c.memory not in desk.other]),
        ):
            totals.replies += 1
            totals.desk += len(sent)
            totals.tokens += self._sent.tokens(sent, late)
            totals.matches += len(used)
            totals.recalls += len(late)


def _stamp(ev: e.ListEvent) -> dict[str, Any]:
    """The fields that every event of a list has."""
    return {name: getattr(ev, name) for name in e.ListEvent.model_fields}
