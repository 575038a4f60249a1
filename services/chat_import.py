"""Brings a chat of another program in: its messages, with who said them and when (D21).

The same file again brings nothing, a later state of it the rest; what was worded anew there meanwhile is edited here.
Written are batches under the version of the chat that they were decided on, so two imports at once leave no doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.chat import chat_home
from remembrancer.domain.errors import NotAllowed
from remembrancer.domain.identity import Subject, chat_stream, check_key
from remembrancer.services.answers_chat import ChatImportAnswer
from remembrancer.services.chats import Chats, checked_message, owners_of
from remembrancer.services.checks import checked_platform
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.formats.chats import ChatFile, Heard, read_chat
from remembrancer.services.requests import request_for
from remembrancer.services.store import Batch, VersionConflict
from remembrancer.services.tokens import count_tokens_of_each

AT_ONCE = 500
MOST_TRIES = 20
Progress = Callable[[int, int | None], None]


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
        platform: str,
        progress: Progress | None,
    ) -> ChatImportAnswer:
        """Import a file. See `Remembrancer.import_chat`."""
        check_key("chat", chat)
        who = _Who(check_key("persona", persona), check_key("user", user))
        if server is not None:
            check_key("server", server)
        checked_platform(platform)
        file = read_chat(text)
        for m in file.messages:
            checked_message(m.text)
        for _ in range(MOST_TRIES):
            try:
                return self._bring(file, chat, who, server, platform, progress)
            except VersionConflict:  # somebody talks there, or imports the same
                continue
        raise NotAllowed("Too much is said in this chat just now.", hint="Import it again: what is there stays.")

    def _bring(
        self, file: ChatFile, chat: str, who: _Who, server: str | None, platform: str, progress: Progress | None
    ) -> ChatImportAnswer:
        tenant, known = self._deps.tenant, self._chats.find(chat)
        home = known.home if known is not None else chat_home(chat, server=server, users=[who.user])
        stream = known.stream if known is not None else chat_stream(tenant, chat, home)
        there, version = self._chats.transcript(stream)
        by_ref = {m.ref: m for m in there.messages.values() if m.ref is not None}
        events: list[tuple[e.Event, tuple[Subject, ...]]] = []
        if version == 0 and file.messages:
            events.append((self._started(stream, chat, who, server, platform), (home,)))
        tokens = count_tokens_of_each([m.text for m in file.messages])
        posted = edited = 0
        for n, (heard, size) in enumerate(zip(file.messages, tokens, strict=True)):
            author = who.author(heard)
            owners = owners_of(home, heard.role, author)
            before = by_ref.get(f"{file.source}#{n}")
            stamp = self._stamp(stream, chat)
            if before is None:
                posted += 1
                new = e.MessagePosted(
                    **stamp, message=make_id(stream.bytes[0]), role=heard.role, author=author, text=heard.text,
                    tokens=size, said_at=heard.said_at, ref=f"{file.source}#{n}",
                )  # fmt: skip
                events.append((new, owners))
            elif before.gone is None and before.text != heard.text:
                edited += 1
                worded = e.MessageEdited(**stamp, message=before.id, author=before.author, text=heard.text, tokens=size)
                events.append((worded, owners_of(home, before.role, before.author)))
        self._write(stream, events, version, progress)
        return ChatImportAnswer(
            chat=chat, imported=posted, edited=edited, known=len(file.messages) - posted - edited, hidden=file.hidden
        )

    def _write(
        self,
        stream: UUID,
        events: Sequence[tuple[e.Event, tuple[Subject, ...]]],
        version: int,
        progress: Progress | None,
    ) -> None:
        """All events in batches. One that was written stays, whatever happens to the next."""
        for start in range(0, len(events), AT_ONCE):
            part = events[start : start + AT_ONCE]
            batches, at = [], version + start
            for n, (event, owners) in enumerate(part):
                batches.append(Batch(stream, [event], at + n, owners))
            request = request_for(self._deps.tenant, stream.bytes[0], "import_chat", None, {})
            self._deps.store.append(batches, request=request, now=self._deps.now())
            if progress is not None:
                progress(start + len(part), len(events))

    def _started(self, stream: UUID, chat: str, who: _Who, server: str | None, platform: str) -> e.ChatStarted:
        users = () if server is not None else (who.user,)
        return e.ChatStarted(
            **self._stamp(stream, chat), personas=(who.persona,), platform=platform, server=server, users=users
        )

    def _stamp(self, stream: UUID, chat: str) -> dict[str, Any]:
        return {"id": make_id(stream.bytes[0]), "tenant": self._deps.tenant, "actor": "import", "chat": chat}


class _Who:
    """Which keys the names of a file stand for: the persona's, and the user's; further characters keep their names."""

    def __init__(self, persona: str, user: str) -> None:
        self.persona = persona
        self.user = user
        self._first: str | None = None

    def author(self, heard: Heard) -> str:
        """The key of who said it."""
        if heard.role == "user":
            return self.user
        if self._first is None:
            self._first = heard.name
        return self.persona if heard.name in (self._first, "") else heard.name
