"""What is stored (DESIGN 2, D21): every event is registered, immutable, and read back as it was written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

import orjson
import pytest
from pydantic import BaseModel, ValidationError

from remembrancer.domain import events as e
from remembrancer.domain.events import EVENTS, UPCASTERS, Event
from tests.domain.support import DAY, happening

EVERY = sorted(EVENTS)
ABSTRACT = {"Event", "ListEvent", "DocumentEvent"}


def example(annotation: Any) -> Any:
    """Some value of a type, unlike any default."""
    plain = {str: "caf\u00e9 \U0001f431", int: 3, float: 0.5, bool: True, date: DAY, UUID: UUID(int=5),
             datetime: datetime(2026, 5, 4, 9, 30, tzinfo=UTC), NoneType: None, Any: "anything"}  # fmt: skip
    if annotation in plain:
        return plain[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return filled(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return args[-1]
    if origin in (Union, UnionType):
        return example(args[0])
    if origin is tuple:
        return tuple(example(a) for a in args if a is not ...)
    return {example(args[0]): example(args[1])}


def filled(model: type[BaseModel]) -> Any:
    return model(**{name: example(field.annotation) for name, field in model.model_fields.items()})


@pytest.mark.parametrize("name", EVERY)
def test_an_event_with_every_field_filled_is_read_back_as_it_was_written(name: str):
    event = filled(EVENTS[name])
    stored = EVENTS[name].__pydantic_serializer__.to_json(event)
    assert EVENTS[name].__pydantic_validator__.validate_python(orjson.loads(stored)) == event


def test_every_event_there_is_is_registered_under_its_own_name():
    def subclasses(cls: type[Event]) -> set[type[Event]]:
        return {cls}.union(*(subclasses(sub) for sub in cls.__subclasses__()))

    ours = {cls.__name__: cls for cls in subclasses(Event) if cls.__module__ == e.__name__}
    assert {name: cls for name, cls in ours.items() if name not in ABSTRACT} == EVENTS


@pytest.mark.parametrize("name", EVERY)
def test_an_event_says_who_acted_in_which_turn_at_whose_request_for_which_tenant(name: str):  # D21
    assert {"id", "tenant", "actor", "request_id", "turn"} <= set(EVENTS[name].model_fields)
    assert EVENTS[name].model_fields["actor"].default == "person"


@pytest.mark.parametrize("name", EVERY)
def test_personal_text_is_a_text_of_its_own(name: str):  # D24
    for field in EVENTS[name].personal:
        assert EVENTS[name].model_fields[field].annotation is str


@pytest.mark.parametrize("name", EVERY)
def test_an_old_version_has_a_way_up(name: str):
    for version in range(1, EVENTS[name].version):
        assert (name, version) in UPCASTERS


def test_texts_of_memories_are_encrypted_wherever_they_stand():  # D24
    assert e.MemorySaved.personal == ("text",)
    assert set(e.MemoryEdited.personal) == {"text", "before"}
    assert e.TombstonePlaced.personal == ("sentence",)
    assert e.PersonaDefined.personal == ("instructions",)


def test_only_searches_matches_and_what_follows_from_others_are_facts():  # DESIGN 2
    facts = {name for name in EVERY if EVENTS[name].fact}
    assert {"ListSearched", "MemoriesMatched", "ReplySearched"} <= facts
    assert not facts & {"MemorySaved", "MemoryEdited", "MemoryDeleted", "MemoryPinned", "MemoriesCleared"}


def test_an_event_does_not_change():
    event = filled(e.MemorySaved)
    with pytest.raises(ValidationError):
        event.text = "other"


def test_a_field_of_a_later_version_does_not_trouble_an_older_reader():
    event, _ = happening(e.MemoryDeleted, DAY, memory=UUID(int=1), a_field_of_tomorrow=1)
    assert not hasattr(event, "a_field_of_tomorrow")


@pytest.mark.parametrize("wrong", [{"tags": "a string"}, {"text": 5}, {"day": "someday"}, {"scope": "everything"}])
def test_wrong_types_are_no_event(wrong: dict[str, object]):
    fields = {name: example(field.annotation) for name, field in e.MemorySaved.model_fields.items()}
    with pytest.raises(ValidationError):
        e.MemorySaved(**(fields | wrong))
