"""Ids as people type them: the first digits that a table shows are enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.projections.queries import load_queries

if TYPE_CHECKING:
    from psycopg import Connection

    from remembrancer.services.remembrancer import Remembrancer

_SQL = load_queries("remembrancer.services.cli", "short_ids")
_DIGITS = re.compile(r"[0-9a-f]{8,31}")


def resolve(memory: Remembrancer, given: str) -> UUID:
    """The id that this is, or that begins like this.

    Raises:
        InvalidInput: no id; or more than one memory begins like that.
        NotFound: none does (D31).
    """
    digits = given.strip().lower().replace("-", "")
    if not _DIGITS.fullmatch(digits):
        from remembrancer.services.finder import as_uuid

        return as_uuid(given)
    first, last = UUID(hex=digits.ljust(32, "0")), UUID(hex=digits.ljust(32, "f"))
    at = {"shard": first.bytes[0], "first": first, "last": last, "tenant": memory.engine.settings.tenant}

    def find(conn: Connection[Any]) -> list[UUID]:
        for query in ("there", "gone"):
            if found := [row[0] for row in conn.execute(_SQL[query], at)]:
                return found
        return []

    memory.engine.waiting.settle()
    found = memory.engine.store.database.run(find)
    if not found:
        raise NotFound(f"There is no memory {given}…", rule="D31", hint="`list` shows the ids.")
    if len(found) > 1:
        raise InvalidInput(f"More than one memory begins with {given}.", hint="Give more of its id.")
    return found[0]
