"""A loaded state holds everything that was committed, whoever wrote it, however it is remembered."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from remembrancer.domain.text import ERASED
from remembrancer.services.store import Loaded, open_store
from tests.support.streams import NOON, TEXTS, AList, in_shard


@pytest.fixture
def store(database_url):
    opened = open_store(database_url)
    yield opened
    opened.close()


@pytest.fixture
def mine():
    return AList()


def fill(store, mine, count, expected=0):
    texts = [f"text {n}" for n in range(expected, expected + count)]
    store.append([mine.batch(*texts, expected=expected)], request=mine.request())
    return tuple(texts)


def snapshots(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT version, fold_version, state FROM remembrancer.snapshot").fetchall()


def test_an_empty_stream_has_the_initial_state(store, mine):
    assert store.load(mine.stream, TEXTS) == Loaded((), 0)


def test_what_another_process_writes_is_in_the_next_load(store, mine, database_url):
    other = open_store(database_url)
    for n in range(1, 4):
        writer, reader = (store, other) if n % 2 else (other, store)
        fill(writer, mine, 1, n - 1)
        assert reader.load(mine.stream, TEXTS).version == n
        assert writer.load(mine.stream, TEXTS).version == n
    other.close()


def test_many_streams_load_in_the_order_asked_for(store):
    lists = [in_shard(shard) for shard in (9, 1, 200)]
    for n, one in enumerate(lists, 1):
        fill(store, one, n)
    store.load(lists[1].stream, TEXTS)
    empty = AList("nobody")
    wanted = [(one.stream, TEXTS) for one in (*lists, empty)]
    for _ in range(2):
        assert [loaded.version for loaded in store.load_many(wanted)] == [1, 2, 3, 0]


def test_only_the_tail_of_a_remembered_stream_is_read(store, mine):
    fill(store, mine, 5)
    told = []
    fold = replace(TEXTS, name="told", evolve=lambda s, r: (told.append(r.version), TEXTS.evolve(s, r))[1])
    assert store.load(mine.stream, fold).version == 5
    fill(store, mine, 2, 5)
    assert store.load(mine.stream, fold).version == 7
    assert told == [1, 2, 3, 4, 5, 6, 7]


def test_no_more_states_are_remembered_than_were_asked_for(database_url):
    store = open_store(database_url, remembered=2)
    lists = [in_shard(shard) for shard in range(5)]
    for one in lists:
        fill(store, one, 1)
    for one in lists * 2:
        assert store.load(one.stream, TEXTS).version == 1
    assert len(store._folded._states.cache) == 2
    store.close()


def test_a_long_stream_leaves_a_snapshot_that_others_start_from(store, mine, database_url):
    texts = fill(store, mine, 200)
    store.load(mine.stream, TEXTS)
    assert snapshots(database_url) == []
    texts += fill(store, mine, 1, 200)
    store.load(mine.stream, TEXTS)
    ((version, name, _),) = snapshots(database_url)
    assert (version, name) == (201, "texts@1")
    texts += fill(store, mine, 3, 201)

    read = []
    fold = replace(TEXTS, evolve=lambda s, r: (read.append(r.version), TEXTS.evolve(s, r))[1])
    other = open_store(database_url)
    assert other.load(mine.stream, fold) == Loaded(texts, 204)
    assert read == [202, 203, 204]
    other.close()


def test_a_snapshot_is_taken_again_after_as_many_events_by_whoever_remembers_the_state(store, mine, database_url):
    fill(store, mine, 201)
    store.load(mine.stream, TEXTS)
    fill(store, mine, 200, 201)
    store.load(mine.stream, TEXTS)
    assert [row[0] for row in snapshots(database_url)] == [201]
    fill(store, mine, 1, 401)
    store.load(mine.stream, TEXTS)
    assert [row[0] for row in snapshots(database_url)] == [402]


def test_a_new_form_of_a_state_does_not_read_old_snapshots(store, mine, database_url):
    fill(store, mine, 201)
    store.load(mine.stream, TEXTS)
    other = open_store(database_url)
    counted = replace(
        TEXTS, name="count@2", initial=0, evolve=lambda n, _: n + 1, encode=lambda n: b"%d" % n, decode=int
    )
    assert other.load(mine.stream, counted) == Loaded(201, 201)
    assert [row[1] for row in snapshots(database_url)] == ["count@2"]
    other.close()


def test_a_snapshot_holds_no_readable_text_and_dies_with_the_key(store, mine, database_url):
    fill(store, mine, 201)
    store.load(mine.stream, TEXTS)
    ((_, _, state),) = snapshots(database_url)
    assert b"text 7" not in state
    store.keys.destroy(mine.tenant, mine.owner, now=NOON)
    other = open_store(database_url)
    for one in (store, other):
        assert one.load(mine.stream, TEXTS) == Loaded((ERASED,) * 201, 201)
    other.close()


def test_a_lost_or_unwritable_snapshot_costs_nothing(store, mine, database_url):
    texts = fill(store, mine, 201)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE remembrancer.snapshot RENAME TO moved")
        connection.execute("CREATE VIEW remembrancer.snapshot AS SELECT * FROM remembrancer.moved WHERE random() > 2")
    assert store.load(mine.stream, TEXTS) == Loaded(texts, 201)


def test_a_stream_reads_as_it_was_at_any_version(store, mine):
    texts = fill(store, mine, 4)
    for version in range(1, 5):
        assert store.load_at(mine.stream, TEXTS, version) == Loaded(texts[:version], version)
