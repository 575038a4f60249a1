"""The two blocks of text that go into a prompt (T6, T17, R12, D28).

The prefix stands at the beginning and is a pure function of standing instructions, lists, hidden set and UTC date, so
that it is the same bytes from reply to reply and a provider's prompt cache holds. The late block stands near the end,
beside the newest message, and changes with every reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain.identity import ListKey

RENDERER = 1
"""Version of this layout, recorded with every reply: `at` prints the bytes of its day."""


class Line(NamedTuple):
    """What is printed of a memory."""

    text: str
    until: date | None
    pinned: bool


def _item(line: Line) -> str:
    until = "" if line.until is None else f" (until {line.until.day} {_MONTHS[line.until.month - 1]} {line.until.year})"
    return "- " + line.text.replace("\n", "\n  ") + until


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip


def _heading(key: ListKey) -> str:
    match key.scope:
        case "server":
            return "## This server"
        case "personal":
            return f"## {key.subject}, with you"
        case _:
            return f"## {key.subject}"


def render_prefix(
    instructions: str, desk: Sequence[tuple[ListKey, Sequence[UUID]]], lines: Mapping[UUID, Line]
) -> str:
    """The beginning of the prompt: standing instructions, then pinned memories, then the others, list by list."""
    blocks = [instructions.rstrip()] if instructions.strip() else []
    memories: list[str] = []
    for pinned in (True, False):
        for key, ids in desk:
            items = [_item(lines[i]) for i in ids if lines[i].pinned is pinned]
            if items:
                heading = _heading(key) + (", to be kept in mind always" if pinned else "")
                memories.append("\n".join([heading, *items]))
    if memories:
        blocks.append("\n\n".join(["# What you remember", *memories]))
    return "\n\n".join(blocks)


def render_late(recalled: Sequence[Line], recent: Sequence[Line]) -> str:
    """The block near the end: what the newest message brought to mind, and what is new or changed (R12)."""
    blocks = []
    if recalled:
        blocks.append("\n".join(["# What this message brings to mind", *map(_item, recalled)]))
    if recent:
        blocks.append("\n".join(["# Learned or changed recently", *map(_item, recent)]))
    return "\n\n".join(blocks)


def fingerprint(prefix: str) -> str:
    """SHA-256 of the prefix in hexadecimal: two replies with the same one had the same bytes."""
    return hashlib.sha256(prefix.encode("utf-8")).hexdigest()
