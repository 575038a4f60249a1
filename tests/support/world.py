"""A world to tell stories in: a clock that moves only when told, the product on a database of its own, people who talk.

    world.save("Juno's cat is named Mochi")
    for day in range(1, 8):
        world.day(day)
        world.say("chess tonight?")
    assert world.get(cat).state == "resting"

Nothing runs in the background: what the events say and what the tables show comes apart, or together, when a test says
so (`project`). The embedder is a real one behind HTTP (`FakeOpenAI`): the cosine of two texts is about the share of
words that they have in common, and a third of it is a reasonable match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.events import Recorded
from remembrancer.services import open_memory
from remembrancer.services.answers import ListView, MemoryView, NoticeView, ReplyAnswer, SaveAnswer
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import FakeOpenAI, right, status

PERSONA, SERVER, USER = "mira", "tea house", "juno"
START = datetime(2026, 5, 4, 12, tzinfo=UTC)
"""Noon of the day on which every story begins, a Monday."""
SMALL_TALK = "chess tonight?"
MATCH = 0.3
"""A reasonable match for the words of `FakeOpenAI`: unrelated texts stay below 0.25."""

E = TypeVar("E", bound=e.Event)


class World:
    """One tenant, one clock, one embedding model, one database, for the time of a `with`."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.url = url
        self.now = START
        self.settings: dict[str, Any] = {
            "embedder": "openai", "embedder_model": "words", "match_threshold": MATCH, "background": False,
        } | settings  # fmt: skip
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.fake = self._open.enter_context(FakeOpenAI(dimensions=256))
        self.memory = self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def open(self, **settings: Any) -> Remembrancer:
        """The product once more on the same database, with the same clock; closed at the end."""
        mine = self.settings | settings
        if mine["embedder"] == "openai":
            mine.setdefault("embedder_url", self.fake.url)
        else:
            mine.pop("embedder_model")
        return self._open.enter_context(open_memory(self.url, clock=lambda: self.now, **mine))

    def reopen(self, **settings: Any) -> Remembrancer:
        """The product under other settings, in place of the one before."""
        self.memory.close()
        self.memory = self.open(**settings)
        return self.memory

    # -- time ----------------------------------------------------------------------------------------------------------

    def day(self, number: int, hour: int = 12) -> None:
        """It is this day after the first (0), at this hour."""
        self.now = START.replace(hour=hour) + timedelta(days=number)

    def later(self, **how: float) -> None:
        """Time passes: `later(minutes=5)`."""
        self.now += timedelta(**how)

    # -- what people do ------------------------------------------------------------------------------------------------

    def save(self, text: str, **how: Any) -> UUID:
        """The id of a new memory: one that the persona saved for the server, unless said otherwise."""
        answer = self.saving(text, **how)
        assert answer.status == "saved"
        return answer.memory.id

    def saving(self, text: str, **how: Any) -> SaveAnswer:
        """The answer to a save by the persona for the server, unless said otherwise. It takes a second."""
        how = {"scope": "server", "actor": "persona"} | how
        how.setdefault("subject", SERVER if how["scope"] == "server" else USER)
        persona = how.pop("persona", PERSONA)
        answer = self.memory.save(persona, text=text, **how)
        self.later(seconds=1)
        return answer

    def say(self, message: str = SMALL_TALK, **how: Any) -> ReplyAnswer:
        """Juno says something to Mira in the tea house, unless said otherwise."""
        how = {"users": [USER], "server": SERVER} | how
        return self.memory.reply(how.pop("persona", PERSONA), message=message, **how)

    def talk(self, days: Sequence[int], message: str = SMALL_TALK, **how: Any) -> ReplyAnswer | None:
        """The same is said on each of these days, at noon; the last answer."""
        answer = None
        for number in days:
            self.day(number)
            answer = self.say(message, **how)
        return answer

    # -- what is there -------------------------------------------------------------------------------------------------

    def get(self, memory: UUID) -> MemoryView:
        return self.memory.get(memory)

    def unused(self, *memories: UUID) -> list[int]:
        """The counters of these memories."""
        return [self.get(m).unused_days for m in memories]

    def states(self, *memories: UUID) -> list[str]:
        return [self.get(m).state for m in memories]

    def listed(self, scope: str = "server", subject: str | None = None, persona: str = PERSONA) -> ListView:
        """One list."""
        subject = subject or (SERVER if scope == "server" else USER)
        (one,) = self.memory.list(persona, scope=scope, subject=subject).lists
        return one

    def texts(self, scope: str = "server", subject: str | None = None, persona: str = PERSONA) -> set[str]:
        """The texts of one list."""
        return {m.text for m in self.listed(scope, subject, persona).memories}

    def project(self) -> None:
        """The tables catch up with the events."""
        self.memory.engine.runner.catch_up()

    def stored(self) -> list[Recorded]:
        """Every event that there is, shard by shard."""
        store = self.memory.engine.store
        return store.read_shards(dict.fromkeys(store.heads(), 0), 1_000_000)

    def events(self, kind: type[E]) -> list[E]:
        """The events of one kind, shard by shard."""
        return [r.event for r in self.stored() if isinstance(r.event, kind)]

    def wrote(self, act: Callable[[], object]) -> list[str]:
        """The kinds of the events that this act wrote."""
        before = {r.event.id for r in self.stored()}
        act()
        return [type(r.event).__name__ for r in self.stored() if r.event.id not in before]

    def lose_the_model(self) -> None:
        """The endpoint answers nothing but errors from now on."""
        self.fake.otherwise = status(400)

    def find_the_model(self) -> None:
        self.fake.otherwise = right


def desk(answer: ReplyAnswer) -> list[str]:
    """The texts of the desk, in print order."""
    return [m.text for m in answer.prefix.memories]


def recalled(answer: ReplyAnswer) -> list[str]:
    """The texts that this reply recalled."""
    return [m.text for m in answer.late.recalled]


def matched(answer: ReplyAnswer) -> list[str]:
    """The texts that counted as used in this reply, best first."""
    return [m.text for m in answer.search.matches]


def audiences(notices: Sequence[NoticeView]) -> list[str]:
    return [n.audience for n in notices]
