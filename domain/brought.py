"""What imports brought into a chat, and which of it a file has again (D21).

A file of a chat is aligned with what came before from the same chat elsewhere. *As it was brought* is each message as a
file last had it: what somebody changed here since is no part of it, so that a change there can be told from one here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.common import in_common
from remembrancer.domain.text import ERASED
from remembrancer.domain.transcript import ReadChat, Role

Place = tuple[int, ...]
"""Where in its file a message stands among the others: compared like words are, so that between two is always room."""
_REF = re.compile(r"(.{1,100})#(-?[0-9]{1,9}(?:\.-?[0-9]{1,9})*)")


@dataclass(frozen=True, slots=True)
class Brought:
    """A message as it was brought. `n` is its number here; `source` is the same for all of one chat elsewhere."""

    n: int
    message: UUID
    source: str
    place: Place
    role: Role
    text: str
    said_at: datetime | None


class Given(NamedTuple):
    """A message of a file. `others` are its other wordings there, from which this one was chosen."""

    role: Role
    text: str
    said_at: datetime | None
    others: Sequence[str] = ()


class Aligned(NamedTuple):
    """For each message of a file, which one before it is, or None; and whether both are of the same chat elsewhere."""

    before: Sequence[int | None]
    same: bool
    alike: int


def ref_of(source: str, place: Place) -> str:
    """What a message that was brought is known by."""
    return f"{source}#{'.'.join(map(str, place))}"


def brought_by(read: ReadChat, stream: UUID, upto: int) -> dict[UUID, Brought]:
    """What imports brought into a chat, what a fork inherited of it included; what has gone here since, too."""
    found: dict[UUID, Brought] = {}
    for r in read(stream, upto):
        match r.event:
            case e.ChatForked() as ev:
                inherited = brought_by(read, ev.parent_stream, ev.at_version)
                found |= {b.message: replace(b, n=b.n - ev.upto) for b in inherited.values() if b.n <= ev.upto}
            case e.MessagePosted(actor="import") as ev if ref := _REF.fullmatch(ev.ref or ""):
                place = tuple(map(int, ref[2].split(".")))
                found[ev.message] = Brought(r.version, ev.message, ref[1], place, ev.role, ev.text, ev.said_at)
            case e.MessageEdited(actor="import") as ev if ev.message in found:
                found[ev.message] = replace(found[ev.message], text=ev.text)
    return found


def sources_of(brought: Iterable[Brought]) -> dict[str, list[Brought]]:
    """The same by chat elsewhere, each in the order of its file."""
    by_source: dict[str, list[Brought]] = defaultdict(list)
    for b in brought:
        by_source[b.source].append(b)
    return {source: sorted(all_of_it, key=lambda b: (b.place, b.n)) for source, all_of_it in by_source.items()}


def between(a: Place | None, b: Place | None) -> Place:
    """A place after `a` and before `b`, which is later; None is the beginning, or the end."""
    if a is None:
        return (0,) if b is None else (b[0] - 1,)
    after = (*a[:-1], a[-1] + 1)
    if b is None or after < b:
        return after
    return (*a, 1) if (*a, 1) < b else (*a, b[len(a)] - 1)


def places_of(before: Sequence[Brought], found: Sequence[int | None]) -> list[Place]:
    """Where each message of a file stands: one that is new stands directly behind the one before it in the file."""
    places: list[Place] = []
    last: Place | None = None
    following = 0
    for j in found:
        if j is None:
            last = between(last, before[following].place if following < len(before) else None)
        else:
            last, following = before[j].place, j + 1
        places.append(last)
    return places


def align(before: Sequence[Brought], now: Sequence[Given]) -> Aligned:
    """Which message of a file is which of those that came before, both in the order of the file.

    Equal is what has role, words and date in common. What lies between the same two equal ones is the same message
    worded anew if its date is; if one's words are among the other's wordings; or, where dates say nothing, if as many
    are left on both sides.

    A file is of the same chat if more than half of the shorter side is found again, or messages of two moments are. A
    common beginning alone is no sign: every chat with a character begins with its greeting.
    """
    work = _Alignment(before, now)
    work.equal()
    moments = {g.said_at for i, g in enumerate(now) if work.found[i] is not None and g.said_at is not None}
    work.worded_anew()
    readable = sum(b.text != ERASED for b in before)
    same = 2 * work.alike > min(readable, len(now)) or len(moments) > 1
    return Aligned(work.found, same, work.alike)


class _Alignment:
    """An alignment under way: `found` says of each message of the file which one before it is."""

    def __init__(self, before: Sequence[Brought], now: Sequence[Given]) -> None:
        self._before, self._now = before, now
        self._free = dict.fromkeys(range(len(before)))
        self._rest: Sequence[int] = ()
        self.found: list[int | None] = [None] * len(now)
        self.alike = 0
        self._dates_before = Counter((b.role, b.said_at) for b in before)
        self._dates_now = Counter((g.role, g.said_at) for g in now)

    def _match(self, i: int, j: int, *, alike: bool = True) -> None:
        self.found[i] = j
        del self._free[j]
        self.alike += alike

    def equal(self) -> None:
        """First in order, then dated ones that were moved there."""
        before, now = [_key(b) for b in self._before], [_key(g) for g in self._now]
        for i, j in in_common(now, before):
            self._match(i, j)
        self._pair(
            [(i, now[i]) for i, g in enumerate(self._now) if g.said_at is not None],
            [(j, before[j]) for j in self._free],
        )
        self._rest = [*self._free]

    def _pair(self, mine: Iterable[tuple[int, Hashable]], theirs: Iterable[tuple[int, Hashable]]) -> None:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for j, key in theirs:
            waiting[key].append(j)
        for i, key in mine:
            if self.found[i] is None and (queue := waiting.get(key)):
                self._match(i, queue.popleft())

    def runs(self) -> list[tuple[int, int]]:
        """Where the file has messages in a row that were not found, from and to."""
        missing = [i for i, j in enumerate(self.found) if j is None]
        starts = [i for n, i in enumerate(missing) if n == 0 or missing[n - 1] != i - 1]
        ends = [i + 1 for n, i in enumerate(missing) if n + 1 == len(missing) or missing[n + 1] != i + 1]
        return list(zip(starts, ends, strict=True))

    def worded_anew(self) -> None:
        """The others, each among what lies between its neighbours, in order; the surer signs first."""
        for sign in (self._by_date, self._by_words, self._by_choice, self._by_number):
            for start, end in self.runs():
                left = -1 if start == 0 else self.found[start - 1]
                right = len(self._before) if end == len(self._now) else self.found[end]
                assert left is not None
                assert right is not None
                rest = self._rest[bisect_left(self._rest, left + 1) : bisect_left(self._rest, right)]
                if free := [j for j in rest if j in self._free]:
                    sign(range(start, end), free)

    def _by_date(self, run: Sequence[int], free: Sequence[int]) -> None:
        self._in_order(run, free, lambda m: (m.role, m.said_at) if self._tells(m) else None)

    def _by_words(self, run: Sequence[int], free: Sequence[int]) -> None:
        """One that had no date may have one now, or the other way round."""
        now, before = [self._now[i] for i in run], [self._before[j] for j in free]
        if all(g.said_at is None for g in now) or all(b.said_at is None for b in before):
            self._in_order(run, free, lambda m: (m.role, m.text))

    def _by_choice(self, run: Sequence[int], free: Sequence[int]) -> None:
        words: dict[Hashable, list[int]] = defaultdict(list)
        for j in free:
            words[self._before[j].role, self._before[j].text].append(j)
        last = -1
        for i in run:
            g = self._now[i]
            # Its own words first: they may be here under the date of another choice.
            for text in (g.text, *g.others) if g.others else ():
                here = words.get((g.role, text), [])
                if (k := bisect_right(here, last)) < len(here):
                    last = here[k]
                    self._match(i, last)
                    break

    def _by_number(self, run: Sequence[int], free: Sequence[int]) -> None:
        """Where as many are left on both sides; at the end of the file more may have been said since."""
        pairs = list(zip(run, free, strict=False))
        as_many = len(run) == len(free) or (run[-1] == len(self._now) - 1 and len(free) < len(run))
        if as_many and all(self._may_be(self._now[i], self._before[j]) for i, j in pairs):
            for i, j in pairs:
                self._match(i, j, alike=False)

    def _in_order(
        self, run: Sequence[int], free: Sequence[int], key: Callable[[Brought | Given], Hashable | None]
    ) -> None:
        """Those of equal keys; None is equal to nothing."""
        mine = [(i, k) for i in run if (k := key(self._now[i])) is not None]
        theirs = [(j, k) for j in free if (k := key(self._before[j])) is not None]
        for m, n in in_common([k for _, k in mine], [k for _, k in theirs]):
            self._match(mine[m][0], theirs[n][0])

    def _tells(self, m: Brought | Given) -> bool:
        """Has it a date that no other of its role has?"""
        at = (m.role, m.said_at)
        return m.said_at is not None and self._dates_before[at] <= 1 and self._dates_now[at] <= 1

    def _may_be(self, g: Given, b: Brought) -> bool:
        return g.role == b.role and not (self._tells(g) and self._tells(b))


def _key(m: Brought | Given) -> tuple[Role, str, datetime | None]:
    return m.role, m.text, m.said_at
