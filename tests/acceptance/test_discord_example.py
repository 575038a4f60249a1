"""The bot of docs/discord.md: the real discord.py, with a Discord on loopback and a scripted chat model."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_discord import CHANNEL, GUILD, JUNO, KAI, ME, MODS, OWNER, FakeDiscord, Who
from tests.support.fake_openai import FakeOpenAI
from tests.support.scripted_chat import Behaviour, ScriptedChat, calls, says, status

EXAMPLE = Path(__file__).parents[2] / "docs/examples/discord_bot.py"
CAT = "Juno's cat is named Mochi"
CHAT = f"discord:{CHANNEL}:mira"
REMEMBERS_CAT = calls(("remember", {"text": CAT}))


class Stage:
    """A bot, and all that is around it."""

    def __init__(self, memory: Remembrancer, model: ScriptedChat, example: ModuleType) -> None:
        self.memory, self.model, self.example = memory, model, example
        self.messages: dict[str, dict[str, Any]] = {}  # Discord's, whatever becomes of the bot

    def play(self, scene: Callable[[FakeDiscord], Awaitable[None]], **bot: Any) -> None:
        async def run() -> None:
            talker = self.example.Bot(self.memory, "mira", **bot)
            async with FakeDiscord(self.messages) as discord, discord.running(talker):
                await scene(discord)

        asyncio.run(run())

    def said(self, chat: str = CHAT) -> list[tuple[str, str]]:
        return [(m.author, m.text) for m in self.memory.messages(chat).messages]

    def mine(self, user: str = JUNO.id) -> list[str]:
        return [m.text for m in self.memory.list("mira", scope="personal", subject=user).lists[0].memories]

    def prompt(self, number: int) -> str:
        return "\n".join(str(m["content"]) for m in self.model.requests[number].messages)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("discord_bot", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stage(database_url: str, example: ModuleType) -> Iterator[Stage]:
    with (
        ScriptedChat() as model,
        FakeOpenAI(dimensions=256) as embedder,
        open_memory(
            database_url, embedder="openai", embedder_model="words", embedder_url=embedder.url, match_threshold=0.3,
            chat_model="scripted", chat_model_url=model.url,
        ) as memory,
    ):  # fmt: skip
        yield Stage(memory, model, example)


def test_t15_a_mention_is_answered_what_it_learns_is_kept_and_told_to_its_owner_alone(stage: Stage) -> None:
    stage.model.script = [REMEMBERS_CAT, says("What a name!"), says("Asleep on my tea.")]

    async def scene(discord: FakeDiscord) -> None:
        asked = await discord.says(JUNO, "my cat is called Mochi")
        assert await discord.sent(1) == ["What a name!"]
        post = await discord.did("POST", f"channels/{CHANNEL}/messages")
        assert str(post.body["message_reference"]["message_id"]) == asked
        assert post.body["allowed_mentions"]["parse"] == []
        assert await discord.sent(1, f"7{JUNO.id}") == [f"-# Remembered: \u201c{CAT}\u201d"]
        await discord.says(JUNO, "how is she?")
        assert await discord.sent(2) == ["What a name!", "Asleep on my tea."]
        assert [discord.texts(where) for where in (f"7{KAI.id}", f"7{OWNER.id}", MODS)] == [[], [], []]

    stage.play(scene)
    assert stage.mine() == [CAT]
    assert stage.said() == [
        (JUNO.id, "my cat is called Mochi"), ("mira", "What a name!"), (JUNO.id, "how is she?"),
        ("mira", "Asleep on my tea."),
    ]  # fmt: skip
    assert CAT in stage.prompt(2)
    assert f"{JUNO.id} is \u201cJuno\u201d" in stage.prompt(2)
    assert not any("Remembered:" in stage.prompt(n) for n in range(3))
    assert stage.model.requests[0].tools == ["remember", "update_memory", "forget_memory"]


def test_t6_what_is_in_no_desk_comes_to_mind_when_somebody_asks(stage: Stage) -> None:
    for text in (CAT, "Kai plays the oboe"):
        stage.memory.save("mira", scope="server", subject=GUILD, text=text, actor="persona")
    stage.memory.set_policy(desk_limit=1)

    async def scene(discord: FakeDiscord) -> None:
        await discord.says(KAI, "what is Juno's cat named?")
        await discord.sent(1)

    stage.play(scene)
    late = [m["content"] for m in stage.model.requests[0].messages if m["role"] == "system"]
    assert CAT not in late[0]
    assert any(CAT in text for text in late[1:])


def test_what_others_say_is_heard_and_edits_and_deletions_are_passed_on(stage: Stage) -> None:
    async def scene(discord: FakeDiscord) -> None:
        await discord.says(KAI, "nobody asked her yet", to=())
        asked = await discord.says(JUNO, "hello")
        await discord.sent(1)
        aside = await discord.says(KAI, "I am here, too", to=())
        await discord.until(lambda: len(stage.said()) == 3)
        await discord.edits(asked, "good evening")
        await discord.edits(aside, "I am not here")
        await discord.until(lambda: {text for _, text in stage.said()} >= {"good evening", "I am not here"})
        again = await discord.says(JUNO, "who is here?")
        await discord.sent(2)
        await discord.deletes(aside)
        await discord.deletes(again)
        await discord.until(lambda: len(stage.said()) == 3)
        await discord.deletes(discord.answer_to(again))
        await discord.until(lambda: len(stage.said()) == 2)

    async def after_a_restart(discord: FakeDiscord) -> None:
        await discord.edits(next(iter(stage.messages.values()))["id"], "whom?")
        await discord.edits(next(m["id"] for m in stage.messages.values() if m["content"] == "good evening"), "hi")
        await discord.until(lambda: stage.said()[0] == (JUNO.id, "hi"))

    stage.play(scene)
    assert stage.said() == [(JUNO.id, "good evening"), ("mira", "You say: hello")]
    stage.play(after_a_restart)
    assert stage.said() == [(JUNO.id, "hi"), ("mira", "You say: hello")]


def test_an_update_that_changes_no_word_is_no_edit(stage: Stage) -> None:
    """Discord tells of the preview of a link in the same way."""

    async def scene(discord: FakeDiscord) -> None:
        asked = await discord.says(JUNO, "hello")
        await discord.sent(1)
        await discord.edits(asked, f"<@{ME.id}> hello")
        await discord.says(JUNO, "and now?")
        await discord.sent(2)

    stage.play(scene)
    assert [m.edited_at for m in stage.memory.messages(CHAT).messages] == [None] * 4


def test_a_purge_takes_questions_and_answers_out(stage: Stage) -> None:
    async def scene(discord: FakeDiscord) -> None:
        asked = [await discord.says(JUNO, text) for text in ("one", "two")]
        await discord.sent(2)
        await discord.purges(asked[0], discord.answer_to(asked[0]))
        await discord.until(lambda: len(stage.said()) == 2)

    stage.play(scene)
    assert stage.said()[0] == (JUNO.id, "two")


def test_d27_those_who_wrote_today_take_part(stage: Stage) -> None:
    async def scene(discord: FakeDiscord) -> None:
        await discord.says(JUNO, "hello")
        await discord.sent(1)
        last = await discord.says(KAI, "me too")
        await discord.sent(2)
        await asyncio.to_thread(stage.memory.messages, CHAT)
        entries = await asyncio.to_thread(lambda: stage.memory.history(turn=last).entries)
        assert entries[0].data["users"] == [KAI.id, JUNO.id]

    stage.play(scene)


@pytest.mark.parametrize(
    ("notices", "mods", "where"),
    [
        ("everyone", None, CHANNEL), ("managers", None, f"7{OWNER.id}"), ("managers", int(MODS), MODS),
        ("hidden", None, None),
    ],
)  # fmt: skip
def test_t15_a_notice_of_the_server_goes_where_the_server_wants_it(
    stage: Stage, notices: str, mods: int | None, where: str | None
) -> None:
    stage.memory.set_server(GUILD, notices=notices)
    stage.model.script = [calls(("remember", {"text": CAT, "about": "server"})), says("Noted."), says("Yes?")]

    async def scene(discord: FakeDiscord) -> None:
        await discord.says(JUNO, "remember for all")
        await discord.sent(1)
        if where is not None:
            await discord.until(lambda: any("Remembered" in text for text in discord.texts(where)))
        await discord.says(JUNO, "thanks")
        await discord.until(lambda: "Yes?" in discord.texts(CHANNEL))
        everywhere = (CHANNEL, MODS, *(f"7{who.id}" for who in (JUNO, KAI, OWNER)))
        told = [place for place in everywhere if any("Remembered" in text for text in discord.texts(place))]
        assert told == ([] if where is None else [where])

    stage.play(scene, mod_channel=mods)


def test_in_private_it_answers_without_a_mention_and_tells_there_and_hears_no_bots(stage: Stage) -> None:
    stage.model.script = [REMEMBERS_CAT, says("What a name!")]

    async def scene(discord: FakeDiscord) -> None:
        await discord.says_in_private(Who(f"1{555:017}", "Botty", bot=True), "I am a bot")
        await discord.says_in_private(JUNO, "my cat is called Mochi")
        assert await discord.sent(2, f"7{JUNO.id}") == ["What a name!", f"-# Remembered: \u201c{CAT}\u201d"]

    stage.play(scene)
    assert stage.memory.chat(f"discord:7{JUNO.id}:mira").platform == "discord"


def test_d19_the_reaction_regenerates_and_the_first_attempt_is_forgotten(stage: Stage) -> None:
    stage.model.script = [REMEMBERS_CAT, says("What a name!"), says("A fine cat.")]

    async def scene(discord: FakeDiscord) -> None:
        asked = await discord.says(JUNO, "my cat is called Mochi")
        await discord.sent(1, f"7{JUNO.id}")
        answer = discord.answer_to(asked)
        await discord.reacts(KAI, answer, stage.example.AGAIN)
        await discord.reacts(ME, asked, stage.example.AGAIN)
        await discord.reacts(JUNO, answer, stage.example.AGAIN)
        edited = await discord.did("PATCH", f"channels/{CHANNEL}/messages/{answer}")
        assert edited.body["content"] == "A fine cat."

    stage.play(scene)
    assert stage.mine() == []
    assert stage.said() == [(JUNO.id, "my cat is called Mochi"), ("mira", "A fine cat.")]
    assert len(stage.model.requests) == 3


def test_only_the_last_question_is_answered_anew(stage: Stage) -> None:
    async def scene(discord: FakeDiscord) -> None:
        first = await discord.says(JUNO, "one")
        await discord.sent(1)
        second = await discord.says(KAI, "two")
        await discord.sent(2)
        await discord.reacts(JUNO, first, stage.example.AGAIN)
        await discord.reacts(KAI, second, stage.example.AGAIN)
        await discord.sent(3)

    stage.play(scene)
    assert [text for _, text in stage.said()] == ["one", "You say: one", "two", f"You say: {KAI.id}: two"]
    assert len(stage.model.requests) == 3


def test_c12_t15_a_save_that_finds_no_room_is_told_to_whom_it_was_for(stage: Stage) -> None:
    stage.memory.set_policy(list_capacity=1)
    stage.memory.save("mira", scope="personal", subject=KAI.id, text="Kai plays the oboe")
    stage.model.script = [
        says("Hello."), calls(("remember", {"text": "Kai sings", "about": KAI.id})), says("I cannot keep that."),
    ]  # fmt: skip

    async def scene(discord: FakeDiscord) -> None:
        await discord.says(KAI, "hello")
        await discord.sent(1)
        await discord.says(JUNO, "Kai sings")
        (told,) = await discord.sent(1, f"7{KAI.id}")
        assert told.startswith("-# Not remembered: \u201cKai sings\u201d.")
        assert discord.texts(f"7{JUNO.id}") == []

    stage.play(scene)


@pytest.mark.parametrize("failures", [[status(401)], [status(500)] * 3])
def test_a_model_that_is_away_is_shown_and_the_reaction_asks_again(stage: Stage, failures: list[Behaviour]) -> None:
    stage.model.script = [*failures, says("Here I am.")]

    async def scene(discord: FakeDiscord) -> None:
        asked = await discord.says(JUNO, "hello")
        await discord.did("PUT", f"messages/{asked}/reactions")
        assert discord.texts(CHANNEL) == []
        await discord.reacts(JUNO, asked, stage.example.AGAIN)
        assert await discord.sent(1) == ["Here I am."]

    stage.play(scene)
    assert stage.said() == [(JUNO.id, "hello"), ("mira", "Here I am.")]


def test_the_commands_show_and_forget_ones_own_memories_and_no_others(stage: Stage) -> None:
    stage.model.script = [REMEMBERS_CAT, says("What a name!")]

    async def scene(discord: FakeDiscord) -> None:
        assert await discord.commands(JUNO, "memories") == "Nothing."
        await discord.says(JUNO, "my cat is called Mochi")
        await discord.sent(1, f"7{JUNO.id}")
        stage.memory.save("mira", scope="server", subject=GUILD, text="Tea is at four", actor="persona")
        assert await discord.commands(JUNO, "memories") == f"- {CAT} (active)\n- Tea is at four (active)"
        assert await discord.commands(KAI, "memories") == "- Tea is at four (active)"
        assert CAT in await discord.commands(JUNO, "why", text="Juno's cat")
        assert await discord.commands(KAI, "why", text="Juno's cat") == "I know of nothing like that."
        (cat,) = await asyncio.to_thread(
            lambda: stage.memory.list("mira", scope="personal", subject=JUNO.id).lists[0].memories
        )
        assert await discord.commands(KAI, "forget", memory=str(cat.id)) == "Choose one from the list."
        assert await discord.commands(JUNO, "forget", memory=str(cat.id)) == f"Forgotten: {CAT}"

    stage.play(scene)
    assert stage.mine() == []


def test_an_answer_longer_than_discord_takes_comes_in_parts(stage: Stage) -> None:
    stage.model.script = [says("x" * 4_500)]

    async def scene(discord: FakeDiscord) -> None:
        await discord.says(JUNO, "tell me all")
        assert [len(text) for text in await discord.sent(3)] == [2_000, 2_000, 500]

    stage.play(scene)
