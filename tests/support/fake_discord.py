"""Enough of Discord on loopback for the real discord.py: its gateway (WebSocket) and its REST interface.

async with FakeDiscord() as discord:                  # discord.py of this process now talks with it
    discord.says(USER, "hello", mention=True)         # MESSAGE_CREATE in the guild's channel
    sent = await discord.sent(1)                      # what the bot has posted
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Self

import discord
import yarl
from aiohttp import WSMsgType, web

FIRST = discord.utils.time_snowflake(datetime(2026, 5, 4, 12, tzinfo=UTC))
"""Ids tell when something came to be: all of this on the first day of `World`."""
BOT, APPLICATION, GUILD, CHANNEL, JUNO, KAI = (FIRST + n for n in range(6))
NAMES = {JUNO: "Juno", KAI: "Kai"}


@dataclass
class Sent:
    """What the bot did: posted or changed a message."""

    id: int
    channel: int
    content: str
    edited: int = 0


@dataclass
class FakeDiscord:
    """The two interfaces, from `async with` to its end."""

    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    posted: list[Sent] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    callbacks: list[dict[str, Any]] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)
    identified: dict[str, Any] = field(default_factory=dict)
    direct: dict[int, int] = field(default_factory=dict)
    """Channels of direct messages, by user."""

    async def __aenter__(self) -> Self:
        self._ids = count(FIRST + 1_000)
        self._numbers = count(1)
        self._socket: web.WebSocketResponse | None = None
        self._changed = asyncio.Condition()
        app = web.Application()
        app.router.add_get("/gateway/", self._gateway)
        for method, path, work in self._routes():
            app.router.add_route(method, f"/api{path}", work)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        (host, port), *_ = self._runner.addresses
        self._kept = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
        self._address = f"ws://{host}:{port}/gateway/"
        discord.http.Route.BASE = f"http://{host}:{port}/api"
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = self._kept
        await self._runner.cleanup()

    # -- what people do --------------------------------------------------------------------------------------------

    async def says(self, user: int, text: str, *, mention: bool = False, private: bool = False) -> int:
        """A message in the guild's channel, or to the bot alone; its id."""
        channel = self._direct(user) if private else CHANNEL
        words = f"<@{BOT}> {text}" if mention else text
        message = self._message(next(self._ids), channel, _user(user), words)
        message["mentions"] = [_user(BOT)] if mention else []
        if not private:
            message |= {"guild_id": str(GUILD), "member": _member(user)}
        await self._tell("MESSAGE_CREATE", message)
        return int(message["id"])

    async def edits(self, message: int, text: str) -> None:
        self.messages[message] |= {"content": text, "edited_timestamp": _now()}
        await self._tell("MESSAGE_UPDATE", self.messages[message] | {"guild_id": str(GUILD)})

    async def deletes(self, message: int) -> None:
        gone = self.messages.pop(message)
        await self._tell("MESSAGE_DELETE", {"id": gone["id"], "channel_id": gone["channel_id"], "guild_id": str(GUILD)})

    async def reacts(self, user: int, message: int, emoji: str) -> None:
        at = {"message_id": str(message), "channel_id": self.messages[message]["channel_id"], "guild_id": str(GUILD)}
        who = {"user_id": str(user), "member": _member(user)}
        await self._tell("MESSAGE_REACTION_ADD", at | who | {"emoji": {"id": None, "name": emoji}, "type": 0})

    async def calls(self, user: int, command: str, **options: str) -> dict[str, Any]:
        """A slash command; what it answered."""
        before = len(self.callbacks)
        given = [{"name": name, "type": 3, "value": value} for name, value in options.items()]
        named = next(c for c in self.commands if c["name"] == command)
        await self._tell("INTERACTION_CREATE", {
            "id": str(next(self._ids)), "application_id": str(APPLICATION), "type": 2, "token": "t", "version": 1,
            "guild_id": str(GUILD), "channel_id": str(CHANNEL), "channel": _channel(), "member": _member(user) | {
                "permissions": "0"}, "locale": "en-GB", "entitlements": [], "attachment_size_limit": 1,
            "authorizing_integration_owners": {}, "context": 0,
            "data": {"id": named["id"], "name": command, "type": 1, "options": given},
        })  # fmt: skip
        await self.until(lambda: len(self.callbacks) > before)
        return self.callbacks[-1]

    async def until(self, what: Callable[[], bool]) -> None:
        """Wait for something that the bot does."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(what), 20)

    async def sent(self, number: int) -> Sent:
        """The so-manieth message of the bot, once it is there."""
        await self.until(lambda: len(self.posted) >= number)
        return self.posted[number - 1]

    # -- the gateway -----------------------------------------------------------------------------------------------

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = self._socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 45_000}})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            said = json.loads(frame.data)
            if said["op"] == 1:
                await socket.send_json({"op": 11})
            elif said["op"] == 2:
                await self._note(self.identified.update, said["d"])
                await self._tell("READY", {
                    "v": 10, "user": _user(BOT), "guilds": [{"id": str(GUILD), "unavailable": True}],
                    "session_id": "s", "resume_gateway_url": self._address,
                    "application": {"id": str(APPLICATION), "flags": 0}, "shard": [0, 1],
                })  # fmt: skip
                await self._tell("GUILD_CREATE", _guild())
        return socket

    async def _tell(self, event: str, data: dict[str, Any]) -> None:
        assert self._socket is not None
        await self._socket.send_json({"op": 0, "t": event, "s": next(self._numbers), "d": data})

    # -- REST ------------------------------------------------------------------------------------------------------

    def _routes(self) -> list[tuple[str, str, Any]]:
        return [
            ("GET", "/users/@me", self._me),
            ("GET", "/users/{user}", self._who),
            ("POST", "/users/@me/channels", self._open),
            ("GET", "/oauth2/applications/@me", self._application),
            ("PUT", f"/applications/{APPLICATION}/commands", self._register),
            ("POST", "/channels/{channel}/messages", self._post),
            ("POST", "/channels/{channel}/typing", self._typing),
            ("GET", "/channels/{channel}/messages/{message}", self._read),
            ("PATCH", "/channels/{channel}/messages/{message}", self._change),
            ("PUT", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", self._react),
            ("POST", "/interactions/{interaction}/{token}/callback", self._callback),
        ]

    async def _me(self, _: web.Request) -> web.Response:
        return _json(_user(BOT))

    async def _who(self, request: web.Request) -> web.Response:
        return _json(_user(int(request.match_info["user"])))

    async def _open(self, request: web.Request) -> web.Response:
        user = int((await request.json())["recipient_id"])
        return _json({"id": str(self._direct(user)), "type": 1, "recipients": [_user(user)]})

    async def _application(self, _: web.Request) -> web.Response:
        return _json({
            "id": str(APPLICATION), "name": "bot", "icon": None, "description": "", "bot_public": True,
            "bot_require_code_grant": False, "verify_key": "", "flags": 0, "owner": _user(JUNO), "team": None,
        })  # fmt: skip

    async def _register(self, request: web.Request) -> web.Response:
        more = {"application_id": str(APPLICATION), "version": "1", "default_member_permissions": None}
        self.commands = [c | more | {"id": str(next(self._ids))} for c in await request.json()]
        return _json(self.commands)

    async def _post(self, request: web.Request) -> web.Response:
        channel, text = int(request.match_info["channel"]), (await request.json())["content"]
        message = self._message(next(self._ids), channel, _user(BOT), text)
        await self._note(self.posted.append, Sent(int(message["id"]), channel, text))
        return _json(message)

    async def _change(self, request: web.Request) -> web.Response:
        message = self.messages[int(request.match_info["message"])]
        message["content"] = (await request.json())["content"]
        (sent,) = [s for s in self.posted if str(s.id) == message["id"]]
        sent.content = message["content"]
        await self._note(lambda _: setattr(sent, "edited", sent.edited + 1), None)
        return _json(message)

    async def _read(self, request: web.Request) -> web.Response:
        return _json(self.messages[int(request.match_info["message"])])

    async def _typing(self, _: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _react(self, request: web.Request) -> web.Response:
        await self._note(self.reactions.append, request.match_info["emoji"])
        return web.Response(status=204)

    async def _callback(self, request: web.Request) -> web.Response:
        await self._note(self.callbacks.append, await request.json())
        return _json({"interaction": {"id": request.match_info["interaction"], "type": 2}})

    async def _note(self, how: Callable[[Any], Any], what: Any) -> None:
        async with self._changed:
            how(what)
            self._changed.notify_all()

    def _direct(self, user: int) -> int:
        return self.direct.setdefault(user, user + 100)

    def _message(self, number: int, channel: int, author: dict[str, Any], text: str) -> dict[str, Any]:
        self.messages[number] = {
            "id": str(number), "channel_id": str(channel), "author": author, "content": text, "timestamp": _now(),
            "edited_timestamp": None, "tts": False, "mention_everyone": False, "mentions": [], "mention_roles": [],
            "attachments": [], "embeds": [], "pinned": False, "type": 0, "components": [],
        }  # fmt: skip
        return self.messages[number]


def _json(body: Any) -> web.Response:
    """As Discord does: the library does not read JSON that names a charset."""
    return web.Response(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _user(user: int) -> dict[str, Any]:
    name = NAMES.get(user, "mira")
    return {
        "id": str(user), "username": name.lower(), "global_name": name, "discriminator": "0", "avatar": None,
        "bot": user == BOT,
    }  # fmt: skip


def _member(user: int) -> dict[str, Any]:
    joined = "2026-01-01T00:00:00+00:00"
    return {"user": _user(user), "roles": [], "joined_at": joined, "deaf": False, "mute": False, "flags": 0}


def _channel() -> dict[str, Any]:
    return {
        "id": str(CHANNEL), "type": 0, "name": "tea-house", "position": 0, "permission_overwrites": [],
        "parent_id": None, "nsfw": False, "topic": None, "last_message_id": None, "guild_id": str(GUILD),
    }  # fmt: skip


def _guild() -> dict[str, Any]:
    role = {
        "id": str(GUILD), "name": "@everyone", "color": 0, "hoist": False, "position": 0, "permissions": "0",
        "managed": False, "mentionable": False, "flags": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
    }  # fmt: skip
    return {
        "id": str(GUILD), "name": "guild", "owner_id": str(KAI), "roles": [role], "emojis": [], "features": [],
        "channels": [_channel()], "members": [_member(BOT), _member(KAI)], "member_count": 3, "threads": [],
        "voice_states": [], "presences": [], "stickers": [], "large": False, "unavailable": False, "icon": None,
        "verification_level": 0, "default_message_notifications": 0, "explicit_content_filter": 0, "mfa_level": 0,
        "afk_timeout": 60, "afk_channel_id": None, "system_channel_id": None, "system_channel_flags": 0,
        "rules_channel_id": None, "public_updates_channel_id": None, "preferred_locale": "en-GB", "premium_tier": 0,
        "nsfw_level": 0, "stage_instances": [], "guild_scheduled_events": [], "premium_progress_bar_enabled": False,
        "splash": None, "discovery_splash": None, "banner": None, "description": None, "application_id": None,
        "vanity_url_code": None, "max_members": 100, "soundboard_sounds": [],
    }  # fmt: skip
