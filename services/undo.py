"""Taking back turns and bringing back memories: undo-turn, rewind, restore (D14, D8, U2).

A turn may have touched several lists: it is undone in all of them or in none, by one append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import orjson

from remembrancer.domain import events as e
from remembrancer.domain import undo
from remembrancer.domain.identity import Subject, check_key, owner_stream, shard_of
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import Context, MemoryList, with_events
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import ChangeAnswer, Kept, UndoAnswer, Undone
from remembrancer.services.chats import Chats
from remembrancer.services.checks import answer_erased
from remembrancer.services.clock import make_id
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.finder import Finder, Home
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch, Decision
from remembrancer.services.views import view


@dataclass(slots=True)
class Taken:
    """A list with one or more turns taken back, not yet written."""

    home: Home
    version: int
    before: MemoryList
    after: MemoryList
    events: list[e.Event]


class _Nothing(Exception):
    """There is nothing to take back."""


class Undo:
    """Commands that take back. See the module."""

    def __init__(self, deps: Deps, finder: Finder, chats: Chats) -> None:
        self._deps = deps
        self._finder = finder
        self._chats = chats

    # -- verbs -----------------------------------------------------------------------------------------------------

    def undo_turn(self, turn: str, *, request_id: str | None) -> UndoAnswer:
        """Take back one turn. See `Remembrancer.undo_turn`."""
        check_key("turn", turn)
        shard = shard_of(self._deps.tenant, Subject("chat", turn))
        return self._run(shard, "undo_turn", turn, [turn], request_id)

    def rewind(self, turn: str, *, request_id: str | None) -> UndoAnswer:
        """Take back all later turns of the turn's chat, newest first. See `Remembrancer.rewind`."""
        check_key("turn", turn)
        replies = self._finder.replies(turn)
        if not replies:
            raise self._finder.no_such_turn(turn)
        said = replies[-1]
        here = self._chats.require(said["chat"])
        home, stream = here.home, here.stream
        later = self._later_turns(stream, turn)
        if not later:
            return self._run(stream.bytes[0], "rewind", turn, [], request_id)
        rewound = e.ChatRewound(
            id=make_id(stream.bytes[0]),
            tenant=self._deps.tenant,
            request_id=request_id,
            chat=said["chat"],
            to=turn,
            turns=tuple(later),
        )
        also = Batch(stream, [rewound], None, (home,))
        answer = self._run(stream.bytes[0], "rewind", turn, later, request_id, also)
        if self._chats.on_gone is not None:
            self._chats.on_gone(stream)
        return answer

    def restore(self, memory: UUID, *, request_id: str | None) -> ChangeAnswer:
        """Bring back an evicted or deleted memory. See `Remembrancer.restore`."""
        home, now = self._finder.home(memory), self._deps.now()
        tenant, owners = self._deps.tenant, (home.key.owner,)
        request = request_for(tenant, home.stream.bytes[0], "restore", request_id, {"memory": memory}, owners)
        unchanged: list[ChangeAnswer] = []

        def load() -> tuple[MemoryList, int, Policy, int]:
            found, policies = self._deps.store.load_many([(home.stream, LIST), (self._deps.tenant_stream, TENANT)])
            return (found.state, found.version, *self._deps.policy(policies))

        def decide(at: tuple[MemoryList, int, Policy, int]) -> Decision:
            s, version, policy, policy_version = at
            ctx = self._context(home, policy, policy_version, None, request_id, now)
            events = undo.restore(s, memory, ctx)
            after = with_events(s, events, home.stream, version, now)
            shown = view(after.memories[memory], after, home.key, policy, now)
            answer = orjson.dumps(ChangeAnswer(memory=shown).model_dump(mode="json"))
            if not events:
                if request_id is None:
                    unchanged.append(ChangeAnswer(memory=shown))
                    raise _Nothing
                return Decision([], answer)
            lifted = e.TombstonesLifted(
                id=ctx.new_id(), tenant=tenant, request_id=request_id, list=home.stream, memory=memory
            )
            whose = owner_stream(tenant, home.key)
            return Decision([Batch(home.stream, events, version, owners), Batch(whose, [lifted], None, owners)], answer)

        try:
            done = self._deps.store.transact(request, load, decide, now=now)
        except _Nothing:
            return unchanged[-1]
        if not done.answer:
            raise answer_erased()
        answer = ChangeAnswer.model_validate_json(done.answer)
        return answer.model_copy(update={"positions": positions(done)})

    # -- what a reply needs: a new attempt takes back the old one (D19) --------------------------------------------

    def taken_back(self, turn: str, request_id: str | None) -> list[Taken]:
        """The lists that a turn touched, with it taken back; nothing is written."""
        homes = _homes(self._finder.events_of_turn(turn))
        return self._take_back([turn], homes, request_id, self._deps.now())

    # -- the common way --------------------------------------------------------------------------------------------

    def _run(
        self, shard: int, verb: str, turn: str, turns: Sequence[str], request_id: str | None, also: Batch | None = None
    ) -> UndoAnswer:
        now = self._deps.now()
        homes = {home for one in turns for home in _homes(self._finder.events_of_turn(one))}
        owners = tuple({home.key.owner for home in homes})
        request = request_for(self._deps.tenant, shard, verb, request_id, {"turn": turn}, owners)
        if request_id is not None and (before := self._deps.store.find(request)) is not None:
            return _answered(before)

        def decide(taken: list[Taken]) -> Decision:
            written = [t for t in taken if t.events]
            if not written and also is None and request_id is None:
                raise _Nothing
            answer = _told(turns, written)
            batches = [Batch(t.home.stream, t.events, t.version, (t.home.key.owner,)) for t in written]
            return Decision([*batches, *([also] if also else [])], orjson.dumps(answer.model_dump(mode="json")))

        try:
            done = self._deps.store.transact(
                request, lambda: self._take_back(turns, homes, request_id, now), decide, now=now
            )
        except _Nothing:
            return UndoAnswer(turns=list(turns), removed=[], restored=[], reverted=[], kept=[])
        return _answered(done)

    def _take_back(self, turns: Sequence[str], homes: set[Home], request_id: str | None, now: datetime) -> list[Taken]:
        """Fold each list that these turns touched, and take them back in this order.

        The states are loaded before the turns' events, so that an event that is in no state is in no decision either:
        what comes in between moves the stream on, and the append finds that out.

        Args:
            homes: the lists that the turns are known to have touched; what is found besides is taken in.
        """
        homes = set(homes)
        while True:
            order = sorted(homes, key=lambda home: home.stream)
            loaded = self._deps.store.load_many(
                [(self._deps.tenant_stream, TENANT), *((home.stream, LIST) for home in order)]
            )
            done = {turn: self._finder.events_of_turn(turn) for turn in turns}
            found = {home for events in done.values() for home in _homes(events)}
            if found <= homes:
                break
            homes |= found
        if turns and not homes and not any(self._finder.replies(turn) for turn in turns):
            raise self._finder.no_such_turn(turns[0])
        policy, policy_version = self._deps.policy(loaded[0])
        taken = []
        for home, one in zip(order, loaded[1:], strict=True):
            t = Taken(home, one.version, one.state, one.state, [])
            for turn in turns:
                events = [r for r in done[turn] if r.stream == home.stream and r.version <= one.version]
                ctx = self._context(home, policy, policy_version, turn, request_id, now)
                event = undo.roll_back(t.after, events, ctx, self._last_use(home, turn))
                if event is not None:
                    t.after = with_events(t.after, [event], home.stream, t.version + len(t.events), now)
                    t.events.append(event)
            taken.append(t)
        return taken

    def _context(
        self, home: Home, policy: Policy, version: int, turn: str | None, request_id: str | None, now: datetime
    ) -> Context:
        return Context(
            tenant=self._deps.tenant,
            key=home.key,
            actor="person",
            day=now.date(),
            policy=policy,
            new_id=lambda: make_id(home.stream.bytes[0]),
            policy_version=version,
            turn=turn,
            request_id=request_id,
        )

    def _last_use(self, home: Home, turn: str) -> Callable[[Memory], date]:
        """The day of a memory's last use but for a turn's, from its list's events: the state keeps only the latest."""
        return lambda m: self._last_use_of(home, m, turn)

    def _last_use_of(self, home: Home, m: Memory, turn: str) -> date:
        days = [m.base_day] if m.turn is None else []
        events = self._deps.store.read([(home.stream, 0)])
        voided = {turn}
        voided |= {r.event.turn for r in events if isinstance(r.event, e.TurnRolledBack) and r.event.turn is not None}
        for r in events:
            ev = r.event
            if ev.turn in voided and ev.actor != "person":
                continue
            match ev:
                case e.MemoriesMatched() if any(match.memory == m.id for match in ev.matches):
                    days.append(ev.day)
                case (
                    e.MemorySaved() | e.MemoryEdited() | e.MemoryAffirmed() | e.MemoryRestored() | e.MemoryUnpinned()
                ) if ev.memory == m.id:
                    days.append(ev.day)
                case e.UseRecounted() if (counted := ev.counted.get(m.id)) is not None:  # all before it is summed up
                    days = [counted.base_day, *(u.day for u in counted.uses if u.turn not in voided)]
        return max(days, default=m.created_at.date())

    def _later_turns(self, chat: UUID, turn: str) -> list[str]:
        """The turns of a chat after one, the newest first, each once."""
        turns: list[str] = []
        for r in self._deps.store.read([(chat, 0)]):
            if isinstance(r.event, e.ReplySearched) and r.event.turn is not None:
                turns = [t for t in turns if t != r.event.turn] + [r.event.turn]
        return list(reversed(turns[turns.index(turn) + 1 :])) if turn in turns else []


