"""A whole turn with the configured chat model: reply, model, its tools, answer (R13a, R17, T15).

What `reply`, `run_tool`, `report_cost` and `post` do one by one, for who needs nothing else in between. What people are
told never goes to the model (T15); what its tools came to does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from remembrancer.domain.errors import NotAllowed, Refused
from remembrancer.domain.identity import Subject, check_key
from remembrancer.services.answers import NoticeView, ReplyAnswer
from remembrancer.services.answers_talk import TalkAnswer, ToolUse
from remembrancer.services.chat_models import ChatModel, ModelFailed, Prices, Spoken, ToolCall, Usage
from remembrancer.services.chat_models.structured import writable
from remembrancer.services.chats import Chats, checked_message
from remembrancer.services.checks import answer_erased, checked_text
from remembrancer.services.deps import Deps
from remembrancer.services.recall import Recall
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch
from remembrancer.services.summaries import SummaryVerbs
from remembrancer.services.tools import Tools, tool_schemas

MOST_ROUNDS = 5
"""So often a model may call tools before it has to say something."""
MOST_CALLS = 20
"""Calls of one turn; more are answered with a no."""
Watch = Callable[[ReplyAnswer | ToolUse], None]


@dataclass(slots=True)
class _Said:
    """What the model has come to so far."""

    text: str = ""
    calls: list[ToolUse] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    offered: bool = False

    def add(self, spoken: Spoken) -> None:
        """One more answer. What it says beside its calls counts if nothing comes after them."""
        self.text = spoken.text or self.text
        self.usage = self.usage.plus(spoken.usage)
        self.offered = spoken.offered


class Talking:
    """Plays turns. See the module."""

    def __init__(
        self, deps: Deps, recall: Recall, chats: Chats, tools: Tools, summaries: SummaryVerbs, model: ChatModel | None
    ) -> None:
        self._deps, self._recall, self._chats = deps, recall, chats
        self._tools, self._summaries, self._model = tools, summaries, model

    def require_model(self) -> ChatModel:
        """The model that answers.

        Raises:
            NotAllowed: none is configured.
        """
        if self._model is None:
            raise NotAllowed(
                "No chat model is configured, so nobody can answer.",
                hint="Set REMEMBRANCER_CHAT_MODEL and, where it is not OpenAI's, REMEMBRANCER_CHAT_MODEL_URL.",
            )
        return self._model

    def talk(
        self,
        persona: str,
        *,
        message: str,
        asked: Mapping[str, Any],
        note: str | None,
        tools: bool,
        watch: Watch | None,
        request_id: str | None,
    ) -> TalkAnswer:
        """One turn. See `Remembrancer.talk`. `asked`: the other fields of a reply."""
        model = self.require_model()
        checked_message(message)
        if note is not None:
            checked_text("note", note)
        body = {"persona": persona, "message": message, "note": note, "tools": tools, **asked}
        before = None
        if request_id is not None:
            check_key("request_id", request_id)
            before = self._deps.store.find(request_for(self._deps.tenant, 0, "talk", request_id, body))
        part = None if request_id is None else f"{request_id} reply"
        reply = self._recall.reply(persona, message=message, memory="on", request_id=part, **asked)
        if before is not None:
            return _again(before, reply)
        told = watch or (lambda _: None)
        told(reply)
        said = self._converse(model, persona, reply, note, tools, told)
        return self._post(persona, reply, said, model.prices, asked["users"], body, request_id)

    def _converse(
        self, model: ChatModel, persona: str, reply: ReplyAnswer, note: str | None, tools: bool, told: Watch
    ) -> _Said:
        """Ask the model, and do what it calls, until it has nothing more to call."""
        messages: list[dict[str, Any]] = [*reply.prompt(persona)]
        if note:
            messages.insert(len(messages) - 1, {"role": "system", "content": note})
        schemas = tool_schemas() if tools else []
        said = _Said()
        for rounds in range(MOST_ROUNDS + 1):
            spoken = model.converse(
                messages, tools=schemas, only_talk=rounds == MOST_ROUNDS, may_be_silent=bool(said.text),
                timeout=self._deps.settings.chat_model_timeout,
            )  # fmt: skip
            said.add(spoken)
            if not spoken.calls or rounds == MOST_ROUNDS:
                break
            messages.append(_called(spoken))
            for call in spoken.calls:
                use = self._run(persona, reply, call, len(said.calls))
                said.calls.append(use)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": use.content})
                told(use)
        said.text = writable(said.text)
        if not said.text:
            raise ModelFailed("nothing but tool calls", again=False)
        return said

    def _run(self, persona: str, reply: ReplyAnswer, call: ToolCall, before: int) -> ToolUse:
        if before >= MOST_CALLS:
            return ToolUse(
                name=call.name, arguments=call.arguments, ok=False,
                content=f"Not done. {MOST_CALLS} calls are enough for one turn.",
            )  # fmt: skip
        done = self._tools.run(persona, reply, call.name, call.arguments, request_id=None)
        return ToolUse(name=call.name, arguments=call.arguments, **dict(done))

    def _post(
        self,
        persona: str,
        reply: ReplyAnswer,
        said: _Said,
        prices: Prices | None,
        users: Sequence[str],
        body: Mapping[str, Any],
        request_id: str | None,
    ) -> TalkAnswer:
        """Book the cost, and put the answer into the chat, with what a repetition of the request is told (D19).

        Raises:
            Refused: there is a newer attempt of this turn.
        """
        here = self._chats.require(reply.chat)
        booked = self._book(reply, said.usage)
        event = self._chats.posted(
            here, checked_message(said.text), author=persona, role="persona", turn=reply.turn, request_id=request_id
        )
        if event.attempt != reply.attempt:
            raise Refused("The turn was asked for again meanwhile; the newer attempt has the answer.", rule="D19")
        answer = TalkAnswer(
            turn=reply.turn, attempt=reply.attempt, chat=reply.chat, message=event.message, text=said.text,
            calls=said.calls, notices=[*reply.notices, *(n for c in said.calls for n in c.notices), *booked],
            tools=said.offered, input_tokens=said.usage.input_tokens, output_tokens=said.usage.output_tokens,
            cost=None if prices is None else prices.of(said.usage), reply=reply,
        )  # fmt: skip
        owners = tuple(dict.fromkeys((here.home, *(Subject("user", user) for user in users))))
        request = request_for(self._deps.tenant, here.stream.bytes[0], "talk", request_id, body, owners)
        kept = b"" if request_id is None else answer.model_dump_json(exclude={"reply", "positions"}).encode()
        done = self._deps.store.append(
            [Batch(here.stream, [event], None, (here.home,))], request=request, answer=kept, now=self._deps.now()
        )
        if not done.fresh:
            return _again(done, reply)
        return answer.model_copy(update={"positions": [*reply.positions, *positions(done)]})

    def _book(self, reply: ReplyAnswer, usage: Usage) -> list[NoticeView]:
        """What the turn cost, however often the model was asked; a notice if that is unusual (R8)."""
        if not any(usage):
            return []
        booked = self._summaries.report_cost(
            reply.turn, cost=None, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, request_id=None
        )
        return [] if booked.notice is None else [booked.notice]


def _again(done: Appended, reply: ReplyAnswer) -> TalkAnswer:
    """The first answer to a request that came again (D19)."""
    if not done.answer:
        raise answer_erased()
    return TalkAnswer.model_validate({**orjson.loads(done.answer), "reply": reply, "positions": positions(done)})


def _called(spoken: Spoken) -> dict[str, Any]:
    """The model's own message, as it has to stand before the answers of its tools."""
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in spoken.calls
    ]
    return {"role": "assistant", "content": spoken.text or None, "tool_calls": calls}
