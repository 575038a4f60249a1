"""One memory as its list knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal, NamedTuple
from uuid import UUID

from remembrancer.domain.decay import SearchedDays, rests
from remembrancer.domain.events import Actor, Source
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import folded

MAX_USES = 16
"""Uses kept one by one so that an undo can take them back; older ones are summed up in `base_day`."""

State = Literal["active", "resting", "expired"]


class Use(NamedTuple):
    """A use that an undo of its turn would take back (D14). `matched_at` is None for an edit or a duplicate save."""

    day: date
    turn: str | None
    matched_at: datetime | None


class Wording(NamedTuple):
    """What an edit changes, as it was before the edit of a turn: an undo of that turn brings it back (D14)."""

    turn: str
    text: str
    until: date | None
    tags: tuple[str, ...]
    channels: tuple[str, ...]
    updated_at: datetime
    changed_by: str | None


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory, its stamps and its uses. Everything else (counter, resting, recent) is derived from it at read time."""

    id: UUID
    text: str
    created_at: datetime
    updated_at: datetime
    actor: Actor
    base_day: date
    """The last day of a use that is certain: the save, or uses folded together."""
    base_days: int = 0
    """Days counted before `base_day` that an import or a recount carried over."""
    base_matched_at: datetime | None = None
    uses: tuple[Use, ...] = ()
    until: date | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    turn: str | None = None
    source: Source = Source()
    protected: bool = False
    pinned: bool = False
    changed_by: str | None = None
    """The turn that wrote or last edited it; None if a person or an import did."""
    before: tuple[Wording, ...] = ()
    """What turns have edited since a person last did, the latest last."""
    frozen: int = 0
    """The counter at the moment of pinning: while pinned it does not tick (D3)."""

    def reworded(self, turn: str | None) -> Memory:
        """Ready for an edit: a turn's can be taken back, a person's ends what could be."""
        if turn is None:
            return replace(self, changed_by=None, before=())
        was = Wording(turn, self.text, self.until, self.tags, self.channels, self.updated_at, self.changed_by)
        return replace(self, changed_by=turn, before=(*self.before, was)[-MAX_USES:])

    def as_before(self, turn: str) -> Memory:
        """Without the latest edits, as far as they are this turn's."""
        m = self
        while m.before and m.before[-1].turn == turn:
            was = m.before[-1]
            m = replace(
                m,
                text=was.text,
                until=was.until,
                tags=was.tags,
                channels=was.channels,
                updated_at=was.updated_at,
                changed_by=was.changed_by,
                before=m.before[:-1],
            )
        return m

    @property
    def since(self) -> date:
        """The day of the last use (D1)."""
        return max([self.base_day, *(u.day for u in self.uses)])

    @property
    def carried(self) -> int:
        """Days counted before `base_day`, until a use on that day or after it."""
        return 0 if any(u.day >= self.base_day for u in self.uses) else self.base_days

    @property
    def last_matched_at(self) -> datetime | None:
        """When a message last brought it to mind, or None if none ever did."""
        stamps = [u.matched_at for u in self.uses if u.matched_at is not None]
        if self.base_matched_at is not None:
            stamps.append(self.base_matched_at)
        return max(stamps, default=None)

    @property
    def folded(self) -> str:
        """The text as duplicates are compared (D12)."""
        return folded(self.text)

    def used(self, day: date, turn: str | None, matched_at: datetime | None) -> Memory:
        """After one more use. The oldest of many are folded into the base, so that a busy memory stays small."""
        uses = (*self.uses, Use(day, turn, matched_at))
        if len(uses) <= MAX_USES:
            return replace(self, uses=uses)
        return replace(self, uses=uses[1:]).used_for_good(uses[0].day, uses[0].matched_at)

    def used_for_good(self, day: date, matched_at: datetime | None) -> Memory:
        """After a use that nothing takes back. One that comes late, of a day before the base, changes no counter."""
        return replace(
            self,
            base_day=max(self.base_day, day),
            base_days=0 if day >= self.base_day else self.base_days,
            base_matched_at=later(self.base_matched_at, matched_at),
        )

    def unused_days(self, days: SearchedDays) -> int:
        """The counter of T1."""
        if self.pinned:
            return self.frozen
        return self.carried + days.unused_days(self.id, self.since)

    def expired(self, today: date) -> bool:
        """Its `until` has passed (D28)."""
        return self.until is not None and today > self.until

    def state(self, days: SearchedDays, policy: Policy, today: date) -> State:
        """Active, resting, or expired (T5, D28)."""
        if self.expired(today):
            return "expired"
        resting = rests(
            self.unused_days(days),
            pinned=self.pinned,
            rest_after_days=policy.rest_after_days,
            decay_enabled=policy.decay_enabled,
        )
        return "resting" if resting else "active"


def later(a: datetime | None, b: datetime | None) -> datetime | None:
    """The later of two stamps, either of which may be missing."""
    if a is None or b is None:
        return a or b
    return max(a, b)
