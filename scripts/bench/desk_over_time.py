"""What is still known after months of talk, and what the desk costs a reply: long conversations under several policies.

    python scripts/bench/desk_over_time.py FILE [--conversations N] [--policies defaults rest-3 …]

FILE holds long conversations (LoCoMo). They are played in the order of their dates by one simulated clock: each turn's
text is the message of a reply on its session's day, then the persona saves the facts that were noted of the session. A
question is asked without a record, by the statements and rules of a reply, and is answered if a fact that shows its
evidence is on the desk or recalled:

- next day: on the day after the last session that holds its evidence;
- at the end: on the day after the last session of its conversation;
- later: after 30 more days, each with five messages of small talk.

`facts` is the share of all needed facts that were there at the end. `tokens` is what the desk cost a reply, over all
turns, where the newest 100 facts always sent cost 1; `with recalled` adds the block that the message brought to mind.
Each text is embedded once a run, by the built-in model; all else is the product's own path, with the shipped score and
threshold. Questions of whose evidence no fact was noted are left out.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from statistics import mean
from typing import NamedTuple
from uuid import UUID

from conversations import SECONDS, Conversation, Fact, Once, Question, Session, read, verdict
from rich.console import Console
from rich.progress import Progress
from world import database

from remembrancer.domain.errors import ListFull
from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.domain.matching import Scored, choose_matches, rank
from remembrancer.domain.prompt import Line, render_late, render_prefix
from remembrancer.domain.visibility import Place
from remembrancer.services import candidates, open_memory
from remembrancer.services.desk_reader import Scene, read_desk
from remembrancer.services.embedders import make_embedder
from remembrancer.services.formats.probes import read_probes
from remembrancer.services.remembrancer import Remembrancer
from remembrancer.services.tokens import count_tokens

POLICIES = {
    "defaults": {"list_capacity": 100, "rest_after_days": 7, "desk_limit": 100},
    "drawer": {"list_capacity": 1_000, "rest_after_days": 7, "desk_limit": 100},
    "rest-4": {"list_capacity": 1_000, "rest_after_days": 4, "desk_limit": 200},
    "rest-3": {"list_capacity": 1_000, "rest_after_days": 3, "desk_limit": 150},
    "desk-40": {"list_capacity": 1_000, "rest_after_days": 7, "desk_limit": 40},
}
TARGETS = ((0.88, 1.0), (0.75, 0.5))
"""So many of the questions, at so many tokens, with a list of 1,000."""
WHEN = ("next day", "at the end", "later")
DAYS, MESSAGES = 30, 5
PROJECT_EVERY = 25


class Kept(NamedTuple):
    """Of one question: how many facts it needs, and how many of them were there."""

    needed: int
    there: int


class Outcome:
    """What one way of remembering came to."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Kept]] = defaultdict(list)
        self.tokens: Counter[str] = Counter()
        self.refused = self.forgotten = 0

    def asked(self, when: str, question: Question, known: Sequence[Fact], there: Sequence[Fact]) -> None:
        """A question was asked: which facts there are, and which were there."""
        self.kept[when].append(Kept(sum(map(question.needs, known)), sum(map(question.needs, there))))

    def answered(self, when: str) -> float:
        """The share of questions for which any needed fact was there."""
        return mean(one.there > 0 for one in self.kept[when])

    def facts(self, when: str) -> float:
        """The share of all needed facts that were there."""
        return sum(one.there for one in self.kept[when]) / sum(one.needed for one in self.kept[when])


class Step(NamedTuple):
    """Something that happens at a moment."""

    at: datetime
    do: Callable[[], None]


