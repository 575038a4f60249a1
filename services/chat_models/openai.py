"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, gateways."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import openai
import stamina
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from remembrancer.services.chat_models.model import Answered, ModelFailed, Prices, Usage
from remembrancer.services.chat_models.structured import read_json, schema_of
from remembrancer.services.embedders.loop import BackgroundLoop
from remembrancer.services.tokens import count_tokens

T = TypeVar("T", bound=BaseModel)
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
        self._takes_schema = True

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
        deadline = time.monotonic() + timeout
        try:
            return self._loop.run(self._ask(instructions, question, shape, deadline), timeout)
        except TimeoutError:
            raise ModelFailed("it took too long", again=False) from None
        except CancelledError:
            raise ModelFailed("it was closed", again=False) from None

    def close(self) -> None:
        """Closes the connections."""
        self._loop.close(self._client.close())

    async def _ask(self, instructions: str, question: str, shape: type[T], deadline: float) -> Answered[T]:
        schema = schema_of(shape)
        words = f"{instructions}\n\nAnswer with one JSON object of this schema and nothing else:\n{schema}"
        spent = Usage(0, 0)
        value: T | None = None

        def again(error: Exception) -> bool:
            return isinstance(error, ModelFailed) and error.again and time.monotonic() < deadline

        async for attempt in stamina.retry_context(on=again, attempts=TRIES, timeout=None, wait_max=1, wait_jitter=0.1):
            with attempt:
                answer = await self._request(words, question, shape.__name__, schema, deadline - time.monotonic())
                used = _usage(answer, words + question)
                spent = Usage(spent.input_tokens + used.input_tokens, spent.output_tokens + used.output_tokens)
                value = read_json(_content(answer), shape)
        assert value is not None
        return Answered(value, spent, None if self._prices is None else self._prices.of(spent))

    async def _request(
        self, words: str, question: str, name: str, schema: dict[str, Any], timeout: float
    ) -> ChatCompletion:
        """What the endpoint answers; its own words and the key stay out of every error."""
        more: dict[str, Any] = {}
        if self._takes_schema:
            shape = {"name": name, "schema": schema, "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": shape}
        try:
            answer = await self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "system", "content": words}, {"role": "user", "content": question}],
                timeout=max(timeout, 0.001),
                **more,
            )
        except openai.APIStatusError as error:
            status = error.status_code
            if status in (400, 422) and self._takes_schema:
                self._takes_schema = False  # many servers know no schema; the words say it, too
                return await self._request(words, question, name, schema, timeout)
            passing = status in (408, 409, 429) or status >= 500
            raise ModelFailed(f"status {status}", hint=HINTS.get(status), again=passing) from None
        except openai.APITimeoutError:
            raise ModelFailed("it took too long", again=False) from None
        except openai.APIConnectionError:
            raise ModelFailed(
                "no connection, or one that broke off",
                hint="Check REMEMBRANCER_CHAT_MODEL_URL and whether the endpoint is up.",
            ) from None
        except (openai.OpenAIError, AttributeError, TypeError, ValueError):
            raise ModelFailed("something that is not the JSON of chat completions") from None
        if not isinstance(answer, ChatCompletion):
            raise ModelFailed("something that is not the JSON of chat completions")
        return answer


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
        thought = getattr(choice.message, "reasoning_content", None) or getattr(choice.message, "reasoning", None)
        raise ModelFailed("only what it thought, no answer" if thought else "an empty answer")
    return text


def _usage(answer: ChatCompletion, asked: str) -> Usage:
    """Tokens as the endpoint says, else as we count them."""
    if answer.usage is not None and answer.usage.prompt_tokens is not None:
        return Usage(answer.usage.prompt_tokens, answer.usage.completion_tokens or 0)
    said = "".join(c.message.content or "" for c in answer.choices or ())
    return Usage(count_tokens(asked), count_tokens(said))
