"""The database is stopped, full, read-only, or shared; the clock goes back. Each verb says so in a clear sentence, and
nothing is written by halves; when it is over, the same `Remembrancer` works on.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.domain.identity import shard_of_id
from remembrancer.services import open_memory
from remembrancer.services.embedded import EmbeddedPostgres, open_embedded
from remembrancer.services.embedded.server import Postmaster
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import FakeOpenAI
from tests.support.processes import client
from tests.support.read_model import all_events, assert_read_model_is_a_fresh_fold, caught_up
from tests.support.small_disk import fill, small_disk

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}

Verbs = dict[str, Callable[[Remembrancer, Any], Any]]
WRITING: Verbs = {
    "save": lambda m, one: m.save("mira", **LIST, text="Juno moved to Porto"),
    "edit": lambda m, one: m.edit(one, text="Juno's cat is named Miso"),
    "delete": lambda m, one: m.delete(one),
    "pin": lambda m, one: m.pin(one),
    "unpin": lambda m, one: m.unpin(one),
    "clear": lambda m, one: m.clear("mira", **LIST),
    "reply": lambda m, one: m.reply("mira", message="Mochi?", users=["juno"], server="guild"),
    "set_persona": lambda m, one: m.set_persona("mira", learns=False),
    "set_person": lambda m, one: m.set_person("juno", privacy="nowhere"),
    "set_server": lambda m, one: m.set_server("guild", notices="hidden"),
    "set_policy": lambda m, one: m.set_policy(rest_after_days=10),
    "import_rows": lambda m, one: m.import_rows(list(m.export())),
}
READING: Verbs = {
    "get": lambda m, one: m.get(one),
    "list": lambda m, one: m.list("mira"),
    "list of all": lambda m, one: m.list(),
    "history": lambda m, one: m.history(persona="mira"),
    "why": lambda m, one: m.why(one),
    "find": lambda m, one: m.find("cat"),
    "persona": lambda m, one: m.persona("mira"),
    "person": lambda m, one: m.person("juno"),
    "server": lambda m, one: m.server("guild"),
    "policy": lambda m, one: m.policy(),
    "export": lambda m, one: list(m.export()),
}


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dimensions=32) as server:
        yield server


@contextmanager
def opened(url: str, model: FakeOpenAI, **settings: Any) -> Iterator[Remembrancer]:
    """A service with a model."""
    settings = {"embedder": "openai", "embedder_url": model.url, "embedder_model": "words"} | settings
    with open_memory(url, **settings) as memory:
        yield memory


def impatient(memory: Remembrancer) -> None:
    """Gives up on a database after a moment, where users wait for ten seconds."""
    memory.engine.store.database.patience = memory.engine.store.pool.timeout = 0.2


def patient(memory: Remembrancer) -> None:
    """As for users."""
    memory.engine.store.database.patience = memory.engine.store.pool.timeout = 10.0


def stop(data_dir: Path) -> None:
    """As an administrator does."""
    running = Postmaster.of(data_dir / "postgres")
    assert running is not None
    os.kill(running.pid, signal.SIGINT)
    deadline = time.monotonic() + 20
    while Postmaster.of(data_dir / "postgres") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_with_a_stopped_database_every_verb_says_so_and_works_again_when_it_is_back(
    data_dir: Path, model: FakeOpenAI
) -> None:
    with open_embedded(data_dir, settings=FAST) as server, opened(server.url, model) as memory:
        one = memory.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
        before = all_events(memory)
        stop(data_dir)
        impatient(memory)
        for name, verb in (WRITING | READING).items():
            began = time.monotonic()
            with pytest.raises(Unavailable) as said:
                verb(memory, one)
            assert time.monotonic() - began < 5.0, f"{name} does not give up"
            assert said.value.status == 503
            assert "The database cannot be reached" in said.value.message, f"{name}: {said.value}"
            assert said.value.hint
        report = memory.doctor()
        assert not all(check.ok for check in report.checks)
        with open_embedded(data_dir, settings=FAST):
            patient(memory)
            assert all_events(memory) == before
            for verb in (READING | WRITING).values():
                verb(memory, one)
                if verb in (WRITING["delete"], WRITING["clear"]):
                    one = memory.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
            assert memory.engine.waiting.settle(20.0), "the projections go on by themselves"
            assert memory.engine.runner.parked() == []
            assert_read_model_is_a_fresh_fold(memory)


def test_after_an_outage_a_call_waits_for_the_database_to_come_back(data_dir: Path, model: FakeOpenAI) -> None:
    """Nobody has to open anything anew, and a restart costs a pause, not an error."""
    with ExitStack() as stack:
        server = stack.enter_context(open_embedded(data_dir, settings=FAST))
        memory = stack.enter_context(opened(server.url, model, embedder="none"))
        memory.save("mira", **LIST, text="before")
        stop(data_dir)
        stack.enter_context(open_embedded(data_dir, settings=FAST))
        assert memory.save("mira", **LIST, text="after").status == "saved"


def test_a_full_disk_is_named_and_what_was_acknowledged_stays(open_folder: Path, model: FakeOpenAI) -> None:
    with small_disk(open_folder, megabytes=140) as disk, ExitStack() as stack:
        server = stack.enter_context(open_embedded(disk / "data", settings=FAST))
        memory = stack.enter_context(opened(server.url, model, embedder="none", list_capacity=10_000))
        impatient(memory)
        acknowledged = {memory.save("mira", **LIST, text="before").memory.id}
        ballast = fill(disk)

        def save_on_and_on() -> None:
            for n in range(2_000):
                acknowledged.add(memory.save("mira", **LIST, text=f"{n} " + "word " * 90).memory.id)

        with pytest.raises(Unavailable, match=r"disk is full|cannot be reached") as said:
            save_on_and_on()
        assert said.value.hint
        ballast.unlink()
        patient(memory)
        acknowledged.add(memory.save("mira", **LIST, text="after").memory.id)
        (found,) = memory.list("mira", **LIST).lists
        assert {one.id for one in found.memories} == acknowledged
        assert memory.engine.waiting.settle(20.0)
        caught_up(memory)
        assert_read_model_is_a_fresh_fold(memory)


def test_a_read_only_database_is_named_and_still_read(database_url: str, model: FakeOpenAI) -> None:
    with opened(database_url, model) as memory:
        one = memory.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
        memory.engine.waiting.settle(10.0)
        read_only(database_url, "on")
        before = all_events(memory)
        for name, verb in WRITING.items():
            if name in ("unpin", "import_rows"):
                continue  # all of it is so already, so there is nothing to write
            with pytest.raises(Unavailable) as said:
                verb(memory, one)
            assert "read-only" in said.value.message, f"{name}: {said.value}"
            assert said.value.hint
        with opened(database_url, model, rest_after_days=9) as other:  # its policy cannot be recorded now
            for reader in (memory, other):
                for verb in READING.values():
                    verb(reader, one)
            assert other.policy().rest_after_days == 9
        assert all_events(memory) == before
        read_only(database_url, "off")
        for name, verb in WRITING.items():
            if name not in ("delete", "clear"):
                verb(memory, one)
        assert memory.engine.waiting.settle(10.0)
        assert memory.engine.runner.parked() == []
        assert_read_model_is_a_fresh_fold(memory)


def read_only(url: str, switch: str) -> None:
    """As on a standby. Connections are made anew, as after a change of the primary server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = {switch}".encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_two_processes_that_open_one_new_data_directory_at_once_both_work(data_dir: Path, tmp_path: Path) -> None:
    names = ["client 0", "client 1"]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                client("saver", who=who, ledger=str(tmp_path / who), data_dir=str(data_dir), embedder="none")
            )
            for who in names
        ]
        assert [one.line() for one in clients] == ["ready"] * 2
        with open_memory(data_dir=data_dir, embedder="none") as memory:
            saved = memory.save("mira", **LIST, text="a third one works, too")
            assert [one.end() for one in clients] == [0, 0]
            assert memory.get(saved.memory.id).text == "a third one works, too"
            for who in names:
                (found,) = memory.list("mira", scope="server", subject=f"guild of {who}").lists
                acknowledged = (tmp_path / who).read_text(encoding="utf-8").split()[1::2]
                assert {str(one.id) for one in found.memories} == set(acknowledged)