class Played:
    """A conversation that is played into a store."""

    def __init__(self, memory: Remembrancer, now: Callable[[], datetime], c: Conversation, outcome: Outcome) -> None:
        self._memory = memory
        self._now = now
        self._conversation = c
        self._outcome = outcome
        self._key = ListKey("mira", "server", c.name)
        self._by_text = {fact.text: fact for fact in c.facts}

    def steps(self, small_talk: Sequence[str]) -> Iterator[Step]:
        """All that happens in it."""
        c = self._conversation
        for session in c.sessions:
            second = timedelta(seconds=1)
            at = session.at
            for turn in session.turns:
                yield Step(at, partial(self._say, turn.text, counted=True))
                at += second
            for fact in session.facts:
                yield Step(at, partial(self._save, fact))
                at += second
            last_of = [q for q in _with_facts(c) if _last_session(c, q) is session]
            yield Step(_day_after(session), partial(self._ask, "next day", last_of))
        end = _day_after(c.sessions[-1])
        yield Step(end, partial(self._ask, "at the end", _with_facts(c)))
        talk = cycle(small_talk)
        for day in range(DAYS):
            for minute, text in enumerate(islice(talk, MESSAGES)):
                yield Step(end + timedelta(days=day, hours=12, minutes=minute), partial(self._say, text))
        yield Step(end + timedelta(days=DAYS), partial(self._ask, "later", _with_facts(c)))

    def _say(self, text: str, *, counted: bool = False) -> None:
        answer = self._memory.reply("mira", message=text, server=self._key.subject)
        assert answer.search.status == "ok", answer.search.reason
        if counted:
            recalled = [Line(m.text, m.until, m.pinned) for m in answer.late.recalled]
            self._outcome.tokens["desk"] += tokens(answer.prefix.text)
            self._outcome.tokens["recalled"] += tokens(render_late(recalled, [], 0))

    def _save(self, fact: Fact) -> None:
        try:
            saved = self._memory.save(
                "mira", scope="server", subject=self._key.subject, text=fact.text, actor="persona"
            )
            self._outcome.forgotten += len(saved.forgotten)
        except ListFull:
            self._outcome.refused += 1

    def _ask(self, when: str, questions: Sequence[Question]) -> None:
        """Steps 1 to 4 of a reply, without the append."""
        engine = self._memory.engine
        engine.runner.catch_up(projections=["memory"])
        policy, embedder = self._memory.policy(), engine.deps.embedder
        streams = [list_stream(engine.deps.tenant, self._key)]
        place = Place(self._key.subject, None, ())
        scene = Scene([self._key], streams, place, self._now(), policy, engine.deps.tenant, embedder.model)
        for question in questions:
            vector = embedder.embed_query(question.text, timeout=SECONDS)
            with engine.store.pool.connection() as conn:
                desk = read_desk(conn, engine.store, scene)
                rows = candidates.find(conn, scene, desk, question.text, vector)
            ranked = rank(Scored(r.view.id, r.list_no, r.score, r.similarity, r.words, r.view.created_at) for r in rows)
            chosen = choose_matches(
                ranked, threshold=engine.deps.threshold(policy), match_limit=policy.match_limit, on_desk=desk.ids
            )
            views = desk.views | {r.view.id: r.view for r in rows}
            there = desk.ids | {c.memory for c in chosen if c.matched}
            known = self._conversation.facts
            self._outcome.asked(when, question, known, [self._by_text[views[i].text] for i in there])


