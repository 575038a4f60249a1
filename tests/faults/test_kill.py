"""SIGKILL at any moment under load: nothing acknowledged is lost, nothing is there that nobody asked for, and what was
killed needs no repair (DESIGN 8, 9).

Each client writes an acknowledged id to disk before its next call, so its ledger and the store can be compared both
ways.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import psycopg
import pytest
import redis

from remembrancer.domain import events as e
from remembrancer.services import open_memory
from remembrancer.services.embedded import open_embedded
from remembrancer.services.embedded.server import Postmaster
from remembrancer.services.remembrancer import Remembrancer
from tests.support.processes import client
from tests.support.read_model import all_events, assert_read_model_is_a_fresh_fold, caught_up

LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}


def acknowledged(ledger: Path) -> dict[int, str]:
    """What a client has written down: number of its save to the memory's id. A last line may be torn."""
    lines = ledger.read_text(encoding="utf-8").split("\n")[:-1] if ledger.exists() else []
    return {int(number): memory for number, memory in (line.split() for line in lines)}


def recorded(memory: Remembrancer, who: str) -> dict[int, str]:
    """What the store has of a client: number of its save to the memory's id; none may be there twice."""
    saved = [one.event for one in all_events(memory)]
    texts = [(ev.text, str(ev.memory)) for ev in saved if isinstance(ev, e.MemorySaved) and ev.subject.endswith(who)]
    numbers = [int(text.split()[1]) for text, _ in texts]
    assert len(numbers) == len(set(numbers)), "a save is there twice"
    return dict(zip(numbers, (one for _, one in texts), strict=True))


def test_a_killed_client_has_lost_nothing_acknowledged_and_left_at_most_the_save_in_flight(
    database_url: str, tmp_path: Path
) -> None:
    """DESIGN 9. Each client is a whole service: it projects, too, and is killed in the middle of that as well."""
    names = [f"client {n}" for n in range(4)]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(client("saver", who=who, ledger=str(tmp_path / who), url=database_url, embedder="none"))
            for who in names
        ]
        assert [one.line() for one in clients] == ["ready"] * len(names)
        for one in clients:
            time.sleep(random.uniform(0.0, 0.5))
            one.kill()
    with open_memory(database_url, embedder="none", background=False) as memory:
        for who in names:
            ours, theirs = acknowledged(tmp_path / who), recorded(memory, who)
            assert ours
            assert theirs.items() >= ours.items(), "an acknowledged save is lost"
            assert set(theirs) - set(ours) <= {max(ours) + 1}, "the store has more than the save in flight"
        caught_up(memory)
        assert_read_model_is_a_fresh_fold(memory)


def test_a_killed_database_has_lost_nothing_acknowledged_and_its_clients_go_on(data_dir: Path, tmp_path: Path) -> None:
    """DESIGN 9. First one process of the server, so that it starts anew by itself; then the whole server, twice.

    It flushes as it does for users. The clients send what failed again, with its request id: every save is there once.
    """
    names = ["client 0", "client 1"]
    with ExitStack() as stack:
        server = stack.enter_context(open_embedded(data_dir))
        clients = [
            stack.enter_context(client("saver", who=who, ledger=str(tmp_path / who), url=server.url, embedder="none"))
            for who in names
        ]
        assert [one.line() for one in clients] == ["ready"] * len(names)
        for kill in (kill_a_backend, kill_all, kill_all):
            time.sleep(random.uniform(0.1, 0.6))
            kill(data_dir)
            before = [len(acknowledged(tmp_path / who)) for who in names]
            stack.enter_context(open_embedded(data_dir))
            deadline = time.monotonic() + 30
            while any(len(acknowledged(tmp_path / who)) <= n for who, n in zip(names, before, strict=True)):
                assert time.monotonic() < deadline, "a client does not go on"
                time.sleep(0.02)
        assert [one.end() for one in clients] == [0] * len(names)
        with open_memory(server.url, embedder="none", background=False) as memory:
            for who in names:
                assert recorded(memory, who) == acknowledged(tmp_path / who)
            caught_up(memory)
            assert_read_model_is_a_fresh_fold(memory)


