"""Who is told what was saved and what was forgotten (T15). A notice is never part of a prompt."""

from __future__ import annotations

from typing import Literal, NamedTuple

from remembrancer.domain.identity import ListKey
from remembrancer.domain.settings import Notices

Audience = Literal["everyone", "managers", "owner", "nobody"]


class Notice(NamedTuple):
    """A sentence for people, and for whom: everyone in the channel, the server's managers, the list's owner, nobody.

    `user` is the owner, where it is for one.
    """

    audience: Audience
    text: str
    user: str | None = None


def audience_of(key: ListKey, visibility: Notices) -> Audience:
    """A notice on a personal or global memory goes to its owner only; one of a server follows the server's setting."""
    if key.scope != "server":
        return "owner"
    return "nobody" if visibility == "hidden" else visibility


def saved_notice(key: ListKey, visibility: Notices, text: str, forgotten: str | None) -> Notice:
    """The confirmation of a save: what was saved, and what was forgotten for it."""
    sentence = f"Remembered: \u201c{text}\u201d"
    if forgotten is not None:
        sentence += f" \u00b7 Forgotten to make room: \u201c{forgotten}\u201d"
    return _notice(key, visibility, sentence)


def refused_notice(key: ListKey, visibility: Notices, text: str, why: str) -> Notice:
    """A save that found no room is told to the same people (C12)."""
    return _notice(key, visibility, f"Not remembered: \u201c{text}\u201d. {why}")


def _notice(key: ListKey, visibility: Notices, sentence: str) -> Notice:
    audience = audience_of(key, visibility)
    return Notice(audience, sentence, key.subject if audience == "owner" else None)
