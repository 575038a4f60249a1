"""The story of `why`: what happened to a memory, line by line (U1, C30)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

from remembrancer.domain.life import Life, Line, Moved
from remembrancer.services.answers import Position
from remembrancer.services.answers_why import Seen, StoryLine
from remembrancer.services.lives import Record


def story(
    record: Record, moves: Sequence[Moved], searched: Mapping[date, tuple[datetime, str | None]]
) -> list[StoryLine]:
    """Everything in its order: what was done to it, matches, near misses, and its way into the drawer.

    Args:
        searched: when the list was searched first on the days on which it came to rest, and in which turn.
    """
    told = [_line(line) for line in sorted([*record.life.lines, *record.match_lines], key=_version)]
    told += [_near_miss(seen, record.life.text) for seen in record.nearly]
    told += [_rested(record.life, move, *searched.get(move.day, (None, None))) for move in moves if move.resting]
    return sorted(told, key=lambda line: line.at)


def _rested(life: Life, move: Moved, at: datetime | None, turn: str | None) -> StoryLine:
    """Where no search is known to have done it, it was so at the end of that day, or from its import on."""
    assert life.saved is not None
    imported = move.day == life.saved.recorded_at.date()
    return StoryLine(
        at=at or (life.saved.recorded_at if imported else datetime.combine(move.day, time.max, UTC)),
        actor="system",
        turn=turn,
        event="Rested",
        sentence=f"It went to the drawer on {move.day}: {move.unused_days} counted days without a match.",
        before=life.text,
        after=life.text,
        position=None,
    )


def _version(line: Line) -> int:
    return line.recorded.version


def _line(line: Line) -> StoryLine:
    r = line.recorded
    return StoryLine(
        at=r.recorded_at,
        actor=r.event.actor,
        turn=r.event.turn,
        event=type(r.event).__name__,
        sentence=line.sentence,
        before=line.before,
        after=line.after,
        position=Position(shard=r.shard, position=r.position),
    )


def _near_miss(seen: Seen, text: str) -> StoryLine:
    lacked = ", but others matched better"
    if seen.threshold is not None and seen.score < seen.threshold:
        lacked = f" of {seen.threshold:.3f}"
    return StoryLine(
        at=seen.at,
        actor="persona",
        turn=seen.turn,
        event="NearMiss",
        sentence=f"A message passed it by: number {seen.rank}, score {seen.score:.3f}{lacked} "
        f"(similarity {seen.similarity:.3f}, words {seen.words:.3f}).",
        before=text,
        after=text,
        position=None,
    )
