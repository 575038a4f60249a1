"""What is stored. Names and fields are the storage format: a change needs a new `version` and an upcaster.

An event is a fact in the past tense. Nothing here decides, and nothing here is ever decided again by a rebuild:
what was matched or forgotten, and by which numbers, is part of the fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from remembrancer.domain.identity import ListKey, Scope

Actor = Literal["persona", "person", "deep", "import", "system"]


class Event(BaseModel):
    """The body that every event shares. `recorded_at` is given by the store under the head's lock (see `Recorded`)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: ClassVar[int] = 1
    """Version of the stored form; raise it with an upcaster in `UPCASTERS`."""
    personal: ClassVar[tuple[str, ...]] = ()
    """Text fields that are encrypted under the subject's key."""
    fact: ClassVar[bool] = False
    """A fact is absorbed in any order and takes the next version of its stream; a decision names the version it saw."""

    id: UUID
    tenant: str
    actor: Actor = "person"
    request_id: str | None = None
    turn: str | None = None


class ListEvent(Event):
    """An event of a list says which list, so that nobody has to look it up."""

    persona: str
    scope: Scope
    subject: str

    @property
    def key(self) -> ListKey:
        """The list that it is an event of."""
        return ListKey(self.persona, self.scope, self.subject)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as the store gives it back."""

    event: Event
    stream: UUID
    version: int
    shard: int
    position: int
    recorded_at: datetime


# -- PersonaMemory -------------------------------------------------------------------------------------------------


class Match(BaseModel):
    """One memory that counted as used: its numbers are recorded, since a later model would give others (T3)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    memory: UUID
    score: float
    similarity: float
    words: float
    rank: int
    recalled: bool = False


class Source(BaseModel):
    """Where a memory was learned (D21)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    chat: str | None = None
    messages: tuple[str, ...] = ()
    turn: str | None = None
    """The turn before an import: a turn of another store, which nobody can undo here."""


class MemorySaved(ListEvent):
    """A memory came into its list."""

    personal: ClassVar[tuple[str, ...]] = ("text",)

    memory: UUID
    text: str
    day: date
    until: date | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    pinned: bool = False
    protected: bool = False
    source: Source = Source()
    policy: int = 0
    created_at: datetime | None = None
    """Stamps that an import or a move carries over; left out, the moment of recording counts."""
    updated_at: datetime | None = None
    last_matched_at: datetime | None = None
    unused_days: int = 0
    """Days counted before an import or a move (export and import are exact)."""
    by: Actor | None = None
    """Who saved it first, where an import brings it; left out, whoever acts."""


class MemoryEdited(ListEvent):
    """Text, date, tags or channels were changed. Counts as use; by a person it protects (D11)."""

    personal: ClassVar[tuple[str, ...]] = ("text", "before")

    memory: UUID
    text: str
    before: str
    day: date
    until: date | None = None
    tags: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    protects: bool = False


class MemoryDeleted(ListEvent):
    """A memory was taken out of its list by an actor's will; a person's leaves a tombstone (D13)."""

    memory: UUID


class ListSearched(ListEvent):
    """The day tick: a search of this list ran on this UTC day (T4). `hidden` were not part of it (T10, D22, D28).

    Where almost all of a list was hidden, `seen` holds the few that were not, and `hidden` is empty.
    """

    fact: ClassVar[bool] = True

    day: date
    hidden: tuple[UUID, ...] = ()
    seen: tuple[UUID, ...] | None = None


class MemoriesMatched(ListEvent):
    """These memories of the list counted as used in a reply (T3)."""

    fact: ClassVar[bool] = True

    day: date
    matches: tuple[Match, ...]


class MemoryAffirmed(ListEvent):
    """The same sentence was saved again: no second memory, but a use (D12)."""

    memory: UUID
    day: date
    protects: bool = False


class MemoryPinned(ListEvent):
    """A person marked the memory to be sent whole with every reply (R15)."""

    memory: UUID
    day: date


class MemoryUnpinned(ListEvent):
    """Back among the others, with a counter of 0 (D3)."""

    memory: UUID
    day: date


class MemoryEvicted(ListEvent):
    """Forgotten to make room (T12)."""

    memory: UUID
    for_memory: UUID
    reason: str
    policy: int = 0


class MemoryRestored(ListEvent):
    """An evicted or deleted memory is back: counter 0, protected (U2)."""

    memory: UUID
    day: date


class TurnRolledBack(ListEvent):
    """What a turn did to this list was taken back (D14)."""

    removed: tuple[UUID, ...] = ()
    restored: tuple[UUID, ...] = ()
    reverted: tuple[UUID, ...] = ()
    """Memories that are worded as before this turn's edits."""
    unmatched: Mapping[UUID, date] = {}
    """Memories that lose this turn's use, with the day of the use before it."""
    kept: tuple[tuple[UUID, str], ...] = ()


