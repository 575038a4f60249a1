"""The aggregate `PersonaMemory`: one list of memories, consistent in itself.

From top to bottom: the state, the fold of events into it, and the decisions. Decisions are pure: they take the state,
what is asked and the context, and give the events, or raise the refusal. Facts (searches and matches) are not decided
here but absorbed by the fold in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.decay import NOBODY, SearchedDays, left_out
from remembrancer.domain.errors import (
    IsPinned,
    ListFull,
    NotAllowed,
    NotFound,
    PinsFull,
    Refused,
    SameAsAnother,
    Tombstoned,
)
from remembrancer.domain.eviction import InLine, first_in_line
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory, Use
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import ERASED, check_text, folded

# -- state ---------------------------------------------------------------------------------------------------------


class Gone(NamedTuple):
    """A memory that was evicted, deleted or moved: what a restore or an undo brings back."""

    memory: Memory
    turn: str | None
    """The turn that did it and would bring it back; None if a person did (D14)."""
    away_from: date
    """The first day whose searches did not see it because it was away, not because it was hidden."""
    moved: bool = False
    """It lives on in another list (R11): it is not restored here."""


@dataclass(frozen=True, slots=True)
class MemoryList:
    """What the events of one list add up to."""

    memories: Mapping[UUID, Memory] = field(default_factory=dict)
    days: SearchedDays = SearchedDays()
    gone: Mapping[UUID, Gone] = field(default_factory=dict)
    cleared: bool = False
    """The unpinned ones were cleared and nothing has come since: the pinned ones may be asked about (R18)."""
    erased: bool = False

    @property
    def unpinned(self) -> int:
        """How many count for `list_capacity` (R9)."""
        return sum(1 for m in self.memories.values() if not m.pinned)

    @property
    def pinned(self) -> int:
        """How many count for `pin_capacity` (R9)."""
        return sum(1 for m in self.memories.values() if m.pinned)

    def same_text(self, text: str, but: UUID | None = None) -> Memory | None:
        """The memory whose folded text equals this one's (D12)."""
        wanted = folded(text)
        return next(
            (m for m in self.memories.values() if m.id != but and m.folded == wanted and m.text != ERASED), None
        )


# -- fold ----------------------------------------------------------------------------------------------------------


def evolve(state: MemoryList, recorded: e.Recorded) -> MemoryList:
    """The state after one more event. What it does not know it ignores: facts come in any order (DESIGN 2)."""
    apply = _FOLD.get(type(recorded.event))
    return state if apply is None else apply(state, recorded.event, recorded.recorded_at)


def with_events(state: MemoryList, events: Iterable[e.Event], stream: UUID, version: int, at: datetime) -> MemoryList:
    """The state as it will be when these new events, recorded at `at`, have come after `version`."""
    for n, ev in enumerate(events, start=version + 1):
        state = evolve(state, e.Recorded(ev, stream, n, stream.bytes[0], 0, at))
    return state


def _put(state: MemoryList, memory: Memory, **changes: Any) -> MemoryList:
    return replace(state, memories={**state.memories, memory.id: memory}, **changes)


def _saved(s: MemoryList, ev: e.MemorySaved, at: datetime) -> MemoryList:
    memory = Memory(
        id=ev.memory,
        text=ev.text,
        created_at=ev.created_at or at,
        updated_at=ev.updated_at or ev.created_at or at,
        actor=ev.by or ev.actor,
        base_day=ev.day,
        base_days=ev.unused_days,
        base_matched_at=ev.last_matched_at,
        until=ev.until,
        tags=ev.tags,
        channels=ev.channels,
        turn=ev.turn,
        source=ev.source,
        protected=ev.protected,
        pinned=ev.pinned,
        frozen=ev.unused_days,
        changed_by=None if ev.actor == "person" else ev.turn,
    )
    return _put(s, memory, cleared=False)


