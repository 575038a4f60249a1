"""Chats: what is said in them, worded anew, taken out, and where a chat goes on as another one (R1, D18, D26, D31).

Messages are facts: whoever posts does not have to know what else was said. A message's text is sealed under the keys of
the chat's home and of whoever wrote it, so that erasing either makes it unreadable (D24).
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.chat import home_of
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound
from remembrancer.domain.identity import Subject, chat_name_stream, chat_stream, check_key
from remembrancer.domain.summaries import Summaries
from remembrancer.domain.transcript import Message, Role, Transcript
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import MessageView, SummaryView
from remembrancer.services.answers_chat import ChatView, DeepMemoryView, MessagesAnswer, PostAnswer
from remembrancer.services.checks import (
    answer_erased,
    checked_moment,
    checked_number,
    checked_text,
    checked_turn,
    shown,
)
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.live_reader import read_conversation, read_summary
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch, Request, VersionConflict
from remembrancer.services.tail import unread
from remembrancer.services.tokens import count_tokens
from remembrancer.services.turns import Turns
from remembrancer.services.waiting import Waiting

_SQL = load_queries("remembrancer.services", "chats")
_SUMMARIES = load_queries("remembrancer.services", "summaries")
LONGEST_MESSAGE = 200_000
"""Code points: more is a document."""


@dataclass(frozen=True, slots=True)
class ChatHome:
    """A chat that there is: its stream, whose shard and key it lives under, and who talks where."""

    stream: UUID
    key: str
    home: Subject
    personas: tuple[str, ...]
    platform: str
    server: str | None
    channel: str | None
    users: tuple[str, ...]
    parent: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """A message and its chat."""

    chat: ChatHome
    message: Message


class Chats:
    """Commands and look-ups of chats. See the module."""

    def __init__(self, deps: Deps, turns: Turns, waiting: Waiting) -> None:
        self._deps = deps
        self._turns = turns
        self._waiting = waiting
        self.on_gone: Callable[[UUID], None] | None = None
        """Told of a chat's stream when messages of it have gone."""
        self.deep_memory: Callable[[ChatHome, str | None], DeepMemoryView] | None = None
        """What is shown of deep memory in a chat."""

    # -- finding ---------------------------------------------------------------------------------------------------

    def find(self, key: str) -> ChatHome | None:
        """The chat of this tenant that goes by a name, or None; one that the tables do not know yet is found, too."""

        def work(conn: Connection[Any]) -> list[ChatHome]:
            ahead = [
                _of_event(r)
                for r in unread(conn, self._deps.store, "conversation", kinds=[e.ChatStarted, e.ChatForked])
                if isinstance(r.event, e.ChatStarted | e.ChatForked)
                and r.event.chat == key
                and r.event.tenant == self._deps.tenant
            ]
            rows = conn.execute(_SQL["chat_by_key"], {"tenant": self._deps.tenant, "key": key}).fetchall()
            known = [_of_row(row) for row in rows]
            return sorted({c.stream: c for c in [*ahead, *known]}.values(), key=lambda c: c.stream)

        found = self._deps.store.database.run(work)
        return found[0] if found else None

    def require(self, key: object) -> ChatHome:
        """The chat of a name.

        Raises:
            InvalidInput: no name.
            NotFound: there never was one here; names near ones (D31, C23).
        """
        name = check_key("chat", key)
        if (found := self.find(name)) is not None:
            return found
        near = difflib.get_close_matches(name, self._keys(), n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(near)}?" if near else "It comes into being with its first reply or message."
        raise NotFound(f"There is no chat {name!r}.", rule="D31", hint=hint, near=near)

    def _keys(self) -> list[str]:
        def work(conn: Connection[Any]) -> list[str]:
            return [row[0] for row in conn.execute(_SQL["keys"], {"tenant": self._deps.tenant})]

        return self._deps.store.database.run(work)

    # -- saying ----------------------------------------------------------------------------------------------------

    def post(
        self,
        chat: str,
        *,
        text: str,
        author: str,
        role: Role,
        turn: str | None,
        said_at: datetime | None,
        ref: str | None,
        attempt: int | None,
        request_id: str | None,
    ) -> PostAnswer:
        """Put a message into a chat. See `Remembrancer.post`."""
        here = self.require(chat)
        content = checked_message(text)
        check_key("author", author)
        turn = checked_turn(turn)
        if attempt is not None:
            checked_number("attempt", attempt, 1, 2**31)
        if role not in ("user", "persona"):
            raise InvalidInput(f"{shown(role)} is not a role.", hint="Use user or persona.")
        said_at = checked_moment("said_at", said_at)
        if ref is not None:
            check_key("ref", ref)
        body = {
            "chat": chat,
            "text": content,
            "author": author,
            "role": role,
            "turn": turn,
            "said_at": said_at,
            "ref": ref,
        } | ({} if attempt is None else {"attempt": attempt})
        owners = owners_of(here.home, role, author)
        request = request_for(self._deps.tenant, here.stream.bytes[0], "post", request_id, body, owners)
        event = self.posted(
            here, content, author=author, role=role, turn=turn, said_at=said_at, ref=ref, request_id=request_id
        )
        if role == "persona" and attempt is not None and attempt != event.attempt:
            raise NotAllowed(
                f"This answers attempt {attempt} of the turn, and there is attempt {event.attempt}.", rule="D19",
                hint="The newer attempt has an answer of its own.",
            )  # fmt: skip
        now = self._deps.now()
        kept = {"message": event.message, "tokens": event.tokens}
        done = self._deps.store.append(
            [Batch(here.stream, [event], None, owners)], request=request, answer=orjson.dumps(kept), now=now
        )
        if done.answer is None:
            raise answer_erased()
        return PostAnswer(**orjson.loads(done.answer), chat=here.key, turn=turn, positions=positions(done))

    def posted(
        self, here: ChatHome, text: str, *, author: str, role: Role, turn: str | None, request_id: str | None,
        said_at: datetime | None = None, ref: str | None = None,
    ) -> e.MessagePosted:  # fmt: skip
        """The event of a message that was said here; an answer belongs to the newest attempt of its turn."""
        played = self._turns.find(turn) if role == "persona" else None
        shard = here.stream.bytes[0]
        return e.MessagePosted(
            id=make_id(shard), tenant=self._deps.tenant, actor=_actor(role), request_id=request_id, turn=turn,
            chat=here.key, message=make_id(shard), role=role, author=author, text=text, tokens=count_tokens(text),
            attempt=played.attempt if played else 1, said_at=said_at, ref=ref,
        )  # fmt: skip

    def edit(self, message: UUID, *, text: str, chat: str | None, request_id: str | None) -> PostAnswer:
        """Word a message anew. See `Remembrancer.edit_message`."""
        content = checked_message(text)
        body = {"message": message, "text": content, "chat": chat}
        if (before := self._answered("edit_message", message, request_id, body)) is not None:
            return before
        found = self._message(message, chat)
        m, here = found.message, found.chat
        owners = owners_of(here.home, m.role, m.author)
        request = request_for(self._deps.tenant, here.stream.bytes[0], "edit_message", request_id, body, owners)
        event = e.MessageEdited(
            id=make_id(here.stream.bytes[0]), tenant=self._deps.tenant, actor=_actor(m.role), request_id=request_id,
            turn=m.turn, chat=here.key, message=m.id, author=m.author, text=content, tokens=count_tokens(content),
        )  # fmt: skip
        return self._changed(request, here, event, owners, m.turn, event.tokens)

    def delete(self, message: UUID, *, chat: str | None, request_id: str | None) -> PostAnswer:
        """Take a message out of its chat. See `Remembrancer.delete_message`."""
        body = {"message": message, "chat": chat}
        if (before := self._answered("delete_message", message, request_id, body)) is not None:
            return before
        found = self._message(message, chat)
        m, here = found.message, found.chat
        owners = (here.home,)
        request = request_for(self._deps.tenant, here.stream.bytes[0], "delete_message", request_id, body, owners)
        event = e.MessageDeleted(
            id=make_id(here.stream.bytes[0]), tenant=self._deps.tenant, request_id=request_id, turn=m.turn,
            chat=here.key, message=m.id,
        )  # fmt: skip
        answer = self._changed(request, here, event, owners, m.turn, 0)
        if self.on_gone is not None:
            self.on_gone(here.stream)
        return answer

    def _answered(self, verb: str, message: UUID, request_id: str | None, body: dict[str, Any]) -> PostAnswer | None:
        """The first answer, if the request came before (D19): its message may be gone since. A message is in the shard
        of its chat."""
        if request_id is None:
            return None
        done = self._deps.store.find(request_for(self._deps.tenant, message.bytes[0], verb, request_id, body))
        if done is None:
            return None
        if not done.answer:
            raise answer_erased()
        return PostAnswer(**orjson.loads(done.answer), positions=positions(done))

    def _changed(
        self, request: Request, here: ChatHome, event: e.MessageEdited | e.MessageDeleted, owners: tuple[Subject, ...],
        turn: str | None, tokens: int,
    ) -> PostAnswer:  # fmt: skip
        kept = orjson.dumps({"message": event.message, "tokens": tokens, "chat": here.key, "turn": turn})
        batch = Batch(here.stream, [event], None, owners)
        done = self._deps.store.append([batch], request=request, answer=kept, now=self._deps.now())
        if done.answer is None:
            raise answer_erased()
        return PostAnswer(**orjson.loads(done.answer), positions=positions(done))

    # -- forking ---------------------------------------------------------------------------------------------------

    def fork(self, chat: str, *, to: str, message: UUID | None, request_id: str | None) -> ChatView:
        """Go on as another chat. See `Remembrancer.fork`."""
        here, tenant = self.require(chat), self._deps.tenant
        name = check_key("chat", to)
        stream = chat_stream(tenant, name, here.home)
        request = request_for(
            tenant, stream.bytes[0], "fork", request_id, {"chat": chat, "to": to, "message": message}, (here.home,)
        )
        if request_id is not None and (before := self._deps.store.find(request)) is not None:
            return answered_view(before)
        if self.find(name) is not None:
            raise NotAllowed(f"There is a chat {name!r} already.", rule="D18", hint="Choose another name for the fork.")
        whole, summaries, version = self.conversation(here.stream)
        present = [m for m in whole.messages.values() if m.gone is None]
        if message is not None and message not in {m.id for m in present}:
            raise no_such_message(message)
        upto = max((m.n for m in present if message is None or m.id == message), default=0)
        event = e.ChatForked(
            id=make_id(stream.bytes[0]), tenant=tenant, request_id=request_id, chat=name, parent=here.key,
            parent_stream=here.stream, upto=upto, at_version=version, home_kind=here.home.kind, home_key=here.home.key,
            personas=here.personas, platform=here.platform, server=here.server, channel=here.channel, users=here.users,
        )  # fmt: skip
        taken = Summaries()
        taken.inherit(summaries, upto)
        inherited = [m for m in present if m.n <= upto]
        cover = taken.cover()
        uncovered = sum(m.n - upto not in cover for m in inherited)
        view = ChatView(
            chat=name, personas=here.personas, platform=here.platform, server=here.server, channel=here.channel,
            users=here.users, messages=len(inherited), unsummarised=uncovered, parent=here.key,
        )  # fmt: skip
        try:
            done = self._deps.store.append(
                [Batch(stream, [event], 0, (here.home,)), self.naming(name, stream)], request=request,
                answer=orjson.dumps(view.model_dump(mode="json")), now=self._deps.now(),
            )  # fmt: skip
        except VersionConflict:
            raise NotAllowed(
                f"There is a chat {name!r} already.", rule="D18", hint="Choose another name for the fork."
            ) from None
        return answered_view(done)

    def naming(self, name: str, stream: UUID) -> Batch:
        """That a new chat goes by this name. Whoever comes second finds out, wherever the two would live.

        Where it is appended: VersionConflict if the name is taken.
        """
        names = chat_name_stream(self._deps.tenant, name)
        event = e.ChatNamed(id=make_id(names.bytes[0]), tenant=self._deps.tenant, name=name, stream=stream)
        return Batch(names, [event], 0)

    # -- reading ---------------------------------------------------------------------------------------------------

    def view(self, chat: str) -> ChatView:
        """A chat and how much was said in it. See `Remembrancer.chat`."""
        here = self.require(chat)
        self._waiting.settle()
        at = {"shard": here.stream.bytes[0], "chat": here.stream}

        def work(conn: Connection[Any]) -> tuple[int, int, str | None, Any]:
            row = conn.execute(_SQL["folded"], at).fetchone()
            assert row is not None
            parent = conn.execute(_SQL["key_of"], {"shard": here.stream.bytes[0], "chat": here.parent}).fetchone()
            return row[2], row[3], parent and parent[0], conn.execute(_SUMMARIES["work"], at).fetchone()

        total, unsummarised, parent, failed = self._deps.store.database.run(work)
        wait = None
        if self._deps.settings.chat_model is None:
            wait = "no chat model is configured (REMEMBRANCER_CHAT_MODEL)"
        elif failed is not None and failed[0] and not failed[1].startswith("deep memory: "):
            wait = f"the chat model gave no answer: {failed[1]}; next try at {failed[3]:%Y-%m-%d %H:%M:%S} UTC"
        return ChatView(
            chat=here.key, personas=here.personas, platform=here.platform, server=here.server, channel=here.channel,
            users=here.users, messages=total, unsummarised=unsummarised, parent=parent, summaries_wait=wait,
            deep_memory=None if self.deep_memory is None else self.deep_memory(here, failed and failed[1]),
        )  # fmt: skip

    def messages(self, chat: str, *, limit: int, before: int | None) -> MessagesAnswer:
        """A page of what was said, oldest first. See `Remembrancer.messages`."""
        here = self.require(chat)
        checked_number("limit", limit, 1, 1_000)
        if before is not None:
            checked_number("before", before, -(2**62), 2**62)
        self._waiting.settle()
        at = {
            "shard": here.stream.bytes[0], "chat": here.stream, "limit": limit + 1,
            "before": 2**62 if before is None else before,
        }  # fmt: skip
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["newest"], at).fetchall())
        page = [Message(*row[:-1]) for row in rows[:limit]][::-1]
        more = page[0].n if len(rows) > limit else None
        return MessagesAnswer(chat=here.key, messages=[view_of(m) for m in page], before=more)

    def texts(self, messages: Sequence[UUID]) -> dict[UUID, str]:
        """The present wording of messages that are still there."""
        return {m.id: m.text for _, m in reversed(self._as_now(messages)) if m.gone is None} if messages else {}

    def summary_now(self, chat: str) -> SummaryView:
        """The summary of a chat as it would be sent now."""
        here = self.require(chat)
        found = self._deps.store.database.run(lambda conn: read_summary(conn, self._deps.store, here.stream))
        return SummaryView(text=found.text, tokens=found.tokens, summaries=[s.id for s in found.standing])

    def transcript(self, stream: UUID) -> tuple[Transcript, int]:
        """All that was said in a chat, from its events, and the version of its stream."""
        whole, _, version = self.conversation(stream)
        return whole, version

    def conversation(self, stream: UUID) -> tuple[Transcript, Summaries, int]:
        """The same with its summaries."""

        def work(conn: Connection[Any]) -> tuple[Transcript, Summaries, int]:
            row = conn.execute(_SQL["folded"], {"shard": stream.bytes[0], "chat": stream}).fetchone()
            assert row is not None
            return *read_conversation(conn, self._deps.store, stream, row[1]), row[1]

        return self._deps.store.database.run(work)

    def present(self, here: ChatHome, messages: Sequence[UUID]) -> list[Message]:
        """Those of these messages that are in a chat and have not gone, as they stand."""
        found = self._as_now(messages) if messages else []
        return [m for stream, m in found if stream == here.stream and m.gone is None]

    def _message(self, message: UUID, chat: str | None) -> _Found:
        """A message of this tenant that is there, in the chat where it was said if none is named.

        Raises:
            NotFound: there never was one, it is gone, or it is another tenant's (C23, D31).
        """
        for stream, m in self._as_now([message]):
            if m.gone is None and (here := self.by_stream(stream)) is not None and chat in (None, here.key):
                return _Found(here, m)
        raise no_such_message(message)

    def _as_now(self, messages: Sequence[UUID]) -> list[tuple[UUID, Message]]:
        """Messages of this tenant as they stand, with their chats: rows, and the events that are ahead of them.

        Where forks inherited one, it comes once for each, first where it was said.
        """
        shard, wanted = messages[0].bytes[0], set(messages)

        def work(conn: Connection[Any]) -> list[tuple[UUID, Message]]:
            ahead = unread(conn, self._deps.store, "conversation", shards=[shard])
            at = {"shard": shard, "messages": list(messages), "tenant": self._deps.tenant}
            chats: dict[UUID, Transcript] = defaultdict(Transcript)
            for stream, *row in conn.execute(_SQL["messages_by_id"], at):
                chats[stream].put(Message(*row))
            for r in ahead:
                if r.event.tenant == self._deps.tenant:
                    chats[r.stream].apply(r)
            found = [(s, m) for s, t in chats.items() for m in t.messages.values() if m.id in wanted]
            return sorted(found, key=lambda one: (one[1].n <= 0, one[0]))

        return self._deps.store.database.run(work)

    def by_stream(self, stream: UUID) -> ChatHome | None:
        """A chat by its stream; None for a stream that is none."""
        at = {"shard": stream.bytes[0], "chat": stream}
        store = self._deps.store

        def work(conn: Connection[Any]) -> ChatHome | None:
            found = store.decode(conn.execute(_SQL["first"], at).fetchall(), conn)
            first = next(iter(found), None)
            return (
                None if first is None or not isinstance(first.event, e.ChatStarted | e.ChatForked) else _of_event(first)
            )

        return store.database.run(work)


