"""What an event says in plain words (U1, C30): one line for each memory that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.text import ERASED


class Told(NamedTuple):
    """One line of a story. `before` and `after` are texts; LAST stands for the memory's text as it was,
    WAS for its text before the event's turn."""

    memory: UUID | None
    sentence: str
    before: str | None = None
    after: str | None = None
    data: Mapping[str, Any] = MappingProxyType({})


LAST = "\x00last"
WAS = "\x00was"

_WHO = {"persona": "The persona", "person": "A person", "deep": "The background pass", "import": "An import",
        "system": "Remembrancer"}  # fmt: skip


def tell(ev: e.Event) -> Iterator[Told]:
    """The lines of one event, in order. Nothing for events that are of no interest to a reader."""
    who = _WHO[ev.actor]
    match ev:
        case e.MemorySaved():
            how = " It is pinned." if ev.pinned else ""
            until = f" It is true until {ev.until}." if ev.until else ""
            yield Told(ev.memory, f"{who} saved it.{how}{until}", None, ev.text, {"protected": ev.protected})
        case e.MemoryEdited():
            same = ev.text == ev.before and ev.text != ERASED  # which never counts as equal text
            what = "saved it again with the same text" if same else "edited it"
            protects = " It is protected from now on." if ev.protects else ""
            yield Told(ev.memory, f"{who} {what}.{protects}", ev.before, ev.text)
        case e.MemoryDeleted():
            yield Told(ev.memory, f"{who} deleted it.", LAST, None)
        case e.MemoryAffirmed():
            yield Told(ev.memory, f"{who} said the same again, which counts as use.", LAST, LAST)
        case e.MemoriesMatched():
            for m in ev.matches:
                how = "was added to that reply" if m.recalled else "was on the desk"
                yield Told(
                    m.memory,
                    f"A message brought it to mind as number {m.rank} with a score of {m.score:.3f} "
                    f"(similarity {m.similarity:.3f}, words {m.words:.3f}); it {how}.",
                    LAST,
                    LAST,
                    {"score": m.score, "similarity": m.similarity, "words": m.words, "rank": m.rank,
                     "recalled": m.recalled, "day": ev.day.isoformat()},
                )  # fmt: skip
        case e.ListSearched():
            out = "" if not ev.hidden and ev.seen is None else " Some of it was hidden."
            yield Told(
                None,
                f"The list was searched on {ev.day}; what is not used gains a day.{out}",
                data={"day": str(ev.day)},
            )
        case e.MemoryPinned():
            yield Told(ev.memory, f"{who} pinned it.", LAST, LAST)
        case e.MemoryUnpinned():
            yield Told(ev.memory, f"{who} unpinned it; its counter starts at 0.", LAST, LAST)
        case e.MemoryEvicted():
            yield Told(
                ev.memory,
                f"It was forgotten to make room for {ev.for_memory}: {ev.reason}.",
                LAST,
                None,
                {"for": str(ev.for_memory), "reason": ev.reason},
            )
        case e.MemoryRestored():
            yield Told(ev.memory, f"{who} restored it; its counter starts at 0 and it is protected.", None, LAST)
        case e.TurnRolledBack():
            for k in ev.removed:
                yield Told(k, f"The turn {ev.turn} was undone, and with it its saving.", LAST, None)
            for k in ev.restored:
                yield Told(k, f"The turn {ev.turn} was undone, so it is back.", None, LAST)
            for k in ev.reverted:
                yield Told(k, f"The turn {ev.turn} was undone, and it is worded as before.", LAST, WAS)
            for k in ev.unmatched:
                yield Told(k, f"The turn {ev.turn} was undone, and with it its use in that turn.", LAST, LAST)
            for k, why in ev.kept:
                yield Told(k, f"The turn {ev.turn} was undone, but this stays as it is: {why}.", LAST, LAST)
        case e.MemoriesCleared():
            which = "pinned" if ev.pinned else "unpinned"
            yield Told(
                None, f"{who} cleared all {ev.count} {which} memories of the list for good.", data={"count": ev.count}
            )
        case e.MemoryMoved():
            yield Told(ev.memory, f"It moved to another list ({ev.to_scope}, {ev.to_subject}).", LAST, None)
        case e.UseRecounted():
            for k, n in ev.unused_days.items():
                yield Told(
                    k,
                    f"Its unused days were counted anew{_under(ev.numbers)}: {n}.",
                    LAST,
                    LAST,
                    {"unused_days": n, "numbers": dict(ev.numbers)},
                )
        case e.SubjectErased():
            yield Told(None, "Everything of this subject was erased.")
        case e.ReplySearched():
            yield Told(None, _reply(ev), data=played(ev))
        case e.DocumentAdded():
            where = f" It is read in {len(ev.channels)} channels only." if ev.channels else ""
            yield Told(ev.document, f"{who} added a document of {ev.passages} passages.{where}", None, ev.name)
        case e.DocumentRemoved():
            yield Told(ev.document, f"{who} removed the document.", LAST, None)
        case e.DocumentsSearched():
            sent = len(ev.passages)
            yield Told(None, f"{sent} passage{'s' * (sent != 1)} of documents went with the reply.", data=excerpted(ev))
        case e.PersonaDefined():
            switch = "" if ev.learns else " It does not learn from chat."
            yield Told(None, f"{who} set the persona's standing instructions.{switch}", None, ev.instructions)
        case e.PersonaDeleted():
            yield Told(None, f"{who} deleted the persona.")


def _under(numbers: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name} {value}" for name, value in numbers.items())
    return f" under {said}" if said else ""


def _reply(ev: e.ReplySearched) -> str:
    matched = sum(c.matched for c in ev.candidates)
    recalled = sum(c.recalled for c in ev.candidates)
    match ev.search:
        case "ok":
            found = f"the search matched {matched} of its {len(ev.candidates)} best candidates and recalled {recalled}"
        case "unavailable":
            found = f"the search was not available: {ev.reason}"
        case _:
            found = f"nothing was searched: {ev.reason}"
    return f"A reply to {', '.join(ev.users) or 'nobody'} with {len(ev.prefix)} memories on the desk; {found}."


def played(ev: e.ReplySearched) -> dict[str, Any]:
    """What a later command of the same turn asks for: who took part, where, and how the search went."""
    return {
        "search": ev.search, "attempt": ev.attempt, "chat": ev.chat, "users": list(ev.users), "server": ev.server,
        "channel": ev.channel, "memory": ev.memory, "persona": ev.persona,
    }  # fmt: skip


def excerpted(ev: e.DocumentsSearched) -> dict[str, Any]:
    """Which passages went with a reply, and their numbers."""
    return {"passages": [found.model_dump(mode="json") for found in ev.passages]}
