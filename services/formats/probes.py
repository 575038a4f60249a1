"""The probe set: facts, messages that touch one of them, and small talk that touches none; a file a language (D5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.formats.rows import said


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1)


class Fact(_Line):
    """What a memory could say."""

    kind: Literal["fact"]
    id: str


class Touch(_Line):
    """A message that should bring a fact to mind."""

    kind: Literal["touch"]
    fact: str


class SmallTalk(_Line):
    """A message that should bring none."""

    kind: Literal["small_talk"]


_LINE: TypeAdapter[Fact | Touch | SmallTalk] = TypeAdapter(
    Annotated[Fact | Touch | SmallTalk, Field(discriminator="kind")]
)


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one language. A touch is a message and the number of its fact."""

    language: str
    facts: Sequence[str]
    touches: Sequence[tuple[str, int]]
    small_talk: Sequence[str]


def read_probes(folder: Path | None) -> list[Probes]:
    """All probes of a folder of `.jsonl` files, or ours; in the order of their languages.

    Raises:
        InvalidInput: there are none, or a line does not fit: the error names file and line.
    """
    place: Traversable = files("remembrancer.services").joinpath("probes") if folder is None else folder
    try:
        found = sorted((f for f in place.iterdir() if f.name.endswith(".jsonl")), key=lambda f: f.name)
        texts = {f.name: f.read_text(encoding="utf-8-sig") for f in found}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The probes in {folder} cannot be read: {error}.") from error
    probes = [_of_one_language(name, text) for name, text in texts.items()]
    facts = sum(len(p.touches) for p in probes)
    if not facts or not any(p.small_talk for p in probes):
        raise InvalidInput(
            f"{folder} holds no probes to measure with.",
            hint="It takes files like en.jsonl with facts, touches and small talk (docs/calibrate.md).",
        )
    return probes


def _of_one_language(name: str, text: str) -> Probes:
    lines: list[Fact | Touch | SmallTalk] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                lines.append(_LINE.validate_json(line))
            except ValidationError as error:
                raise InvalidInput(f"{name}, line {number}: {said(error, below=1)}.") from error
    facts = [line for line in lines if isinstance(line, Fact)]
    numbers: Mapping[str, int] = {fact.id: n for n, fact in enumerate(facts)}
    touches = [line for line in lines if isinstance(line, Touch)]
    if unknown := sorted({touch.fact for touch in touches} - set(numbers)):
        raise InvalidInput(f"{name}: messages touch facts that are not there: {', '.join(unknown)}.")
    return Probes(
        language=name.removesuffix(".jsonl"),
        facts=[fact.text for fact in facts],
        touches=[(touch.text, numbers[touch.fact]) for touch in touches],
        small_talk=[line.text for line in lines if isinstance(line, SmallTalk)],
    )
