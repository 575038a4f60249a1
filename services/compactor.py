"""Does the work that `summary_work` notes: summaries and deep memory in the background (R4, R16, D16).

Whichever process comes first does it.

A process manager's second half. What is to be done stands in a table, not in memory: a process that is killed in the
middle loses its claim after a while, and another one goes on. A chat whose model failed is tried again after pauses
that grow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from psycopg import Connection

from remembrancer.domain.errors import NotAllowed, RemembrancerError, Unavailable
from remembrancer.projections.queries import load_queries
from remembrancer.projections.runner import Runner
from remembrancer.services.answers_summary import SummariesRun
from remembrancer.services.chat_models import ChatModel, ModelFailed
from remembrancer.services.deep_memory import FAILED, DeepMemory, DeepPassFailed
from remembrancer.services.deps import Deps
from remembrancer.services.summariser import Rests, Summariser, pause
from remembrancer.services.summary_reader import Behind

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "summaries")
REBUILD_TRIES = 5
"""After so many failures in a row a rebuild is given up."""
GRACE_SECONDS = 5.0
"""A claim lasts as long as a question may, and this much."""


class _Claimed(NamedTuple):
    shard: int
    chat: UUID
    version: int
    tries: int


class Compactor:
    """Claims chats and has them summarised. See the module."""

    def __init__(self, deps: Deps, summariser: Summariser, deep: DeepMemory, model: ChatModel | None) -> None:
        self._deps = deps
        self._summariser = summariser
        self._deep = deep
        self.model = model
        self.automatic = True
        """Whether the background does what is due; else whoever calls `work`."""
        self._me = uuid4()
        self._stopped = False

    def stop(self) -> None:
        """Take up nothing more; the step at hand is not written if its model has to be waited for."""
        self._stopped = True

    def work(self, limit: int = 1_000) -> int:
        """Do what is due, at most `limit` runs. Returns how many were done: none without a model (D16)."""
        done = 0
        while self.model is not None and done < limit and not self._stopped:
            claimed = self._claim()
            if claimed is None:
                break
            self._one(claimed, self.model)
            done += 1
        return done

    def run_due(self, runner: Runner, progress: Callable[[int, int | None], None] | None) -> SummariesRun:
        """See `Remembrancer.run_summaries`."""
        if self.model is None:
            raise NotAllowed(
                "No chat model is configured, so nothing can be summarised.", rule="R4",
                hint="Set REMEMBRANCER_CHAT_MODEL.",
            )  # fmt: skip
        runner.catch_up(projections=["conversation", "summary_work"])
        runs = 0
        while self.work(1):
            runs += 1
            if progress is not None:
                progress(runs, None)
        at = {"tenant": self._deps.tenant}
        rows = self._deps.store.database.run(lambda conn: conn.execute(_SQL["failing"], at).fetchall())
        waiting, failing, error, next_try = rows[0]
        return SummariesRun(runs=runs, waiting=waiting, failing=failing, error=error, next_try=next_try)

    def _one(self, one: _Claimed, model: ChatModel) -> None:
        at = {"shard": one.shard, "chat": one.chat, "worker": self._me, "version": one.version}
        try:
            outcome = self._summariser.run(one.chat, model, lambda: self._hold(at), again=one.tries > 0)
            self._deep.run(one.chat, model, lambda: self._hold(at))
        except ModelFailed as failed:
            if self._stopped:  # it was we who hung up
                self._run("go_on", at | {"now": self._deps.now()})
            else:
                of_deep = isinstance(failed, DeepPassFailed)
                reason = f"{FAILED}{failed.reason}" if of_deep else failed.reason
                self._failed(one, at, reason, of_deep=of_deep, progress=failed.after_progress)
        except Behind:
            self._failed(one, at, "the chat's tables are behind its events")
        except Unavailable:
            raise
        except RemembrancerError as error:
            self._failed(one, at, type(error).__name__)
        except Exception as error:
            log.exception("A chat cannot be summarised; it is tried again later.")
            self._failed(one, at, type(error).__name__)
        else:
            if isinstance(outcome, Rests):
                self._run("rest", at | {"now": self._deps.now(), "due_at": outcome.until, "error": outcome.reason})
                return
            if outcome == "done":
                self._run("finish", at)
            self._run("go_on", at | {"now": self._deps.now()})

    def _failed(
        self, one: _Claimed, at: dict[str, Any], reason: str, *, of_deep: bool = False, progress: bool = False
    ) -> None:
        log.warning("A chat waits to be %s: %s", "read deeply" if of_deep else "summarised", reason)
        now = self._deps.now()
        asked = at | {"now": now, "due_at": now + pause(0 if progress else one.tries), "error": reason,
                      "progress": progress}  # fmt: skip
        row = self._deps.store.database.run(lambda conn: conn.execute(_SQL["fail"], asked).fetchone())
        tries = 0 if row is None else row[0]  # less than we knew of, if a rebuild was begun meanwhile
        if tries >= REBUILD_TRIES and not of_deep:
            with suppress(Behind):
                self._summariser.rebuild_failed(one.chat, reason)

    def _claim(self) -> _Claimed | None:
        at = {"worker": self._me, "tenant": self._deps.tenant, "now": self._deps.now(), "seconds": self._seconds}
        row = self._deps.store.database.run(lambda conn: conn.execute(_SQL["claim"], at).fetchone())
        return None if row is None else _Claimed(*row)

    def _hold(self, at: dict[str, Any]) -> bool:
        """Keep the claim for another step, if it is still ours and we go on."""
        asked = at | {"seconds": self._seconds}
        held = self._deps.store.database.run(lambda conn: conn.execute(_SQL["hold"], asked).fetchone())
        return held is not None and not self._stopped

    @property
    def _seconds(self) -> float:
        return self._deps.settings.chat_model_timeout + GRACE_SECONDS

    def _run(self, query: str, at: dict[str, Any]) -> None:
        def work(conn: Connection[Any]) -> None:
            conn.execute(_SQL[query], at)

        self._deps.store.database.run(work)
