"""The public face: one object, one method a verb.

with open_memory() as memory:
    memory.save("mira", scope="server", subject="guild-1", text="Juno's cat is named Mochi")
    answer = memory.reply("mira", message="how is Mochi?", users=["juno"], server="guild-1")
    prompt = answer.prefix.text + "…" + answer.late.text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from uuid import UUID

from remembrancer.domain.events import Actor, Source
from remembrancer.domain.identity import check_key
from remembrancer.domain.persona_memory import KEEP, Keep
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import (
    ArchiveHit,
    Calibration,
    ChangeAnswer,
    ClearAnswer,
    DoctorReport,
    EraseAnswer,
    HistoryAnswer,
    ImportAnswer,
    ListAnswer,
    MemoryView,
    ModelChange,
    PersonaDeleted,
    PersonaView,
    PersonView,
    Position,
    ReplyAnswer,
    SaveAnswer,
    ServerView,
    UndoAnswer,
)
from remembrancer.services.answers_chat import ChatImportAnswer, ChatView, MessagesAnswer, PostAnswer, ToolAnswer
from remembrancer.services.answers_documents import (
    AddDocumentAnswer,
    DocumentAnswer,
    DocumentsAnswer,
    RemoveDocumentAnswer,
)
from remembrancer.services.answers_drafts import DraftsAnswer, DraftView, SavedFromChat
from remembrancer.services.answers_moment import DiffAnswer, MomentAnswer
from remembrancer.services.answers_rebuild import Comparison, RebuildAnswer, RebuildStatus
from remembrancer.services.answers_summary import (
    CostAnswer,
    RebuildEstimate,
    SummariesRun,
    SummaryAnswer,
    SummaryChange,
    SummaryRebuild,
)
from remembrancer.services.answers_talk import TalkAnswer, ToolUse
from remembrancer.services.answers_what_if import WhatIfAnswer
from remembrancer.services.answers_why import WhyAnswer
from remembrancer.services.checks import checked_actor, checked_date, checked_flag, checked_number, checked_turn
from remembrancer.services.engine import Engine
from remembrancer.services.finder import as_uuid
from remembrancer.services.remember import names
from remembrancer.services.when import checked_when

Progress = Callable[[int, int | None], None]
"""Called with what is done and, where it is known, what there is to do."""


class Remembrancer:
    """A tenant's memories. Made by `open_memory`; a context manager; safe to share between threads.

    Every verb that writes takes `request_id`: the same id again returns the first answer and writes nothing (D19).
    Every verb raises `RemembrancerError`s only; a refused one leaves nothing behind.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the projections finish and give everything back; an embedded database stops with its last user."""
        self._engine.close()

    @property
    def engine(self) -> Engine:
        """The parts behind this face, for tests, benchmarks and operators."""
        return self._engine

    # -- one list --------------------------------------------------------------------------------------------------

    def save(
        self,
        persona: str | None,
        *,
        scope: str,
        subject: str,
        text: str,
        actor: Actor = "person",
        turn: str | None = None,
        until: date | str | None = None,
        tags: Sequence[str] = (),
        channels: Sequence[str] = (),
        make_room: UUID | str | None = None,
        source_chat: str | None = None,
        source_messages: Sequence[str] = (),
        request_id: str | None = None,
    ) -> SaveAnswer:
        """Save one memory.

        Args:
            persona: the persona's key; ignored for a global memory.
            scope: ``server`` (this persona, one server), ``personal`` (this persona, one user) or ``global`` (every
                persona, one user). Never changed later.
            subject: the server's or the user's key.
            text: one sentence or a few, at most `max_characters` code points, kept as sent (D10).
            actor: ``persona`` for the model in a reply, ``person`` for a panel or command (T13, R13).
            turn: the turn in which the persona saves.
            until: the UTC date until which it is true (D28).
            tags: only in replies that carry one of them; channels: only there (T10).
            make_room: the id of the memory that a person agrees to forget in a full list (D7).
            source_chat, source_messages: where it was learned (D21).

        Returns:
            Status ``saved``, or ``duplicate`` with the memory that says the same (D12); what was forgotten (T12);
            warnings (T16, D12); notices with their audience (T15).

        Raises:
            InvalidInput, TextTooLong (D10), ListFull (T14, D7, D29), Tombstoned (D13), NotAllowed (R13, R17, T10).
        """
        return self._engine.remember.save(
            persona,
            scope=scope,
            subject=subject,
            text=text,
            actor=checked_actor(actor),
            turn=checked_turn(turn),
            until=checked_date(until),
            tags=tags,
            channels=channels,
            make_room=None if make_room is None else as_uuid(make_room),
            source=Source(
                chat=None if source_chat is None else check_key("chat", source_chat),
                messages=names("message", source_messages, in_order=True),
            ),
            request_id=request_id,
        )

    def edit(
        self,
        memory: UUID | str,
        *,
        text: str | Keep = KEEP,
        until: date | str | Keep | None = KEEP,
        tags: Sequence[str] | Keep = KEEP,
        channels: Sequence[str] | Keep = KEEP,
        actor: Actor = "person",
        turn: str | None = None,
        request_id: str | None = None,
    ) -> ChangeAnswer:
        """Edit a memory; what is left out stays. Counts as use; by a person it protects, even unchanged (D11, T13).

        Raises:
            NotFound, IsPinned (R15), SameAsAnother (D12), Tombstoned (D13), InvalidInput, TextTooLong (D10).
        """
        return self._engine.remember.edit(
            as_uuid(memory),
            text=text,
            until=until if isinstance(until, Keep) else checked_date(until),
            tags=tags,
            channels=channels,
            actor=checked_actor(actor),
            turn=checked_turn(turn),
            request_id=request_id,
        )

    def delete(
        self, memory: UUID | str, *, actor: Actor = "person", turn: str | None = None, request_id: str | None = None
    ) -> ChangeAnswer:
        """Delete a memory. What a person deletes is not learned again by the persona (D13).

        Raises:
            NotFound; IsPinned: the persona would delete a pinned one (R15).
        """
        return self._engine.remember.delete(
            as_uuid(memory), actor=checked_actor(actor), turn=checked_turn(turn), request_id=request_id
        )

    def pin(
        self, memory: UUID | str, *, actor: Actor = "person", turn: str | None = None, request_id: str | None = None
    ) -> ChangeAnswer:
        """Pin a memory: sent whole with every reply, out of reach of the AI (R15).

        Raises:
            NotFound, NotAllowed, PinsFull (D9).
        """
        return self._engine.remember.pin(
            as_uuid(memory), actor=checked_actor(actor), turn=checked_turn(turn), request_id=request_id
        )

    def unpin(
        self,
        memory: UUID | str,
        *,
        make_room: UUID | str | None = None,
        actor: Actor = "person",
        turn: str | None = None,
        request_id: str | None = None,
    ) -> ChangeAnswer:
        """Unpin a memory: its counter starts at 0 (D3); into a full list it needs room, like a save (D7).

        Raises:
            NotFound, NotAllowed, ListFull.
        """
        return self._engine.remember.unpin(
            as_uuid(memory),
            make_room=None if make_room is None else as_uuid(make_room),
            actor=checked_actor(actor),
            turn=checked_turn(turn),
            request_id=request_id,
        )

    def clear(
        self,
        persona: str | None,
        *,
        scope: str,
        subject: str,
        pinned: bool = False,
        actor: Actor = "person",
        request_id: str | None = None,
    ) -> ClearAnswer:
        """Clear a list for good: every unpinned memory; in a second call with `pinned`, the pinned ones (R18).

        Raises:
            NotAllowed; Refused: the second step before the first.
        """
        return self._engine.remember.clear(
            persona,
            scope=scope,
            subject=subject,
            pinned=checked_flag("pinned", pinned),
            actor=checked_actor(actor),
            request_id=request_id,
        )

    def get(self, memory: UUID | str) -> MemoryView:
        """One memory.

        Raises:
            NotFound: there never was one, it is gone, or it is another tenant's.
        """
        return self._engine.reading.get(as_uuid(memory))

    def list(
        self,
        persona: str | None = None,
        *,
        scope: str | None = None,
        subject: str | None = None,
        state: str | None = None,
    ) -> ListAnswer:
        """Lists with their memories: of one persona (with its people's global ones), or of the tenant if None.

        Args:
            scope, subject: both: one list, which may be empty; one: a filter.
            state: ``active``, ``resting`` or ``expired``.

        Raises:
            NotFound: a persona that never was; names near ones (D31).
        """
        return self._engine.reading.list(persona, scope=scope, subject=subject, state=state)

    # -- a reply ---------------------------------------------------------------------------------------------------

    def reply(
        self,
        persona: str,
        *,
        message: str,
        users: Sequence[str] = (),
        server: str | None = None,
        channel: str | None = None,
        tags: Sequence[str] = (),
        chat: str | None = None,
        platform: Literal["web", "discord", "telegram", "api"] | None = None,
        turn: str | None = None,
        memory: Literal["on", "off"] = "on",
        model_context: int | None = None,
        request_id: str | None = None,
    ) -> ReplyAnswer:
        """Search and desk of one reply: what to put at the beginning of a prompt, and what near its end.

        Args:
            message: the newest message, which is searched with. Without text nothing is searched (D30).
            users: who takes part: the author answered, and who wrote in this chat on the same UTC day (D27).
            server, channel: where; chat: left out, the one of this persona there or with its one user (D26).
            tags: which tagged memories this reply may use (T10).
            turn: an id of the caller's; left out, one is made.
            memory: ``off`` for a challenge or private chat: no memory at all (R17), and nothing of it is kept.
            model_context: tokens that the chat model reads; left out, the policy's.

        Returns:
            `messages`: the chat's live window and what no summary covers, oldest first, the newest one last (R2, D16);
            `prefix`: the same bytes from reply to reply until a list changes (T17); `late`: what was recalled (T6);
            `search`: ``ok``, ``unavailable`` (the model failed: nothing ticks, T8) or ``off``.

        Raises:
            InvalidInput. A model, Redis or projector that is away degrades the reply and never fails it.
        """
        return self._engine.recall.reply(
            persona,
            message=message,
            users=users,
            server=server,
            channel=channel,
            tags=tags,
            chat=chat,
            platform=platform,
            turn=turn,
            memory=memory,
            model_context=model_context,
            request_id=request_id,
        )

    @staticmethod
    def tools() -> Sequence[dict[str, Any]]:
        """What a model can do about memories in mid-reply, for `tools=` of a chat-completions request (R13a):
        ``remember``, ``update_memory``, ``forget_memory``."""
        from remembrancer.services.tools import tool_schemas

        return tool_schemas()

    def run_tool(
        self,
        persona: str,
        reply: ReplyAnswer,
        name: str,
        arguments: str | Mapping[str, Any],
        *,
        request_id: str | None = None,
    ) -> ToolAnswer:
        """Do what a model called, as the persona, in the turn of this reply (R13a, D21).

        Args:
            reply: the reply in whose making the model called: it says what number 3 is.
            name, arguments: as the call has them; arguments are JSON or values.

        Returns:
            What to tell the model, also where a rule says no or the call makes no sense: `ok` is false then.

        Raises:
            NotFound: a reply that was never given here.
        """
        return self._engine.tools.run(persona, reply, name, arguments, request_id=request_id)

    def talk(
        self,
        persona: str,
        *,
        message: str,
        users: Sequence[str] = (),
        server: str | None = None,
        channel: str | None = None,
        tags: Sequence[str] = (),
        chat: str | None = None,
        platform: Literal["web", "discord", "telegram", "api"] | None = None,
        turn: str | None = None,
        model_context: int | None = None,
        note: str | None = None,
        tools: bool = True,
        watch: Callable[[ReplyAnswer | ToolUse], None] | None = None,
        request_id: str | None = None,
    ) -> TalkAnswer:
        """A whole turn with the configured chat model: `reply`, the model, what it does to memories (R13a), its cost
        (R8), and its answer put into the chat. The same turn again is a new attempt, as for `reply` (D19).

        Args:
            message … model_context: as for `reply`, but that a message without text has no answer.
            note: what else the model should know for this answer, such as who is who; put before the newest message,
                and not kept.
            tools: whether the model may save, update and forget. One whose endpoint refuses tools goes without (R17).
            watch: called with the reply as soon as it is there, then with each thing that the model did to memories.

        Returns:
            What it said and did, and the notices with whom they are for (T15); none of these is ever in a prompt.

        Raises:
            NotAllowed: no chat model is configured.
            ModelFailed: it gave no answer in time. The message is in the chat, and what its tools did until then stays:
                the same turn again takes that back, and asks again.
            Refused: the turn was asked for again while the model was thinking (D19).
        """
        asked = {
            "users": users, "server": server, "channel": channel, "tags": tags, "chat": chat, "platform": platform,
            "turn": turn, "model_context": model_context,
        }  # fmt: skip
        return self._engine.talking.talk(
            persona, message=message, asked=asked, note=note, tools=checked_flag("tools", tools), watch=watch,
            request_id=request_id,
        )  # fmt: skip

    # -- what is said ----------------------------------------------------------------------------------------------

    def post(
        self,
        chat: str,
        text: str,
        *,
        author: str,
        role: Literal["user", "persona"] = "user",
        turn: str | None = None,
        said_at: datetime | None = None,
        ref: str | None = None,
        attempt: int | None = None,
        request_id: str | None = None,
    ) -> PostAnswer:
        """Put a message into a chat: the answer of a persona (`role="persona"`, its turn), or what was said otherwise.

        The message that `reply` was asked with is in the chat by that.

        Args:
            author: the key of the persona or user who wrote it.
            turn: of an answer, the turn that it belongs to: a new attempt of that turn takes it back (D19).
            said_at: when it was written, aware; left out, now. ref: your own id of it.
            attempt: which attempt of the turn an answer is for, as its reply said; left out, the newest.

        Raises:
            NotFound: a chat that never was; names near ones (D31).
            NotAllowed: the answer of an attempt that has been replaced (D19).
            InvalidInput: an empty message, or no text at all.
        """
        return self._engine.chats.post(
            chat, text=text, author=author, role=role, turn=turn, said_at=said_at, ref=ref, attempt=attempt,
            request_id=request_id,
        )  # fmt: skip

    def edit_message(
        self, message: UUID | str, text: str, *, chat: str | None = None, request_id: str | None = None
    ) -> PostAnswer:
        """Word a message anew; a summary that covers it is made again (D17).

        Args:
            chat: which chat's, where a fork inherited it; left out, the one in which it was said.

        Raises:
            NotFound: a message that never was, or is gone.
        """
        return self._engine.chats.edit(as_uuid(message, "message"), text=text, chat=chat, request_id=request_id)

    def delete_message(
        self, message: UUID | str, *, chat: str | None = None, request_id: str | None = None
    ) -> PostAnswer:
        """Take a message out of its chat; a summary that covers it is made again (D17).

        Raises:
            NotFound: a message that never was, or is gone.
        """
        return self._engine.chats.delete(as_uuid(message, "message"), chat=chat, request_id=request_id)

    def open_chat(
        self,
        chat: str,
        *,
        personas: Sequence[str],
        users: Sequence[str] = (),
        server: str | None = None,
        channel: str | None = None,
        platform: Literal["web", "discord", "telegram", "api"] = "web",
        request_id: str | None = None,
    ) -> ChatView:
        """Open a chat before anybody speaks. With several personas it is a group: whichever of them speaks reads what
        all of them remember of those who take part (R11), and only its own lists age (D4).

        A chat of one persona needs no opening: it comes into being with its first reply (D31).

        Args:
            personas: who talks in it, at most 20; users: who is expected: each reply says who takes part (D27).

        Raises:
            NotAllowed: there is a chat of that name (D26).
            InvalidInput: no persona, too many, or a name that is none.
        """
        return self._engine.opening.open(
            chat, personas=personas, users=users, server=server, channel=channel, platform=platform,
            request_id=request_id,
        )  # fmt: skip

    def fork(self, chat: str, to: str, *, message: UUID | str | None = None, request_id: str | None = None) -> ChatView:
        """Go on from a message as another chat: it inherits what was said so far, and shares the memories (D18, R10).

        Args:
            to: the name of the new chat; message: the last one that is inherited, left out the newest.

        Raises:
            NotFound: no such chat, or no such message in it.
            NotAllowed: there is a chat of that name.
        """
        return self._engine.chats.fork(
            chat, to=to, message=None if message is None else as_uuid(message, "message"), request_id=request_id
        )

    def generate(
        self,
        persona: str | None = None,
        *,
        scope: Literal["server", "personal", "global"],
        subject: str,
        description: str,
    ) -> DraftsAnswer:
        """Have the chat model draft memories from what a person writes (R13c): at most 5, to be reviewed.

        Nothing is saved, and nothing is kept of the drafts. Those that a person agrees to are saved with `save`.

        Args:
            persona: whose memory; not needed for ``global``. description: at most 1,000 characters.

        Raises:
            Unavailable: no chat model is configured, or it gives no answer.
            TextTooLong: a longer description.
        """
        return self._engine.drafting.generate(persona, scope=scope, subject=subject, description=description)

    def draft_from_chat(
        self,
        chat: str,
        messages: Sequence[UUID | str],
        *,
        persona: str | None = None,
        scope: Literal["server", "personal", "global"] = "personal",
        subject: str | None = None,
    ) -> DraftsAnswer:
        """Have the chat model draft memories from chosen messages of a chat (R13d): at most 5, of at most 20 messages.

        Nothing is saved. Those that a person agrees to, reworded or not, go to `save_from_chat` as `drafts`.

        Args:
            persona, subject: whose memory; left out, the chat's one persona, and its one user or its server.

        Raises:
            NotFound: no such chat, or no such message in it.
            Unavailable: no chat model is configured, or it gives no answer.
        """
        return self._engine.drafting.from_chat(chat, messages, persona=persona, scope=scope, subject=subject)

    def save_from_chat(
        self,
        chat: str,
        messages: Sequence[UUID | str],
        *,
        drafts: Sequence[DraftView | Mapping[str, Any]] | None = None,
        persona: str | None = None,
        scope: Literal["server", "personal", "global"] = "personal",
        subject: str | None = None,
        request_id: str | None = None,
    ) -> SavedFromChat:
        """Save chosen messages of a chat as they are, one memory each, or reviewed drafts (R13d). All arrive pinned, or
        none. What is remembered already is pinned instead of doubled (D12).

        Args:
            drafts: each with `text`, and `until` and `messages` where it has them; left out, the messages themselves.
            persona, subject: as for `draft_from_chat`.

        Raises:
            PinsFull: not all find room among the pinned ones; says how many do, and what is pinned (D9).
            TextTooLong: a message or a draft is too long for a memory; which one is said (D10).
            NotFound: no such chat, or no such message in it.
        """
        return self._engine.drafting.save(
            chat, messages, drafts=drafts, persona=persona, scope=scope, subject=subject, request_id=request_id
        )

    def import_chat(
        self,
        text: str,
        *,
        chat: str,
        persona: str,
        user: str,
        server: str | None = None,
        platform: Literal["web", "discord", "telegram", "api"] | None = None,
        request_id: str | None = None,
        progress: Progress | None = None,
    ) -> ChatImportAnswer:
        """Bring in a chat of another program: SillyTavern's JSON lines (of swipes the chosen one counts) or plain JSON.

        The same file again brings nothing. A later state of the same chat brings what is new there, at the end, and
        edits what was worded anew there, another swipe of the greeting included. What was edited or deleted here stays
        as it is here, and what was deleted or hidden there stays here, too.

        Args:
            text: what the file holds; chat: the name of the chat here, which may go on already.
            persona, user: whose the messages of the first character and of the user are; others keep their names.
            server, platform: of a new chat; left out, in private and web. Of one that is there, what it has.

        Raises:
            InvalidInput: no such file, or no message in it; says where it is at fault, and nothing was written.
            NotAllowed: the chat that is there is another persona's, in another server or on another platform.
        """
        return self._engine.chat_import.run(
            text, chat=chat, persona=persona, user=user, server=server, platform=platform, request_id=request_id,
            progress=progress,
        )  # fmt: skip

    def chat(self, chat: str) -> ChatView:
        """Who talks in a chat and how much was said, with how many messages are in no summary yet (R5).

        Raises:
            NotFound: a chat that never was; names near ones (D31).
        """
        return self._engine.chats.view(chat)

    def messages(self, chat: str, *, limit: int = 50, before: int | None = None) -> MessagesAnswer:
        """The newest messages of a chat, oldest first.

        Args:
            limit: 1 to 1000; before: `before` of the page after.

        Raises:
            NotFound: a chat that never was; names near ones (D31).
        """
        return self._engine.chats.messages(chat, limit=limit, before=before)

    # -- documents -------------------------------------------------------------------------------------------------

    def add_document(
        self,
        document: str | Path | bytes,
        *,
        persona: str | None = None,
        server: str | None = None,
        name: str | None = None,
        channels: Sequence[str] = (),
        user: str | None = None,
        request_id: str | None = None,
        progress: Progress | None = None,
    ) -> AddDocumentAnswer:
        """Add a document that replies of a persona, or in a server, look things up in (T17, R19): all of it or nothing.

        Args:
            document: path of a UTF-8 text (.txt), markdown (.md) or PDF, or its bytes, at most `document_bytes`.
            persona, server: whose it is: one of the two.
            name: under which people and prompts know it; left out, the file's.
            channels: only in replies there (T10); left out, everywhere.
            user: who added it: then it is erased with them (D24).
            progress: called with how many passages are embedded, and of how many.

        Returns:
            Status ``added``, or ``duplicate`` with the document of the same bytes. What the model did not embed now is
            `passages` less `searchable`, and is made up for in the background (D22).

        Raises:
            InvalidInput: not readable, empty, no such kind of file, not UTF-8, a PDF that is encrypted, broken, a scan,
                or too much work.
            DocumentTooLarge: more bytes, pages, characters or passages than the policy allows; ShelfFull: with the
                others there.
        """
        return self._engine.documents.add(
            document, persona=persona, server=server, name=name, channels=channels, user=user, request_id=request_id,
            progress=progress,
        )  # fmt: skip

    def documents(self, *, persona: str | None = None, server: str | None = None) -> DocumentsAnswer:
        """The documents of a persona or of a server, oldest first; of all where none is named.

        Raises:
            NotFound: a persona that never was; names near ones (D31).
        """
        return self._engine.documents.listed(persona=persona, server=server)

    def document(self, document: UUID | str, *, limit: int = 50, after: int = 0) -> DocumentAnswer:
        """A document and its passages, in their order.

        Args:
            limit: 1 to 1000; after: `next` of the page before.

        Raises:
            NotFound: a document that never was, or is gone.
        """
        return self._engine.documents.show(as_uuid(document, "document"), limit=limit, after=after)

    def remove_document(self, document: UUID | str, *, request_id: str | None = None) -> RemoveDocumentAnswer:
        """Take a document away: no reply finds it any more.

        Raises:
            NotFound: a document that never was, or is gone.
        """
        return self._engine.documents.remove(as_uuid(document, "document"), request_id=request_id)

    # -- summaries -------------------------------------------------------------------------------------------------

    def summary(self, chat: str) -> SummaryAnswer:
        """The whole summary of a chat as it is sent with every message (R5): its parts, the users' rules word for word,
        how many messages are in none yet and why, and the newest rebuild.

        Raises:
            NotFound: a chat that never was; names near ones (D31).
        """
        return self._engine.summaries.show(chat)

    def edit_summary(
        self, chat: str, summary: UUID | str, text: str, *, request_id: str | None = None
    ) -> SummaryChange:
        """Word one of the summaries anew, as a person. It is sent like that from the next reply on (R5).

        Args:
            summary: an id of `summary`. text: of a long-term summary with its headings, each line after a dash.

        Raises:
            NotFound: no summary that is in use (D31); NotAllowed: a rebuild is under way (R7); InvalidInput: no text.
        """
        return self._engine.summaries.edit(chat, as_uuid(summary, "summary"), text=text, request_id=request_id)

    def remove_rule(self, chat: str, rule: str, *, request_id: str | None = None) -> SummaryChange:
        """Take a rule or correction of a user out of the summary, for good (R6). Its message stays.

        Args:
            rule: an id of `summary`.

        Raises:
            NotFound: no such rule in this chat (D31).
        """
        return self._engine.summaries.remove_rule(chat, rule, request_id=request_id)

    def estimate_rebuild(
        self, chat: str, *, detail: Literal["key_events", "balanced", "detailed"] | None = None
    ) -> RebuildEstimate:
        """What a rebuild would take: messages, questions, tokens and, where a price is known, its cost (R7).

        Args:
            detail: as if the chat had this level; left out, its own. `extra_tokens` compares the two for each reply.

        Raises:
            NotFound: a chat that never was; names near ones (D31).
        """
        return self._engine.summaries.estimate(chat, detail)

    def rebuild_summary(
        self, chat: str, *, replace_edited: bool = False, resume: bool = False, request_id: str | None = None
    ) -> SummaryRebuild:
        """Make all summaries of a chat anew at its present level, in the background (R7).

        It survives a restart. Until it is complete the old summaries serve and new messages wait; then the new ones
        take their place at once. `RebuildCompleted` or `RebuildFailed` in the chat, and `summary`, say how it ended.

        Args:
            replace_edited: a person agrees that summaries worded by a person are replaced (D17).
            resume: go on with the one that failed; left out, start over.

        Raises:
            NotFound: a chat that never was (D31).
            NotAllowed: one is under way, none failed, nothing is old enough (D15), or no model is configured.
        """
        return self._engine.summaries.rebuild(
            chat,
            replace_edited=checked_flag("replace_edited", replace_edited),
            resume=checked_flag("resume", resume),
            request_id=request_id,
        )

    def run_summaries(self, *, progress: Progress | None = None) -> SummariesRun:
        """Summarise now what is due in all chats of this tenant, and read deeply what waits for that (R4, R16).

        A process that stays open does it by itself in the background; this is for jobs and commands that come and go.
        What another process is at is left to it, and what failed waits for its next try (D16).

        Args:
            progress: told after each run how many were done.

        Raises:
            NotAllowed: no chat model is configured.
        """
        return self._engine.compactor.run_due(self._engine.runner, progress)

    def report_cost(
        self,
        turn: str,
        *,
        cost: float | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        request_id: str | None = None,
    ) -> CostAnswer:
        """Say what a reply cost, so that an unusual one is noticed: over three times the median of its chat's last
        twenty, from the sixth on, once a chat (R8).

        Args:
            cost: in any unit, always the same; or the tokens, counted by the price table where it has the model.

        Raises:
            NotFound: a turn that never was. InvalidInput: no cost.
        """
        return self._engine.summaries.report_cost(
            turn, cost=cost, input_tokens=input_tokens, output_tokens=output_tokens, request_id=request_id
        )

    # -- taking back ------------------------------------------------------------------------------------------

    def undo_turn(self, turn: str, *, request_id: str | None = None) -> UndoAnswer:
        """Take back what the persona and the search did in a turn, in all lists or in none (D14).

        Saves go; edits, deletes and evictions come back as they were; matches are taken back. What a person did stays,
        and so do pinned memories and what a later turn changed again: `kept` names them with the reason. Twice is once.

        Raises:
            NotFound: a turn that never was.
        """
        return self._engine.undo.undo_turn(turn, request_id=request_id)

    def rewind(self, turn: str, *, request_id: str | None = None) -> UndoAnswer:
        """Take back all turns after this one in its chat, newest first, in one append (D14).

        Raises:
            NotFound: a turn that never was.
        """
        return self._engine.undo.rewind(turn, request_id=request_id)

    def restore(self, memory: UUID | str, *, request_id: str | None = None) -> ChangeAnswer:
        """Bring back an evicted or deleted memory: its counter is 0 and it is protected (U2). No cap binds (D8).

        Raises:
            NotFound: it never was, was undone, or was cleared (R18); SameAsAnother: the list says the same by now.
        """
        return self._engine.undo.restore(as_uuid(memory), request_id=request_id)

    # -- looking back ----------------------------------------------------------------------------------------------

    def history(
        self,
        *,
        persona: str | None = None,
        scope: str | None = None,
        subject: str | None = None,
        memory: UUID | str | None = None,
        document: UUID | str | None = None,
        turn: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kinds: Sequence[str] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> HistoryAnswer:
        """What happened to a persona, a list, a memory, a document or in a turn, in plain sentences, oldest first (U1).

        Args:
            since, until: aware moments; until is exclusive.
            kinds: only these kinds of events, by their names: ``["MemorySaved", "MemoryEvicted"]``.
            limit: 1 to 1000 lines; after: `next` of the page before.

        Raises:
            NotFound: a persona, memory, document or turn that never was (D31).
        """
        of_document = None if document is None else as_uuid(document, "document")
        if of_document is not None:
            self._engine.documents.require(of_document)
        return self._engine.reading.history(
            persona=persona,
            scope=scope,
            subject=subject,
            memory=None if memory is None else as_uuid(memory),
            document=of_document,
            turn=turn,
            since=since,
            until=until,
            kinds=kinds,
            limit=limit,
            after=after,
        )

    def why(self, q: UUID | str, *, persona: str | None = None, limit: int = 10) -> WhyAnswer:
        """Why a memory is, or is not, in a persona's mind: its life from its events, a verdict, and the command that
        brings it back (U1). Nothing is written.

        Args:
            q: the id of a memory of now or of before; or what somebody remembers of it, in any language. Then it is
                found among all texts that ever were memories, by likeness and words; without a model that answers, by
                words alone, and `note` says so.
            persona: only memories of this persona, and global ones.
            limit: 1 to 1000: so many of the latest matches and of the closest near misses. `searches` counts them all.

        Returns:
            The life of the best one; `nearest` names others that the text might have meant. What was erased reads
            ``[erased]`` (D24).

        Raises:
            NotFound: no such id, or no text that was ever like it; near ones are named (C23, D31).
            InvalidInput: an empty text, or one of more than 2000 code points.
        """
        return self._engine.biographer.why(q, persona=persona, limit=limit)

    def find(self, q: str, *, limit: int = 10) -> Sequence[ArchiveHit]:
        """Texts that are or ever were memories, of all personas of the tenant, nearest first (for operators)."""
        return self._engine.reading.find(q, limit=limit)

    def at(
        self,
        *,
        turn: str | None = None,
        attempt: int | None = None,
        time: datetime | date | str | None = None,
        position: Position | str | None = None,
        persona: str | None = None,
        users: Sequence[str] = (),
        server: str | None = None,
        channel: str | None = None,
        tags: Sequence[str] = (),
    ) -> MomentAnswer:
        """A past moment: lists, desk and prompt as they were, under the policy and settings of then (U1).

        From the events alone: whatever was edited, deleted, undone, cleared, restored, rebuilt or set since.

        Args:
            turn: the reply of this turn; attempt: which one, left out the last. `prefix` and `late` are what was sent,
                byte for byte.
            time: an aware moment, a date (its beginning, UTC), or ISO text (UTC where it names no zone).
            position: a `Position`, or ``"shard:position"``: the reply recorded there, or the moment after that event.
            persona: whose lists: of a time, and of a position where its event does not say.
            users, server, channel, tags: of a time or position, who takes part and where: then only the lists in play
                there, and `prefix` is what a reply would have had. Left out: all lists of the persona, no prompt.

        Returns:
            `exact` is False, and `notes` say why, where somebody was erased since: those texts read ``[erased]``, so
            that neither bytes nor fingerprint can be those of then (D24).

        Raises:
            NotFound: a turn, attempt, position or persona that never was, or is another tenant's (D31, C23);
            InvalidInput: none or several of turn, time and position; a time to come; a persona missing.
        """
        given = {"turn": turn, "attempt": attempt, "time": time, "position": position, "persona": persona,
                 "users": users, "server": server, "channel": channel, "tags": tags}  # fmt: skip
        return self._engine.at.at(checked_when(given))

    def diff(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> DiffAnswer:
        """What differs from one past moment to another: memories, settings, policy, prompt (U1).

        Args:
            a, b: fields of `at`, as in ``{"turn": "t1", "attempt": 1}`` or ``{"time": "2026-05-03"}``. A time without
                persona and place is looked at where the other moment was.

        Returns:
            `added`, `removed` and `changed` memories, each with what happened to it last in between.

        Raises:
            NotFound, InvalidInput: as for `at`.
        """
        return self._engine.diff.diff(checked_when(a), checked_when(b))

    # -- settings --------------------------------------------------------------------------------------------------

    def persona(self, persona: str) -> PersonaView:
        """A persona's settings.

        Raises:
            NotFound: a persona that never was; names near ones (D31).
        """
        self._engine.reading.require_persona(persona)
        return self._engine.configure.persona(persona)

    def set_persona(
        self,
        persona: str,
        *,
        name: str | Keep = KEEP,
        instructions: str | Keep = KEEP,
        learns: bool | Keep = KEEP,
        detail: str | Keep | None = KEEP,
        request_id: str | None = None,
    ) -> PersonaView:
        """Name, standing instructions (always sent, T16), learn switch (R17) and memory detail of a persona, where its
        people chose none: ``key_events``, ``balanced`` or ``detailed`` (R3). `switched` of the answer says what another
        one takes of each reply (R7)."""
        changes = {"name": name, "instructions": instructions, "learns": learns, "detail": detail}
        return self._engine.configure.set_persona(persona, changes, request_id)

    def delete_persona(
        self, persona: str, *, request_id: str | None = None, progress: Progress | None = None
    ) -> PersonaDeleted:
        """Delete a persona: it talks no more, and what it knew of people becomes global, as it is (R11).

        Its server memories stay with its key and are there again when `set_persona` brings it back (D25).

        Raises:
            NotFound: a persona that never was; names near ones (D31).
            NotAllowed: it is deleted already.
        """
        return self._engine.personas.delete(persona, request_id=request_id, progress=progress)

    def person(self, user: str) -> PersonView:
        """A person's settings."""
        return self._engine.configure.person(user)

    def set_person(
        self,
        user: str,
        *,
        privacy: str | Keep = KEEP,
        not_learning: Sequence[str] | Keep = KEEP,
        details: Mapping[str, str] | Keep = KEEP,
        deep_memory: bool | Keep = KEEP,
        request_id: str | None = None,
    ) -> PersonView:
        """A person's privacy (``everywhere``, ``private_chats_only``, ``nowhere``: T10), the personas that do not learn
        from them (R17), the memory detail of their chats by persona (R3), and whether a background pass reads what
        leaves the live window of their web chats (R16). `switched` of the answer says what another detail takes of each
        reply (R7)."""
        changes = {
            "privacy": privacy, "not_learning": not_learning, "details": details, "deep_memory": deep_memory,
        }  # fmt: skip
        return self._engine.configure.set_person(user, changes, request_id)

    def server(self, server: str) -> ServerView:
        """A server's settings."""
        return self._engine.configure.server(server)

    def set_server(
        self,
        server: str,
        *,
        notices: str | Keep = KEEP,
        blocklist: Sequence[str] | Keep = KEEP,
        personal_memories: bool | Keep = KEEP,
        private: bool | Keep = KEEP,
        not_learning: Sequence[str] | Keep = KEEP,
        request_id: str | None = None,
    ) -> ServerView:
        """A server's notice visibility (``everyone``, ``managers``, ``hidden``: T15), blocklist, switch for personal
        memories (T10), whether it is a direct-message pair, and the personas that do not learn there (R17)."""
        changes = {
            "notices": notices, "blocklist": blocklist, "personal_memories": personal_memories, "private": private,
            "not_learning": not_learning,
        }  # fmt: skip
        return self._engine.configure.set_server(server, changes, request_id)

    def policy(self) -> Policy:
        """The effective policy: the tenant's recorded setting, then keyword, environment, file (SPEC 6)."""
        return self._engine.configure.policy()

    def set_policy(self, *, request_id: str | None = None, **fields: Any) -> Policy:
        """Record the tenant's own numbers (fields of `Policy`); None takes one back."""
        return self._engine.configure.set_policy(fields, request_id)

    def erase(
        self, user: str, *, names: Sequence[str] = (), compact: bool = False, request_id: str | None = None
    ) -> EraseAnswer:
        """Make everything of a person unreadable, for good (D24): every list of theirs, with what was deleted and
        forgotten, in events, tables and caches, before this returns. A later save of theirs starts anew.

        Args:
            names: what else they are called, to find memories of servers that name them.
            compact: also rewrite the tables, so that the database's files hold no byte of it (docs/erasing.md). Replies
                wait meanwhile.

        Returns:
            How much was erased, and the memories of servers that name the person: these stay, for a person to decide.

        Raises:
            NotFound: nothing was ever theirs (D31).
        """
        return self._engine.erasure.erase(
            user, names=names, compact=checked_flag("compact", compact), request_id=request_id
        )

    def what_if(
        self,
        *,
        persona: str | None = None,
        scope: str | None = None,
        subject: str | None = None,
        rest_after_days: int | None = None,
        match_limit: int | None = None,
        match_threshold: float | None = None,
        list_capacity: int | None = None,
        desk_limit: int | None = None,
        pin_capacity: int | None = None,
        apply: bool = False,
        request_id: str | None = None,
        progress: Progress | None = None,
    ) -> WhatIfAnswer:
        """The same history under other numbers: what would be active, resting, forgotten (U3).

        Nothing is written without `apply`. Numbers that are left out stay as they were on each day; one that equals
        today's policy matters for the days on which another one was in force.

        Args:
            persona: whose memories, the global ones of its people included; left out, the tenant's.
            scope, subject: only this list.
            rest_after_days, match_limit, match_threshold, list_capacity, desk_limit, pin_capacity: at least one of
                them. A threshold is for replies that were searched with today's model; for others theirs stands.
            apply: record the use that `match_limit` and `match_threshold` come to, as events, in all lists or in none:
                counters and last matches are as this answer says from then on, also where a reply comes in between.
                What was forgotten stays so. The other numbers show as soon as the policy is set. Again, with nothing
                new in between, writes nothing.
            progress: told how many events are folded, of how many.

        Returns:
            Every memory that would stand otherwise, totals of both courses, and what the record cannot answer
            (docs/changing-a-rule.md). Searched texts are nowhere kept: the ten recorded candidates of each search are
            judged again.

        Raises:
            InvalidInput: no number, or one out of the policy's bounds; a scope without a subject.
            NotFound: a persona that never was; names near ones (D31).
        """
        numbers = {
            "rest_after_days": rest_after_days, "match_limit": match_limit, "match_threshold": match_threshold,
            "list_capacity": list_capacity, "desk_limit": desk_limit, "pin_capacity": pin_capacity,
        }  # fmt: skip
        return self._engine.what_ifs.what_if(
            numbers, persona=persona, scope=scope, subject=subject, apply=checked_flag("apply", apply),
            request_id=request_id, progress=progress,
        )  # fmt: skip

    # -- in and out ------------------------------------------------------------------------------------------------

    def export(self, *, persona: str | None = None) -> Iterator[dict[str, Any]]:
        """All memories as rows of our own format: texts, stamps, counters, pins. An import of them is exact."""
        return self._engine.transfer.export(persona)

    def import_rows(self, rows: Iterable[Mapping[str, Any]], *, progress: Progress | None = None) -> ImportAnswer:
        """Import rows of our own format, header first. The same again imports nothing (D12), nothing is evicted (D8).

        Returns:
            How many came in, how many were there already, and which rows were skipped and why (docs/import-export.md).

        Raises:
            InvalidInput: this is no export of ours. Nothing was written.
        """
        return self._engine.transfer.import_rows(rows, progress)

    def import_tomori(
        self, data: Mapping[str, Any], *, persona: str | None = None, subject: str | None = None,
        progress: Progress | None = None,
    ) -> ImportAnswer:  # fmt: skip
        """Import a TomoriBot file of version 2: server memories of a workspace, or personal memories of a user.

        Args:
            data: the parsed file.
            persona: whose memories all of them become; left out, each bucket goes to the persona that it names.
            subject: the server of a workspace file, the user of a personal one: the file does not say.

        Raises:
            InvalidInput: no such file, or no subject. Nothing was written.
        """
        return self._engine.transfer.import_tomori(data, persona, subject, progress)

    # -- operation -------------------------------------------------------------------------------------------------

    def doctor(self) -> DoctorReport:
        """Is this installation well? Database, projections, parked streams, vectors, model, Redis."""
        return self._engine.doctor.report()

    def rebuild(
        self,
        projections: Sequence[str] | None = None,
        *,
        yes: bool | Callable[[Comparison], bool] = False,
        progress: Callable[[str, int, int], None] | None = None,
        keep_old: bool = False,
    ) -> RebuildAnswer:
        """Make the read model anew from the events, by the present code, beside the live one, and switch (U3).

        Replies, saves and projectors go on all the while. May be killed or broken off at any moment: the next call goes
        on. Several processes that call it work at the same rebuild together. No model is asked for a vector (D23).

        Args:
            projections: ``memory``, ``archive``, ``history``; left out, what is under way, else all.
            yes: whether to switch where the new rows are not the same as the old ones, or a function that is shown the
                comparison and says so. Where nothing differs nobody is asked.
            progress: called with the step, what is done of it and what there is to do.
            keep_old: leave the old tables until the next rebuild or `rebuild_drop_old`.

        Returns:
            Status ``switched``, or ``waiting``: it is built and differs. Call again with `yes`, or cancel.

        Raises:
            InvalidInput: no such projection; names a near one. Refused: a rebuild of others is under way.
        """
        return self._engine.rebuilding.run(
            projections, yes=yes, progress=progress, keep_old=checked_flag("keep_old", keep_old)
        )

    def rebuild_status(self) -> RebuildStatus:
        """How far a rebuild is, and which code built which generation."""
        return self._engine.rebuilding.status()

    def rebuild_cancel(self) -> RebuildAnswer:
        """Give up a rebuild that is under way: its tables go, the live ones were never touched."""
        return self._engine.rebuilding.cancel()

    def rebuild_drop_old(self) -> RebuildAnswer:
        """Drop the tables of old generations that a rebuild has left because somebody was reading, or by `keep_old`."""
        return self._engine.rebuilding.drop_old()

    def calibrate(self, probes: Path | None = None, *, progress: Progress | None = None) -> Calibration:
        """Measure the match threshold for the model in use on the probe set, or on a folder of your own (D5)."""
        return self._engine.calibrator.calibrate(probes, progress)

    def change_model(self, *, progress: Progress | None = None) -> ModelChange:
        """Bring this tenant to the embedding model of the settings, and return when it serves (D23).

        A model that the tenant has not met yet takes over by itself, in the background of any process that names it and
        stays open. This does the same while one waits; it is also the way back to a model that was left, and where the
        model that serves is named, the way to call a change off. Replies go on meanwhile, with the old vectors.

        Args:
            progress: called about once a second with the texts that have their vector, and all texts.

        Raises:
            InvalidInput: the settings name no model.
            EmbedderFailed: the new model does not answer. What is done stays done: ask again.
            Refused: it may not serve yet, because it has no threshold or refuses too many texts.
        """
        return self._engine.change.change(progress)

    def wait(
        self, positions: Iterable[Position], *, timeout: float = 5.0, mode: Literal["raise", "stale"] = "raise"
    ) -> bool:
        """Wait until the read model shows these positions; False if it does not in time and the mode is ``stale``."""
        return self._engine.waiting.wait(positions, timeout=timeout, mode=mode)

    def embed_pending(self, limit: int = 64) -> int:
        """Give vectors to memories that were saved without one, at most `limit` (D22). Also done in the background.

        Returns:
            How many got one.

        Raises:
            EmbedderFailed: the model is still away.
        """
        return self._engine.vectors.pending(checked_number("limit", limit, 1, 10_000))

    def __del__(self) -> None:
        with suppress(Exception):
            self._engine.close()
