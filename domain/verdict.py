"""The verdict of `why`: where a memory is, why, and what brings it back, in one sentence and one command (U1)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey
from remembrancer.domain.life import Life
from remembrancer.domain.memory import State

Status = Literal[
    "on_desk", "pinned", "resting", "no_room", "expired", "hidden", "edited", "deleted", "evicted", "undone", "cleared",
    "erased", "moved", "never_saved",
]  # fmt: skip

_WHO = {"persona": "the persona", "person": "a person", "deep": "the background pass", "import": "an import",
        "system": "Remembrancer"}  # fmt: skip


class Verdict(NamedTuple):
    """`bring_back` is what is typed after the program's name, or None where nothing has to, or can, be done."""

    status: Status
    sentence: str
    bring_back: str | None


@dataclass(frozen=True, slots=True)
class Present:
    """Where a memory that is in its list stands now."""

    state: State
    on_desk: bool
    unused_days: int
    rest_after_days: int
    desk_limit: int
    until: date | None
    tags: Sequence[str]
    channels: Sequence[str]
    hidden_everywhere: str | None = None
    """A setting because of which no reply uses it (T10, R17), as the end of a sentence, with its command."""
    hidden_fix: str | None = None
    rested_on: date | None = None
    decays: bool = True
    """Is memory decay on (T11)?"""


@dataclass(frozen=True, slots=True)
class Absent:
    """What is known besides its life of a memory that is gone."""

    restorable: bool
    same_text: UUID | None = None
    """The list says the same again, in this memory."""


def verdict(life: Life, key: ListKey, now: Present | Absent, *, asked_of: str | None = None) -> Verdict:
    """Why it is not there, or where it is.

    Args:
        asked_of: the earlier wording that was asked for, where the memory has another one by now.
    """
    if isinstance(now, Absent):
        return _gone(life, key, now)
    found = _there(life, now)
    if asked_of is not None and asked_of != life.text:
        how = "" if found.status in ("on_desk", "pinned") else f" {found.sentence}"
        return Verdict(
            "edited",
            f"It was not forgotten but reworded: {_reworded(life, asked_of)}, and now it says "
            f"\u201c{life.text}\u201d.{how}",
            shlex.join(["edit", str(life.memory), asked_of]),
        )
    return found


def _reworded(life: Life, text: str) -> str:
    """What took this wording away."""
    line = next((x for x in reversed(life.lines) if x.before == text and x.after != text), None)
    if line is None:
        return "it was edited"
    ev, day = line.recorded.event, f"{line.recorded.recorded_at:%Y-%m-%d}"
    if isinstance(ev, e.TurnRolledBack):
        return f"the turn {ev.turn} that worded it so was undone on {day}"
    return f"{_WHO[ev.actor]} edited it on {day}"


def _there(life: Life, now: Present) -> Verdict:
    memory = str(life.memory)
    if now.state == "expired":
        return Verdict(
            "expired",
            f"It was true until {now.until}, and that day has passed: it is kept, but neither sent nor searched (D28).",
            f"edit {memory} --until none",
        )
    if now.hidden_everywhere is not None:
        return Verdict("hidden", f"It is there, but no reply may use it: {now.hidden_everywhere}.", now.hidden_fix)
    only = [
        *([f"in the channel{'s' * (len(now.channels) > 1)} {', '.join(now.channels)}"] if now.channels else []),
        *([f"in replies with the tag{'s' * (len(now.tags) > 1)} {' or '.join(now.tags)}"] if now.tags else []),
    ]
    but = f" It is used only {' and only '.join(only)} (T10)." if only else ""
    if life.pinned:
        if only:
            return Verdict("hidden", f"It is pinned, but hidden elsewhere.{but}", _unhide(memory, now))
        return Verdict("pinned", "It is pinned: sent whole with every reply in which its list is in play (R15).", None)
    if now.state == "resting":
        since = f" since {now.rested_on}" if now.rested_on else ""
        return Verdict(
            "resting",
            f"It rests in the drawer{since}: {_days(now.unused_days)} without a match, and {now.rest_after_days} are "
            f"the limit. A message that touches it recalls it into that reply (T5, T6).{but}",
            f"edit {memory}",
        )
    if only:
        return Verdict("hidden", f"It is active, but hidden elsewhere.{but}", _unhide(memory, now))
    if not now.on_desk:
        return Verdict(
            "no_room",
            f"It is active, but there is no room for it on the desk: {now.desk_limit} newer ones of its list take all "
            "the room. A message that touches it recalls it into that reply (R12).",
            f"pin {memory}",
        )
    left = now.rest_after_days - now.unused_days
    rests = f"; {_days(left)} more without a match, and it rests" if now.decays and now.unused_days else ""
    return Verdict("on_desk", f"It is not forgotten: it is on the desk, sent with every reply{rests}.", None)


def _unhide(memory: str, now: Present) -> str:
    off = [*(["--no-channels"] if now.channels else []), *(["--no-tags"] if now.tags else [])]
    return shlex.join(["edit", memory, *off])


def _gone(life: Life, key: ListKey, now: Absent) -> Verdict:
    memory = str(life.memory)
    if life.end is None:
        return Verdict("cleared", "It is gone, and nothing that is left says how.", None)
    ev, day = life.end.event, f"{life.end.recorded_at:%Y-%m-%d}"
    who = _WHO[ev.actor]
    turn = f" in turn {ev.turn}" if ev.turn else ""
    back = f"restore {memory}"
    match ev:
        case e.SubjectErased():
            return Verdict("erased", f"Everything of {key.subject} was erased on {day}, for good (D24).", None)
        case e.MemoriesCleared():
            before = [x.recorded.event for x in life.lines if isinstance(x.recorded.event, e.MemoryDeleted)]
            deleted = " after it had been deleted" if before else ""
            return Verdict(
                "cleared",
                f"{who[0].upper()}{who[1:]} cleared the whole list on {day}{deleted}. That is final: nothing brings it "
                "back but saving it anew (R18).",
                None,
            )
        case e.MemoryEvicted():
            done = Verdict(
                "evicted", f"It was forgotten on {day} to make room in a full list{turn}: {ev.reason}.", back
            )
        case e.MemoryMoved():
            return Verdict("moved", f"It moved on {day} to another list ({ev.to_scope}, {ev.to_subject}).", None)
        case e.TurnRolledBack():
            again = ["save", *([] if key.scope == "global" else [key.persona]), life.text, *_where(key)]
            return Verdict(
                "undone",
                f"The turn {ev.turn} in which it was saved was undone on {day}, and its saving with it (R14). Undone "
                "saves are not restored: it can be saved anew.",
                shlex.join(again),
            )
        case _:
            learn = " The persona will not learn it again (D13)." if ev.actor == "person" else ""
            done = Verdict("deleted", f"It was deleted by {who} on {day}{turn}.{learn}", back)
    if now.same_text is not None:
        return Verdict(
            done.status,
            f"{done.sentence} But the list says the same again, in {now.same_text}: nothing is missing.",
            None,
        )
    return done if now.restorable else done._replace(bring_back=None)


def _where(key: ListKey) -> list[str]:
    return [{"server": "--server", "personal": "--user", "global": "--global"}[key.scope], key.subject]


def _days(n: int) -> str:
    return f"{n} day{'s' * (n != 1)}"
