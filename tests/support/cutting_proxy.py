"""Stands between a client and PostgreSQL, and cuts the connection between the commit of an append and its answer.

It reads the messages of the protocol, so it cuts exactly there: the server has said that the append is done, the client
has not heard it.

    with CuttingProxy(url) as proxy, open_memory(proxy.url) as memory:
        proxy.cuts = 1
        memory.save(...)
        assert proxy.cut == 1
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class CuttingProxy:
    """The proxy, from `with` to the end of the block."""

    def __init__(self, database_url: str) -> None:
        server = conninfo_to_dict(database_url)
        self._server = str(Path(str(server["host"]), f".s.PGSQL.{server['port']}"))
        self._database_url = database_url
        self.cuts = 0
        """So many of the next appends are cut off from their answers."""
        self.refuses = False
        """Whether a cut breaks every connection, and nobody gets a new one."""
        self.cut = 0
        """How many were."""
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> CuttingProxy:
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = make_conninfo(
            self._database_url, host="127.0.0.1", port=str(port), sslmode="disable", gssencmode="disable"
        )
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shut(self._listening)
        with self._lock:
            for one in list(self._open):
                self._shut(one)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self.refuses and self.cut:
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            with self._lock:
                self._open |= {client, server}
            exchange = _Exchange(self, client, server)
            for work in (exchange.to_server, exchange.to_client):
                thread = threading.Thread(target=self._until_closed, args=(work, client, server), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _until_closed(self, work: object, *ends: socket.socket) -> None:
        with suppress(OSError):
            work()  # type: ignore[operator]
        with self._lock:
            for one in ends:
                self._shut(one)
                self._open.discard(one)

    def wants_to_cut(self) -> bool:
        """Is it the turn of this append?"""
        with self._lock:
            if self.cuts == 0:
                return False
            self.cuts -= 1
            self.cut += 1
            if self.refuses:
                for one in self._open:
                    self._shut(one)
            return True

    @staticmethod
    def _shut(one: socket.socket) -> None:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


class _Exchange:
    """One connection, its messages in both directions."""

    def __init__(self, proxy: CuttingProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._statements: dict[bytes, bytes] = {}
        self._appending = False

    def to_server(self) -> None:
        (length,) = struct.unpack("!I", head := _read(self._client, 4))
        self._server.sendall(head + _read(self._client, length - 4))
        while True:
            kind, body = _message(self._client)
            if kind == b"P":
                name, statement = body.split(b"\0")[:2]
                self._statements[name] = statement
            elif kind == b"B":
                self._appending |= b"remembrancer.append_" in self._statements.get(body.split(b"\0")[1], b"")
            self._server.sendall(_packed(kind, body))

    def to_client(self) -> None:
        held: list[tuple[bytes, bytes]] = []
        while True:
            kind, body = _message(self._server)
            held.append((kind, body))
            if self._appending and kind != b"Z":
                continue
            if self._appending and all(one != b"E" for one, _ in held) and self._proxy.wants_to_cut():
                return
            self._appending = self._appending and kind != b"Z"
            self._client.sendall(b"".join(_packed(*one) for one in held))
            held = []


def _message(end: socket.socket) -> tuple[bytes, bytes]:
    head = _read(end, 5)
    return head[:1], _read(end, struct.unpack("!I", head[1:])[0] - 4)


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _read(end: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        got = end.recv(size - len(data))
        if not got:
            raise ConnectionResetError
        data += got
    return bytes(data)