def _homes(events: Sequence[e.Recorded]) -> set[Home]:
    return {Home(r.stream, r.event.key) for r in events if isinstance(r.event, e.ListEvent)}


def _told(turns: Sequence[str], taken: Sequence[Taken]) -> UndoAnswer:
    """What was taken back, with the texts."""
    removed: dict[UUID, Undone] = {}
    restored: dict[UUID, Undone] = {}
    reverted: dict[UUID, Undone] = {}
    kept: dict[UUID, Kept] = {}
    for t in taken:
        before = {**{k: g.memory for k, g in t.before.gone.items()}, **t.before.memories}
        for ev in t.events:
            assert isinstance(ev, e.TurnRolledBack)
            removed |= {k: Undone(memory=k, text=before[k].text) for k in ev.removed if k in before}
            restored |= {
                k: Undone(memory=k, text=t.after.memories[k].text) for k in ev.restored if k in t.after.memories
            }
            reverted |= {
                k: Undone(memory=k, text=t.after.memories[k].text) for k in ev.reverted if k in t.after.memories
            }
            kept |= {k: Kept(memory=k, text=before[k].text, why=why) for k, why in ev.kept if k in before}
    return UndoAnswer(
        turns=list(turns),
        removed=list(removed.values()),
        restored=[u for k, u in restored.items() if k not in removed],
        reverted=list(reverted.values()),
        kept=list(kept.values()),
    )


def _answered(done: Appended) -> UndoAnswer:
    if not done.answer:
        raise answer_erased()
    return UndoAnswer.model_validate_json(done.answer).model_copy(update={"positions": positions(done)})
