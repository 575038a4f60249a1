"""How fast events are appended, beside a bare INSERT and commit and the library's own recorder, in one run.

Usage: python scripts/bench/append.py [--seconds 0.3] [--rounds 10] [--flush 0 1000] [--writers 8]

Each line is a way of writing; each of its measurements is divided by one of the bare INSERT right before, so that a
noisy machine disturbs both alike, and the ratio is the median of these. An event is 250 bytes; ours has its request row
and, where it says so, checks the key of its subject. `save` is all of `EventStore.append`: pydantic, sealing, the
library's `save`. As root, `chrt -f 10` in front keeps other programs of the machine out of the figures.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from multiprocessing.connection import Connection as Pipe
from uuid import UUID, uuid4

import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg.conninfo import conninfo_to_dict
from server import running

from remembrancer.domain.events import MemorySaved
from remembrancer.domain.identity import ListKey, Subject, list_stream, new_id
from remembrancer.services.store import Batch, EventStore, Request, StoreRecorder, fingerprint, migrate, open_store
from remembrancer.services.store.append import Call, RequestRow
from remembrancer.services.store.keys import KeyRef

STATE = random.Random(1).randbytes(250)
TARGETS = {(0, 1, "one event"): 0.40, (1000, 8, "one event"): 0.75, (1000, 8, "reply, 3 shards"): 0.65}
RAW = "INSERT INTO bench.event VALUES (%s, %s, %s, %s, %s, %s, %s)"
WAYS = ("raw", "one event", "one event, key checked", "reply, 3 shards", "save", "library")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--flush", type=int, nargs="+", default=[0, 1000], help="microseconds of a flush")
    parser.add_argument("--writers", type=int, default=8, help="processes, beside the run with one")
    options = parser.parse_args()
    for flush in options.flush:
        with running(flush) as url:
            migrate(url)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE SCHEMA bench")
                connection.execute("CREATE TABLE bench.event (LIKE remembrancer.event INCLUDING ALL)")
            for writers in (1, options.writers):
                _compare(url, flush, writers, options.seconds, options.rounds)


def _compare(url: str, flush: int, writers: int, seconds: float, rounds: int) -> None:
    print(f"\nflush {flush} µs, {writers} {'connection' if writers == 1 else 'processes'}", flush=True)
    team = _Team(url, writers)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    try:
        for way in WAYS:
            team.rate(way, 0.2)
        for _ in range(rounds):
            for way in WAYS:
                bare, ours = team.rate("raw", seconds), team.rate(way, seconds)
                rates[way].append(ours)
                ratios[way].append(ours / bare)
    finally:
        team.close()
    for way in WAYS:
        said = f"  {way:24s}{statistics.median(rates[way]):8,.0f}/s{statistics.median(ratios[way]):8.0%} of raw"
        print(said, _verdict(statistics.median(ratios[way]), TARGETS.get((flush, writers, way)), "{:.0%}"))
    library = statistics.median(ratios["one event"]) / statistics.median(ratios["library"])
    print(f"  one event = {library:.1f} × the library's recorder", _verdict(library, 3 if flush == 0 else None, "{:g}"))


def _verdict(ratio: float, target: float | None, form: str) -> str:
    if target is None:
        return ""
    return f"  at least {form.format(target)}: {'reached' if ratio >= target else 'MISSED'}"


class _Team:
    """Processes that write in one way at the same time when they are told to."""

    def __init__(self, url: str, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        for number in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_write, args=(url, number, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()

    def rate(self, way: str, seconds: float) -> float:
        """Events or replies a second, all processes together."""
        start = time.time() + 0.05
        for pipe in self._pipes:
            pipe.send((way, start, start + seconds))
        return sum(pipe.recv() for pipe in self._pipes) / seconds

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _write(url: str, number: int, pipe: Pipe) -> None:
    store = open_store(url, max_size=2)
    with psycopg.connect(url, autocommit=True) as connection:
        ways = dict(zip(WAYS, _ways(store, connection, url, number), strict=True))
        pipe.send("ready")
        while (order := pipe.recv()) is not None:
            way, start, end = order
            write, count = ways[way], 0
            time.sleep(max(0.0, start - time.time()))
            while time.time() < end:
                write()
                count += 1
            pipe.send(count)
    store.close()


def _ways(store: EventStore, connection: psycopg.Connection, url: str, number: int) -> Iterator[Callable[[], object]]:
    chance = random.Random()
    positions = itertools.count(time.time_ns() + number)
    cursor = connection.cursor()
    recorder = StoreRecorder(store.database)
    user = Subject("user", f"user {number}")
    (ref,) = store.keys.for_writing("bench", [user]).refs

    def stream() -> UUID:
        return UUID(int=chance.getrandbits(128))

    def raw() -> None:
        to = stream()
        values = (to.bytes[0], next(positions), to, 1, "MemorySaved", STATE, datetime.now(UTC))
        cursor.execute(RAW, values, prepare=True, binary=True)

    def record(streams: list[UUID], keys: list[KeyRef]) -> None:
        events = [StoredEvent(to, 1, "MemorySaved", STATE) for to in streams]
        row = RequestRow(streams[0].bytes[0], "bench", streams[0].hex, "save", STATE[:32], STATE[:100])
        recorder.insert_events(events, call=Call(datetime.now(UTC), row, keys))

    def save() -> None:
        key = ListKey("mochi", "personal", str(chance.getrandbits(40)))
        to = list_stream("bench", key)
        event = MemorySaved(
            id=new_id(to.bytes[0], chance.randbytes(16)),
            tenant="bench",
            persona=key.persona,
            scope=key.scope,
            subject=key.subject,
            memory=new_id(to.bytes[0], chance.randbytes(16)),
            text="Juno's cat is named Mochi, and Mochi hates thunder.",
            day=date(2026, 1, 1),
        )
        body = {"persona": key.persona, "text": event.text}
        request = Request("bench", to.bytes[0], uuid4().hex, "save", fingerprint(body), (user,))
        store.append([Batch(to, [event], 0, (user,))], request=request, answer=b"{}" * 50)

    yield raw
    yield lambda: record([stream()], [])
    yield lambda: record([stream()], [ref])
    yield lambda: record([stream(), stream(), stream()], [ref])
    yield save
    library = _library_recorder(url)
    yield lambda: library.insert_events([StoredEvent(stream(), 1, "MemorySaved", STATE)])


def _library_recorder(url: str) -> PostgresApplicationRecorder:
    address = conninfo_to_dict(url)
    datastore = PostgresDatastore(
        dbname=str(address["dbname"]),
        host=str(address["host"]),
        port=str(address.get("port", 5432)),
        user=str(address["user"]),
        password=str(address.get("password", "")),
        schema="bench",
    )
    recorder = PostgresApplicationRecorder(datastore, events_table_name="library")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        recorder.create_table()
    return recorder


if __name__ == "__main__":
    main()
