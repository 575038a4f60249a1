"""The verbs that change one list: save, edit, delete, pin, unpin, clear.

All take the same way: load the list with the settings that bear on it, let the domain decide, append, and on a conflict
again. The answer is kept with the request, so that the same request gets it again (D19).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

import orjson

from remembrancer.domain import events as e
from remembrancer.domain import persona_memory as lists
from remembrancer.domain.errors import InvalidInput, ListFull, NotAllowed, NotFound
from remembrancer.domain.eviction import InLine
from remembrancer.domain.identity import (
    ListKey,
    check_key,
    list_key,
    list_stream,
    owner_stream,
    persona_stream,
    server_stream,
)
from remembrancer.domain.instructions import WARNING, reads_like_an_instruction
from remembrancer.domain.memory import Memory
from remembrancer.domain.notices import Notice, refused_notice, saved_notice
from remembrancer.domain.persona_memory import Context, Keep, MemoryList, NewMemory
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.domain.text import check_text, folded
from remembrancer.domain.visibility import Place, may_use_person
from remembrancer.projections.scoring import near_duplicate_of
from remembrancer.services.answers import (
    ChangeAnswer,
    ClearAnswer,
    Forgotten,
    MemoryView,
    NoticeView,
    SaveAnswer,
)
from remembrancer.services.checks import answer_erased
from remembrancer.services.clock import make_id
from remembrancer.services.deps import LIST, PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch, Decision, Request
from remembrancer.services.turns import Turns
from remembrancer.services.vectors import Embedded, Vectors
from remembrancer.services.views import view

_ANY_LENGTH = sys.maxsize
"""The limit is the policy's, and is checked when that is known."""


@dataclass(slots=True)
class ListLoaded:
    """What a decision about a list is made from."""

    list: MemoryList
    version: int
    owner: Person | Server
    persona: Persona
    policy: Policy
    policy_version: int