def kill_a_backend(data_dir: Path) -> None:
    """One connection's process dies; the server ends all others and recovers."""
    backends = [one for one in _server(data_dir).children() if "remembrancer" in " ".join(one.cmdline())]
    random.choice(backends).kill()


def kill_all(data_dir: Path) -> None:
    """As when the power fails, but for the disk."""
    server = _server(data_dir)
    for one in [server, *server.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _server(data_dir: Path) -> psutil.Process:
    running = Postmaster.of(data_dir / "postgres")
    assert running is not None
    return psutil.Process(running.pid)


class Redis:
    """A Redis of this test, at an address that stays the same."""

    def __init__(self, program: str, folder: Path) -> None:
        self._command = [program, "--port", "0", "--unixsocket", "redis.sock", "--save", "", "--dir", folder]
        self._folder = folder
        self.url = f"unix://{folder / 'redis.sock'}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        with redis.Redis.from_url(self.url) as asking:
            deadline = time.monotonic() + 10
            while True:
                try:
                    asking.ping()
                    return
                except redis.ConnectionError:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def own_redis(redis_program: str) -> Iterator[Redis]:
    with TemporaryDirectory(prefix="remembrancer-redis-") as folder:
        server = Redis(redis_program, Path(folder))
        yield server
        server.kill()


def test_a_killed_redis_fails_no_reply_and_the_projections_catch_up_by_themselves(
    database_url: str, own_redis: Redis
) -> None:
    """DESIGN 8. Killed under load, started again, made to hang, killed again: all that it costs is a second."""
    slowest = 0.0
    failures: list[BaseException] = []
    done = threading.Event()

    def talk(memory: Remembrancer, who: str) -> None:
        nonlocal slowest
        n = 0
        try:
            while not done.is_set():
                n += 1
                began = time.monotonic()
                memory.save("mira", **LIST, text=f"fact {n} of {who}", actor="persona")
                memory.reply("mira", message="hello", users=["juno"], server="guild")
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(0.05)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    settings: dict[str, Any] = {"redis_url": own_redis.url, "embedder": "none", "list_capacity": 10_000}
    with (
        open_memory(database_url, background=False, **settings) as memory,
        open_memory(database_url, background=True, **settings) as projecting,
    ):
        talkers = [threading.Thread(target=talk, args=(memory, name)) for name in ("a", "b")]
        for one in talkers:
            one.start()
        try:
            time.sleep(0.4)
            own_redis.kill()
            time.sleep(0.8)
            assert_catches_up(memory)
            own_redis.start()
            time.sleep(0.4)
            os.kill(own_redis.process.pid, signal.SIGSTOP)
            time.sleep(0.8)
            assert_catches_up(memory)
            own_redis.kill()
            time.sleep(0.4)
        finally:
            done.set()
            for one in talkers:
                one.join(30)
        assert not failures
        assert slowest < 3.0
        assert_catches_up(memory)
        assert_read_model_is_a_fresh_fold(projecting)


def assert_catches_up(memory: Remembrancer) -> None:
    """What is committed now is projected soon, by whoever projects."""
    assert memory.engine.waiting.settle(10.0)


def test_a_redis_that_never_was_there_is_no_matter(database_url: str) -> None:
    settings: dict[str, Any] = {"redis_url": "redis://127.0.0.1:1/0", "embedder": "none"}
    with open_memory(database_url, **settings) as memory:
        saved = memory.save("mira", **LIST, text="Juno's cat is named Mochi")
        assert memory.wait(saved.positions, timeout=10.0)
        assert memory.reply("mira", message="hello", users=["juno"], server="guild").prefix.memories


def test_connections_ended_by_the_server_are_no_matter(database_url: str) -> None:
    """An administrator, a proxy or a restart may end any connection at any time."""
    with open_memory(database_url, embedder="none", background=False) as memory:
        for n in range(5):
            memory.save("mira", **LIST, text=f"fact {n}")
            with psycopg.connect(database_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            assert len(memory.reply("mira", message="hi", users=["juno"], server="guild").prefix.memories) == n + 1