def _edited(s: MemoryList, ev: e.MemoryEdited, at: datetime) -> MemoryList:
    if (m := s.memories.get(ev.memory)) is None:
        return s
    m = replace(
        _use(m, ev, ev.day).reworded(None if ev.actor == "person" else ev.turn),
        text=ev.text,
        updated_at=m.updated_at if ev.text == m.text else at,
        until=ev.until,
        tags=ev.tags,
        channels=ev.channels,
        protected=m.protected or ev.protects,
    )
    return _put(s, m)


def _use(m: Memory, ev: e.Event, day: date, matched_at: datetime | None = None) -> Memory:
    """A use by a turn can be taken back one day; one by a person cannot, and needs no keeping (D14)."""
    if m.frozen:
        m = replace(m, frozen=0)
    if ev.turn is not None and (matched_at is not None or ev.actor != "person"):
        return m.used(day, ev.turn, matched_at)
    return m.used_for_good(day, matched_at)


def _affirmed(s: MemoryList, ev: e.MemoryAffirmed, at: datetime) -> MemoryList:
    if (m := s.memories.get(ev.memory)) is None:
        return s
    m = replace(_use(m, ev, ev.day), protected=m.protected or ev.protects)
    return _put(s, m.reworded(None) if ev.actor == "person" else m)


def _matched(s: MemoryList, ev: e.MemoriesMatched, at: datetime) -> MemoryList:
    return _each(s, [match.memory for match in ev.matches], lambda m: _use(m, ev, ev.day, at))


def _each(s: MemoryList, ids: Collection[UUID], change: Callable[[Memory], Memory]) -> MemoryList:
    """Change those of these memories that are here, or were and may come back."""
    here = {k: change(s.memories[k]) for k in ids if k in s.memories}
    away = {k: s.gone[k]._replace(memory=change(s.gone[k].memory)) for k in ids if k in s.gone}
    if not here and not away:
        return s
    memories = {**s.memories, **here} if here else s.memories
    return replace(s, memories=memories, gone={**s.gone, **away} if away else s.gone)


def _searched(s: MemoryList, ev: e.ListSearched, at: datetime) -> MemoryList:
    return replace(s, days=s.days.searched(ev.day, left_out(ev.hidden, ev.seen)))


def _pinned(s: MemoryList, ev: e.MemoryPinned, at: datetime) -> MemoryList:
    m = s.memories.get(ev.memory)
    if m is None or m.pinned:
        return s
    return _put(s, replace(m, frozen=m.unused_days(s.days), pinned=True), cleared=False)


def _unpinned(s: MemoryList, ev: e.MemoryUnpinned, at: datetime) -> MemoryList:
    m = s.memories.get(ev.memory)
    if m is None or not m.pinned:
        return s
    return _put(s, replace(m, pinned=False, frozen=0, base_day=max(m.base_day, ev.day), base_days=0), cleared=False)


def _gone(s: MemoryList, ev: e.MemoryEvicted | e.MemoryDeleted | e.MemoryMoved, at: datetime) -> MemoryList:
    if (m := s.memories.get(ev.memory)) is None:
        return s
    rest = {k: v for k, v in s.memories.items() if k != m.id}
    today = at.date()
    hidden_today = m.id in s.days.off.get(today, NOBODY)
    turn = None if ev.actor == "person" else ev.turn
    moved = isinstance(ev, e.MemoryMoved)
    gone = Gone(m, turn, today + timedelta(days=1) if hidden_today else today, moved)
    return replace(s, memories=rest, gone={**s.gone, m.id: gone})


def _restored(s: MemoryList, ev: e.MemoryRestored, at: datetime) -> MemoryList:
    if ev.memory not in s.gone:
        return s
    m = s.gone[ev.memory].memory
    gone = {k: v for k, v in s.gone.items() if k != m.id}
    m = replace(m, base_day=max(m.base_day, ev.day), base_days=0, protected=True, pinned=False, frozen=0)
    return _put(s, m, gone=gone, cleared=False)


