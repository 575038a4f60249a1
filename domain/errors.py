"""The one family of errors. Each says what is wrong, which rule says so, and what to do.

A refused command leaves nothing behind. `type` is a stable slug for programs, `status` the HTTP status that stands
for it (RFC 9457); `str(error)` is the sentence that a person reads.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RemembrancerError(Exception):
    """Base of everything that Remembrancer raises on purpose.

    Args:
        message: what is wrong, one sentence.
        rule: the rule of `docs/rules.md` that decided it, e.g. ``"D9"``.
        hint: what the caller can do about it, one sentence.
        details: machine-readable facts (ids, counts, limits), shown in the JSON answer.
    """

    type: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, rule: str | None = None, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        parts = [self.message if self.rule is None else f"{self.message} ({self.rule})"]
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)


class InvalidInput(RemembrancerError):
    """The request cannot mean anything: a wrong type, an empty text, an unknown scope."""

    type = "invalid-input"
    status = 422
    exit_code = 2


class RequestReused(InvalidInput):
    """A `request_id` came again with another body (D19)."""

    type = "request-id-reused"


class DocumentTooLarge(InvalidInput):
    """A document has more bytes, pages, characters or passages than the policy allows."""

    type = "document-too-large"


class NotFound(RemembrancerError):
    """Nothing of that name for this tenant; also said of what belongs to another tenant (C23, D31)."""

    type = "not-found"
    status = 404


class Refused(RemembrancerError):
    """A rule says no. Nothing was written."""

    type = "refused"
    status = 409


class ListFull(Refused):
    """No room in the list, and nothing may be forgotten for it (T14), or a person has to choose (D7)."""

    type = "list-full"


class ShelfFull(Refused):
    """The documents of a persona or a server have as many passages as the policy allows."""

    type = "shelf-full"


class PinsFull(Refused):
    """The pin budget of the list is spent (D9)."""

    type = "pins-full"


class TextTooLong(Refused):
    """More code points than the policy allows (D10)."""

    type = "text-too-long"


class Tombstoned(Refused):
    """A person deleted or edited away this sentence; it is not learned again (D13)."""

    type = "tombstoned"


class IsPinned(Refused):
    """The memory is pinned, out of reach of the AI (R15)."""

    type = "pinned"


class SameAsAnother(Refused):
    """The edit would equal another memory of the list (D12)."""

    type = "same-as-another"


class NotAllowed(Refused):
    """This actor may not do that here: scope, privacy, learn switch, blocklist, challenge chat (R13, R17, T10)."""

    type = "not-allowed"


class Unavailable(RemembrancerError):
    """Something that a command cannot do without is not there: the database, the data directory."""

    type = "unavailable"
    status = 503
