"""The verb `at`: lists, desk and prompt of a past moment, from the events alone (U1).

A reply recorded which streams it read, up to which version, and what it chose of them. So its prompt is printed again
from those events, by the layout of that day: the same bytes, whatever was changed, undone, rebuilt or restored since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any, TypeVar
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.domain.identity import (
    EVERY_PERSONA,
    ListKey,
    list_stream,
    person_stream,
    persona_stream,
    server_stream,
)
from remembrancer.domain.moment import ListThen, Moment, asked_at, folded, seen_by
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import RENDERER, renderer
from remembrancer.domain.settings import Person, Persona, Server, Tenant
from remembrancer.domain.visibility import Place, in_order, lists_in_play
from remembrancer.services.answers import Late, Position, SummaryView
from remembrancer.services.answers_moment import MomentAnswer, MomentSettings
from remembrancer.services.chats import view_of
from remembrancer.services.configure import person_view, persona_view, server_view
from remembrancer.services.deps import PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.finder import Finder
from remembrancer.services.moment_views import (
    erased_notes,
    lists_view,
    memory_views,
    near_view,
    prefix_view,
    search_view,
)
from remembrancer.services.past import NOT_BEGUN, Past, Stream, said
from remembrancer.services.past_chat import sent_then
from remembrancer.services.store import Fold
from remembrancer.services.when import When

S = TypeVar("S")
OTHER_RULES = "By the recorded rules the desk would have been another one; what was sent is shown."
MISSING = "A memory that was sent is not among the events of its list."


@dataclass(frozen=True, slots=True)
class Seen:
    """A moment, and the events behind its lists."""

    answer: MomentAnswer
    events: Mapping[ListKey, Sequence[e.Recorded]]


@dataclass(frozen=True, slots=True)
class _Settings:
    """What had been set by then."""

    tenant: Tenant
    version: int
    persona: Persona
    server: Server
    people: Mapping[str, Person]

    @property
    def policy(self) -> Policy:
        return self.tenant.policy or Policy()


class At:
    """Looks back. See the module."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder
        self._past = Past(deps)

    def at(self, when: When) -> MomentAnswer:
        """A past moment. See `Remembrancer.at`."""
        return self.look(when).answer

    def look(self, when: When) -> Seen:
        """A past moment, with its events.

        Raises:
            NotFound, InvalidInput: as for `Remembrancer.at`.
        """
        if when.turn is not None:
            return self._turn(when.turn, when.attempt)
        if when.position is not None:
            return self._position(when, when.position)
        assert when.time is not None
        if when.persona is None:
            raise InvalidInput("Whose memories, at that time?", hint="Name a persona.")
        self._not_to_come(when.time)
        return self._then(when, when.persona, when.time, None)

    # -- a reply ---------------------------------------------------------------------------------------------------

    def _turn(self, turn: str, attempt: int | None) -> Seen:
        replies = self._past.replies(turn)
        if not replies:
            raise self._finder.no_such_turn(turn)
        found = [r for r in replies if attempt is None or said(r).attempt == attempt]
        if not found:
            there = sorted({said(r).attempt for r in replies})
            raise NotFound(
                f"The turn {turn!r} has no attempt {attempt}.", rule="D31",
                hint=f"It has {', '.join(map(str, there))}.", attempts=there,
            )  # fmt: skip
        return self._reply(found[-1], "turn", said(replies[-1]).attempt)

    def _reply(self, r: e.Recorded, what: Any, attempts: int) -> Seen:
        """A reply, from what it recorded and the streams that it names."""
        ev = said(r)
        old = ev.asked_at is None and ev.attempt > 1  # then the taking back of the attempt before comes next
        wanted = dict(ev.settings) | {self._deps.tenant_stream: ev.policy}
        wanted |= {x.stream: x.found_at or x.version + old for x in ev.lists}
        streams = self._past.upto(wanted)
        seen = {x.stream: _cut(streams[x.stream], seen_by(ev, x, streams[x.stream].events)) for x in ev.lists}
        keys = {stream: key for stream, one in seen.items() if (key := _key(one.events)) is not None}
        settings = self._settings(streams, ev.persona, ev.server, ev.users)
        moment = Moment(
            asked_at(ev, r.recorded_at),
            Place(ev.server, ev.channel, ev.tags),
            settings.policy,
            settings.persona.instructions,
            [ListThen(key, folded(seen[stream].events)) for stream, key in keys.items()],
            ev.persona,
        )
        # what is not on the desk was read by the search, for which a list may have moved on meanwhile
        moved = {x.stream for x in ev.lists if x.found_at is not None}
        found = replace(moment, lists=[
            ListThen(key, folded(streams[stream].events)) if stream in moved else x
            for (stream, key), x in zip(keys.items(), moment.lists, strict=True)
        ])  # fmt: skip
        sent, late = moment.by_list(ev.prefix), [one for i in ev.late if (one := found.find(i)) is not None]
        blocks = moment.blocks(sent, late, renderer(ev.renderer))
        lists = {key: seen[stream] for stream, key in keys.items()}
        notes = erased_notes(lists)
        if len(blocks.order) < len(ev.prefix) or len(late) < len(ev.late):
            notes.append(MISSING)
        elif sent != moment.desk():
            notes.append(OTHER_RULES)
        answer = MomentAnswer(
            what=what,
            at=moment.at,
            turn=ev.turn,
            attempt=ev.attempt,
            attempts=attempts,
            chat=ev.chat,
            position=Position(shard=r.shard, position=r.position),
            **self._common(ev.persona, ev.users, moment, settings),
            lists=lists_view(moment, lists, set(blocks.order)),
            prefix=prefix_view(moment, blocks),
            late=Late(text=blocks.late, recalled=memory_views(found, ev.late, on_desk=False)),
            search=search_view(ev, moment, found),
            **self._chat(r),
            exact=not notes,
            notes=notes,
        )
        return Seen(answer, {key: one.events for key, one in lists.items()})

    def _chat(self, r: e.Recorded) -> dict[str, Any]:
        """What it sent of its chat: the summary and the messages (R1)."""
        if not said(r).memory:
            return {"summary": SummaryView(), "messages": []}
        then = sent_then(self._past, r)
        if then is None:
            return {}
        return {
            "summary": SummaryView(text=then.summary, tokens=then.tokens, summaries=then.summaries),
            "messages": [view_of(m) for m in then.messages],
        }

    # -- a time or a position --------------------------------------------------------------------------------------

    def _position(self, when: When, position: Position) -> Seen:
        """The moment after an event: the reply itself, if it is one; else around its list, or where the caller says."""
        r = self._past.event(position)
        if r is None:
            raise NotFound(
                f"There is no event at {position.shard}:{position.position}.", rule="D31",
                hint="`history` names positions in its JSON.",
            )  # fmt: skip
        ev = r.event
        if isinstance(ev, e.ReplySearched) and ev.turn is not None and when.persona is None and not when.placed:
            return self._reply(r, "position", max(said(one).attempt for one in self._past.replies(ev.turn)))
        persona: str = when.persona or str(getattr(ev, "persona", ""))
        if persona in ("", EVERY_PERSONA):
            raise InvalidInput("Whose memories, at that position?", hint="Name a persona.")
        if not when.placed and isinstance(ev, e.ListEvent):
            users, server = ((), ev.subject) if ev.scope == "server" else ((ev.subject,), None)
            when = When(position=position, users=users, server=server)
        return self._then(when, persona, r.recorded_at, position)

    def _not_to_come(self, time: datetime) -> None:
        """A moment that is to come is refused. A clock that went back has left moments behind that count as past.

        Raises:
            InvalidInput: the moment is to come.
        """
        now = self._deps.now()
        if time > now and time > max(self._deps.store.last_moments().values(), default=now):
            raise InvalidInput(f"{time.isoformat()} is still to come.", hint="`list` shows what is there now.")

    def _then(self, when: When, persona: str, moment_at: datetime, position: Position | None) -> Seen:
        """The lists of a persona at a moment, and the prompt that a reply there would have had."""
        if not self._finder.knows(persona):
            raise self._finder.no_such_persona(persona)
        tenant, place = self._deps.tenant, Place(when.server, when.channel, when.tags)
        keys = self._keys(when, persona)
        lists = {key: list_stream(tenant, key) for key in keys}
        wanted = [
            self._deps.tenant_stream,
            persona_stream(tenant, persona),
            *(person_stream(tenant, user) for user in when.users),
            *([] if when.server is None else [server_stream(tenant, when.server)]),
            *lists.values(),
        ]
        streams = self._past.until(wanted, moment_at, position)
        settings = self._settings(streams, persona, when.server, when.users)
        if when.placed:
            keys = lists_in_play(
                persona, place, when.users, persona=settings.persona, server=settings.server, people=settings.people
            )
        then = {key: streams.get(lists[key], NOT_BEGUN) for key in keys}
        if not when.placed:
            then = {key: one for key, one in then.items() if one.events}
        moment = Moment(
            moment_at, place, settings.policy, settings.persona.instructions,
            [ListThen(key, folded(one.events)) for key, one in then.items()], persona,
        )  # fmt: skip
        blocks = moment.blocks(moment.desk(), (), renderer(RENDERER)) if when.placed else None
        before, after = self._past.nearest(persona, moment_at, when.server, anywhere=not when.placed)
        notes = erased_notes(then)
        answer = MomentAnswer(
            what="time" if position is None else "position",
            at=moment_at,
            position=position,
            **self._common(persona, when.users, moment, settings),
            lists=lists_view(moment, then, None if blocks is None else set(blocks.order)),
            prefix=None if blocks is None else prefix_view(moment, blocks),
            exact=not notes,
            notes=notes,
            before=near_view(before),
            after=near_view(after),
        )
        return Seen(answer, {key: one.events for key, one in then.items()})

    def _keys(self, when: When, persona: str) -> list[ListKey]:
        """Every list that could be in play, whatever had been set by then; or, anywhere, all of the persona's."""
        if not when.placed:
            return [home.key for home in self._finder.lists(persona)]
        keys = [] if when.server is None else [ListKey(persona, "server", when.server)]
        for user in when.users:
            keys += [ListKey(persona, "personal", user), ListKey(EVERY_PERSONA, "global", user)]
        return in_order(keys)

    # -- both ------------------------------------------------------------------------------------------------------

    def _settings(
        self, streams: Mapping[UUID, Stream], persona: str, server: str | None, users: Sequence[str]
    ) -> _Settings:
        tenant = self._deps.tenant

        def state(stream: UUID, fold: Fold[S]) -> S:
            return reduce(fold.evolve, streams.get(stream, NOT_BEGUN).events, fold.initial)

        return _Settings(
            state(self._deps.tenant_stream, TENANT),
            streams.get(self._deps.tenant_stream, NOT_BEGUN).version,
            state(persona_stream(tenant, persona), PERSONA),
            SERVER.initial if server is None else state(server_stream(tenant, server), SERVER),
            {user: state(person_stream(tenant, user), PERSON) for user in users},
        )

    @staticmethod
    def _common(persona: str, users: Sequence[str], moment: Moment, settings: _Settings) -> dict[str, Any]:
        """The fields of an answer that every kind of moment has."""
        place = moment.place
        return {
            "persona": persona,
            "users": tuple(users),
            "server": place.server,
            "channel": place.channel,
            "tags": place.tags,
            "policy": moment.policy,
            "policy_version": settings.version,
            "settings": MomentSettings(
                persona=persona_view(persona, settings.persona),
                server=None if place.server is None else server_view(place.server, settings.server),
                people=[person_view(user, one) for user, one in settings.people.items()],
            ),
        }


def _cut(stream: Stream, known: list[e.Recorded]) -> Stream:
    """What a reply saw of a stream; erasures behind that came later."""
    later = any(isinstance(r.event, e.SubjectErased) for r in stream.events[len(known) :])
    return Stream(known, stream.erased or later)


def _key(events: Sequence[e.Recorded]) -> ListKey | None:
    return next((r.event.key for r in events if isinstance(r.event, e.ListEvent)), None)
