"""What the replies of a chat cost, and when one costs unusually much (R8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from remembrancer.domain import events as e

LAST = 20
"""So many replies make the median."""
FIRST = 6
"""From this reply of a chat on something is noticed."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The last replies' costs, oldest first, how many there were in all, and whether the notice was given."""

    last: tuple[float, ...] = ()
    replies: int = 0
    noticed: bool = False

    def median(self) -> float:
        """Of the last twenty."""
        return median(self.last) if self.last else 0.0

    def unusual(self, cost: float, factor: float) -> bool:
        """Is this one, the next, worth the notice? Once per chat, and only against a median that is something."""
        middle = self.median()
        return not self.noticed and self.replies + 1 >= FIRST and 0 < factor * middle < cost


def evolve_costs(s: Costs, recorded: e.Recorded) -> Costs:
    """After one more event."""
    match recorded.event:
        case e.ReplyCosted() as ev:
            return replace(s, last=(*s.last, ev.cost)[-LAST:], replies=s.replies + 1)
        case e.HighCostNoticed():
            return replace(s, noticed=True)
    return s
