"""Checks of input that every face shares."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Literal, cast, get_args

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.events import Actor
from remembrancer.domain.identity import check_key

Platform = Literal["web", "discord", "telegram", "api"]
SHOWN = 80
LONGEST_WAIT = 86_400
FIRST_YEAR, LAST_YEAR = 1900, 2999


def checked_actor(actor: object) -> Actor:
    """One of the actors (SPEC 1).

    Raises:
        InvalidInput: nobody who acts.
    """
    if actor not in get_args(Actor):
        raise InvalidInput(f"{shown(actor)} is not an actor.", hint=f"Use {', '.join(get_args(Actor))}.")
    return cast("Actor", actor)


def checked_platform(platform: object) -> Platform:
    """Where a chat takes place (SPEC 1).

    Raises:
        InvalidInput: nowhere.
    """
    if platform not in get_args(Platform):
        raise InvalidInput(f"{shown(platform)} is not a platform.", hint="Use web, discord, telegram or api.")
    return cast("Platform", platform)


def checked_progress(progress: object) -> None:
    """Nothing, or something to call.

    Raises:
        InvalidInput: neither.
    """
    if progress is not None and not callable(progress):
        raise InvalidInput(f"progress must be something to call, not {shown(progress)}.")


def checked_turn(turn: object) -> str | None:
    """A turn's id of the caller's, if there is one.

    Raises:
        InvalidInput: no name.
    """
    return None if turn is None else check_key("turn", turn)


def checked_date(until: object) -> date | None:
    """A UTC date, given as one or as ISO text (D28).

    Raises:
        InvalidInput: no date.
    """
    if until is None or (isinstance(until, date) and not isinstance(until, datetime)):
        return until
    if isinstance(until, str):
        try:
            return date.fromisoformat(until)
        except ValueError:
            pass
    raise InvalidInput(f"{shown(until)} is not a date.", rule="D28", hint="Write it as 2026-05-12.")


def checked_flag(what: str, flag: object) -> bool:
    """True or false.

    Raises:
        InvalidInput: neither.
    """
    if not isinstance(flag, bool):
        raise InvalidInput(f"{what} is true or false, not {shown(flag)}.")
    return flag


def checked_number(what: str, number: object, low: int, high: int) -> int:
    """A whole number within its bounds.

    Raises:
        InvalidInput: another number, or none.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise InvalidInput(f"{what} must be a whole number from {low} to {high}, not {shown(number)}.")
    return number


def checked_moment(what: str, moment: object) -> datetime | None:
    """A moment in UTC, if there is one.

    Raises:
        InvalidInput: no moment, one of no zone, or of a year that nobody means.
    """
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput(
            f"{what} must be a moment with a time zone, not {shown(moment)}.", hint="As in 2026-05-03T10:00:00+00:00."
        )
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:  # at the ends of the calendar not every zone has every moment
        raise InvalidInput(f"{what} must lie between the years {FIRST_YEAR} and {LAST_YEAR}, not in {moment.year}.")
    return moment.astimezone(UTC)


def checked_seconds(what: str, seconds: object) -> float:
    """A duration.

    Raises:
        InvalidInput: no number, or one below 0, or one without end.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_WAIT:
        raise InvalidInput(f"{what} must be seconds, from 0 to {LONGEST_WAIT}, not {shown(seconds)}.")
    return float(seconds)


def checked_text(what: str, text: object) -> str:
    """A text that is no name and no memory: a message, instructions. May be empty.

    Raises:
        InvalidInput: not a text, or with NUL or half a surrogate pair.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"The {what} must be a text, not {type(text).__name__}.")
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInput(f"The {what} holds a NUL or half a surrogate pair, which is no text.")
    return text


def answer_erased() -> InvalidInput:
    """What is said to a repetition of a request whose answer can no longer be read."""
    return InvalidInput(
        "This request was answered before, and what it was about has been erased since.",
        rule="D24",
        hint="Use a new request_id.",
    )


def shown(value: object) -> str:
    """What was sent, as an error shows it: cut, and on one line."""
    try:
        written = repr(value)
    except Exception:  # noqa: BLE001 (a number of ten thousand digits, or an object that cannot describe itself)
        return f"a {type(value).__name__}"
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}\u2026"
