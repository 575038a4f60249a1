"""The verb `why`: the life of one memory, from its events, and what brings it back (U1).

It reads and writes nothing: not even a policy that this process brings along is recorded.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import NamedTuple
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.domain.identity import check_key, owner_stream, persona_stream, server_stream
from remembrancer.domain.life import (
    Counted,
    Life,
    Line,
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
from remembrancer.services.answers import MemoryView, Position
from remembrancer.services.answers_why import (
    Days,
    Eviction,
    InLineView,
    Other,
    Searches,
    Seen,
    StoryLine,
    WhyAnswer,
    WhyDay,
    WhyMemory,
    WhySaved,
)
from remembrancer.services.checks import checked_number, checked_text, shown
from remembrancer.services.deps import LIST, PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.lives import Lives, Record
from remembrancer.services.memory_search import Answered, Found, MemorySearch
from remembrancer.services.reading import Reading
from remembrancer.services.views import view
from remembrancer.services.waiting import Waiting

LONGEST = 2_000
"""Code points of a text to look for."""
OTHERS = 5
"""Other memories that are named."""
SERVERS = 50
"""Servers of a persona whose settings are asked whether they hide a person's memories."""


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

    def __init__(self, deps: Deps, finder: Finder, waiting: Waiting, reading: Reading) -> None:
        self._deps = deps
        self._finder = finder
        self._waiting = waiting
        self._reading = reading
        self._lives = Lives(deps)
        self._search = MemorySearch(deps, finder)

    def why(self, q: UUID | str, *, persona: str | None, limit: int) -> WhyAnswer:
        """Tell a memory's life. See `Remembrancer.why`."""
        checked_number("limit", limit, 1, 1_000)
        if persona is not None:
            check_key("persona", persona)
        memory = _as_id(q)
        if memory is not None:
            home = self._finder.home(memory)
            self._waiting.settle()
            return self._tell(memory, home, None, Answered([], "words", None), limit)
        text = _checked_query(q)
        if persona is not None:
            self._reading.require_persona(persona)
        self._waiting.settle()
        answered = self._search.find(text, persona=persona, threshold=self._deps.threshold(self._policy()))
        if not answered.found or not answered.found[0].likely:
            raise _never_known(text, answered)
        best = answered.found[0]
        return self._tell(best.memory, self._finder.home(best.memory), best, answered, limit)

    def _policy(self) -> Policy:
        own = self._deps.store.load(self._deps.tenant_stream, TENANT).state.own
        return self._deps.effective(dict(own))

    def _tell(self, memory: UUID, home: Home, asked: Found | None, answered: Answered, limit: int) -> WhyAnswer:
        record = self._lives.of(memory, home, limit=limit)
        life, now = record.life, self._now(home)
        if life.saved is None:  # its events cannot be read any more, or never were there
            raise NotFound(
                f"There is no memory {memory}.", rule="D31", hint="`list` shows the memories that there are."
            )
        counted = count(life, now.state.days, record.match_days)
        moves = rested(counted, now.rules)
        m = now.state.memories.get(memory)
        hidden_by, everywhere, fix = self._hidden(home, now, m)
        where: Present | Absent
        if m is None or life.end is not None:
            same = None if life.text == ERASED else now.state.same_text(life.text)
            gone = now.state.gone.get(memory)
            where = Absent(gone is not None and not gone.moved, None if same is None else same.id)
        else:
            where = _present(view(m, now.state, home.key, now.policy, self._deps.now()), now.policy, moves)
            where = replace(where, hidden_everywhere=everywhere, hidden_fix=fix)
        said = verdict(life, home.key, where, asked_of=None if asked is None else asked.text)
        evicted = self._eviction(life, home, now)
        return WhyAnswer(
            status=said.status,
            verdict=said.sentence,
            memory=_memory(life, home, m),
            saved=self._saved(life),
            story=self._story(record, moves, home),
            searches=Searches(
                matches=record.matches, near_misses=record.near_misses, matched=record.matched, nearly=record.nearly
            ),
            days=self._days(life, now, counted, moves),
            evicted=evicted,
            hidden_by=hidden_by,
            bring_back=None if said.bring_back is None else f"remembrancer {said.bring_back}",
            found_by="id" if asked is None else answered.by,
            note=answered.note,
            nearest=_others(memory, answered),
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

    def _story(self, record: Record, moves: list[Moved], home: Home) -> list[StoryLine]:
        """Everything in its order: what was done to it, matches, near misses, and its way into the drawer."""
        told = [_line(line) for line in sorted([*record.life.lines, *record.match_lines], key=_version)]
        told += [_near_miss(seen, record.life.text) for seen in record.nearly]
        into = [move for move in moves if move.resting]
        searched = self._lives.searched_on([move.day for move in into], home)
        for move in into:
            at, turn = searched.get(move.day, (None, None))
            if at is not None:
                told.append(
                    StoryLine(
                        at=at,
                        actor="system",
                        turn=turn,
                        event="Rested",
                        sentence=f"It went to the drawer: {move.unused_days} counted days without a match.",
                        before=record.life.text,
                        after=record.life.text,
                        position=None,
                    )
                )
        return sorted(told, key=lambda line: line.at)

    def _eviction(self, life: Life, home: Home, now: _Now) -> Eviction | None:
        """Of the eviction that its absence is due to, or of the last one there was."""
        evictions = [line.recorded for line in life.lines if isinstance(line.recorded.event, e.MemoryEvicted)]
        if not evictions:
            return None
        r = evictions[-1]
        ev = r.event
        assert isinstance(ev, e.MemoryEvicted)
        policy = now.by_version.get(ev.policy, now.policy)
        line, unknown = self._lives.next_in_line(home, r, policy, now.state.days)
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
        return self._lives.text_of(memory)

    def _hidden(self, home: Home, now: _Now, m: Memory | None) -> tuple[list[str], str | None, str | None]:
        """What hides it in some replies; what hides it in all, and the command against that (T10, R17)."""
        key, owner, by = home.key, now.owner, []
        if m is not None and m.channels:
            by.append(f"only in the channels {', '.join(m.channels)}")
        if m is not None and m.tags:
            by.append(f"only in replies with one of the tags {', '.join(m.tags)}")
        if key.scope != "global" and now.persona.deleted:
            return by, f"the persona {key.persona} is deleted (D25)", None
        if key.scope != "global" and not now.persona.learns:
            return (
                by,
                f"{key.persona} does not learn from chat (R17)",
                shlex.join(["persona", "set", key.persona, "--learns"]),
            )
        set_subject = ["server" if key.scope == "server" else "person", "set", key.subject]
        if isinstance(owner, Person) and owner.privacy == "nowhere":
            why = f"{key.subject} lets nobody use their memories (T10)"
            return by, why, shlex.join([*set_subject, "--privacy", "everywhere"])
        if key.persona in owner.not_learning:
            of = f"in the server {key.subject}" if key.scope == "server" else f"from {key.subject}"
            return by, f"{key.persona} does not learn {of} (R17)", shlex.join([*set_subject, "--all-learn"])
        if isinstance(owner, Person):
            if owner.privacy == "private_chats_only":
                by.append(f"only in private chats: the privacy of {key.subject}")
            by += self._blocked(home)
        return by, None, None

    def _blocked(self, home: Home) -> list[str]:
        """The servers of a persona that do not use this person's memories."""
        if home.key.scope == "global":
            return []
        servers = [h.key.subject for h in self._finder.lists(home.key.persona) if h.key.scope == "server"][:SERVERS]
        loaded = self._deps.store.load_many([(server_stream(self._deps.tenant, one), SERVER) for one in servers])
        return [
            f"not in the server {name}: "
            + ("its blocklist" if home.key.subject in one.state.blocklist else "its switch")
            for name, one in zip(servers, loaded, strict=True)
            if home.key.subject in one.state.blocklist or not one.state.personal_memories
        ]


# -- small ones -------------------------------------------------------------------------------------------------------


def _as_id(q: object) -> UUID | None:
    if isinstance(q, UUID):
        return q
    if isinstance(q, str):
        with suppress(ValueError):
            return UUID(q.strip())
    return None


def _checked_query(q: object) -> str:
    text = checked_text("search text", q)
    if not text.strip():
        raise InvalidInput("Why what?", hint="Give the id of a memory, or what you remember of it.")
    if len(text) > LONGEST:
        raise InvalidInput(f"The search text has {len(text)} characters; at most {LONGEST} are possible.")
    return text


def _never_known(text: str, answered: Answered) -> NotFound:
    """What is said of a text that never was a memory; near ones are named (D31)."""
    near = answered.found[:3]
    named = "; ".join(f"{str(one.memory)[:8]} \u201c{one.text}\u201d" for one in near)
    hint = f"Nearest to it, for `why` with an id: {named}." if near else "There never was a memory that is like it."
    note = f" {answered.note}" if answered.note else ""
    return NotFound(
        f"Nothing like {shown(text)} was ever saved here, as far as likeness and words can tell.{note}"
        if answered.by != "words"
        else f"Nothing with the words of {shown(text)} was ever saved here.{note}",
        rule="D31",
        hint=hint,
        near=[_other(one).model_dump(mode="json") for one in near],
    )


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


def _version(line: Line) -> int:
    return line.recorded.version


def _line(line: Line) -> StoryLine:
    r = line.recorded
    return StoryLine(
        at=r.recorded_at,
        actor=r.event.actor,
        turn=r.event.turn,
        event=type(r.event).__name__,
        sentence=line.sentence,
        before=line.before,
        after=line.after,
        position=Position(shard=r.shard, position=r.position),
    )


def _near_miss(seen: Seen, text: str) -> StoryLine:
    lacked = ", but others matched better"
    if seen.threshold is not None and seen.score < seen.threshold:
        lacked = f" of {seen.threshold:.3f}"
    return StoryLine(
        at=seen.at,
        actor="persona",
        turn=seen.turn,
        event="NearMiss",
        sentence=f"A message passed it by: number {seen.rank}, score {seen.score:.3f}{lacked} "
        f"(similarity {seen.similarity:.3f}, words {seen.words:.3f}).",
        before=text,
        after=text,
        position=None,
    )


def _others(memory: UUID, answered: Answered) -> list[Other]:
    """The other memories that are as likely meant; where there is none, the two that come next."""
    others = [one for one in answered.found if one.memory != memory]
    likely = [one for one in others if one.likely][:OTHERS]
    return [_other(one) for one in likely or others[:2]]


def _other(one: Found) -> Other:
    return Other(
        memory=one.memory,
        persona=one.key.persona,
        scope=one.key.scope,
        subject=one.key.subject,
        text=one.text,
        similarity=one.similarity,
        words=one.words,
    )
