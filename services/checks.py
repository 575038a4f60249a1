"""Checks of input that every face shares."""

from __future__ import annotations

from datetime import date, datetime
from typing import cast, get_args

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.events import Actor


def checked_actor(actor: object) -> Actor:
    """One of the actors (SPEC 1).

    Raises:
        InvalidInput: nobody who acts.
    """
    if actor not in get_args(Actor):
        raise InvalidInput(f"{actor!r} is not an actor.", hint=f"Use {', '.join(get_args(Actor))}.")
    return cast("Actor", actor)


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
    raise InvalidInput(f"{until!r} is not a date.", rule="D28", hint="Write it as 2026-05-12.")


def checked_flag(what: str, flag: object) -> bool:
    """True or false.

    Raises:
        InvalidInput: neither.
    """
    if not isinstance(flag, bool):
        raise InvalidInput(f"{what} is true or false, not {flag!r}.")
    return flag
