"""A reply: search and desk, from the newest message to the two blocks of a prompt (DESIGN 5, T2-T8, T17, D1-D3).

`Recall.reply` reads from top to bottom as the six steps. What fails on the way (the model, Redis) degrades the reply
and never fails it (T8).
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.chat import Chat, chat_home, default_chat
from remembrancer.domain.documents import Document
from remembrancer.domain.errors import InvalidInput, NotAllowed, Refused
from remembrancer.domain.identity import (
    Subject,
    chat_stream,
    check_key,
    list_stream,
    person_stream,
    persona_stream,
    server_stream,
    shard_of,
)
from remembrancer.domain.matching import Scored, choose_matches, rank
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import RENDERER, fingerprint, in_print_order, render_late, render_prefix
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.domain.transcript import Message
from remembrancer.domain.visibility import NOBODY_ELSE, Place, ages, lists_in_play
from remembrancer.domain.window import LEVELS, Detail, level_for
from remembrancer.services import candidates
from remembrancer.services.answers import (
    Late,
    MatchView,
    MemoryView,
    Prefix,
    ReplyAnswer,
    Search,
    SummaryView,
    WindowView,
)
from remembrancer.services.chats import Chats, owners_of, view_of
from remembrancer.services.checks import checked_number, checked_platform, checked_text
from remembrancer.services.clock import make_id
from remembrancer.services.deps import CHAT, PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.desk_reader import Desk, Scene, line_of, read_desk
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector
from remembrancer.services.live_reader import LiveMessages, Said, read_live
from remembrancer.services.remember import names
from remembrancer.services.requests import positions, request_for
from remembrancer.services.shelf_reader import (
    Asked,
    Excerpts,
    find_passages,
    in_play,
    passage_threshold,
    shelves_of,
    with_texts,
    without_texts,
)
from remembrancer.services.store import Appended, Batch, Request, VersionConflict
from remembrancer.services.tokens import count_tokens
from remembrancer.services.turns import Turns
from remembrancer.services.undo import Taken, Undo

log = logging.getLogger("remembrancer")
MOST_TRIES = 20
_NO_MODEL = "no embedding model is configured (T11)"


@dataclass(slots=True)
class _Play:
    """Who talks where: what was asked for, checked, and the settings that bear on it."""

    persona_key: str
    users: tuple[str, ...]
    place: Place
    chat: str
    home: Subject
    platform: str
    persona: Persona
    server: Server
    people: Mapping[str, Person]
    chat_state: Chat
    policy: Policy
    policy_version: int
    settings: dict[UUID, int]
    documents: list[Document]
    members: Mapping[str, Persona]
    """The other personas of a group."""
    named: bool
    """Does the caller name the chat (D26)?"""

    @property
    def detail(self) -> Detail:
        """How much of the conversation is kept (R3)."""
        author = self.people.get(self.users[0]) if self.users else None
        chosen = None if author is None else author.details.get(self.persona_key)
        began = self.chat_state.platform  # a chat of Discord's stays one, whatever a reply leaves out
        where = began if began in ("discord", "telegram") else self.platform
        return level_for(where, chosen, self.persona.detail)


@dataclass(slots=True)
class _Found:
    """What the search came to."""

    status: Any
    reason: str | None = None
    candidates: Sequence[e.Candidate] = ()
    views: Mapping[UUID, MemoryView] = field(default_factory=dict)
    list_no: Mapping[UUID, int] = field(default_factory=dict)
    threshold: float | None = None
    model: str | None = None


class Recall:
    """Replies. See the module."""

    def __init__(self, deps: Deps, turns: Turns, undo: Undo, chats: Chats) -> None:
        self._deps = deps
        self._undo = undo
        self._turns = turns
        self._chats = chats
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="remembrancer-embed")

    def close(self) -> None:
        """Give the threads back."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def reply(
        self,
        persona: str,
        *,
        message: str,
        users: Sequence[str],
        server: str | None,
        channel: str | None,
        tags: Sequence[str],
        chat: str | None,
        platform: str | None,
        turn: str | None,
        memory: str,
        model_context: int | None,
        request_id: str | None,
    ) -> ReplyAnswer:
        """One reply. See `Remembrancer.reply`."""
        now = self._deps.now()
        asked = _checked(persona, message, users, server, channel, tags, chat, platform, turn, memory, model_context)
        home_chat = (
            chat if chat is not None else default_chat(persona, server=server, channel=channel, users=asked.users)
        )
        for tries in range(MOST_TRIES):
            known = self._chats.find(chat) if chat is not None else None
            home = known.home if known is not None else chat_home(home_chat, server=server, users=asked.users)
            request = self._request(home, request_id, message, memory, turn, asked, home_chat)
            if request_id is not None and (before := self._deps.store.find(request)) is not None:
                return self._answered(before, asked)
            try:
                return self._once(
                    asked, message, home_chat, home, platform, turn, memory, request, now, named=chat is not None
                )
            except VersionConflict:  # a new attempt takes back the old one; a new chat takes its name
                time.sleep(0.002 * 2 ** min(tries, 5))
        raise Refused("Too much happens to these lists at once.", rule="D19", hint="Ask again.")

    def _once(
        self,
        asked: _Asked,
        message: str,
        home_chat: str,
        home: Subject,
        platform: str | None,
        turn: str | None,
        memory: str,
        request: Request,
        now: datetime,
        *,
        named: bool,
    ) -> ReplyAnswer:
        """The steps of a reply (DESIGN 5). A turn that comes again is taken back first, in the same append (D19)."""
        persona, request_id = asked.persona, request.request_id
        # 1. lists in play and what is hidden
        play = self._settings(persona, asked, home_chat, home, platform, named=named)
        why_not = self._why_no_search(play, message, memory)
        keys = [] if memory == "off" else lists_in_play(
            persona, play.place, play.users, persona=play.persona, server=play.server, people=play.people,
            members=play.members,
        )  # fmt: skip
        embedder = self._deps.embedder  # the one that serves as far as we know: the search notices if another does
        model = embedder.model if embedder else None
        streams = [list_stream(self._deps.tenant, key) for key in keys]
        scene = Scene(keys, streams, play.place, now, play.policy, self._deps.tenant, model, persona)

        # 2. the desk, and the embedding of the message, side by side
        searched = why_not is None and bool(keys)
        documents = self._documents(play, message, memory)
        embeds = embedder is not None and (searched or bool(documents))
        embedding = self._pool.submit(self._embed, embedder, message) if embeds else None
        attempt = 1 if turn is None else self._attempt(turn, play.chat)
        taken = [] if turn is None or attempt == 1 else self._undo.taken_back(turn, request_id)
        states = {t.home.stream: t.after for t in taken if t.events}
        turn_id = turn if turn is not None else str(make_id(shard_of(self._deps.tenant, home)))
        said = self._said(play, message, turn_id, attempt, memory)

        def read(conn: Connection[Any]) -> tuple[Desk, str, LiveMessages]:
            desk = read_desk(conn, self._deps.store, scene, states)
            text = render_prefix(play.persona.instructions, list(zip(scene.keys, desk.order, strict=True)), desk.lines)
            more = play.policy.document_tokens if documents else 0
            return desk, text, self._live(conn, play, asked.model_context, text, said, memory, more)

        desk, prefix, live = self._deps.store.database.run(read)

        # 3. candidates and scores
        found = self._search(embedding if searched else None, why_not, message, scene, desk)
        excerpts = self._excerpts(embedding, documents, found, message, scene)

        # 4. matches, recalled, day tick
        _count_taken_back(desk, taken)
        batches, recalled = self._facts(
            play, scene, desk, found, excerpts, turn_id, attempt, request_id, memory, said, live
        )
        batches = _behind(taken, batches)

        # 5. one append, 6. the answer
        answer = self._answer(play, scene, desk, found, recalled, excerpts, turn_id, attempt, prefix, live)
        if request_id is not None:
            kept = zlib.compress(orjson.dumps(_to_keep(answer).model_dump(mode="json")), 1)
        else:
            kept = b"" if turn is None else uuid4().bytes  # so that this call knows itself again
            request = request if turn is None else replace(request, once=f"{attempt}/{turn}")
        done = self._deps.store.append(batches, request=request, answer=kept, now=now)
        if not done.fresh:
            if request_id is None:
                raise VersionConflict(f"the turn {turn!r} has an attempt {attempt} by now")
            return self._answered(done, asked)
        return answer.model_copy(update={"positions": positions(done)})

    def _attempt(self, turn: str, chat: str) -> int:
        """Which attempt of its turn this is (D19).

        Raises:
            NotAllowed: the turn was played in another chat. A fork inherits what was said, but undoes only turns of its
                own (D14).
        """
        attempt, where = self._turns.next_attempt(turn)
        if where not in (None, chat):
            raise NotAllowed(
                f"The turn {turn!r} was played in the chat {where!r}.", rule="D19",
                hint="The id of a turn is one for all chats: give this one another, or leave it out.",
            )  # fmt: skip
        return attempt

    # -- 1 ---------------------------------------------------------------------------------------------------------

    def _settings(
        self, persona: str, asked: _Asked, chat: str, home: Subject, platform: str | None, *, named: bool
    ) -> _Play:
        """All settings that bear on the reply, as of one moment, in one round trip."""
        tenant = self._deps.tenant
        wanted: list[tuple[UUID, Any]] = [
            (self._deps.tenant_stream, TENANT),
            (persona_stream(tenant, persona), PERSONA),
            (chat_stream(tenant, chat, home), CHAT),
            *((person_stream(tenant, user), PERSON) for user in asked.users),
        ]
        if asked.place.server is not None:
            wanted.append((server_stream(tenant, asked.place.server), SERVER))
        shelves = shelves_of(tenant, persona, asked.place.server)
        both = self._deps.store.load_many([*wanted, *shelves])
        loaded, on_shelves = both[: len(wanted)], both[len(wanted) :]
        policy, version = self._deps.policy(loaded[0])
        people = {user: loaded[3 + n].state for n, user in enumerate(asked.users)}
        server = loaded[-1].state if asked.place.server is not None else Server()
        versions = {stream: one.version for (stream, _), one in zip(wanted, loaded, strict=True) if one.version}
        versions.pop(wanted[2][0], None)
        documents = in_play([one.state for one in on_shelves], asked.place, policy)
        if loaded[1].state.deleted:
            documents = []
        return _Play(
            persona, asked.users, asked.place, chat, home, platform or loaded[2].state.platform or "api",
            loaded[1].state, server, people, loaded[2].state, policy, version, versions, documents,
            self._members(loaded[2].state, persona, chat), named,
        )  # fmt: skip

    def _members(self, chat: Chat, persona: str, name: str) -> Mapping[str, Persona]:
        """The other personas of a group (R11); a chat that came into being with a reply is none (D26).

        Raises:
            NotAllowed: the persona is no member.
        """
        if not chat.is_group:
            return NOBODY_ELSE
        if persona not in chat.personas:
            raise NotAllowed(
                f"{persona} is not a member of the chat {name!r}.", rule="D26",
                hint=f"Its members are {', '.join(chat.personas)}.",
            )  # fmt: skip
        others = [key for key in chat.personas if key != persona]
        loaded = self._deps.store.load_many([(persona_stream(self._deps.tenant, key), PERSONA) for key in others])
        return {key: one.state for key, one in zip(others, loaded, strict=True)}

    def _why_no_search(self, play: _Play, message: str, memory: str) -> str | None:
        """Why this reply has no search at all: then nothing ticks either (T11, D30, R17). None if it has one."""
        if memory == "off":
            return "this chat has no memory (R17)"
        if self._deps.embedder is None:
            return _NO_MODEL
        if not play.policy.decay_enabled:
            return "memory decay is off (T11)"
        if not play.persona.learns:
            return "the persona does not learn from chat (R17)"
        if not message.strip():
            return "the message has no text (D30)"
        return None

    def _request(
        self,
        home: Subject,
        request_id: str | None,
        message: str,
        memory: str,
        turn: str | None,
        asked: _Asked,
        chat: str,
    ) -> Request:
        tenant = self._deps.tenant
        owners = [Subject("user", user) for user in asked.users]
        if asked.place.server is not None:
            owners.append(Subject("server", asked.place.server))
        body = {"asked": asked, "message": message, "memory": memory, "turn": turn, "chat": chat}
        keep = tuple(owners) if request_id is not None else ()
        return request_for(tenant, shard_of(tenant, home), "reply", request_id, body, keep)

    def _said(self, play: _Play, message: str, turn: str, attempt: int, memory: str) -> Said | None:
        """The newest message as one of the chat, if it is kept: it has a text, and the chat has a memory (R17)."""
        if memory == "off" or not message.strip():
            return None
        now, author = self._deps.now(), play.users[0] if play.users else ""
        new = Message(
            2**62,
            make_id(self._stream(play).bytes[0]),
            "user",
            author,
            message,
            count_tokens(message),
            now,
            turn,
            attempt,
        )
        return Said(new, turn, attempt > 1)

    def _live(
        self, conn: Connection[Any], play: _Play, context: int | None, prefix: str, said: Said | None, memory: str,
        documents: int,
    ) -> LiveMessages:  # fmt: skip
        """The messages of the chat that this reply sends (R2, D16)."""
        if memory == "off":
            return LiveMessages((), 0, 0, 0, 0)
        policy = play.policy
        context = context or policy.model_context
        late = min(policy.match_limit * policy.max_characters + documents, context // 8)
        return read_live(
            conn, self._deps.store, self._stream(play), level=LEVELS[play.detail], context=context, said=said,
            room=context - policy.answer_tokens - count_tokens(prefix) - late,
        )  # fmt: skip

    def _stream(self, play: _Play) -> UUID:
        return chat_stream(self._deps.tenant, play.chat, play.home)

    # -- 2 and 3 ---------------------------------------------------------------------------------------------------

    def _embed(self, embedder: Embedder | None, message: str) -> Vector:
        assert embedder is not None
        return embedder.embed_query(message, timeout=self._deps.settings.embed_timeout)

    def _search(
        self, embedding: Future[Vector] | None, why_not: str | None, message: str, scene: Scene, desk: Desk
    ) -> _Found:
        if embedding is None:
            return _Found("off", why_not or "nobody's memories are in play")
        vector = self._vector(embedding)
        if isinstance(vector, str):
            return _Found("unavailable", vector)
        threshold = self._deps.threshold(scene.policy, scene.model)
        if threshold is None:
            return _Found("unavailable", _no_threshold(scene))

        def work(conn: Connection[Any]) -> Sequence[candidates.Row]:
            return candidates.find(conn, scene, desk, message, vector)

        try:
            rows = self._deps.store.database.run(work)
        except candidates.OtherModel:  # a switch since the message was embedded (D23)
            serving = self._deps.models.look_again()
            if serving is None or serving.model == scene.model:
                return _Found("unavailable", "the embedding model has just been changed")
            again = self._pool.submit(self._embed, serving, message)
            return self._search(again, None, message, scene._replace(model=serving.model), desk)
        ranked = rank(Scored(r.view.id, r.list_no, r.score, r.similarity, r.words, r.view.created_at) for r in rows)
        chosen = choose_matches(ranked, threshold=threshold, match_limit=scene.policy.match_limit, on_desk=desk.ids)
        views = {r.view.id: r.view for r in rows}
        return _Found("ok", None, chosen, views, {r.view.id: r.list_no for r in rows}, threshold, scene.model)

    def _vector(self, embedding: Future[Vector]) -> Vector | str:
        """The vector of the message, or why there is none."""
        try:
            return embedding.result(timeout=self._deps.settings.embed_timeout + 1.0)
        except EmbedderFailed as failed:
            return failed.reason
        except TimeoutError:
            embedding.cancel()
            return "the embedding did not come in time"

    def _documents(self, play: _Play, message: str, memory: str) -> list[Document]:
        """The documents that this reply looks through: with decay off, too (T11), but not in a challenge chat (R17)."""
        return [] if memory == "off" or not message.strip() else play.documents

    def _excerpts(
        self, embedding: Future[Vector] | None, documents: Sequence[Document], found: _Found, message: str, scene: Scene
    ) -> Excerpts:
        """What the documents in play say, found by the vector that the memories were searched with (T17)."""
        if not documents:
            return Excerpts()
        if embedding is None:
            return Excerpts(missing=_NO_MODEL)
        if found.status == "unavailable":
            return Excerpts(missing=found.reason)
        vector = self._vector(embedding)
        if isinstance(vector, str):
            return Excerpts(missing=vector)
        assert scene.model is not None
        if (threshold := passage_threshold(scene.policy, scene.model)) is None:
            return Excerpts(missing=_no_threshold(scene))
        asked = Asked(scene.tenant, message, vector, scene.model, threshold, scene.policy)
        store = self._deps.store
        return Excerpts(store.database.run(lambda conn: find_passages(conn, store, documents, asked)))

    # -- 4 ---------------------------------------------------------------------------------------------------------

    def _facts(
        self,
        play: _Play,
        scene: Scene,
        desk: Desk,
        found: _Found,
        excerpts: Excerpts,
        turn: str,
        attempt: int,
        request_id: str | None,
        memory: str,
        said: Said | None,
        live: LiveMessages,
    ) -> tuple[list[Batch], list[UUID]]:
        """The events of this reply: the chat's record, and on each list its day tick and its matches."""
        tenant = self._deps.tenant
        stream = chat_stream(tenant, play.chat, play.home)
        matched = [c for c in found.candidates if c.matched]
        recalled = [c.memory for c in matched if c.recalled]

        def stamp(shard: int) -> dict[str, Any]:
            return {
                "id": make_id(shard), "tenant": tenant, "actor": "persona", "request_id": request_id, "turn": turn,
            }  # fmt: skip

        seen_lists = tuple(
            e.ListSeen(stream=x.stream, version=x.version, hidden=x.hidden, seen=x.seen, found_at=x.found_at)
            for x in desk.lists
            if x.version
        )
        record = e.ReplySearched(
            **stamp(stream.bytes[0]), chat=play.chat, attempt=attempt, persona=play.persona_key, users=play.users,
            server=play.place.server, channel=play.place.channel, tags=play.place.tags, platform=play.platform,
            day=scene.today, lists=seen_lists, settings=play.settings, policy=play.policy_version, renderer=RENDERER,
            prefix=tuple(i for ids in desk.order for i in ids), late=tuple(recalled),
            candidates=tuple(found.candidates), model=found.model,
            threshold=found.threshold, search=found.status, reason=found.reason, memory=memory == "on",
            asked_at=scene.now, conversation=live.sent,
        )  # fmt: skip
        events: list[e.Event] = []
        owners: tuple[Subject, ...] = (play.home,)
        if not play.chat_state.started:
            events.append(
                e.ChatStarted(
                    **stamp(stream.bytes[0]), chat=play.chat, personas=(play.persona_key,), platform=play.platform,
                    server=play.place.server, channel=play.place.channel, users=play.users,
                )
            )  # fmt: skip
        if attempt > 1:
            events.append(e.TurnRegenerated(**stamp(stream.bytes[0]), chat=play.chat, attempt=attempt))
        if said is not None and (new := _message_event(said.message, live.before, play.chat, stamp(stream.bytes[0]))):
            owners = owners_of(play.home, "user", new.author)
            events.append(new)
        events.append(record)
        events += excerpts.event(stamp(stream.bytes[0]), chat=play.chat, attempt=attempt, persona=play.persona_key)
        batches = [Batch(stream, events, None, owners)]
        if play.named and not play.chat_state.started:
            batches.append(self._chats.naming(play.chat, stream))
        if found.status != "ok":
            return batches, recalled
        for no, x in enumerate(desk.lists, start=1):
            whose = {"persona": x.key.persona, "scope": x.key.scope, "subject": x.key.subject, "day": scene.today}
            facts: list[e.Event] = []
            if x.members and ages(x.key, play.persona_key) and x.ticks(scene.today):
                facts.append(e.ListSearched(**stamp(x.stream.bytes[0]), **whose, hidden=x.hidden, seen=x.seen))
            here = tuple(e.Match(**c.model_dump(exclude={"matched"})) for c in matched if found.list_no[c.memory] == no)
            if here:
                facts.append(e.MemoriesMatched(**stamp(x.stream.bytes[0]), **whose, matches=here))
            if facts:
                batches.append(Batch(x.stream, facts, None, (x.key.owner,)))
        return batches, recalled

    # -- 6 ---------------------------------------------------------------------------------------------------------

    def _answer(
        self, play: _Play, scene: Scene, desk: Desk, found: _Found, recalled: Sequence[UUID], excerpts: Excerpts,
        turn: str, attempt: int, text: str, live: LiveMessages,
    ) -> ReplyAnswer:  # fmt: skip
        on_desk = [desk.views[i] for i in in_print_order(desk.order, desk.lines)]
        late_views = [found.views[i] for i in recalled]
        recent = [n for n, v in enumerate(on_desk, start=1) if v.recent]
        late_text = render_late([line_of(v, play.persona_key) for v in late_views], recent, scene.policy.recent_days)
        shown = [MatchView(**c.model_dump(), text=found.views[c.memory].text) for c in found.candidates]
        return ReplyAnswer(
            turn=turn,
            attempt=attempt,
            chat=play.chat,
            prefix=Prefix(text=text, fingerprint=fingerprint(text), memories=on_desk),
            late=Late(
                text=excerpts.beside(late_text), recalled=late_views, documents=list(excerpts.passages),
                documents_missing=excerpts.missing,
            ),
            search=Search(
                status=found.status,
                reason=found.reason,
                model=found.model,
                threshold=found.threshold,
                matches=[m for m in shown if m.matched],
                candidates=shown,
            ),
            summary=SummaryView(
                text=live.summary.text, tokens=live.summary.tokens, summaries=[s.id for s in live.summary.standing]
            ),
            messages=[view_of(m) for m in live.messages],
            window=WindowView(
                detail=play.detail, messages=live.window, tokens=sum(m.tokens for m in live.messages), total=live.total,
                unsummarised=live.unsummarised, unsent=live.unsent,
            ),
        )  # fmt: skip

    def _answered(self, done: Appended, asked: _Asked) -> ReplyAnswer:
        """The first answer to a request that came again (D19), with messages, summary and passages as they are now."""
        if not done.answer:
            raise NotAllowed(
                "This request was answered before, and whom it was about has been erased since.",
                rule="D24",
                hint="Use a new request_id.",
            )
        answer = ReplyAnswer.model_validate_json(zlib.decompress(done.answer))
        now = self._chats.texts([m.id for m in answer.messages])
        messages = [m.model_copy(update={"text": now[m.id]}) for m in answer.messages if m.id in now]
        late, store = answer.late, self._deps.store
        if late.documents:
            loaded = store.load_many(shelves_of(self._deps.tenant, asked.persona, asked.place.server))
            shelves = [one.state for one in loaded]
            late = store.database.run(lambda conn: with_texts(conn, store, answer.late, shelves))
        summary = self._chats.summary_now(answer.chat) if answer.summary.text else answer.summary
        present = {"messages": messages, "summary": summary, "late": late}
        return answer.model_copy(update={"positions": positions(done)} | present)


def _count_taken_back(desk: Desk, taken: Sequence[Taken]) -> None:
    """The versions that this reply sees are those after the old attempt was taken back: `at` reads up to there."""
    events = {t.home.stream: len(t.events) for t in taken}
    for x in desk.lists:
        x.version += events.get(x.stream, 0)


def _behind(taken: Sequence[Taken], batches: Sequence[Batch]) -> list[Batch]:
    """What takes back the old attempt stands first on each list, and what the new one did behind it."""
    facts = {batch.stream: batch for batch in batches}
    joined = []
    for t in taken:
        if t.events:
            new = facts.pop(t.home.stream, None)
            events = [*t.events, *(new.events if new else ())]
            joined.append(Batch(t.home.stream, events, t.version, (t.home.key.owner,)))
    return [*facts.values(), *joined]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The checked input of a reply."""

    persona: str
    users: tuple[str, ...]
    place: Place
    platform: str | None
    model_context: int | None

    def __str__(self) -> str:
        return repr(self)


def _checked(
    persona: str,
    message: object,
    users: object,
    server: str | None,
    channel: str | None,
    tags: Sequence[str],
    chat: str | None,
    platform: str | None,
    turn: str | None,
    memory: str,
    model_context: object,
) -> _Asked:
    check_key("persona", persona)
    checked_text("message", message)
    if platform is not None:
        checked_platform(platform)
    if memory not in ("on", "off"):
        raise InvalidInput(f"memory is on or off, not {memory!r}.", rule="R17")
    for what, name in (("server", server), ("channel", channel), ("chat", chat), ("turn", turn)):
        if name is not None:
            check_key(what, name)
    people = names("user", users, in_order=True)
    context = None if model_context is None else checked_number("model_context", model_context, 1_000, 10_000_000)
    return _Asked(persona, people, Place(server, channel, names("tag", tags)), platform, context)


def _to_keep(answer: ReplyAnswer) -> ReplyAnswer:
    """What is kept for a repetition: of messages, summary and passages which they are, since a chat and a shelf keep
    their texts, and may lose them (D24)."""
    messages = [m.model_copy(update={"text": ""}) for m in answer.messages]
    summary = answer.summary.model_copy(update={"text": "-" if answer.summary.text else ""})
    return answer.model_copy(update={"messages": messages, "summary": summary, "late": without_texts(answer.late)})


def _no_threshold(scene: Scene) -> str:
    return f"no threshold is known for {scene.model}: run `calibrate` (D5)"


def _message_event(
    said: Message, before: Message | None, chat: str, stamp: dict[str, Any]
) -> e.MessagePosted | e.MessageEdited | None:
    """How the newest message is recorded: nothing where the turn comes again with the same one."""
    stamp = stamp | {"actor": "person"}
    if before is None:
        return e.MessagePosted(
            **stamp, chat=chat, message=said.id, role="user", author=said.author, text=said.text, tokens=said.tokens,
            attempt=said.attempt,
        )  # fmt: skip
    if before.text == said.text:
        return None
    return e.MessageEdited(
        **stamp, chat=chat, message=before.id, author=before.author, text=said.text, tokens=said.tokens
    )
