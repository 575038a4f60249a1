"""`doctor` finds what is not well, says what to do about it, and puts parked streams right."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

from remembrancer.projections.memory import MemoryProjection
from remembrancer.services import doctor as parts
from remembrancer.services import open_memory
from remembrancer.services.answers import Check
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import FakeOpenAI, status
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up
from tests.support.world import PERSONA, SERVER, World

CAT = "Juno's cat is named Mochi"


class Open(NamedTuple):
    memory: Remembrancer
    fake: FakeOpenAI


@pytest.fixture
def well(database_url: str, redis_url: str) -> Iterator[Open]:
    """An installation in which everything works."""
    with (
        FakeOpenAI() as fake,
        open_memory(
            database_url,
            redis_url=redis_url,
            embedder="openai",
            embedder_url=fake.url,
            embedder_model="words",
            match_threshold=0.3,
        ) as memory,
    ):
        yield Open(memory, fake)


def checks(memory: Remembrancer) -> dict[str, Check]:
    return {check.name: check for check in memory.doctor().checks}


def unwell(memory: Remembrancer) -> dict[str, Check]:
    """What is not well; each finding says what to do."""
    found = {name: check for name, check in checks(memory).items() if not check.ok}
    assert all(check.hint for check in found.values())
    return found


def test_everything_is_well_and_that_takes_less_than_a_second_to_find_out(well: Open):
    well.memory.save(PERSONA, scope="server", subject=SERVER, text=CAT)
    well.memory.engine.waiting.settle()
    start = time.perf_counter()
    report = well.memory.doctor()
    took = time.perf_counter() - start
    assert report.ok, [check for check in report.checks if not check.ok]
    assert [check.name for check in report.checks] == [
        "database", "pgvector", "migrations", "clock", "projections", "read model", "parked streams", "workers",
        "vectors", "model", "decay", "chat model", "redis",
    ]  # fmt: skip
    assert took < 1.0
    found = {check.name: check.detail for check in report.checks}
    assert "PostgreSQL 18" in found["database"]
    assert "768 dimensions" in found["model"]
    assert "0.300" in found["model"]


def test_a_worker_that_has_just_been_started_is_waited_for(database_url: str):
    for _ in range(3):
        with open_memory(database_url, embedder="none") as memory:
            assert checks(memory)["workers"].ok


def test_a_database_that_is_away_is_said_at_once_and_the_rest_is_looked_at(postgres: Any, migrated_template: str):
    from tests.conftest import _database

    with ExitStack() as stack:
        with _database(postgres, migrated_template) as url:
            memory = stack.enter_context(open_memory(url, embedder="none", background=False))
        start = time.perf_counter()
        report = memory.doctor()
        assert time.perf_counter() - start < 3.0
    assert not report.ok
    assert [check.name for check in report.checks] == ["database", "model", "decay", "chat model", "redis"]
    assert "cannot be reached" in report.checks[0].detail


def test_a_database_that_takes_no_writes(database_url: str):
    with open_memory(database_url, embedder="none", background=False) as memory:
        memory.policy()
        with psycopg.connect(database_url, autocommit=True) as connection:
            name = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        assert "takes no writes" in unwell(memory)["database"].detail


def test_an_old_pgvector(well: Open, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "PGVECTOR", (99, 0, 0))
    found = unwell(well.memory)["pgvector"]
    assert "older than 99.0.0" in found.detail
    assert "ALTER EXTENSION vector UPDATE" in str(found.hint)


def test_migrations_of_a_newer_version_and_missing_ones(well: Open):
    with psycopg.connect(well.memory.engine.store.database.url, autocommit=True) as connection:
        connection.execute("INSERT INTO remembrancer.migration (name) VALUES ('9999_tomorrow')")
        assert "9999_tomorrow" in unwell(well.memory)["migrations"].detail
        connection.execute("DELETE FROM remembrancer.migration WHERE name >= '0010'")
        assert "0010_read_model" in unwell(well.memory)["migrations"].detail


def test_a_clock_that_disagrees_with_the_databases(database_url: str):
    clock = lambda: datetime.now(UTC) - timedelta(minutes=10)  # noqa: E731
    with open_memory(database_url, clock=clock, embedder="none") as memory:
        assert unwell(memory)["clock"].detail == "10 minutes ahead of ours"


def test_a_projection_that_lags_says_by_how_many_events_and_since_when(world: World):
    world.memory.policy()
    world.project()
    world.save(CAT)
    world.save("Aiko likes plums")
    found = checks(world.memory)["projections"]
    assert found.ok  # a moment ago is no lag
    assert "memory is 2 events behind since 2026-05-04 12:00:00 UTC" in found.detail
    world.later(seconds=30)
    assert not checks(world.memory)["projections"].ok
    world.project()
    assert checks(world.memory)["projections"].ok


def test_nobody_who_projects(world: World):
    assert unwell(world.memory)["workers"].detail == "0 alive, 0 of 16 slots held"


@contextmanager
def a_projection_that_stumbles(monkeypatch: pytest.MonkeyPatch, over: str) -> Iterator[None]:
    """The memory projection takes no save of this text."""
    apply = MemoryProjection.apply

    def stumbling(self: Any, conn: Any, generation: int, events: Any) -> None:
        if any(getattr(r.event, "text", None) == over for r in events):
            raise ValueError("cannot take it")
        apply(self, conn, generation, events)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryProjection, "apply", stumbling)
        yield


def test_a_parked_stream_is_named_and_repaired(world: World, monkeypatch: pytest.MonkeyPatch):
    cat = world.save(CAT, subject="harbour")
    other = world.save("Aiko likes plums")
    with a_projection_that_stumbles(monkeypatch, CAT):
        world.project()
        world.memory.edit(cat, text="Juno's cat is named Tofu")
        world.project()
        found = unwell(world.memory)["parked streams"]
        assert str(world.memory.engine.finder.home(cat).stream) in found.detail
        assert "ValueError: cannot take it" in found.detail
        assert "doctor --repair" in str(found.hint)
        (tried,) = world.memory.engine.doctor.repair().checks
        assert not tried.ok
        assert "still parked" in tried.detail
        assert not checks(world.memory)["parked streams"].ok

    report = world.memory.engine.doctor.repair()
    assert report.ok
    assert len(report.checks) == 1
    assert checks(world.memory)["parked streams"].ok
    assert "nothing to repair" in world.memory.engine.doctor.repair().checks[0].detail
    assert world.get(other).text == "Aiko likes plums"
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)


def test_memories_without_a_vector_and_with_one_of_another_model_are_counted(world: World):
    world.lose_the_model()
    world.save(CAT)
    world.save("Aiko likes plums", scope="personal")
    world.project()
    found = unwell(world.memory)
    assert found["vectors"].detail == "2 memories wait for their first vector"
    assert "status 400" in found["model"].detail
    world.find_the_model()
    world.memory.embed_pending()
    assert "model" not in unwell(world.memory)
    assert checks(world.memory)["vectors"].detail == "every memory has one of openai:words"
    other = world.open(embedder_model="better words")
    assert unwell(other)["change of model"].detail == (
        "the settings name openai:better words, but openai:words serves: no process has begun a change"
    )
    assert checks(world.open(tenant="another"))["vectors"].ok


def test_d5_a_model_that_nobody_has_measured_needs_a_threshold(database_url: str):
    with (
        FakeOpenAI() as fake,
        open_memory(
            database_url, embedder="openai", embedder_url=fake.url, embedder_model="words", background=False
        ) as memory,
    ):
        found = unwell(memory)["model"]
        assert "no match threshold" in found.detail
        assert "remembrancer calibrate" in str(found.hint)
        memory.set_policy(match_threshold=0.4)
        assert "matches from 0.400" in checks(memory)["model"].detail


def test_a_model_that_hangs_costs_no_more_than_a_reply_would_wait(database_url: str):
    with (
        FakeOpenAI() as fake,
        open_memory(
            database_url,
            embedder="openai",
            embedder_url=fake.url,
            embedder_model="words",
            embed_timeout=0.3,
            background=False,
        ) as memory,
    ):
        fake.otherwise = status(503)
        start = time.perf_counter()
        found = checks(memory)["model"]
        assert time.perf_counter() - start < 1.5
        assert not found.ok
        assert "nothing ticks (T8)" in str(found.hint)


def test_no_model_and_decay_off_are_settings_and_said_so(well: Open, monkeypatch: pytest.MonkeyPatch):
    assert checks(well.memory)["decay"].detail == "on"
    well.memory.set_policy(decay_enabled=False)
    assert "policy" in checks(well.memory)["decay"].detail
    well.memory.set_policy(decay_enabled=None)
    url = well.memory.engine.store.database.url
    with open_memory(url, embedder="none", background=False) as memory:
        found = checks(memory)
        assert (found["model"].ok, found["decay"].ok) == (True, True)
        assert "T11" in found["model"].detail
        assert "without a model" in found["decay"].detail
    monkeypatch.setenv("MEMORY_DECAY_ENABLED", "false")
    with open_memory(url, embedder="none", background=False) as memory:
        assert checks(memory)["decay"].ok
        assert "MEMORY_DECAY_ENABLED" in checks(memory)["decay"].detail


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/redis.sock"])
def test_a_redis_that_is_away(database_url: str, url: str):
    with open_memory(database_url, embedder="none", redis_url=url, background=False) as memory:
        found = unwell(memory)["redis"]
        assert "Nothing is lost" in str(found.hint)


def test_the_room_for_an_embedded_database(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    with open_memory(data_dir=data_dir, embedder="none") as memory:
        found = checks(memory)
        assert found["database"].detail.endswith("embedded")
        assert str(data_dir) in found["disk"].detail
        usage = shutil.disk_usage(data_dir)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
        assert "Make room" in str(unwell(memory)["disk"].hint)
