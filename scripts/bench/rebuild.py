"""How fast the read model is made anew, beside a bare server-side cursor over the same events, in one run.

Usage: python scripts/bench/rebuild.py [--events 200000] [--lists 2000] [--processes 2] [--vectors]

The events are those that projections handle, in the proportions of talk: of ten, six match a memory, one searches a
list, two save (every text encrypted) and one edits, pins or forgets. All projections are rebuilt, in one process and
then in several, with indexes, catching up, comparing and the switch; what each of them takes is said. With --vectors
every text has one, so that the archive's HNSW index is built, too.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from pgvector import HalfVector
from server import running
from world import DIMENSIONS, MODEL, WORDS, unit

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey, list_stream, new_id
from remembrancer.projections.memory_rows import digest
from remembrancer.services import open_memory
from remembrancer.services.cli.rebuild import GARBAGE
from remembrancer.services.store import mapper, migrate, open_store

TENANT = "default"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = "COPY remembrancer.event FROM STDIN (FORMAT BINARY)"
TYPES = ("int2", "int8", "uuid", "int8", "text", "bytea", "timestamptz")
CURSOR = (
    "SELECT shard, position, stream, version, type, state, recorded_at FROM remembrancer.event ORDER BY shard, position"
)
CAPACITY = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--lists", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(_rebuild(options.work))
        return
    with running(0) as url:
        migrate(url)
        fill(url, options.events, options.lists, vectors=options.vectors)
        bare = max(cursor(url) for _ in range(3))
        print(f"{options.events:,} events in {options.lists:,} lists", "with vectors" if options.vectors else "")
        print(f"bare server-side cursor: {bare:,.0f} events/s")
        one = _measured(url, 1, options.events)
        print(f"  {one / bare:.0%} of the bare cursor (folding and COPY: see above); aimed at 25 %")
        several = _measured(url, options.processes, options.events)
        print(f"  {options.processes} processes = {several / one:.2f} x one; aimed at 1.6")


def _measured(url: str, processes: int, events: int) -> float:
    """Events/s from the beginning of a rebuild until everything is poured, by so many processes."""
    command = [sys.executable, __file__, "--work", url]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    reports = [worker.communicate()[0] for worker in workers]
    for report in reports:
        print(report.rstrip())
    times = [dict(part.split("=") for part in report.split()) for report in reports]
    began = min(float(t["began"]) for t in times)
    poured = max(float(t["poured"]) for t in times) - began
    ready = max(float(t["attached"]) for t in times) - began
    ended = max(float(t["ended"]) for t in times) - began
    print(
        f"{processes} process{'es' * (processes > 1)}: folded and copied {events / poured:,.0f} events/s; with indexes"
        f" {events / ready:,.0f}; with comparing, switch and dropping {events / ended:,.0f}"
    )
    return events / poured


def _rebuild(url: str) -> str:
    """One process of a rebuild: when it reached each step, and the most memory that it held."""
    gc.set_threshold(GARBAGE)  # as the command line does
    with open_memory(url, embedder="none", background=False) as memory:
        seen: dict[str, float] = {}
        began = time.time()

        def told(step: str, _done: int, _all: int) -> None:
            seen[step] = time.time()
            seen.setdefault(f"first {step}", time.time())

        answer = memory.rebuild(yes=True, progress=told)
        assert answer.status == "switched"
        used = resource.getrusage(resource.RUSAGE_SELF)
        poured = seen.get("events", began)
        attached = seen.get("indexes", poured)
        compared = seen.get("first comparing", attached)
        return (
            f"began={began:.3f} poured={poured:.3f} attached={max(attached, compared):.3f} ended={time.time():.3f}"
            f" cpu_s={used.ru_utime + used.ru_stime:.1f} rss_mb={used.ru_maxrss >> 10}"
        )


def cursor(url: str) -> float:
    """Events/s of a server-side cursor that does nothing with them."""
    with psycopg.connect(url) as conn, psycopg.ServerCursor(conn, "bare") as cur:
        start, n = time.perf_counter(), 0
        cur.execute(CURSOR, binary=True)
        while rows := cur.fetchmany(2_000):
            n += len(rows)
        return n / (time.perf_counter() - start)


class _List:
    """A list that is talked about."""

    def __init__(self, key: ListKey) -> None:
        self.key = key
        self.stream = list_stream(TENANT, key)
        self.version = 0
        self.memories: dict[UUID, str] = {}


def fill(url: str, events: int, lists: int, *, vectors: bool) -> None:
    """Events of many lists, in the order of time, sealed as the store seals them."""
    random = Random(3)
    store = open_store(url)
    made = [_List(ListKey("mira", "server", f"server {n}")) for n in range(lists)]
    keys = {one.stream: store.keys.for_writing(TENANT, [one.key.owner]) for one in made}
    heads = dict.fromkeys(range(256), 0)
    texts: list[tuple[ListKey, str]] = []
    with psycopg.connect(url, autocommit=True) as conn:
        with conn.cursor() as cur, cur.copy(EVENTS) as copy:
            copy.set_types(TYPES)
            for n in range(events):
                one = random.choice(made)
                event = _event(one, n, random)
                if isinstance(event, (e.MemorySaved, e.MemoryEdited)):
                    texts.append((one.key, event.text))
                shard = one.stream.bytes[0]
                heads[shard] += 1
                one.version += 1
                state = mapper.encode(event, keys[one.stream])
                at = BEGAN + timedelta(seconds=20 * n)
                copy.write_row((shard, heads[shard], one.stream, one.version, type(event).__name__, state, at))
        conn.execute(
            "UPDATE remembrancer.head h SET position = p.position"
            " FROM unnest(%s::int2[], %s::int8[]) AS p (shard, position) WHERE p.shard = h.shard",
            (list(heads), list(heads.values())),
        )
        conn.execute("UPDATE remembrancer.checkpoint c SET position = h.position FROM remembrancer.head h"
                     " WHERE h.shard = c.shard")  # fmt: skip
        if vectors:
            _embed(conn, texts)
            conn.execute("SELECT remembrancer.index_archive_v1(%s, %s)", (MODEL, DIMENSIONS))
        conn.execute("VACUUM ANALYZE remembrancer.event")
    store.close()


def _event(one: _List, n: int, random: Random) -> e.Event:
    at = BEGAN + timedelta(seconds=20 * n)
    kind = random.randrange(10)
    shard = one.stream.bytes[0]
    stamp: dict[str, Any] = {
        "id": new_id(shard, random.randbytes(16)), "tenant": TENANT, **one.key._asdict(), "actor": "persona",
        "turn": f"turn-{n}", "request_id": f"request-{n}",
    }  # fmt: skip
    text = f"{' '.join(random.choices(WORDS, k=8))} {n}"
    if not one.memories or (kind < 2 and len(one.memories) < CAPACITY):
        memory = new_id(shard, random.randbytes(16))
        one.memories[memory] = text
        return e.MemorySaved(**stamp, memory=memory, text=text, day=at.date())
    memory = random.choice(list(one.memories))
    if kind == 2:
        return e.ListSearched(**stamp, day=at.date())
    if kind == 3:
        act = random.randrange(3)
        if act == 0:
            before, one.memories[memory] = one.memories[memory], text
            return e.MemoryEdited(**stamp, memory=memory, text=text, before=before, day=at.date())
        if act == 1:
            return e.MemoryPinned(**stamp, memory=memory, day=at.date())
        del one.memories[memory]
        return e.MemoryDeleted(**stamp, memory=memory)
    if kind < 2:
        del one.memories[memory]
        return e.MemoryEvicted(**stamp, memory=memory, for_memory=memory, reason="it was matched longest ago")
    match = e.Match(memory=memory, score=0.9, similarity=0.8, words=0.1, rank=1, recalled=random.random() < 0.2)
    return e.MemoriesMatched(**stamp, day=at.date(), matches=(match,))


def _embed(conn: psycopg.Connection[Any], texts: list[tuple[ListKey, str]]) -> None:
    """A vector for each text, as if a model had been asked."""
    from pgvector.psycopg import register_vector

    register_vector(conn)
    rng = np.random.default_rng(5)
    copy_to = (
        "COPY remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector) FROM STDIN (FORMAT BINARY)"
    )
    with conn.cursor() as cur, cur.copy(copy_to) as copy:
        copy.set_types(["int2", "text", "text", "text", "bytea", "text", "halfvec"])
        for key, text, vector in _with_vectors(texts, rng):
            shard = list_stream(TENANT, key).bytes[0]
            copy.write_row((shard, TENANT, *key.owner, digest(text), MODEL, HalfVector(vector)))


def _with_vectors(
    texts: list[tuple[ListKey, str]], rng: np.random.Generator
) -> Iterator[tuple[ListKey, str, np.ndarray]]:
    for n in range(0, len(texts), 10_000):
        part = texts[n : n + 10_000]
        for (key, text), vector in zip(part, unit(rng, len(part)), strict=True):
            yield key, text, vector


if __name__ == "__main__":
    main()
