"""Messages as people name them on the command line: by the beginning of an id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.services.cli.screen import shown

if TYPE_CHECKING:
    from remembrancer.services.remembrancer import Remembrancer

ChatKey = Annotated[str, typer.Argument(metavar="CHAT", help="Name of the chat, as `reply` gives it.")]
MessageId = Annotated[str, typer.Argument(metavar="MESSAGE", help="Id of the message, or its first 8 digits or more.")]
MOST = 1_000


def message_id(memory: Remembrancer, chat: str, given: str) -> UUID:
    """The message of a chat that an id or the beginning of one means.

    Raises:
        InvalidInput: no id; or more than one message begins like that.
        NotFound: none does.
    """
    digits = given.replace("-", "").lower()
    if len(digits) < 8 or len(digits) > 32 or set(digits) - set("0123456789abcdef"):
        raise InvalidInput(f"{shown(given)} is not the id of a message.", hint="`chat show` lists them.")
    if len(digits) == 32:
        return UUID(digits)
    found = {m.id for m in memory.messages(chat, limit=MOST).messages if m.id.hex.startswith(digits)}
    if not found:
        raise NotFound(f"No message among the last {MOST} begins with {given}.", rule="D31", hint="Give the whole id.")
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} messages begin with {given}.", hint="Give more digits.")
    return found.pop()
