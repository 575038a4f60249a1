"""The story that `demo` tells: a cat's name over three weeks, then a list that runs out of room.

What is printed is what the store answered, and each claim is checked: a demo that does not hold ends with exit code 1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import typer

from remembrancer.domain.errors import InvalidInput, ListFull
from remembrancer.domain.identity import Subject
from remembrancer.services.answers import Answer, MemoryView, ReplyAnswer, SaveAnswer
from remembrancer.services.cli.demo import PATIENCE, Told, command, where_it_is, with_room
from remembrancer.services.cli.session import Session
from remembrancer.services.remembrancer import Remembrancer

PERSONA, SERVER, PEOPLE = "mira", "treehouse", ("juno", "kai")
MOCHI = "Juno's cat is named Mochi"
KNOWN = {-1: "Kai's first laptop was Bruno", 0: "Kai plays healer in Starfall"}
PINNED = "Juno is afraid of spiders"


class Line(NamedTuple):
    """A day of the script: who says what, and how long Mochi is unused afterwards."""

    day: int
    who: str
    says: str
    unused: int
    what: str = ""


SCRIPT = (
    Line(1, "juno", "Mochi knocked over my tea!", 0, "Mira saves it in her reply"),
    Line(2, "juno", "Kai, heal us in Starfall?", 1),
    Line(3, "kai", "That boss took us four tries!", 2),
    Line(4, "juno", "I finished the ice level.", 3),
    Line(5, "kai", "Who trades a golden shield?", 4),
    Line(6, "juno", "Starfall needs its healer.", 5),
    Line(7, "kai", "New maps are coming on Friday!", 6, "nobody spoke of the laptop: it is the first to rest"),
    Line(14, "", "", 6, "a quiet week ages nothing"),
    Line(15, "kai", "We won the tournament!", 7, "the seventh unused day: it rests"),
    Line(17, "kai", "Juno, how is Mochi?", 0, "recalled into this reply, and back on the desk for the next"),
    Line(18, "juno", "Another round later?", 1),
)
RECALLED_ON = 17
FULL_DAY = 20
MAKES_ROOM = ("I got the job, I am moving to Porto in March!", "Juno moves to Porto in March")
FINDS_NONE = ("My new keyboard is here, and it is so loud.", "Kai has a loud new keyboard")


class Day(Answer):
    """A day as it went."""

    day: int
    date: date
    who: str
    message: str
    what: str
    unused_days: int
    state: str
    desk: Sequence[MemoryView]
    drawer: Sequence[MemoryView]
    recalled: Sequence[str]
    score: float | None


class Full(Answer):
    """What came of saves into a list without room."""

    capacity: int
    saved: str
    forgotten: str
    reason: str
    notice: str
    refused: str
    refusal: str
    refusal_notice: str


class Story(Answer):
    """All of it."""

    tenant: str
    data: str
    model: str
    days: Sequence[Day]
    full: Full
    seconds: float
    broken: Sequence[str]
    try_these: Sequence[str]


class StoryClock:
    """Day 1 was three weeks ago, at this time of the day; the last day is yesterday."""

    def __init__(self, now: datetime | None = None) -> None:
        self._first = (now or datetime.now(UTC)) - timedelta(days=FULL_DAY)
        self.day = 1

    def __call__(self) -> datetime:
        """The moment that is being told, moving on as we go."""
        return self.moment(self.day)

    def moment(self, day: int) -> datetime:
        """The moment at which a day is told."""
        return self._first + timedelta(days=day - 1)


def tell_story(here: Session, place: Mapping[str, Any]) -> None:
    """Tell it, on a terminal as it happens.

    Raises:
        typer.Exit: with 1, if a claim does not hold.
    """
    from remembrancer.services.cli.story_view import View

    clock = StoryClock()
    began = time.monotonic()
    view = None if here.options.json else View(here.screen)
    settings = {"embedder": here.options.embedder or "local", "embed_timeout": PATIENCE}
    begins, ends = clock.moment(min(KNOWN)), clock.moment(FULL_DAY)
    place, room = with_room(here, place, [Told(who, begins, ends) for who in (None, Subject("server", SERVER))])
    with here.open(clock=clock, **settings, **place) as memory:
        if memory.list().lists:
            raise InvalidInput("This tenant has memories of its own.", hint="Name a new one with --tenant.")
        if not room:
            raise InvalidInput(
                "This database was used later than the three weeks that the demo tells of, and time never goes back.",
                hint="Leave out --tenant, or name another data directory with --data-dir.",
            )
        teller = Teller(memory, clock)
        model = teller.model()
        if view:
            view.opening(model)
        days = []
        for day in teller.days():
            days.append(day)
            if view:
                view.day(day)
        full = teller.full()
        story = Story(
            tenant=str(place["tenant"]),
            data=where_it_is(memory),
            model=model,
            days=days,
            full=full,
            seconds=round(time.monotonic() - began, 1),
            broken=teller.broken,
            try_these=[
                command(here, place, "list", PERSONA),
                command(here, place, "why", "Juno's cat"),
                command(here, place, "reply", PERSONA, "Does Mochi like fish?", "--server", SERVER, "--user", "juno"),
            ],
        )
        if view is None:
            here.write_json(story.model_dump(mode="json"))
        else:
            view.full(full)
            view.ending(story)
    if story.broken:
        raise typer.Exit(1)


class Teller:
    """Plays the script on the store and holds what comes against what is claimed."""

    def __init__(self, memory: Remembrancer, clock: StoryClock) -> None:
        self._memory, self._clock = memory, clock
        self.broken: list[str] = []

    def model(self) -> str:
        """The model of the search, loaded."""
        embedder = self._memory.engine.deps.embedder
        if embedder is None:
            return "none"
        embedder.warm(timeout=60)
        return embedder.model

    def days(self) -> Iterator[Day]:
        """The script, day by day."""
        for day, text in KNOWN.items():
            self._clock.day = day
            self._save(text, None)
        pinned = self._memory.save(PERSONA, scope="server", subject=SERVER, text=PINNED)
        self._memory.pin(pinned.memory.id)
        for line in SCRIPT:
            self._clock.day = line.day
            answer = self._reply(line.who, line.says) if line.says else None
            if answer is not None and line.day == 1:
                self._save(MOCHI, answer.turn)
            seen = self._seen(line, answer)
            on = f"day {line.day}: "
            self._claim(seen.unused_days == line.unused, f"{on}{line.unused} unused days, not {seen.unused_days}")
            self._claim((seen.state == "resting") == (line.unused >= 7), f"{on}Mochi is {seen.state}")
            self._claim((MOCHI in seen.recalled) == (line.day == RECALLED_ON), f"{on}recalled {seen.recalled}")
            yield seen

    def full(self) -> Full:
        """A list with room for no more than it holds: the first save makes room, the second finds none."""
        self._clock.day = FULL_DAY
        (now,) = self._memory.list(PERSONA, scope="server", subject=SERVER).lists
        self._memory.set_policy(list_capacity=now.count)
        made = self._save_or_refuse(*MAKES_ROOM, who="juno")
        none = self._save_or_refuse(*FINDS_NONE, who="kai")
        self._memory.set_policy(list_capacity=None)
        self._claim(isinstance(made, SaveAnswer) and len(made.forgotten) == 1, f"one memory makes room, not: {made}")
        self._claim(isinstance(none, ListFull), f"a list without room refuses, not: {none}")
        forgotten = made.forgotten if isinstance(made, SaveAnswer) else []
        return Full(
            capacity=now.count,
            saved=MAKES_ROOM[1],
            forgotten=", ".join(f.memory.text for f in forgotten),
            reason=", ".join(f.reason for f in forgotten),
            notice=_notices(made),
            refused=FINDS_NONE[1],
            refusal=str(none) if isinstance(none, ListFull) else "",
            refusal_notice=_notices(none),
        )

    def _save_or_refuse(self, says: str, text: str, *, who: str) -> SaveAnswer | ListFull:
        turn = self._reply(who, says).turn
        try:
            return self._save(text, turn)
        except ListFull as refused:
            return refused

    def _save(self, text: str, turn: str | None) -> SaveAnswer:
        return self._memory.save(PERSONA, scope="server", subject=SERVER, text=text, actor="persona", turn=turn)

    def _reply(self, who: str, says: str) -> ReplyAnswer:
        answer = self._memory.reply(PERSONA, message=says, users=[who], server=SERVER)
        reason = answer.search.reason or "no reason"
        self._claim(answer.search.status == "ok", f"the search was {answer.search.status}: {reason}")
        return answer

    def _seen(self, line: Line, answer: ReplyAnswer | None) -> Day:
        (now,) = self._memory.list(PERSONA, scope="server", subject=SERVER).lists
        mochi = next(m for m in now.memories if m.text == MOCHI)
        matches = [] if answer is None else answer.search.matches
        return Day(
            day=line.day,
            date=self._clock().date(),
            who=line.who,
            message=line.says,
            what=line.what,
            unused_days=mochi.unused_days,
            state=mochi.state,
            desk=[m for m in now.memories if m.on_desk],
            drawer=[m for m in now.memories if not m.on_desk],
            recalled=[] if answer is None else [m.text for m in answer.late.recalled],
            score=next((m.score for m in matches if m.text == MOCHI), None),
        )

    def _claim(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken.append(what)


def _notices(came_of: SaveAnswer | ListFull) -> str:
    if isinstance(came_of, SaveAnswer):
        return " ".join(n.text for n in came_of.notices)
    return " ".join(n["text"] for n in came_of.details.get("notices", []))
