"""The verb `diff`: what changed from one past moment to another (U1)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey
from remembrancer.domain.story import tell
from remembrancer.services.answers import MemoryView
from remembrancer.services.answers_moment import DiffAnswer, MemoryChange, MomentAnswer, SettingChange
from remembrancer.services.at import At, Seen
from remembrancer.services.when import When

COMPARED = ("text", "state", "on_desk", "unused_days", "pinned", "protected", "until", "tags", "channels",
            "last_matched_at", "updated_at")  # fmt: skip
NOT_IN_PLAY = "Its list is not in play there."


class Diff:
    """Compares. See the module."""

    def __init__(self, at: At) -> None:
        self._at = at

    def diff(self, a: When, b: When) -> DiffAnswer:
        """From one moment to another. See `Remembrancer.diff`."""
        if a.time is not None and a.persona is None:
            there = self._at.look(b)
            here = self._at.look(a.like(there.answer))
        else:
            here = self._at.look(a)
            there = self._at.look(b.like(here.answer))
        added: list[MemoryChange] = []
        removed: list[MemoryChange] = []
        changed: list[MemoryChange] = []
        stories: dict[ListKey, _Story] = {}
        same = 0
        before, after = _views(here.answer), _views(there.answer)
        for k in dict.fromkeys([*before, *after]):
            x, y = before.get(k), after.get(k)
            one = x or y
            assert one is not None
            fields = [] if x is None or y is None else [f for f in COMPARED if getattr(x, f) != getattr(y, f)]
            if x is not None and y is not None and not fields:
                same += 1
                continue
            key = ListKey(one.persona, one.scope, one.subject)
            if key not in stories:
                stories[key] = _Story(key, here, there)
            why = stories[key].why(k, removed=y is None)
            change = MemoryChange(memory=k, before=x, after=y, fields=fields, why=why)
            (added if x is None else removed if y is None else changed).append(change)
        return DiffAnswer(
            before=here.answer,
            after=there.answer,
            added=added,
            removed=removed,
            changed=changed,
            unchanged=same,
            settings=list(_settings(here.answer, there.answer)),
            prefix=_text(here.answer.prefix, there.answer.prefix),
            late=_text(here.answer.late, there.answer.late),
            exact=here.answer.exact and there.answer.exact,
        )


def _views(answer: MomentAnswer) -> dict[UUID, MemoryView]:
    return {m.id: m for one in answer.lists for m in one.memories}


class _Story:
    """What happened to each memory of a list in between, to answer for all of them."""

    def __init__(self, key: ListKey, here: Seen, there: Seen) -> None:
        self._last: dict[UUID, tuple[str, bool]] = {}
        self._swept: str | None = None
        self._not_in_play = False
        was, now = here.events.get(key), there.events.get(key)
        if was is not None and now is not None:
            self._read(now[len(was) :])
            return
        events, elsewhere = (now or (), here) if was is None else (was, there)
        if events[0].recorded_at < elsewhere.answer.at:
            self._not_in_play = True
        elif was is None:  # it had not begun; the other way round, `there` is the earlier one
            self._read(events)

    def _read(self, events: Sequence[e.Recorded]) -> None:
        for r in events:
            for told in tell(r.event):
                if told.memory is not None:
                    self._last[told.memory] = told.sentence, told.after is None
                elif isinstance(r.event, e.MemoriesCleared | e.SubjectErased):
                    self._swept = told.sentence

    def why(self, memory: UUID, *, removed: bool) -> str | None:
        """What happened to a memory last, in a sentence of history."""
        if self._not_in_play:
            return NOT_IN_PLAY
        said, gone = self._last.get(memory, (None, False))
        return self._swept if removed and not gone and self._swept is not None else said


def _settings(a: MomentAnswer, b: MomentAnswer) -> Iterator[SettingChange]:
    """Numbers of the policy, and settings of whoever is named on both sides."""
    before, after = _set(a), _set(b)
    for of in before:
        if of in after:
            yield from _fields(of, before[of], after[of])


def _set(answer: MomentAnswer) -> dict[str, BaseModel]:
    s = answer.settings
    found: dict[str, BaseModel] = {"policy": answer.policy, f"persona {answer.persona}": s.persona}
    if s.server is not None:
        found[f"server {s.server.server}"] = s.server
    return found | {f"user {one.user}": one for one in s.people}


def _fields(of: str, a: BaseModel, b: BaseModel) -> Iterator[SettingChange]:
    before: Mapping[str, Any] = a.model_dump(mode="json")
    after: Mapping[str, Any] = b.model_dump(mode="json")
    for field, was in before.items():
        if was != after[field]:
            yield SettingChange(of=of, field=field, before=was, after=after[field])


def _text(a: Any, b: Any) -> str:
    """A unified diff of two blocks, without its file names; empty where one of the two is missing."""
    if a is None or b is None:
        return ""
    lines = list(difflib.unified_diff(a.text.splitlines(), b.text.splitlines(), lineterm="", n=2))
    return "\n".join(lines[2:])
