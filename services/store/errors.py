"""What only the store says. Callers retry conflicts; everybody else lets them pass."""

from __future__ import annotations

from eventsourcing.persistence import IntegrityError

from remembrancer.domain.errors import RemembrancerError, RequestReused, Unavailable


class VersionConflict(RemembrancerError, IntegrityError):
    """A stream moved on since it was read: load again and decide again. Nothing was written."""

    type = "version-conflict"
    status = 409


class KeyGone(VersionConflict):
    """A subject was erased since its texts were read: decide again, by what can still be read. Nothing was written."""

    type = "key-gone"


class UnknownEvent(Unavailable):
    """The store holds an event that this version does not know: a newer version wrote it."""

    type = "unknown-event"


class Tampered(RemembrancerError):
    """An encrypted text does not belong where it stands. The key is there, the seal is broken."""

    type = "tampered"


def reused() -> RequestReused:
    """What is said to a caller whose request id came before with another verb or body."""
    return RequestReused(
        "This request_id was used before, for another request.", rule="D19", hint="Use a new id for a new request."
    )
