"""The verbs that only read: get, list, history, and a search over all that ever was a memory."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import Connection

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.domain.events import EVENTS
from remembrancer.domain.identity import SHARDS, check_key, list_key, list_stream
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import (
    ArchiveHit,
    HistoryAnswer,
    HistoryEntry,
    ListAnswer,
    ListView,
    MemoryView,
    Position,
)
from remembrancer.services.checks import checked_moment, checked_number, checked_text, checked_turn, shown
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.views import in_reading_order, view
from remembrancer.services.waiting import Waiting

_SQL = load_queries("remembrancer.services", "finder")
_COLUMNS = ("at", "shard", "position", "n", "actor", "turn", "event", "sentence", "before", "after", "persona", "scope",
            "subject", "memory", "data")  # fmt: skip


_EVENT_NAMES = {name.casefold(): name for name in EVENTS}
_KINDS = f"There are {', '.join(EVENTS)}."


class Reading:
    """Reads. A list is read from its events, so that it shows every acknowledged write."""

    def __init__(self, deps: Deps, finder: Finder, waiting: Waiting) -> None:
        self._deps = deps
        self._finder = finder
        self._waiting = waiting

    def get(self, memory: UUID) -> MemoryView:
        """One memory. See `Remembrancer.get`."""
        home = self._finder.home(memory)
        states, policy = self._states([home])
        m = states[0].memories.get(memory)
        if m is None:
            raise NotFound(
                f"The memory {memory} is no longer there.",
                rule="D31",
                hint="`history --memory` tells what became of it.",
            )
        return view(m, states[0], home.key, policy, self._deps.now())

    def list(self, persona: str | None, *, scope: str | None, subject: str | None, state: str | None) -> ListAnswer:
        """The lists of a persona. See `Remembrancer.list`."""
        if state not in (None, "active", "resting", "expired"):
            raise InvalidInput(f"{shown(state)} is not a state.", hint="Use active, resting or expired.")
        if scope is not None and subject is not None:
            key = list_key(persona, scope, subject)
            homes: Sequence[Home] = [Home(list_stream(self._deps.tenant, key), key)]
        else:
            homes = self._homes(persona, scope, subject)
        states, policy = self._states(homes)
        now = self._deps.now()
        lists = []
        for home, s in zip(homes, states, strict=True):
            views = in_reading_order([view(m, s, home.key, policy, now) for m in s.memories.values()])
            lists.append(
                ListView(
                    persona=home.key.persona,
                    scope=home.key.scope,
                    subject=home.key.subject,
                    count=s.unpinned,
                    capacity=policy.list_capacity,
                    pinned=s.pinned,
                    pin_capacity=policy.pin_capacity,
                    memories=[v for v in views if state is None or v.state == state],
                )
            )
        return ListAnswer(lists=lists)

    def _homes(self, persona: str | None, scope: str | None, subject: str | None) -> Sequence[Home]:
        if persona is not None:
            check_key("persona", persona)
        if subject is not None:
            check_key("subject", subject)
        if scope is not None and scope not in ("server", "personal", "global"):
            raise InvalidInput(f"{shown(scope)} is not a scope.", hint="Use server, personal or global.")
        homes = self._finder.lists(persona)
        if persona is not None and not homes:
            self.require_persona(persona)
        return [h for h in homes if scope in (None, h.key.scope) and subject in (None, h.key.subject)]

    def require_persona(self, persona: str) -> None:
        """Nothing, if there is or ever was such a persona.

        Raises:
            NotFound: there never was; near ones are named (D31).
        """
        if not self._finder.knows(check_key("persona", persona)):
            raise self._finder.no_such_persona(persona)

    def _states(self, homes: Sequence[Home]) -> tuple[Sequence[MemoryList], Policy]:
        loaded = self._deps.store.load_many([(self._deps.tenant_stream, TENANT), *((h.stream, LIST) for h in homes)])
        policy, _ = self._deps.policy(loaded[0])
        return [one.state for one in loaded[1:]], policy

    def history(
        self,
        *,
        persona: str | None,
        scope: str | None,
        subject: str | None,
        memory: UUID | None,
        document: UUID | None,
        turn: str | None,
        since: datetime | None,
        until: datetime | None,
        kinds: Sequence[str] | None,
        limit: int,
        after: str | None,
    ) -> HistoryAnswer:
        """What happened. See `Remembrancer.history`."""
        checked_number("limit", limit, 1, 1_000)
        since, until = checked_moment("since", since), checked_moment("until", until)
        at, shard, position, n = _cursor(after)
        if persona is not None:
            check_key("persona", persona)
        turn = checked_turn(turn)
        kinds = _checked_kinds(kinds)
        if persona is None and memory is None and document is None and turn is None:
            raise InvalidInput("History of what?", hint="Name a persona, a memory, a document or a turn.")
        if memory is not None and document is not None:
            raise InvalidInput("History of what?", hint="Name a memory or a document.")
        if subject is not None and scope is None:
            check_key("subject", subject)
            raise InvalidInput("A subject alone names no list.", hint="Name its scope: server, personal or global.")
        key = None if scope is None else list_key(persona, scope, subject or "")
        if memory is not None:
            self._finder.home(memory)
        if persona is not None and key is None:
            self.require_persona(persona)
        self._waiting.settle()
        params = {
            "tenant": self._deps.tenant, "persona": persona if key is None else key.persona,
            "scope": key and key.scope, "subject": key and key.subject, "memory": memory or document, "turn": turn,
            "since": since, "until": until, "kinds": kinds, "after_at": at, "after_shard": shard,
            "after_position": position,
            "after_n": n, "limit": limit + 1,
        }  # fmt: skip

        def work(conn: Connection[Any]) -> list[dict[str, Any]]:
            return [dict(zip(_COLUMNS, row, strict=True)) for row in conn.execute(_SQL["history"], params)]

        rows = self._deps.store.database.run(work)
        if turn is not None and not rows and not self._finder.knows_turn(turn):
            raise self._finder.no_such_turn(turn)
        entries = [
            HistoryEntry(
                position=Position(shard=row["shard"], position=row["position"]),
                **{k: v for k, v in row.items() if k not in ("shard", "position", "n")},
            )
            for row in rows[:limit]
        ]
        return HistoryAnswer(entries=entries, next=_next(rows[limit - 1]) if len(rows) > limit else None)

    def find(self, q: str, *, limit: int) -> Sequence[ArchiveHit]:
        """Texts that are or were memories, nearest first. See `Remembrancer.find`."""
        if not checked_text("search text", q).strip():
            raise InvalidInput("Search for what?", hint="Give a text.")
        checked_number("limit", limit, 1, 100)
        embedder = self._deps.embedder
        if embedder is None:
            raise InvalidInput("No embedding model is configured.", rule="T11", hint="Set REMEMBRANCER_EMBEDDER.")
        self._waiting.settle()
        while True:
            vector = embedder.embed_query(q, timeout=self._deps.settings.embed_timeout)
            hits = self._finder.archive(vector, limit, embedder.model)
            serving = self._deps.models.look_again()
            if serving is None or serving.model == embedder.model:
                return hits
            embedder = serving  # a switch meanwhile (D23)


def _checked_kinds(kinds: object) -> list[str] | None:
    """Names of kinds of events, in whatever case; None is all of them.

    Raises:
        InvalidInput: no such kind; the hint names them.
    """
    if kinds is None:
        return None
    if isinstance(kinds, str | bytes) or not isinstance(kinds, Sequence):
        raise InvalidInput(f"kinds must be a list of names, not {shown(kinds)}.", hint=_KINDS)
    wanted = []
    for kind in kinds:
        if not isinstance(kind, str) or (name := _EVENT_NAMES.get(kind.casefold())) is None:
            raise InvalidInput(f"{shown(kind)} is not a kind of event.", hint=_KINDS)
        wanted.append(name)
    return wanted or None


def _next(row: dict[str, Any]) -> str:
    raw = orjson.dumps([row["at"].isoformat(), row["shard"], row["position"], row["n"]])
    return base64.urlsafe_b64encode(raw).decode()


def _cursor(after: object) -> tuple[datetime | None, int | None, int | None, int | None]:
    if after is None:
        return None, None, None, None
    with suppress(ValueError, TypeError, InvalidInput):
        at, shard, position, n = orjson.loads(base64.urlsafe_b64decode(checked_text("page", after)))
        return (
            checked_moment("page", datetime.fromisoformat(at)),
            checked_number("page", shard, 0, SHARDS - 1),
            checked_number("page", position, 0, 2**63 - 1),
            checked_number("page", n, 0, 2**15 - 1),
        )
    raise InvalidInput(f"{shown(after)} is no page of a history.", hint="Pass `next` of the page before.")
