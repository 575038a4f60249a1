"""Opening a chat before anybody has spoken in it: with several personas it is a group (R11, D4, D26)."""

from __future__ import annotations

import orjson

from remembrancer.domain import events as e
from remembrancer.domain.chat import chat_home
from remembrancer.domain.errors import InvalidInput, NotAllowed
from remembrancer.domain.identity import chat_stream, check_key
from remembrancer.services.answers_chat import ChatView
from remembrancer.services.chats import Chats, answered_view
from remembrancer.services.checks import checked_platform
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.remember import names
from remembrancer.services.requests import request_for
from remembrancer.services.store import Batch, VersionConflict

MOST_MEMBERS = 20
"""Personas of a group: each brings its lists into every reply."""


class Opening:
    """Opens chats. See the module."""

    def __init__(self, deps: Deps, chats: Chats) -> None:
        self._deps = deps
        self._chats = chats

    def open(
        self,
        chat: str,
        *,
        personas: object,
        users: object,
        server: str | None,
        channel: str | None,
        platform: str,
        request_id: str | None,
    ) -> ChatView:
        """Open a chat. See `Remembrancer.open_chat`."""
        name, tenant = check_key("chat", chat), self._deps.tenant
        members = _members(personas)
        people = names("user", users, in_order=True)
        for what, key in (("server", server), ("channel", channel)):
            if key is not None:
                check_key(what, key)
        checked_platform(platform)
        home = chat_home(name, server=server, users=people)
        stream = chat_stream(tenant, name, home)
        body = {
            "chat": name, "personas": members, "users": people, "server": server, "channel": channel,
            "platform": platform,
        }  # fmt: skip
        request = request_for(tenant, stream.bytes[0], "open_chat", request_id, body, (home,))
        if request_id is not None and (before := self._deps.store.find(request)) is not None:
            return answered_view(before)
        taken = NotAllowed(
            f"There is a chat {name!r} already.", rule="D26",
            hint="Who is in it was said when it was opened. Choose another name.",
        )  # fmt: skip
        if self._chats.find(name) is not None:
            raise taken
        event = e.ChatStarted(
            id=make_id(stream.bytes[0]), tenant=tenant, request_id=request_id, chat=name, personas=members,
            platform=platform, server=server, channel=channel, users=people,
        )  # fmt: skip
        view = ChatView(
            chat=name, personas=members, platform=platform, server=server, channel=channel, users=people, messages=0,
            unsummarised=0, parent=None,
        )  # fmt: skip
        kept = orjson.dumps(view.model_dump(mode="json"))
        batches = [Batch(stream, [event], 0, (home,)), self._chats.naming(name, stream)]
        try:
            done = self._deps.store.append(batches, request=request, answer=kept, now=self._deps.now())
        except VersionConflict:
            raise taken from None
        return answered_view(done)


def _members(personas: object) -> tuple[str, ...]:
    members = names("persona", personas, in_order=True)
    if not members:
        raise InvalidInput("A chat has at least one persona.", rule="D26", hint="Name who talks in it.")
    if len(members) > MOST_MEMBERS:
        raise InvalidInput(f"{len(members)} personas are too many: a chat has at most {MOST_MEMBERS}.")
    return members
