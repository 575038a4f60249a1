"""Keys of subjects: personal texts are sealed under them, and erasing a subject destroys its key.

Keys for reading are asked for with every batch, so that nobody reads a text whose key is gone. Keys for writing are
remembered; the append itself looks whether they still stand (`FOR SHARE`), so that nobody writes under a dead one.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from eventsourcing.application import LRUCache

from remembrancer.domain.identity import Subject, shard_of
from remembrancer.services.store import sql
from remembrancer.services.store.arrays import Int2s, Int4s, Texts
from remembrancer.services.store.errors import Tampered
from remembrancer.services.store.pool import Connection, Database, ask

_NONCE = 12


class KeyRef(NamedTuple):
    """Which key of which subject."""

    shard: int
    tenant: str
    kind: str
    subject: str
    generation: int


Refs = tuple[KeyRef, ...]
"""The keys that a text is sealed under, sorted; one for most texts, several for a text about several subjects."""


def columns(refs: Collection[KeyRef]) -> tuple[Int2s, Texts, Texts, Texts, Int4s]:
    """Returns keys as five arrays, as the statements take them."""
    shards, tenants, kinds, subjects, generations = zip(*refs, strict=True) if refs else ((),) * 5
    return Int2s(shards), Texts(tenants), Texts(kinds), Texts(subjects), Int4s(generations)


@dataclass(frozen=True, slots=True)
class Key:
    """What seals texts: one subject's key, or one derived from the keys of several (all of them must be there)."""

    refs: Refs
    names: bytes
    """The same as JSON."""
    aead: AESGCM
    authenticator: bytes

    def seal(self, plain: bytes, place: Iterable[str]) -> bytes:
        """Returns `plain` encrypted (AES-256-GCM), readable only with this key and at this place."""
        nonce = os.urandom(_NONCE)
        return nonce + self.aead.encrypt(nonce, plain, self._bound(place))

    def open(self, sealed: bytes, place: Iterable[str]) -> bytes:
        """Returns what was sealed at this place.

        Raises:
            Tampered: it was changed, or sealed for another place.
        """
        try:
            return self.aead.decrypt(sealed[:_NONCE], sealed[_NONCE:], self._bound(place))
        except InvalidTag as error:
            raise Tampered(f"The seal of {'/'.join(place)} is broken: it was changed, or moved there.") from error

    def _bound(self, place: Iterable[str]) -> bytes:
        """Associated data: the place of a text and the generations of its keys; no two are the same bytes."""
        return orjson.dumps([*place, orjson.Fragment(self.names)])

    def authenticate(self, data: bytes) -> bytes:
        """Returns a code of 32 bytes that only a holder of this key can make."""
        return hmac.digest(self.authenticator, data, "sha256")


@lru_cache(maxsize=20_000)
def key_of(refs: Refs, raw: tuple[bytes, ...]) -> Key:
    """The key of these subjects, from what the database holds of each."""
    names = orjson.dumps([list(ref) for ref in refs])

    def derived(purpose: bytes) -> bytes:
        return HKDF(SHA256(), 32, None, purpose + names).derive(b"".join(raw))

    return Key(refs, names, AESGCM(raw[0] if len(raw) == 1 else derived(b"text")), derived(b"authenticate"))


class SubjectKeys:
    """The keys of all subjects of a store. Safe to share between threads."""

    def __init__(self, database: Database, *, remembered: int = 10_000) -> None:
        self._database = database
        self._writing: LRUCache[tuple[str, tuple[Subject, ...]], Key] = LRUCache(maxsize=remembered)

    def for_writing(self, tenant: str, owners: Collection[Subject]) -> Key:
        """Returns the present key of these subjects, made if there is none. The append checks that it still stands."""
        subjects = tuple(sorted(set(owners)))
        if not subjects:
            raise ValueError("a personal text needs the subject whose key it is sealed under")
        try:
            return self._writing.get((tenant, subjects))
        except KeyError:
            pairs = sorted(self._current(tenant, subject) for subject in subjects)
            key = key_of(tuple(ref for ref, _ in pairs), tuple(raw for _, raw in pairs))
            self._writing.put((tenant, subjects), key)
            return key

    def forget(self, refs: Collection[KeyRef]) -> None:
        """Drops remembered keys that use one of these, e.g. after the append has found them gone."""
        gone = {(r.tenant, r.kind, r.subject) for r in refs}
        for tenant, subjects in list(self._writing.cache):
            if any((tenant, *subject) in gone for subject in subjects):
                try:
                    self._writing.get((tenant, subjects), evict=True)
                except KeyError:
                    continue

    def for_reading(self, connection: Connection, wanted: Iterable[Refs]) -> Mapping[Refs, Key]:
        """Returns those of the wanted keys that stand at this moment; what is missing can never be read again.

        Args:
            connection: where to look, e.g. inside the caller's transaction.
            wanted: the keys of a batch of texts.
        """
        groups = set(wanted)
        if not groups:
            return {}
        refs = columns({ref for group in groups for ref in group})
        rows = ask(connection, sql.READ_KEYS, refs)
        raw = {KeyRef(*row[:5]): row[5] for row in rows}
        return {g: key_of(g, tuple(raw[r] for r in g)) for g in groups if all(r in raw for r in g)}

    def destroy(self, tenant: str, subject: Subject, *, now: datetime, connection: Connection | None = None) -> int:
        """Makes every text under this subject's key unreadable, for good. Returns how many keys were destroyed.

        Waits for appends that are writing under the key, and later ones are refused. A new text gets a new key.

        Args:
            now: aware UTC; kept as the moment of destruction.
            connection: the caller's transaction, if the destruction belongs to one.
        """

        def work(connection: Connection) -> int:
            done = connection.execute(sql.DESTROY_KEYS, (now, shard_of(tenant, subject), tenant, *subject))
            return done.rowcount

        count = work(connection) if connection is not None else self._database.run(work)
        self.let_go(tenant, subject)
        return count

    def let_go(self, tenant: str, subject: Subject) -> None:
        """Drops what this process remembers of a subject's keys; once more when the transaction of `destroy` is done,
        since whoever looked meanwhile still saw them."""
        self.forget([KeyRef(shard_of(tenant, subject), tenant, *subject, 0)])
        key_of.cache_clear()

    def _current(self, tenant: str, subject: Subject) -> tuple[KeyRef, bytes]:
        """Get or create; when several create at once, the database lets one win and all get that one."""
        shard = shard_of(tenant, subject)

        def work(connection: Connection) -> tuple[KeyRef, bytes]:
            while True:
                ((generation, key),) = ask(connection, sql.CURRENT_KEY, (shard, tenant, *subject)) or [(0, None)]
                if key is not None:
                    return KeyRef(shard, tenant, *subject, generation), key
                fresh = AESGCM.generate_key(256)
                connection.execute(sql.INSERT_KEY, (shard, tenant, *subject, generation + 1, fresh))

        return self._database.run(work)
