"""What SQL chooses is what the domain chooses, whatever the tables have seen of the events so far.

Random histories of three lists are written as events, with late days, hidden memories in both forms, and pins, clears
and deletions in between; now and then the projector takes some of it. Then a reply is read three times: as the tables
are, after some more of it, and after all of it. All three, and the domain's own functions over the folded events, must
agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from itertools import count
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.identity import ListKey, list_stream, new_id
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import render_prefix
from remembrancer.domain.visibility import Place, is_visible
from remembrancer.projections.runner import Runner
from remembrancer.services import candidates
from remembrancer.services.deps import Deps
from remembrancer.services.desk_reader import Scene, read_desk
from remembrancer.services.store import Batch, EventStore, Request, StoreSource
from remembrancer.services.vectors import Vectors
from tests.support.world import World

FIRST = date(2026, 5, 4)
KEYS = [ListKey("mira", "server", "tea house"), ListKey("mira", "personal", "juno"), ListKey("*", "global", "juno")]
WORDS = ("Mochi", "sleeps", "chess", "river", "drum", "Porto")
DARK = "zzz"
"""Texts with this word have no vector yet (D22)."""


def days_of(first: int, last: int) -> st.SearchStrategy[date]:
    return st.integers(first, last).map(lambda n: FIRST + timedelta(days=n))


days = days_of(0, 9)
some = st.lists(st.integers(0, 3), max_size=4, unique=True)
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
    st.tuples(st.sampled_from(["pin", "unpin", "delete", "evict", "affirm"]), st.none(), st.none()),
    st.tuples(st.just("clear"), st.booleans(), st.none()),
)


def story(what: st.SearchStrategy[Any], days: st.SearchStrategy[date], most: int) -> st.SearchStrategy[Any]:
    """Things that happen, and how many batches of how many events the projector takes afterwards."""
    turns = st.sampled_from([None, None, "t1", "t2"])
    happened = st.lists(st.tuples(what, st.integers(0, 2), st.integers(0, 3), days, turns), max_size=most)
    return st.tuples(happened, st.tuples(st.integers(1, 6), st.integers(0, 4)) | st.just((500, 9)))


stories = st.tuples(
    story(saves, days_of(0, 2), 12),
    story(st.one_of(acts, searches), days, 15),
    story(st.one_of(searches, searches, acts), days, 10),
)
scenes = st.fixed_dictionaries(
    {
        "channel": st.sampled_from([None, "a", "b"]),
        "tags": st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
        "today": days,
        "policy": st.builds(
            Policy,
            rest_after_days=st.integers(1, 5),
            desk_limit=st.integers(0, 6),
            decay_enabled=st.sampled_from([True, True, True, False]),
        ),
        "message": texts,
    }
)
tenants = count()


@dataclass
class Book:
    """A tenant of its own in the shared database, and what was written for it."""

    world: World
    tenant: str
    written: dict[ListKey, int]

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
            "id": new_id(self.stream(key).bytes[0], hashlib.sha256(str(next(tenants)).encode()).digest()),
            "tenant": self.tenant, "actor": "persona", "turn": turn, **key._asdict(),
        }  # fmt: skip
        match kind:
            case "save":
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
        return {"pin": e.MemoryPinned, "unpin": e.MemoryUnpinned}[kind](**stamp, memory=one, day=day)

    def write(self, happened: Sequence[Any]) -> None:
        """Append these, one after another."""
        now = datetime.combine(FIRST, time(1), UTC)
        for what, list_no, number, day, turn in happened:
            key = KEYS[list_no]
            event = self.event(key, what, number, day, turn)
            now += timedelta(minutes=7)
            batch = Batch(self.stream(key), [event], None, (key.owner,))
            self.store.append([batch], request=Request(self.tenant, batch.stream.bytes[0]), now=now)
            if (text := getattr(event, "text", None)) and DARK not in text:
                self.vectors.keep([(key.owner, text, unit(self.world, text))])

    @property
    def vectors(self) -> Vectors:
        engine = self.world.memory.engine
        settings = engine.settings.model_copy(update={"tenant": self.tenant})
        return Vectors(Deps(self.store, engine.deps.clock, settings, engine.deps.embedder))

    def project(self, batch: int, batches: int) -> None:
        """The tables see some more of the events."""
        runner = self.world.memory.engine.runner
        small = Runner(self.store.database.connection, StoreSource(self.store), runner.projections, batch=batch)
        for _ in range(batches):
            small.run_batch(runner.projections[0])

    def lists(self) -> dict[ListKey, MemoryList]:
        """The lists by the domain's own fold."""
        return {key: reduce(evolve, self.store.read([(self.stream(key), 0)]), MemoryList()) for key in KEYS}

    def scene(self, channel: str | None, tags: tuple[str, ...], today: date, policy: Policy, message: str) -> Scene:
        embedder = self.world.memory.engine.deps.embedder
        assert embedder is not None
        now = datetime.combine(today, time(12), UTC)
        return Scene(KEYS, [self.stream(k) for k in KEYS], Place("tea house", channel, tags), now, policy, self.tenant,
                     embedder.model)  # fmt: skip


