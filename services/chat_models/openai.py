"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, gateways."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar, cast

import openai
import stamina
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from remembrancer.services.chat_models.model import Answered, ModelFailed, Prices, Spoken, ToolCall, Usage
from remembrancer.services.chat_models.structured import read_json, schema_of, without_thoughts
from remembrancer.services.embedders.loop import BackgroundLoop
from remembrancer.services.tokens import count_tokens

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")
OPENAI = "https://api.openai.com/v1"
TRIES = 3
HINTS = {
    401: "Check REMEMBRANCER_CHAT_MODEL_KEY.",
    403: "Check REMEMBRANCER_CHAT_MODEL_KEY.",
    404: "Check REMEMBRANCER_CHAT_MODEL_URL (it usually ends in /v1) and REMEMBRANCER_CHAT_MODEL.",
}


class OpenAIChatModel:
    """Asks an endpoint: at most three tries, all within the caller's timeout, each answer checked (C17).

    The shape goes as `response_format` where the endpoint takes that, and always in words.
    """

    def __init__(self, *, model: str, url: str | None, key: str | None, prices: Prices | None) -> None:
        self._model = model
        self._prices = prices
        # Said outright, so that an OPENAI_API_KEY or OPENAI_BASE_URL meant for another program is never used here.
        self._client = openai.AsyncOpenAI(base_url=url or OPENAI, api_key=key or "none", max_retries=0)
        self._loop = BackgroundLoop("remembrancer-chat-model")
        self._takes_schema = self._takes_tools = True

    @property
    def name(self) -> str:
        """The endpoint's name of the model."""
        return self._model

    @property
    def prices(self) -> Prices | None:
        """See `ChatModel.prices`."""
        return self._prices

    def ask(self, instructions: str, question: str, shape: type[T], *, timeout: float) -> Answered[T]:
        """See `ChatModel.ask`."""
        return self._within(lambda deadline: self._ask(instructions, question, shape, deadline), timeout)

    def converse(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]], only_talk: bool = False,
        may_be_silent: bool = False, timeout: float,
    ) -> Spoken:  # fmt: skip
        """See `ChatModel.converse`."""
        more: dict[str, Any] = {}
        if tools:
            more = {"tools": list(tools), "tool_choice": "none" if only_talk else "auto"}
        return self._within(lambda deadline: self._converse(list(messages), more, may_be_silent, deadline), timeout)

    def close(self) -> None:
        """Closes the connections."""
        self._loop.close(self._client.close())

    def _within(self, work: Callable[[float], Coroutine[Any, Any, R]], timeout: float) -> R:
        """What comes of it in time."""
        try:
            return self._loop.run(work(time.monotonic() + timeout), timeout)
        except TimeoutError:
            raise ModelFailed("it took too long", again=False) from None
        except CancelledError:
            raise ModelFailed("it was closed", again=False, cause="away") from None

    async def _ask(self, instructions: str, question: str, shape: type[T], deadline: float) -> Answered[T]:
        schema = schema_of(shape)
        words = f"{instructions}\n\nAnswer with one JSON object of this schema and nothing else:\n{schema}"
        messages = [{"role": "system", "content": words}, {"role": "user", "content": question}]
        form = {"type": "json_schema", "json_schema": {"name": shape.__name__, "schema": schema, "strict": True}}
        spent = Usage(0, 0)
        value: T | None = None
        async for attempt in _tries(deadline):
            with attempt:
                answer = await self._shaped(messages, form, deadline)
                spent = spent.plus(_usage(answer, words + question))
                value = read_json(_content(answer), shape)
        assert value is not None
        return Answered(value, spent, None if self._prices is None else self._prices.of(spent))

    async def _shaped(
        self, messages: Sequence[Mapping[str, Any]], form: dict[str, Any], deadline: float
    ) -> ChatCompletion:
        if self._takes_schema:
            try:
                return await self._request(messages, deadline, response_format=form)
            except ModelFailed as failed:
                if failed.refused not in (400, 422):
                    raise
            answer = await self._request(messages, deadline)
            self._takes_schema = False  # many servers know no schema; the words say it, too
            return answer
        return await self._request(messages, deadline)

    async def _converse(
        self, messages: Sequence[Mapping[str, Any]], more: dict[str, Any], may_be_silent: bool, deadline: float
    ) -> Spoken:
        spent = Usage(0, 0)
        said: Spoken | None = None
        asked = "".join(str(m.get("content") or "") for m in messages)
        async for attempt in _tries(deadline):
            with attempt:
                offered = more if self._takes_tools else {}
                answer, took = await self._with_tools(messages, offered, deadline)
                spent = spent.plus(_usage(answer, asked))
                text, calls = _spoken(answer)
                if not (text or calls or may_be_silent):
                    raise _nothing_said(answer)
                said = Spoken(text, calls, spent, took)
        assert said is not None
        return said

    async def _with_tools(
        self, messages: Sequence[Mapping[str, Any]], more: dict[str, Any], deadline: float
    ) -> tuple[ChatCompletion, bool]:
        """Endpoints say in many ways that a model takes no tools: what is refused with them is tried without (R17).

        From then on it is asked without if the refusal spoke of them: a prompt that is too long is refused, too.
        """
        try:
            return await self._request(messages, deadline, **more), bool(more)
        except ModelFailed as failed:
            if not more or failed.refused not in (400, 404, 422, 501):
                raise
            answer = await self._request(messages, deadline)
            self._takes_tools = not failed.of_tools
            return answer, False

    async def _request(self, messages: Sequence[Mapping[str, Any]], deadline: float, **more: Any) -> ChatCompletion:
        """What the endpoint answers; its own words and the key stay out of every error."""
        try:
            answer = await self._client.chat.completions.create(
                model=self._model,
                messages=cast("Any", messages),
                timeout=max(deadline - time.monotonic(), 0.001),
                **more,
            )
        except openai.APIStatusError as error:
            status = error.status_code
            passing = status in (408, 409, 429) or status >= 500
            of_tools = re.search("tool|function", f"{error.message} {error.body}", re.IGNORECASE) is not None
            raise ModelFailed(
                f"status {status}", hint=HINTS.get(status), again=passing, refused=status, of_tools=of_tools,
                cause="refused" if status in (400, 413, 422) else "away",
            ) from None  # fmt: skip
        except openai.APITimeoutError:
            raise ModelFailed("it took too long", again=False) from None
        except openai.APIConnectionError:
            raise ModelFailed(
                "no connection, or one that broke off",
                hint="Check REMEMBRANCER_CHAT_MODEL_URL and whether the endpoint is up.",
                cause="away",
            ) from None
        except (openai.OpenAIError, AttributeError, TypeError, ValueError):
            raise ModelFailed("something that is not the JSON of chat completions") from None
        if not isinstance(answer, ChatCompletion):
            raise ModelFailed("something that is not the JSON of chat completions")
        return answer