class _Unchanged(Exception):
    """The command asks for what is already so: there is nothing to write."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


class Remember:
    """Commands on lists. See the module."""

    def __init__(self, deps: Deps, vectors: Vectors, finder: Finder, turns: Turns) -> None:
        self._deps = deps
        self._vectors = vectors
        self._finder = finder
        self._turns = turns

    # -- verbs -----------------------------------------------------------------------------------------------------

    def save(
        self,
        persona: str | None,
        *,
        scope: str,
        subject: str,
        text: str,
        actor: e.Actor,
        turn: str | None,
        until: date | None,
        tags: Sequence[str],
        channels: Sequence[str],
        make_room: UUID | None,
        source: e.Source,
        request_id: str | None,
    ) -> SaveAnswer:
        """Save a memory (R13, T12-T16, D7, D12, D13). See `Remembrancer.save`."""
        key = list_key(persona, scope, subject)
        check_text(text, _ANY_LENGTH)
        new = NewMemory(text, until, names("tag", tags), names("channel", channels), source)
        stream, now = list_stream(self._deps.tenant, key), self._deps.now()
        body = {
            "key": key, "text": text, "actor": actor, "turn": turn, "until": until, "tags": new.tags,
            "channels": new.channels, "make_room": make_room, "source": source.model_dump(),
        }  # fmt: skip
        memory = make_id(stream.bytes[0])
        vector = self._vector(text)
        kept = False

        def decide(at: ListLoaded) -> Decision:
            nonlocal kept
            ctx = self.context(at, key, actor, now.date(), turn, request_id, stream)
            self.may_write(at, key, ctx)
            saved = lists.save(at.list, new, ctx, memory=memory, make_room=make_room)
            events = saved.events
            if vector is not None and not saved.duplicate and not kept:
                self._vectors.keep([(key.owner, text, vector)])
                kept = True
            after = _evolved(at, events, stream, now)
            answer = {
                "status": "duplicate" if saved.duplicate else "saved",
                "memory": _json(view(after.memories[saved.memory], after, key, at.policy, now)),
                "forgotten": _forgotten(saved.forgotten, at, key, now),
                "warnings": self._warnings(text, saved, vector, Home(stream, key)),
                "notices": [
                    _notice(saved_notice(key, _notices(at), text, saved.forgotten and saved.forgotten.memory.text))
                ],
            }
            stamp = [] if saved.duplicate else ["created_at", "updated_at"]
            return Decision([batch_of(stream, events, at, key)], orjson.dumps({"answer": answer, "stamp": stamp}))

        request = self._request(stream, key, "save", request_id, body)
        try:
            answer, done = self._run(request, stream, key, decide, now)
        except ListFull as full:
            self._with_notice(full, key, text)
            raise
        return SaveAnswer(**answer, positions=positions(done))

    def edit(
        self,
        memory: UUID,
        *,
        text: str | Keep,
        until: date | Keep | None,
        tags: Sequence[str] | Keep,
        channels: Sequence[str] | Keep,
        actor: e.Actor,
        turn: str | None,
        request_id: str | None,
    ) -> ChangeAnswer:
        """Edit a memory (D11, D12, D28, T13). See `Remembrancer.edit`."""
        if not isinstance(text, Keep):
            check_text(text, _ANY_LENGTH)
        home = self._finder.home(memory)
        changes: dict[str, Any] = {
            "text": text,
            "until": until,
            "tags": tags if isinstance(tags, Keep) else names("tag", tags),
            "channels": channels if isinstance(channels, Keep) else names("channel", channels),
        }
        body = {"memory": memory, "actor": actor, "turn": turn} | {
            k: v for k, v in changes.items() if not isinstance(v, Keep)
        }
        now = self._deps.now()
        vector = self._vector(text)
        warnings = [WARNING] if isinstance(text, str) and reads_like_an_instruction(text) else []

        kept = False

        def events(at: ListLoaded, ctx: Context) -> tuple[e.Event, ...]:
            nonlocal kept
            decided = lists.edit(at.list, memory, ctx, **changes)
            if vector is not None and isinstance(text, str):
                self._vectors.keep([(home.key.owner, text, vector)])
                kept = True
            return decided

        try:
            return self._change("edit", home, memory, events, actor, turn, request_id, body, now, warnings=warnings)
        except NotFound:  # deleted or erased meanwhile
            if kept and isinstance(text, str):
                self._vectors.forget(home.key.owner, text)
            raise

    def delete(self, memory: UUID, *, actor: e.Actor, turn: str | None, request_id: str | None) -> ChangeAnswer:
        """Delete a memory (R15, D13). See `Remembrancer.delete`."""
        home = self._finder.home(memory)
        body = {"memory": memory, "actor": actor, "turn": turn}
        return self._change(
            "delete", home, memory, lambda at, ctx: lists.delete(at.list, memory, ctx), actor, turn, request_id, body,
            self._deps.now(),
        )  # fmt: skip

    def pin(self, memory: UUID, *, actor: e.Actor, turn: str | None, request_id: str | None) -> ChangeAnswer:
        """Pin a memory (R9, R15, D9). See `Remembrancer.pin`."""
        home = self._finder.home(memory)
        body = {"memory": memory, "actor": actor, "turn": turn}
        return self._change(
            "pin", home, memory, lambda at, ctx: lists.pin(at.list, memory, ctx), actor, turn, request_id, body,
            self._deps.now(),
        )  # fmt: skip

    def unpin(
        self, memory: UUID, *, make_room: UUID | None, actor: e.Actor, turn: str | None, request_id: str | None
    ) -> ChangeAnswer:
        """Unpin a memory (D3, D7). See `Remembrancer.unpin`."""
        home = self._finder.home(memory)
        body = {"memory": memory, "actor": actor, "turn": turn, "make_room": make_room}
        forgotten: list[InLine] = []

        def events(at: ListLoaded, ctx: Context) -> tuple[e.Event, ...]:
            decided, first = lists.unpin(at.list, memory, ctx, make_room=make_room)
            forgotten[:] = [] if first is None else [first]
            return decided

        return self._change(
            "unpin", home, memory, events, actor, turn, request_id, body, self._deps.now(), forgotten=forgotten
        )

    def clear(
        self, persona: str | None, *, scope: str, subject: str, pinned: bool, actor: e.Actor, request_id: str | None
    ) -> ClearAnswer:
        """Clear a list (R18). See `Remembrancer.clear`."""
        key = list_key(persona, scope, subject)
        stream, now = list_stream(self._deps.tenant, key), self._deps.now()

        def decide(at: ListLoaded) -> Decision:
            ctx = self.context(at, key, actor, now.date(), None, request_id, stream)
            events = lists.clear(at.list, ctx, pinned=pinned)
            left = 0 if pinned else at.list.pinned
            cleared = at.list.pinned if pinned else at.list.unpinned
            lifted = e.TombstonesLifted(id=ctx.new_id(), tenant=self._deps.tenant, list=stream, request_id=request_id)
            answer = {"cleared": cleared, "pinned_left": left, "message": _cleared_message(cleared, left, pinned)}
            return Decision(
                [
                    batch_of(stream, events, at, key),
                    Batch(owner_stream(self._deps.tenant, key), [lifted], None, (key.owner,)),
                ],
                orjson.dumps({"answer": answer, "stamp": []}),
            )

        request = self._request(stream, key, "clear", request_id, {"key": key, "pinned": pinned, "actor": actor})
        answer, done = self._run(request, stream, key, decide, now)
        return ClearAnswer(**answer, positions=positions(done))

    # -- the common way --------------------------------------------------------------------------------------------

    def _change(
        self,
        verb: str,
        home: Home,
        memory: UUID,
        events: Callable[[ListLoaded, Context], tuple[e.Event, ...]],
        actor: e.Actor,
        turn: str | None,
        request_id: str | None,
        body: Mapping[str, Any],
        now: datetime,
        *,
        warnings: Sequence[str] = (),
        forgotten: Sequence[InLine] = (),
    ) -> ChangeAnswer:
        """A verb on one memory of a list."""
        key, stream = home.key, home.stream

        def decide(at: ListLoaded) -> Decision:
            ctx = self.context(at, key, actor, now.date(), turn, request_id, stream)
            self.may_write(at, key, ctx)
            decided = events(at, ctx)
            after = _evolved(at, decided, stream, now)
            shown = after.memories.get(memory) or at.list.memories[memory]
            state = after if memory in after.memories else at.list
            answer = {
                "memory": _json(view(shown, state, key, at.policy, now)),
                "forgotten": [f for first in forgotten for f in _forgotten(first, at, key, now)],
                "warnings": list(warnings),
            }
            changed = memory in after.memories and shown.text != at.list.memories[memory].text
            kept = orjson.dumps({"answer": answer, "stamp": ["updated_at"] if changed else []})
            if not decided and request_id is None:
                raise _Unchanged(kept)
            batches = [batch_of(stream, decided, at, key)] if decided else []
            if (tombstone := self._tombstone(decided, at, key, stream, memory)) is not None:
                batches.append(Batch(owner_stream(self._deps.tenant, key), [tombstone], None, (key.owner,)))
            return Decision(batches, kept)

        request = self._request(stream, key, verb, request_id, body)
        answer, done = self._run(request, stream, key, decide, now)
        return ChangeAnswer(**answer, positions=positions(done))

    def _run(
        self, request: Request, stream: UUID, key: ListKey, decide: Callable[[ListLoaded], Decision], now: datetime
    ) -> tuple[dict[str, Any], Appended | None]:
        try:
            done = self._deps.store.transact(request, lambda: self.load(stream, key), decide, now=now)
        except _Unchanged as unchanged:
            return orjson.loads(unchanged.answer)["answer"], None
        if done.answer is None:
            raise answer_erased()
        kept = orjson.loads(done.answer)
        for field in kept["stamp"]:
            kept["answer"]["memory"][field] = done.recorded_at[_own(done, stream)].isoformat()
        return kept["answer"], done

    def load(self, stream: UUID, key: ListKey) -> ListLoaded:
        """The list, its owner's settings, the persona and the policy, as of one moment."""
        tenant = self._deps.tenant
        wanted: list[tuple[UUID, Any]] = [
            (stream, LIST),
            (owner_stream(self._deps.tenant, key), SERVER if key.scope == "server" else PERSON),
            (self._deps.tenant_stream, TENANT),
        ]
        if key.scope != "global":
            wanted.append((persona_stream(tenant, key.persona), PERSONA))
        loaded = self._deps.store.load_many(wanted)
        policy, version = self._deps.policy(loaded[2])
        persona = loaded[3].state if key.scope != "global" else Persona()
        return ListLoaded(loaded[0].state, loaded[0].version, loaded[1].state, persona, policy, version)

    def _request(
        self, stream: UUID, key: ListKey, verb: str, request_id: str | None, body: Mapping[str, Any]
    ) -> Request:
        return request_for(self._deps.tenant, stream.bytes[0], verb, request_id, body, (key.owner,))

    def context(
        self,
        at: ListLoaded,
        key: ListKey,
        actor: e.Actor,
        day: date,
        turn: str | None,
        request_id: str | None,
        stream: UUID,
    ) -> Context:
        """What a decision needs to know besides the list."""
        full = at.list.unpinned >= at.policy.list_capacity
        return Context(
            tenant=self._deps.tenant,
            key=key,
            actor=actor,
            day=day,
            policy=at.policy,
            new_id=lambda: make_id(stream.bytes[0]),
            policy_version=at.policy_version,
            turn=turn,
            request_id=request_id,
            search_ok=self._turns.search_ok(turn, key) if full and turn is not None and actor == "persona" else None,
            without_vector=self._finder.without_vector(stream) if full else (),
            tombstones=at.owner.tombstones.sentences,
        )

    def may_write(self, at: ListLoaded, key: ListKey, ctx: Context) -> None:
        """May this actor write into this list at all (R13, R17, T10)? People and imports may, but for what a deleted
        persona knew of a person: that is everyone's now (R11)."""
        if at.persona.deleted and key.scope == "personal" and ctx.actor == "person":
            raise NotAllowed(
                f"{key.persona} is deleted, and nobody would read what it knows of a person.", rule="R11",
                hint="Save it as a global memory, or bring the persona back with `persona set`.",
            )  # fmt: skip
        if not ctx.by_model:
            return
        learns = at.persona.learns and not at.persona.deleted and key.persona not in at.owner.not_learning
        if not learns:
            raise NotAllowed(f"{key.persona} does not learn from chat here.", rule="R17", hint="Switch learning on.")
        played = self._turns.find(ctx.turn) if ctx.turn is not None else None
        if played is not None and not played.remembers:
            raise NotAllowed("This chat has no memory.", rule="R17", hint="A person can save it.")
        if played is not None and not played.users:
            raise NotAllowed("Nobody is known to take part in this turn.", rule="R17", hint="Name users in the reply.")
        if played is not None and key.scope != "global" and played.persona not in (None, key.persona):
            raise NotAllowed(
                f"{played.persona} speaks in this turn, and this is what {key.persona} remembers.", rule="R15",
                hint="A persona writes into its own lists alone; a person can change any.",
            )  # fmt: skip
        if not isinstance(at.owner, Person):
            return
        users: Sequence[str] = [key.subject] if played is None else played.users
        if key.subject not in users:
            raise NotAllowed(
                f"{key.subject} does not take part in this turn.", rule="R13", hint="Save it for somebody who does."
            )
        place = Place(None, None, ()) if played is None else Place(played.server, played.channel, ())
        server = Server() if place.server is None else self._server(place.server)
        if not may_use_person(key.persona, key.subject, at.owner, place, users, server):
            raise NotAllowed(
                f"The memories of {key.subject} are neither read nor written here.",
                rule="T10",
                hint="Their privacy setting, the server's blocklist or its switch for personal memories says so.",
            )

    def _server(self, server: str) -> Server:
        loaded: Server = self._deps.store.load(server_stream(self._deps.tenant, server), SERVER).state
        return loaded

    def _tombstone(
        self, decided: Sequence[e.Event], at: ListLoaded, key: ListKey, stream: UUID, memory: UUID
    ) -> e.TombstonePlaced | None:
        """What a person deletes or edits away is not learned again (D13)."""
        before = at.list.memories.get(memory)
        for ev in decided:
            gone = isinstance(ev, e.MemoryDeleted) or (
                isinstance(ev, e.MemoryEdited) and before is not None and not _same(ev.text, before)
            )
            if ev.actor == "person" and gone and before is not None:
                return e.TombstonePlaced(
                    id=make_id(stream.bytes[0]),
                    tenant=self._deps.tenant,
                    request_id=ev.request_id,
                    list=stream,
                    memory=memory,
                    sentence=before.text,
                )
        return None

    def _vector(self, text: object) -> Embedded | None:
        return self._vectors.of_passage(text) if isinstance(text, str) and text.strip() else None

    def _warnings(self, text: str, saved: lists.Saved, embedded: Embedded | None, home: Home) -> list[str]:
        """What the save did, but should be known: instructions (T16), near-duplicates (D12), no vector (D22)."""
        warnings = [WARNING] if reads_like_an_instruction(text) else []
        if saved.duplicate or self._deps.embedder is None:
            return warnings
        if embedded is None:
            warnings.append("The embedding model did not answer: the memory is saved and will be searchable later.")
            return warnings
        near = self._finder.nearest(home, embedded.vector, embedded.model, but=saved.memory)
        bound = near_duplicate_of(embedded.model)
        if near is not None and bound is not None and near.similarity >= bound:
            warnings.append(f"It says nearly the same as {near.id}: \u201c{near.text}\u201d.")
        return warnings

    def _with_notice(self, full: ListFull, key: ListKey, text: str) -> None:
        """A refused save is told to the people whom the setting names (C12)."""
        owner = self.load(list_stream(self._deps.tenant, key), key).owner
        visibility = owner.notices if isinstance(owner, Server) else "everyone"
        notice = refused_notice(key, visibility, text, full.message)
        full.details["notices"] = [_notice(notice)]


