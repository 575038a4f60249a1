"""What keeps a memory out of replies besides its counter: its own tags and channels, and settings (T10, R17)."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from remembrancer.domain.identity import ListKey, server_stream
from remembrancer.domain.memory import Memory
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.services.deps import SERVER, Deps
from remembrancer.services.finder import Finder

SERVERS = 50
"""Servers of a persona that are asked whether they use a person's memories."""


class Hidden(NamedTuple):
    """What hides it in some replies; what hides it in all, and the command against that."""

    by: list[str]
    everywhere: str | None = None
    fix: str | None = None


class Hiding:
    """See the module."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder

    def of(self, key: ListKey, m: Memory | None, persona: Persona, owner: Person | Server) -> Hidden:
        """What hides a memory of a list, by the settings of its persona and of whom the list belongs to."""
        by = [] if m is None else _own(m)
        if key.scope != "global":
            if persona.deleted:
                return Hidden(by, f"the persona {key.persona} is deleted (D25)")
            if not persona.learns:
                learns = shlex.join(["persona", "set", key.persona, "--learns"])
                return Hidden(by, f"{key.persona} does not learn from chat (R17)", learns)
        change = ["server" if key.scope == "server" else "person", "set", key.subject]
        if isinstance(owner, Person) and owner.privacy == "nowhere":
            everywhere = shlex.join([*change, "--privacy", "everywhere"])
            return Hidden(by, f"{key.subject} lets nobody use their memories (T10)", everywhere)
        if key.persona in owner.not_learning:
            of = f"in the server {key.subject}" if key.scope == "server" else f"from {key.subject}"
            return Hidden(by, f"{key.persona} does not learn {of} (R17)", shlex.join([*change, "--all-learn"]))
        if isinstance(owner, Person):
            if owner.privacy == "private_chats_only":
                by.append(f"only in private chats: the privacy of {key.subject}")
            by += self._blocked(key)
        return Hidden(by)

    def _blocked(self, key: ListKey) -> list[str]:
        """The servers of a persona that do not use this person's memories."""
        if key.scope == "global":
            return []
        servers = [h.key.subject for h in self._finder.lists(key.persona) if h.key.scope == "server"][:SERVERS]
        loaded = self._deps.store.load_many([(server_stream(self._deps.tenant, one), SERVER) for one in servers])
        return [
            f"not in the server {name}: {'its blocklist' if key.subject in one.state.blocklist else 'its switch'}"
            for name, one in zip(servers, loaded, strict=True)
            if key.subject in one.state.blocklist or not one.state.personal_memories
        ]


def _own(m: Memory) -> list[str]:
    by = []
    if m.channels:
        by.append(f"only in the channels {', '.join(m.channels)}")
    if m.tags:
        by.append(f"only in replies with one of the tags {', '.join(m.tags)}")
    return by
