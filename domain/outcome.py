"""What comes out of a what-if, memory by memory; and what `--apply` records of it (U3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory, State
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.two_courses import TwoCourses

Where = State | Literal["forgotten", "not saved", "gone"]
"""How a memory stands: as `list` says it; forgotten to make room; its save refused; not there for another reason."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a memory stands in one course."""

    state: Where
    unused_days: int | None = None
    on_desk: bool = False
    last_matched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A memory that would stand otherwise."""

    memory: UUID
    key: ListKey
    text: str
    now: Standing
    then: Standing
    uncertain: bool = False
    """Searches ran that did not see it: it might have been matched, so its counter is at most this."""


def changes(x: TwoCourses, now: Policy, then: Policy, today: date) -> Iterator[Change]:
    """The memories of a list that would stand otherwise.

    Args:
        now, then: the policy in force, and with the numbers asked about.
    """
    desk_now, desk_then = _desk(x.now, now, today), _desk(x.then, then, today)
    for k in sorted({*x.now.memories, *x.only_then}):
        other = x.then_id(k)
        is_, would = x.now.memories.get(k), x.then.memories.get(other)
        text = (is_ or would or _gone(x, k)).text
        a = _standing(is_, x.now, now, today, desk_now, "forgotten" if k in x.now.gone else "gone")
        b = _standing(would, x.then, then, today, desk_then, "not saved" if k in x.refused else "forgotten")
        if a != b:
            yield Change(k, x.key, text, a, b, uncertain=other in x.unsearched and would is not None)


def standings(s: MemoryList, policy: Policy, today: date) -> dict[State, int]:
    """How many memories of a list are active, resting, expired."""
    counted: dict[State, int] = {"active": 0, "resting": 0, "expired": 0}
    for m in s.memories.values():
        counted[m.state(s.days, policy, today)] += 1
    return counted


def recounts(x: TwoCourses) -> dict[UUID, e.Counted]:
    """The use of the memories that are there, where it comes out otherwise: not of those pinned in one course alone.

    All of it, not the counter alone: what an undo of a turn leaves follows from the uses before (D14), and a pinned
    memory, whose counter stands (D3), has a last match.
    """
    found: dict[UUID, e.Counted] = {}
    for k, m in x.now.memories.items():
        other = x.then.memories.get(x.then_id(k))
        if other is None or m.pinned is not other.pinned:
            continue
        if _use(m) != _use(other):
            found[k] = e.Counted(
                base_day=other.base_day,
                base_days=other.base_days,
                base_matched_at=other.base_matched_at,
                uses=tuple(e.CountedUse(day=u.day, turn=u.turn, matched_at=u.matched_at) for u in other.uses),
            )
    return found


def _use(m: Memory) -> tuple[object, ...]:
    return m.base_day, m.base_days, m.base_matched_at, m.uses


def _desk(s: MemoryList, policy: Policy, today: date) -> set[UUID]:
    """The desk of this list alone, as `list` shows it (R12)."""
    may_be = [
        OnDesk(m.id, m.updated_at, m.pinned) for m in s.memories.values() if m.state(s.days, policy, today) == "active"
    ]
    return set(choose_desk([may_be], policy.desk_limit)[0])


def _standing(
    m: Memory | None, s: MemoryList, policy: Policy, today: date, desk: set[UUID], otherwise: Where
) -> Standing:
    if m is None:
        return Standing(otherwise)
    days = None if m.pinned else m.unused_days(s.days)
    return Standing(m.state(s.days, policy, today), days, m.id in desk, m.last_matched_at)


def _gone(x: TwoCourses, memory: UUID) -> Memory:
    return x.now.gone[memory].memory
