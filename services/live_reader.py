"""Reads the live messages of a chat: rows of the read model, plus the events that are ahead of them (R2, D16).

So a reply sees every acknowledged message, with the projector stopped, too. Messages that are new are put on top of the
rows, and so are summaries; where an event ahead of them takes back, edits or inherits, the chat is folded anew from its
events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.summaries import Span, Summaries, Summary, fold_conversation, quoted, render_summary
from remembrancer.domain.transcript import Message, Transcript
from remembrancer.domain.window import FRAME_TOKENS, Level, Live, Sized
from remembrancer.projections.queries import load_queries
from remembrancer.services.store import EventStore
from remembrancer.services.tokens import count_tokens

_SQL = load_queries("remembrancer.services", "chats")
PAGE = 200
_NO_NUMBER = 2**62
_ONLY_NEW = (
    e.MessagePosted, e.ReplySearched, e.ChatStarted, e.ChunkSummarised, e.SummariesMerged, e.LongTermCondensed,
    e.SummaryEdited, e.RebuildStarted, e.RebuildFailed, e.ReplyCosted, e.HighCostNoticed,
    e.DocumentsSearched, e.DeepMemoryRead,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SummaryText:
    """The whole summary as it is sent (R5): its text, its tokens, and the summaries and rules that it is made of."""

    text: str = ""
    tokens: int = 0
    standing: Sequence[Summary] = ()
    rules: Sequence[tuple[Span, str, str]] = ()
    """Place, author and words."""


@dataclass(frozen=True, slots=True)
class LiveMessages:
    """The messages of one reply, oldest first; `window` of them are the live window's, the others are raw (D16).

    `unsummarised` are present and in no valid summary; `unsent` are those of them that found no room. `before` is the
    message that the newest one takes the place of, or repeats: the same turn was asked for before.
    """

    messages: Sequence[Message]
    window: int
    total: int
    unsummarised: int
    unsent: int
    before: Message | None = None
    summary: SummaryText = SummaryText()
    sent: e.ConversationSent | None = None
    """The same for the record: `at` finds them again by it."""


@dataclass(frozen=True, slots=True)
class Said:
    """The newest message of a reply, which is not written yet.

    Where its turn comes `again`, what the persona answered before is taken back (D19), and the message is written only
    if it is not there word for word.
    """

    message: Message
    turn: str
    again: bool = False


def read_live(
    conn: Connection[Any],
    store: EventStore,
    chat: UUID,
    *,
    level: Level,
    context: int,
    room: int,
    said: Said | None = None,
) -> LiveMessages:
    """The messages that a reply sends, as of one moment.

    Args:
        context: tokens that the model can read; room: those of them that messages may take.
        said: the newest message, and the turn that it is of.
    """
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        source = _Source(conn, store, chat)
        of_turn = source.of_turn(said.turn) if said is not None and said.again else []
        without = _left_out(of_turn, said)
        source.take_back(without)
        summary = source.summary({m.id for m in without})
        framed = summary.tokens + FRAME_TOKENS if summary.text else 0
        return _choose(source, level, context, room - framed, said, of_turn, summary)
    finally:
        conn.execute("COMMIT")


def read_summary(conn: Connection[Any], store: EventStore, chat: UUID) -> SummaryText:
    """The whole summary of a chat, as of one moment."""
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        return _Source(conn, store, chat).summary()
    finally:
        conn.execute("COMMIT")


def read_conversation(conn: Connection[Any], store: EventStore, chat: UUID, upto: int) -> tuple[Transcript, Summaries]:
    """The whole chat from its events, up to a version."""

    def read(stream: UUID, version: int) -> list[e.Recorded]:
        return store.decode([row for row in store.select_streams(conn, [(stream, 0)]) if row[3] <= version], conn)

    return fold_conversation(read, chat, upto)


def read_summaries(conn: Connection[Any], at: dict[str, Any]) -> tuple[Summaries, dict[UUID, Message]]:
    """The summaries that stand, the rules and their messages, as the rows have them. `at`: shard and chat."""
    summaries, messages = Summaries(), dict[UUID, Message]()
    for row in conn.execute(_SQL["standing"], at, prepare=True):
        s = Summary(*row)
        summaries.known[s.id] = replace(s, authors=tuple(s.authors), sources=tuple(s.sources))
    for removed, start, end, *row in conn.execute(_SQL["rules"], at, prepare=True):
        m = Message(*row)
        messages[m.id] = m
        places = summaries.removed if removed else summaries.rules
        places[m.id, start, end] = Span(message=m.id, n=m.n, start=start, end=end)
    return summaries, messages


class _Source:
    """Messages newest first, with whether a valid summary covers them; and the summaries."""

    def __init__(self, conn: Connection[Any], store: EventStore, chat: UUID) -> None:
        self._conn = conn
        self._at = {"shard": chat.bytes[0], "chat": chat}
        row = conn.execute(_SQL["folded"], self._at, prepare=True).fetchone()
        assert row is not None
        folded, head, self.total, self.uncovered = row
        self.version: int = head
        tail = store.decode(store.select_streams(conn, [(chat, folded)]), conn) if head > folded else []
        self._ahead: list[Message] = []
        self._anew: list[Message] | None = None
        self._whole: Callable[[], tuple[Transcript, Summaries]] = lambda: read_conversation(conn, store, chat, head)
        if any(not isinstance(r.event, _ONLY_NEW) for r in tail):
            self._fold_anew(())
            return
        self.summaries, self._speakers = read_summaries(conn, self._at)
        transcript = Transcript()
        for r in tail:
            self.summaries.apply(r, transcript.apply(r))
        self.cover = self.summaries.cover()
        self._ahead = [m for m in reversed(transcript.messages.values()) if m.gone is None]
        self._speakers |= {m.id: m for m in self._ahead}
        self.total += len(self._ahead)
        self.uncovered += len(self._ahead)
        self.uncovered -= sum(
            r.event.messages for r in tail if isinstance(r.event, e.ChunkSummarised) and r.event.rebuild is None
        )

    def _fold_anew(self, without: Sequence[Message]) -> None:
        whole, self.summaries = self._whole()
        self.summaries.take_back(without)
        self._anew = sorted((m for m in whole.messages.values() if m.gone is None), key=lambda m: -m.n)
        self._speakers = {m.id: m for m in self._anew}
        self.total = len(self._anew)
        self.cover = self.summaries.cover()
        self.uncovered = sum(m.n not in self.cover for m in self._anew)

    def take_back(self, without: Sequence[Message]) -> None:
        """These are about to be taken back or worded anew: no summary that covers one of them is sent any more (D17).

        Seldom, since nothing of the last two turns is summarised (D15): a turn may be among them again after a rewind.
        """
        if any(m.n in self.cover for m in without):
            self._fold_anew(without)

    def summary(self, without: Collection[UUID] = ()) -> SummaryText:
        """All valid summaries and rules. `without`: messages that are about to be taken back, and their rules."""
        spans = [span for span in self.summaries.rules.values() if span.message not in without]
        unread = [span.message for span in spans if span.message not in self._speakers]
        if unread:  # a summary that the rows do not know yet
            rows = self._conn.execute(_SQL["by_ids"], self._at | {"messages": unread}).fetchall()
            self._speakers |= {row[1]: Message(*row) for row in rows}
        rules = [(s, self._speakers[s.message].author, words) for s, words in quoted(spans, self._speakers)]
        standing = self.summaries.standing()
        text = render_summary(standing, [(author, words) for _, author, words in rules])
        return SummaryText(text, count_tokens(text) if text else 0, standing, rules)

    def of_turn(self, turn: str) -> list[Message]:
        """What was said in a turn."""
        if self._anew is not None:
            return [m for m in self._anew if m.turn == turn]
        rows = self._conn.execute(_SQL["of_turn"], self._at | {"turn": turn}, prepare=True).fetchall()
        return [*(m for m in self._ahead if m.turn == turn), *(Message(*row) for row in rows)]

    def newest(self) -> Iterator[tuple[Message, bool]]:
        """All of them, page by page."""
        for m in self._ahead if self._anew is None else self._anew:
            yield m, m.n in self.cover
        if self._anew is None:
            yield from self._pages("newest", _NO_NUMBER)

    def uncovered_before(self, n: int) -> Iterator[tuple[Message, bool]]:
        """Those before a number that no valid summary covers."""
        if self._anew is not None:
            yield from ((m, False) for m in self._anew if m.n < n and m.n not in self.cover)
            return
        yield from ((m, False) for m in self._ahead if m.n < n and m.n not in self.cover)
        yield from self._pages("uncovered", n)

    def _pages(self, query: str, before: int) -> Iterator[tuple[Message, bool]]:
        size = PAGE
        while True:
            at = self._at | {"before": before, "limit": size}
            rows = self._conn.execute(_SQL[query], at, prepare=True).fetchall()
            for *row, covered in rows:
                if query == "newest" or row[0] not in self.cover:
                    yield Message(*row), covered or row[0] in self.cover
            if len(rows) < size:
                return
            before, size = rows[-1][0], min(4 * size, 2_000)


def _left_out(of_turn: Sequence[Message], said: Said | None) -> list[Message]:
    """What a new attempt of a turn takes back: its answer, and its message where that is worded anew (D19)."""
    before = next((m for m in of_turn if m.role == "user"), None)
    same = said is None or (before is not None and before.text == said.message.text)
    return [m for m in of_turn if m.role == "persona" or not same]


def _choose(
    source: _Source,
    level: Level,
    context: int,
    room: int,
    said: Said | None,
    of_turn: Sequence[Message],
    summary: SummaryText,
) -> LiveMessages:
    before = next((m for m in of_turn if m.role == "user"), None)
    new = None if said is None or (before is not None and before.text == said.message.text) else said.message
    without = {m.id for m in _left_out(of_turn, said)}
    live = Live(level, context, room)
    chosen: list[Message] = []
    covered_sent = 0

    def offer(m: Message, covered: bool) -> None:
        nonlocal covered_sent
        if m.id in without:
            return
        before = len(live.chosen)
        live.offer(Sized(m.n, m.tokens, covered))
        if len(live.chosen) > before:
            chosen.append(m)
            covered_sent += covered

    if new is not None:
        offer(new, False)
    last = _NO_NUMBER
    for m, covered in source.newest():
        offer(m, covered)
        last = m.n
        if live.full() or not live.takes():
            break
    if not live.full():
        for m, covered in source.uncovered_before(last):
            offer(m, covered)
            if live.full():
                break
    if new is not None and before is not None:  # it is worded anew, and stays the message that it was
        chosen = [replace(m, id=before.id) if m is new else m for m in chosen]
    more = (new is not None) - len(without)
    unsummarised = source.uncovered + more
    return LiveMessages(
        messages=chosen[::-1],
        window=live.window,
        total=source.total + more,
        unsummarised=unsummarised,
        unsent=unsummarised - (len(chosen) - covered_sent),
        before=before,
        summary=summary,
        sent=_for_the_record(source.version, chosen[: live.window], chosen[live.window :]),
    )


def _for_the_record(version: int, window: Sequence[Message], raw: Sequence[Message]) -> e.ConversationSent:
    numbers = [m.n for m in window if m.n < _NO_NUMBER]  # the newest one has none yet
    return e.ConversationSent(
        version=version, window=min(numbers, default=None), raw=min((m.n for m in raw), default=None)
    )
