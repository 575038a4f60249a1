"""Makes the summaries of a chat: chunks, merges, the long-term one (R4, R6, D15, D16, D17).

One step at a time: read, decide, ask the model, and write under the version that was read. If something was said
meanwhile, it is looked whether the sources are still what they were; the model is asked once. Until a summary is
written its messages are sent as they are, so that whatever fails, nothing is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import stamina
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.compaction import (
    Chunk,
    Condense,
    Merge,
    Sources,
    Step,
    fitting,
    next_step,
    same_sources,
    sources_of,
)
from remembrancer.domain.identity import Subject, person_stream, persona_stream
from remembrancer.domain.long_term import LongTerm, grown
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Tenant
from remembrancer.domain.summaries import Span, Summary, is_summary, place_of
from remembrancer.domain.text import ERASED
from remembrancer.domain.transcript import Message
from remembrancer.domain.window import LEVELS, Detail, level_for
from remembrancer.projections.queries import load_queries
from remembrancer.projections.runner import Runner
from remembrancer.services import summary_prompts as prompts
from remembrancer.services.chat_models import Answered, ChatModel, ModelFailed
from remembrancer.services.chat_models.structured import writable
from remembrancer.services.chats import ChatHome, Chats
from remembrancer.services.clock import make_id
from remembrancer.services.deps import PERSON, PERSONA, TENANT, Deps
from remembrancer.services.store import Batch, Loaded, Request, VersionConflict
from remembrancer.services.summary_reader import Backlog, Behind, read_backlog
from remembrancer.services.tokens import count_tokens

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "summaries")
MOST_TRIES = 20
TIMES_ASKED = 2
"""A summary may have so many times the tokens that the model was asked to keep to, whatever it is of."""
IN_PART = "(A message was too long to be read whole. What stands in its middle is in no summary.)"
CATCH_UP_SECONDS = 5.0
"""So long it is waited for another process that projects the same."""
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=1)
FOR_GOOD = datetime.max.replace(tzinfo=UTC)
SMALLEST_QUESTION = 2_000
"""Tokens; a question of no more than that is not refused for its length."""


@dataclass(frozen=True, slots=True)
class Rests:
    """All is done but a merge or a condensation that failed: it is tried again then."""

    until: datetime
    reason: str


Outcome = Literal["done", "more"] | Rests


@dataclass(frozen=True, slots=True)
class _Rest:
    tries: int
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class _Written:
    """What a model made of the sources of a step."""

    step: Step
    """As it was done in the end: a chunk may have fewer messages."""
    event: e.ChunkSummarised | e.SummariesMerged | e.LongTermCondensed
    owners: tuple[Subject, ...]


class _NotShorter(ModelFailed):
    """A long-term summary is as short as the model makes it: for the same text it is not asked again."""


class Summariser:
    """Does the steps of one chat after the other. See the module."""

    def __init__(self, deps: Deps, chats: Chats, runner: Runner) -> None:
        self._deps = deps
        self._chats = chats
        self._runner = runner
        self._resting: dict[Sources, _Rest] = {}

    def run(self, stream: UUID, model: ChatModel, hold: Callable[[], bool], *, again: bool = False) -> Outcome:
        """Summarise what is due in a chat: at most `chunks_per_run` chunks, and what follows from them.

        What fails by itself holds up nothing else: a merge or condensation rests for a while, and of a chat that is
        tried `again` a chunk is passed by, so that those after it are done.

        Args:
            hold: asked before each step; False where somebody else has taken the chat over.
            again: the last run failed.

        Raises:
            ModelFailed: the model cannot be used, or gave no usable answer for a chunk; what was written stays.
            Behind: the chat's tables cannot follow its events.
            Unavailable: the database is away.
        """
        here = self._chats.by_stream(stream)
        if here is None:
            return "done"
        chunks, written, passed, failed = 0, 0, set[int](), None
        while hold():
            policy, detail = self.setting(here)
            backlog = self.backlog(here, detail, policy)
            if backlog.rebuild is not None and backlog.running:
                detail = backlog.rebuild.detail
            step = self._next(backlog, policy, detail, self._resting_now(), passed)
            full = isinstance(step, Chunk) and chunks >= policy.chunks_per_run
            if failed is not None and (step is None or full):
                failed.after_progress = written > 0
                raise failed
            if full:
                return "more"
            if step is None:
                if backlog.running is None:
                    return self._rests(self._next(backlog, policy, detail, self._for_good())) or "done"
                self._completed(here, backlog)
                continue
            chunks += isinstance(step, Chunk)
            try:
                made = self._make(here, step, backlog, detail, policy, model)
            except ModelFailed as error:
                if error.cause == "away" or (isinstance(step, Chunk) and not again):
                    error.after_progress = written > 0
                    raise
                if isinstance(step, Chunk):
                    passed.update(m.n for m in step.messages)
                    failed = failed or error
                else:
                    self._rest(step, error)
                continue
            written += self._write(here, made, backlog, detail, policy)
        return "done"

    def _resting_now(self) -> set[Sources]:
        now = self._deps.now()
        return {sources for sources, rest in self._resting.items() if rest.until > now}

    def _for_good(self) -> set[Sources]:
        return {sources for sources, rest in self._resting.items() if rest.until == FOR_GOOD}

    def _rest(self, step: Step, failed: ModelFailed) -> None:
        log.warning("Summaries stay as they are for a while: %s", failed.reason)
        now, sources = self._deps.now(), sources_of(step)
        tries = self._resting[sources].tries if sources in self._resting else 0
        self._resting = {k: r for k, r in self._resting.items() if r.until > now - 2 * LONGEST_PAUSE}
        until = FOR_GOOD if isinstance(failed, _NotShorter) else now + pause(tries)
        self._resting[sources] = _Rest(tries + 1, until, failed.reason)

    def _rests(self, step: Step | None) -> Rests | None:
        """Whether this waits to be tried again."""
        rest = None if step is None else self._resting.get(sources_of(step))
        return None if rest is None else Rests(rest.until, rest.reason)

    def setting(self, here: ChatHome) -> tuple[Policy, Detail]:
        """The policy, and how much of this conversation is kept (R3)."""
        settings, detail = self._settings(here)
        policy, _ = self._deps.policy(settings)
        return policy, detail

    def read_setting(self, here: ChatHome) -> tuple[Policy, Detail]:
        """The same for who only reads: not even a policy that this process brings along is recorded."""
        settings, detail = self._settings(here)
        return self._deps.effective(dict(settings.state.own)), detail

    def _settings(self, here: ChatHome) -> tuple[Loaded[Tenant], Detail]:
        tenant = self._deps.tenant
        at = {"shard": here.stream.bytes[0], "chat": here.stream}
        row = self._deps.store.database.run(lambda conn: conn.execute(_SQL["last_speaker"], at).fetchone())
        persona = here.personas[0] if here.personas else ""
        if len(here.personas) > 1:  # the level is that of whoever spoke last (D4)
            spoke = self._deps.store.database.run(lambda conn: conn.execute(_SQL["last_persona"], at).fetchone())
            persona = spoke[0] if spoke is not None else persona
        user = row[0] if row is not None and row[0] else next(iter(here.users), "")
        settings, who, person = self._deps.store.load_many(
            [(self._deps.tenant_stream, TENANT), (persona_stream(tenant, persona), PERSONA),
             (person_stream(tenant, user), PERSON)]
        )  # fmt: skip
        return settings, level_for(here.platform, person.state.details.get(persona), who.state.detail)

    def backlog(self, here: ChatHome, detail: Detail, policy: Policy) -> Backlog:
        """What there is to summarise now. The tables catch up first, whoever else projects.

        Raises:
            Behind: they cannot.
        """

        def work(conn: Connection[Any]) -> Backlog:
            return read_backlog(conn, here.stream, detail, policy)

        for attempt in stamina.retry_context(on=Behind, attempts=None, timeout=CATCH_UP_SECONDS, wait_max=0.1):
            with attempt:
                self._runner.catch_up(projections=["conversation"], shards=[here.stream.bytes[0]])
                return self._deps.store.database.run(work)
        raise AssertionError("unreachable")

    # -- a step ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _next(
        backlog: Backlog,
        policy: Policy,
        detail: Detail,
        resting: Collection[Sources] = (),
        passed: Collection[int] = (),
    ) -> Step | None:
        size = LEVELS[detail].summary_tokens
        to_the_end = backlog.running is not None
        return next_step(
            backlog.standing, backlog.uncovered, backlog.bound, policy, size,
            protected={*backlog.protected, *passed}, resting=resting, to_the_end=to_the_end,
        )  # fmt: skip

    def _make(
        self, here: ChatHome, step: Step, backlog: Backlog, detail: Detail, policy: Policy, model: ChatModel
    ) -> _Written:
        """Ask the model, and check what it says."""
        sources = _sources(step)
        authors = sorted(
            {m.author for m in step.messages if m.role == "user"}
            if isinstance(step, Chunk)
            else {a for s in sources for a in s.authors}
        )
        shard = here.stream.bytes[0]
        stamp: dict[str, Any] = {
            "id": make_id(shard), "tenant": self._deps.tenant, "actor": "system", "chat": here.key,
            "summary": make_id(shard), "authors": tuple(authors), "detail": detail, "model": model.name,
            "rebuild": backlog.running,
        }  # fmt: skip
        owners = (here.home, *(Subject("user", a) for a in authors if a))
        if isinstance(step, Chunk):
            done, event = self._chunk(step, detail, policy, model, stamp)
            return _Written(done, event, tuple(dict.fromkeys(owners)))
        stamp |= {
            "first": sources[0].first, "last": sources[-1].last, "messages": sum(s.messages for s in sources),
        }  # fmt: skip
        if isinstance(step, Condense):
            return _Written(step, self._condensed(step, detail, model, stamp), tuple(dict.fromkeys(owners)))
        return _Written(step, self._merged(here, step, detail, model, stamp), tuple(dict.fromkeys(owners)))

    def _chunk(
        self, step: Chunk, detail: Detail, policy: Policy, model: ChatModel, stamp: dict[str, Any]
    ) -> tuple[Chunk, e.ChunkSummarised]:
        """Fewer messages, or one in part, where the model does not take all that the policy lets it read."""
        messages, room = step.messages, policy.model_context // 2
        told = prompts.instructions("chunk", detail, prompts.CHUNK_SHARE)
        while True:
            asked = prompts.of_messages(messages, room)
            try:
                answer = self._ask(model, told, asked, prompts.ChunkDraft)
            except ModelFailed as failed:
                tokens = count_tokens(asked)
                if failed.cause != "refused" or tokens <= SMALLEST_QUESTION:
                    raise
                room = tokens // 2
                messages = fitting(messages, room)
                continue
            break
        cut = {m.id for m in messages if m.tokens > room}
        length = sum(min(m.tokens, room) for m in messages)
        said = _text(answer.value.summary, _most(prompts.asked_tokens(detail, prompts.CHUNK_SHARE), length))
        if cut:
            said = _text(f"{said['text']}\n\n{IN_PART}", None)
        return Chunk(messages), e.ChunkSummarised(
            **stamp, **said, cost=answer.cost, first=messages[0].n, last=messages[-1].n, messages=len(messages),
            rules=_rules(answer.value.rules, messages, cut),
        )  # fmt: skip

    def _merged(
        self, here: ChatHome, step: Merge, detail: Detail, model: ChatModel, stamp: dict[str, Any]
    ) -> e.SummariesMerged:
        ids = tuple(s.id for s in step.sources)
        if step.tier == "merged":
            asked = prompts.of_summaries(step.sources, self._dates(here, step.sources))
            told = prompts.instructions("merged", detail, prompts.MERGED_SHARE)
            length = sum(s.tokens for s in step.sources)
            most = _most(prompts.asked_tokens(detail, prompts.MERGED_SHARE), length)
            short = self._ask(model, told, asked, prompts.MergedDraft)
            return e.SummariesMerged(
                **stamp, **_text(short.value.summary, most), cost=short.cost, tier="merged", sources=ids
            )  # fmt: skip
        old = step.sources[0] if step.sources[0].tier == "long_term" else None
        newer = [s for s in step.sources if s is not old]
        asked = prompts.of_long_term(old, newer, self._dates(here, newer))
        long = self._ask(model, prompts.instructions("long_term", detail), asked, prompts.LongTermDraft)
        said = long.value
        parts = grown(
            None if old is None else LongTerm.read(old.text), said.chronology, said.promises, said.references,
            said.state,
        )  # fmt: skip
        most = (0 if old is None else old.tokens) + TIMES_ASKED * prompts.asked_tokens(detail)
        return e.SummariesMerged(**stamp, **_text(parts.text(), most), cost=long.cost, tier="long_term", sources=ids)

    def _condensed(
        self, step: Condense, detail: Detail, model: ChatModel, stamp: dict[str, Any]
    ) -> e.LongTermCondensed:
        """Shorter than it was, or it counts as no answer: else it would be asked for without end."""
        parts = LongTerm.read(step.source.text)
        told = prompts.instructions("condensed", detail, 1 / 4)
        answer = self._ask(model, told, prompts.of_parts(parts), prompts.CondensedDraft)
        said = answer.value
        text = _text(parts.condensed(said.chronology, said.promises, said.references, said.state).text(), None)
        if text["tokens"] >= step.source.tokens:
            raise _NotShorter("a condensed summary that is not shorter")
        return e.LongTermCondensed(**stamp, **text, cost=answer.cost, source=step.source.id)

    def _ask(
        self, model: ChatModel, told: str, asked: str, shape: type[prompts.AnyDraft]
    ) -> Answered[prompts.AnyDraft]:
        return model.ask(told, asked, shape, timeout=self._deps.settings.chat_model_timeout)

    def _dates(self, here: ChatHome, summaries: Sequence[Summary]) -> list[str]:
        """From when to when each of them tells (D20)."""

        def work(conn: Connection[Any]) -> list[str]:
            found = []
            for s in summaries:
                at = {"shard": here.stream.bytes[0], "chat": here.stream, "first": s.first, "last": s.last}
                row = conn.execute(_SQL["dates"], at).fetchone()
                begin, end = row if row is not None else (None, None)
                found.append("undated" if begin is None else f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}")
            return found

        return self._deps.store.database.run(work)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _write(self, here: ChatHome, made: _Written, read: Backlog, detail: Detail, policy: Policy) -> bool:
        """Write it if its sources are still what they were; else it is dropped, and decided anew. True if it was.

        The key is taken before the sources are looked at once more: whoever is erased after that look has destroyed it,
        and nothing is written (D24).
        """
        store, tenant = self._deps.store, self._deps.tenant
        for _ in range(MOST_TRIES):
            key = store.keys.for_writing(tenant, made.owners)
            now = self.backlog(here, detail, policy)
            same = same_sources(made.step, now.standing, now.uncovered, now.bound, now.protected)
            if now.running != read.running or not same:
                return False
            try:
                store.append(
                    [Batch(here.stream, [made.event], now.version, made.owners, key)],
                    request=Request(tenant, here.stream.bytes[0], verb="summarise"),
                    now=self._deps.now(),
                )
            except VersionConflict:
                continue
            return True
        return False

    def _completed(self, here: ChatHome, backlog: Backlog) -> None:
        assert backlog.running is not None
        self._end(here, e.RebuildCompleted(**self._stamp(here), rebuild=backlog.running), backlog)

    def rebuild_failed(self, stream: UUID, reason: str) -> None:
        """Give up a rebuild that is under way; the old summaries go on serving (R7)."""
        here = self._chats.by_stream(stream)
        if here is None:
            return
        policy, detail = self.setting(here)
        backlog = self.backlog(here, detail, policy)
        if backlog.running is not None:
            self._end(here, e.RebuildFailed(**self._stamp(here), rebuild=backlog.running, reason=reason), backlog)

    def _end(self, here: ChatHome, event: e.RebuildCompleted | e.RebuildFailed, backlog: Backlog) -> None:
        try:
            self._deps.store.append(
                [Batch(here.stream, [event], backlog.version)],
                request=Request(self._deps.tenant, here.stream.bytes[0], verb="summarise"),
                now=self._deps.now(),
            )
        except VersionConflict:
            log.debug("Something was said meanwhile; the end of the rebuild is decided again.")

    def _stamp(self, here: ChatHome) -> dict[str, Any]:
        return {
            "id": make_id(here.stream.bytes[0]), "tenant": self._deps.tenant, "actor": "system", "chat": here.key,
        }  # fmt: skip


def _sources(step: Step) -> Sequence[Summary]:
    match step:
        case Merge():
            return step.sources
        case Condense():
            return [step.source]
    return []


def pause(tries: int) -> timedelta:
    """Until something that has failed so often before is tried again."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(tries, 20)))


