"""Chats with summaries: a world whose chat model is a scripted one, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from remembrancer.domain import events as e
from remembrancer.services.chats import owners_of
from remembrancer.services.clock import make_id
from remembrancer.services.store import Batch, Request
from remembrancer.services.tokens import count_tokens
from tests.support.scripted_chat import ScriptedChat
from tests.support.world import PERSONA, USER, World

CHAT = "campaign"
LINE = "and so it went on, word by word, " * 3


class Talk:
    """One chat of Mira and Juno. Each turn is a message and an answer."""

    def __init__(self, world: World, model: ScriptedChat) -> None:
        self.world = world
        self.model = model
        self.turns = 0

    @property
    def memory(self):
        return self.world.memory

    def turn(self, text: str | None = None, user: str = USER, chat: str = CHAT, **how: Any):
        """A message and its answer; what the reply was given."""
        self.turns += 1
        name = f"t{self.turns}"
        said = text if text is not None else f"message {self.turns} {LINE}"
        answer = self.memory.reply(PERSONA, message=said, users=[user], chat=chat, turn=name, **how)
        self.memory.post(chat, f"answer {self.turns} {LINE}", author=PERSONA, role="persona", turn=name)
        self.world.later(seconds=1)
        return answer

    def many(self, turns: int) -> None:
        """So many turns at once, written as replies and posts write them."""
        if not self.turns:
            self.turn()
            turns -= 1
        here = self.memory.engine.chats.require(CHAT)
        store, shard = self.memory.engine.store, here.stream.bytes[0]
        users, answers = [], []
        for _ in range(turns):
            self.turns += 1
            for role, author, text in (
                ("user", USER, f"message {self.turns} {LINE}"), ("persona", PERSONA, f"answer {self.turns} {LINE}"),
            ):  # fmt: skip
                said = e.MessagePosted(
                    id=make_id(shard), tenant="default", turn=f"t{self.turns}", chat=CHAT, message=make_id(shard),
                    role=role, author=author, text=text, tokens=count_tokens(text),
                )  # fmt: skip
                (users if role == "user" else answers).append(said)
        said = [m for pair in zip(users, answers, strict=True) for m in pair]
        if said:
            store.append(
                [Batch(here.stream, said, None, owners_of(here.home, "user", USER))],
                request=Request("default", shard, verb="post"), now=self.world.now,
            )  # fmt: skip

    def compact(self) -> int:
        """The background does all that is due now. How many runs that were."""
        self.world.project()
        done = self.memory.engine.compactor.work()
        self.world.project()
        return done

    def look(self, chat: str = CHAT):
        """What a reply would be given now; the message is taken out again."""
        answer = self.memory.reply(
            PERSONA, message="so?", users=[USER], chat=chat, turn=f"look {chat} {self.world.now}"
        )
        self.memory.delete_message(answer.messages[-1].id, chat=chat)
        return answer


@contextmanager
def talking(url: str, **settings: Any) -> Iterator[Talk]:
    """A talk in a new world; small windows, so that summaries come soon."""
    with (
        ScriptedChat() as model,
        World(url, embedder="none", chat_model="scripted", chat_model_url=model.url, **settings) as world,
    ):
        yield Talk(world, model)
