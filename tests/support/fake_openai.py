"""A real HTTP server on loopback that speaks OpenAI's embeddings API, well or badly, as a test scripts it.

    with FakeOpenAI() as server:                      # FakeOpenAI(384, {"bigger": 768}): one model differs
        server.script = [status(429, retry_after="0.1"), right]   # the next requests, in order
        server.otherwise = status(500)                            # all after those; `right` unless said
        make_embedder("openai", url=server.url, model="words")
        assert [request.texts for request in server.requests] == [["how is Mochi?"]]

`right` gives vectors in which texts that share words lie near each other; `vector_of` computes the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Request:
    """What arrived: its texts, the name of the model, the key, the encoding that was asked for."""

    texts: list[str]
    model: str
    key: str
    encoding: str | None


class FakeOpenAI:
    """The server, from `with` to the end of the block. Counts and keeps its requests, from any number of threads."""

    def __init__(self, dimensions: int = 768, of_model: dict[str, int] | None = None) -> None:
        self.dimensions = dimensions
        self.of_model = of_model or {}
        self.by_model: dict[str, Behaviour] = {}  # models that behave otherwise than `otherwise`
        self.script: list[Behaviour] = []
        self.otherwise: Behaviour = right
        self.requests: list[Request] = []
        self.cut = threading.Event()  # set when a client went away before its answer was complete
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address for REMEMBRANCER_EMBEDDER_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def vector_of(self, text: str, model: str | None = None) -> np.ndarray:
        """The vector that `right` answers for a text: float64, not normalised, of this server's dimensions or those
        that it has for a model."""
        return vector_of(text, self.of_model.get(model or "", self.dimensions))

    def received(self, request: Request) -> Behaviour:
        """Keeps the request and says what is answered."""
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if self.script else self.by_model.get(request.model, self.otherwise)

    def __enter__(self) -> FakeOpenAI:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Exchange, self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Exchange(BaseHTTPRequestHandler):
    """One connection. Behaviours use `texts`, `fake` and the ways to answer."""

    protocol_version = "HTTP/1.1"
    timeout = 5
    disable_nagle_algorithm = True  # else each answer takes 40 ms

    def __init__(self, fake: FakeOpenAI, *args: Any) -> None:
        self.fake = fake
        self.texts: list[str] = []
        self.model = ""
        super().__init__(*args)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/embeddings":
            return self.answer_json({"error": {"message": "no such path"}}, status=404)
        self.texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.model = body["model"]
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        behave = self.fake.received(Request(self.texts, body["model"], key, body.get("encoding_format")))
        try:
            behave(self)
        except (BrokenPipeError, ConnectionResetError):
            self.fake.cut.set()
            self.close_connection = True

    def answer_vectors(self, vectors: list[Any], indices: Sequence[int | None] | None = None) -> None:
        self.answer_json(vectors_body(vectors, indices))

    def answer_json(self, body: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.answer(json.dumps(body).encode(), status=status, headers=headers)

    def answer(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_head(len(body), status, headers)
        self.wfile.write(body)

    def send_head(self, length: int, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


Behaviour = Callable[[Exchange], None]


def right(exchange: Exchange) -> None:
    exchange.answer_vectors([exchange.fake.vector_of(text, exchange.model).tolist() for text in exchange.texts])


def one_vector(exchange: Exchange) -> None:
    """One vector, however many texts came."""
    exchange.answer_vectors([exchange.fake.vector_of(exchange.texts[0]).tolist()])


def backwards(exchange: Exchange) -> None:
    """All right, with the last text first, as its index says."""
    vectors = [exchange.fake.vector_of(text).tolist() for text in exchange.texts]
    exchange.answer_vectors(vectors[::-1], list(range(len(vectors)))[::-1])


def same_index(exchange: Exchange) -> None:
    """Every vector says that it belongs to the first text."""
    exchange.answer_vectors([[1.0] * exchange.fake.dimensions for _ in exchange.texts], [0 for _ in exchange.texts])


def nan(exchange: Exchange) -> None:
    exchange.answer_vectors([[float("nan")] + [0.5] * (exchange.fake.dimensions - 1) for _ in exchange.texts])


def infinite(exchange: Exchange) -> None:
    exchange.answer_vectors([[float("inf")] + [0.5] * (exchange.fake.dimensions - 1) for _ in exchange.texts])


def zeros(exchange: Exchange) -> None:
    exchange.answer_vectors([[0.0] * exchange.fake.dimensions for _ in exchange.texts])


def wrong_dimension(exchange: Exchange) -> None:
    """Good vectors that are one number short."""
    exchange.answer_vectors([exchange.fake.vector_of(text, exchange.model).tolist()[:-1] for text in exchange.texts])


def no_numbers(exchange: Exchange) -> None:
    exchange.answer_vectors([["a", "b", None] for _ in exchange.texts])


def empty(exchange: Exchange) -> None:
    exchange.answer_vectors([])


def broken_json(exchange: Exchange) -> None:
    exchange.answer(b'{"object": "list", "data": [{"object": "embedding", "embedd')


def web_page(exchange: Exchange) -> None:
    exchange.answer(b"<html>It works!</html>", headers={"Content-Type": "text/html"})


def other_json(exchange: Exchange) -> None:
    exchange.answer_json({"message": "hello"})


def drop(exchange: Exchange) -> None:
    """Closes the connection in the middle of the answer."""
    exchange.send_head(1000)
    exchange.wfile.write(b'{"object"')
    exchange.wfile.flush()
    exchange.connection.shutdown(socket.SHUT_RDWR)
    exchange.close_connection = True


def stall(exchange: Exchange) -> None:
    """Says nothing until the client has gone or the server closes."""
    exchange.connection.settimeout(0.05)
    while not exchange.fake.closing.is_set():
        try:
            if exchange.connection.recv(1) == b"":
                raise ConnectionResetError
        except TimeoutError:
            pass


def trickle(exchange: Exchange) -> None:
    """A right answer, one byte in 50 ms: no single read of a client ever waits long."""
    body = json.dumps(vectors_body([exchange.fake.vector_of(text).tolist() for text in exchange.texts])).encode()
    exchange.send_head(len(body))
    for byte in body:
        if exchange.fake.closing.wait(0.05):
            break
        exchange.wfile.write(bytes([byte]))
        exchange.wfile.flush()


def status(code: int, retry_after: str | None = None) -> Behaviour:
    """An error answer as OpenAI writes it, with its Retry-After if one is given."""

    def behave(exchange: Exchange) -> None:
        echo = {"error": {"message": f"refused: {exchange.texts[0]}", "type": "some_error", "code": None}}
        exchange.answer_json(echo, status=code, headers={} if retry_after is None else {"Retry-After": retry_after})

    return behave


def vectors_body(vectors: list[Any], indices: Sequence[int | None] | None = None) -> dict[str, object]:
    indices = indices or list(range(len(vectors)))
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in zip(indices, vectors, strict=True)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data, "model": "words", "usage": usage}


def vector_of(text: str, dimensions: int = 768) -> np.ndarray:
    """The sum of a fixed random vector for each different word: the cosine of two texts is about the share of words
    that they have in common, and near 0 where they have none. The same on every machine."""
    words = sorted(set(re.findall(r"\w+", text.casefold()))) or [""]
    total: np.ndarray = np.stack([_vector_of_word(word, dimensions) for word in words]).sum(axis=0)
    return total


@functools.lru_cache(maxsize=20_000)
def _vector_of_word(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    numbers: np.ndarray = np.random.default_rng(seed).standard_normal(dimensions)
    return numbers