def test_a_clock_that_goes_back_never_ticks_a_day_again(database_url: str, model: FakeOpenAI) -> None:
    """D1; and moments of recording never go back in a shard (DESIGN 2)."""
    now = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    with opened(database_url, model, clock=lambda: now[0], background=False, match_threshold=0.9) as memory:

        def counter_after_a_reply_on(day: int, hour: int = 12) -> int:
            now[0] = datetime(2026, 5, day, hour, tzinfo=UTC)
            assert memory.reply("mira", message="games", users=["juno"], server="guild").search.status == "ok"
            if day % 2:
                caught_up(memory)
            return memory.get(mochi).unused_days

        mochi = memory.save("mira", **LIST, text="Juno's cat is named Mochi").memory.id
        assert counter_after_a_reply_on(2) == 1
        assert counter_after_a_reply_on(3) == 2
        assert counter_after_a_reply_on(2, hour=23) == 2
        assert counter_after_a_reply_on(1) == 2
        assert counter_after_a_reply_on(3, hour=1) == 2
        late = memory.save("mira", **LIST, text="Kit plays the cello").memory
        assert late.created_at == datetime(2026, 5, 3, 12, tzinfo=UTC), "the moment of the shard's last event"
        assert counter_after_a_reply_on(4) == 3
        events = all_events(memory)
        for shard in {one.shard for one in events}:
            moments = [one.recorded_at for one in events if one.shard == shard]
            assert moments == sorted(moments)
        assert any(one.shard == shard_of_id(mochi) for one in events)
        caught_up(memory)
        assert_read_model_is_a_fresh_fold(memory)


@pytest.mark.parametrize(
    ("shown", "said"),
    [(datetime(2026, 5, 1, 12), "time zone"), ("noon", "moment"), (None, "moment")],  # noqa: DTZ001
    ids=["no zone", "a text", "nothing"],
)
def test_a_clock_that_shows_no_moment_is_refused(database_url: str, shown: Any, said: str) -> None:
    with open_memory(database_url, embedder="none", background=False, clock=lambda: shown) as memory:
        with pytest.raises(InvalidInput, match=said):
            memory.save("mira", **LIST, text="Juno's cat is named Mochi")
        assert all_events(memory) == []


def test_a_server_that_is_not_there_at_opening_is_named(open_folder: Path, postgres: EmbeddedPostgres) -> None:
    for url in (f"postgresql://nobody@/nothing?host={open_folder}", "postgresql://127.0.0.1:1/nothing", "nonsense"):
        with pytest.raises(Unavailable) as said:
            open_memory(url, embedder="none")
        assert said.value.hint
    with pytest.raises(Unavailable, match="does not exist"):
        open_memory(postgres.url_of("nothing"), embedder="none")


def test_an_end_is_not_held_up_by_a_database_that_is_away(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as server:
        memory = open_memory(server.url, embedder="none")
        memory.save("mira", **LIST, text="Juno's cat is named Mochi")
        stop(data_dir)
        began = time.monotonic()
        memory.close()
        assert time.monotonic() - began < timedelta(seconds=12).total_seconds()
