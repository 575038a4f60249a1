"""Which past moment is meant: a turn, a time or a position, and whose lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import SHARDS, check_key
from remembrancer.services.answers import Position
from remembrancer.services.answers_moment import MomentAnswer
from remembrancer.services.checks import checked_moment, checked_number, shown
from remembrancer.services.remember import names

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?", re.ASCII)
POSITION = re.compile(r"(\d{1,3}):(\d{1,18})", re.ASCII)
_AS_IN = "As in 2026-05-03, 2026-05-03T10:00 (UTC) or 2026-05-03T12:00+02:00."


@dataclass(frozen=True, slots=True)
class When:
    """A moment that somebody asks about: one of `turn`, `time` and `position`."""

    turn: str | None = None
    attempt: int | None = None
    time: datetime | None = None
    position: Position | None = None
    persona: str | None = None
    users: tuple[str, ...] = ()
    server: str | None = None
    channel: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Was it said where, or with whom?"""
        return self.server is not None or bool(self.users)

    def like(self, other: MomentAnswer) -> When:
        """A time of no persona and no place: of the same persona, among the same people and in the same place."""
        if self.time is None or self.persona is not None or self.placed:
            return self
        return replace(
            self, persona=other.persona, users=other.users, server=other.server, channel=other.channel, tags=other.tags
        )


def checked_when(given: Any) -> When:
    """The moment that these fields mean: those of `Remembrancer.at`.

    Raises:
        InvalidInput: none of turn, time and position, or two of them; a field that is no such thing.
    """
    if isinstance(given, When):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{shown(given)} is not a moment.", hint="Give fields of `at`, as in {'turn': 't1'}.")
    if unknown := [name for name in given if name not in When.__slots__]:
        raise InvalidInput(f"A moment has no {shown(unknown[0])}.", hint=f"It has {', '.join(When.__slots__)}.")
    f = {name: value for name, value in given.items() if value is not None}
    which = [name for name in ("turn", "time", "position") if name in f]
    if len(which) != 1:
        said = f"A moment is not {' and '.join(which)} at once." if which else "Which moment?"
        raise InvalidInput(said, hint="Give one of turn, time and position.")
    users, tags = names("user", f.get("users", ()), in_order=True), names("tag", f.get("tags", ()))
    when = When(
        turn=check_key("turn", f["turn"]) if "turn" in f else None,
        attempt=checked_number("attempt", f["attempt"], 1, 2**31 - 1) if "attempt" in f else None,
        time=checked_time(f["time"]) if "time" in f else None,
        position=checked_position(f["position"]) if "position" in f else None,
        users=users,
        tags=tags,
        **{what: check_key(what, f[what]) for what in ("persona", "server", "channel") if what in f},
    )
    if when.turn is None and when.attempt is not None:
        raise InvalidInput("Only a turn has attempts.", hint="Leave out attempt, or name a turn.")
    if when.turn is not None and (when.persona is not None or when.placed or when.channel is not None or when.tags):
        raise InvalidInput(
            "A turn says itself who took part, and where.", hint="Leave out persona, users, server, channel and tags."
        )
    if (when.channel is not None or when.tags) and not when.placed:
        raise InvalidInput("A channel or a tag alone is no place.", hint="Name a server, or users.")
    return when


def checked_time(given: Any) -> datetime:
    """A moment, from one or from ISO text; a date is its beginning, and text without a zone is UTC.

    Raises:
        InvalidInput: no moment, or a `datetime` of no zone.
    """
    if isinstance(given, str) and MOMENT.fullmatch(given):
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(given)
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    if isinstance(given, date) and not isinstance(given, datetime):
        return datetime.combine(given, time(), UTC)
    if isinstance(given, datetime):
        with suppress(OverflowError):
            aware = checked_moment("time", given)
            assert aware is not None
            return aware.astimezone(UTC)
    raise InvalidInput(f"{shown(given)} is not a moment.", hint=_AS_IN)


def checked_position(given: Any) -> Position:
    """A position, from one or from text like 12:3456.

    Raises:
        InvalidInput: no position.
    """
    if isinstance(given, str) and (found := POSITION.fullmatch(given)):
        given = Position(shard=int(found[1]), position=int(found[2]))
    if isinstance(given, Position) and 0 <= given.shard < SHARDS and 0 <= given.position < 2**63:
        return given
    raise InvalidInput(
        f"{shown(given)} is not a position.", hint="As in 12:3456: the shard, 0 to 255, and the number of the event."
    )
