"""What people, servers, personas and tenants have set: small states folded from their streams (T10, T15, T16, R17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import folded
from remembrancer.domain.window import Detail

Privacy = Literal["everywhere", "private_chats_only", "nowhere"]
Notices = Literal["everyone", "managers", "hidden"]


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Sentences of a subject that a person deleted or edited away, by list and memory (D13)."""

    placed: Mapping[tuple[UUID, UUID, str], None] = field(default_factory=dict)

    @property
    def sentences(self) -> frozenset[str]:
        """The folded sentences."""
        return frozenset(sentence for _, _, sentence in self.placed)

    def evolve(self, ev: e.Event) -> Tombstones:
        """After one more event."""
        match ev:
            case e.TombstonePlaced():
                return Tombstones({**self.placed, (ev.list, ev.memory, folded(ev.sentence)): None})
            case e.TombstonesLifted():
                kept = {
                    k: None for k in self.placed if k[0] != ev.list or (ev.memory is not None and k[1] != ev.memory)
                }
                return Tombstones(kept)
            case e.SubjectErased():
                return Tombstones()
        return self


@dataclass(frozen=True, slots=True)
class Person:
    """A person's privacy, the personas that do not learn from them, and how much each keeps of their chats (R3)."""

    privacy: Privacy = "everywhere"
    not_learning: tuple[str, ...] = ()
    details: Mapping[str, Detail] = field(default_factory=dict)
    deep_since: datetime | None = None
    """Since when deep memory is on for them; None where it is off (R16)."""
    tombstones: Tombstones = Tombstones()

    @property
    def deep_memory(self) -> bool:
        """Is it on?"""
        return self.deep_since is not None


def evolve_person(s: Person, recorded: e.Recorded) -> Person:
    """The person after one more event."""
    ev = recorded.event
    if isinstance(ev, e.PersonChanged):
        since = (s.deep_since or recorded.recorded_at) if ev.deep_memory else None
        return replace(s, privacy=ev.privacy, not_learning=ev.not_learning, details=dict(ev.details), deep_since=since)
    return replace(s, tombstones=s.tombstones.evolve(ev))


@dataclass(frozen=True, slots=True)
class Server:
    """A server's notice visibility, blocklist, switch for personal memories, and personas that do not learn there."""

    notices: Notices = "everyone"
    blocklist: tuple[str, ...] = ()
    personal_memories: bool = True
    private: bool = False
    not_learning: tuple[str, ...] = ()
    tombstones: Tombstones = Tombstones()


def evolve_server(s: Server, recorded: e.Recorded) -> Server:
    """The server after one more event."""
    ev = recorded.event
    if isinstance(ev, e.ServerChanged):
        return replace(
            s,
            notices=ev.notices,
            blocklist=ev.blocklist,
            personal_memories=ev.personal_memories,
            private=ev.private,
            not_learning=ev.not_learning,
        )
    return replace(s, tombstones=s.tombstones.evolve(ev))


@dataclass(frozen=True, slots=True)
class Persona:
    """A persona's name, standing instructions and learn switch."""

    name: str = ""
    instructions: str = ""
    learns: bool = True
    deleted: bool = False
    detail: Detail | None = None


def evolve_persona(s: Persona, recorded: e.Recorded) -> Persona:
    """The persona after one more event."""
    match recorded.event:
        case e.PersonaDefined() as ev:
            return Persona(ev.name, ev.instructions, ev.learns, detail=ev.detail)
        case e.PersonaDeleted():
            return replace(s, deleted=True)
    return s


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's recorded settings (`own`), and the effective policy as last recorded (SPEC 6)."""

    own: Mapping[str, Any] = field(default_factory=dict)
    policy: Policy | None = None


def evolve_tenant(s: Tenant, recorded: e.Recorded) -> Tenant:
    """The tenant after one more event."""
    ev = recorded.event
    if isinstance(ev, e.PolicyChanged):
        known = {k: v for k, v in ev.policy.items() if k in Policy.model_fields}
        return Tenant(dict(ev.own), Policy(**known))
    return s
