"""Writes the stored sample of every event that has none in its present version.

    python tests/samples/make.py

A sample is what the store held on the day it was written, and never changes: it proves that later versions of the code
still read it. A new form of an event gets a second sample, and the old one is read through its upcaster.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import BaseModel

from remembrancer.domain.events import EVENTS, Event
from remembrancer.services.store import mapper
from remembrancer.services.store.keys import KeyRef, key_of

FOLDER = Path(__file__).parent / "events"
REF = KeyRef(12, "sample tenant", "user", "sample user", 1)
RAW = bytes(range(32))
EXAMPLES: dict[Any, Any] = {
    UUID: UUID("0c111111-2222-8333-8444-555555555555"),
    str: "Mochi \u2014 \u0447\u0430\u0439, \u732b",
    int: 3,
    float: 0.25,
    bool: True,
    date: date(2026, 5, 1),
    datetime: datetime(2026, 5, 1, 12, 30, 15, 250_000, UTC),
    Any: {"rest_after_days": 7, "match_threshold": None},
}


def main() -> None:
    for name, cls in EVENTS.items():
        path = FOLDER / f"{name}.v{cls.version}.json"
        if not path.exists():
            event = example(cls)
            stored = orjson.loads(mapper.encode(event, key_of((REF,), (RAW,))))
            sample = {"stored": stored, "reads": event.model_dump(mode="json")}
            path.write_text(json.dumps(sample, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def example(of: Any) -> Any:
    """A value of a type, every field set."""
    if isinstance(of, type) and issubclass(of, BaseModel):
        return of(**{name: example(field.annotation) for name, field in of.model_fields.items()})
    origin, arguments = get_origin(of), get_args(of)
    if origin is Literal:
        return arguments[-1]
    if origin in (Union, types.UnionType):
        return example(next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        return tuple(example(one) for one in arguments if one is not ...)
    if origin is Mapping:
        return {example(arguments[0]): example(arguments[1])}
    return EXAMPLES[of]


def every_event() -> list[Event]:
    """An example of each."""
    return [example(cls) for cls in EVENTS.values()]


if __name__ == "__main__":
    main()