def main() -> None:
    """Play every policy and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--conversations", type=int, help="only so many")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES), help="only these")
    args = parser.parse_args()
    conversations = read(args.file, args.conversations)
    small_talk = next(probes.small_talk for probes in read_probes(None) if probes.language == "en")
    embedder = Once(make_embedder("local"))
    newest, everything = _always_sent(conversations, 100), _always_sent(conversations, None)
    _headings()
    _line("everything always sent", everything, newest)
    _line("newest 100 always sent", newest, newest)
    outcomes = {}
    with Progress(console=Console(stderr=True)) as progress:
        for name in args.policies:
            outcomes[name] = _play(name, conversations, small_talk, embedder, progress)
            _line(_named(name), outcomes[name], newest)
    for questions, at_tokens in TARGETS:
        reached = [
            outcome.answered("at the end")
            for name, outcome in outcomes.items()
            if POLICIES[name]["list_capacity"] == 1_000
            and outcome.tokens["desk"] + outcome.tokens["recalled"] <= at_tokens * newest.tokens["desk"]
        ]
        if reached:
            print(f"  best at {at_tokens:g} of the tokens: {max(reached):.3f}, {verdict(max(reached), questions)}")


def _play(
    name: str, conversations: Sequence[Conversation], small_talk: Sequence[str], embedder: Once, progress: Progress
) -> Outcome:
    """All conversations under one policy, in a store of its own."""
    outcome = Outcome()
    clock = [datetime.min.replace(tzinfo=UTC)]

    def now() -> datetime:
        return clock[0]

    with database() as url:
        settings = POLICIES[name] | {"embed_timeout": SECONDS}
        with open_memory(url, embedder="local", clock=now, background=False, **settings) as memory:
            memory.engine.deps.embedder = embedder
            played = [Played(memory, now, c, outcome) for c in conversations]
            steps = sorted((step for one in played for step in one.steps(small_talk)), key=lambda step: step.at)
            for n, step in enumerate(progress.track(steps, description=name)):
                clock[0] = step.at
                step.do()
                if n % PROJECT_EVERY == 0:
                    memory.engine.runner.catch_up(projections=["memory"])
    return outcome


def _always_sent(conversations: Sequence[Conversation], newest: int | None) -> Outcome:
    """The simplest ways of remembering: the newest facts in every prompt, without any search, or all of them."""
    outcome = Outcome()
    for c in conversations:
        known: list[Fact] = []
        for session in c.sessions:
            outcome.tokens["desk"] += len(session.turns) * tokens(_printed(c, known[-newest:] if newest else known))
            known += session.facts
            for question in _with_facts(c):
                if _last_session(c, question) is session:
                    outcome.asked("next day", question, c.facts, known[-newest:] if newest else known)
        for question in _with_facts(c):
            for when in ("at the end", "later"):
                outcome.asked(when, question, c.facts, known[-newest:] if newest else known)
    return outcome


def _printed(c: Conversation, facts: Sequence[Fact]) -> str:
    lines = {UUID(int=n): Line(fact.text, None, False) for n, fact in enumerate(facts)}
    return render_prefix("", [(ListKey("mira", "server", c.name), list(lines))], lines)


def _with_facts(c: Conversation) -> list[Question]:
    return [question for question in c.questions if any(map(question.needs, c.facts))]


def _last_session(c: Conversation, question: Question) -> Session:
    return [s for s in c.sessions if not question.evidence.isdisjoint(turn.id for turn in s.turns)][-1]


def _day_after(session: Session) -> datetime:
    """Midnight after its last step."""
    last = session.at + timedelta(seconds=len(session.turns) + len(session.facts))
    return datetime.combine(last.date() + timedelta(days=1), time(), UTC)


@cache
def tokens(text: str) -> int:
    """Tokens of a text, counted once: a desk stays the same for many replies."""
    return count_tokens(text) if text else 0


def _named(policy: str) -> str:
    numbers = POLICIES[policy]
    return f"list {numbers['list_capacity']:,}, rest {numbers['rest_after_days']}, desk {numbers['desk_limit']}"


def _headings() -> None:
    answered = "".join(f"{when:>12}" for when in WHEN)
    print(f"{'':28}{answered}{'facts':>8}{'tokens':>9}{'with recalled':>15}{'refused':>9}{'forgotten':>11}", flush=True)


def _line(name: str, o: Outcome, unit: Outcome) -> None:
    answered = "".join(f"{o.answered(when):12.3f}" for when in WHEN)
    desk = o.tokens["desk"] / unit.tokens["desk"]
    both = desk + o.tokens["recalled"] / unit.tokens["desk"]
    counts = f"{o.refused:9}{o.forgotten:11}"
    print(f"{name:28}{answered}{o.facts('at the end'):8.3f}{desk:9.2f}{both:15.2f}{counts}", flush=True)


if __name__ == "__main__":
    main()