def _rolled_back(s: MemoryList, ev: e.TurnRolledBack, at: datetime) -> MemoryList:
    gone = {k: v for k, v in s.gone.items() if k not in ev.removed}
    memories, days = {k: v for k, v in s.memories.items() if k not in ev.removed}, s.days
    for k in ev.restored:
        if k in gone:
            back = gone.pop(k)
            memories[k] = back.memory
            days = days.seen_from(back.away_from, k)
    for k in ev.reverted:
        if k in memories and ev.turn is not None:
            memories[k] = memories[k].as_before(ev.turn)
    s = replace(s, memories=memories, gone=gone, days=days, cleared=False)

    def without(m: Memory) -> Memory:
        uses = tuple(u for u in m.uses if u.turn != ev.turn)
        return replace(m, uses=uses, base_day=min(m.base_day, ev.unmatched[m.id]))

    return _each(s, ev.unmatched, without)


def _cleared(s: MemoryList, ev: e.MemoriesCleared, at: datetime) -> MemoryList:
    memories = {k: m for k, m in s.memories.items() if m.pinned is not ev.pinned}
    gone = {k: v for k, v in s.gone.items() if v.memory.pinned is not ev.pinned}
    return replace(s, memories=memories, gone=gone, cleared=not ev.pinned)


def _recounted(s: MemoryList, ev: e.UseRecounted, at: datetime) -> MemoryList:
    changed = {}
    for k, n in ev.unused_days.items():
        if (m := s.memories.get(k)) is None:
            continue
        if (c := ev.counted.get(k)) is None:
            changed[k] = replace(m, base_day=ev.day, base_days=n, uses=(), base_matched_at=m.last_matched_at)
        else:
            uses = tuple(Use(u.day, u.turn, u.matched_at) for u in c.uses)
            changed[k] = replace(
                m,
                base_day=c.base_day,
                base_days=c.base_days,
                base_matched_at=c.base_matched_at,
                uses=uses,
                frozen=n if m.pinned else m.frozen,
            )
    return replace(s, memories={**s.memories, **changed})


def _erased(s: MemoryList, ev: e.SubjectErased, at: datetime) -> MemoryList:
    return MemoryList(days=s.days, erased=True)


_FOLD: dict[type[e.Event], Callable[[MemoryList, Any, datetime], MemoryList]] = {
    e.MemorySaved: _saved,
    e.MemoryEdited: _edited,
    e.MemoryAffirmed: _affirmed,
    e.MemoriesMatched: _matched,
    e.ListSearched: _searched,
    e.MemoryPinned: _pinned,
    e.MemoryUnpinned: _unpinned,
    e.MemoryEvicted: _gone,
    e.MemoryDeleted: _gone,
    e.MemoryMoved: _gone,
    e.MemoryRestored: _restored,
    e.TurnRolledBack: _rolled_back,
    e.MemoriesCleared: _cleared,
    e.UseRecounted: _recounted,
    e.SubjectErased: _erased,
}


# -- decisions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision needs to know besides the list: who acts, when, under which policy, and how ids are made."""

    tenant: str
    key: ListKey
    actor: e.Actor
    day: date
    policy: Policy
    new_id: Callable[[], UUID]
    policy_version: int = 0
    turn: str | None = None
    request_id: str | None = None
    search_ok: bool | None = None
    """Did the search of this turn's reply succeed (T14)? None outside a turn: then a search of the day counts (D29)."""
    without_vector: Collection[UUID] = ()
    """Memories that have no vector yet (D22)."""
    tombstones: Collection[str] = ()
    """Folded sentences of the subject that a person deleted or edited away (D13)."""

    @property
    def by_model(self) -> bool:
        """Does a model act, in a reply or in the background?"""
        return self.actor in ("persona", "deep")

    def stamp(self) -> dict[str, Any]:
        """The fields that every event of this decision shares."""
        return {
            "id": self.new_id(),
            "tenant": self.tenant,
            "persona": self.key.persona,
            "scope": self.key.scope,
            "subject": self.key.subject,
            "actor": self.actor,
            "request_id": self.request_id,
            "turn": self.turn,
        }


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to be saved."""

    text: str
    until: date | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    source: e.Source = e.Source()


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save came to: the events, the memory, and what was forgotten for it."""

    events: tuple[e.Event, ...]
    memory: UUID
    duplicate: bool = False
    forgotten: InLine | None = None


