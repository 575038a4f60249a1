"""Brings a chat of another program in: its messages, with who said them and when (D21).

A file is aligned with what came from the same chat before (`domain.brought`): what is new there is posted at the end,
what was worded anew there is edited, unless somebody edited it here; what is gone there, stays. Written are batches
under the version of the chat that they were decided on, so two imports at once leave no doubles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any
from uuid import UUID

import orjson

from remembrancer.domain import events as e
from remembrancer.domain.brought import Brought, Given, align, brought_by, places_of, ref_of, sources_of
from remembrancer.domain.chat import chat_home
from remembrancer.domain.errors import InvalidInput, NotAllowed
from remembrancer.domain.identity import Subject, chat_stream, check_key
from remembrancer.domain.summaries import fold_conversation
from remembrancer.domain.text import ERASED
from remembrancer.domain.transcript import Message
from remembrancer.services.answers_chat import ChatImportAnswer
from remembrancer.services.chats import ChatHome, Chats, checked_message, owners_of
from remembrancer.services.checks import Platform, answer_erased, checked_platform, shown
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.formats.chats import ChatFile, Heard, read_chat
from remembrancer.services.requests import request_for
from remembrancer.services.store import Appended, Batch, Request, VersionConflict
from remembrancer.services.tokens import count_tokens_of_each

AT_ONCE = 500
MOST_TRIES = 20
Progress = Callable[[int, int | None], None]
_Owned = tuple[e.Event, tuple[Subject, ...]]


class ChatImport:
    """Imports. See the module."""

    def __init__(self, deps: Deps, chats: Chats) -> None:
        self._deps = deps
        self._chats = chats

    def run(
        self,
        text: str,
        *,
        chat: str,
        persona: str,
        user: str,
        server: str | None,
        platform: str | None,
        request_id: str | None,
        progress: Progress | None,
    ) -> ChatImportAnswer:
        """Import a file. See `Remembrancer.import_chat`."""
        check_key("chat", chat)
        who = _Who(check_key("persona", persona), check_key("user", user))
        if server is not None:
            check_key("server", server)
        if request_id is not None:
            check_key("request_id", request_id)
        place = None if platform is None else checked_platform(platform)
        file = read_chat(text)
        authors = [_checked(heard, who) for heard in file.messages]
        body = {
            "digest": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), "chat": chat,
            "persona": persona, "user": user, "server": server, "platform": platform,
        }  # fmt: skip
        work = _Import(self._deps, self._chats, file, authors, chat, who, server, place, request_id, body, progress)
        for _ in range(MOST_TRIES):
            try:
                return work.bring()
            except VersionConflict:  # somebody talks there, or imports the same
                continue
        raise NotAllowed("Too much is said in this chat just now.", hint="Import it again: what is there stays.")


class _Import:
    """One import, which may have to be decided anew when others write there; it counts what it wrote itself."""

    def __init__(
        self, deps: Deps, chats: Chats, file: ChatFile, authors: Sequence[str], chat: str, who: _Who,
        server: str | None, platform: Platform | None, request_id: str | None, body: Mapping[str, Any],
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._deps, self._chats = deps, chats
        self._file, self._authors = file, authors
        self._tokens = count_tokens_of_each([m.text for m in file.messages])
        self._chat, self._who, self._server, self._platform = chat, who, server, platform
        self._request_id, self._body = request_id, body
        self._progress = progress
        self._posted = self._edited = 0

    def bring(self) -> ChatImportAnswer:
        """Decide, and write.

        Raises:
            VersionConflict: others wrote meanwhile; what was written stays.
        """
        tenant, known = self._deps.tenant, self._chats.find(self._chat)
        home = known.home if known is not None else chat_home(self._chat, server=self._server, users=[self._who.user])
        stream = known.stream if known is not None else chat_stream(tenant, self._chat, home)
        request = request_for(tenant, stream.bytes[0], "import_chat", self._request_id, self._body, (home,))
        if self._request_id is not None and (before := self._deps.store.find(request)) is not None:
            return _answered(before)
        if known is not None:
            self._fits(known)
        read = cache(lambda stream, upto: [r for r in self._deps.store.read([(stream, 0)]) if r.version <= upto])
        version = max((r.version for r in read(stream, 2**62)), default=0)
        there, _ = fold_conversation(read, stream, 2**62)
        events: list[_Owned] = [] if version else [(self._started(stream), (home,))]
        events += self._news(stream, home, {m.id: m for m in there.messages.values()}, brought_by(read, stream, 2**62))
        return self._write(stream, events, version, request)

    def _write(self, stream: UUID, events: Sequence[_Owned], version: int, request: Request) -> ChatImportAnswer:
        """All events in batches. One that was written stays, whatever happens to the next."""
        done = 0
        while True:
            part = events[done : done + AT_ONCE]
            last = done + len(part) == len(events)
            posted = self._posted + sum(isinstance(event, e.MessagePosted) for event, _ in part)
            edited = self._edited + sum(isinstance(event, e.MessageEdited) for event, _ in part)
            answer = ChatImportAnswer(
                chat=self._chat, imported=posted, edited=edited,
                known=len(self._file.messages) - posted - edited, hidden=self._file.hidden,
            )  # fmt: skip
            batches = [Batch(stream, [event], version + done + n, owners) for n, (event, owners) in enumerate(part)]
            if part and version + done == 0:
                batches.append(self._chats.naming(self._chat, stream))
            # The caller's id goes with the last part: an import that was broken off is taken up again with it.
            named = request if last else request_for(request.tenant, request.shard, "import_chat", None, {})
            if not part and self._request_id is None:
                return answer
            kept = orjson.dumps(answer.model_dump(mode="json")) if last else b""
            written = self._deps.store.append(batches, request=named, answer=kept, now=self._deps.now())
            self._posted, self._edited, done = posted, edited, done + len(part)
            if self._progress is not None:
                self._progress(done, len(events))
            if last:
                return _answered(written)

    def _fits(self, known: ChatHome) -> None:
        """Nothing, if the chat that is there is what the caller says.

        Raises:
            NotAllowed: it is another persona's, or elsewhere.
        """
        wrong = None
        if self._who.persona not in known.personas:
            wrong = f"of {', '.join(known.personas)}, not of {self._who.persona}"
        elif self._server is not None and self._server != known.server:
            wrong = f"{'in private' if known.server is None else f'in {known.server}'}, not in {self._server}"
        elif self._platform is not None and self._platform != known.platform:
            wrong = f"on {known.platform}, not on {self._platform}"
        if wrong is not None:
            raise NotAllowed(f"The chat {shown(self._chat)} is {wrong}.", hint="Import it as a chat of another name.")

    def _news(
        self, stream: UUID, home: Subject, there: Mapping[UUID, Message], brought: Mapping[UUID, Brought]
    ) -> list[_Owned]:
        """What is to be written of the messages."""
        source, before, found = self._aligned(brought)
        owned: list[_Owned] = []
        rows = zip(self._file.messages, self._authors, self._tokens, found, places_of(before, found), strict=True)
        for heard, author, size, j, place in rows:
            stamp = self._stamp(stream)
            if j is None:
                new = e.MessagePosted(
                    **stamp, message=make_id(stream.bytes[0]), role=heard.role, author=author, text=heard.text,
                    tokens=size, said_at=heard.said_at, ref=ref_of(source, place),
                )  # fmt: skip
                owned.append((new, owners_of(home, heard.role, author)))
                continue
            m = there.get(before[j].message)
            if m is not None and m.gone is None and m.text == before[j].text != heard.text:
                worded = e.MessageEdited(**stamp, message=m.id, author=m.author, text=heard.text, tokens=size)
                owned.append((worded, owners_of(home, m.role, m.author)))
        return owned

    def _aligned(self, brought: Mapping[UUID, Brought]) -> tuple[str, Sequence[Brought], Sequence[int | None]]:
        """Which chat elsewhere it is, what came of it, and which of that each message is."""
        now = [Given(m.role, m.text, m.said_at, m.others) for m in self._file.messages]
        sources = sources_of(brought.values())
        each = [(source, before, align(before, now)) for source, before in sources.items()]
        same = [one for one in each if one[2].same or self._is_erased(*one[:2])]
        if same:
            source, before, aligned = max(same, key=lambda one: one[2].alike)
            return source, before, aligned.before
        free = self._file.source
        if free in sources:
            free = next(name for n in count(2) if (name := f"{self._file.source}-{n}") not in sources)
        return free, (), [None] * len(now)

    def _is_erased(self, source: str, before: Sequence[Brought]) -> bool:
        """Where nothing can be read any more, the name says that it is the same chat: what was erased stays erased."""
        return source == self._file.source and all(b.text == ERASED for b in before)

    def _started(self, stream: UUID) -> e.ChatStarted:
        users = () if self._server is not None else (self._who.user,)
        return e.ChatStarted(
            **self._stamp(stream), personas=(self._who.persona,), platform=self._platform or "web",
            server=self._server, users=users,
        )  # fmt: skip

    def _stamp(self, stream: UUID) -> dict[str, Any]:
        return {
            "id": make_id(stream.bytes[0]), "tenant": self._deps.tenant, "actor": "import", "chat": self._chat,
            "request_id": self._request_id,
        }  # fmt: skip


class _Who:
    """Which keys the names of a file stand for: the persona's, and the user's; further characters keep their names."""

    def __init__(self, persona: str, user: str) -> None:
        self.persona = persona
        self.user = user
        self._first: str | None = None

    def author(self, heard: Heard) -> str:
        """The key of who said it.

        Raises:
            InvalidInput: a further character's name is no key.
        """
        if heard.role == "user":
            return self.user
        if self._first is None:
            self._first = heard.name
        return self.persona if heard.name in (self._first, "") else check_key("author", heard.name)


def _checked(heard: Heard, who: _Who) -> str:
    """The author of a message that can be kept.

    Raises:
        InvalidInput: it cannot; says which one it is.
    """
    try:
        checked_message(heard.text)
        return who.author(heard)
    except InvalidInput as error:
        where = f"{heard.where[:1].upper()}{heard.where[1:]}"
        raise InvalidInput(f"{where}: {error.message}", hint=error.hint) from None


def _answered(done: Appended) -> ChatImportAnswer:
    if done.answer is None:
        raise answer_erased()
    return ChatImportAnswer(**orjson.loads(done.answer))
