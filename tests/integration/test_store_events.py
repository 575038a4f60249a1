"""What was stored once can be read for ever: samples of every event, upcasters, and fields and events from tomorrow."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

import orjson
import psycopg
import pytest

from remembrancer.domain import events
from remembrancer.domain.events import EVENTS, Event
from remembrancer.services.store import Batch, UnknownEvent, mapper, open_store
from remembrancer.services.store.keys import key_of
from tests.samples.make import FOLDER, RAW, REF, every_event
from tests.support.streams import NOON, AList

SAMPLES = sorted(FOLDER.glob("*.json"))


@pytest.fixture
def store(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO remembrancer.subject_key VALUES (%s, %s, %s, %s, %s, %s)", (*REF, RAW))
    opened = open_store(database_url)
    yield opened
    opened.close()


def read(store, name, state):
    """What the store makes of a stored state."""
    (recorded,) = store.decode([(12, 1, uuid4(), 1, name, state, NOON)])
    return recorded.event


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_stored_sample_still_reads_as_it_did_and_can_be_stored_again(store, path):
    name, _, version = path.stem.partition(".v")
    sample = orjson.loads(path.read_bytes())
    assert sample["stored"]["$"]["v"] == int(version)

    event = read(store, name, orjson.dumps(sample["stored"]))

    assert type(event) is EVENTS[name]
    if int(version) == type(event).version:
        assert event == type(event).model_validate(sample["reads"])
    again = mapper.encode(event, key_of((REF,), (RAW,)))
    assert read(store, name, again) == event
    assert not orjson.loads(again).keys() & set(type(event).personal)


def test_every_event_has_a_sample_of_its_present_form_and_every_older_form_too():
    wanted = {f"{name}.v{version}" for name, cls in EVENTS.items() for version in range(1, cls.version + 1)}
    missing = sorted(wanted - {path.stem for path in SAMPLES})
    assert not missing, f"run `python tests/samples/make.py` and commit what it writes: {missing}"


def test_every_field_of_every_event_comes_back(store):
    key = key_of((REF,), (RAW,))
    for event in every_event():
        assert read(store, type(event).__name__, mapper.encode(event, key)) == event


def test_personal_fields_are_texts():
    for cls in EVENTS.values():
        for field in cls.personal:
            assert cls.model_fields[field].annotation in (str, str | None), f"{cls.__name__}.{field}"


class NameGiven(Event):
    """An event in its third form: it began as `name`, became `first` and `last`, and counts the letters now."""

    version: ClassVar[int] = 3
    personal: ClassVar[tuple[str, ...]] = ("first", "last")

    first: str
    last: str | None
    letters: int


@pytest.fixture
def three_forms(monkeypatch):
    def split(old):
        first, _, last = old.pop("name").partition(" ")
        return old | {"first": first, "last": last or None}

    monkeypatch.setitem(EVENTS, "NameGiven", NameGiven)
    monkeypatch.setitem(events.UPCASTERS, ("NameGiven", 1), split)
    monkeypatch.setitem(events.UPCASTERS, ("NameGiven", 2), lambda old: old | {"letters": len(old["first"])})


class OldNameGiven(Event):
    """The same in its first form."""

    personal: ClassVar[tuple[str, ...]] = ("name",)

    name: str


def test_an_old_form_goes_through_every_upcaster_with_its_texts_readable(store, three_forms):
    old = OldNameGiven(id=uuid4(), tenant="t", name="Juno Moon")
    stored = mapper.encode(old, key_of((REF,), (RAW,)))
    assert read(store, "NameGiven", stored) == NameGiven(id=old.id, tenant="t", first="Juno", last="Moon", letters=4)


def test_the_present_form_goes_through_none_and_an_absent_text_stays_absent(store, three_forms):
    event = NameGiven(id=uuid4(), tenant="t", first="Juno", last=None, letters=4)
    assert read(store, "NameGiven", mapper.encode(event, key_of((REF,), (RAW,)))) == event


def test_fields_from_tomorrow_are_passed_over(store):
    event = AList().searched()
    state = orjson.loads(mapper.encode(event, None)) | {"of_tomorrow": {"deep": [1]}}
    assert read(store, "ListSearched", orjson.dumps(state)) == event


def test_an_event_or_a_form_from_tomorrow_is_refused_by_name(store):
    state = orjson.loads(mapper.encode(AList().searched(), None))
    with pytest.raises(UnknownEvent, match="OfTomorrow"):
        read(store, "OfTomorrow", orjson.dumps(state))
    state["$"]["v"] = 99
    with pytest.raises(UnknownEvent, match="version 99"):
        read(store, "ListSearched", orjson.dumps(state))


def test_the_name_of_an_event_is_its_type_in_the_table(store, database_url):
    mine = AList()
    store.append([Batch(mine.stream, [mine.searched()])], request=mine.request())
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT type FROM remembrancer.event").fetchall() == [("ListSearched",)]
