"""`demo --play FILE`: conversations as they went, on a real store: turns search, facts are saved, chats summarised."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from rich.text import Text

from remembrancer.domain.errors import InvalidInput, Refused
from remembrancer.domain.identity import Subject
from remembrancer.services.answers import Answer, ReplyAnswer
from remembrancer.services.cli import played_chat
from remembrancer.services.cli.conversation import Conversation, Meeting, Turn, read_conversations
from remembrancer.services.cli.demo import PATIENCE, Told, command, where_it_is, with_room
from remembrancer.services.cli.played_chat import Kept, PlayedChat, summarise_in_step
from remembrancer.services.cli.screen import Screen
from remembrancer.services.cli.session import Session
from remembrancer.services.remembrancer import Remembrancer
from remembrancer.services.tokens import count_tokens_of_each

PACE = timedelta(milliseconds=100)
"""Between two turns: a session stays on its day."""


class Counts(Answer):
    """What a session, a conversation or all of them came to. Tokens are those of both blocks of all replies."""

    turns: int = 0
    unsearched: int = 0
    saved: int = 0
    duplicates: int = 0
    refused: int = 0
    recalled: int = 0
    evicted: int = 0
    tokens: int = 0

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields})

    @property
    def tokens_a_reply(self) -> float:
        """The mean."""
        return self.tokens / self.turns if self.turns else 0.0


class PlayedSession(Counts):
    """One session, and where the list's memories were after it."""

    number: int
    at: datetime
    desk: int
    drawer: int


class PlayedConversation(Answer):
    """One conversation."""

    id: str
    persona: str
    sessions: Sequence[PlayedSession]
    total: Counts
    chat: PlayedChat


class PlayedFile(Answer):
    """All that was played."""

    tenant: str
    data: str
    model: str
    summaries_by: str
    conversations: Sequence[PlayedConversation]
    total: Counts
    seconds: float
    try_these: Sequence[str]


class PlayedClock:
    """The time of the conversation."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        """The moment that is being played."""
        return self.now

    def step(self) -> Self:
        """A little later."""
        self.now += PACE
        return self


def play(
    here: Session,
    place: Mapping[str, Any],
    file: Path,
    conversations: int | None,
    limit_sessions: int | None,
    persona: str | None,
    policy: Mapping[str, Any],
) -> None:
    """Play a file, and say session by session what was remembered, recalled, forgotten and sent."""
    found = [
        c.model_copy(update={"sessions": c.sessions[:limit_sessions]}) for c in read_conversations(file)[:conversations]
    ]
    if len({c.id for c in found}) < len(found):
        raise InvalidInput(f"Two conversations of {file} have the same id.")
    clock = PlayedClock()
    began = time.monotonic()
    settings = {"embedder": here.options.embedder or "local", "embed_timeout": PATIENCE}
    place, _ = with_room(here, place, _told(found))
    with here.open(clock=clock, **settings, **place, **policy) as memory:
        embedder = memory.engine.deps.embedder
        model = "none" if embedder is None else embedder.model
        by = summarise_in_step(memory)
        played = []
        with here.screen.progress("Playing") as progress:
            done, steps = 0, sum(len(s.turns) + len(s.facts) for c in found for s in c.sessions)

            def step(what: str = "") -> None:
                nonlocal done
                done += not what
                progress(done, steps, what)

            for c in found:
                player = _Player(memory, clock, c, persona or c.speakers[1], step)
                played.append(player.conversation(None if here.options.json else here.screen))
        first = played[0]
        answer = PlayedFile(
            tenant=str(place["tenant"]),
            data=where_it_is(memory),
            model=model,
            summaries_by=by,
            conversations=played,
            total=_total(x.total for x in played),
            seconds=round(time.monotonic() - began, 1),
            try_these=[
                command(here, place, "list", first.persona, "--state", "resting"),
                command(here, place, "history", first.persona, "--server", first.id),
                command(here, place, "reply", first.persona, "What do you remember?", "--server", first.id),
            ],
        )
        here.show(answer, lambda screen: _end(screen, answer))


def _told(conversations: Sequence[Conversation]) -> Sequence[Told]:
    """Each conversation is a server of its own; the policy is written with the first thing that is said."""
    spans = [(c.id, [s.at for s in c.sessions]) for c in conversations if c.sessions]
    policy = [Told(None, moments[0], moments[0]) for _, moments in spans[:1]]
    return [*policy, *(Told(Subject("server", name), moments[0], max(moments)) for name, moments in spans)]


class _Player:
    """One conversation: the persona's memory of it is one list, that of a server of its own."""

    def __init__(
        self, memory: Remembrancer, clock: PlayedClock, c: Conversation, persona: str, step: Callable[..., None]
    ) -> None:
        self._memory, self._clock, self._c, self._persona, self._step = memory, clock, c, persona, step
        self._prefixes: dict[str, int] = {}
        self._kept, self._chat = Kept(memory), PlayedChat()

    def conversation(self, screen: Screen | None) -> PlayedConversation:
        """All sessions in order, each with a line on the screen."""
        if screen is not None:
            screen.heading(f"Conversation {self._c.id}", f"{self._persona} remembers")
            screen.line(Text(_line(_TITLES), "dim"))
        sessions = []
        for number, meeting in enumerate(self._c.sessions, start=1):
            sessions.append(self._session(number, meeting))
            if screen is not None:
                screen.line(_line(_values(sessions[-1])))
        total = _total(sessions)
        if screen is not None:
            screen.line(Text(_line(_values(total)), "bold"))
            played_chat.draw(screen, self._chat, total.turns)
            screen.line("")
        return PlayedConversation(id=self._c.id, persona=self._persona, sessions=sessions, total=total, chat=self._chat)

    def _session(self, number: int, meeting: Meeting) -> PlayedSession:
        self._clock.now = meeting.at
        replies = [self._reply(t) for t in meeting.turns]
        counts = Counts(
            turns=len(replies),
            unsearched=sum(r.search.status != "ok" for r in replies),
            recalled=sum(len(r.late.recalled) for r in replies),
            tokens=self._tokens(replies),
        )
        for fact in meeting.facts:
            counts = counts.plus(self._save(fact.text, replies[-1].turn if replies else None))
        self._chat = self._kept.catch_up()
        self._step(played_chat.in_progress(self._chat))
        (now,) = self._memory.list(self._persona, scope="server", subject=self._c.id).lists
        return PlayedSession(
            **dict(counts),
            number=number,
            at=meeting.at,
            desk=sum(m.on_desk for m in now.memories),
            drawer=sum(not m.on_desk for m in now.memories),
        )

    def _reply(self, turn: Turn) -> ReplyAnswer:
        """Each turn searches, and is in the chat by that, as said by its speaker."""
        self._clock.step()
        answer = self._memory.reply(self._persona, message=turn.text, users=[turn.speaker], server=self._c.id)
        self._kept.heard(answer)
        self._step()
        return answer

    def _save(self, text: str, turn: str | None) -> Counts:
        self._clock.step()
        try:
            answer = self._memory.save(
                self._persona, scope="server", subject=self._c.id, text=text, actor="persona", turn=turn
            )
        except Refused:
            return Counts(refused=1)
        finally:
            self._step()
        new = answer.status == "saved"
        return Counts(saved=int(new), duplicates=int(not new), evicted=len(answer.forgotten))

    def _tokens(self, replies: Sequence[ReplyAnswer]) -> int:
        """Tokens of both blocks; a prefix that was counted before is not counted again."""
        new = {r.prefix.fingerprint: r.prefix.text for r in replies if r.prefix.fingerprint not in self._prefixes}
        if new:
            self._prefixes.update(zip(new, count_tokens_of_each(list(new.values())), strict=True))
        late = count_tokens_of_each([r.late.text for r in replies]) if replies else []
        return sum(self._prefixes[r.prefix.fingerprint] for r in replies) + sum(late)