def save(s: MemoryList, new: NewMemory, ctx: Context, *, memory: UUID, make_room: UUID | None = None) -> Saved:
    """Save a memory into its list.

    Raises:
        InvalidInput, TextTooLong: the text (D10).
        NotAllowed: a model would write a global memory (R13).
        Tombstoned: a model would learn again what a person deleted (D13).
        ListFull: no room (T14, D7); the error names what would be forgotten, if anything may be.
    """
    check_text(new.text, ctx.policy.max_characters)
    _not_a_model_in_a_global_list(ctx)
    if (same := s.same_text(new.text)) is not None:
        return Saved(_affirm(same, new, ctx), same.id, duplicate=True)
    _check_tombstone(new.text, ctx)
    forgotten = _room(s, ctx, make_room)
    events: list[e.Event] = []
    if forgotten is not None:
        events.append(_evict(forgotten, memory, ctx))
    events.append(
        e.MemorySaved(
            **ctx.stamp(),
            memory=memory,
            text=new.text,
            day=ctx.day,
            until=new.until,
            tags=new.tags,
            channels=new.channels,
            protected=ctx.actor == "person",
            source=new.source,
            policy=ctx.policy_version,
        )
    )
    return Saved(tuple(events), memory, forgotten=forgotten)


def _affirm(same: Memory, new: NewMemory, ctx: Context) -> tuple[e.Event, ...]:
    """The same sentence again is a use (D12); a new date comes with it, where the actor may edit (D28)."""
    if new.until is not None and new.until != same.until and not (same.pinned and ctx.by_model):
        return (_edit_event(same, ctx, until=new.until),)
    return (e.MemoryAffirmed(**ctx.stamp(), memory=same.id, day=ctx.day, protects=ctx.actor == "person"),)


def _check_tombstone(text: str, ctx: Context) -> None:
    if ctx.by_model and folded(text) in ctx.tombstones:
        raise Tombstoned(
            "A person deleted this sentence, so it is not learned again.",
            rule="D13",
            hint="A person can save it, or restore the memory.",
        )


def _room(s: MemoryList, ctx: Context, make_room: UUID | None) -> InLine | None:
    """What has to be forgotten so that one more unpinned memory fits; None if there is room.

    Raises:
        ListFull: there is no room and none can be made by this actor, now.
    """
    if s.unpinned < ctx.policy.list_capacity or ctx.actor == "import":
        return None
    first = first_in_line(
        s.memories.values(),
        s.days,
        ctx.policy,
        ctx.day,
        is_global=ctx.key.scope == "global",
        without_vector=ctx.without_vector,
    )
    facts: dict[str, Any] = {"count": s.unpinned, "capacity": ctx.policy.list_capacity}
    full = f"The list of {ctx.key} is full: it holds {s.unpinned} of {ctx.policy.list_capacity} memories"
    if first is None:
        why = (
            "nothing is forgotten while memory decay is off"
            if not ctx.policy.decay_enabled
            else "none may be forgotten"
        )
        raise ListFull(
            f"{full}, and {why}.",
            rule="T14",
            hint="Delete a memory, pin one, or wait until one rests.",
            **facts,
        )
    if ctx.actor == "persona":
        searched = ctx.day in s.days if ctx.turn is None else ctx.search_ok
        if searched:
            return first
        raise ListFull(
            f"{full}, and the search was not available {'today' if ctx.turn is None else 'for this reply'}, "
            "so nothing is forgotten for it.",
            rule="D29" if ctx.turn is None else "T14",
            hint="Try again with a later reply, or let a person make room.",
            **facts,
        )
    if ctx.actor == "deep":
        raise ListFull(
            f"{full}, and the background pass forgets nothing.", rule="R16", hint="Make room first.", **facts
        )
    if make_room == first.memory.id:
        return first
    facts |= {"would_forget": str(first.memory.id), "text": first.memory.text}
    named = f"{first.memory.id} \u201c{first.memory.text}\u201d ({first.reason})"
    if make_room is None:
        raise ListFull(
            f"{full}. Saving would forget {named}.",
            rule="D7",
            hint=f"Say make_room={first.memory.id} to do so.",
            **facts,
        )
    raise ListFull(
        f"{full}, and {make_room} is not first in line to be forgotten: that is {named}.",
        rule="D7",
        hint=f"Say make_room={first.memory.id} to forget that one.",
        **facts,
    )


