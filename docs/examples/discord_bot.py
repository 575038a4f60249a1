"""A character on Discord that remembers: discord.py talks, Remembrancer keeps the memory. Copy it and change it.

    pip install . discord.py        # in a checkout of Remembrancer
    export DISCORD_TOKEN=… REMEMBRANCER_CHAT_MODEL=gpt-4o-mini REMEMBRANCER_CHAT_MODEL_KEY=…   # or with _URL
    python discord_bot.py

In a server it answers when it is mentioned or replied to, in a direct message always. What each piece does, and why, is
told in docs/discord.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import discord
from discord import app_commands

from remembrancer.domain.errors import NotFound, RemembrancerError
from remembrancer.services import open_memory
from remembrancer.services.answers import MemoryView, MessageView, NoticeView
from remembrancer.services.answers_talk import TalkAnswer
from remembrancer.services.remembrancer import Remembrancer

log = logging.getLogger("bot")
AGAIN = "\N{CLOCKWISE RIGHTWARDS AND LEFTWARDS OPEN CIRCLE ARROWS}"
LONGEST = 2_000
"""Characters of a Discord message."""
LOOK_BACK = 500
"""So many messages of a channel are looked through for one that was edited or deleted."""


class Bot(discord.Client):
    """One persona. Memories are kept under Discord's ids: names can be changed, and taken by others."""

    def __init__(self, memory: Remembrancer, persona: str, *, mod_channel: int | None = None, **options: Any) -> None:
        intents = discord.Intents.default()
        intents.message_content = True  # to be switched on in Discord's developer portal, too
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none(), **options)
        self.memory, self.persona, self.mod_channel = memory, persona, mod_channel
        self.one_at_a_time: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)  # by channel
        self.names: dict[str, str] = {}
        self.tree = app_commands.CommandTree(self)
        add_commands(self)

    async def setup_hook(self) -> None:
        """Tell Discord which commands there are."""
        await self.tree.sync()

    # -- talking -------------------------------------------------------------------------------------------------------

    async def on_message(self, message: discord.Message) -> None:
        """Answer, or at least know what was said."""
        if message.author.bot or not message.content.strip():
            return
        self.names[str(message.author.id)] = message.author.display_name
        async with self.one_at_a_time[message.channel.id]:
            if self.is_for_me(message):
                await self.answer(message)
            else:
                await asyncio.to_thread(self.overhear, message)

    def is_for_me(self, message: discord.Message) -> bool:
        """In private, mentioned, or replied to."""
        replied_to = message.reference.resolved if message.reference else None
        mine = isinstance(replied_to, discord.Message) and replied_to.author == self.user
        return message.guild is None or self.user in message.mentions or mine

    async def answer(self, message: discord.Message, old: discord.Message | None = None) -> None:
        """A turn: what it says, and to whom it is told what it did. `old`: the answer that this one replaces."""
        try:
            async with message.channel.typing():
                turn = await asyncio.to_thread(self.turn, message)
        except RemembrancerError as failed:  # the model is away, say: the message is kept, and the reaction asks again
            log.warning("No answer: %s", failed)
            await message.add_reaction(AGAIN)
            return
        first, *rest = (turn.text[n : n + LONGEST] for n in range(0, len(turn.text), LONGEST))
        await (old.edit(content=first) if old else message.reply(first, mention_author=False))
        for part in rest:
            await message.channel.send(part)
        for notice in turn.notices:
            await self.tell(message, notice)

    def turn(self, message: discord.Message) -> TalkAnswer:
        """The same message again is a new attempt of its turn: what the first one did to memories is undone (D19)."""
        author = str(message.author.id)
        today = [
            m.author
            for m in self.said(message.channel.id)
            if m.role == "user" and m.said_at.date() == discord.utils.utcnow().date()
        ]
        users = list(dict.fromkeys([author, *today]))  # who takes part: the author first, then who wrote today (D27)
        people = "; ".join(f"{user} is \u201c{self.names[user]}\u201d" for user in users if user in self.names)
        return self.memory.talk(
            self.persona, message=self.text_of(message), users=users, chat=self.chat(message.channel.id),
            server=str(message.guild.id) if message.guild else None, channel=str(message.channel.id),
            platform="discord", turn=str(message.id), note=f"The people here: {people}." if people else None,
        )  # fmt: skip

    def overhear(self, message: discord.Message) -> None:
        """What is said to others is part of the chat, once there is one."""
        try:
            self.memory.post(
                self.chat(message.channel.id), self.text_of(message), author=str(message.author.id), ref=str(message.id)
            )
        except NotFound:
            log.debug("Nobody has talked to me in %s yet.", message.channel)

    async def tell(self, message: discord.Message, notice: NoticeView) -> None:
        """A notice goes to those whom it names, and to nobody else (T15)."""
        to: discord.abc.Messageable | None = None
        if notice.audience == "everyone" or (notice.audience == "owner" and message.guild is None):
            to = message.channel
        elif notice.audience == "owner" and notice.user is not None:
            to = await self.fetch_user(int(notice.user))
        elif notice.audience == "managers" and message.guild is not None:
            mods = message.guild.get_channel(self.mod_channel or 0) or message.guild.public_updates_channel
            to = mods if isinstance(mods, discord.TextChannel) else await self.fetch_user(message.guild.owner_id or 0)
        if to is not None:
            try:
                await to.send(f"-# {notice.text}"[:LONGEST])
            except discord.Forbidden:
                log.info("%s takes no messages of mine.", to)

    # -- what people do to messages ------------------------------------------------------------------------------------

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        """Whoever asked last may have another answer, by a reaction to the question or to its answer."""
        if str(payload.emoji) != AGAIN or self.user is None or payload.user_id == self.user.id:
            return
        channel = self.get_channel(payload.channel_id) or await self.fetch_channel(payload.channel_id)
        assert isinstance(channel, discord.abc.Messageable)
        question, old = await channel.fetch_message(payload.message_id), None
        if question.author == self.user and question.reference and question.reference.message_id:
            old, question = question, await channel.fetch_message(question.reference.message_id)
        async with self.one_at_a_time[payload.channel_id]:
            asked = [m.turn for m in await asyncio.to_thread(self.said, payload.channel_id) if m.role == "user"]
            if question.author.id == payload.user_id and str(question.id) in asked[-1:]:
                await self.answer(question, old)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """What a person has worded anew reads so from now on; a summary that tells of it is made again (D17)."""
        text = self.text_of(payload.message)
        if payload.message.author.bot or not text.strip():
            return
        async with self.one_at_a_time[payload.channel_id]:
            found = await asyncio.to_thread(self.find, payload.channel_id, "user", payload.message_id)
            if found and found.text != text:  # Discord tells of previews of links in the same way
                await asyncio.to_thread(self.memory.edit_message, found.id, text)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """What was deleted is gone."""
        await self.gone(payload.channel_id, payload.message_id, payload.cached_message)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """The same of many at once."""
        cached = {m.id: m for m in payload.cached_messages}
        for message in payload.message_ids:
            await self.gone(payload.channel_id, message, cached.get(message))

    async def gone(self, channel: int, message: int, cached: discord.Message | None) -> None:
        """Take it out; one of the bot's own, while discord.py still knows which question it answers."""
        mine = cached.reference if cached and cached.author == self.user else None
        role, turn = ("persona", mine.message_id) if mine and mine.message_id else ("user", message)
        async with self.one_at_a_time[channel]:
            if found := await asyncio.to_thread(self.find, channel, role, turn):
                await asyncio.to_thread(self.memory.delete_message, found.id)

    # -- what is known -------------------------------------------------------------------------------------------------

    def chat(self, channel: int) -> str:
        """A chat for each channel."""
        return f"discord:{channel}:{self.persona}"

    def text_of(self, message: discord.Message) -> str:
        """With names in place of numbers, and without the mention that calls the bot."""
        me = message.guild.me if message.guild else self.user
        text = message.clean_content.replace(f"@{me.display_name}" if me else "", "").strip()
        return text or message.clean_content

    def said(self, channel: int) -> Sequence[MessageView]:
        """The newest messages, oldest first."""
        try:
            return self.memory.messages(self.chat(channel), limit=LOOK_BACK).messages
        except NotFound:
            return []

    def find(self, channel: int, role: str, message: int) -> MessageView | None:
        """The message that Discord knows by this id: a question and its answer have it as their turn."""
        known = [m for m in self.said(channel) if m.role == role and str(message) in (m.turn, m.ref)]
        return known[0] if known else None

    def of(self, scope: str, subject: int) -> Sequence[MemoryView]:
        """What is remembered of a person, or for a server."""
        (one,) = self.memory.list(self.persona, scope=scope, subject=str(subject)).lists
        return one.memories


