"""A request happens once (D19): again, many times at once, with another body, for another tenant, and after a cut."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from remembrancer.domain.errors import RequestReused
from remembrancer.services.store import Decision, VersionConflict, open_store
from tests.support.cutting_proxy import CuttingProxy
from tests.support.streams import TEXTS, AList, in_shard


@pytest.fixture
def store(database_url):
    opened = open_store(database_url)
    yield opened
    opened.close()


@pytest.fixture
def mine():
    return AList()


def save(store, mine, request, text="one", answer=b"first answer"):
    """Saves as a service does: by what is there, at the end of it."""

    def decide(loaded):
        return Decision([mine.batch(text, expected=loaded.version)], answer)

    return store.transact(request, lambda: store.load(mine.stream, TEXTS), decide)


def test_the_same_request_again_gets_the_first_answer_and_writes_nothing(store, mine):
    first = save(store, mine, mine.request("r"))
    again = save(store, mine, mine.request("r"), answer=b"second answer")
    assert first.fresh
    assert not again.fresh
    assert again.answer == b"first answer"
    assert (again.positions, again.versions, again.recorded_at) == (first.positions, first.versions, first.recorded_at)
    assert store.heads() == {mine.shard: 1}


def test_eight_at_once_with_one_id_are_one_event_and_one_answer(store, mine):
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda n: save(store, mine, mine.request("r"), answer=b"%d" % n), range(8)))
    assert sorted(d.fresh for d in done) == [False] * 7 + [True]
    assert len({d.answer for d in done}) == 1
    assert store.load(mine.stream, TEXTS).state == ("one",)


def test_eight_appends_at_once_without_looking_first_are_one_too(store, mine):
    with ThreadPoolExecutor(8) as threads:
        appends = [
            threads.submit(store.append, [mine.fact()], request=mine.request("r"), answer=b"%d" % n) for n in range(8)
        ]
        done = [append.result() for append in appends]
    assert sorted(d.fresh for d in done) == [False] * 7 + [True]
    assert len({d.answer for d in done}) == 1
    assert store.heads() == {mine.shard: 1}


def test_the_same_id_with_another_body_verb_or_list_is_refused(store, mine):
    save(store, mine, mine.request("r", text="one"))
    other = in_shard((mine.shard + 9) % 256)
    for request in (
        mine.request("r", text="two"),
        mine.request("r", "edit", text="one"),
        other.request("r", text="elsewhere"),
    ):
        with pytest.raises(RequestReused, match="D19"):
            save(store, mine, request)
        with pytest.raises(RequestReused, match="D19"):
            store.append([other.fact()], request=request)
    assert store.heads() == {mine.shard: 1}


def test_another_tenant_may_use_the_same_id(store):
    for tenant in ("one", "other"):
        mine = AList(tenant=tenant)
        assert save(store, mine, mine.request("r"), answer=tenant.encode()).fresh
        assert save(store, mine, mine.request("r")).answer == tenant.encode()


def test_an_id_that_looks_like_one_of_ours_is_not_one(store, mine):
    made = mine.request()
    store.append([mine.fact()], request=made)
    assert save(store, mine, mine.request(made.key)).fresh


def test_a_refused_request_may_be_sent_again(store, mine):
    def refuse(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact(mine.request("r"), lambda: None, refuse)
    assert save(store, mine, mine.request("r")).fresh


def test_a_decision_that_writes_no_event_is_remembered_too(store, mine):
    request = mine.request("r")
    assert store.transact(request, lambda: None, lambda _: Decision([], b"nothing to do")).fresh
    again = save(store, mine, request)
    assert (again.fresh, again.answer, again.positions) == (False, b"nothing to do", [])


@pytest.mark.parametrize("request_id", ["given", None])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_commit_whose_answer_is_cut_off_happens_once(database_url, mine, request_id, shards):
    lists = [mine, *(in_shard((mine.shard + n) % 256) for n in range(1, shards))]
    with CuttingProxy(database_url) as proxy:
        store = open_store(proxy.url)
        proxy.cuts = 1
        done = store.append(
            [one.batch("kept", expected=0) for one in lists], request=mine.request(request_id), answer=b"a"
        )
        assert proxy.cut == 1
        assert (done.answer, done.positions, done.versions) == (b"a", [1] * shards, [1] * shards)
        assert store.heads() == {one.shard: 1 for one in lists}
        assert store.append([mine.batch("next", expected=1)], request=mine.request()).versions == [2]
        store.close()


def test_an_append_whose_backend_ends_while_it_waits_is_sent_again(store, mine, database_url):
    with psycopg.connect(database_url) as holder, ThreadPoolExecutor(1) as thread:
        holder.execute("SELECT FROM remembrancer.head WHERE shard = %s FOR UPDATE", (mine.shard,))
        waiting = thread.submit(save, store, mine, mine.request("r"))
        with psycopg.connect(database_url, autocommit=True) as other:
            ended = []
            while not ended:
                ended = other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                ).fetchall()
        holder.rollback()
        assert waiting.result(30).fresh
    assert store.load(mine.stream, TEXTS).state == ("one",)


def test_whoever_was_overtaken_decides_again_with_what_is_there_now(store, mine):
    seen = []

    def decide(loaded):
        seen.append(loaded.state)
        if len(seen) == 1:
            store.append([mine.batch("somebody else's", expected=0)], request=mine.request())
        return Decision([mine.batch("mine", expected=loaded.version)])

    store.transact(mine.request(), lambda: store.load(mine.stream, TEXTS), decide)
    assert seen == [(), ("somebody else's",)]
    assert store.load(mine.stream, TEXTS).state == ("somebody else's", "mine")


def test_a_conflict_that_never_ends_is_reported(store, mine, monkeypatch):
    monkeypatch.setattr("remembrancer.services.store.store.MOST_TRIES", 3)
    store.append([mine.fact()], request=mine.request())
    with pytest.raises(VersionConflict):
        store.transact(mine.request(), lambda: None, lambda _: Decision([mine.batch("x", expected=0)]))


def test_eighty_decisions_about_one_list_at_once_are_all_kept(store, mine):
    with ThreadPoolExecutor(80) as threads:
        done = list(threads.map(lambda n: save(store, mine, mine.request(str(n)), f"text {n}"), range(80)))
    assert sorted(d.versions[0] for d in done) == list(range(1, 81))
    assert sorted(store.load(mine.stream, TEXTS).state) == sorted(f"text {n}" for n in range(80))
