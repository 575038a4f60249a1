"""A Discord bot that remembers. It answers where it is mentioned and in direct messages.

    pip install remembrancer discord.py
    export DISCORD_TOKEN=… OPENAI_API_KEY=…        # OPENAI_BASE_URL and CHAT_MODEL for another endpoint
    python discord_bot.py

It needs the intent "message content" (in Discord's developer portal, under Bot).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import discord
import openai
from discord import app_commands

from remembrancer.domain.errors import NotFound, RemembrancerError
from remembrancer.services import open_memory
from remembrancer.services.answers import MessageView, NoticeView, ReplyAnswer
from remembrancer.services.remembrancer import Remembrancer

log = logging.getLogger("bot")
T = TypeVar("T")
AGAIN = "🔁"
ROUNDS = 4
"""So often the model may call tools before it has to answer."""
LONGEST = 2_000
"""Characters of a Discord message."""


class MemoryBot(discord.Client):
    """One persona. What it says and hears is in its memory's chats, one for each channel."""

    def __init__(self, memory: Remembrancer, model: openai.AsyncOpenAI, model_name: str, persona: str) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self.memory, self.model, self.model_name, self.persona = memory, model, model_name, persona
        self.tree = app_commands.CommandTree(self)
        self.in_line: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)  # one answer a channel at a time
        self.names: dict[str, str] = {}

    async def setup_hook(self) -> None:
        add_commands(self)
        await self.tree.sync()

    # -- what Discord tells ----------------------------------------------------------------------------------------

    async def on_message(self, message: discord.Message) -> None:
        if message.author.bot:
            return
        self.names[key_of(message.author)] = message.author.display_name
        async with self.in_line[message.channel.id]:
            if message.guild is None or (self.user is not None and self.user.mentioned_in(message)):
                await self.answer(message)
            else:
                await self.overhear(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        text = payload.data.get("content")
        if text and (said := await self.find(payload.channel_id, payload.message_id)) and said.role == "user":
            await self.ask(lambda: self.memory.edit_message(said.id, text))

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        if said := await self.find(payload.channel_id, payload.message_id):
            await self.ask(lambda: self.memory.delete_message(said.id))

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        """🔁 under an answer: whoever asked gets another one, and what the first one saved is taken back."""
        if str(payload.emoji) != AGAIN or (self.user is not None and payload.user_id == self.user.id):
            return
        channel = await self.channel(payload.channel_id)
        async with self.in_line[payload.channel_id]:
            old = await self.find(payload.channel_id, payload.message_id)
            if old is None or old.role != "persona" or old.turn is None:
                return
            asked = await channel.fetch_message(int(old.turn))
            if asked.author.id == payload.user_id:
                await self.answer(asked, instead_of=channel.get_partial_message(payload.message_id))

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def answer(self, message: discord.Message, instead_of: discord.PartialMessage | None = None) -> None:
        """Ask memory, ask the model, run its tools, say it, and tell memory what was said.

        The turn is Discord's id of the message: the same one again is a new attempt, and takes the old one back.
        """
        chat, turn = chat_of(message.channel.id), str(message.id)
        try:
            reply = await self.ask(
                lambda: self.memory.reply(
                    self.persona,
                    message=self.text_of(message),
                    users=self.taking_part(message),
                    server=None if message.guild is None else str(message.guild.id),
                    channel=str(message.channel.id),
                    chat=chat,
                    platform="discord",
                    turn=turn,
                )
            )
            async with message.channel.typing():
                text = await self.complete(reply, message)
        except (openai.OpenAIError, RemembrancerError) as failed:
            log.warning("No answer to %s: %s", message.id, failed)
            await message.add_reaction("⚠️")
            return
        if instead_of is not None:
            sent = await instead_of.edit(content=text[:LONGEST])
        else:
            sent = await message.reply(text[:LONGEST])
            for start in range(LONGEST, len(text), LONGEST):
                await message.channel.send(text[start : start + LONGEST])
        await self.ask(
            lambda: self.memory.post(chat, text, author=self.persona, role="persona", turn=turn, ref=str(sent.id))
        )

    async def complete(self, reply: ReplyAnswer, message: discord.Message) -> str:
        """The model's answer, after whatever it remembered on the way."""
        prompt: list[Any] = list(reply.prompt(self.persona))
        writers = dict.fromkeys(m.author for m in reply.messages if m.author in self.names)
        who = ", ".join(f"{key} is {self.names[key]}" for key in writers)
        prompt.insert(-1, {"role": "system", "content": f"Who writes: {who}."})
        for left in reversed(range(ROUNDS)):
            tools: Any = self.memory.tools() if left else openai.omit
            done = await self.model.chat.completions.create(model=self.model_name, messages=prompt, tools=tools)
            said = done.choices[0].message
            if not said.tool_calls:
                return said.content or "…"
            prompt.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                if call.type == "function":
                    name, arguments = call.function.name, call.function.arguments
                    ran = await self.ask(partial(self.memory.run_tool, self.persona, reply, name, arguments))
                    prompt.append({"role": "tool", "tool_call_id": call.id, "content": ran.content})
                    await self.notify(message, ran.notices, None if ran.memory is None else ran.memory.subject)
        return "…"

    async def overhear(self, message: discord.Message) -> None:
        """What is said beside the bot belongs to the chat, too, once there is one."""
        if text := self.text_of(message):
            try:
                await self.ask(
                    lambda: self.memory.post(
                        chat_of(message.channel.id), text, author=key_of(message.author),
                        ref=str(message.id), request_id=f"discord-{message.id}",
                    )
                )  # fmt: skip
            except NotFound:
                log.debug("Nobody has talked with the bot in %s yet.", message.channel)

    async def notify(self, message: discord.Message, notices: Sequence[NoticeView], owner: str | None) -> None:
        """Tell what was saved or forgotten, to those who may know (T15). None of it goes to the model."""
        for notice in notices:
            to: discord.abc.Messageable | None = None
            if notice.audience == "everyone":
                to = message.channel
            elif notice.audience == "managers" and message.guild is not None:
                to = message.guild.public_updates_channel or message.guild.owner
            elif notice.audience == "owner" and owner is not None:
                to = message.author if owner == key_of(message.author) else await self.fetch_user(int(owner))
            if to is not None:
                try:
                    await to.send(f"-# {notice.text}"[:LONGEST])
                except discord.Forbidden:
                    log.info("A notice found closed doors.")

    # -- small things ----------------------------------------------------------------------------------------------

    async def ask(self, work: Callable[[], T]) -> T:
        """Memory's calls wait for a database, so they run beside the event loop."""
        return await asyncio.to_thread(work)

    def text_of(self, message: discord.Message) -> str:
        """Names in place of numbers, and without the mention that calls the bot."""
        me = self.user if message.guild is None else message.guild.me
        return message.clean_content.replace(f"@{me.display_name}" if me else "", "").strip()

    def taking_part(self, message: discord.Message) -> list[str]:
        """The author first, then whoever wrote in this chat today (D27)."""
        try:
            said = self.memory.messages(chat_of(message.channel.id), limit=200).messages
        except NotFound:
            said = []
        today = message.created_at.date()
        others = [m.author for m in said if m.role == "user" and m.said_at.date() == today]
        return list(dict.fromkeys([key_of(message.author), *others]))

    async def find(self, channel: int, message: int) -> MessageView | None:
        """A Discord message as memory knows it, if it is one of the last: by turn, or by what was posted as `ref`."""
        try:
            page = await self.ask(lambda: self.memory.messages(chat_of(channel), limit=200))
        except NotFound:
            return None
        known = (m for m in reversed(page.messages) if str(message) in (m.ref, m.turn if m.role == "user" else None))
        return next(known, None)

    async def channel(self, channel: int) -> Any:
        return self.get_channel(channel) or await self.fetch_channel(channel)


def add_commands(bot: MemoryBot) -> None:
    """Slash commands; only who calls them sees the answers."""

    @bot.tree.command(description="What is remembered of you, and of this server")
    async def memories(interaction: discord.Interaction) -> None:
        mine = await bot.ask(lambda: bot.memory.list(bot.persona, scope="personal", subject=key_of(interaction.user)))
        lists = list(mine.lists)
        if interaction.guild_id is not None:
            here = str(interaction.guild_id)
            lists += (await bot.ask(lambda: bot.memory.list(bot.persona, scope="server", subject=here))).lists
        found = [f"`{m.id.hex[:8]}` {m.text} *({m.state})*" for one in lists for m in one.memories]
        await interaction.response.send_message("\n".join(found)[:LONGEST] or "Nothing yet.", ephemeral=True)

    @bot.tree.command(description="Forget something that is remembered of you")
    @app_commands.describe(memory="Its first 8 digits, as /memories shows them")
    async def forget(interaction: discord.Interaction, memory: str) -> None:
        mine = await bot.ask(lambda: bot.memory.list(bot.persona, scope="personal", subject=key_of(interaction.user)))
        found = [m for one in mine.lists for m in one.memories if memory and m.id.hex.startswith(memory.strip("` "))]
        if len(found) == 1:
            await bot.ask(lambda: bot.memory.delete(found[0].id))
        said = f"Forgotten: {found[0].text}" if len(found) == 1 else "No memory of yours begins like that."
        await interaction.response.send_message(said, ephemeral=True)

    @bot.tree.command(description="Why something is not remembered")
    @app_commands.describe(fact="A fact in a few words: Juno's cat")
    async def why(interaction: discord.Interaction, fact: str) -> None:
        told = await bot.ask(lambda: bot.memory.why(fact, persona=bot.persona))
        theirs = told.memory.subject in (key_of(interaction.user), str(interaction.guild_id))
        said = (
            f"**{told.memory.text}**\n{told.verdict}"
            if theirs
            else "Nothing of yours, or of this server's, reads like that."
        )
        await interaction.response.send_message(said[:LONGEST], ephemeral=True)


def chat_of(channel: int) -> str:
    return f"discord-{channel}"


def key_of(user: discord.abc.User) -> str:
    """Names change, ids do not."""
    return str(user.id)


def main() -> None:
    persona = os.environ.get("PERSONA", "mira")
    with open_memory() as memory:
        memory.set_persona(
            persona, instructions=os.environ.get("INSTRUCTIONS", f"You are {persona}, a cheerful guest.")
        )
        bot = MemoryBot(memory, openai.AsyncOpenAI(), os.environ.get("CHAT_MODEL", "gpt-4o-mini"), persona)
        bot.run(os.environ["DISCORD_TOKEN"])


if __name__ == "__main__":
    main()
