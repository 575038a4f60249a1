"""A real HTTP server on loopback that speaks OpenAI's chat completions, well or badly, as a test scripts it.

    with ScriptedChat() as server:
        server.script = [status(500), empty, truncated]   # the next requests, in order
        server.otherwise = answers                        # all after those
        make_chat_model("scripted", url=server.url)

`answers` gives for each shape that the product asks for something that fits, made of words of the question, so that a
test can see what went in. `server.writer` replaces how that is made. In a conversation it says its last message back;
`says` and `calls` say other things.
"""

from __future__ import annotations

import functools
import json
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """What arrived."""

    instructions: str
    question: str
    shape: str
    model: str
    key: str
    schema: bool
    messages: list[dict[str, Any]]
    tools: list[str]
    choice: str | None


class ScriptedChat:
    """The server, from `with` to the end of the block."""

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.otherwise: Behaviour = answers
        self.writer: Callable[[Asked], dict[str, Any]] = written
        self.requests: list[Asked] = []
        self.usage: dict[str, int] | None = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        self.asked = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def received(self, asked: Asked) -> Behaviour:
        with self._lock:
            self.requests.append(asked)
            self.asked.set()
            return self.script.pop(0) if self.script else self.otherwise

    def __enter__(self) -> ScriptedChat:
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
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = 5
    disable_nagle_algorithm = True

    def __init__(self, chat: ScriptedChat, *args: Any) -> None:
        self.chat = chat
        super().__init__(*args)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self.answer({"error": {"message": "no such path"}}, 404)
        texts = {"system": "", "user": ""} | {m["role"]: m["content"] for m in body["messages"]}
        form = body.get("response_format") or {}
        shape = form.get("json_schema", {}).get("name") or _shape(texts["system"])
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        tools = [one["function"]["name"] for one in body.get("tools", [])]
        self.asked = Asked(
            texts["system"],
            texts["user"],
            shape,
            body["model"],
            key,
            bool(form),
            body["messages"],
            tools,
            body.get("tool_choice"),
        )
        try:
            self.chat.received(self.asked)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def say(self, content: str | None, finish: str = "stop", **more: Any) -> None:
        message = {"role": "assistant", "content": content, **more}
        self.answer({
            "id": "x", "object": "chat.completion", "created": 1, "model": self.asked.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": self.chat.usage,
        })  # fmt: skip

    def answer(self, body: object, status: int = 200) -> None:
        self.send_raw(json.dumps(body).encode(), status)

    def send_raw(self, raw: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


Behaviour = Callable[[Exchange], None]


def answers(exchange: Exchange) -> None:
    asked = exchange.asked
    exchange.say(json.dumps(exchange.chat.writer(asked)) if asked.shape else f"You say: {asked.question}")


def fenced(exchange: Exchange) -> None:
    exchange.say(f"Here it is:\n```json\n{json.dumps(exchange.chat.writer(exchange.asked))}\n```\nHope that helps!")


def says(text: str | None, finish: str = "stop", **more: Any) -> Behaviour:
    """Words, as a model that talks has them."""
    return lambda exchange: exchange.say(text, finish, **more)


def calls(*wanted: tuple[str, dict[str, Any] | str], text: str | None = None) -> Behaviour:
    """Calls of tools: names, with arguments as values or as the text that a model writes."""

    def behave(exchange: Exchange) -> None:
        made = [
            {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": as_text(given)}}
            for n, (name, given) in enumerate(wanted)
        ]
        exchange.say(text, "tool_calls", tool_calls=made)

    def as_text(given: dict[str, Any] | str) -> str:
        return given if isinstance(given, str) else json.dumps(given)

    return behave


def no_tools(exchange: Exchange) -> None:
    """An endpoint whose model takes no tools."""
    if exchange.asked.tools:
        return exchange.answer({"error": {"message": "this model does not support tools"}}, 400)
    return answers(exchange)


def no_schema(exchange: Exchange) -> None:
    """An endpoint that knows no response_format."""
    if exchange.asked.schema:
        return exchange.answer({"error": {"message": "response_format is not supported"}}, 400)
    return answers(exchange)


def empty(exchange: Exchange) -> None:
    exchange.say("")


def reasoning_only(exchange: Exchange) -> None:
    exchange.say(None, reasoning_content="Let me think about what happened here.")


def broken_json(exchange: Exchange) -> None:
    exchange.say('{"summary": "They met at the')


def wrong_shape(exchange: Exchange) -> None:
    exchange.say('{"text": "They met."}')


def blank(exchange: Exchange) -> None:
    """JSON of the right shape that says nothing."""
    exchange.say(json.dumps({k: [] if isinstance(v, list) else "  " for k, v in written(exchange.asked).items()}))


def truncated(exchange: Exchange) -> None:
    exchange.say(json.dumps(exchange.chat.writer(exchange.asked))[:-5], finish="length")


def no_choices(exchange: Exchange) -> None:
    exchange.answer({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []})


def not_json(exchange: Exchange) -> None:
    exchange.send_raw(b"<html>It works!</html>")


def status(code: int) -> Behaviour:
    def behave(exchange: Exchange) -> None:
        exchange.answer({"error": {"message": f"refused: {exchange.asked.question}"}}, code)

    return behave


def drop(exchange: Exchange) -> None:
    exchange.connection.shutdown(socket.SHUT_RDWR)
    exchange.close_connection = True


def stall(exchange: Exchange) -> None:
    """Says nothing until the client has gone or the server closes."""
    exchange.connection.settimeout(0.05)
    while not exchange.chat.closing.is_set():
        try:
            if exchange.connection.recv(1) == b"":
                raise ConnectionResetError
        except TimeoutError:
            pass


BAD = (empty, reasoning_only, broken_json, wrong_shape, blank, truncated, no_choices, not_json, status(500), drop)


def written(asked: Asked) -> dict[str, Any]:
    """Something that fits the shape; every message of the question is in it by its first words."""
    match asked.shape:
        case "ChunkDraft":
            lines = re.findall(r"^#(\d+) \[[^\]]*\] ([^:]+): (.*)$", asked.question, re.MULTILINE)
            rules = [{"message": int(n), "quote": text} for n, _, text in lines if text.startswith("Rule:")]
            return {"summary": " / ".join(f"{who} said {text[:40]}" for _, who, text in lines), "rules": rules}
        case "MergedDraft":
            return {"summary": "merged: " + " ".join(asked.question.split())[-400:]}
        case "LongTermDraft":
            new = asked.question.partition("NEW SUMMARIES")[2]
            return {
                "chronology": [" ".join(new.split())[-300:]], "promises": ["Mira owes Juno a game"],
                "references": ["guild code 4711"], "state": ["They are in the tea house"],
            }  # fmt: skip
        case "CondensedDraft":
            return {"chronology": ["A long time went by."], "promises": [1], "references": [1], "state": [1]}
    raise AssertionError(f"no such shape: {asked.shape}")


def _shape(instructions: str) -> str:
    found = re.search(r"'title': '(\w+Draft)'", instructions)
    return found[1] if found else ""
