"""As much of Discord on loopback as a bot needs: the gateway (a websocket) and the REST calls, for the real discord.py.

    async with FakeDiscord() as discord, discord.running(bot):
        asked = await discord.says(JUNO, "hello", mentions=[ME])
        answer = await discord.sent(1)

It keeps messages as Discord does, and sends a bot's own ones back to it. What it was sent is in `posts`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self
from unittest import mock

import discord
import yarl
from aiohttp import WSMsgType, web
from discord.gateway import DiscordWebSocket
from discord.http import Route

EPOCH = 1_420_070_400_000
GUILD, CHANNEL, MODS, APPLICATION = (f"1{n:017}" for n in (501, 601, 602, 901))


class Who(NamedTuple):
    """A user of Discord."""

    id: str
    name: str
    bot: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        return {
            "id": self.id, "username": self.name.lower(), "global_name": self.name, "discriminator": "0",
            "avatar": None, "bot": self.bot,
        }  # fmt: skip


ME = Who(f"1{900:017}", "Mira", bot=True)
JUNO, KAI, OWNER = (Who(f"1{n:017}", name) for n, name in ((101, "Juno"), (102, "Kai"), (103, "Owner")))
EVERYBODY = {who.id: who for who in (ME, JUNO, KAI, OWNER)}


class Post(NamedTuple):
    """What the bot did by REST."""

    verb: str
    path: str
    body: Any


class FakeDiscord:
    """One guild with two channels, and a direct-message channel with everybody."""

    def __init__(self, messages: dict[str, dict[str, Any]] | None = None) -> None:
        self.posts: list[Post] = []
        self.messages = {} if messages is None else messages
        self.identified: dict[str, Any] | None = None
        self._socket: web.WebSocketResponse | None = None
        self._sequence = self._made = 0
        self._news = asyncio.Event()

    # -- the server ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/gateway", self._gateway)
        app.router.add_route("*", "/api/{path:.*}", self._rest)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @asynccontextmanager
    async def running(self, bot: discord.Client) -> AsyncIterator[None]:
        """The bot, logged in and connected."""
        with (
            mock.patch.object(Route, "BASE", f"http://127.0.0.1:{self.port}/api"),
            mock.patch.object(DiscordWebSocket, "DEFAULT_GATEWAY", self._address),
        ):
            async with bot:
                task = self._task = asyncio.create_task(bot.start("a-token"))
                try:
                    await self.until(lambda: self._socket is not None and self.identified is not None)
                    yield
                finally:
                    await bot.close()
                    with suppress(asyncio.CancelledError):
                        await task

    @property
    def _address(self) -> yarl.URL:
        return yarl.URL(f"ws://127.0.0.1:{self.port}/gateway")

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}})
        async for frame in socket:
            assert frame.type is WSMsgType.TEXT
            said = json.loads(frame.data)
            if said["op"] == 1:
                await socket.send_json({"op": 11, "d": None})
            elif said["op"] == 2:
                self._socket = socket
                await self.event("READY", {
                    "v": 10, "user": ME.payload, "session_id": "s", "resume_gateway_url": str(self._address),
                    "guilds": [{"id": GUILD, "unavailable": True}],
                    "application": {"id": APPLICATION, "flags": 0},
                })  # fmt: skip
                await self.event("GUILD_CREATE", _guild())
                self.identified = said["d"]
                self._news.set()
        return socket

    async def _rest(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        path = request.match_info["path"]
        if request.headers.get("Authorization") != "Bot a-token" and not path.startswith("interactions/"):
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        self.posts.append(Post(request.method, path, body))
        self._news.set()
        match request.method, path.split("/"):
            case "GET", ["users", "@me"]:
                return _json(ME.payload)
            case "GET", ["oauth2", "applications", "@me"]:
                return _json({
                    "id": APPLICATION, "name": "Mira", "icon": None, "description": "", "bot_public": True,
                    "bot_require_code_grant": False, "verify_key": "", "flags": 0, "owner": OWNER.payload,
                    "summary": "", "team": None, "rpc_origins": [],
                })  # fmt: skip
            case "PUT", ["applications", _, "commands"]:
                made = [{**one, "id": self._id(), "application_id": APPLICATION, "version": "1"} for one in body]
                return _json(made)
            case "GET", ["users", user] if user in EVERYBODY:
                return _json(EVERYBODY[user].payload)
            case "POST", ["users", "@me", "channels"]:
                return _json(_private(EVERYBODY[str(body["recipient_id"])]))
            case "GET", ["channels", channel] if channel.startswith("7"):
                return _json(_private(EVERYBODY[channel[1:]]))
            case "POST", ["channels", channel, "messages"]:
                return _json(await self._posted(channel, ME, body))
            case "GET", ["channels", _, "messages", message] if message in self.messages:
                return _json(self.messages[message])
            case "PATCH", ["channels", _, "messages", message]:
                return _json(await self._edited(message, body["content"]))
            case ("POST", ["channels", _, "typing"]) | ("PUT", ["channels", _, "messages", _, "reactions", _, "@me"]):
                return web.Response(status=204)
            case "POST", ["interactions", number, *_]:
                return _json({"interaction": {"id": number, "type": 2}})
        return _json({"message": "404: Not Found", "code": 0}, status=404)

    async def event(self, name: str, data: dict[str, Any]) -> None:
        """Something happened, and the bot is told."""
        assert self._socket is not None
        self._sequence += 1
        await self._socket.send_json({"op": 0, "t": name, "s": self._sequence, "d": data})

    # -- what people do ------------------------------------------------------------------------------------------------

    async def says(
        self, who: Who, text: str, *, channel: str = CHANNEL, to: Sequence[Who] = (ME,), reply_to: str | None = None
    ) -> str:
        """Somebody writes, mentioning these. Returns the message's id."""
        mentioned = "".join(f"<@{one.id}> " for one in to)
        return str((await self._posted(channel, who, {"content": mentioned + text}, to, reply_to))["id"])

    async def says_in_private(self, who: Who, text: str) -> str:
        return await self.says(who, text, channel=f"7{who.id}", to=())

    async def edits(self, message: str, text: str) -> None:
        await self._edited(message, text)

    async def deletes(self, message: str) -> None:
        gone = self.messages.pop(message)
        await self.event("MESSAGE_DELETE", {k: gone[k] for k in ("id", "channel_id", "guild_id") if k in gone})

    async def purges(self, *messages: str) -> None:
        """A moderator deletes many at once."""
        of = {"channel_id": self.messages[messages[0]]["channel_id"], "guild_id": GUILD}
        for message in messages:
            del self.messages[message]
        await self.event("MESSAGE_DELETE_BULK", {"ids": list(messages), **of})

    async def reacts(self, who: Who, message: str, emoji: str) -> None:
        to = self.messages[message]
        await self.event("MESSAGE_REACTION_ADD", {
            "user_id": who.id, "channel_id": to["channel_id"], "message_id": message, "burst": False, "type": 0,
            "emoji": {"id": None, "name": emoji}, **({"guild_id": GUILD} if "guild_id" in to else {}),
        })  # fmt: skip

    async def commands(self, who: Who, name: str, **options: str) -> str:
        """Somebody gives a slash command. What only they are answered."""
        given = [{"name": key, "type": 3, "value": value} for key, value in options.items()]
        number = self._id()
        await self.event("INTERACTION_CREATE", {
            "id": number, "application_id": APPLICATION, "type": 2, "token": f"token-{number}", "version": 1,
            "guild_id": GUILD, "channel_id": CHANNEL, "channel": _guild()["channels"][0], "locale": "en-US",
            "data": {"id": "1", "name": name, "type": 1, "options": given}, "entitlements": [],
            "authorizing_integration_owners": {}, "attachment_size_limit": 10_000_000,
            "member": {"user": who.payload, "permissions": "0", **_MEMBER},
        })  # fmt: skip

        def answer() -> Post | None:
            return next((p for p in self.posts if p.path.startswith(f"interactions/{number}/")), None)

        await self.until(lambda: answer() is not None)
        answered = answer()
        assert answered is not None
        assert answered.body["data"]["flags"] == 64, "only they see it"
        return str(answered.body["data"]["content"])

    # -- what the bot did ----------------------------------------------------------------------------------------------

    def texts(self, channel: str) -> list[str]:
        """What the bot wrote there, as it was sent."""
        return [p.body["content"] for p in self.posts if (p.verb, p.path) == ("POST", f"channels/{channel}/messages")]

    async def sent(self, number: int, channel: str = CHANNEL) -> list[str]:
        """What the bot wrote there, once it is so many."""
        await self.until(lambda: len(self.texts(channel)) >= number)
        return self.texts(channel)

    def answer_to(self, message: str) -> str:
        """The id of the bot's reply to a message."""
        (found,) = [
            m["id"]
            for m in self.messages.values()
            if (m["author"]["id"], m.get("message_reference", {}).get("message_id")) == (ME.id, message)
        ]
        return str(found)

    async def did(self, verb: str, path: str) -> Post:
        """The first call like that, once it has come."""
        found: list[Post] = []

        def there() -> bool:
            found[:] = [p for p in self.posts if p.verb == verb and path in p.path]
            return bool(found)

        await self.until(there)
        return found[0]

    async def until(self, what: Callable[[], bool]) -> None:
        """Until this is so. The test fails if that takes 10 seconds."""
        async with asyncio.timeout(10):
            while not what():
                if self._task.done():
                    self._task.result()
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.05)

    # -- messages ------------------------------------------------------------------------------------------------------

    async def _posted(
        self, channel: str, who: Who, body: dict[str, Any], to: Sequence[Who] = (), reply_to: str | None = None
    ) -> dict[str, Any]:
        reference = reply_to or (body.get("message_reference") or {}).get("message_id")
        guild = {} if channel.startswith("7") else {"guild_id": GUILD, "member": _MEMBER}
        reference = None if reference is None else str(reference)
        more = {} if reference is None else {
            "type": 19, "message_reference": {"message_id": reference, "channel_id": channel},
            "referenced_message": self.messages.get(reference),
        }  # fmt: skip
        made = {
            "id": self._id(), "channel_id": channel, "author": who.payload, "content": body["content"],
            "timestamp": datetime.now(UTC).isoformat(), "edited_timestamp": None, "tts": False,
            "mention_everyone": False, "mentions": [one.payload for one in to], "mention_roles": [],
            "attachments": [], "embeds": [], "pinned": False, "type": 0, **guild, **more,
        }  # fmt: skip
        self.messages[made["id"]] = made
        await self.event("MESSAGE_CREATE", made)
        return made

    async def _edited(self, message: str, text: str) -> dict[str, Any]:
        self.messages[message] |= {"content": text, "edited_timestamp": datetime.now(UTC).isoformat()}
        await self.event("MESSAGE_UPDATE", self.messages[message])
        return self.messages[message]

    def _id(self) -> str:
        self._made += 1
        return str(((int(time.time() * 1000) - EPOCH) << 22) + self._made)


def _json(body: Any, status: int = 200) -> web.Response:
    """With the very type that Discord names: discord.py takes no charset for JSON."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers={"Content-Type": "application/json"})


_MEMBER = {"roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False, "flags": 0}


def _guild() -> dict[str, Any]:
    channels = [
        {"id": number, "type": 0, "name": name, "position": n, "permission_overwrites": [], "guild_id": GUILD}
        for n, (number, name) in enumerate(((CHANNEL, "tea-house"), (MODS, "mods")))
    ]
    everyone = {
        "id": GUILD, "name": "@everyone", "color": 0, "colors": {"primary_color": 0}, "hoist": False, "position": 0,
        "permissions": "0", "managed": False, "mentionable": False, "flags": 0,
    }  # fmt: skip
    return {
        "id": GUILD, "name": "The Tea House", "owner_id": OWNER.id, "roles": [everyone], "channels": channels,
        "members": [{"user": ME.payload, **_MEMBER}], "member_count": 4, "unavailable": False, "threads": [],
    }  # fmt: skip


def _private(who: Who) -> dict[str, Any]:
    return {"id": f"7{who.id}", "type": 1, "recipients": [who.payload], "last_message_id": None}
