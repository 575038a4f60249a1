"""Bytes that are sealed as a whole: snapshots, and the answers of commands. The names of their keys stand in front."""

from __future__ import annotations

import orjson

from remembrancer.services.store.keys import Key, KeyRef, Refs

_LENGTH = 4


def seal(data: bytes, key: Key | None, *place: str) -> bytes:
    """Returns `data` sealed for this place; as it is, behind an empty list of keys, where nothing personal is in it."""
    refs = key.names if key else b"[]"
    return len(refs).to_bytes(_LENGTH, "big") + refs + (key.seal(data, place) if key else data)


def refs_of(blob: bytes) -> Refs:
    """Returns the keys that a blob is sealed under."""
    end = _LENGTH + int.from_bytes(blob[:_LENGTH], "big")
    return tuple(KeyRef(*ref) for ref in orjson.loads(blob[_LENGTH:end]))


def unseal(blob: bytes, key: Key | None, *place: str) -> bytes | None:
    """Returns what was sealed, or nothing if its key is gone.

    Raises:
        Tampered: it was changed, or sealed for another place.
    """
    end = _LENGTH + int.from_bytes(blob[:_LENGTH], "big")
    if blob[_LENGTH:end] == b"[]":
        return blob[end:]
    return None if key is None else key.open(blob[end:], place)
