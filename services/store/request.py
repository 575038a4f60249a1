"""What makes a command happen once: its request id, a fingerprint of its body, and the answer it was given (D19)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from remembrancer.domain.identity import Subject
from remembrancer.services.store import blobs
from remembrancer.services.store.append import RequestRow
from remembrancer.services.store.keys import Key


@dataclass(frozen=True, slots=True)
class Request:
    """One command of one tenant.

    Args:
        tenant: whose command; the same id of another tenant is another request.
        shard: what the command is about; commands that overtake each other there wait in line.
        request_id: the caller's; left out, one is made, so that a commit in doubt can be tried again safely.
        verb: an id belongs to one verb.
        fingerprint: of the body, see `fingerprint`; an id belongs to one body.
        owners: whose texts are in the answer; it is sealed under their key.
        once: for a command without an id of the caller's, what happens only once in the shard. Whoever comes second
            finds the first one's answer, and knows by that whether it was another's.
    """

    tenant: str
    shard: int
    request_id: str | None = None
    verb: str = ""
    fingerprint: str = ""
    owners: tuple[Subject, ...] = ()
    once: str | None = None
    key: str = field(init=False)
    """The name of its row: no given id can be equal to a made one."""
    home: int = field(init=False)
    """The shard of its row: a function of a given id alone, so that the id is unique in all of the tenant."""

    def __post_init__(self) -> None:
        given = self.request_id is not None
        made = f"made/{uuid4()}" if self.once is None else f"once/{self.once}"
        object.__setattr__(self, "key", f"given/{self.request_id}" if given else made)
        name = orjson.dumps([self.tenant, self.key])
        object.__setattr__(self, "home", hashlib.sha256(name).digest()[0] if given else self.shard)

    def row(self, key: Key | None, answer: bytes) -> RequestRow:
        """What is stored of it, the answer sealed under the key of its owners."""
        sealed = blobs.seal(answer, key, "answer", self.tenant, self.key)
        return RequestRow(self.home, self.tenant, self.key, self.verb, self.authenticated(key), sealed)

    def unsealed(self, answer: bytes, key: Key | None) -> bytes | None:
        """The answer out of its row; nothing if its key is gone."""
        return blobs.unseal(answer, key, "answer", self.tenant, self.key)

    def authenticated(self, key: Key | None) -> bytes:
        """The fingerprint as it is stored: so that nobody can try texts against it once the key is gone.

        Nothing for a made id, which nobody sends again with another body.
        """
        if self.request_id is None:
            return b""
        return key.authenticate(self.fingerprint.encode()) if key else self.fingerprint.encode()


def fingerprint(body: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a command's body as canonical JSON, its `request_id` left out.

    Two bodies have the same fingerprint if they are equal as JSON, in whatever order their fields come.
    """
    kept = {name: value for name, value in body.items() if name != "request_id"}
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return hashlib.sha256(orjson.dumps(kept, option=options, default=_plain)).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return list(value)
    return str(value)
