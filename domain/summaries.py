"""The summaries of a chat as they stand: what its events come to (R4-R7, D16, D17, D18, D24).

A summary covers all messages that were there between two numbers when it was made. Merging does not throw its sources
away: where the whole goes stale, those of its parts that are still true stand again, and only the rest is made anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.long_term import RULES
from remembrancer.domain.text import ERASED
from remembrancer.domain.transcript import Message, ReadChat, Transcript
from remembrancer.domain.window import Detail

Tier = Literal["recent", "merged", "long_term"]
Span = e.RuleSpan


@dataclass(frozen=True, slots=True)
class Summary:
    """One summary. `parent` is the valid one that it is part of; `stale` says why it is no longer true."""

    id: UUID
    tier: Tier
    first: int
    last: int
    messages: int
    text: str
    tokens: int
    authors: tuple[str, ...]
    detail: Detail
    made_at: datetime
    sources: tuple[UUID, ...] = ()
    edited: bool = False
    rebuild: UUID | None = None
    parent: UUID | None = None
    stale: str | None = None

    def covers(self, n: int) -> bool:
        """Is this message part of it?"""
        return self.first <= n <= self.last


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A conversation's memory made anew (R7)."""

    id: UUID
    upto: int
    detail: Detail
    started_at: datetime
    state: Literal["running", "completed", "failed"] = "running"
    reason: str | None = None
    ended_at: datetime | None = None


class Cover:
    """The numbers that summaries cover; a look-up costs the same however many they are."""

    def __init__(self, standing: Sequence[Summary]) -> None:
        """`standing`: sorted, none over another."""
        self._first = [s.first for s in standing]
        self._last = [s.last for s in standing]

    def __contains__(self, n: int) -> bool:
        at = bisect_right(self._first, n) - 1
        return at >= 0 and n <= self._last[at]


@dataclass(slots=True)
class Summaries:
    """All summaries by id, the rules that users gave by the place where they stand, and the newest rebuild."""

    known: dict[UUID, Summary] = field(default_factory=dict)
    rules: dict[tuple[UUID, int, int], Span] = field(default_factory=dict)
    removed: dict[tuple[UUID, int, int], Span] = field(default_factory=dict)
    rebuild: Rebuild | None = None

    def apply(self, recorded: e.Recorded, changed: Sequence[Message] = ()) -> None:
        """Fold one more event. `changed`: the messages that the transcript made or changed by it."""
        ev, at = recorded.event, recorded.recorded_at
        match ev:
            case e.ChunkSummarised():
                self._add(_made(ev, "recent", at))
                self.find_rules(ev.rules)
            case e.SummariesMerged():
                self._add(replace(_made(ev, ev.tier, at), sources=ev.sources))
            case e.LongTermCondensed():
                self._add(replace(_made(ev, "long_term", at), sources=(ev.source,)))
            case e.SummaryEdited():
                self._edit(ev)
            case e.SummaryInvalidated():
                self._go_stale([s for i in ev.summaries if (s := self.known.get(i)) is not None], ev.reason)
            case e.RebuildStarted():
                self.rebuild = Rebuild(ev.rebuild, ev.upto, ev.detail, at)
            case e.RebuildCompleted():
                self._complete(ev, at)
            case e.RebuildFailed() if self.rebuild is not None and self.rebuild.id == ev.rebuild:
                self.rebuild = replace(self.rebuild, state="failed", reason=ev.reason, ended_at=at)
            case _ if not isinstance(ev, e.MessagePosted):
                self.take_back(changed)

    def standing(self, rebuild: UUID | None = None) -> list[Summary]:
        """The valid summaries that are part of no other valid one, oldest messages first: what is sent (R5).

        Args:
            rebuild: those of a rebuild that is not complete, instead of those that serve.
        """
        found = [s for s in self.known.values() if s.stale is None and s.parent is None and s.rebuild == rebuild]
        return sorted(found, key=lambda s: (s.first, s.last))

    def cover(self) -> Cover:
        """Which messages the summaries that serve cover."""
        return Cover(self.standing())

    def find_rules(self, spans: Iterable[Span]) -> None:
        """Take in rules. Those that lie over each other in a message are one; what lies over one that a person removed
        is passed by."""
        for span in spans:
            if any(_overlap(span, other) for other in self.removed.values()):
                continue
            over = [other for other in self.rules.values() if _overlap(span, other)]
            for other in over:
                del self.rules[_place(other)]
            whole = _united([span, *over])
            self.rules[_place(whole)] = whole

    def remove_rules(self, spans: Iterable[Span]) -> None:
        """A person takes these rules away, and whatever lies over them."""
        for span in spans:
            for other in [other for other in self.rules.values() if _overlap(span, other)]:
                del self.rules[_place(other)]
            self.removed[_place(span)] = span

    def take_back(self, messages: Sequence[Message]) -> None:
        """Messages are worded anew or gone: what covers them is stale, and rules that they stated go, too (D17, R6)."""
        if not messages:
            return
        numbers = sorted(m.n for m in messages)
        stale = [
            s for s in self.known.values()
            if s.stale is None and bisect_left(numbers, s.first) < bisect_right(numbers, s.last)
        ]  # fmt: skip
        self._go_stale(stale, messages[0].gone or "edited")
        gone = {m.id for m in messages}
        for places in (self.rules, self.removed):
            for key in [key for key in places if key[0] in gone]:
                del places[key]

    def inherit(self, parent: Summaries, upto: int) -> None:
        """Take over what a parent has of the messages up to a number: the summaries wholly before it (D18)."""
        kept = {s.id for s in parent.known.values() if s.stale is None and s.rebuild is None and s.last <= upto}
        for s in parent.known.values():
            if s.id in kept:
                of = s.parent if s.parent in kept else None
                self.known[s.id] = replace(s, first=s.first - upto, last=s.last - upto, parent=of)
        for mine, theirs in ((self.rules, parent.rules), (self.removed, parent.removed)):
            mine.update({
                key: span.model_copy(update={"n": span.n - upto}) for key, span in theirs.items() if span.n <= upto
            })  # fmt: skip

    # -- parts -----------------------------------------------------------------------------------------------------

    def _add(self, s: Summary) -> None:
        if not is_summary(s.text):
            return
        for source in s.sources:
            if (part := self.known.get(source)) is not None:
                self.known[source] = replace(part, parent=s.id)
        self.known[s.id] = s

    def _edit(self, ev: e.SummaryEdited) -> None:
        s = self.known.get(ev.summary) if ev.summary is not None else None
        if s is not None and ev.text:
            if is_summary(ev.text):
                self.known[s.id] = replace(s, text=ev.text, tokens=ev.tokens, edited=True)
            else:
                self._go_stale([s], "erased")
        self.remove_rules(ev.removed)

    def _go_stale(self, stale: Collection[Summary], reason: str) -> None:
        """These are no longer true, nor is what they are part of; their own parts stand by themselves again."""
        gone = {s.id for s in stale}
        for s in stale:
            above = s.parent
            while above is not None and above not in gone:
                gone.add(above)
                above = self.known[above].parent if above in self.known else None
        for i in gone & self.known.keys():
            if self.known[i].stale is None:
                self.known[i] = replace(self.known[i], stale=reason, parent=None)
        for s in list(self.known.values()):
            if s.parent in gone:
                self.known[s.id] = replace(s, parent=None)

    def _complete(self, ev: e.RebuildCompleted, at: datetime) -> None:
        if self.rebuild is None or self.rebuild.id != ev.rebuild:
            return
        upto = self.rebuild.upto
        old = [s for s in self.known.values() if s.rebuild is None and s.stale is None and s.first <= upto]
        self._go_stale(old, "rebuilt")
        for s in list(self.known.values()):
            if s.rebuild == ev.rebuild:
                self.known[s.id] = replace(s, rebuild=None)
        self.rebuild = replace(self.rebuild, state="completed", ended_at=at)


