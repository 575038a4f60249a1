"""A memory as rows of `memory` (text, written when it changes) and `memory_use` (what replies change), and back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import orjson
from psycopg.types.json import Jsonb

from remembrancer.domain.events import Source
from remembrancer.domain.identity import Subject
from remembrancer.domain.memory import Memory, Use
from remembrancer.projections.words import memory_terms

TEXT_COLUMNS = ("id", "text", "terms", "created_at", "updated_at", "until", "tags", "channels", "actor", "turn",
                "source", "pinned", "protected")  # fmt: skip
"""What of `text_row` stands in the row, in its order; the rest is what its vector is found by."""


def digest(text: str) -> bytes:
    """What a kept vector is found by: SHA-256 of the text."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def memory_from_row(row: Sequence[Any]) -> Memory:
    """From id, text, created_at, updated_at, until, tags, channels, actor, turn, source, pinned, frozen, protected,
    base_day, base_days, base_matched_at, uses: the columns of the query `memories` after the list."""
    return Memory(
        id=row[0],
        text=row[1],
        created_at=row[2],
        updated_at=row[3],
        until=row[4],
        tags=tuple(row[5]),
        channels=tuple(row[6]),
        actor=row[7],
        turn=row[8],
        source=Source(**row[9]),
        pinned=row[10],
        frozen=row[11],
        protected=row[12],
        base_day=row[13],
        base_days=row[14],
        base_matched_at=row[15],
        uses=tuple(
            Use(date.fromisoformat(day), turn, None if at is None else datetime.fromisoformat(at))
            for day, turn, at in row[16]
        ),
    )


def text_part(m: Memory) -> tuple[Any, ...]:
    """What stands in `memory`: if it is the same, the row need not be written."""
    return (m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source, m.pinned,
            m.protected)  # fmt: skip


def text_row(m: Memory, tenant: str, owner: Subject) -> dict[str, Any]:
    """Parameters of `write_memories`. The owner tells under which subject the vector of the text is kept."""
    return {
        "id": m.id,
        "text": m.text,
        "terms": memory_terms(m.text),
        "created_at": m.created_at,
        "updated_at": m.updated_at,
        "until": m.until,
        "tags": list(m.tags),
        "channels": list(m.channels),
        "actor": m.actor,
        "turn": m.turn,
        "source": Jsonb(m.source.model_dump(mode="json")),
        "pinned": m.pinned,
        "protected": m.protected,
        "tenant": tenant,
        "kind": owner.kind,
        "subject": owner.key,
        "digest": digest(m.text),
    }


def use_row(m: Memory) -> dict[str, Any]:
    """Parameters of `write_uses`."""
    return {
        "id": m.id,
        "since": m.since,
        "carried": m.carried,
        "pinned": m.pinned,
        "frozen": m.frozen,
        "updated_at": m.updated_at,
        "until": m.until,
        "tags": list(m.tags),
        "channels": list(m.channels),
        "last_matched_at": m.last_matched_at,
        "base_day": m.base_day,
        "base_days": m.base_days,
        "base_matched_at": m.base_matched_at,
        "uses": orjson.dumps([(u.day, u.turn, u.matched_at) for u in m.uses]).decode(),
    }
