"""JSON of a given shape, out of what a model wrote."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from remembrancer.services.chat_models.model import ModelFailed

T = TypeVar("T", bound=BaseModel)
_FENCE = re.compile(r"```(?:\w+)?\s*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def schema_of(shape: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a shape as strict endpoints want it: every field needed, and no others."""
    schema = shape.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part["additionalProperties"] = False
        part["required"] = list(part.get("properties", {}))
    return schema


def without_thoughts(text: str) -> str:
    """What a model says, without what it thinks aloud in between."""
    return _THOUGHT.sub("", text)


def writable(text: str) -> str:
    """What a model wrote, as it can be kept: without NUL, halves of surrogate pairs and blanks around it."""
    return "".join(c for c in text if c != "\x00" and not "\ud800" <= c <= "\udfff").strip()


def read_json(text: str, shape: type[T]) -> T:
    """The first JSON object in a text, in a code fence or bare, checked.

    Raises:
        ModelFailed: there is none, or it does not fit.
    """
    spoken = without_thoughts(text)
    for candidate in (*_FENCE.findall(spoken), spoken):
        start = candidate.find("{")
        if start < 0:
            continue
        try:
            found, _ = json.JSONDecoder().raw_decode(candidate[start:])
        except ValueError:
            continue
        try:
            return shape.model_validate(found)
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, e["loc"])) or "the whole" for e in error.errors(include_input=False))
            raise ModelFailed(f"JSON that does not fit at {wrong}") from None
    raise ModelFailed("no JSON that can be read")
