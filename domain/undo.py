"""Taking back a turn, and bringing back a memory (D14, D8, U2).

An undo takes back what the persona and the search did in a turn to one list, never what a person did: saves go; edits,
deletes and evictions come back as they were; matches are taken back. What it leaves as it is, it names with the reason.
Recorded facts of other turns stand: the chat day stays counted (`ListSearched` has no part in this).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotFound, SameAsAnother
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import Context, MemoryList

PINNED = "it is pinned"
BY_A_PERSON = "a person edited or confirmed it"
BY_A_LATER_TURN = "a later turn changed it"


@dataclass(slots=True)
class _Done:
    """What a turn did to a list, by memory."""

    saved: set[UUID] = field(default_factory=set)
    edited: set[UUID] = field(default_factory=set)
    used: set[UUID] = field(default_factory=set)
    forgotten: set[UUID] = field(default_factory=set)


def _done(events: Sequence[e.Recorded]) -> _Done:
    """Since it was last undone: an undo twice is the same as once."""
    done = _Done()
    for r in events:
        ev = r.event
        if isinstance(ev, e.TurnRolledBack):
            done = _Done()
        if isinstance(ev, e.MemoriesMatched):
            done.used |= {m.memory for m in ev.matches}
        if ev.actor == "person":
            continue
        match ev:
            case e.MemorySaved():
                done.saved.add(ev.memory)
            case e.MemoryEdited():
                done.edited.add(ev.memory)
                done.used.add(ev.memory)
            case e.MemoryAffirmed():
                done.used.add(ev.memory)
            case e.MemoryEvicted() | e.MemoryDeleted():
                done.forgotten.add(ev.memory)
    return done


def roll_back(
    s: MemoryList, events: Sequence[e.Recorded], ctx: Context, last_use: Callable[[Memory], date]
) -> e.TurnRolledBack | None:
    """The event that takes back the turn `ctx.turn` on a list, or None if there is nothing (left) to take back.

    Args:
        events: this list's events of the turn, in order, earlier undos of it included.
        last_use: the day of a memory's last use but for this turn's; asked where the state no longer keeps it.
    """
    turn, done = ctx.turn, _done(events)
    removed: list[UUID] = []
    restored: list[UUID] = []
    reverted: list[UUID] = []
    kept: list[tuple[UUID, str]] = []
    for k in sorted(done.saved):
        m = s.memories.get(k)
        if m is None:
            if k in s.gone:
                removed.append(k)  # forgotten since: an undo of that brings back nothing
        elif (why := _stays(m, turn)) is not None:
            kept.append((k, why))
        else:
            removed.append(k)
    for k in sorted(done.edited - done.saved):
        m = s.memories.get(k)
        if m is not None:
            why = _stays(m, turn)
            if why is None:
                reverted.append(k)
            else:
                kept.append((k, why))
    texts = {m.folded: m.id for m in s.memories.values() if m.id not in removed}
    for k in sorted(done.forgotten - done.saved):
        gone = s.gone.get(k)
        if gone is None or gone.turn != turn:
            continue
        same = texts.get(gone.memory.folded)
        if same is None:
            restored.append(k)
            if k in done.edited and gone.memory.changed_by == turn:
                reverted.append(k)
        else:
            kept.append((k, f"the list says the same again in {same}"))
    # A recount may have given this turn uses that it had not when it was played (U3).
    done.used |= {k for k, m in s.memories.items() if not m.pinned and any(u.turn == turn for u in m.uses)}
    unmatched: dict[UUID, date] = {}
    for k in sorted(done.used - set(removed)):
        m = s.memories.get(k) or (s.gone[k].memory if k in s.gone else None)
        if m is None:
            continue
        if m.pinned:
            if all(k != other for other, _ in kept):
                kept.append((k, PINNED))
            continue
        unmatched[k] = _without(m, turn, last_use)
    if not (removed or restored or reverted or unmatched or kept):
        return None
    return e.TurnRolledBack(
        **ctx.stamp(),
        removed=tuple(removed),
        restored=tuple(restored),
        reverted=tuple(reverted),
        unmatched=unmatched,
        kept=tuple(kept),
    )


def _stays(m: Memory, turn: str | None) -> str | None:
    """Why a memory that the turn wrote or edited stays as it is; None if it does not."""
    if m.pinned:
        return PINNED
    if m.changed_by == turn:
        return None
    return BY_A_PERSON if m.changed_by is None else BY_A_LATER_TURN


def _without(m: Memory, turn: str | None, last_use: Callable[[Memory], date]) -> date:
    """The base day of a memory when this turn's uses are taken out."""
    if any(u.turn == turn for u in m.uses):
        return m.base_day
    return last_use(m)


def restore(s: MemoryList, memory: UUID, ctx: Context) -> tuple[e.Event, ...]:
    """Bring back an evicted or deleted memory: counter 0, protected (U2). One that is there stays as it is.

    Caps do not bind and nothing is forgotten for it (D8).

    Raises:
        NotFound: it never was in this list, was undone, or was cleared, which cannot be undone (R18).
        SameAsAnother: the list says the same by now (D12).
    """
    if memory in s.memories:
        return ()
    gone = s.gone.get(memory)
    if gone is None or gone.moved:
        raise NotFound(
            f"There is nothing to restore of {memory}.",
            rule="R18",
            hint="What was cleared or undone does not come back; `history` tells what became of it.",
            memory=str(memory),
        )
    if (same := s.same_text(gone.memory.text)) is not None:
        raise SameAsAnother(
            f"The list says the same by now: {same.id}.",
            rule="D12",
            hint="Nothing is missing; delete that one first if you want this one back.",
            memory=str(same.id),
        )
    return (e.MemoryRestored(**ctx.stamp(), memory=memory, day=ctx.day),)
