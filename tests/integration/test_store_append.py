"""One append: all or nothing, positions without gaps, versions checked or assigned, moments that never go back."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from remembrancer.domain.errors import Unavailable
from remembrancer.services.store import VersionConflict, open_store
from tests.support.streams import NOON, TEXTS, AList, in_shard


@pytest.fixture
def store(database_url):
    with_clock = open_store(database_url, clock=lambda: NOON)
    yield with_clock
    with_clock.close()


@pytest.fixture
def mine():
    return AList()


def test_an_event_reads_as_it_was_written_and_says_where_and_when(store, mine):
    event = mine.saved("Juno's cat is named Mochi", tags=("pets",), turn="turn 1", actor="persona")

    done = store.append([mine.batch(expected=0), mine.batch("first", expected=0)], request=mine.request())
    assert (done.shards, done.positions, done.versions, done.recorded_at) == ([mine.shard], [1], [1], [NOON])

    batch = mine.batch(expected=1)
    store.append([type(batch)(mine.stream, [event], 1, (mine.owner,))], request=mine.request())
    (again,) = store.read([(mine.stream, 1)])
    assert (again.event, again.stream, again.version, again.position) == (event, mine.stream, 2, 2)
    assert (again.shard, again.recorded_at) == (mine.shard, NOON)


def test_the_answer_comes_in_the_order_of_the_batches_whatever_shards_they_are_in(store):
    high, low, middle = in_shard(200), in_shard(3), in_shard(100)
    store.append([low.batch("before", expected=0)], request=low.request())

    done = store.append(
        [high.batch("a", "b", expected=0), low.batch("c", expected=1), middle.batch("d", expected=0), high.fact()],
        request=high.request(),
    )

    assert done.shards == [200, 200, 3, 100, 200]
    assert done.positions == [1, 2, 2, 1, 3]
    assert done.versions == [1, 2, 2, 1, 3]
    assert done.reached == {3: 2, 100: 1, 200: 3}
    assert store.heads() == {3: 2, 100: 1, 200: 3}
    assert store.load(high.stream, TEXTS).state == ("a", "b", "ListSearched")


@pytest.mark.parametrize("expected", [0, 1, 3, 7])
def test_a_decision_that_saw_another_version_is_refused(store, mine, expected):
    store.append([mine.batch("one", "two", expected=0)], request=mine.request())
    with pytest.raises(VersionConflict):
        store.append([mine.batch("three", expected=expected)], request=mine.request())
    with pytest.raises(VersionConflict):
        store.append([mine.batch("three", "four", expected=expected)], request=mine.request())
    assert store.load(mine.stream, TEXTS).state == ("one", "two")
    assert store.heads() == {mine.shard: 2}


def test_a_fact_takes_the_next_version_without_naming_one(store, mine):
    assert store.append([mine.fact()], request=mine.request()).versions == [1]
    store.append([mine.batch("one", expected=1)], request=mine.request())
    assert store.append([mine.fact(), mine.batch("two", expected=3), mine.fact()], request=mine.request()).versions == [
        3,
        4,
        5,
    ]


def test_a_conflict_in_one_shard_takes_back_what_was_done_in_all_others(store):
    here, there = in_shard(10), in_shard(20)
    store.append([there.batch("one", expected=0)], request=there.request())

    with pytest.raises(VersionConflict):
        store.append([here.batch("never", expected=0), there.batch("too late", expected=0)], request=here.request("r"))

    assert store.heads() == {20: 1}
    assert store.find(here.request("r")) is None
    assert store.append([here.fact(), there.fact()], request=here.request("r")).positions == [1, 2]


def test_no_event_is_recorded_before_the_last_one_of_its_shard_when_the_clock_goes_back(store, mine):
    def at(moment):
        return store.append([mine.fact()], request=mine.request(), now=moment).recorded_at

    assert at(NOON) == [NOON]
    assert at(NOON - timedelta(days=3)) == [NOON]
    assert at(NOON + timedelta(seconds=1)) == [NOON + timedelta(seconds=1)]
    other = in_shard((mine.shard + 1) % 256)
    both = store.append([mine.fact(), other.fact()], request=mine.request(), now=NOON - timedelta(days=3))
    assert both.recorded_at == [NOON + timedelta(seconds=1), NOON - timedelta(days=3)]


def test_whoever_reads_on_is_told_after_the_commit(database_url, mine):
    told = []
    store = open_store(database_url, on_commit=lambda reached: told.append((dict(reached), store.heads())))
    store.append([mine.batch("one", "two", expected=0)], request=mine.request())
    with pytest.raises(VersionConflict):
        store.append([mine.batch("never", expected=0)], request=mine.request())
    store.close()
    assert told == [({mine.shard: 2}, {mine.shard: 2})]


def test_a_moment_without_a_time_zone_is_a_mistake_of_the_program(store, mine):
    with pytest.raises(ValueError, match="time zone"):
        store.append([mine.fact()], request=mine.request(), now=NOON.replace(tzinfo=None))


def test_a_pooler_that_keeps_no_prepared_statements_is_fine(database_url, mine):
    store = open_store(database_url, prepare=False)
    other = in_shard((mine.shard + 1) % 256)
    for n in range(10):
        store.append([mine.batch(f"{n}", expected=n)], request=mine.request())
        store.append([other.fact()], request=mine.request())
        assert store.load(mine.stream, TEXTS).version == n + 1
    with store.database.connection() as connection:
        assert connection.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
        assert connection.execute("SELECT name FROM pg_cursors WHERE is_holdable").fetchall() == []
    store.close()


def test_no_session_setting_is_left_behind(store, mine):
    store.append([mine.batch("one", expected=0)], request=mine.request())
    store.load(mine.stream, TEXTS)
    with store.database.connection() as connection:
        changed = connection.execute("SELECT name FROM pg_settings WHERE source = 'session'").fetchall()
        locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert (changed, locks) == ([], (0,))


def test_shards_are_read_on_from_any_positions_in_order(store):
    lists = [in_shard(5), in_shard(6)]
    for one in lists * 3:
        store.append([one.fact()], request=one.request())
    read = store.read_shards({5: 1, 6: 0, 7: 0}, limit=2)
    assert [(r.shard, r.position) for r in read] == [(5, 2), (5, 3), (6, 1), (6, 2)]


def test_a_read_only_database_is_unavailable_and_says_why(store, mine, database_url):
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(
                psycopg.sql.Identifier(name)
            )
        )
    other = open_store(database_url)
    with pytest.raises(Unavailable, match="read-only"):
        other.append([mine.fact()], request=mine.request())
    other.close()
