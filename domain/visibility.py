"""What may be used in a reply: the lists in play, and the memories hidden inside them.

T10, R11, R17, D4, D25, D27, D28.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

from remembrancer.domain.identity import EVERY_PERSONA, ListKey
from remembrancer.domain.settings import Person, Persona, Server

_ORDER = {"server": 0, "personal": 1, "global": 2}
NOBODY_ELSE: Mapping[str, Persona] = MappingProxyType({})


class Place(NamedTuple):
    """Where a reply is given: a server (or none), a channel of it, and the tags that the reply carries."""

    server: str | None
    channel: str | None
    tags: tuple[str, ...]


def in_order(keys: Collection[ListKey]) -> list[ListKey]:
    """The fixed order of lists, whatever order the users were named in, so that the prompt stays the same (T17)."""
    return sorted(keys, key=lambda k: (_ORDER[k.scope], k.subject, k.persona))


def is_private(place: Place, users: Sequence[str], server: Server) -> bool:
    """A conversation with one person alone: no server, or one that is a direct-message pair."""
    return len(set(users)) == 1 and (place.server is None or server.private)


def lists_in_play(
    persona_key: str,
    place: Place,
    users: Sequence[str],
    *,
    persona: Persona,
    server: Server,
    people: Mapping[str, Person],
    members: Mapping[str, Persona] = NOBODY_ELSE,
) -> list[ListKey]:
    """The lists that this reply may read, in their fixed order.

    The server's own; and of each participant (D27) the personal and the global one, unless the owner's privacy, the
    server's blocklist or its switch for personal memories hides them (T10), or the learn switch is off (R17).

    Args:
        members: the other personas of a group, whose lists are read, too (R11). Where the speaking one does not learn,
            theirs are not read either; one that does not learn itself, or is deleted, is left out (D4, D25).
    """
    if persona.deleted or not persona.learns:
        return []
    others = [key for key, one in members.items() if one.learns and not one.deleted and key != persona_key]
    keys: list[ListKey] = []
    if place.server is not None and persona_key not in server.not_learning:
        learning = [persona_key, *(key for key in others if key not in server.not_learning)]
        keys += [ListKey(key, "server", place.server) for key in learning]
    for user in dict.fromkeys(users):
        person = people.get(user, Person())
        if may_use_person(persona_key, user, person, place, users, server):
            keys += [ListKey(persona_key, "personal", user), ListKey(EVERY_PERSONA, "global", user)]
            keys += [
                ListKey(key, "personal", user)
                for key in others
                if may_use_person(key, user, person, place, users, server)
            ]
    return in_order(keys)


def ages(key: ListKey, persona: str) -> bool:
    """Does this list age when that persona speaks? Its own and the global ones do, its group's others do not (D4)."""
    return key.persona in (persona, EVERY_PERSONA)


def may_use_person(
    persona_key: str, user: str, person: Person, place: Place, users: Sequence[str], server: Server
) -> bool:
    """May this person's lists be read and written here (T10, R17)?"""
    if place.server is not None and (user in server.blocklist or not server.personal_memories):
        return False
    if person.privacy == "nowhere" or persona_key in person.not_learning:
        return False
    return person.privacy == "everywhere" or is_private(place, users, server)


def is_visible(
    *,
    tags: Collection[str],
    channels: Collection[str],
    until: date | None,
    place: Place,
    today: date,
) -> bool:
    """May this memory of a list in play be sent, searched and aged in this reply (T10, D28)?

    The SQL of the hot path asks the same; a test holds the two against each other.
    """
    if until is not None and today > until:
        return False
    if channels and place.channel not in channels:
        return False
    return not tags or any(tag in place.tags for tag in tags)