_TITLES = ("#", "date", "turns", "saved", "desk", "drawer", "recalled", "evicted", "refused", "tokens")
_WIDTHS = (3, 10, 5, 5, 4, 6, 8, 7, 7, 6)


def _line(values: Sequence[str]) -> str:
    return "  ".join(f"{value:>{width}}" for value, width in zip(values, _WIDTHS, strict=True))


def _values(x: Counts) -> Sequence[str]:
    who = (str(x.number), f"{x.at:%Y-%m-%d}") if isinstance(x, PlayedSession) else ("", "total")
    now = (str(x.desk), str(x.drawer)) if isinstance(x, PlayedSession) else ("", "")
    counts = (str(n) for n in (x.recalled, x.evicted, x.refused))
    return (*who, str(x.turns), str(x.saved), *now, *counts, f"{x.tokens_a_reply:.0f}")


def _total(counts: Iterator[Counts] | Sequence[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total = total.plus(one)
    return total


def _end(screen: Screen, answer: PlayedFile) -> None:
    t = answer.total
    n = len(answer.conversations)
    many = f"{n} conversation{'s' * (n != 1)} in {answer.seconds:.0f} s"
    screen.line(Text(many, "bold"), f", model {answer.model}")
    screen.line(
        f"{t.turns:,} replies, {t.saved:,} facts saved, {t.recalled:,} recalled, {t.evicted:,} forgotten, "
        f"{t.refused:,} refused; {t.tokens:,} tokens sent, {t.tokens_a_reply:,.0f} a reply"
    )
    played_chat.draw_all(screen, [c.chat for c in answer.conversations], t.turns, answer.summaries_by)
    if t.unsearched:
        screen.labelled("note", f"{t.unsearched:,} of the replies went without search.", "yellow")
    screen.line("")
    screen.line(f"The data are in {answer.data}, tenant {answer.tenant}. Try:")
    for one in answer.try_these:
        screen.typed(one)
