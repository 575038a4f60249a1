"""Looks for a fact in conversations: in the live window, in a summary, dropped from one, sent as it was said (R1, U1).

By words, as memories are: a message speaks of what it has most of the words of, and a summary still tells it if that
has them, too. Messages that are gone, erased or another tenant's are not looked at (C23, D24), nor chats of other
personas than the one that is asked about (C7).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain.transcript import Message
from remembrancer.projections.queries import load_queries
from remembrancer.projections.words import QueryTerms, memory_terms, query_terms
from remembrancer.services.answers_layers import InChat
from remembrancer.services.chats import Chats
from remembrancer.services.deps import Deps
from remembrancer.services.summariser import Summariser
from remembrancer.services.summary_reader import window_begin

_SQL = load_queries("remembrancer.services", "layers")
LOOKED_AT = 500
"""Messages that have a piece of a word are compared, the newest ones."""
MOST = 10
"""Messages that are told of."""
ENOUGH = 0.6
"""Share of the words from which on a text speaks of it."""
LONGEST = 300
"""Characters of a message that are shown."""
_TIERS = {"recent": "the recent summary", "merged": "the merged summary", "long_term": "the long-term summary"}


class _Part(NamedTuple):
    """A summary that covers a message."""

    id: UUID
    tier: Any
    first: int
    last: int
    text: str
    made_at: datetime
    parent: UUID | None
    sources: int


class Layers:
    """See the module."""

    def __init__(self, deps: Deps, chats: Chats, summariser: Summariser) -> None:
        self._deps = deps
        self._chats = chats
        self._summariser = summariser

    def of(self, text: str, *, persona: str | None, messages: Sequence[UUID] = ()) -> list[InChat]:
        """What conversations say of this, the newest first.

        Args:
            persona: whose chats; left out, all of the tenant. messages: those that are known to say it.
        """
        words = query_terms(text)
        found: dict[UUID, tuple[UUID, str, Message, float]] = {}
        for chat, key, m in [*self._told(messages), *self._heard(text, persona)]:
            share = 1.0 if m.id in messages else _share(words, m.text)
            if share >= ENOUGH:
                found.setdefault(m.id, (chat, key, m, share))
        best = sorted(found.values(), key=lambda one: (-one[3], one[2].said_at), reverse=False)
        best = sorted(best[: 3 * MOST], key=lambda one: one[2].said_at, reverse=True)[:MOST]
        begins: dict[UUID, int] = {}
        return [self._place(chat, key, m, words, begins) for chat, key, m, _ in best]

    # -- messages --------------------------------------------------------------------------------------------------

    def _heard(self, text: str, persona: str | None) -> list[tuple[UUID, str, Message]]:
        pieces = [f"%{_escaped(piece)}%" for piece in _pieces(text)]
        if not pieces:
            return []
        at = {"tenant": self._deps.tenant, "persona": persona, "pieces": pieces, "limit": LOOKED_AT}
        all_of_them = self._rows("heard", at | {"all": True})
        if len(pieces) == 1 or len(all_of_them) >= MOST:
            return all_of_them
        return [*all_of_them, *self._rows("heard", at | {"all": False})]

    def _told(self, messages: Sequence[UUID]) -> list[tuple[UUID, str, Message]]:
        if not messages:
            return []
        shards = sorted({m.bytes[0] for m in messages})
        return self._rows("told", {"tenant": self._deps.tenant, "messages": list(messages), "shards": shards})

    def _rows(self, query: str, at: dict[str, Any]) -> list[tuple[UUID, str, Message]]:
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL[query], at).fetchall())
        return [(chat, key, Message(*row)) for chat, key, *row in rows]

    # -- where they stand ------------------------------------------------------------------------------------------

    def _place(self, chat: UUID, key: str, m: Message, words: QueryTerms, begins: dict[UUID, int]) -> InChat:
        shown = m.text if len(m.text) <= LONGEST else m.text[: LONGEST - 1] + "\u2026"
        said: dict[str, Any] = {
            "chat": key, "message": m.id, "author": m.author, "said_at": m.said_at, "text": shown,
        }  # fmt: skip
        if chat not in begins:
            begins[chat] = self._window(chat)
        if m.n >= begins[chat]:
            return InChat(**said, where="window", sentence="It is in the live window, sent as it was said.")
        at = {"shard": chat.bytes[0], "chat": chat, "n": m.n, "message": m.id}

        def work(conn: Connection[Any]) -> tuple[list[_Part], list[tuple[int, int]]]:
            parts = [_Part(*row) for row in conn.execute(_SQL["parts"], at)]
            return parts, [(row[0], row[1]) for row in conn.execute(_SQL["rule"], at)]

        parts, rules = self._deps.store.database.run(work)
        if any(_share(words, m.text[a:b]) >= ENOUGH for a, b in rules):
            return InChat(**said, where="rule", sentence="It is kept word for word, as a rule of the user (R6).")
        if not parts:
            raw = "It is in no summary yet, and sent as it was said as far as there is room (D16)."
            return InChat(**said, where="raw", sentence=raw)
        return _in_summaries(said, parts, words)

    def _window(self, chat: UUID) -> int:
        """The number of the first message of a chat's live window."""
        here = self._chats.by_stream(chat)
        assert here is not None
        policy, detail = self._summariser.read_setting(here)
        at = {"shard": chat.bytes[0], "chat": chat}
        return self._deps.store.database.run(lambda conn: window_begin(conn, at, detail, policy))


