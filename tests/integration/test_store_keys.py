"""Texts are sealed under their subject's key, stand only where they were written, and die with it (D24)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from remembrancer.domain.events import MemoryEdited
from remembrancer.domain.identity import Subject
from remembrancer.domain.text import ERASED
from remembrancer.services.store import Batch, Decision, KeyGone, Tampered, mapper, open_store
from remembrancer.services.store.keys import Key
from tests.support.streams import NOON, TEXTS, AList

SECRET = "Juno's cat is named Mochi"


@pytest.fixture
def store(database_url):
    opened = open_store(database_url)
    yield opened
    opened.close()


@pytest.fixture
def other(database_url):
    """The same store, opened by somebody else."""
    opened = open_store(database_url)
    yield opened
    opened.close()


@pytest.fixture
def mine():
    return AList()


def everything(url):
    """All bytes of all tables of ours."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT format('SELECT x::text FROM %I.%I x', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname = 'remembrancer'"
        ).fetchall()
        texts = [row[0] for (query,) in tables for row in connection.execute(query)]
    return "\n".join(texts), "\n".join(texts).encode().hex()


def test_neither_text_nor_answer_nor_fingerprint_is_stored_in_the_clear(store, mine, database_url):
    request = mine.request("r", text=SECRET)
    store.append([mine.batch(SECRET, expected=0)], request=request, answer=SECRET.encode())
    assert store.load(mine.stream, TEXTS).state == (SECRET,)
    for stored in everything(database_url):
        for text in (SECRET, SECRET.encode().hex(), request.fingerprint, request.fingerprint.encode().hex()):
            assert text not in stored


def test_a_destroyed_key_reads_erased_everywhere_at_once(store, other, mine):
    request = mine.request("r", text=SECRET)
    for one in (store, other):
        one.append([mine.batch(SECRET, expected=0)], request=request, answer=SECRET.encode())
        assert one.load(mine.stream, TEXTS).state == (SECRET,)

    assert other.keys.destroy(mine.tenant, mine.owner, now=NOON) == 1

    for one in (store, other):
        assert one.load(mine.stream, TEXTS).state == (ERASED,)
        assert one.load_at(mine.stream, TEXTS, 1).state == (ERASED,)
        assert [r.event.text for r in one.read([(mine.stream, 0)])] == [ERASED]
        again = one.find(request)
        assert (again.answer, again.positions) == (None, [1])


def test_after_erasure_a_repetition_is_still_answered_and_writes_nothing(store, other, mine):
    request = mine.request("r", text=SECRET)
    store.append([mine.batch(SECRET, expected=0)], request=request)
    other.keys.destroy(mine.tenant, mine.owner, now=NOON)
    again = store.append([mine.batch(SECRET, expected=1)], request=request)
    assert (again.fresh, again.answer) == (False, None)
    assert store.heads() == {mine.shard: 1}


def test_nobody_writes_under_a_key_that_is_gone_and_whoever_decides_again_gets_a_new_one(store, other, mine):
    store.append([mine.batch("one", expected=0)], request=mine.request())
    other.keys.destroy(mine.tenant, mine.owner, now=NOON)
    with pytest.raises(KeyGone):
        store.append([mine.batch("two", expected=1)], request=mine.request())
    seen = []

    def decide(loaded):
        seen.append(loaded.state)
        return Decision([mine.batch("three", expected=loaded.version)])

    store.transact(mine.request(), lambda: store.load(mine.stream, TEXTS), decide)
    assert seen[-1] == (ERASED,)
    assert other.load(mine.stream, TEXTS).state == (ERASED, "three")


def test_an_append_under_a_key_that_is_being_destroyed_waits_and_is_refused(store, mine, database_url):
    store.append([mine.batch("one", expected=0)], request=mine.request())
    with psycopg.connect(database_url) as destroyer, ThreadPoolExecutor(1) as thread:
        store.keys.destroy(mine.tenant, Subject("user", "nobody"), now=NOON)  # no key, nothing to do
        remembered = store.keys.for_writing(mine.tenant, [mine.owner])
        store.keys.destroy(mine.tenant, mine.owner, now=NOON, connection=destroyer)
        store.keys._writing.put((mine.tenant, (mine.owner,)), remembered)
        writing = thread.submit(store.append, [mine.batch("two", expected=1)], request=mine.request())
        with pytest.raises(TimeoutError):
            writing.result(0.3)
        destroyer.commit()
        with pytest.raises(KeyGone):
            writing.result(30)
    assert store.load(mine.stream, TEXTS).state == (ERASED,)


