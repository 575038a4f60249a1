"""Memories that a person has a model draft, or takes out of a conversation (R13 c and d, D9, D19-D21).

Drafting writes nothing: a draft is an answer, and nothing of it is kept. What comes of a review is saved as a person's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from pydantic import TypeAdapter, ValidationError

from remembrancer.domain.arrivals import save_pinned
from remembrancer.domain.drafts import (
    LONGEST_DESCRIPTION,
    MOST_DRAFTS,
    MOST_MESSAGES,
    Draft,
    Heard,
    fault,
)
from remembrancer.domain.errors import InvalidInput, NotAllowed, TextTooLong, Unavailable
from remembrancer.domain.events import Source
from remembrancer.domain.identity import ListKey, check_key, list_key, list_stream
from remembrancer.domain.instructions import WARNING, reads_like_an_instruction
from remembrancer.domain.persona_memory import NewMemory, with_events
from remembrancer.domain.transcript import Message
from remembrancer.services import draft_prompts as prompts
from remembrancer.services.answers_drafts import DraftsAnswer, DraftView, LeftOut, SavedFromChat
from remembrancer.services.chat_models import Answered, ChatModel, ModelFailed
from remembrancer.services.chats import ChatHome, Chats, no_such_message
from remembrancer.services.checks import answer_erased, checked_text
from remembrancer.services.clock import make_id
from remembrancer.services.deps import Deps
from remembrancer.services.finder import as_uuid
from remembrancer.services.remember import ListLoaded, Remember, batch_of
from remembrancer.services.requests import positions, request_for
from remembrancer.services.settings import invalid
from remembrancer.services.store import Appended, Decision
from remembrancer.services.summary_prompts import of_messages
from remembrancer.services.vectors import Vectors
from remembrancer.services.views import view

_GIVEN = TypeAdapter(list[DraftView])
EMBED_SECONDS = 30.0


class Drafting:
    """Drafts, and saves what was chosen. See the module."""

    def __init__(self, deps: Deps, chats: Chats, remember: Remember, vectors: Vectors, model: ChatModel | None) -> None:
        self._deps = deps
        self._chats = chats
        self._remember = remember
        self._vectors = vectors
        self._model = model

    # -- drafts ----------------------------------------------------------------------------------------------------

    def generate(self, persona: str | None, *, scope: str, subject: str, description: str) -> DraftsAnswer:
        """Draft memories from what a person writes. See `Remembrancer.generate`."""
        key = list_key(persona, scope, subject)
        text = checked_text("description", description)
        if not text.strip():
            raise InvalidInput("The description is empty.", rule="R13", hint="Write what is to be remembered.")
        if len(text) > LONGEST_DESCRIPTION:
            raise TextTooLong(
                f"The description has {len(text)} characters; at most {LONGEST_DESCRIPTION} are possible.", rule="R13",
                hint="Shorten it, or describe one thing at a time.",
            )  # fmt: skip
        at = self._load(key)
        told = prompts.instructions(
            "draft", most=MOST_DRAFTS, characters=at.policy.max_characters, today=self._deps.now().date(),
            user=key.subject,
        )  # fmt: skip
        answer = self._ask(told, text, prompts.DescribedDrafts)
        drafts = [Draft(d.text.strip(), d.about, d.until) for d in answer.value.memories]
        return self._reviewable(key, at, drafts, answer, {})

    def from_chat(
        self, chat: str, messages: Sequence[UUID | str], *, persona: str | None, scope: str, subject: str | None
    ) -> DraftsAnswer:
        """Draft memories from chosen messages. See `Remembrancer.draft_from_chat`."""
        here, key, ids = self._asked(chat, messages, persona, scope, subject)
        chosen, at = self._present(here, ids), self._load(key)
        told = prompts.instructions("draft_chat", most=MOST_DRAFTS, characters=at.policy.max_characters)
        answer = self._ask(told, of_messages(chosen), prompts.HeardDrafts)
        drafts = [
            Draft(d.text.strip(), d.about, d.until, tuple(m.id for m in prompts.numbered(chosen, d.messages)))
            for d in answer.value.memories
        ]
        return self._reviewable(key, at, drafts, answer, {m.id: m for m in chosen})

    def _ask(self, told: str, asked: str, shape: type[Any]) -> Answered[Any]:
        if self._model is None:
            raise Unavailable(
                "No chat model is configured, so nothing can be drafted.", rule="R13",
                hint="Set REMEMBRANCER_CHAT_MODEL (and _URL, _KEY), or save the messages as they are.",
            )  # fmt: skip
        try:
            return self._model.ask(told, asked, shape, timeout=self._deps.settings.chat_model_timeout)
        except ModelFailed as failed:
            raise ModelFailed(failed.reason, hint="Nothing was saved. Ask again.") from failed

    def _reviewable(
        self, key: ListKey, at: ListLoaded, drafts: Sequence[Draft], answer: Answered[Any], said: Mapping[UUID, Message]
    ) -> DraftsAnswer:
        """Those that may be memories, with what a save of them would warn of; and the others, with the reason."""
        good: list[DraftView] = []
        left_out: list[LeftOut] = []
        for d in drafts:
            heard = [Heard(said[m].author, said[m].text) for m in d.messages]
            why = fault(d, at.policy.max_characters, heard)
            if why is None and said and not d.messages:
                why = "no message says it"
            if why is None and len(good) == MOST_DRAFTS:
                why = f"only {MOST_DRAFTS} are drafted at once (R13)"
            if why is not None:
                left_out.append(LeftOut(text=d.text, why=why))
                continue
            warnings = [WARNING] if reads_like_an_instruction(d.text) else []
            if (same := at.list.same_text(d.text)) is not None:
                warnings.append(f"It is remembered already: {same.id}.")
            good.append(
                DraftView(text=d.text, about=d.about, until=d.until, messages=d.messages, warnings=tuple(warnings))
            )
        assert self._model is not None
        return DraftsAnswer(
            persona=key.persona, scope=key.scope, subject=key.subject, drafts=good, left_out=left_out,
            model=self._model.name, cost=answer.cost,
        )  # fmt: skip

    # -- saving ----------------------------------------------------------------------------------------------------

    def save(
        self,
        chat: str,
        messages: Sequence[UUID | str],
        *,
        drafts: object,
        persona: str | None,
        scope: str,
        subject: str | None,
        request_id: str | None,
    ) -> SavedFromChat:
        """Save chosen messages as they are, or reviewed drafts, pinned. See `Remembrancer.save_from_chat`."""
        here, key, messages_asked = self._asked(chat, messages, persona, scope, subject)
        reviewed = None if drafts is None else _given(drafts)
        stream, now = list_stream(self._deps.tenant, key), self._deps.now()
        body = {
            "key": key, "chat": chat, "messages": messages_asked,
            "drafts": [] if reviewed is None else [d.model_dump(mode="json") for d in reviewed],
        }  # fmt: skip
        request = request_for(self._deps.tenant, stream.bytes[0], "save_from_chat", request_id, body, (key.owner,))
        if request_id is not None and (before := self._deps.store.find(request)) is not None:
            return _answered(before)
        chosen = self._present(here, messages_asked)
        if reviewed is None:
            new = _as_they_are(here, chosen, self._load(key).policy.max_characters)
        else:
            new = _reviewed(here, reviewed, chosen)
        ids = [make_id(stream.bytes[0]) for _ in new]
        vectors = self._vectors.of_passages([n.text for n in new], timeout=EMBED_SECONDS) if new else []

        def decide(at: ListLoaded) -> Decision:
            ctx = self._remember.context(at, key, "person", now.date(), None, request_id, stream)
            self._remember.may_write(at, key, ctx)
            events, arrived = save_pinned(at.list, new, ctx, ids)
            after = with_events(at.list, events, stream, at.version, now)
            answer = SavedFromChat(
                memories=[view(after.memories[one.memory], after, key, at.policy, now) for one in arrived],
                duplicates=[one.memory for one in arrived if one.duplicate],
                warnings=[WARNING for n in new if reads_like_an_instruction(n.text)][:1],
            )
            if vectors is not None:
                self._vectors.keep([(key.owner, n.text, v) for n, v in zip(new, vectors, strict=True)])
            return Decision([batch_of(stream, events, at, key)], orjson.dumps(answer.model_dump(mode="json")))

        done = self._deps.store.transact(request, lambda: self._remember.load(stream, key), decide, now=now)
        return _answered(done)

    # -- both ------------------------------------------------------------------------------------------------------

    def _load(self, key: ListKey) -> ListLoaded:
        return self._remember.load(list_stream(self._deps.tenant, key), key)

    def _asked(
        self, chat: str, messages: Sequence[UUID | str], persona: str | None, scope: str, subject: str | None
    ) -> tuple[ChatHome, ListKey, list[UUID]]:
        """The chat, the list, and the ids of the messages.

        Raises:
            NotFound: no such chat (C23). InvalidInput: no message, or too many.
        """
        here = self._chats.require(chat)
        if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
            raise InvalidInput("messages must be a list of ids.", hint="`chat show` lists them.")
        ids = list(dict.fromkeys(as_uuid(m, "message") for m in messages))
        if not ids:
            raise InvalidInput("No message is chosen.", rule="R13", hint="`chat show` lists the messages of a chat.")
        if len(ids) > MOST_MESSAGES:
            raise InvalidInput(f"{len(ids)} messages are chosen; at most {MOST_MESSAGES} are possible.", rule="R13")
        key = list_key(_persona(here, persona), scope, _subject(here, scope, subject))
        return here, key, ids

    def _present(self, here: ChatHome, ids: Sequence[UUID]) -> list[Message]:
        """These messages, in the order of the chat.

        Raises:
            NotFound: one is not in this chat (C23).
        """
        found = {m.id: m for m in self._chats.present(here, ids)}
        if (missing := next((i for i in ids if i not in found), None)) is not None:
            raise no_such_message(missing)
        return sorted(found.values(), key=lambda m: m.n)


def _answered(done: Appended) -> SavedFromChat:
    if not done.answer:
        raise answer_erased()
    return SavedFromChat.model_validate_json(done.answer).model_copy(update={"positions": positions(done)})


def _as_they_are(here: ChatHome, chosen: Sequence[Message], most: int) -> list[NewMemory]:
    """One memory a message.

    Raises:
        TextTooLong: a message is too long for one; which ones are named (D10).
    """
    long = [m for m in chosen if len(m.text) > most]
    if long:
        named = ", ".join(f"{m.id} ({len(m.text)})" for m in long)
        raise TextTooLong(
            f"A memory has at most {most} characters, and these messages have more: {named}. None was saved.",
            rule="R13", hint="Leave them out, or have memories drafted from them.",
            messages=[str(m.id) for m in long],
        )  # fmt: skip
    return [NewMemory(m.text, source=Source(chat=here.key, messages=(str(m.id),))) for m in chosen]


def _persona(here: ChatHome, persona: str | None) -> str:
    if persona is None and len(here.personas) == 1:
        return here.personas[0]
    if persona is None:
        raise InvalidInput("Several personas talk in this chat.", hint=f"Name one: {', '.join(here.personas)}.")
    if check_key("persona", persona) not in here.personas:
        raise NotAllowed(f"{persona} is not in the chat {here.key!r}.", hint=f"{', '.join(here.personas)} talk in it.")
    return persona


def _subject(here: ChatHome, scope: str, subject: str | None) -> str:
    """Whose memory it is: of the chat's one user, or of its server, if nothing is said."""
    if subject is not None:
        return subject
    if scope == "server" and here.server is not None:
        return here.server
    if scope != "server" and len(here.users) == 1:
        return here.users[0]
    raise InvalidInput(f"Whose {scope} memory is it?", rule="R13", hint="Name the subject.")


def _given(drafts: object) -> list[DraftView]:
    try:
        given = _GIVEN.validate_python(
            [{"about": None, "until": None} | dict(d) if isinstance(d, Mapping) else d for d in drafts]
            if isinstance(drafts, Sequence)
            else drafts
        )
    except ValidationError as error:
        raise invalid(error) from error
    if not given or len(given) > MOST_MESSAGES:
        raise InvalidInput(f"{len(given)} drafts are given; 1 to {MOST_MESSAGES} are possible.", rule="R13")
    return given


def _reviewed(here: ChatHome, drafts: Sequence[DraftView], chosen: Sequence[Message]) -> list[NewMemory]:
    """Reviewed drafts as memories; where one names no message, all that were chosen are its source (D21)."""
    of = {m.id for m in chosen}
    if (stray := next((i for d in drafts for i in d.messages if i not in of), None)) is not None:
        raise InvalidInput(f"A draft rests on the message {stray}, which was not chosen.", rule="D21")
    return [
        NewMemory(
            d.text,
            d.until,
            source=Source(chat=here.key, messages=tuple(str(i) for i in d.messages or [m.id for m in chosen])),
        )
        for d in drafts
    ]