class MemoriesCleared(ListEvent):
    """All unpinned (or all pinned) memories are gone for good, without tombstones (R18)."""

    pinned: bool = False
    count: int = 0


class MemoryMoved(ListEvent):
    """A memory left this list for another one (R11)."""

    memory: UUID
    to_persona: str
    to_scope: Scope
    to_subject: str


class CountedUse(BaseModel):
    """A use that a recount came to; see `domain.memory.Use`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    day: date
    turn: str | None = None
    matched_at: datetime | None = None


class Counted(BaseModel):
    """The whole use of a memory as a recount left it: what its counter follows from, on this day and later ones."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    base_day: date
    base_days: int = 0
    base_matched_at: datetime | None = None
    uses: tuple[CountedUse, ...] = ()


class UseRecounted(ListEvent):
    """What-if, applied: the use of memories counted anew under other numbers (U3).

    `counted` says it whole. For a memory that is not in it, as in older events, the counter was `unused_days` on `day`.
    """

    unused_days: Mapping[UUID, int] = {}
    day: date
    counted: Mapping[UUID, Counted] = {}
    numbers: Mapping[str, Any] = {}
    """The numbers of the policy under which it was counted."""


class SubjectErased(Event):
    """The keys of the stream's subject are gone; texts of before read `[erased]` (D24).

    `persona`, `scope` and `subject` say which list the stream is; of another stream only the subject is said. Version 1
    did not say either, so that the history of a list did not show its erasure.
    """

    version: ClassVar[int] = 2

    persona: str = ""
    scope: Scope | None = None
    subject: str | None = None


# -- settings ------------------------------------------------------------------------------------------------------


class PersonaDefined(Event):
    """Standing instructions, name and learn switch of a persona (T16, R17)."""

    personal: ClassVar[tuple[str, ...]] = ("instructions",)

    persona: str
    name: str
    instructions: str = ""
    learns: bool = True
    detail: Literal["key_events", "balanced", "detailed"] | None = None


class PersonaDeleted(Event):
    """The persona talks no more; its key and its server memories live on (D25)."""

    persona: str = ""


class PersonChanged(Event):
    """A person's privacy and the personas that do not learn from them (T10, R17)."""

    privacy: Literal["everywhere", "private_chats_only", "nowhere"] = "everywhere"
    not_learning: tuple[str, ...] = ()
    details: Mapping[str, Literal["key_events", "balanced", "detailed"]] = {}
    """Memory detail by persona (R3)."""
    deep_memory: bool = False
    """Whether a background pass reads what leaves the live window of their web chats (R16)."""


class ServerChanged(Event):
    """A server's settings (T10, T15, R17)."""

    notices: Literal["everyone", "managers", "hidden"] = "everyone"
    blocklist: tuple[str, ...] = ()
    personal_memories: bool = True
    private: bool = False
    """A direct-message pair: privacy of `private_chats_only` is met here."""
    not_learning: tuple[str, ...] = ()


class TombstonePlaced(Event):
    """A person deleted or edited away this sentence: nobody but a person may bring it back (D13)."""

    personal: ClassVar[tuple[str, ...]] = ("sentence",)
    fact: ClassVar[bool] = True

    list: UUID
    memory: UUID
    sentence: str


