"""Deep memory: what leaves the live window is read once more, for lasting details (R13e, R16, D14; C6, C9, C18, C27).

It follows the chunks that are summarised, in the chat's own stream, so nothing of what waits is in memory alone. One
question a pass, then one append: what was read, and what it changed in which list. Whoever is killed before it has done
nothing; after it, nobody reads the same again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from pydantic import TypeAdapter

from remembrancer.domain import events as e
from remembrancer.domain import persona_memory as lists
from remembrancer.domain.deep import DeepState, evolve_deep
from remembrancer.domain.drafts import Draft, Heard, fault
from remembrancer.domain.errors import ListFull, NotFound, RemembrancerError
from remembrancer.domain.identity import ListKey, list_stream, person_stream, persona_stream, server_stream
from remembrancer.domain.persona_memory import Context, MemoryList, NewMemory, with_events
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Person, Server
from remembrancer.domain.transcript import Message
from remembrancer.domain.visibility import Place, may_use_person
from remembrancer.projections.queries import load_queries
from remembrancer.services import draft_prompts as prompts
from remembrancer.services.answers_chat import DeepMemoryView
from remembrancer.services.chat_models import ChatModel, ModelFailed
from remembrancer.services.chats import ChatHome, Chats
from remembrancer.services.clock import make_id
from remembrancer.services.deps import PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.finder import Finder
from remembrancer.services.remember import ListLoaded, Remember, batch_of
from remembrancer.services.store import Batch, Fold, Loaded, Request, VersionConflict
from remembrancer.services.summary_prompts import SHORTEST, of_messages
from remembrancer.services.vectors import Vectors

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "deep_memory")
_STATE = TypeAdapter(DeepState)
DEEP: Fold[DeepState] = Fold("deep@1", DeepState(), evolve_deep, _STATE.dump_json, _STATE.validate_json)
MOST_TRIES = 20
EMBED_SECONDS = 30.0
FAILED = "deep memory: "
"""How the error of a pass begins where it stands among those of summaries."""


class DeepPassFailed(ModelFailed):
    """The model gave no answer to a pass; it is tried again, and never taken for "nothing to save" (C27)."""


@dataclass(frozen=True, slots=True)
class _Pass:
    """What is read: the messages, up to which number, for which persona, of which people."""

    persona: str
    messages: Sequence[Message]
    upto: int
    people: Sequence[str]
    policy: Policy
    lists: Mapping[str, MemoryList]
    """By person, as the model was told of them."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A change that the model wants and code has nothing against."""

    user: str
    action: str
    memory: UUID | None
    draft: Draft


@dataclass(slots=True)
class _Written:
    """What becomes of the changes, list by list."""

    events: dict[str, list[e.Event]] = field(default_factory=dict)
    changes: list[e.DeepChanged] = field(default_factory=list)
    refused: int = 0
    full: bool = False


