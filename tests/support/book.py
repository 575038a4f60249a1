"""A book of lists whose histories are drawn by hypothesis and written as events, and how the projector takes them.

Facts come late, name memories that never were, and hide now these, now all but those; the product has to fold them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, reduce
from itertools import count
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, list_stream, new_id
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.projections.runner import Runner
from remembrancer.services.deps import Deps
from remembrancer.services.models import Models
from remembrancer.services.store import Batch, EventStore, Request, StoreSource
from remembrancer.services.vectors import Embedded, Vectors
from tests.support.world import World

FIRST = date(2026, 5, 4)
KEYS = [ListKey("mira", "server", "tea house"), ListKey("mira", "personal", "juno"), ListKey("*", "global", "juno")]
WORDS = ("Mochi", "sleeps", "chess", "river", "drum", "Porto")
DARK = "zzz"
"""Texts with this word have no vector yet (D22)."""


def days_of(first: int, last: int) -> st.SearchStrategy[date]:
    return st.integers(first, last).map(lambda n: FIRST + timedelta(days=n))


days = days_of(0, 9)
some = st.lists(st.integers(0, 3), max_size=3, unique=True)
names = st.sampled_from([(), (), (), (), ("a",), ("b",), ("a", "b")])
texts = st.lists(st.sampled_from((*WORDS, DARK)), min_size=1, max_size=3, unique=True).map(" ".join)
bodies = st.fixed_dictionaries(
    {"text": texts, "tags": names, "channels": names, "until": st.none() | st.none() | days}
)  # fmt: skip
saves = st.tuples(st.just("save"), bodies, st.integers(0, 2))
searches = st.tuples(st.just("search"), some, st.sampled_from(["hidden", "seen"]))
acts = st.one_of(
    saves,
    searches,
    st.tuples(st.just("edit"), bodies, st.booleans()),
    st.tuples(st.just("match"), some, st.none()),
    st.tuples(st.sampled_from(["pin", "pin", "unpin", "delete", "evict", "affirm"]), st.none(), st.none()),
    st.tuples(st.just("clear"), st.booleans(), st.none()),
)
returns = st.one_of(
    st.tuples(st.just("restore"), st.none(), st.none()),
    st.tuples(st.just("recount"), some, st.integers(0, 9)),
    st.tuples(st.just("roll back"), some, some),
)
"""What brings back memories that are in no table any more, or takes their uses from them."""


def story(what: st.SearchStrategy[Any], days: st.SearchStrategy[date], most: int) -> st.SearchStrategy[Any]:
    """Things that happen, and how many batches of how many events the projector takes afterwards."""
    turns = st.sampled_from([None, None, "t1", "t2"])
    lists = st.sampled_from([0, 0, 0, 1, 2])
    happened = st.lists(st.tuples(what, lists, st.integers(0, 3), days, turns), min_size=most // 3, max_size=most)
    return st.tuples(happened, st.tuples(st.integers(1, 6), st.integers(0, 4)) | st.just((500, 9)))


_numbers = count()


@dataclass
class Book:
    """A tenant of its own in the shared database, and what was written for it."""

    world: World
    tenant: str
    states: dict[ListKey, MemoryList] = field(default_factory=lambda: dict.fromkeys(KEYS, MemoryList()))
    saved: set[UUID] = field(default_factory=set)
    version: int = 0

    @property
    def store(self) -> EventStore:
        return self.world.memory.engine.store

    def stream(self, key: ListKey) -> UUID:
        return list_stream(self.tenant, key)

    def id_of(self, key: ListKey, number: int) -> UUID:
        """The same memory of a list has the same id in every part of a history."""
        raw = hashlib.sha256(f"{key} {number}".encode()).digest()
        return new_id(self.stream(key).bytes[0], raw)

    def event(self, key: ListKey, what: Any, number: int, day: date, turn: str | None) -> e.Event:
        kind, a, b = what
        one = self.id_of(key, number)
        ids = [self.id_of(key, n) for n in a] if isinstance(a, list) else []
        stamp: dict[str, Any] = {
            "id": new_id(self.stream(key).bytes[0], hashlib.sha256(str(next(_numbers)).encode()).digest()),
            "tenant": self.tenant, "actor": "persona", "turn": turn, **key._asdict(),
        }  # fmt: skip
        if kind == "save" and one in self.saved:  # no id is given twice
            kind, b = "edit", bool(b)
        match kind:
            case "save":
                self.saved.add(one)
                return e.MemorySaved(**stamp, memory=one, day=day, unused_days=b, **a)
            case "edit":
                return e.MemoryEdited(**stamp, memory=one, day=day, before="", protects=b, **a)
            case "match":
                matches = [e.Match(memory=i, score=1, similarity=1, words=0, rank=n) for n, i in enumerate(ids, 1)]
                return e.MemoriesMatched(**stamp, day=day, matches=tuple(matches))
            case "search":
                hidden, seen = (tuple(ids), None) if b == "hidden" else ((), tuple(ids))
                return e.ListSearched(**stamp, day=day, hidden=hidden, seen=seen)
            case "clear":
                return e.MemoriesCleared(**stamp, pinned=a)
            case "delete":
                return e.MemoryDeleted(**stamp, memory=one)
            case "evict":
                return e.MemoryEvicted(**stamp, memory=one, for_memory=one, reason="")
            case "affirm":
                return e.MemoryAffirmed(**stamp, memory=one, day=day)
            case "restore":
                return e.MemoryRestored(**stamp, memory=one, day=day)
            case "recount":
                return e.UseRecounted(**stamp, day=day, unused_days=dict.fromkeys(ids, b))
            case "roll back":
                back = [m for n in b if (m := self.id_of(key, n)) in self.states[key].gone]
                turn, held = turn or "t1", self.states[key].memories
                edited = [m for m in ids if m in held and held[m].as_before(turn) != held[m]]
                rolled = {"restored": tuple(back), "reverted": tuple(edited), "unmatched": dict.fromkeys(ids, day)}
                return e.TurnRolledBack(**(stamp | {"turn": turn} | rolled))
        return {"pin": e.MemoryPinned, "unpin": e.MemoryUnpinned}[kind](**stamp, memory=one, day=day)

    def write(self, happened: Sequence[Any]) -> None:
        """Append these, one after another: facts whatever they name, decisions only where they could be taken."""
        for what, list_no, number, day, turn in happened:
            key = KEYS[list_no]
            event = self.event(key, what, number, day, turn)
            if not could_be(self.states[key], event):
                continue
            self.version += 1
            now = datetime.combine(FIRST, time(1), UTC) + timedelta(minutes=7 * self.version)
            batch = Batch(self.stream(key), [event], None, (key.owner,))
            done = self.store.append([batch], request=Request(self.tenant, batch.stream.bytes[0]), now=now)
            recorded = e.Recorded(event, batch.stream, done.versions[0], batch.stream.bytes[0], 0, done.recorded_at[0])
            self.states[key] = evolve(self.states[key], recorded)
            if (text := getattr(event, "text", None)) and DARK not in text:
                self.keep(key, text)

    def keep(self, key: ListKey, text: str) -> None:
        """Keep the vector of a text."""
        self.vectors.keep([(key.owner, text, Embedded("openai:words", unit(self.world, text)))])

    @cached_property
    def vectors(self) -> Vectors:
        engine = self.world.memory.engine
        settings = engine.settings.model_copy(update={"tenant": self.tenant})
        models = Models(self.store, settings, engine.deps.clock)
        return Vectors(Deps(self.store, engine.deps.clock, settings, models))

    def runner(self, batch: int) -> Runner:
        """The projections, in batches of so many events, a quarter of them of one shard."""
        projections = self.world.memory.engine.runner.projections
        return Runner(self.store.database.connection, StoreSource(self.store), projections, batch=batch)

    def project(self, batch: int, batches: int) -> None:
        """The tables of the lists see some more of the events."""
        runner = self.runner(batch)
        for _ in range(batches):
            runner.run_batch(runner.projections[0])

    def lists(self) -> dict[ListKey, MemoryList]:
        """The lists by the domain's own fold."""
        return {key: reduce(evolve, self.store.read([(self.stream(key), 0)]), MemoryList()) for key in KEYS}


def could_be(s: MemoryList, event: e.Event) -> bool:
    """May this come next in a list's stream? A decision saw the list as it is; a fact has not looked."""
    one = s.memories.get(getattr(event, "memory", UUID(int=0)))
    match event:
        case e.MemoryEdited() | e.MemoryDeleted() | e.MemoryAffirmed():
            return one is not None
        case e.MemoryPinned() | e.MemoryEvicted():
            return one is not None and not one.pinned
        case e.MemoryUnpinned():
            return one is not None and one.pinned
        case e.MemoryRestored():
            return event.memory in s.gone
        case e.MemoriesCleared():
            return not event.pinned or s.cleared
        case e.TurnRolledBack():
            return all(m in s.gone for m in event.restored)
    return True


def unit(world: World, text: str) -> Any:
    vector = world.fake.vector_of(text)
    return (vector / np.linalg.norm(vector)).astype(np.float32)