class TombstonesLifted(Event):
    """A restore lifted one tombstone (`memory`), or a clear all those of a list (R18)."""

    fact: ClassVar[bool] = True

    list: UUID
    memory: UUID | None = None


class PolicyChanged(Event):
    """The effective policy of a tenant from here on (SPEC 6), and what of it the tenant itself has set."""

    policy: Mapping[str, Any]
    own: Mapping[str, Any] = {}


# -- Chat ----------------------------------------------------------------------------------------------------------


class ChatStarted(Event):
    """A chat came into being: with its first reply (D31), or opened, with several personas as a group (D26)."""

    chat: str
    personas: tuple[str, ...]
    platform: str = "api"
    server: str | None = None
    channel: str | None = None
    users: tuple[str, ...] = ()


class ChatNamed(Event):
    """A chat goes by this name: the one event of the name's own stream, so that no two chats have it."""

    name: str
    stream: UUID


class MessagePosted(Event):
    """Somebody said something in a chat. Its number in the chat is its version in the stream.

    The text is sealed under the keys of the chat's home and of whoever wrote it (D24).
    """

    fact: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    message: UUID
    role: Literal["user", "persona"]
    author: str
    text: str
    tokens: int
    attempt: int = 1
    """Which attempt of its turn a persona's answer belongs to."""
    said_at: datetime | None = None
    """Where it was written before it came here; left out, the moment of recording counts."""
    ref: str | None = None
    """The caller's own id of it."""


class MessageEdited(Event):
    """A message was worded anew. Summaries that cover it are stale from here on (D17)."""

    fact: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    message: UUID
    author: str
    text: str
    tokens: int


class MessageDeleted(Event):
    """A message was taken out of its chat. Summaries that cover it are stale from here on (D17)."""

    fact: ClassVar[bool] = True

    chat: str
    message: UUID


class ChatForked(Event):
    """A chat goes on from a message of another one (D18): the first event of the new chat."""

    chat: str
    parent: str
    parent_stream: UUID
    upto: int
    """Number of the last message that is inherited."""
    at_version: int
    """The parent's version: later edits there do not reach the fork."""
    home_kind: Literal["server", "user", "chat"]
    home_key: str
    """Whose shard and key the fork shares with its parent."""
    personas: tuple[str, ...]
    platform: str = "api"
    server: str | None = None
    channel: str | None = None
    users: tuple[str, ...] = ()


# -- documents -----------------------------------------------------------------------------------------------------


class DocumentEvent(Event):
    """An event of a document says whose it is, and who added it: under both keys its texts are sealed (D24)."""

    document: UUID
    owner_kind: Literal["persona", "server"]
    owner: str
    user: str | None = None

    @property
    def persona(self) -> str:
        """The persona whose history tells of it; of a server's document none."""
        return self.owner if self.owner_kind == "persona" else ""


class DocumentAdded(DocumentEvent):
    """A document came onto the shelf of a persona or a server. Its passages stand in a stream of its own."""

    personal: ClassVar[tuple[str, ...]] = ("name", "digest")

    name: str
    digest: str
    """SHA-256 of its bytes: the same file again is no second document."""
    media_type: str
    bytes: int
    characters: int
    pages: int | None = None
    passages: int
    channels: tuple[str, ...] = ()


class PassagesAdded(DocumentEvent):
    """A part of a document's passages, in their order, sealed as one text: see `domain.documents.passages_of`."""

    personal: ClassVar[tuple[str, ...]] = ("body",)

    body: str


class DocumentRemoved(DocumentEvent):
    """A document was taken off its shelf: no reply finds it any more."""


class FoundPassage(BaseModel):
    """A passage that was sent with a reply."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    document: UUID
    n: int
    score: float
    similarity: float
    words: float


class DocumentsSearched(Event):
    """What of the documents in play was sent with a reply, best first (T17). Part of a chat's stream."""

    fact: ClassVar[bool] = True

    chat: str
    attempt: int
    persona: str
    passages: tuple[FoundPassage, ...] = ()