def _evict(first: InLine, for_memory: UUID, ctx: Context) -> e.MemoryEvicted:
    return e.MemoryEvicted(
        **ctx.stamp(), memory=first.memory.id, for_memory=for_memory, reason=first.reason, policy=ctx.policy_version
    )


class Keep:
    """Stands for "as it is" where None would mean "none"."""


KEEP = Keep()


def edit(
    s: MemoryList,
    memory: UUID,
    ctx: Context,
    *,
    text: str | Keep = KEEP,
    until: date | Keep | None = KEEP,
    tags: tuple[str, ...] | Keep = KEEP,
    channels: tuple[str, ...] | Keep = KEEP,
) -> tuple[e.Event, ...]:
    """Change a memory. Even unchanged, this counts as use and, by a person, protects it (D11, T13).

    Raises:
        NotFound: no such memory in this list.
        NotAllowed: a model would change a global memory (R13).
        IsPinned: a model would change a pinned memory (R15).
        SameAsAnother: the text would equal another memory's (D12); the error carries its id.
        Tombstoned: a model would bring back what a person deleted (D13).
        InvalidInput, TextTooLong: the text (D10).
    """
    m = _known(s, memory)
    _not_a_model_in_a_global_list(ctx)
    if ctx.by_model and m.pinned:
        raise _out_of_reach(m, "edited")
    if not isinstance(text, Keep) and text != m.text:
        check_text(text, ctx.policy.max_characters)
        if (same := s.same_text(text, but=m.id)) is not None:
            raise SameAsAnother(
                f"Another memory of this list says the same: {same.id}.",
                rule="D12",
                hint="Delete one of the two, or word this one differently.",
                memory=str(same.id),
            )
        if folded(text) != m.folded:
            _check_tombstone(text, ctx)
    return (_edit_event(m, ctx, text=text, until=until, tags=tags, channels=channels),)


def _edit_event(
    m: Memory,
    ctx: Context,
    *,
    text: str | Keep = KEEP,
    until: date | Keep | None = KEEP,
    tags: tuple[str, ...] | Keep = KEEP,
    channels: tuple[str, ...] | Keep = KEEP,
) -> e.MemoryEdited:
    return e.MemoryEdited(
        **ctx.stamp(),
        memory=m.id,
        text=m.text if isinstance(text, Keep) else text,
        before=m.text,
        day=ctx.day,
        until=m.until if isinstance(until, Keep) else until,
        tags=m.tags if isinstance(tags, Keep) else tags,
        channels=m.channels if isinstance(channels, Keep) else channels,
        protects=ctx.actor == "person",
    )


def delete(s: MemoryList, memory: UUID, ctx: Context) -> tuple[e.Event, ...]:
    """Delete a memory. The persona may delete any of its own lists that is not pinned (R13, R15, D11).

    Raises:
        NotFound, NotAllowed, IsPinned.
    """
    m = _known(s, memory)
    _not_a_model_in_a_global_list(ctx)
    if ctx.by_model and m.pinned:
        raise _out_of_reach(m, "deleted")
    return (e.MemoryDeleted(**ctx.stamp(), memory=m.id),)


