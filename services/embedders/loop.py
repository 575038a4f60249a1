"""A deadline that holds: requests run in an event loop of their own, where a request that is out of time is cancelled.

The timeouts of an HTTP client are per read, so a server that sends one byte a second is never late for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """One thread with an event loop, started at first use; any number of callers may wait for their work in it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """The result of `work`.

        Raises:
            TimeoutError: after `timeout` seconds; `work` is then cancelled and its connection cut.
            CancelledError: the loop was closed.
        """
        with self._lock:
            if self._closed:
                work.close()
                raise CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        finally:
            future.cancel()  # does nothing to work that is done

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancels what runs, does `last` for a second at most, and ends the thread. Closing twice is closing once."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_finish(last), loop).result(2.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2.0)
        loop.close()


async def _finish(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(last, 1.0)