def batch_of(stream: UUID, events: Sequence[e.Event], at: ListLoaded, key: ListKey) -> Batch:
    """What is written to a list if it is still as it was loaded."""
    return Batch(stream, events, at.version, (key.owner,))


def _same(text: str, m: Memory) -> bool:
    return folded(text) == m.folded


def names(what: str, given: object, *, in_order: bool = False) -> tuple[str, ...]:
    """Tags, channels or users: each a name, each once; sorted, or in the order given.

    Raises:
        InvalidInput: not a list of names.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | set | frozenset):
        raise InvalidInput(f"{what}s must be a list of texts, not {type(given).__name__}.", hint='Pass ["…"].')
    checked = dict.fromkeys(check_key(what, name) for name in given)
    return tuple(checked) if in_order else tuple(sorted(checked))


def _evolved(at: ListLoaded, events: Sequence[e.Event], stream: UUID, now: datetime) -> MemoryList:
    return lists.with_events(at.list, events, stream, at.version, now)


def _json(v: MemoryView) -> dict[str, Any]:
    return v.model_dump(mode="json")


def _forgotten(first: InLine | None, at: ListLoaded, key: ListKey, now: datetime) -> list[dict[str, Any]]:
    if first is None:
        return []
    shown = Forgotten(memory=view(first.memory, at.list, key, at.policy, now), reason=first.reason)
    return [shown.model_dump(mode="json")]


def _notices(at: ListLoaded) -> Any:
    return at.owner.notices if isinstance(at.owner, Server) else "everyone"


def _notice(notice: Notice) -> dict[str, Any]:
    return NoticeView(**notice._asdict()).model_dump(mode="json")


def _own(done: Appended, stream: UUID) -> int:
    """The place of the list's last event among those appended: the list's batch stands first."""
    last = 0
    for n, shard in enumerate(done.shards):
        if shard == stream.bytes[0]:
            last = n
    return last


def _cleared_message(cleared: int, left: int, pinned: bool) -> str:
    if pinned:
        return f"{cleared} pinned memories are gone for good."
    if left:
        return (
            f"{cleared} memories are gone for good. {left} pinned ones are still there: moments that the person marked "
            "and protected from the AI. To clear them too, clear again and say pinned."
        )
    return f"{cleared} memories are gone for good."