def render_summary(standing: Sequence[Summary], rules: Sequence[tuple[str, str]]) -> str:
    """The text that is sent with every message (R5): long-term, merged, recent, each oldest first, then the rules.

    Args:
        standing: as `Summaries.standing` gives them.
        rules: who said it, and the words.
    """
    blocks = [s.text.strip() for tier in ("long_term", "merged", "recent") for s in standing if s.tier == tier]
    if rules:
        said = "\n".join(f"- {author}: {words}" for author, words in rules)
        blocks.append(f"### {RULES}\n{said}")
    return "\n\n".join(blocks)


def is_summary(text: str) -> bool:
    """Does a text say anything? An empty one is no summary, nor is one whose key is gone (D16, D24)."""
    return bool(text.strip()) and text != ERASED


def fold_conversation(read: ReadChat, stream: UUID, upto: int) -> tuple[Transcript, Summaries]:
    """Messages and summaries of a chat from its events alone, what it inherits included (D18)."""
    transcript, summaries = Transcript(), Summaries()
    for r in read(stream, upto):
        if isinstance(r.event, e.ChatForked):
            said, summarised = fold_conversation(read, r.event.parent_stream, r.event.at_version)
            transcript.inherit(said.messages, r.event.upto)
            summaries.inherit(summarised, r.event.upto)
        summaries.apply(r, transcript.apply(r))
    return transcript, summaries


def quoted(spans: Iterable[Span], messages: Mapping[UUID, Message]) -> list[tuple[Span, str]]:
    """The rules in the words of their messages, oldest first; those whose message is gone are none any more (R6)."""
    found = []
    for span in sorted(spans, key=lambda s: (s.n, s.start)):
        m = messages.get(span.message)
        if m is not None and m.gone is None and (words := m.text[span.start : span.end]).strip():
            found.append((span, words))
    return found


def place_of(quote: str, m: Message) -> Span | None:
    """Where a user's message says this word for word; the whole message where it does not, so that no rule is lost by a
    model that quotes badly. None for what no user said."""
    if m.role != "user" or not quote.strip():
        return None
    start = m.text.find(quote.strip())
    if start < 0:
        return Span(message=m.id, n=m.n, start=0, end=len(m.text))
    return Span(message=m.id, n=m.n, start=start, end=start + len(quote.strip()))


def _place(span: Span) -> tuple[UUID, int, int]:
    return span.message, span.start, span.end


def _united(spans: Sequence[Span]) -> Span:
    return spans[0].model_copy(update={"start": min(s.start for s in spans), "end": max(s.end for s in spans)})


def _overlap(a: Span, b: Span) -> bool:
    return a.message == b.message and a.start < b.end and b.start < a.end


def _made(ev: e.ChunkSummarised | e.SummariesMerged | e.LongTermCondensed, tier: Tier, at: datetime) -> Summary:
    return Summary(
        ev.summary, tier, ev.first, ev.last, ev.messages, ev.text, ev.tokens, ev.authors, ev.detail, at,
        rebuild=ev.rebuild,
    )  # fmt: skip
