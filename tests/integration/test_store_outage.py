"""The database goes away and comes back: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded import open_embedded
from remembrancer.services.store import migrate, open_store
from remembrancer.services.store.pool import unavailable
from tests.support.streams import TEXTS, AList


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(
        prefix="remembrancer-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    ) as made:
        yield Path(made)


def kill(data_dir):
    """Kills a server with all its processes, as a power cut would."""
    (path,) = data_dir.rglob("postmaster.pid")
    postmaster = psutil.Process(int(path.read_text().split()[0]))
    family = [postmaster, *postmaster.children(recursive=True)]
    postmaster.suspend()
    for process in family[::-1]:
        os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=10)


def test_a_server_that_is_killed_and_comes_back_loses_nothing_and_doubles_nothing(folder):
    mine = AList()
    with open_embedded(folder) as server, ThreadPoolExecutor(4) as threads:
        migrate(server.url)
        store = open_store(server.url, patience=30)
        acknowledged = []
        end = time.monotonic() + 3

        def write(thread):
            n = 0
            while time.monotonic() < end:
                n += 1
                text = f"{thread}/{n}"
                store.append([mine.fact(), AList(text).batch(text, expected=0)], request=mine.request(text))
                acknowledged.append(text)

        writers = [threads.submit(write, thread) for thread in range(4)]
        time.sleep(0.7)
        before = len(acknowledged)
        kill(folder)
        with open_embedded(folder):
            for writer in writers:
                writer.result(60)
            assert len(acknowledged) > before > 0
            for text in acknowledged:
                assert store.load(AList(text).stream, TEXTS).state == (text,)
            assert store.heads()[mine.shard] >= len(acknowledged)
            assert store.load(mine.stream, TEXTS).version == len(acknowledged)
            store.close()


def test_a_stopped_server_is_unavailable_within_the_patience_and_usable_when_it_is_back(folder):
    mine = AList()
    with open_embedded(folder, settings={"fsync": "off"}) as server:
        migrate(server.url)
        store = open_store(server.url, patience=1)
        store.append([mine.batch("before", expected=0)], request=mine.request())
        kill(folder)
        start = time.monotonic()
        with pytest.raises(Unavailable, match="cannot be reached") as refused:
            store.append([mine.batch("never", expected=1)], request=mine.request())
        assert refused.value.hint
        assert time.monotonic() - start < 5
    with open_embedded(folder, settings={"fsync": "off"}):
        assert store.append([mine.batch("after", expected=1)], request=mine.request()).versions == [2]
        store.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (psycopg.errors.DiskFull("could not extend file"), "disk is full"),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "read-only"),
        (psycopg.errors.TooManyConnections("sorry, too many clients already"), "run out"),
        (psycopg.errors.AdminShutdown("terminating connection"), "cannot be reached"),
        (psycopg.OperationalError("server closed the connection unexpectedly\n\tprobably"), "unexpectedly."),
    ],
)
def test_what_ails_the_database_is_said_in_a_sentence_with_what_to_do(error, said):
    meaning = unavailable(error)
    assert meaning is not None
    assert said in str(meaning)
    assert meaning.hint


def test_a_mistake_of_the_program_is_not_called_an_outage():
    assert unavailable(psycopg.errors.SyntaxError("syntax error")) is None
