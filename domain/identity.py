"""Who and where: subjects, shards, streams and ids.

A stream belongs to a subject, and a subject to one of 256 shards; the shard never changes in the life of a store.
Ids made here are UUIDs of version 8 (RFC 9562) whose first byte is the shard, so that an id alone says where to look.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple
from uuid import UUID

from remembrancer.domain.errors import InvalidInput

SHARDS = 256
MAX_KEY = 300
"""Longest name of a persona, user, server, channel, chat, tag or tenant, in code points."""

SubjectKind = Literal["server", "user", "chat", "persona", "tenant"]
Scope = Literal["server", "personal", "global"]

EVERY_PERSONA = "*"
"""Stands where a persona's key would in a global list. Not a key itself."""


class Subject(NamedTuple):
    """Whose data it is: `user:42` is not `server:42`."""

    kind: SubjectKind
    key: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


class ListKey(NamedTuple):
    """One list of memories (SPEC 1): a persona and a server, a persona and a user, or every persona and a user."""

    persona: str
    scope: Scope
    subject: str

    @property
    def owner(self) -> Subject:
        """The subject under whose key the texts are encrypted and whose shard the stream is in."""
        return Subject("server" if self.scope == "server" else "user", self.subject)

    def __str__(self) -> str:
        match self.scope:
            case "server":
                return f"{self.persona} in server {self.subject}"
            case "personal":
                return f"{self.persona} and user {self.subject}"
            case _:
                return f"every persona and user {self.subject}"


def list_key(persona: str | None, scope: str, subject: str) -> ListKey:
    """The key of a list. A global list belongs to every persona, whichever one was named.

    Raises:
        InvalidInput: unknown scope; a name that is empty, too long, `*`, or not a text.
    """
    if scope not in ("server", "personal", "global"):
        raise InvalidInput(
            f"{scope!r} is not a scope.",
            hint="Use server, personal or global.",
            scopes=["server", "personal", "global"],
        )
    check_key("subject", subject)
    if scope == "global":
        return ListKey(EVERY_PERSONA, "global", subject)
    return ListKey(check_key("persona", persona), scope, subject)  # type: ignore[arg-type]


def check_key(what: str, key: object) -> str:
    """The key itself, exactly as given, if it can name a `what`. Names are compared as sent, code point by code point.

    Raises:
        InvalidInput: not a text, empty or white space, over 300 code points, with NUL or a lone surrogate, or `*`.
    """
    if not isinstance(key, str):
        raise InvalidInput(f"The {what} must be a text, not {type(key).__name__}.")
    if not key.strip():
        raise InvalidInput(f"The {what} is empty.", hint=f"Name the {what}.")
    if len(key) > MAX_KEY:
        raise InvalidInput(f"The {what} has {len(key)} characters; at most {MAX_KEY} are possible.")
    if "\x00" in key or any("\ud800" <= c <= "\udfff" for c in key):
        raise InvalidInput(f"The {what} holds a NUL or half a surrogate pair, which is no text.")
    if key == EVERY_PERSONA:
        raise InvalidInput(f"* is not the name of a {what}: it stands for every persona.", rule="SPEC 1")
    return key


def _digest(*parts: str) -> bytes:
    """A hash in which no two lists of parts collide by how they are joined (C22)."""
    h = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8")
        h.update(len(raw).to_bytes(4, "big") + raw)
    return h.digest()


def shard_of(tenant: str, subject: Subject) -> int:
    """The shard of a subject, 0 to 255; the same for ever."""
    return _digest("shard", tenant, subject.kind, subject.key)[0]


def shard_of_id(uuid: UUID) -> int:
    """The shard that an id made here carries in its first byte."""
    return uuid.bytes[0]


def _version_8(shard: int, raw: bytes) -> UUID:
    b = bytearray([shard]) + bytearray(raw[1:16])
    b[6] = 0x80 | (b[6] & 0x0F)
    b[8] = 0x80 | (b[8] & 0x3F)
    return UUID(bytes=bytes(b))


def new_id(shard: int, entropy: bytes) -> UUID:
    """An id of version 8 in this shard, from 16 bytes of entropy (the caller's: the domain has no randomness)."""
    return _version_8(shard, entropy)


def stream_id(shard: int, kind: str, tenant: str, *parts: str) -> UUID:
    """The id of the stream of `kind` that `parts` name. Deterministic, so that nobody has to look it up."""
    return _version_8(shard, _digest("stream", kind, tenant, *parts))


def list_stream(tenant: str, key: ListKey) -> UUID:
    """The stream of a list of memories."""
    return stream_id(shard_of(tenant, key.owner), "PersonaMemory", tenant, key.persona, key.scope, key.subject)


def person_stream(tenant: str, user: str) -> UUID:
    """The stream of a person's settings."""
    return stream_id(shard_of(tenant, Subject("user", user)), "Person", tenant, user)


def server_stream(tenant: str, server: str) -> UUID:
    """The stream of a server's settings."""
    return stream_id(shard_of(tenant, Subject("server", server)), "Server", tenant, server)


def owner_stream(tenant: str, key: ListKey) -> UUID:
    """The stream of the settings of whom a list belongs to."""
    return (server_stream if key.scope == "server" else person_stream)(tenant, key.subject)


def chat_name_stream(tenant: str, name: str) -> UUID:
    """The stream that says which chat goes by a name. Its shard is the name's, wherever the chat lives."""
    return stream_id(shard_of(tenant, Subject("chat", name)), "ChatName", tenant, name)


def persona_stream(tenant: str, persona: str) -> UUID:
    """The stream of a persona's settings."""
    return stream_id(shard_of(tenant, Subject("persona", persona)), "Persona", tenant, persona)


def tenant_stream(tenant: str) -> UUID:
    """The stream of a tenant's policy."""
    return stream_id(shard_of(tenant, Subject("tenant", tenant)), "Tenant", tenant)


def chat_stream(tenant: str, chat: str, home: Subject) -> UUID:
    """The stream of a chat, in the shard of its server, or of its one user, otherwise its own (DESIGN 2)."""
    return stream_id(shard_of(tenant, home), "Chat", tenant, chat)


def shelf_stream(tenant: str, owner: Subject) -> UUID:
    """The stream of the documents of a persona or a server."""
    return stream_id(shard_of(tenant, owner), "Shelf", tenant, owner.kind, owner.key)