def pin(s: MemoryList, memory: UUID, ctx: Context) -> tuple[e.Event, ...]:
    """Pin a memory; a pinned one stays as it is.

    Raises:
        NotFound; NotAllowed: only a person pins; PinsFull (D9), which says what is pinned.
    """
    m = _known(s, memory)
    _only_a_person(ctx, "pin")
    if m.pinned:
        return ()
    if s.pinned >= ctx.policy.pin_capacity:
        pinned = sorted((p for p in s.memories.values() if p.pinned), key=lambda p: (p.created_at, p.id))
        named = "; ".join(f"{p.id} \u201c{p.text}\u201d" for p in pinned)
        raise PinsFull(
            f"{s.pinned} of {ctx.policy.pin_capacity} memories of this list are pinned already: {named}.",
            rule="D9",
            hint="Unpin one of them first.",
            pinned=[{"id": str(p.id), "text": p.text} for p in pinned],
            capacity=ctx.policy.pin_capacity,
        )
    return (e.MemoryPinned(**ctx.stamp(), memory=m.id, day=ctx.day),)


def unpin(
    s: MemoryList, memory: UUID, ctx: Context, *, make_room: UUID | None = None
) -> tuple[tuple[e.Event, ...], InLine | None]:
    """Unpin a memory: its counter is 0 (D3), and into a full list it needs room like a save (D7).

    Raises:
        NotFound; NotAllowed; ListFull.
    """
    m = _known(s, memory)
    _only_a_person(ctx, "unpin")
    if not m.pinned:
        return (), None
    forgotten = _room(s, ctx, make_room)
    events: tuple[e.Event, ...] = (e.MemoryUnpinned(**ctx.stamp(), memory=m.id, day=ctx.day),)
    if forgotten is not None:
        events = (_evict(forgotten, m.id, ctx), *events)
    return events, forgotten


def clear(s: MemoryList, ctx: Context, *, pinned: bool = False) -> tuple[e.Event, ...]:
    """Clear a list for good: first every unpinned memory, and only then, as a step of its own, the pinned ones (R18).

    Raises:
        NotAllowed: only a person clears; Refused: the second step before the first.
    """
    _only_a_person(ctx, "clear")
    if pinned and (not s.cleared or s.unpinned):
        raise Refused(
            "The pinned memories can be cleared only after the others: "
            "they are moments that the person marked and protected from the AI.",
            rule="R18",
            hint="Clear the unpinned memories first, then say pinned.",
            pinned=s.pinned,
            unpinned=s.unpinned,
        )
    return (e.MemoriesCleared(**ctx.stamp(), pinned=pinned, count=s.pinned if pinned else s.unpinned),)


def _known(s: MemoryList, memory: UUID) -> Memory:
    if (m := s.memories.get(memory)) is None:
        raise NotFound(
            f"There is no memory {memory}.",
            rule="D31",
            hint="`list` shows the memories that there are.",
            memory=str(memory),
        )
    return m


def _out_of_reach(m: Memory, done: str) -> IsPinned:
    return IsPinned(
        f"The memory {m.id} is pinned and cannot be {done} by the AI.",
        rule="R15",
        hint="A person can change it.",
        memory=str(m.id),
    )


def _not_a_model_in_a_global_list(ctx: Context) -> None:
    if ctx.by_model and ctx.key.scope == "global":
        raise NotAllowed(
            "Only a person can write global memories.",
            rule="R13",
            hint="Save it as a personal memory, or let the person do it.",
        )


def _only_a_person(ctx: Context, what: str) -> None:
    if ctx.actor != "person":
        raise NotAllowed(f"Only a person can {what} memories.", rule="R15", hint="Ask the person to do it.")


__all__ = [
    "KEEP",
    "Context",
    "Gone",
    "Keep",
    "MemoryList",
    "NewMemory",
    "Saved",
    "Use",
    "clear",
    "delete",
    "edit",
    "evolve",
    "pin",
    "save",
    "unpin",
    "with_events",
]