# -- summaries -----------------------------------------------------------------------------------------------------


class RuleSpan(BaseModel):
    """A rule or correction that a user gave: which part of which message says it, in code points (R6).

    Only the place is kept: its words are read from the message, so they are the user's own, and go when it goes.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    message: UUID
    n: int
    start: int
    end: int


class ChunkSummarised(Event):
    """Messages that left the window were summarised (R4): all that were there from number `first` to `last`.

    The text is sealed under the keys of the chat's home and of everybody who wrote these messages (D24).
    """

    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    summary: UUID
    text: str
    tokens: int
    first: int
    last: int
    messages: int
    authors: tuple[str, ...] = ()
    rules: tuple[RuleSpan, ...] = ()
    detail: Literal["key_events", "balanced", "detailed"] = "balanced"
    model: str = ""
    cost: float | None = None
    rebuild: UUID | None = None
    """The rebuild that it is part of; then it is not sent before that is complete (R7)."""


class SummariesMerged(Event):
    """Summaries that lie side by side became one of the next tier (R4). It covers what they covered."""

    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    summary: UUID
    tier: Literal["merged", "long_term"]
    sources: tuple[UUID, ...]
    text: str
    tokens: int
    first: int
    last: int
    messages: int
    authors: tuple[str, ...] = ()
    detail: Literal["key_events", "balanced", "detailed"] = "balanced"
    model: str = ""
    cost: float | None = None
    rebuild: UUID | None = None


class LongTermCondensed(Event):
    """A long-term summary over its size was made shorter (R6): the new one takes the place of its source."""

    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    summary: UUID
    source: UUID
    text: str
    tokens: int
    first: int
    last: int
    messages: int
    authors: tuple[str, ...] = ()
    detail: Literal["key_events", "balanced", "detailed"] = "balanced"
    model: str = ""
    cost: float | None = None
    rebuild: UUID | None = None


class SummaryEdited(Event):
    """A person worded a summary anew, or took away rules that the summary carries (R5, R6)."""

    personal: ClassVar[tuple[str, ...]] = ("text",)

    chat: str
    summary: UUID | None = None
    text: str = ""
    """Empty where only rules were taken away."""
    tokens: int = 0
    removed: tuple[RuleSpan, ...] = ()


class SummaryInvalidated(Event):
    """Summaries that are no longer valid for another reason than a change of their messages (D17)."""

    chat: str
    summaries: tuple[UUID, ...]
    reason: str


class RebuildStarted(Event):
    """All summaries up to a message are made anew, beside those that serve (R7). The same id again goes on with it."""

    chat: str
    rebuild: UUID
    upto: int
    detail: Literal["key_events", "balanced", "detailed"]
    messages: int = 0


class RebuildCompleted(Event):
    """The rebuilt summaries serve from here on."""

    chat: str
    rebuild: UUID


class RebuildFailed(Event):
    """A rebuild gave up; the old summaries go on serving, and it can be resumed or started over (R7)."""

    chat: str
    rebuild: UUID
    reason: str


class ReplyCosted(Event):
    """What a reply cost, as its caller reported it (R8)."""

    fact: ClassVar[bool] = True

    chat: str
    cost: float


class HighCostNoticed(Event):
    """A reply of this chat cost unusually much; said once in a chat (R8)."""

    chat: str
    cost: float
    median: float


# -- replies -------------------------------------------------------------------------------------------------------


class DeepChanged(BaseModel):
    """One change of a background pass: of which memory, and the messages that it rests on."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    list: UUID
    memory: UUID
    kind: Literal["saved", "updated", "deleted"]
    messages: tuple[UUID, ...] = ()


class DeepMemoryRead(Event):
    """Messages that left the live window were read once more, for what is worth keeping (R16)."""

    chat: str
    upto: int
    """Number of the last message that was read. None of those up to it is read again."""
    messages: int
    changes: tuple[DeepChanged, ...] = ()
    left_out: int = 0
    """Changes that the model wanted and a rule refused."""
    full: bool = False
    """A list was full, which ended the pass: it forgets nothing."""
    model: str | None = None
    cost: float | None = None