class DeepMemory:
    """Reads chats deeply. See the module."""

    def __init__(self, deps: Deps, chats: Chats, finder: Finder, remember: Remember, vectors: Vectors) -> None:
        self._deps = deps
        self._chats = chats
        self._finder = finder
        self._remember = remember
        self._vectors = vectors
        self._looked: dict[UUID, int] = {}
        """How often messages of a chat had gone when it was last looked for memories without a source."""

    def run(self, stream: UUID, model: ChatModel, hold: Callable[[], bool]) -> None:
        """Read what waits in a chat, if enough does, and undo what rests on nothing any more.

        Raises:
            DeepPassFailed: the model gave no usable answer; nothing was written (C27).
            Unavailable: the database is away.
        """
        self.forget_gone(stream)
        here = self._chats.by_stream(stream)
        if here is None or here.platform != "web":
            return None
        at = self._deps.store.load(stream, DEEP)
        found = self._pass(here, at.state)
        if found is None or not hold():
            return None
        wanted, dropped, cost = self._ask(found, model)
        self._keep_vectors(found.persona, wanted)
        for _ in range(MOST_TRIES):
            try:
                return self._write(here, at, found, wanted, dropped, model, cost)
            except VersionConflict:
                at = self._deps.store.load(stream, DEEP)
                if at.state.upto >= found.upto:  # somebody else has read it meanwhile
                    return None
        log.warning("Too much happens in a chat that is read deeply; it is read later.")
        return None

    # -- what is read ----------------------------------------------------------------------------------------------

    def _pass(self, here: ChatHome, deep: DeepState) -> _Pass | None:
        """What there is to read: nothing, unless deep memory is on for somebody who wrote it, and enough waits."""
        if not deep.waiting:
            return None
        messages = self._unread(here, deep)
        authors = list(dict.fromkeys(m.author for m in messages if m.role == "user"))
        spoke = [m.author for m in messages if m.role == "persona" and m.author in here.personas]
        persona = spoke[-1] if spoke else here.personas[0]
        settings = self._settings(here, persona, authors)
        people = {u: p.deep_since for u, p in settings.items() if p.deep_since is not None}
        if not people:
            return None
        since = min(people.values())
        chunks = [w for w in deep.waiting if w.at >= since]
        messages = [m for m in messages if any(w.first <= m.n <= w.last for w in chunks)]
        policy, _ = self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))
        if len(messages) < policy.deep_messages:
            return None
        present = {u: self._load(persona, u).list for u in people}
        return _Pass(persona, messages, max(w.last for w in chunks), sorted(people), policy, present)

    def _unread(self, here: ChatHome, deep: DeepState) -> list[Message]:
        at = {
            "shard": here.stream.bytes[0], "chat": here.stream, "last": max(w.last for w in deep.waiting),
            "first": max(deep.upto + 1, min(w.first for w in deep.waiting)),
        }  # fmt: skip
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["unread"], at).fetchall())
        return [Message(*row) for row in rows]

    def _settings(self, here: ChatHome, persona: str, authors: Sequence[str]) -> Mapping[str, Person]:
        """The people whose memories this persona may write here (R17, T10)."""
        tenant, store = self._deps.tenant, self._deps.store
        who, *people = store.load_many(
            [(persona_stream(tenant, persona), PERSONA), *((person_stream(tenant, u), PERSON) for u in authors)]
        )
        if who.state.deleted or not who.state.learns:
            return {}
        server = Server() if here.server is None else store.load(server_stream(tenant, here.server), SERVER).state
        place = Place(here.server, here.channel, ())
        return {
            user: one.state
            for user, one in zip(authors, people, strict=True)
            if may_use_person(persona, user, one.state, place, authors, server)
        }

    def _load(self, persona: str, user: str) -> ListLoaded:
        key = ListKey(persona, "personal", user)
        return self._remember.load(list_stream(self._deps.tenant, key), key)

    # -- the question ----------------------------------------------------------------------------------------------

    def _ask(self, found: _Pass, model: ChatModel) -> tuple[list[_Wanted], int, float | None]:
        """What the model wants, how much of it code drops, and what the question cost."""
        known = [(u, m) for u in found.people for m in found.lists[u].memories.values()]
        told = prompts.instructions(
            "deep", user=" and ".join(found.people), most=found.policy.deep_changes,
            characters=found.policy.max_characters,
        )  # fmt: skip
        remembered = "\n".join(f"M{n} {m.text}" for n, (_, m) in enumerate(known, start=1)) or "Nothing yet."
        most = max(SHORTEST, found.policy.model_context // 2 // len(found.messages))
        asked = f"REMEMBERED\n{remembered}\n\nMESSAGES\n{of_messages(found.messages, most)}"
        try:
            answer = model.ask(told, asked, prompts.DeepChanges, timeout=self._deps.settings.chat_model_timeout)
        except ModelFailed as failed:
            raise DeepPassFailed(failed.reason, hint=failed.hint, again=failed.again) from failed
        wanted: list[_Wanted] = []
        for c in answer.value.changes:
            one = None if len(wanted) == found.policy.deep_changes else self._wanted(found, c, known)
            if one is not None:
                wanted.append(one)
        return wanted, len(answer.value.changes) - len(wanted), answer.cost

    @staticmethod
    def _wanted(found: _Pass, c: prompts.DeepChange, known: Sequence[tuple[str, Any]]) -> _Wanted | None:
        """A change with its list, or None for what is no memory (C9, C18), of nobody here, or of no message."""
        heard = prompts.numbered(found.messages, c.messages)
        target = known[c.memory - 1] if c.memory is not None and 1 <= c.memory <= len(known) else None
        if not heard or (c.action != "save" and target is None):
            return None
        authors = [m.author for m in heard if m.role == "user" and m.author in found.people]
        user = target[0] if c.action != "save" and target else next(iter(authors), "")
        if not user and len(found.people) == 1:
            user = found.people[0]
        draft = Draft((c.text or "").strip(), c.about, c.until, tuple(m.id for m in heard))
        said = [Heard(m.author, m.text) for m in heard]
        if not user or (c.action != "delete" and fault(draft, found.policy.max_characters, said) is not None):
            return None
        return _Wanted(user, c.action, None if c.action == "save" or not target else target[1].id, draft)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _keep_vectors(self, persona: str, wanted: Sequence[_Wanted]) -> None:
        """So that what is saved is found at once; without a model it is embedded later (D22)."""
        texts = [(ListKey(persona, "personal", w.user).owner, w.draft.text) for w in wanted if w.action != "delete"]
        if texts and (vectors := self._vectors.of_passages([t for _, t in texts], timeout=EMBED_SECONDS)):
            self._vectors.keep([(owner, text, v) for (owner, text), v in zip(texts, vectors, strict=True)])

    def _write(
        self, here: ChatHome, at: Loaded[DeepState], found: _Pass, wanted: Sequence[_Wanted], dropped: int,
        model: ChatModel, cost: float | None,
    ) -> None:  # fmt: skip
        """All of it in one append, under the versions that it was decided on.

        Raises:
            VersionConflict: something was said, or remembered, meanwhile: it is decided again, and not asked again.
        """
        tenant, now = self._deps.tenant, self._deps.now()
        texts = {m.id: m.text for m in self._chats.present(here, [m.id for m in found.messages])}
        same = {m.id for m in found.messages if texts.get(m.id) == m.text}
        still = [w for w in wanted if same.issuperset(w.draft.messages)]
        loaded = {user: self._load(found.persona, user) for user in dict.fromkeys(w.user for w in still)}
        done = _Written(refused=dropped + len(wanted) - len(still))
        batches = []
        for user, one in loaded.items():
            key = ListKey(found.persona, "personal", user)
            stream = list_stream(tenant, key)
            ctx = self._remember.context(one, key, "deep", now.date(), None, None, stream)
            self._change(one, stream, ctx, here, [w for w in still if w.user == user], done, now)
            if done.events.get(user):
                batches.append(batch_of(stream, done.events[user], one, key))
        event = e.DeepMemoryRead(
            id=make_id(here.stream.bytes[0]), tenant=tenant, actor="deep", chat=here.key, upto=found.upto,
            messages=len(found.messages), changes=tuple(done.changes), left_out=done.refused, full=done.full,
            model=model.name, cost=cost,
        )  # fmt: skip
        self._deps.store.append(
            [Batch(here.stream, [event], at.version, (here.home,)), *batches],
            request=Request(tenant, here.stream.bytes[0], verb="deep_memory"), now=now,
        )  # fmt: skip

    def _change(
        self, one: ListLoaded, stream: UUID, ctx: Context, here: ChatHome, wanted: Sequence[_Wanted], done: _Written,
        now: datetime,
    ) -> None:  # fmt: skip
        """What the domain makes of the changes of one list; a full list ends the pass (R16)."""
        state, events = one.list, done.events.setdefault(wanted[0].user if wanted else "", [])
        for w in wanted:
            if done.full:
                done.refused += 1
                continue
            try:
                made, changed = self._decide(state, stream, ctx, here, w)
            except ListFull:
                done.full = True
                done.refused += 1
            except RemembrancerError:
                done.refused += 1
            else:
                state = with_events(state, made, stream, one.version + len(events), now)
                events += made
                done.changes += [] if changed is None else [changed]

    @staticmethod
    def _decide(
        state: MemoryList, stream: UUID, ctx: Context, here: ChatHome, w: _Wanted
    ) -> tuple[tuple[e.Event, ...], e.DeepChanged | None]:
        d = w.draft
        if w.memory is None:
            source = e.Source(chat=here.key, messages=tuple(str(m) for m in d.messages))
            new = NewMemory(d.text, d.until, source=source)
            saved = lists.save(state, new, ctx, memory=make_id(stream.bytes[0]))
            told = e.DeepChanged(list=stream, memory=saved.memory, kind="saved", messages=d.messages)
            return saved.events, None if saved.duplicate else told
        if w.action == "update":
            made = lists.edit(state, w.memory, ctx, text=d.text, until=d.until)
            return made, e.DeepChanged(list=stream, memory=w.memory, kind="updated", messages=d.messages)
        made = lists.delete(state, w.memory, ctx)
        return made, e.DeepChanged(list=stream, memory=w.memory, kind="deleted", messages=d.messages)

    # -- taking back -----------------------------------------------------------------------------------------------

    def forget_gone(self, stream: UUID) -> None:
        """Delete memories of this chat none of whose messages is there any more, unless they are pinned or a person has
        edited them (D14). A person can restore them."""
        here, state = self._chats.by_stream(stream), self._deps.store.load(stream, DEEP).state
        if here is None or not state.changes or state.lost == self._looked.get(stream, 0):
            return
        at = {"shard": stream.bytes[0], "chat": stream}

        def passes(conn: Connection[Any]) -> list[e.Recorded]:
            return list(self._deps.store.decode(conn.execute(_SQL["passes"], at).fetchall(), conn))

        learned = [
            c
            for r in self._deps.store.database.run(passes)
            if isinstance(r.event, e.DeepMemoryRead)
            for c in r.event.changes
            if c.kind == "saved" and c.messages
        ]
        there = {m.id for m in self._chats.present(here, list({m for c in learned for m in c.messages}))}
        gone = [c for c in learned if there.isdisjoint(c.messages)]
        for c in gone:
            with suppress(NotFound):  # erased meanwhile
                self._forget(c, self._finder.home(c.memory).key)
        self._looked[stream] = state.lost

    def _forget(self, c: e.DeepChanged, key: ListKey) -> None:
        for _ in range(MOST_TRIES):
            one = self._remember.load(c.list, key)
            m = one.list.memories.get(c.memory)
            if m is None or m.pinned or m.protected:
                return
            ctx = self._remember.context(one, key, "system", self._deps.now().date(), None, None, c.list)
            try:
                self._deps.store.append(
                    [batch_of(c.list, lists.delete(one.list, c.memory, ctx), one, key)],
                    request=Request(self._deps.tenant, c.list.bytes[0], verb="deep_memory"), now=self._deps.now(),
                )  # fmt: skip
            except VersionConflict:
                continue
            return

    # -- reading ---------------------------------------------------------------------------------------------------

    def view(self, here: ChatHome, error: str | None) -> DeepMemoryView:
        """What a person is shown of deep memory in a chat. `error`: of the work on this chat, if it failed."""
        state = self._deps.store.load(here.stream, DEEP).state
        failed = error.removeprefix(FAILED) if error is not None and error.startswith(FAILED) else None
        why_not = self._why_not(here)
        return DeepMemoryView(
            active=why_not is None, why_not=why_not, failed=failed, messages=state.messages, changes=state.changes,
            cost=state.cost, full=state.full,
        )  # fmt: skip

    def _why_not(self, here: ChatHome) -> str | None:
        if here.platform != "web":
            return f"this is a chat of the platform {here.platform}, and deep memory is for web chats"
        if self._deps.settings.chat_model is None:
            return "no chat model is configured (REMEMBRANCER_CHAT_MODEL)"
        streams = [(person_stream(self._deps.tenant, u), PERSON) for u in here.users]
        entitled = [u for u, p in zip(here.users, self._deps.store.load_many(streams), strict=True)
                    if p.state.deep_memory] if streams else []  # fmt: skip
        if not entitled:
            return "it is on for nobody here (`person set --deep-memory`)"
        if not any(self._settings(here, persona, entitled) for persona in here.personas):
            return "the persona does not learn from them here (R17)"
        return None
