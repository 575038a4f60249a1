"""The answers of the verbs: the same fields in Python, on the command line and over HTTP (DESIGN 7)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from remembrancer.domain.events import Actor
from remembrancer.domain.identity import Scope
from remembrancer.domain.memory import State


class Answer(BaseModel):
    """Base of all answers: immutable, and plain JSON with `model_dump(mode="json")`."""

    model_config = ConfigDict(frozen=True)


class Position(Answer):
    """Where an event was recorded: a number that only grows, in each shard."""

    shard: int
    position: int


class MemoryView(Answer):
    """A memory as a person sees it. Moments are aware UTC; `unused_days` is the counter of T1."""

    id: UUID
    persona: str
    scope: Scope
    subject: str
    text: str
    state: State
    on_desk: bool
    until: date | None
    unused_days: int
    pinned: bool
    protected: bool
    actor: Actor
    created_at: datetime
    updated_at: datetime
    last_matched_at: datetime | None
    recent: bool
    tags: tuple[str, ...]
    channels: tuple[str, ...]


class NoticeView(Answer):
    """A sentence for people, and for whom (T15). `user` is the owner, where it is for one."""

    audience: Literal["everyone", "managers", "owner", "nobody"]
    text: str
    user: str | None = None


class Forgotten(Answer):
    """A memory that made room, and why it was first in line (T12)."""

    memory: MemoryView
    reason: str


class SaveAnswer(Answer):
    """What a save came to."""

    status: Literal["saved", "duplicate"]
    memory: MemoryView
    forgotten: list[Forgotten] = []
    warnings: list[str] = []
    notices: list[NoticeView] = []
    positions: list[Position] = []


class ChangeAnswer(Answer):
    """A memory after an edit, a pin or an unpin; as it was before, after a delete."""

    memory: MemoryView
    forgotten: list[Forgotten] = []
    warnings: list[str] = []
    positions: list[Position] = []


class ClearAnswer(Answer):
    """How many were cleared, and what is asked next (R18)."""

    cleared: int
    pinned_left: int
    message: str
    positions: list[Position] = []


class Undone(Answer):
    """A memory that an undo took away, brought back or reworded, with its text."""

    memory: UUID
    text: str


class Kept(Answer):
    """A memory that an undo left as it is, and why (D14)."""

    memory: UUID
    text: str
    why: str


class UndoAnswer(Answer):
    """What was taken back. `turns` are in the order in which they were undone."""

    turns: list[str]
    removed: list[Undone]
    restored: list[Undone]
    reverted: list[Undone]
    kept: list[Kept]
    positions: list[Position] = []


class ListView(Answer):
    """One list. `count` are the unpinned ones, of `capacity`."""

    persona: str
    scope: Scope
    subject: str
    count: int
    capacity: int
    pinned: int
    pin_capacity: int
    memories: list[MemoryView]


class ListAnswer(Answer):
    """The lists of a persona."""

    lists: list[ListView]


class MatchView(Answer):
    """A candidate of the search: its absolute score, and what it is made of (D5)."""

    memory: UUID
    text: str
    score: float
    similarity: float
    words: float
    rank: int
    matched: bool
    recalled: bool


class Prefix(Answer):
    """The beginning of the prompt (T17). `fingerprint` is the SHA-256 of the text."""

    text: str
    fingerprint: str
    memories: list[MemoryView]


class PassageView(Answer):
    """A passage of a document that the newest message found, with where it stands: page, headings, number `n`."""

    document: UUID
    name: str
    n: int
    page: int | None
    heading: str | None
    place: str
    text: str
    tokens: int
    score: float
    similarity: float
    words: float


class Late(Answer):
    """The block near the end of the prompt: what was recalled, what is recent, and what documents say (T17)."""

    text: str
    recalled: list[MemoryView]
    documents: list[PassageView] = []
    documents_missing: str | None = None
    """Why the documents in play were not searched, where they were not."""


class Search(Answer):
    """How the search of a reply went. `matches` counted as used; `candidates` are the best, matched or not."""

    status: Literal["ok", "unavailable", "off"]
    reason: str | None = None
    model: str | None = None
    threshold: float | None = None
    matches: list[MatchView] = []
    candidates: list[MatchView] = []


class MessageView(Answer):
    """What somebody said in a chat. `tokens` are counted by o200k_base; `ref` is the caller's own id of it."""

    id: UUID
    role: Literal["user", "persona"]
    author: str
    text: str
    tokens: int
    said_at: datetime
    turn: str | None
    attempt: int
    ref: str | None
    edited_at: datetime | None


class WindowView(Answer):
    """How the messages of a reply were chosen (R2, D16).

    The last `messages` of those sent are the live window; those before it are in no valid summary and sent as they are.
    `unsent` found no room: they are kept and counted here, as are all `unsummarised` ones. `tokens` are those of all
    messages sent.
    """

    detail: str
    messages: int
    tokens: int
    total: int
    unsummarised: int
    unsent: int


class SummaryView(Answer):
    """The whole summary of the chat, sent with every message (R5): long-term, merged, recent, and the users' rules."""

    text: str = ""
    tokens: int = 0
    summaries: list[UUID] = []