class Candidate(Match):
    """One of the best candidates of a search, matched or not: what `why` calls a near miss."""

    matched: bool = False


class ListSeen(BaseModel):
    """A list as one reply saw it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stream: UUID
    version: int
    """With the old attempt taken back: of a new attempt that has no `asked_at`, it is the version before that."""
    hidden: tuple[UUID, ...] = ()
    seen: tuple[UUID, ...] | None = None
    found_at: int | None = None
    """The version at which the search read what is not on the desk, where the list had moved on meanwhile."""


class ConversationSent(BaseModel):
    """Which messages a reply sent, without naming each: the chat was read at `version` of its stream; sent were all
    messages from number `window` on, and before it, from `raw` on, those that no summary covered (R2, D16).

    None: no message of before.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int
    window: int | None = None
    raw: int | None = None


class ReplySearched(Event):
    """One reply: who took part, what was in play, what the search found, what was sent (DESIGN 2)."""

    fact: ClassVar[bool] = True

    chat: str
    attempt: int
    persona: str
    users: tuple[str, ...]
    server: str | None = None
    channel: str | None = None
    tags: tuple[str, ...] = ()
    platform: str = "api"
    day: date
    lists: tuple[ListSeen, ...] = ()
    settings: Mapping[UUID, int] = {}
    """Versions of the settings streams that were read (tenant, persona, server, persons)."""
    policy: int = 0
    renderer: int = 1
    prefix: tuple[UUID, ...] = ()
    late: tuple[UUID, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    model: str | None = None
    threshold: float | None = None
    search: Literal["ok", "unavailable", "off"] = "ok"
    reason: str | None = None
    memory: bool = True
    """False in a challenge chat: no memory at all is read or written (R17)."""
    asked_at: datetime | None = None
    """The moment that the reply took for now, by which memories are recent; what was recorded may be later."""
    conversation: ConversationSent | None = None
    """What was sent of the chat; None where it was not recorded, or the chat has no memory (R17)."""


class TurnRegenerated(Event):
    """A turn was asked for again: what its earlier attempt did is taken back in the same append (D19)."""

    fact: ClassVar[bool] = True

    chat: str
    attempt: int


class ChatRewound(Event):
    """The turns after one were taken back, newest first (D14)."""

    fact: ClassVar[bool] = True

    chat: str
    to: str
    turns: tuple[str, ...]


EVENTS: dict[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        MemorySaved, MemoryEdited, MemoryDeleted, ListSearched, MemoriesMatched, MemoryAffirmed, MemoryPinned,
        MemoryUnpinned, MemoryEvicted, MemoryRestored, TurnRolledBack, MemoriesCleared, MemoryMoved, UseRecounted,
        SubjectErased, PersonaDefined, PersonaDeleted, PersonChanged, ServerChanged, TombstonePlaced, TombstonesLifted,
        PolicyChanged, ChatStarted, MessagePosted, MessageEdited, MessageDeleted, ChatForked, ReplySearched,
        TurnRegenerated, ChatRewound, DocumentAdded, PassagesAdded, DocumentRemoved, DocumentsSearched,
        ChunkSummarised, SummariesMerged, LongTermCondensed, SummaryEdited,
        SummaryInvalidated, RebuildStarted, RebuildCompleted, RebuildFailed, ReplyCosted, HighCostNoticed,
        DeepMemoryRead, ChatNamed,
    )
}  # fmt: skip
"""Every event by the name under which it is stored."""


def _of_unknown_list(erased: dict[str, Any]) -> dict[str, Any]:
    """`SubjectErased` 1 -> 2: which list it was is not known."""
    return erased | {"persona": "", "scope": None, "subject": None}


UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("SubjectErased", 1): _of_unknown_list,
}
"""(name, version) -> the same fact in the next version's form. Pure; tested against a stored sample of the old form."""