def _most(asked: int, sources: int) -> int:
    """How many tokens a summary may have that was asked to keep to so many: longer than that it is none (D16)."""
    return max(TIMES_ASKED * asked, min(sources, 2 * TIMES_ASKED * asked))


def _text(text: str, most: int | None) -> dict[str, Any]:
    """Text and tokens of a summary.

    Raises:
        ModelFailed: it says nothing, or has more tokens than `most` (D16).
    """
    readable = writable(text)
    if not is_summary(readable) or readable == ERASED:
        raise ModelFailed("a summary that says nothing")
    tokens = count_tokens(readable)
    if most is not None and tokens > most:
        raise ModelFailed(f"a summary longer than what it tells ({tokens} tokens, at most {most})")
    return {"text": readable, "tokens": tokens}


def _rules(
    quotes: Sequence[prompts.Quote], messages: Sequence[Message], cut: Collection[UUID] = ()
) -> tuple[Span, ...]:
    """Where users gave the rules that a model points at: it only points, the words are the messages' own (R6).

    Args:
        cut: messages that it has read in part; these are no rule as a whole, however badly they are quoted.
    """
    found: list[Span] = []
    for quote in quotes:
        pointed = [messages[quote.message - 1]] if 1 <= quote.message <= len(messages) else []
        literal = [m for m in messages if m.role == "user" and quote.quote.strip() and quote.quote.strip() in m.text]
        m = next(iter([m for m in pointed if m in literal] or literal or pointed), None)
        span = None if m is None or (m.id in cut and m not in literal) else place_of(quote.quote, m)
        if span is not None and span not in found:
            found.append(span)
    return tuple(found)
