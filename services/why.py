"""The verb `why`: the life of one memory, from its events, and what brings it back (U1).

It only reads: not even a policy that this process brings along is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.errors import NotFound
from remembrancer.domain.identity import EVERY_PERSONA, check_key, owner_stream, persona_stream
from remembrancer.domain.life import (
    Counted,
    Life,
    Moved,
    Rules,
    count,
    days_without_search,
    hidden_days,
    rested,
)
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.domain.text import ERASED
from remembrancer.domain.verdict import Absent, Present, verdict
from remembrancer.services.answers import MemoryView
from remembrancer.services.answers_why import (
    Days,
    Eviction,
    InLineView,
    Searches,
    WhyAnswer,
    WhyDay,
    WhyMemory,
    WhySaved,
)
from remembrancer.services.checks import checked_number
from remembrancer.services.deps import LIST, PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.hiding import Hiding
from remembrancer.services.layers import Layers
from remembrancer.services.lives import Lives
from remembrancer.services.memory_search import Answered, Found, MemorySearch
from remembrancer.services.reading import Reading
from remembrancer.services.views import view
from remembrancer.services.waiting import Waiting
from remembrancer.services.why_question import as_id, checked_query, never_known, never_saved, others
from remembrancer.services.why_story import story


class _Now(NamedTuple):
    """The list as it is, the rules of today and of before, and the settings that bear on it."""

    state: MemoryList
    policy: Policy
    rules: list[Rules]
    by_version: dict[int, Policy]
    persona: Persona
    owner: Person | Server


class Why:
    """See the module."""

    def __init__(self, deps: Deps, finder: Finder, waiting: Waiting, reading: Reading, layers: Layers) -> None:
        self._deps = deps
        self._finder = finder
        self._waiting = waiting
        self._reading = reading
        self.lives = Lives(deps)
        self._search = MemorySearch(deps, finder)
        self._hiding = Hiding(deps, finder)
        self._layers = layers

    def why(self, q: UUID | str, *, persona: str | None, limit: int) -> WhyAnswer:
        """Tell a memory's life. See `Remembrancer.why`."""
        checked_number("limit", limit, 1, 1_000)
        if persona is not None:
            check_key("persona", persona)
        memory = as_id(q)
        if memory is not None:
            home = self._finder.home(memory)
            if persona is not None:
                self._reading.require_persona(persona)
                if home.key.persona not in (persona, EVERY_PERSONA):
                    raise NotFound(
                        f"{persona} never had a memory {memory}.", rule="D31", hint="Ask without a persona.",
                        memory=str(memory),
                    )  # fmt: skip
            self._waiting.settle()
            return self._tell(memory, home, None, Answered([], "words", None), limit)
        text = checked_query(q)
        if persona is not None:
            self._reading.require_persona(persona)
        self._waiting.settle()
        answered = self._search.find(text, persona=persona, threshold=self._deps.threshold(self._policy()))
        if not answered.found or not answered.found[0].likely:
            said = self._layers.of(text, persona=persona)
            if not said:
                raise never_known(text, answered)
            return never_saved(said, answered)
        best = answered.found[0]
        return self._tell(best.memory, self._finder.home(best.memory), best, answered, limit)

    def _policy(self) -> Policy:
        own = self._deps.store.load(self._deps.tenant_stream, TENANT).state.own
        return self._deps.effective(dict(own))

    def _tell(self, memory: UUID, home: Home, asked: Found | None, answered: Answered, limit: int) -> WhyAnswer:
        record = self.lives.of(memory, home, limit=limit)
        life, now = record.life, self._now(home)
        if life.saved is None:  # its events cannot be read any more, or never were there
            raise NotFound(
                f"There is no memory {memory}.", rule="D31", hint="`list` shows the memories that there are."
            )
        counted = count(life, now.state.days, record.match_days)
        moves = rested(counted, now.rules)
        m = now.state.memories.get(memory)
        hidden = self._hiding.of(home.key, m, now.persona, now.owner)
        where: Present | Absent
        if m is None or life.end is not None:
            same = None if life.text == ERASED else now.state.same_text(life.text)
            gone = now.state.gone.get(memory)
            where = Absent(gone is not None and not gone.moved, None if same is None else same.id)
        else:
            where = _present(view(m, now.state, home.key, now.policy, self._deps.now()), now.policy, moves)
            where = replace(where, hidden_everywhere=hidden.everywhere, hidden_fix=hidden.fix)
        said = verdict(life, home.key, where, asked_of=None if asked is None else asked.text)
        evicted = self._eviction(life, home, now)
        speaker = None if home.key.persona == EVERY_PERSONA else home.key.persona
        source = life.saved.event.source.messages if isinstance(life.saved.event, e.MemorySaved) else ()
        heard = [UUID(m) for m in source]
        conversation = [] if life.text == ERASED else self._layers.of(life.text, persona=speaker, messages=heard)
        return WhyAnswer(
            status=said.status,
            verdict=said.sentence,
            memory=_memory(life, home, m),
            saved=self._saved(life),
            story=story(record, moves, self.lives.searched_on([x.day for x in moves if x.resting], home)),
            searches=Searches(
                matches=record.matches, near_misses=record.near_misses, matched=record.matched, nearly=record.nearly
            ),
            days=self._days(life, now, counted, moves),
            evicted=evicted,
            conversation=conversation,
            hidden_by=hidden.by,
            bring_back=None if said.bring_back is None else f"remembrancer {said.bring_back}",
            found_by="id" if asked is None else answered.by,
            note=answered.note,
            nearest=others(memory, answered),
        )

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _now(self, home: Home) -> _Now:
        own = owner_stream(self._deps.tenant, home.key)
        tenant, one, persona, owner = self._deps.store.load_many([
            (self._deps.tenant_stream, TENANT),
            (home.stream, LIST),
            (persona_stream(self._deps.tenant, home.key.persona), PERSONA),
            (own, SERVER if home.key.scope == "server" else PERSON),
        ])  # fmt: skip
        rules, by_version = [], {}
        for r in self._deps.store.read([(self._deps.tenant_stream, 0)]):
            if isinstance(r.event, e.PolicyChanged):
                known = {k: v for k, v in r.event.policy.items() if k in Policy.model_fields}
                by_version[r.version] = Policy(**known)
                rules.append(Rules(r.recorded_at.date(), by_version[r.version]))
        policy = self._deps.effective(dict(tenant.state.own))
        return _Now(one.state, policy, rules, by_version, persona.state, owner.state)

    def _saved(self, life: Life) -> WhySaved:
        assert life.saved is not None
        ev = life.saved.event
        assert isinstance(ev, e.MemorySaved)
        chat = ev.source.chat
        if chat is None and ev.turn is not None and (replies := self._finder.replies(ev.turn)):
            chat = replies[-1]["chat"]
        return WhySaved(
            at=life.saved.recorded_at,
            actor=ev.by or ev.actor,
            turn=ev.turn,
            chat=chat,
            messages=ev.source.messages,
            day=ev.day,
        )

    def _days(self, life: Life, now: _Now, counted: list[Counted], moves: list[Moved]) -> Days:
        assert life.saved is not None
        end = self._deps.now().date() if life.end is None else life.end.recorded_at.date()
        resting = moves[-1] if moves and moves[-1].resting else None
        m = now.state.memories.get(life.memory)
        unused = counted[-1].unused_days if counted else 0
        return Days(
            unused_days=unused if m is None else m.unused_days(now.state.days),
            rest_after_days=now.policy.rest_after_days,
            counted=sum(one.how == "counted" for one in counted),
            hidden=hidden_days(counted),
            without_search=days_without_search(life.saved.recorded_at.date(), end, now.state.days),
            rested_on=None if resting is None else resting.day,
            counter=[WhyDay(day=one.day, unused_days=one.unused_days, how=one.how) for one in counted],
        )

    def _eviction(self, life: Life, home: Home, now: _Now) -> Eviction | None:
        """Of the eviction that its absence is due to, or of the last one there was."""
        evictions = [line.recorded for line in life.lines if isinstance(line.recorded.event, e.MemoryEvicted)]
        if not evictions:
            return None
        r = evictions[-1]
        ev = r.event
        assert isinstance(ev, e.MemoryEvicted)
        policy = now.by_version.get(ev.policy, now.policy)
        line, unknown = self.lives.next_in_line(home, r, policy, now.state.days)
        for_text = self._text_of(ev.for_memory, now.state)
        return Eviction(
            at=r.recorded_at,
            turn=ev.turn,
            for_memory=ev.for_memory,
            for_text=for_text,
            reason=ev.reason,
            next_in_line=None
            if line is None
            else InLineView(memory=line.memory.id, text=line.memory.text, reason=line.reason),
            next_unknown=unknown,
        )

    def _text_of(self, memory: UUID, state: MemoryList) -> str | None:
        if (m := state.memories.get(memory)) is not None:
            return m.text
        if (gone := state.gone.get(memory)) is not None:
            return gone.memory.text
        return self.lives.text_of(memory)


def _present(now: MemoryView, policy: Policy, moves: list[Moved]) -> Present:
    rested_on: date | None = moves[-1].day if moves and moves[-1].resting else None
    return Present(
        state=now.state,
        on_desk=now.on_desk,
        unused_days=now.unused_days,
        rest_after_days=policy.rest_after_days,
        desk_limit=policy.desk_limit,
        until=now.until,
        tags=now.tags,
        channels=now.channels,
        rested_on=rested_on,
        decays=policy.decay_enabled,
    )


def _memory(life: Life, home: Home, m: Memory | None) -> WhyMemory:
    return WhyMemory(
        id=life.memory,
        persona=home.key.persona,
        scope=home.key.scope,
        subject=home.key.subject,
        text=life.text,
        wordings=life.wordings,
        pinned=life.pinned,
        protected=m is not None and m.protected,
        until=None if m is None else m.until,
        tags=() if m is None else m.tags,
        channels=() if m is None else m.channels,
    )