class ReplyAnswer(Answer):
    """What a reply is written from: `messages` oldest first, the newest one last (R1)."""

    turn: str
    attempt: int
    chat: str
    prefix: Prefix
    late: Late
    search: Search
    summary: SummaryView = SummaryView()
    messages: list[MessageView] = []
    window: WindowView | None = None
    notices: list[NoticeView] = []
    positions: list[Position] = []

    def prompt(self, persona: str | None = None) -> list[dict[str, str]]:
        """The messages of a chat-completions call: prefix, summary, chat, and the late block before the newest message.

        Where several people or personas talk, their messages begin with their names; those of the persona that talks
        are the assistant's.

        Args:
            persona: who talks; left out, every persona's messages are the assistant's.
        """
        named = len({m.author for m in self.messages if m.role == "user" or persona not in (None, m.author)}) > 1
        said = [
            {"role": "assistant", "content": m.text}
            if m.role == "persona" and persona in (None, m.author)
            else {"role": "user", "content": f"{m.author}: {m.text}" if named and m.author else m.text}
            for m in self.messages
        ]
        first = (self.prefix.text, self.summary.text)
        system = [{"role": "system", "content": text} for text in first if text]
        late = [{"role": "system", "content": self.late.text}] if self.late.text else []
        return [*system, *said[:-1], *late, *said[-1:]]


class HistoryEntry(Answer):
    """One line of history (C30)."""

    at: datetime
    position: Position
    actor: Actor
    turn: str | None
    event: str
    sentence: str
    before: str | None
    after: str | None
    persona: str
    scope: Scope | None
    subject: str | None
    memory: UUID | None
    data: dict[str, Any] = {}


class HistoryAnswer(Answer):
    """A page of history, oldest first; `next` continues it."""

    entries: list[HistoryEntry]
    next: str | None


class ArchiveHit(Answer):
    """A text that is or was a memory, found over all personas of a tenant."""

    memory: UUID
    persona: str
    scope: Scope
    subject: str
    text: str
    recorded_at: datetime
    current: bool
    similarity: float


class DetailSwitched(Answer):
    """Another memory detail for the web chats of a persona, and what each reply may read more for it, at most (R7).

    Less if negative. `extra_cost` is None where no price is known. `rebuild_summary` applies it to what is past.
    """

    persona: str
    before: Literal["key_events", "balanced", "detailed"]
    after: Literal["key_events", "balanced", "detailed"]
    extra_tokens: int
    extra_cost: float | None


class PersonaView(Answer):
    """A persona's settings (T16, R17). `switched` only where they were just changed."""

    persona: str
    name: str
    instructions: str
    learns: bool
    detail: Literal["key_events", "balanced", "detailed"] | None = None
    switched: tuple[DetailSwitched, ...] = ()


class PersonaDeleted(Answer):
    """A persona was deleted: so many memories of so many people are theirs with every persona now (R11)."""

    persona: str
    moved: int
    people: int


class PersonView(Answer):
    """A person's settings (T10, R17). `switched` only where they were just changed."""

    user: str
    privacy: Literal["everywhere", "private_chats_only", "nowhere"]
    not_learning: tuple[str, ...]
    details: dict[str, Literal["key_events", "balanced", "detailed"]] = {}
    deep_memory: bool = False
    switched: tuple[DetailSwitched, ...] = ()


class ServerView(Answer):
    """A server's settings (T10, T15, R17)."""

    server: str
    notices: Literal["everyone", "managers", "hidden"]
    blocklist: tuple[str, ...]
    personal_memories: bool
    private: bool
    not_learning: tuple[str, ...]


class Skipped(Answer):
    """A row that an import could not take, and why."""

    row: int
    why: str


class ImportAnswer(Answer):
    """What an import came to. The same file again imports nothing."""

    imported: int
    duplicates: int
    skipped: list[Skipped]
    settings: int = 0
    """Settings of the tenant, of personas, people and servers that were taken over."""
    without_vector: int = 0
    """Of the imported ones: not searchable yet, since the model did not answer (D22)."""


class EraseAnswer(Answer):
    """What was erased (D24), and what a person has to decide on."""

    erased_lists: int
    documents: int = 0
    """Those that the person had added."""
    memories: int
    """All that ever were, those that were deleted or forgotten before included."""
    mentions: list[MemoryView]
    """Memories of servers that name the person, as they are now. They are the servers', and stay as they are."""
    positions: list[Position] = []


class ModelChange(Answer):
    """Which embedding model serves a tenant, and how far a change to another is (D23)."""

    serving: str | None
    coming: str | None
    """The model that takes over when every text has a vector of it; None: no change is on."""
    settings: str | None
    """The model that the settings of this process name; None for ``none``."""
    since: datetime | None = None
    """When the change began; without one, since when the model serves."""
    texts: int = 0
    """Different texts that are or ever were memories. Counted, like the rest, only during a change."""
    embedded: int = 0
    """Those that have their vector, or that the model is known to refuse."""
    refused: int = 0
    per_second: float = 0.0
    """Vectors a second in the last minute."""
    error: str | None = None
    """Why it does not get on."""
    error_at: datetime | None = None


class Check(Answer):
    """One finding of `doctor`, with what to do where it is not well."""

    name: str
    ok: bool
    detail: str
    hint: str | None = None


class DoctorReport(Answer):
    """Is this installation well?"""

    ok: bool
    checks: list[Check]
    model: ModelChange | None = None
    """The model that serves, and the change that is on; None where it cannot be looked at."""


class ProbeResult(Answer):
    """How one language of the probe set does at a threshold."""

    language: str
    facts: int
    touches: int
    small_talk: int
    found: float
    """Share of the touching messages whose fact is among the first 3 and passes the threshold."""
    ranked: float
    """The same whatever the threshold: what no threshold can better."""
    matched_small_talk: float


class Calibration(Answer):
    """A threshold measured for a model (D5)."""

    model: str
    threshold: float
    shipped: float | None
    found: float
    ranked: float
    matched_small_talk: float
    languages: list[ProbeResult]
