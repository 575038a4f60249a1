"""Which chat a reply belongs to (D26) and what is remembered of the chat itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import Subject


def default_chat(persona: str, *, server: str | None, channel: str | None, users: Sequence[str]) -> str:
    """The chat of this persona in that server and channel, or with its one user.

    Raises:
        InvalidInput: neither a server nor exactly one user, so that no chat follows (D26).
    """

    def part(name: str) -> str:
        return quote(name, safe="")

    if server is not None:
        place = part(server) if channel is None else f"{part(server)}/{part(channel)}"
        return f"server:{place}:{part(persona)}"
    if len(set(users)) == 1:
        return f"user:{part(users[0])}:{part(persona)}"
    raise InvalidInput(
        f"A reply with {len(set(users))} users and no server needs a chat id.",
        rule="D26",
        hint="Pass chat, or server, or exactly one user.",
    )


def chat_home(chat: str, *, server: str | None, users: Sequence[str]) -> Subject:
    """The subject in whose shard a chat lives: its server, or its one user; otherwise the chat itself."""
    if server is not None:
        return Subject("server", server)
    if len(set(users)) == 1:
        return Subject("user", users[0])
    return Subject("chat", chat)


def home_of(ev: e.ChatStarted | e.ChatForked) -> Subject:
    """The home of a chat by its first event: a fork lives where its parent does."""
    if isinstance(ev, e.ChatForked):
        return Subject(ev.home_kind, ev.home_key)
    return chat_home(ev.chat, server=ev.server, users=ev.users)


@dataclass(frozen=True, slots=True)
class Chat:
    """What a reply needs to know of its chat."""

    started: bool = False
    personas: tuple[str, ...] = ()
    platform: str = ""

    @property
    def is_group(self) -> bool:
        """Was it opened with several personas (D26)?"""
        return len(self.personas) > 1


def evolve_chat(s: Chat, recorded: e.Recorded) -> Chat:
    """The chat after one more event."""
    ev = recorded.event
    if isinstance(ev, e.ChatStarted | e.ChatForked):
        return Chat(True, ev.personas, ev.platform)
    return s