def _tries(deadline: float) -> AsyncIterator[stamina.Attempt]:
    """At most three, none of them after the deadline."""

    def again(error: Exception) -> bool:
        return isinstance(error, ModelFailed) and error.again and time.monotonic() < deadline

    return stamina.retry_context(on=again, attempts=TRIES, timeout=None, wait_max=1, wait_jitter=0.1).__aiter__()


def _content(answer: ChatCompletion) -> str:
    """What the model said.

    Raises:
        ModelFailed: nothing, only what it thought, or only the beginning of it.
    """
    if not answer.choices:
        raise ModelFailed("nothing")
    (choice, *_) = answer.choices
    if choice.finish_reason == "length":
        raise ModelFailed("an answer that was cut off")
    text = choice.message.content
    if not isinstance(text, str) or not text.strip():
        raise _nothing_said(answer)
    return text


def _spoken(answer: ChatCompletion) -> tuple[str, Sequence[ToolCall]]:
    """What the model said, without what it thought, and what it calls; what was cut off is said so far."""
    if not answer.choices:
        raise ModelFailed("nothing")
    message = answer.choices[0].message
    calls = [
        ToolCall(call.id, call.function.name, call.function.arguments or "")
        for call in message.tool_calls or ()
        if call.type == "function"
    ]
    return without_thoughts(message.content or "").strip(), calls


def _nothing_said(answer: ChatCompletion) -> ModelFailed:
    message = answer.choices[0].message
    thought = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    return ModelFailed("only what it thought, no answer" if thought else "an empty answer")


def _usage(answer: ChatCompletion, asked: str) -> Usage:
    """Tokens as the endpoint says, else as we count them."""
    if answer.usage is not None and answer.usage.prompt_tokens is not None:
        return Usage(answer.usage.prompt_tokens, answer.usage.completion_tokens or 0)
    said = "".join(c.message.content or "" for c in answer.choices or ())
    return Usage(count_tokens(asked), count_tokens(said))
