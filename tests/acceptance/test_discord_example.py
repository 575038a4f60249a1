"""The example of docs/discord.md on the real discord.py, with Discord and a model on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web

from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_discord import BOT, CHANNEL, GUILD, JUNO, KAI, FakeDiscord
from tests.support.world import World

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "discord_bot.py"
Say = Callable[[list[dict[str, Any]]], dict[str, Any]]


class Model:
    """A chat-completions endpoint: `says` makes the next message of each prompt."""

    def __init__(self) -> None:
        self.says: Say = lambda _: {"content": "hello"}
        self.prompts: list[list[dict[str, Any]]] = []

    async def __aenter__(self) -> Model:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        (_, port), *_ = self._runner.addresses
        self.client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.prompts.append(body["messages"])
        said = self.says(body["messages"])
        if (status := said.pop("status", 200)) != 200:
            return web.json_response({"error": {"message": "down"}}, status=status)
        ended = "tool_calls" if said.get("tool_calls") else "stop"
        choice = {"index": 0, "message": {"role": "assistant", "content": None} | said, "finish_reason": ended}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )


def call(name: str, **arguments: Any) -> dict[str, Any]:
    made = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"tool_calls": [made]}


def remembers(text: str, about: str | None = None) -> Say:
    """Calls `remember` once, then says what it was told of that."""

    def say(prompt: list[dict[str, Any]]) -> dict[str, Any]:
        if prompt[-1]["role"] == "tool":
            return {"content": f"noted ({prompt[-1]['content']})"}
        return call("remember", text=text, **({} if about is None else {"about": about}))

    return say


@asynccontextmanager
async def running(memory: Remembrancer) -> AsyncIterator[tuple[FakeDiscord, Model, Any]]:
    spec = importlib.util.spec_from_file_location("discord_bot", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    async with FakeDiscord() as discord, Model() as model:
        bot = example.MemoryBot(memory, model.client, "m", "mira")
        task = asyncio.create_task(bot.start("a-token"))
        try:
            while bot.get_channel(CHANNEL) is None and not task.done():  # it calls itself ready two seconds later
                await asyncio.sleep(0.01)
            if not task.done():
                yield discord, model, bot
        finally:
            await bot.close()
            await task


def on_discord(database_url: str, story: Callable[[FakeDiscord, Model, World, Any], Any]) -> None:
    async def told() -> None:
        with World(database_url, background=True) as world:
            world.memory.set_persona("mira", instructions="You are mira.")
            async with running(world.memory) as (discord, model, bot):
                await asyncio.wait_for(story(discord, model, world, bot), 60)

    asyncio.run(told())


def texts(world: World, scope: str, subject: object) -> list[str]:
    return [m.text for one in world.memory.list("mira", scope=scope, subject=str(subject)).lists for m in one.memories]


async def is_said(world: World, channel: int, expected: list[str]) -> None:
    """The bot tells memory what it said after it said it."""
    for _ in range(400):
        page = await asyncio.to_thread(world.memory.messages, f"discord-{channel}")
        if (now := [m.text for m in page.messages]) == expected:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(now)


def test_it_saves_by_tool_answers_and_brings_to_mind_what_it_saved(database_url: str) -> None:
    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        model.says = remembers("Juno's cat is named Mochi", "server")
        await discord.says(JUNO, "my cat is named Mochi", mention=True)
        assert (await discord.sent(2)).content.startswith("noted (Saved: Juno's cat is named Mochi")
        assert discord.posted[0].content.startswith("-# ")  # the notice, and it is in no prompt (T15)
        assert "-# " not in json.dumps(model.prompts)
        assert texts(world, "server", GUILD) == ["Juno's cat is named Mochi"]
        model.says = lambda _: {"content": "she is well"}
        await discord.says(KAI, "how is Mochi the cat?", mention=True)
        await discord.sent(3)
        prompt = model.prompts[-1]
        assert "Juno's cat is named Mochi" in prompt[0]["content"]
        assert f"{JUNO}: my cat is named Mochi" in [m["content"] for m in prompt]
        assert f"{JUNO} is Juno, {KAI} is Kai" in prompt[-2]["content"]
        assert [m["role"] for m in prompt if m["content"].startswith("noted")] == ["assistant"]

    on_discord(database_url, story)


def test_what_it_saves_of_a_person_is_told_to_that_person_alone(database_url: str) -> None:
    """T15: a notice on a personal memory goes to its owner."""

    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        model.says = remembers("Juno is allergic to nuts")
        await discord.says(JUNO, "I am allergic to nuts", mention=True)
        await discord.sent(2)
        notices = [s for s in discord.posted if s.content.startswith("-# ")]
        assert [s.channel for s in notices] == [discord.direct[JUNO]]
        assert texts(world, "personal", JUNO) == ["Juno is allergic to nuts"]

    on_discord(database_url, story)


def test_the_arrow_takes_back_what_the_turn_saved(database_url: str) -> None:
    """D19, R14: another answer in place of the first one; only who asked may do so."""

    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        model.says = remembers("Juno keeps bees", "server")
        await discord.says(JUNO, "guess what I keep", mention=True)
        first = await discord.sent(2)
        model.says = lambda _: {"content": "I have no idea"}
        await discord.reacts(KAI, first.id, "🔁")
        await discord.reacts(JUNO, first.id, "🔁")
        await discord.until(lambda: first.edited == 1)
        assert first.content == "I have no idea"
        assert texts(world, "server", GUILD) == []
        await discord.says(JUNO, "and now?", mention=True)
        await discord.sent(3)
        said = [m["content"] for m in model.prompts[-1]]
        assert "I have no idea" in said
        assert not [s for s in said if s.startswith("noted")]

    on_discord(database_url, story)


def test_what_is_said_beside_it_edited_and_deleted_reaches_the_chat(database_url: str) -> None:
    async def story(discord: FakeDiscord, model: Model, world: World, bot: Any) -> None:
        asked = await discord.says(JUNO, "hi there", mention=True)
        await discord.sent(1)
        beside = await discord.says(KAI, "I brought scones")
        gone = await discord.says(KAI, "never mind me")

        await is_said(world, CHANNEL, ["hi there", "hello", "I brought scones", "never mind me"])
        await discord.edits(beside, "I brought cake")
        await discord.edits(asked, "hello there")
        await discord.deletes(gone)
        await is_said(world, CHANNEL, ["hello there", "hello", "I brought cake"])

    on_discord(database_url, story)


def test_alone_with_it_no_mention_is_needed_and_another_bot_is_not_heard(database_url: str) -> None:
    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        await discord.says(BOT, "I am the bot itself", private=True)
        await discord.says(JUNO, "just us", private=True)
        answer = await discord.sent(1)
        assert (answer.channel, answer.content) == (discord.direct[JUNO], "hello")
        await is_said(world, discord.direct[JUNO], ["just us", "hello"])

    on_discord(database_url, story)


@pytest.mark.parametrize("fails", [{"status": 500}, {"status": 401}])
def test_a_model_that_fails_is_shown_and_the_message_is_kept(database_url: str, fails: dict[str, int]) -> None:
    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        model.says = lambda _: dict(fails)
        await discord.says(JUNO, "are you there?", mention=True)
        await discord.until(lambda: discord.reactions == ["⚠️"])
        assert world.memory.chat(f"discord-{CHANNEL}").messages == 1
        model.says = lambda _: {"content": "x" * 2_500}
        await discord.says(JUNO, "and now?", mention=True)
        assert len((await discord.sent(2)).content) == 500

    on_discord(database_url, story)


def test_slash_commands_show_ones_own_and_the_servers_memories_and_forget_ones_own(database_url: str) -> None:
    async def story(discord: FakeDiscord, model: Model, world: World, _: Any) -> None:
        world.memory.save("mira", scope="personal", subject=str(KAI), text="Kai snores", actor="persona")
        mine = world.memory.save("mira", scope="personal", subject=str(JUNO), text="Juno keeps bees", actor="persona")
        world.memory.save("mira", scope="server", subject=str(GUILD), text="Tea is at four", actor="persona")
        shown = (await discord.calls(JUNO, "memories"))["data"]
        assert shown["flags"] == 64  # for their eyes only
        assert "Juno keeps bees" in shown["content"]
        assert "Tea is at four" in shown["content"]
        assert "Kai" not in shown["content"]
        other = await discord.calls(JUNO, "why", fact="Kai snores")
        assert "snores" not in other["data"]["content"]
        own = await discord.calls(JUNO, "why", fact="Juno keeps bees")
        assert "Juno keeps bees" in own["data"]["content"]
        gone = await discord.calls(JUNO, "forget", memory=mine.memory.id.hex[:8])
        assert gone["data"]["content"] == "Forgotten: Juno keeps bees"
        assert texts(world, "personal", JUNO) == []

    on_discord(database_url, story)
