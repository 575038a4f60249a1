"""The two blocks of text that go into a prompt (T6, T17, R12, D28).

The prefix stands at the beginning and is a pure function of standing instructions, lists, hidden set and UTC date, so
that it is the same bytes from reply to reply and a provider's prompt cache holds. The late block stands near the end,
beside the newest message, and changes with every reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.identity import EVERY_PERSONA, ListKey

RENDERER = 2
"""Version of the present layout, recorded with every reply: `at` prints the bytes of its day (see `RENDERERS`)."""


class Line(NamedTuple):
    """What is printed of a memory. `of`: the persona that knows it, where that is another one than the one that speaks
    (R11): what it says is not to be taken for the speaker's own."""

    text: str
    until: date | None
    pinned: bool
    of: str | None = None


def whose(persona: str, speaker: str) -> str | None:
    """`Line.of` of a memory of this persona's, or of everyone's."""
    return None if persona in (speaker, EVERY_PERSONA) else persona


def _item(line: Line, mark: str = "-", *, named: bool = False) -> str:
    until = "" if line.until is None else f" (until {line.until.day} {_MONTHS[line.until.month - 1]} {line.until.year})"
    of = f" ({_one_line(line.of)} knows it)" if named and line.of is not None else ""
    return f"{mark} " + "\n  ".join(line.text.splitlines()) + until + of


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip


def _one_line(name: str) -> str:
    return " ".join(name.splitlines())


def _heading(key: ListKey, of: str | None) -> str:
    name = _one_line(key.subject)
    match key.scope:
        case "server":
            return "## This server" if of is None else f"## This server, as {_one_line(of)} knows it"
        case "personal":
            return f"## {name}, with {'you' if of is None else _one_line(of)}"
        case _:
            return f"## {name}"


def in_print_order(desk: Sequence[Sequence[UUID]], lines: Mapping[UUID, Line]) -> list[UUID]:
    """The desk as it is printed and numbered: pinned memories first, then the others, list by list."""
    return [i for pinned in (True, False) for ids in desk for i in ids if lines[i].pinned is pinned]


def render_prefix(instructions: str, desk: Sequence[tuple[ListKey, Sequence[UUID]]], lines: Mapping[UUID, Line]) -> str:
    """The beginning of the prompt: standing instructions, then the desk, numbered in the order of `in_print_order`."""
    blocks = [instructions.rstrip()] if instructions.strip() else []
    number = {i: n for n, i in enumerate(in_print_order([ids for _, ids in desk], lines), start=1)}
    memories: list[str] = []
    for pinned in (True, False):
        for key, ids in desk:
            items = [_item(lines[i], f"{number[i]}.") for i in ids if lines[i].pinned is pinned]
            if items:
                heading = _heading(key, lines[ids[0]].of) + (", to be kept in mind always" if pinned else "")
                memories.append("\n".join([heading, *items]))
    if memories:
        blocks.append("\n\n".join(["# What you remember", *memories]))
    return "\n\n".join(blocks)


def render_late(recalled: Sequence[Line], recent: Sequence[int], recent_days: int) -> str:
    """The block near the end: what the newest message brought to mind, and which numbers of the desk are new or changed
    (R12). No text of the desk stands here again (C11)."""
    blocks = []
    if recalled:
        blocks.append(
            "\n".join(["# What this message brings to mind", *(_item(line, named=True) for line in recalled)])
        )
    if recent:
        numbers = ", ".join(map(str, recent))
        blocks.append(f"# Recent\nNew or changed in the last {recent_days} days: {numbers}")
    return "\n\n".join(blocks)


def fingerprint(prefix: str) -> str:
    """SHA-256 of the prefix in hexadecimal: two replies with the same one had the same bytes."""
    return hashlib.sha256(prefix.encode("utf-8")).hexdigest()


class Renderer(NamedTuple):
    """One version of the layout: the order of the desk, and both blocks."""

    order: Callable[[Sequence[Sequence[UUID]], Mapping[UUID, Line]], list[UUID]]
    prefix: Callable[[str, Sequence[tuple[ListKey, Sequence[UUID]]], Mapping[UUID, Line]], str]
    late: Callable[[Sequence[Line], Sequence[int], int], str]


_PRESENT = Renderer(in_print_order, render_prefix, render_late)
RENDERERS: Mapping[int, Renderer] = {1: _PRESENT, 2: _PRESENT}
"""Every layout that ever was. A new one is added under the next number; an old one stays as it is, byte for byte.

1 knew no group: what 2 adds stands only where another persona's memories are read, so both print by the same code.
"""


def renderer(version: int) -> Renderer:
    """The layout of a version that was recorded.

    Raises:
        Unavailable: a newer version of this program wrote it.
    """
    if version not in RENDERERS:
        raise Unavailable(
            f"The prompt of this reply has layout {version}, which this version does not know.",
            hint="Update this installation.",
        )
    return RENDERERS[version]
