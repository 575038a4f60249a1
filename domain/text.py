"""Texts of memories: kept as sent, compared folded (D10, D12)."""

from __future__ import annotations

import unicodedata

from remembrancer.domain.errors import InvalidInput, TextTooLong

ERASED = "[erased]"
"""What a text reads as whose key is gone (D24). It never counts as equal to another text."""


def check_text(text: object, max_characters: int) -> str:
    """The text itself, never cut and never normalised, if it can be a memory.

    Raises:
        InvalidInput: not a text, empty or only white space, with NUL or half a surrogate pair.
        TextTooLong: over `max_characters` Unicode code points (D10); the error names both numbers.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"The text of a memory must be a text, not {type(text).__name__}.")
    if not text.strip():
        raise InvalidInput("The memory is empty.", hint="Write one sentence or a few.")
    if "\x00" in text:
        raise InvalidInput("The text holds a NUL character, which cannot be stored.", hint="Remove it.")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInput("The text holds half a surrogate pair, which is no character.", hint="Send valid Unicode.")
    if len(text) > max_characters:
        raise TextTooLong(
            f"The memory has {len(text)} characters; at most {max_characters} are possible.",
            rule="D10",
            hint="Shorten it, or save it as two memories.",
            characters=len(text),
            max_characters=max_characters,
        )
    return text


def folded(text: str) -> str:
    """What two texts are compared by: NFKC, case folded, white space folded (D12)."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
