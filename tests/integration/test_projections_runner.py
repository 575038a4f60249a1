"""How events become rows: fenced, parked by stream, never confused by an outage, shared between workers by leases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.domain.events import Recorded
from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.projections.projection import Projection
from remembrancer.projections.runner import Runner
from remembrancer.projections.worker import SLOTS, Worker
from remembrancer.services.answers import Position
from remembrancer.services.store import Batch, Request, StoreSource
from tests.support.world import SERVER, World, desk, matched

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
POISON = "Poison"


class Touchy:
    """A projection that cannot take memories that speak of poison, until it is cured."""

    def __init__(self, projection: Projection) -> None:
        self.name = projection.name
        self.projection = projection
        self.cured = False
        self.failure: Callable[[], Exception] = lambda: ValueError("I cannot take this")
        self.before: Callable[[], None] = lambda: None

    def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
        self.before()
        if not self.cured and any(POISON in getattr(r.event, "text", "") for r in events):
            raise self.failure()
        self.projection.apply(conn, generation, events)


def runner_of(world: World, projections: Sequence[Projection], batch: int = 2_000) -> Runner:
    store = world.memory.engine.store
    return Runner(store.database.connection, StoreSource(store), projections, batch=batch)


def touchy(world: World) -> tuple[Touchy, Runner]:
    """The memory projection, touchy, with a runner of its own."""
    one = Touchy(world.memory.engine.runner.projections[0])
    return one, runner_of(world, [one])


def projected(world: World) -> set[str]:
    """The texts that stand in the table."""
    with world.memory.engine.store.database.connection() as conn:
        return {row[0] for row in conn.execute("SELECT text FROM remembrancer.memory")}


def checkpoints(world: World, projection: str = "memory") -> Mapping[int, int]:
    with world.memory.engine.store.database.connection() as conn:
        found = conn.execute(
            "SELECT shard, position FROM remembrancer.checkpoint WHERE projection = %s AND position > 0", (projection,)
        )
        return dict(found.fetchall())


# -- poison -----------------------------------------------------------------------------------------------------------


def test_an_event_that_a_projection_cannot_take_parks_its_stream_and_no_other(world: World):
    _, runner = touchy(world)
    world.save(CAT)
    world.save(f"{POISON} is in the tea")
    world.save(TEA)
    world.save("Juno sings", subject="chess club")
    world.save("Juno paints rivers", scope="personal")
    runner.catch_up()
    assert projected(world) == {"Juno sings", "Juno paints rivers"}
    (parked,) = runner.parked()
    assert (parked.projection, parked.stream) == ("memory", list_stream("default", ListKey("mira", "server", SERVER)))
    assert "I cannot take this" in parked.error
    assert checkpoints(world) == world.memory.engine.store.heads(), "nobody waits for the parked one"
    world.save("Kaito likes rain")
    world.save("Juno lives in Porto", scope="personal")
    runner.catch_up()
    assert projected(world) == {"Juno sings", "Juno paints rivers", "Juno lives in Porto"}
    assert len(runner.parked()) == 1


def test_a_reply_sees_a_list_whose_stream_is_parked(world: World):
    _, runner = touchy(world)
    world.save(CAT)
    runner.catch_up()
    world.save(f"{POISON} is in the tea")
    runner.catch_up()
    world.save(TEA)
    answer = world.say("Mochi?")
    assert desk(answer) == [CAT, f"{POISON} is in the tea", TEA]
    assert matched(answer) == [CAT]


def test_a_parked_stream_is_taken_up_again_from_where_it_stopped(world: World):
    projection, runner = touchy(world)
    cat = world.save(CAT)
    runner.catch_up()
    world.save(f"{POISON} is in the tea")
    world.memory.edit(cat, text="Juno's cat is called Mochi")
    runner.catch_up()
    world.talk(range(1, 3))
    (parked,) = runner.parked()
    with pytest.raises(ValueError, match="cannot take"):
        runner.repair(parked)
    assert runner.parked() == [parked]
    projection.cured = True
    runner.catch_up()
    runner.repair(parked)
    assert runner.parked() == []
    world.say()
    runner.catch_up()
    assert projected(world) == {f"{POISON} is in the tea", "Juno's cat is called Mochi"}
    before = world.say()
    with world.memory.engine.store.database.connection() as conn:
        conn.execute("UPDATE remembrancer.checkpoint SET position = 0")
        conn.execute("TRUNCATE remembrancer.list, remembrancer.list_day, remembrancer.memory, remembrancer.memory_use")
    runner.catch_up()
    assert world.say().prefix == before.prefix


def test_an_event_of_a_newer_version_parks_its_stream_until_it_is_known(world: World, monkeypatch: pytest.MonkeyPatch):
    class MemoryPraised(e.ListEvent):
        memory: UUID

    cat = world.save(CAT)
    world.save("Juno paints rivers", scope="personal")
    key = ListKey("mira", "server", SERVER)
    stream = list_stream("default", key)
    praised = MemoryPraised(id=uuid4(), tenant="default", memory=cat, **key._asdict())
    world.memory.engine.store.append([Batch(stream, [praised], None)], request=Request("default", stream.bytes[0]))
    runner = world.memory.engine.runner
    runner.catch_up()
    assert projected(world) == {"Juno paints rivers"}
    assert {p.stream for p in runner.parked()} == {stream}
    assert all("MemoryPraised" in p.error for p in runner.parked())
    monkeypatch.setitem(e.EVENTS, "MemoryPraised", MemoryPraised)
    for parked in runner.parked():
        runner.repair(parked)
    assert projected(world) == {CAT, "Juno paints rivers"}
    assert desk(world.say()) == [CAT, "Juno paints rivers"]


@pytest.mark.parametrize(
    "failure", [psycopg.OperationalError, psycopg.errors.AdminShutdown, psycopg.errors.DiskFull, psycopg.InterfaceError]
)
def test_an_outage_is_never_taken_for_poison(world: World, failure: type[Exception]):
    projection, runner = touchy(world)
    world.save(f"{POISON} is in the tea")
    projection.failure = failure
    with pytest.raises((psycopg.Error, Unavailable)):
        runner.catch_up()
    assert runner.parked() == []
    assert checkpoints(world) == {}
    projection.cured = True
    runner.catch_up()
    assert projected(world) == {f"{POISON} is in the tea"}


# -- fencing ----------------------------------------------------------------------------------------------------------


def test_a_runner_that_stood_still_while_another_one_went_on_changes_nothing(world: World):
    memory = world.memory.engine.runner.projections[0]
    applied: list[UUID] = []

    class Counted:
        name = "memory"

        def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
            applied.extend(r.event.id for r in events)
            memory.apply(conn, generation, events)

    other = runner_of(world, [Counted()])

    @contextmanager
    def standing_still():
        """A connection whose holder sleeps between its first statement and its transaction."""
        with world.memory.engine.store.database.connection() as conn:
            inner = conn.transaction

            def transaction(*args: Any, **kwargs: Any):
                conn.transaction = inner  # type: ignore[method-assign]
                assert other.catch_up() > 0
                return inner(*args, **kwargs)

            conn.transaction = transaction  # type: ignore[method-assign]
            try:
                yield conn
            finally:
                conn.transaction = inner  # type: ignore[method-assign]

    world.save(CAT)
    world.save(TEA)
    late = Runner(standing_still, StoreSource(world.memory.engine.store), [Counted()])
    assert late.run_batch(late.projections[0]) == 0
    heads = world.memory.engine.store.heads()
    assert checkpoints(world) == heads
    assert len(applied) == len(set(applied)) == sum(heads.values())
    assert late.parked() == []


def test_two_runners_on_the_same_shards_apply_every_event_once(world: World):
    for n in range(40):
        world.save(f"Fact number {n}", subject=f"server {n % 7}", actor="import")
    applied: list[UUID] = []
    lock = threading.Lock()
    memory = world.memory.engine.runner.projections[0]

    class Slow:
        name = "memory"

        def apply(self, conn: Connection[Any], generation: int, events: Sequence[Recorded]) -> None:
            memory.apply(conn, generation, events)
            time.sleep(0.002)
            with lock:
                applied.extend(r.event.id for r in events)

    def run() -> None:
        runner = runner_of(world, [Slow()], batch=8)
        while checkpoints(world) != heads:
            runner.run_batch(runner.projections[0])

    heads = world.memory.engine.store.heads()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(projected(world)) == 40
    assert len(applied) == len(set(applied)) == sum(heads.values())


def test_catching_up_takes_all_there_is_also_where_one_shard_has_most_of_it(world: World):
    for n in range(30):
        world.save(f"Fact number {n}")
    runner = runner_of(world, world.memory.engine.runner.projections, batch=12)
    runner.catch_up()
    assert checkpoints(world) == world.memory.engine.store.heads()
    smallest = runner_of(world, world.memory.engine.runner.projections, batch=1)
    world.save(CAT)
    smallest.catch_up()
    assert CAT in projected(world)


def test_checkpoints_move_over_events_that_a_projection_ignores(world: World):
    world.memory.set_person("juno", privacy="nowhere")
    world.memory.set_server(SERVER, private=True)
    world.say(memory="off")
    world.project()
    for projection in ("memory", "archive", "history"):
        assert checkpoints(world, projection) == world.memory.engine.store.heads()


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_waiting_for_positions_that_are_not_there_yet_raises_or_goes_on_stale(world: World):
    answer = world.saving(CAT)
    assert answer.positions
    assert world.memory.wait(answer.positions, timeout=0.05, mode="stale") is False
    with pytest.raises(Unavailable) as late:
        world.memory.wait(answer.positions, timeout=0.05)
    assert "projector" in str(late.value)
    world.project()
    assert world.memory.wait(answer.positions, timeout=0.05) is True
    assert world.memory.wait([], timeout=0.05) is True
    with pytest.raises(InvalidInput):
        world.memory.wait(answer.positions, mode="perhaps")  # type: ignore[arg-type]


def test_waiting_is_for_all_projections_and_for_each_shard_of_an_answer(world: World):
    answer = world.say(users=["juno", "aiko"])
    world.save("Juno paints rivers", scope="personal")
    positions = world.say(users=["juno", "aiko"], turn="t").positions + answer.positions
    assert len({p.shard for p in positions}) >= 2
    world.memory.engine.runner.catch_up(projections=["memory", "history"])
    assert world.memory.wait(positions, timeout=0.05, mode="stale") is False
    world.project()
    assert world.memory.wait(positions, timeout=0.05) is True


def test_ones_own_write_is_in_the_tables_soon_when_a_worker_runs(world: World):
    behind = world.open(background=True)
    for n in range(5):
        answer = behind.save("mira", scope="server", subject=SERVER, text=f"Fact number {n}")
        assert behind.wait(answer.positions, timeout=10)
        assert f"Fact number {n}" in projected(world)


def test_who_waits_for_a_position_far_ahead_is_told_in_time(world: World):
    started = time.monotonic()
    assert world.memory.wait([Position(shard=7, position=10**9)], timeout=0.2, mode="stale") is False
    assert 0.2 <= time.monotonic() - started < 2


# -- leases -----------------------------------------------------------------------------------------------------------


def worker(world: World, seconds: float = 30.0) -> Worker:
    engine = world.memory.engine
    return Worker(uuid4(), engine.store.database.connection, engine.runner, lambda _: False, lease_seconds=seconds)


def test_two_workers_share_the_slots_and_a_third_gets_its_part(world: World):
    one, two, three = worker(world), worker(world), worker(world)
    assert len(one.lease()) == SLOTS
    for _ in range(3):
        held = [set(w.lease()) for w in (one, two)]
    assert [len(h) for h in held] == [SLOTS // 2, SLOTS // 2]
    assert set.union(*held) == set(range(SLOTS))
    for _ in range(3):
        held = [set(w.lease()) for w in (one, two, three)]
    assert set.union(*held) == set(range(SLOTS))
    assert sum(map(len, held)) == SLOTS
    assert max(map(len, held)) <= 6


def test_the_slots_of_a_worker_that_died_move_on_after_its_lease_by_the_clock_of_the_database(world: World):
    one, two = worker(world, 0.3), worker(world, 0.3)
    one.lease()
    two.lease()
    one.lease()
    assert len(two.lease()) == SLOTS // 2
    world.day(400)
    assert len(two.lease()) == SLOTS // 2, "the clock of the story is not the database's"
    time.sleep(0.35)
    assert len(two.lease()) == SLOTS
    assert one.lease() == [], "it is back, and has nothing until it gets its part"
    two.lease()
    assert len(one.lease()) == SLOTS // 2


def test_a_worker_that_ends_well_hands_its_slots_back_at_once(world: World):
    one, two = worker(world), worker(world)
    one.start()
    deadline = time.monotonic() + 10
    while not held_by(world, one.worker) and time.monotonic() < deadline:
        time.sleep(0.01)
    one.stop()
    assert held_by(world, one.worker) == 0
    assert len(two.lease()) == SLOTS


def held_by(world: World, who: UUID) -> int:
    with world.memory.engine.store.database.connection() as conn:
        found = conn.execute("SELECT count(*) FROM remembrancer.lease WHERE worker = %s", (who,)).fetchone()
        assert found is not None
        return int(found[0])


def test_a_worker_projects_the_shards_that_it_holds_and_no_others(world: World):
    for n in range(30):
        world.save("Fact", subject=f"server {n}")
    runner = world.memory.engine.runner
    runner.catch_up([0, 1, 2, 3, 4, 5, 6, 7])
    heads = world.memory.engine.store.heads()
    assert checkpoints(world) == {shard: position for shard, position in heads.items() if shard < SLOTS * 8}
    runner.catch_up([8, 9, 10, 11, 12, 13, 14, 15])
    assert checkpoints(world) == heads
