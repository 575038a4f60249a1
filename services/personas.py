"""Deleting a persona: what it knew of people becomes theirs everywhere, and its key lives on (R11, D25)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotAllowed
from remembrancer.domain.identity import EVERY_PERSONA, ListKey, Subject, check_key, list_stream, persona_stream
from remembrancer.domain.moving import Moved, to_global
from remembrancer.domain.persona_memory import Context
from remembrancer.domain.settings import Persona
from remembrancer.services.answers import PersonaDeleted
from remembrancer.services.clock import make_id
from remembrancer.services.deps import LIST, PERSONA, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.requests import request_for
from remembrancer.services.store import Batch, Decision, Loaded

Progress = Callable[[int, int | None], None]


class _Empty(Exception):
    """There is nothing to move."""


class Personas:
    """Deletes personas. See the module."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder

    def delete(self, persona: str, *, request_id: str | None, progress: Progress | None) -> PersonaDeleted:
        """Delete a persona. See `Remembrancer.delete_persona`.

        The lists are moved one after the other, each whole; the persona is deleted last. So a process that is killed on
        the way leaves a persona that still talks and misses nothing, and the same command goes on.
        """
        check_key("persona", persona)
        if not self._finder.knows(persona):
            raise self._finder.no_such_persona(persona)
        stream, subject = persona_stream(self._deps.tenant, persona), Subject("persona", persona)
        request = request_for(
            self._deps.tenant, stream.bytes[0], "delete_persona", request_id, {"persona": persona}, (subject,)
        )
        if request_id is not None and (before := self._deps.store.find(request)) is not None and before.answer:
            return PersonaDeleted.model_validate_json(before.answer)
        lists = self._personal(persona)
        moved = 0
        for n, home in enumerate(lists, start=1):
            moved += self._move(home)
            if progress is not None:
                progress(n, len(lists))
        answer = PersonaDeleted(persona=persona, moved=moved, people=len(lists))

        def decide(at: Loaded[Persona]) -> Decision:
            if at.state.deleted:
                raise NotAllowed(f"{persona} is deleted already.", rule="D25", hint="`persona set` brings it back.")
            gone = e.PersonaDeleted(
                id=make_id(stream.bytes[0]), tenant=self._deps.tenant, request_id=request_id, persona=persona
            )
            return Decision(
                [Batch(stream, [gone], at.version, (subject,))], orjson.dumps(answer.model_dump(mode="json"))
            )

        done = self._deps.store.transact(
            request, lambda: self._deps.store.load(stream, PERSONA), decide, now=self._deps.now()
        )
        for home in self._personal(persona):  # what was saved while the lists were moved
            self._move(home)
        return PersonaDeleted.model_validate_json(done.answer) if done.answer else answer

    def _personal(self, persona: str) -> list[Home]:
        return [home for home in self._finder.lists(persona) if home.key.scope == "personal"]

    def _move(self, home: Home) -> int:
        """Move one list; returns how many memories it held."""
        tenant, user, now = self._deps.tenant, home.key.subject, self._deps.now()
        everywhere = ListKey(EVERY_PERSONA, "global", user)
        there = list_stream(tenant, everywhere)
        request = request_for(tenant, home.stream.bytes[0], "move_list", None, {})
        count = 0

        def load() -> list[Loaded[Any]]:
            return self._deps.store.load_many([(home.stream, LIST), (there, LIST), (self._deps.tenant_stream, TENANT)])

        def decide(at: list[Loaded[Any]]) -> Decision:
            nonlocal count
            mine, theirs, tenant_settings = at
            count = len(mine.state.memories)
            if not count:
                raise _Empty
            policy, version = self._deps.policy(tenant_settings)

            def context(key: ListKey, stream: UUID) -> Context:
                return Context(
                    tenant, key, "person", now.date(), policy, lambda: make_id(stream.bytes[0]), policy_version=version
                )

            moved: Moved = to_global(
                mine.state, theirs.state, context(home.key, home.stream), context(everywhere, there)
            )
            owners = (Subject("user", user),)
            batches = [Batch(home.stream, moved.out, mine.version, owners)]
            if moved.into:
                batches.append(Batch(there, moved.into, theirs.version, owners))
            return Decision(batches)

        try:
            self._deps.store.transact(request, load, decide, now=now)
        except _Empty:
            return 0
        return count