def test_a_destruction_waits_for_the_append_that_is_writing(store, mine, database_url):
    store.append([mine.batch("one", expected=0)], request=mine.request())
    with psycopg.connect(database_url) as writer, ThreadPoolExecutor(1) as thread:
        writer.execute("SELECT FROM remembrancer.subject_key FOR SHARE")
        destroying = thread.submit(store.keys.destroy, mine.tenant, mine.owner, now=NOON)
        with pytest.raises(TimeoutError):
            destroying.result(0.3)
        writer.commit()
        assert destroying.result(30) == 1


def test_a_sealed_text_does_not_open_in_another_event_field_or_generation(store, mine, database_url):
    edited = MemoryEdited(
        **mine.key._asdict(),
        **dict.fromkeys(("id", "memory"), mine.saved("x").id),
        tenant=mine.tenant,
        text="after",
        before="before",
        day=NOON.date(),
    )
    batch = Batch(mine.stream, [mine.saved("one"), mine.saved("two"), edited], 0, (mine.owner,))
    store.append([batch], request=mine.request())

    def swapped(change):
        with store.database.connection() as connection:
            rows = store.select_streams(connection, [(mine.stream, 0)])
            with pytest.raises(Tampered):
                store.decode(change(rows), connection)

    def sealed(row):
        return mapper.orjson.loads(row[5])["$"]["x"]

    def with_text(row, field, text):
        state = mapper.orjson.loads(row[5])
        state["$"]["x"][field] = text
        return (*row[:5], mapper.orjson.dumps(state), row[6])

    swapped(lambda rows: [with_text(rows[0], "text", sealed(rows[1])["text"])])
    swapped(lambda rows: [with_text(rows[2], "text", sealed(rows[2])["before"])])
    swapped(lambda rows: [with_text(rows[0], "text", sealed(rows[0])["text"][:-8] + "AAAAAAA=")])

    key = store.keys.for_writing(mine.tenant, [mine.owner])
    later = tuple(ref._replace(generation=2) for ref in key.refs)
    forged = replace(key, refs=later, names=mapper.orjson.dumps([list(ref) for ref in later]))
    with pytest.raises(Tampered):
        forged.open(key.seal(b"text", ("event", "text")), ("event", "text"))


def test_a_text_about_two_subjects_dies_with_either_key(store, mine):
    both = (mine.owner, Subject("user", "7"))
    for survivor, gone in (both, both[::-1]):
        stream = AList(persona=f"dies with {gone}")
        batch = Batch(stream.stream, [stream.saved("the two are friends")], 0, both)
        store.append([batch], request=stream.request())
        assert store.load(stream.stream, TEXTS).state == ("the two are friends",)
        store.keys.destroy(mine.tenant, gone, now=NOON)
        assert store.load(stream.stream, TEXTS).state == (ERASED,)
        assert store.keys.for_writing(mine.tenant, [survivor])


def test_the_order_of_the_subjects_does_not_matter(store):
    ana, ben = Subject("user", "ana"), Subject("server", "ben")
    one, two = store.keys.for_writing("t", [ana, ben]), store.keys.for_writing("t", [ben, ana])
    assert one.refs == two.refs
    assert two.open(one.seal(b"x", ["here"]), ["here"]) == b"x"


def test_all_who_ask_for_a_new_key_at_once_get_the_same_one(database_url, mine):
    stores = [open_store(database_url) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        keys: list[Key] = list(threads.map(lambda s: s.keys.for_writing(mine.tenant, [mine.owner]), stores))
    for store in stores:
        store.close()
    assert len({(key.refs, key.authenticator) for key in keys}) == 1


def test_keys_of_tenants_and_kinds_are_apart(store):
    keys = [
        store.keys.for_writing(tenant, [Subject(kind, "42")]) for tenant in ("a", "b") for kind in ("user", "server")
    ]
    assert len({key.authenticator for key in keys}) == 4


def test_a_personal_text_without_a_subject_is_a_mistake_of_the_program(store, mine):
    with pytest.raises(ValueError, match="subject"):
        store.append([Batch(mine.stream, [mine.saved("x")], 0)], request=mine.request())
