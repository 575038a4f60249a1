"""A list of memories as the tests of the event store write and read it, without the rules of the domain."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import orjson

from remembrancer.domain.events import ListSearched, MemorySaved, Recorded
from remembrancer.domain.identity import ListKey, Subject, list_stream, new_id
from remembrancer.services.store import Batch, Fold, Request, fingerprint

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEXTS: Fold[tuple[str, ...]] = Fold(
    "texts@1",
    (),
    lambda texts, recorded: (*texts, _told(recorded)),
    encode=orjson.dumps,
    decode=lambda data: tuple(orjson.loads(data)),
)
"""Folds a stream into what its events say, in order."""


def _told(recorded: Recorded) -> str:
    return str(getattr(recorded.event, "text", type(recorded.event).__name__))


class AList:
    """The list of one persona and one user of a tenant."""

    def __init__(self, user: str = "42", tenant: str = "t", persona: str = "mochi") -> None:
        self.tenant = tenant
        self.owner = Subject("user", user)
        self.key = ListKey(persona, "personal", user)
        self.stream = list_stream(tenant, self.key)

    @property
    def shard(self) -> int:
        return self.stream.bytes[0]

    def _new(self) -> UUID:
        return new_id(self.shard, os.urandom(16))

    def saved(self, text: str, **more: Any) -> MemorySaved:
        fields = {"id": self._new(), "memory": self._new(), "tenant": self.tenant, "day": date(2026, 5, 1), **more}
        return MemorySaved(**self.key._asdict(), text=text, **fields)

    def searched(self) -> ListSearched:
        return ListSearched(**self.key._asdict(), id=self._new(), tenant=self.tenant, day=date(2026, 5, 1))

    def batch(self, *texts: str, expected: int | None) -> Batch:
        return Batch(self.stream, [self.saved(text) for text in texts], expected, (self.owner,))

    def fact(self) -> Batch:
        return Batch(self.stream, [self.searched()])

    def request(self, request_id: str | None = None, verb: str = "save", **body: Any) -> Request:
        return Request(self.tenant, self.shard, request_id, verb, fingerprint(body), (self.owner,))


def in_shard(shard: int, tenant: str = "t") -> AList:
    """A list of a user whose shard this is."""
    return next(found for n in range(100_000) if (found := AList(f"user {n}", tenant)).shard == shard)
