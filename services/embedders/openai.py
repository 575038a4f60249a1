"""Any endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, vLLM, llama.cpp, LM Studio."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from email.utils import parsedate_to_datetime

import openai
import stamina
from openai.types import CreateEmbeddingResponse

from remembrancer.services.embedders.embedder import EmbedderFailed, Vector, unit_vectors
from remembrancer.services.embedders.loop import BackgroundLoop

OPENAI = "https://api.openai.com/v1"
TRIES = 3
PASSAGES_AT_ONCE = 64

HINTS = {
    401: "Check REMEMBRANCER_EMBEDDER_KEY.",
    403: "Check REMEMBRANCER_EMBEDDER_KEY.",
    404: "Check REMEMBRANCER_EMBEDDER_URL (it usually ends in /v1) and REMEMBRANCER_EMBEDDER_MODEL.",
}


class OpenAIEmbedder:
    """Embeds through an endpoint: at most three tries, all within the caller's timeout, each answer checked (C25)."""

    def __init__(self, *, url: str | None, model: str, key: str | None, dimensions: int | None = None) -> None:
        self._model = model
        self._dimensions = dimensions
        # Said outright, so that an OPENAI_API_KEY or OPENAI_BASE_URL meant for another program is never used here.
        self._client = openai.AsyncOpenAI(base_url=url or OPENAI, api_key=key or "none", max_retries=0)
        self._loop = BackgroundLoop("remembrancer-embed")

    @property
    def model(self) -> str:
        """``openai:`` and the endpoint's name of the model."""
        return f"openai:{self._model}"

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors: as given, else that of the first good answer."""
        return self._dimensions

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """See `Embedder.embed_query`."""
        return self.embed_passages([text], timeout=timeout)[0]

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """See `Embedder.embed_passages`; 64 texts a request."""
        deadline = time.monotonic() + timeout
        try:
            return self._loop.run(self._all(texts, deadline), timeout)
        except TimeoutError:
            raise EmbedderFailed(f"it took longer than {timeout:g} s") from None
        except CancelledError:
            raise EmbedderFailed("it was closed") from None

    def warm(self, *, timeout: float) -> None:
        """Nothing is loaded, and nobody is asked."""

    def close(self) -> None:
        """Closes the connections."""
        self._loop.close(self._client.close())

    async def _all(self, texts: Sequence[str], deadline: float) -> list[Vector]:
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        vectors: list[Vector] = []
        for start in range(0, len(readable), PASSAGES_AT_ONCE):
            vectors += await self._batch(readable[start : start + PASSAGES_AT_ONCE], deadline)
        return vectors

    async def _batch(self, texts: list[str], deadline: float) -> list[Vector]:
        def again(error: Exception) -> bool | float:
            if not isinstance(error, _MayPass) or error.retry_after is None:
                return isinstance(error, _MayPass)
            return error.retry_after if time.monotonic() + error.retry_after < deadline else False

        answer: list[object] = []
        async for attempt in stamina.retry_context(on=again, attempts=TRIES, timeout=None, wait_max=1, wait_jitter=0.1):
            with attempt:
                answer = await self._request(texts, deadline - time.monotonic())
        vectors = unit_vectors(answer, texts=len(texts), dimensions=self._dimensions)
        self._dimensions = vectors[0].size
        return vectors

    async def _request(self, texts: list[str], timeout: float) -> list[object]:
        """What the endpoint answers, in the order of the texts; its own words and the key stay out of every error."""
        try:
            answer = await self._client.embeddings.create(
                model=self._model, input=texts, encoding_format="float", timeout=max(timeout, 0.001)
            )
            return _in_order(answer)
        except openai.APIStatusError as error:
            status = error.status_code
            if status in (408, 429) or status >= 500:
                raise _MayPass(f"status {status}", retry_after=_retry_after(error)) from None
            raise EmbedderFailed(f"status {status}", hint=HINTS.get(status)) from None
        except openai.APIConnectionError:
            raise _MayPass("no connection, or one that broke off") from None
        except (openai.OpenAIError, AttributeError, TypeError, ValueError):
            raise EmbedderFailed("something that is not the JSON of the embeddings API") from None


class _MayPass(EmbedderFailed):
    """A failure that another try may not meet again. `retry_after`: seconds that the endpoint asks to wait."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason, hint="Check REMEMBRANCER_EMBEDDER_URL and whether the endpoint is up.")
        self.retry_after = retry_after


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds of a Retry-After header, which gives a number or a date; a date is read by the endpoint's own clock."""
    asked = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        now = parsedate_to_datetime(error.response.headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(asked) - now).total_seconds())
    except (TypeError, ValueError):
        return None


def _in_order(answer: CreateEmbeddingResponse) -> list[object]:
    """The vectors by their index: some endpoints answer in another order. Servers that give no index keep the order."""
    found = [(item.index, item.embedding) for item in answer.data]
    if all(index is None for index, _ in found):
        return [vector for _, vector in found]
    if len({index for index, _ in found}) != len(found):
        raise EmbedderFailed("vectors that do not say which text they belong to")
    return [vector for _, vector in sorted(found, key=lambda pair: pair[0])]