def checked_message(text: object) -> str:
    """A message as it was sent.

    Raises:
        InvalidInput: no text, nothing but white space, NUL, half a surrogate pair, or too long.
    """
    content = checked_text("message", text)
    if not content.strip():
        raise InvalidInput("The message is empty.", hint="A message has a text; what has none is not kept.")
    if len(content) > LONGEST_MESSAGE:
        raise InvalidInput(f"The message has {len(content)} characters; at most {LONGEST_MESSAGE} are possible.")
    return content


def owners_of(home: Subject, role: Role, author: str) -> tuple[Subject, ...]:
    """Under whose keys a message is sealed: the chat's, and its author's where that is a person."""
    return tuple(dict.fromkeys((home, Subject("user", author)) if role == "user" else (home,)))


def view_of(m: Message) -> MessageView:
    """A message as a person sees it."""
    return MessageView(
        id=m.id, role=m.role, author=m.author, text=m.text, tokens=m.tokens, said_at=m.said_at, turn=m.turn,
        attempt=m.attempt, ref=m.ref, edited_at=m.edited_at,
    )  # fmt: skip


def no_such_message(message: UUID) -> NotFound:
    """The error that says so (D31)."""
    return NotFound(f"There is no message {message}.", rule="D31", hint="`chat show` lists the messages of a chat.")


def _actor(role: Role) -> e.Actor:
    return "persona" if role == "persona" else "person"


def _of_row(row: Sequence[Any]) -> ChatHome:
    stream, key, kind, home, personas, platform, server, channel, users, parent = row
    return ChatHome(stream, key, Subject(kind, home), tuple(personas), platform, server, channel, tuple(users), parent)


def _of_event(r: e.Recorded) -> ChatHome:
    ev = r.event
    assert isinstance(ev, e.ChatStarted | e.ChatForked)
    return ChatHome(
        r.stream, ev.chat, home_of(ev), ev.personas, ev.platform, ev.server, ev.channel, ev.users,
        ev.parent_stream if isinstance(ev, e.ChatForked) else None,
    )  # fmt: skip


def answered_view(done: Appended) -> ChatView:
    """The chat that a request came to.

    Raises:
        NotAllowed: whom it was about has been erased since (D24).
    """
    if done.answer is None:
        raise answer_erased()
    return ChatView.model_validate_json(done.answer).model_copy(update={"positions": positions(done)})