def unit(world: World, text: str) -> Any:
    vector = world.fake.vector_of(text)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass
class Read:
    """What a reply makes of the lists: all of it that could differ."""

    prefix: str
    desk: list[list[UUID]]
    unused: dict[UUID, int]
    found: dict[UUID, float]
    order: list[UUID]
    searched: list[set[UUID]]
    members: list[int]
    ticks: list[bool]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Read):
            return NotImplemented
        same = self.prefix == other.prefix and self.desk == other.desk and self.unused == other.unused
        rest = self.searched == other.searched and self.members == other.members and self.ticks == other.ticks
        near = self.found.keys() == other.found.keys() and all(
            abs(s - other.found[i]) < 2e-3 for i, s in self.found.items()
        )
        return same and rest and near


def by_sql(book: Book, scene: Scene, message: str, lists: dict[ListKey, MemoryList]) -> Read:
    """As `Recall.reply` reads it."""

    def work(conn: Any) -> Read:
        desk = read_desk(conn, book.store, scene)
        rows = candidates.find(conn, scene, desk, message, unit(book.world, message))
        text = render_prefix("", list(zip(scene.keys, desk.order, strict=True)), desk.lines)
        members = [{k for k, m in lists[x.key].memories.items() if not m.pinned} for x in desk.lists]
        return Read(
            text,
            desk.order,
            {i: v.unused_days for i, v in desk.views.items()} | {r.view.id: r.view.unused_days for r in rows},
            {r.view.id: r.similarity for r in rows},
            [r.view.id for r in rows],
            [{k for k in here if k not in x.out} for here, x in zip(members, desk.lists, strict=True)],
            [x.members for x in desk.lists],
            [bool(x.members) and x.ticks(scene.today) for x in desk.lists],
        )

    return book.store.database.run(work)


def by_domain(book: Book, scene: Scene, message: str, lists: dict[ListKey, MemoryList]) -> Read:
    """As the rules say it."""
    seen = {
        key: {
            k: m
            for k, m in lists[key].memories.items()
            if is_visible(tags=m.tags, channels=m.channels, until=m.until, place=scene.place, today=scene.today)
        }
        for key in KEYS
    }
    may_be = [
        [
            OnDesk(m.id, m.updated_at, m.pinned)
            for m in seen[key].values()
            if m.state(lists[key].days, scene.policy, scene.today) == "active"
        ]
        for key in KEYS
    ]
    order = choose_desk(may_be, scene.policy.desk_limit)
    searched = {key: {k: m for k, m in seen[key].items() if not m.pinned and DARK not in m.text} for key in KEYS}
    on_desk = {i: seen[key][i] for key, ids in zip(KEYS, order, strict=True) for i in ids}
    q = unit(book.world, message)
    found = {k: float(unit(book.world, m.text) @ q) for key in KEYS for k, m in searched[key].items()}
    owner = {k: key for key in KEYS for k in seen[key]}
    from remembrancer.domain.prompt import Line

    lines = {i: Line(m.text, m.until, m.pinned) for i, m in on_desk.items()}
    members = [[m for m in lists[key].memories.values() if not m.pinned] for key in KEYS]
    return Read(
        render_prefix("", list(zip(KEYS, order, strict=True)), lines),
        order,
        {i: seen[owner[i]][i].unused_days(lists[owner[i]].days) for i in {*on_desk, *found}},
        found,
        [],
        [set(searched[key]) for key in KEYS],
        [len(one) for one in members],
        [
            bool(one)
            and (
                scene.today not in lists[key].days
                or any(m.id in searched[key] and m.id in lists[key].days.off.get(scene.today, ()) for m in one)
            )
            for key, one in zip(KEYS, members, strict=True)
        ],
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    told=stories,
    more=st.tuples(st.integers(1, 6), st.integers(0, 4)),
    scene=scenes,
)
def test_t4_t5_t10_t17_d1_d2_d28_r12_sql_reads_what_the_domain_says_however_far_the_tables_are(
    world: World, told: Any, more: tuple[int, int], scene: dict[str, Any]
):
    book = Book(world, f"tenant {next(tenants)}", {})
    for happened, some_more in told:
        book.write(happened)
        book.project(*some_more)
    at = book.scene(**scene)
    lists = book.lists()
    said = by_domain(book, at, scene["message"], lists)
    first = by_sql(book, at, scene["message"], lists)
    assert first == said, "as the tables are"
    book.project(*more)
    second = by_sql(book, at, scene["message"], lists)
    assert second == said, "after some more"
    book.project(500, 9)
    third = by_sql(book, at, scene["message"], lists)
    assert third == said, "after all"
    assert first.order == second.order == third.order