def add_commands(bot: Bot) -> None:
    """Everybody sees what is remembered of them and for the server, and deletes what is theirs; nothing of others."""

    async def say(interaction: discord.Interaction, text: str) -> None:
        await interaction.response.send_message(text[:LONGEST] or "Nothing.", ephemeral=True)

    async def choose(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        mine = await asyncio.to_thread(bot.of, "personal", interaction.user.id)
        near = [m for m in mine if typed.casefold() in m.text.casefold()][:25]
        return [app_commands.Choice(name=m.text[:100], value=str(m.id)) for m in near]

    @bot.tree.command(description="What I remember of you, and of this server")
    async def memories(interaction: discord.Interaction) -> None:
        found = [*await asyncio.to_thread(bot.of, "personal", interaction.user.id)]
        if interaction.guild_id is not None:
            found += await asyncio.to_thread(bot.of, "server", interaction.guild_id)
        await say(interaction, "\n".join(f"- {m.text} ({m.state})" for m in found))

    @bot.tree.command(description="Why I remember it, or why it slipped my mind")
    async def why(interaction: discord.Interaction, text: str) -> None:
        told = await asyncio.to_thread(bot.memory.why, text, persona=bot.persona)
        theirs = (("personal", str(interaction.user.id)), ("server", str(interaction.guild_id)))
        known = told.memory if told.memory and (told.memory.scope, told.memory.subject) in theirs else None
        await say(interaction, f"{known.text}: {told.verdict}" if known else "I know of nothing like that.")

    @bot.tree.command(description="Forget it")
    async def forget(interaction: discord.Interaction, memory: str) -> None:
        known = {str(m.id) for m in await asyncio.to_thread(bot.of, "personal", interaction.user.id)}
        gone = await asyncio.to_thread(bot.memory.delete, memory) if memory in known else None
        await say(interaction, f"Forgotten: {gone.memory.text}" if gone else "Choose one from the list.")

    forget.autocomplete("memory")(choose)

    @bot.tree.error
    async def failed(interaction: discord.Interaction, error: app_commands.AppCommandError) -> None:
        cause = error.original if isinstance(error, app_commands.CommandInvokeError) else error
        if not isinstance(cause, RemembrancerError):
            log.error("A command failed.", exc_info=cause)
        await say(interaction, str(cause) if isinstance(cause, RemembrancerError) else "That did not work.")


if __name__ == "__main__":
    moderators = os.environ.get("MOD_CHANNEL")
    with open_memory() as remembers:
        talker = Bot(remembers, os.environ.get("PERSONA", "mira"), mod_channel=int(moderators) if moderators else None)
        talker.run(os.environ["DISCORD_TOKEN"])
