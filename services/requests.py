"""What the commands share: a request as a caller names it, and what is told of an append."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remembrancer.domain.identity import Subject, check_key
from remembrancer.services.answers import Position
from remembrancer.services.store import Appended, Request, fingerprint


def request_for(
    tenant: str,
    shard: int,
    verb: str,
    request_id: str | None,
    body: Mapping[str, Any],
    owners: tuple[Subject, ...] = (),
) -> Request:
    """A command with the caller's id, if there is one (D19).

    Raises:
        InvalidInput: the id is no name.
    """
    if request_id is not None:
        check_key("request_id", request_id)
    return Request(tenant, shard, request_id, verb, fingerprint(body), owners)


def positions(done: Appended | None) -> list[Position]:
    """Where the events of an append stand: what to wait for. None where nothing had to be written."""
    return [] if done is None else [Position(shard=s, position=p) for s, p in done.reached.items()]
