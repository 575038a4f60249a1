"""What an import adds to a list (D8, D12, T13): a decision like those of `persona_memory`, for many at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.persona_memory import Context, MemoryList
from remembrancer.domain.text import ERASED, folded


@dataclass(frozen=True, slots=True)
class Incoming:
    """A memory of another store. Its text, names and numbers have been checked."""

    text: str
    id: UUID | None = None
    by: e.Actor = "import"
    until: date | None = None
    unused_days: int = 0
    pinned: bool = False
    protected: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_matched_at: datetime | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    source: e.Source = e.Source()


class Brought(NamedTuple):
    """What an import came to."""

    events: tuple[e.MemorySaved, ...]
    duplicates: int


def new_ones(s: MemoryList, incoming: Sequence[Incoming]) -> list[Incoming]:
    """Those that say what the list does not say yet, each once (D12)."""
    known = {m.folded for m in s.memories.values() if m.text != ERASED}
    new = []
    for one in incoming:
        if (said := folded(one.text)) not in known:
            known.add(said)
            new.append(one)
    return new


def bring(s: MemoryList, incoming: Sequence[Incoming], ctx: Context, *, taken: Collection[UUID] = ()) -> Brought:
    """Bring memories of another store into a list, as they were there.

    No cap binds and nothing is forgotten for them (D8). What the list says already stays as it is: an import only
    repeats a file, so unlike a duplicate save it is no use, and the same file again changes nothing (D12). A memory
    keeps its id where that can be: in the shard of this list, and not in `taken`, the ids that were ever in use.
    The day of the import is used up for the counter, as by any save (D1).
    """
    new = new_ones(s, incoming)
    used = {*taken, *s.memories, *s.gone}
    events = []
    for one in new:
        stamp = ctx.stamp()
        shard = stamp["id"].bytes[0]
        memory = one.id if one.id is not None and one.id not in used and one.id.bytes[0] == shard else ctx.new_id()
        used.add(memory)
        events.append(
            e.MemorySaved(
                **stamp,
                memory=memory,
                text=one.text,
                day=ctx.day,
                until=one.until,
                tags=one.tags,
                channels=one.channels,
                pinned=one.pinned,
                protected=one.protected,
                source=one.source,
                policy=ctx.policy_version,
                created_at=one.created_at,
                updated_at=one.updated_at,
                last_matched_at=one.last_matched_at,
                unused_days=one.unused_days,
                by=one.by,
            )
        )
    return Brought(tuple(events), len(incoming) - len(new))
