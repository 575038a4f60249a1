"""Which lists and memories a reply may use, rule by rule (T10, R11, R17, D4, D25, D27, D28).

Imports nothing of the product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True)
class Reply:
    """Who talks to whom, where."""

    persona: str
    users: tuple[str, ...]
    server: str | None = None
    channel: str | None = None
    tags: tuple[str, ...] = ()
    day: date = date.min


@dataclass(frozen=True)
class World:
    """What people, servers and the persona have set."""

    privacy: dict[str, str] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    personal_memories: bool = True
    direct_messages: bool = False
    persona_learns: bool = True
    persona_deleted: bool = False
    server_not_learning: frozenset[str] = frozenset()
    user_not_learning: dict[str, frozenset[str]] = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """Of a group."""
    members_off: frozenset[str] = frozenset()
    """Those of them that do not learn, or are deleted."""


def lists(reply: Reply, world: World) -> set[tuple[str, str, str]]:
    """(persona, scope, subject) of every list that the reply may use."""
    if world.persona_deleted or not world.persona_learns:
        return set()
    readers = {reply.persona} | {one for one in world.members if one not in world.members_off}
    found = set()
    for one in readers:
        if reply.server is not None and not world.server_not_learning & {one, reply.persona}:
            found.add((one, "server", reply.server))
    for user in reply.users:
        off = world.user_not_learning.get(user, frozenset())
        hidden = [
            reply.server is not None and user in world.blocked,
            reply.server is not None and not world.personal_memories,
            world.privacy.get(user) == "nowhere",
            world.privacy.get(user) == "private_chats_only" and not _in_private(reply, world),
            reply.persona in off,
        ]
        if not any(hidden):
            found |= {("*", "global", user)} | {(one, "personal", user) for one in readers if one not in off}
    return found


def _in_private(reply: Reply, world: World) -> bool:
    alone = len(set(reply.users)) == 1
    return alone and (reply.server is None or world.direct_messages)


def visible(reply: Reply, *, tags: tuple[str, ...], channels: tuple[str, ...], until: date | None) -> bool:
    """May a memory of a list in play be used in this reply?"""
    wrong_channel = bool(channels) and not any(channel == reply.channel for channel in channels)
    wrong_tags = bool(tags) and not set(tags) & set(reply.tags)
    over = until is not None and reply.day > until
    return not (wrong_channel or wrong_tags or over)
