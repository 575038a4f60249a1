"""Waking readers: within a process, through a real Redis, and through one that is not there."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.signal import CHANNEL, Listener, Signal, make_signal


@pytest.fixture(params=["within this process", "through Redis"])
def either(request: pytest.FixtureRequest) -> Iterator[Signal]:
    through_redis = request.param == "through Redis"
    with closing(make_signal(request.getfixturevalue("redis_url") if through_redis else None)) as found:
        yield found


def test_every_listener_hears_what_is_published(either: Signal):
    with either.listen() as one, either.listen() as other:
        either.publish({3: 17, 200: 1})
        assert one.wait(1) == {3: 17, 200: 1}
        assert other.wait(1) == {3: 17, 200: 1}


def test_what_is_published_between_two_waits_is_not_missed(either: Signal):
    with either.listen() as listener:
        either.publish({1: 5})
        either.publish({1: 7, 2: 1})
        either.publish({1: 6})
        assert listener.wait(1) == {1: 7, 2: 1}
        assert listener.wait(0.01) == {}


def test_a_wait_without_news_ends_empty_at_its_time(either: Signal):
    with either.listen() as listener:
        began = time.monotonic()
        assert not listener.wait(0.1)
        assert 0.1 <= time.monotonic() - began < 1


def test_a_closed_listener_hears_nothing(either: Signal):
    with either.listen() as listener:
        pass
    either.publish({1: 1})
    assert not listener.wait(0.05)


def test_a_sleeping_reader_in_this_process_is_awake_within_milliseconds(either: Signal):
    delays = []
    with either.listen() as listener, ThreadPoolExecutor(1) as reader:
        for position in range(1, 21):
            asleep = reader.submit(lambda: (listener.wait(5), time.perf_counter()))
            time.sleep(0.01)
            told = time.perf_counter()
            either.publish({1: position})
            _, heard = asleep.result()
            delays.append(heard - told)
    assert sorted(delays)[len(delays) // 2] < 0.005


def test_another_process_hears_it_through_redis(redis_url: str):
    reader = """
import sys
from remembrancer.services.signal import make_signal
signal = make_signal(sys.argv[1])
with signal.listen() as listener:
    while not (news := listener.wait(0.1)): print("waiting", flush=True)
print(news, flush=True)
signal.close()
"""
    program = [sys.executable, "-c", reader, redis_url]
    with (
        closing(make_signal(redis_url)) as here,
        subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process,
        redis.Redis.from_url(redis_url) as client,
    ):
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        until(lambda: listeners_in(client) == 2)
        here.publish({42: 1001})
        assert process.stdout.read().endswith("{42: 1001}\n")
        assert process.wait(5) == 0


def test_a_message_of_somebody_else_on_the_channel_is_passed_over(redis_url: str):
    with (
        redis.Redis.from_url(redis_url) as client,
        closing(make_signal(redis_url)) as here,
        here.listen() as listener,
    ):
        until(lambda: listeners_in(client) == 1)
        for rubbish in (b"\xff\x00", b"{}", b"[1,2]", b'{"sender": "x", "positions": {"a": "b"}}'):
            client.publish(CHANNEL, rubbish)
        client.publish(CHANNEL, b'{"sender": "x", "positions": {"5": 6}}')
        assert listener.wait(2) == {5: 6}


def test_without_redis_this_process_still_hears_at_once_and_nobody_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with (
        closing(make_signal(f"unix://{tmp_path}/nobody.sock")) as lonely,
        lonely.listen() as listener,
    ):
        assert longest_publish(lonely, listener, times=50) < 0.05
        time.sleep(1.2)  # past the second try of both threads
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "Redis does not answer. Readers look for news themselves, once a second, until it is back."
    ]


def test_a_redis_that_hangs_holds_nobody_up(tmp_path: Path, redis_program: str):
    with (
        own_redis(tmp_path, redis_program) as (url, server),
        closing(make_signal(url)) as here,
        here.listen() as listener,
    ):
        here.publish({1: 1})
        listener.wait(1)
        os.kill(server.pid, signal.SIGSTOP)
        assert longest_publish(here, listener, times=20) < 0.05
        os.kill(server.pid, signal.SIGCONT)


def test_after_a_killed_redis_is_back_other_processes_are_woken_again(
    tmp_path: Path, redis_program: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, logger="remembrancer.services.signal")
    with (
        own_redis(tmp_path, redis_program) as (url, server),
        closing(make_signal(url)) as here,
        closing(make_signal(url)) as there,  # knows `here` only through Redis, like another process
        there.listen() as listener,
    ):
        with redis.Redis.from_url(url) as client:
            until(lambda: listeners_in(client) == 2)
        here.publish({1: 1})
        assert listener.wait(2) == {1: 1}

        server.kill()
        server.wait()
        here.publish({1: 2})
        assert not listener.wait(0.3)

        with own_redis(tmp_path, redis_program), redis.Redis.from_url(url) as client:
            until(lambda: listeners_in(client) == 2)
            here.publish({1: 3})
            assert listener.wait(3)[1] == 3
            until(lambda: "Redis is back." in caplog.messages)


def test_an_address_that_is_none_is_refused_with_an_example():
    with pytest.raises(InvalidInput, match=r"redis://127\.0\.0\.1:6379/0"):
        make_signal("localhost:6379")


@contextmanager
def own_redis(folder: Path, program: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Redis of this test alone, which it may stop and kill."""
    socket = folder / "own.sock"
    socket.unlink(missing_ok=True)
    command = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            with redis.Redis.from_url(f"unix://{socket}") as client:
                until(lambda: answers(client))
            yield f"unix://{socket}", server
        finally:
            server.kill()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def listeners_in(client: redis.Redis) -> int:
    return dict(client.pubsub_numsub(CHANNEL))[CHANNEL.encode()]


def until(holds: Callable[[], bool], within: float = 5.0) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def longest_publish(published: Signal, listener: Listener, times: int) -> float:
    """Seconds of the second slowest of so many calls, each of which is heard; once, the machine may be busy."""
    durations = []
    for position in range(1000, 1000 + times):
        began = time.perf_counter()
        published.publish({1: position})
        durations.append(time.perf_counter() - began)
        assert listener.wait(1) == {1: position}
    return sorted(durations)[-2]
