"""What is given to the store, and what it says it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from remembrancer.domain.events import Event
from remembrancer.domain.identity import Subject
from remembrancer.services.store.keys import Key


@dataclass(frozen=True, slots=True)
class Batch:
    """New events of one stream.

    Args:
        stream: where they go; its shard is the first byte of this id.
        events: in order.
        expected: the version that the decision saw, 0 for an empty stream; `None` for facts, which take the next
            version whatever it is.
        owners: the subjects under whose key the personal texts are sealed.
        key: their key as it was when the texts were read, where that is some time ago: if one of them was erased since,
            nothing is written, also when there is a new key by now.
    """

    stream: UUID
    events: Sequence[Event]
    expected: int | None = None
    owners: tuple[Subject, ...] = ()
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command wants written, and the bytes that every repetition of it is answered with."""

    batches: Sequence[Batch]
    answer: bytes = b""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did; the lists have one entry for each event, in the order of the batches.

    `fresh` is false for a request that came before: then this is what the first one did, and nothing was written now.
    `answer` is the first answer; nothing if its subject was erased since.
    """

    fresh: bool
    answer: bytes | None
    shards: list[int]
    positions: list[int]
    versions: list[int]
    recorded_at: list[datetime]

    @property
    def reached(self) -> dict[int, int]:
        """The last position in each shard that was written to: what a reader must have seen to know all of this."""
        return dict(sorted(zip(self.shards, self.positions, strict=True)))
