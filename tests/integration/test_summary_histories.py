"""D16, D17 and D18 on the real store, over drawn histories with a model that fails at random, against texts alone."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.oracle.plain_cover import copied, faults
from tests.support import scripted_chat as script
from tests.support.chats import Talk, talking
from tests.support.world import PERSONA, USER

NAMES = count(1)
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # a history takes seconds: it is told as it was drawn
FILLER = "and so on, word by word, until the lamp went out and nobody said any more " * 3
ACTS = ("turn", "turn", "turn", "background", "background", "project", "edit", "delete", "regenerate", "rewind", "fork")


def teller(asked: script.Asked) -> dict[str, Any]:
    """A model that copies the tokens of what it reads."""
    match asked.shape:
        case "ChunkDraft":
            return {"summary": copied(asked.question), "rules": []}
        case "MergedDraft":
            return {"summary": copied(asked.question)}
        case "LongTermDraft":
            new = asked.question.partition("NEW SUMMARIES")[2]
            return {"chronology": [copied(new)], "promises": [], "references": [], "state": ["They are here."]}
    raise AssertionError(asked.shape)


class Story:
    """One chat as the people in it know it: messages by name, with the token of their wording and their id."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.chat = f"chat {next(NAMES)}"
        self.said: dict[str, tuple[str, Any, str]] = {}
        self.turns: list[str] = []
        self.turn(0)

    def reply(self, turn: str, text: str) -> None:
        answer = self.talk.memory.reply(
            PERSONA, message=text, users=[USER], chat=self.chat, turn=turn, model_context=100_000
        )
        newest = answer.messages[-1]
        name = text.split(maxsplit=1)[0]
        self.said[name] = (f"{name}a", newest.id, turn)
        present = {name: token for name, (token, _, _) in self.said.items()}
        wrong = faults(present, [answer.summary.text], [m.text for m in answer.messages], answer.window.unsent)
        assert not wrong, wrong

    def answer(self, turn: str) -> None:
        name = f"m{next(NAMES)}"
        posted = self.talk.memory.post(
            self.chat, f"{name} <<{name}a>> {FILLER}", author=PERSONA, role="persona", turn=turn
        )
        self.said[name] = (f"{name}a", posted.message, turn)

    def turn(self, _: int) -> None:
        turn, name = f"t{next(NAMES)}", f"m{next(NAMES)}"
        self.turns.append(turn)
        self.reply(turn, f"{name} <<{name}a>> {FILLER}")
        self.answer(turn)

    def edit(self, which: int) -> None:
        if self.said:
            name = sorted(self.said)[which % len(self.said)]
            token = f"{name}e{next(NAMES)}"
            _, message, turn = self.said[name]
            self.talk.memory.edit_message(message, f"{name} <<{token}>> {FILLER}", chat=self.chat)
            self.said[name] = (token, message, turn)

    def delete(self, which: int) -> None:
        if self.said:
            name = sorted(self.said)[which % len(self.said)]
            self.talk.memory.delete_message(self.said.pop(name)[1], chat=self.chat)

    def regenerate(self, _: int) -> None:
        asked = [n for n, (token, _, turn) in self.said.items() if turn == self.turns[-1] and token == f"{n}a"]
        if len(asked) == 2:
            name = asked[0]
            self.said.pop(asked[1])
            self.reply(self.turns[-1], f"{name} <<{name}a>> {FILLER}")
            self.answer(self.turns[-1])

    def rewind(self, which: int) -> None:
        back = 1 + which % 3
        if len(self.turns) > back:
            self.talk.memory.rewind(self.turns[-1 - back])
            gone = self.turns[-back:]
            self.turns = self.turns[:-back]
            self.said = {n: one for n, one in self.said.items() if one[2] not in gone}

    def fork(self, which: int) -> None:
        """Go on as the fork; the messages keep their ids, and new turns are the fork's."""
        if len(self.turns) > 2:
            names = list(self.said)
            upto = names[which % len(names)]
            other = f"chat {next(NAMES)}"
            self.talk.memory.fork(self.chat, other, message=self.said[upto][1])
            order = [m.id for m in self.whole(other)]
            self.chat = other
            self.said = {n: one for n, one in self.said.items() if one[1] in order}
            self.turns = []
            self.turn(0)

    def whole(self, chat: str) -> list[Any]:
        self.talk.world.project()
        return list(self.talk.memory.messages(chat, limit=1000).messages)

    def background(self, number: int) -> None:
        """The background does what is due, and the model fails now and then."""
        bad = script.BAD[number % len(script.BAD)]
        self.talk.model.script = [script.answers if (number >> n) & 1 else bad for n in range(number % 7)]
        self.talk.compact()
        self.talk.model.script = []
        self.talk.world.later(hours=2)

    def project(self, _: int) -> None:
        self.talk.world.project()


@pytest.mark.slow
def test_d16_d17_d18_at_every_reply_each_message_is_sent_or_in_the_summary_or_counted(database_url: str):
    numbers: dict[str, Any] = {
        "chunk_messages": 3, "recent_summaries": 2, "merged_summaries": 2, "model_context": 1_000, "answer_tokens": 0,
        "chunks_per_run": 2,
    }  # fmt: skip
    with talking(database_url, **numbers) as talk:
        talk.model.writer = teller
        merged = 0

        @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=QUICK)
        @given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1_000)), min_size=12, max_size=40))
        def stories(history: list[tuple[str, int]]) -> None:
            nonlocal merged
            story = Story(talk)
            for act, number in history:
                getattr(story, act)(number)
            story.turn(0)
            story.talk.compact()
            story.turn(0)
            merged += any(p.tier != "recent" for p in talk.memory.summary(story.chat).parts)

        stories()
        assert merged, "no history was long enough to say anything"
