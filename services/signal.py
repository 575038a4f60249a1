"""Wakes readers after a commit: "these shards have come this far".

Nothing depends on it. A signal may be lost, late or repeated; readers look for themselves at least once a second. So
publishing never fails and never waits, and a Redis that is away costs nothing but that second.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

import redis
from pydantic import BaseModel, ValidationError
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from remembrancer.domain.errors import InvalidInput

log = logging.getLogger(__name__)

CHANNEL = "remembrancer:committed"
RETRY_SECONDS = 1.0


class Signal(Protocol):
    """News of commits, from this process and, where there is a Redis, from all others."""

    def publish(self, positions: Mapping[int, int]) -> None:
        """Tells every listener that these shards have reached these positions. Never raises, never waits."""

    def listen(self) -> Listener:
        """Somebody who is woken by what is published from now on. Close it, or use it in a `with`."""

    def close(self) -> None:
        """Ends the threads, if any. What is published afterwards reaches this process only."""


class Listener:
    """Collects news while its owner is busy: what is published between two waits is not missed.

    So "read, then wait" is safe: begin to listen, read, wait, read again.
    """

    def __init__(self, signal: InProcessSignal) -> None:
        self._signal = signal
        self._changed = threading.Condition()
        self._news: dict[int, int] = {}
        self._woken = False

    def wait(self, timeout: float) -> dict[int, int]:
        """The highest position of each shard that was published since the last wait; empty after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._news or self._woken, timeout)
            news, self._news, self._woken = self._news, {}, False
            return news

    def wake(self) -> None:
        """Ends a wait without news, the present one or the next: the owner has something else to do."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def tell(self, positions: Mapping[int, int]) -> None:
        """Adds to the news, and wakes the owner."""
        with self._changed:
            _keep_highest(self._news, positions)
            self._changed.notify_all()

    def close(self) -> None:
        """Collects no longer."""
        self._signal.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class InProcessSignal:
    """News for the threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[Listener] = set()

    def publish(self, positions: Mapping[int, int]) -> None:
        """See `Signal.publish`."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.tell(positions)

    def listen(self) -> Listener:
        """See `Signal.listen`."""
        listener = Listener(self)
        with self._lock:
            self._listeners.add(listener)
        return listener

    def forget(self, listener: Listener) -> None:
        """Tells this listener nothing more."""
        with self._lock:
            self._listeners.discard(listener)

    def close(self) -> None:
        """See `Signal.close`: there is nothing to end."""


class RedisSignal(InProcessSignal):
    """News for the threads of this process at once, and for other processes through Redis publish and subscribe.

    Two threads do the talking, so a Redis that hangs holds up nobody. When Redis goes away that is logged once, and
    again when it is back; in between it is tried once a second.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=1.0,
                socket_connect_timeout=1.0,
                health_check_interval=10,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError:
            raise InvalidInput(
                "REMEMBRANCER_REDIS_URL is no address of a Redis.", hint="It looks like redis://127.0.0.1:6379/0."
            ) from None
        self._me = uuid.uuid4().hex
        self._unsent: dict[int, int] = {}
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._troubles: set[str] = set()
        self._threads = [
            threading.Thread(target=work, name=f"remembrancer-signal-{work.__name__}", daemon=True)
            for work in (self._send, self._receive)
        ]
        for thread in self._threads:
            thread.start()

    def publish(self, positions: Mapping[int, int]) -> None:
        """See `Signal.publish`. What is published while a message is on its way leaves together in the next one."""
        super().publish(positions)
        with self._changed:
            _keep_highest(self._unsent, positions)
            self._changed.notify_all()

    def close(self) -> None:
        """See `Signal.close`. Waits for the threads, 50 ms with a Redis that answers."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(3.0)
        self._redis.close()

    def _send(self) -> None:
        while not self._closing.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._unsent or self._closing.is_set())
                news, self._unsent = self._unsent, {}
            try:
                # The last message, when closing, may be empty: it wakes our own receiver, so that it ends.
                self._redis.publish(CHANNEL, _News(sender=self._me, positions=news).model_dump_json())
                self._works("send")
            except (RedisError, OSError):
                self._fails("send")
                self._closing.wait(RETRY_SECONDS)

    def _receive(self) -> None:
        while not self._closing.is_set():
            try:
                with self._redis.pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
                    subscription.subscribe(CHANNEL)
                    while not self._closing.is_set():
                        message = subscription.get_message(timeout=1.0)
                        self._works("receive")
                        if message is not None:
                            self._hear(message["data"])
            except (RedisError, OSError):
                self._fails("receive")
                self._closing.wait(RETRY_SECONDS)

    def _hear(self, data: bytes) -> None:
        try:
            news = _News.model_validate_json(data)
        except ValidationError:
            return  # somebody else's message on our channel
        if news.sender != self._me:
            super().publish(news.positions)

    def _fails(self, thread: str) -> None:
        with self._changed:
            if not self._troubles and not self._closing.is_set():
                log.warning("Redis does not answer. Readers look for news themselves, once a second, until it is back.")
            self._troubles.add(thread)

    def _works(self, thread: str) -> None:
        with self._changed:
            if self._troubles == {thread}:
                log.info("Redis is back.")
            self._troubles.discard(thread)


class _News(BaseModel):
    """What one process tells the others. `sender` knows it already."""

    sender: str
    positions: dict[int, int]


def _keep_highest(known: dict[int, int], positions: Mapping[int, int]) -> None:
    for shard, position in positions.items():
        known[shard] = max(position, known.get(shard, 0))


def make_signal(redis_url: str | None) -> Signal:
    """Signals through the Redis at this address, or within this process where there is none.

    A Redis that cannot be reached is no error here either: it is tried once a second.

    Raises:
        InvalidInput: the address is none.
    """
    return RedisSignal(redis_url) if redis_url else InProcessSignal()
