"""How a stream becomes a state, and the states that this process remembers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from eventsourcing.application import LRUCache

from remembrancer.domain.events import Recorded
from remembrancer.services.store.keys import KeyRef

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Fold(Generic[S]):
    """The states of one kind of stream.

    Args:
        name: of the kind of state and of its form, e.g. `"list@1"`; a new form takes a new name, and old snapshots are
            no longer read.
        initial: the state of an empty stream.
        evolve: the next state; must leave the one it was given as it was, since that one is remembered.
        encode, decode: the form of snapshots; without them there are none.
    """

    name: str
    initial: S
    evolve: Callable[[S, Recorded], S]
    encode: Callable[[S], bytes] | None = None
    decode: Callable[[bytes], S] | None = None


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    """A state and the version of the stream that it is the state of; 0 for an empty one."""

    state: S
    version: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """A folded state, the keys of every text that is in it, and the version of its last snapshot."""

    state: Any
    version: int = 0
    keys: frozenset[KeyRef] = frozenset()
    saved: int = 0


class FoldCache:
    """The states folded last, at most so many. An old one costs a longer tail, never a wrong answer."""

    def __init__(self, maxsize: int) -> None:
        self._states: LRUCache[tuple[str, UUID], Remembered] = LRUCache(maxsize=maxsize)

    def get(self, fold: str, stream: UUID) -> Remembered | None:
        """The state as of some version, if it is remembered."""
        try:
            return self._states.get((fold, stream))
        except KeyError:
            return None

    def put(self, fold: str, stream: UUID, state: Remembered) -> None:
        """Remembers a state."""
        self._states.put((fold, stream), state)

    def forget(self, streams: Collection[UUID]) -> None:
        """Drops what is remembered of these streams."""
        for fold, stream in list(self._states.cache):
            if stream in streams:
                with suppress(KeyError):
                    self._states.get((fold, stream), evict=True)