def _in_summaries(said: dict[str, Any], parts: Sequence[_Part], words: QueryTerms) -> InChat:
    """Whether the summary that stands tells it, or which one on the way there left it out."""
    by_id = {p.id: p for p in parts}
    chain = [parts[0]]
    while chain[-1].parent in by_id and len(chain) < len(parts):
        chain.append(by_id[chain[-1].parent])
    last = chain[-1]
    if _share(words, last.text) >= ENOUGH:
        of = {"summary": last.id, "tier": last.tier, "at": last.made_at}
        return InChat(**said, **of, where="summary", sentence=f"It is in {_named(last)}.")
    dropped = next(p for n, p in enumerate(chain) if all(_share(words, q.text) < ENOUGH for q in chain[n:]))
    of = {"summary": dropped.id, "tier": dropped.tier, "at": dropped.made_at}
    how = (
        "left out when its messages were summarised"
        if dropped is chain[0]
        else f"dropped when {_TIERS['long_term']} was condensed"
        if dropped.tier == "long_term" and dropped.sources == 1
        else f"dropped when it was merged into {_TIERS[dropped.tier]}"
    )
    sentence = f"It was {how}, on {dropped.made_at:%Y-%m-%d}."
    return InChat(**said, **of, where="dropped", sentence=sentence)


def _named(p: _Part) -> str:
    return f"{_TIERS[p.tier]} of {p.made_at:%Y-%m-%d}"


def _share(words: QueryTerms, text: str) -> float:
    """How many of the words that are asked for a text has, in whatever form."""
    if not words.terms:
        return 0.0
    there = set(memory_terms(text))
    found = {word for term, word in zip(words.terms, words.words, strict=True) if term in there}
    return len(found) / (max(words.words) + 1)


def _pieces(text: str) -> list[str]:
    """The middles of the words that say something: they stand in other forms of the word, too, and where it begins a
    sentence."""
    found = []
    for word in text.split():
        plain = word.strip(".,;:!?\"'()[]\u201c\u201d\u2018\u2019").removesuffix("'s").removesuffix("\u2019s")
        if query_terms(plain).terms:
            found.append(plain[1 : max(3, len(plain) - 2)] or plain)
    return list(dict.fromkeys(found))[:20]


def _escaped(piece: str) -> str:
    return piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def summed_up(found: Sequence[InChat]) -> str | None:
    """One sentence over what conversations say; None if they say nothing."""
    if not found:
        return None
    first = found[0]
    times = "" if len(found) == 1 else f"{len(found)} messages speak of it; the last one: "
    return f"{times}{first.author} said it on {first.said_at:%Y-%m-%d} in the chat {first.chat}. {first.sentence}"
