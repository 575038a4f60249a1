"""Between events and their stored form.

The stored form is the event's JSON, with one more field `$` in front: the version of the form (`v`), and for personal
texts the keys (`k`) and the sealed texts (`x`), which are left out of the rest.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError

from remembrancer.domain.events import EVENTS, UPCASTERS, Event, Recorded
from remembrancer.domain.text import ERASED
from remembrancer.services.store.errors import UnknownEvent
from remembrancer.services.store.keys import Key, KeyRef, Refs, SubjectKeys
from remembrancer.services.store.pool import Connection

Row = tuple[int, int, UUID, int, str, bytes, datetime]
"""An event as the tables hold it: shard, position, stream, version, type, state, recorded_at."""


def encode(event: Event, key: Key | None) -> bytes:
    """Returns the stored form of an event, its personal texts sealed under `key`.

    Raises:
        ValueError: it has personal texts and there is no key.
    """
    cls = type(event)
    texts = {name: text for name in cls.personal if (text := getattr(event, name)) is not None}
    head: dict[str, Any] = {"v": cls.version}
    if texts:
        if key is None:
            raise ValueError(f"{cls.__name__} has personal texts and needs the subject whose key seals them")
        about = str(event.id)
        head["k"] = orjson.Fragment(key.names)
        head["x"] = {n: b64encode(key.seal(t.encode(), (about, n))).decode() for n, t in texts.items()}
    body = cls.__pydantic_serializer__.to_json(event, exclude=set(texts) or None)
    return b'{"$":' + orjson.dumps(head) + b"," + body[1:]


def decode(rows: Sequence[Row], connection: Connection, keys: SubjectKeys) -> tuple[list[Recorded], set[KeyRef]]:
    """Returns the events of these rows, and the keys of their texts. A text whose key is gone reads `ERASED`.

    Args:
        rows: as the statements of `sql/` select them.
        connection: where the keys are looked up, once for all rows.

    Raises:
        UnknownEvent: a newer version wrote one of them.
        Tampered: a sealed text was changed or moved.
    """
    states = [orjson.loads(row[5]) for row in rows]
    heads = [state.pop("$") for state in states]
    refs = [_refs(head) for head in heads]
    standing = keys.for_reading(connection, filter(None, refs))
    events = [
        Recorded(_event(row[4], state, head, standing.get(ref)), row[2], row[3], row[0], row[1], row[6])
        for row, state, head, ref in zip(rows, states, heads, refs, strict=True)
    ]
    return events, {ref for group in standing for ref in group}


def open_fields(state: bytes) -> dict[str, Any]:
    """Returns what a stored event says in the clear, whichever version wrote it: names, never texts."""
    try:
        fields = orjson.loads(state)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _refs(head: dict[str, Any]) -> Refs:
    return tuple(KeyRef(*ref) for ref in head["k"]) if "k" in head else ()


def _event(name: str, state: dict[str, Any], head: dict[str, Any], key: Key | None) -> Event:
    for field, sealed in head.get("x", {}).items():
        state[field] = ERASED if key is None else key.open(b64decode(sealed), (state["id"], field)).decode()
    cls = EVENTS.get(name)
    version: int = head["v"]
    if cls is None or version > cls.version:
        raise UnknownEvent(
            f"The store holds {name} in version {version}, which this version of Remembrancer does not know.",
            hint="Update this installation.",
        )
    for step in range(version, cls.version):
        state = UPCASTERS[name, step](state)
    try:
        event: Event = cls.__pydantic_validator__.validate_python(state)
    except ValidationError as error:  # whose own words repeat what stands in the event
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['type']}" for e in error.errors(include_input=False))
        raise UnknownEvent(f"A stored {name} cannot be read: {wrong}") from None
    return event
