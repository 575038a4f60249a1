"""Changing the embedding model: the old vectors serve until every text has a new one, then the new ones do (D23).

What is to be done is what is missing in `embedding`, so the work may stop anywhere and go on in any process. The
switch is one row. A model that the tenant has not met yet begins by itself, once; to one that was left it goes back
only by the command, so that processes under different settings cannot send each other to and fro
(docs/decisions/changing-the-model.md).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pgvector import HalfVector
from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, Refused, Unavailable
from remembrancer.domain.identity import shard_of
from remembrancer.domain.text import ERASED
from remembrancer.projections.memory_rows import digest
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import ModelChange
from remembrancer.services.deps import TENANT, Deps
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector
from remembrancer.services.tail import unread
from remembrancer.services.vectors import BATCH, CHORE_SECONDS, RETRY_SECONDS, Vectors, of_all_that_can_be

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "change_model")

BEGIN_AFTER_SECONDS = 3.0
"""A process that only passes by, such as a command, begins no change by itself."""
SLICE_SECONDS = 5.0
"""How long the background works on it before it looks after other things."""
CLAIM_SECONDS = 10.0
PROJECTED_SECONDS = 0.05
MOST_WAITS = 100
LOOKED_UP = 1_024
"""Texts that are looked up at once."""
FEW = 10
"""So many texts, or one in a hundred, may be refused by the new model; where it is more, the model is to blame."""

Progress = Callable[[int, int | None], None]


class _Text(NamedTuple):
    """A text without a vector, and the row that says it: of `archive` if there is a version."""

    shard: int
    list: UUID
    memory: UUID
    version: int | None
    kind: str
    subject: str
    text: str


class ChangeOfModel:
    """Brings the tenant to the model of this process's settings. See the module."""

    def __init__(self, deps: Deps, vectors: Vectors) -> None:
        self._deps = deps
        self._vectors = vectors
        self._mover = uuid4()
        self._found: deque[_Text] = deque()
        self._due = time.monotonic() + BEGIN_AFTER_SECONDS
        self._pause = RETRY_SECONDS
        self._waits = 0
        self._stopped = threading.Event()
        self.automatic = True

    # -- in the background -----------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Is it time for `chore`?"""
        return self.automatic and time.monotonic() >= self._due

    def chore(self) -> None:
        """Work on it for a while.

        Raises:
            Unavailable: the new model or the database is away; the next chore goes on, each time a little later.
        """
        try:
            wait = CHORE_SECONDS
            if self._begin(by_itself=True):
                wait = RETRY_SECONDS  # another process is at it, and may be gone by then
                if self._claim():
                    until = time.monotonic() + SLICE_SECONDS
                    while (more := self.step()) and time.monotonic() < until:
                        pass
                    wait = 0.0 if more else CHORE_SECONDS
            self._due, self._pause = time.monotonic() + wait, RETRY_SECONDS
        except Unavailable:
            self._due = time.monotonic() + self._pause
            self._pause = min(CHORE_SECONDS, 2 * self._pause)
            raise

    def stop(self) -> None:
        """End the work of this process; another one, or the next start, goes on."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._vectors.close()
            if self._found or self._coming() is not None:
                try:
                    self._run("release", mover=self._mover)
                except Unavailable:
                    log.debug("The claim to the change of the model runs out by itself.")

    # -- by the command --------------------------------------------------------------------------------------------

    def change(self, progress: Progress | None) -> ModelChange:
        """See `Remembrancer.change_model`."""
        own = self._deps.models.own
        if own is None:
            raise InvalidInput(
                "The settings name no model to change to.",
                rule="T11",
                hint="Set REMEMBRANCER_EMBEDDER to local or openai.",
            )
        self._begin(by_itself=False)
        self._run("ask_refused_again", model=own.model)
        told = 0.0
        while self._coming() is not None and not self._stopped.is_set():
            if not self._claim():
                time.sleep(1.0)  # another process is at it
                self._deps.models.look_again()
            elif not self.step() and self._coming() is not None:
                now = self.report()
                raise Refused(
                    f"{own.model} does not take over yet: {now.error or 'it was stopped'}.", rule="D23",
                    hint="The old vectors serve meanwhile. Mend it, then ask again: what is done stays done.",
                )  # fmt: skip
            if progress is not None and time.monotonic() - told > 1.0:
                now, told = self.report(), time.monotonic()
                progress(now.embedded, now.texts)
        self._vectors.adopt(own.model)
        return self.report()

    # -- the steps -------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Embed a batch of texts, or switch if there are none left. True if there is more to do now.

        Raises:
            EmbedderFailed: the new model is away; the old vectors go on serving.
        """
        own = self._coming()
        if own is None or self._stopped.is_set() or not self._claim():
            return False
        if not self._found:
            self._found.extend(self._missing(own.model, LOOKED_UP))
        if not self._found:
            return self._switch(own)
        batch = [self._found.popleft() for _ in range(min(BATCH, len(self._found)))]
        try:
            vectors = of_all_that_can_be(own, [one.text for one in batch], set())
        except EmbedderFailed as failed:
            self._found.extendleft(reversed(batch))
            self._note(own.model, str(failed.reason))
            raise
        self._keep(own.model, batch, vectors)
        self._note(own.model, None)
        return True

    def _begin(self, *, by_itself: bool) -> bool:
        """Is the settings' model about to take over? The command makes it so, and so does never having met it."""
        models = self._deps.models
        models.look_again()
        own, now = models.own, self._deps.now()
        if own is None:
            return False
        known = models.met.get(own.model)
        if known is None or not by_itself:
            at = {"tenant": self._deps.tenant, "model": own.model, "now": now}
            at |= {"url": models.own_url, "dimensions": own.dimensions}

            def work(conn: Connection[Any]) -> None:
                with conn.transaction():
                    serving = conn.execute(_SQL["hold"], at).fetchone()
                    # As it is now: another process of the same settings may have begun a moment ago.
                    (state,) = conn.execute(_SQL["state"], at).fetchone() or (None,)
                    if serving is None or state == "coming" or (by_itself and state is not None):
                        return
                    conn.execute(_SQL["leave_coming"], at)
                    if serving[0] != own.model:
                        conn.execute(_SQL["begin"], at)

            self._deps.store.database.run(work)
            models.look_again()
            if self._coming() is not None:
                log.warning("Memories get vectors of %s; until all have one, the old ones serve (D23).", own.model)
        return self._coming() is not None

    def _coming(self) -> Embedder | None:
        """The settings' model, if it is about to take over as far as we know."""
        own = self._deps.models.own
        met = self._deps.models.met.get(own.model) if own else None
        return own if met is not None and met.state == "coming" else None

    def _claim(self) -> bool:
        own = self._coming()
        return own is not None and self._run("claim", model=own.model, mover=self._mover, seconds=CLAIM_SECONDS) == 1

    def _missing(self, model: str, limit: int) -> list[_Text]:
        """Texts of memories first: those of the archive come when all of these are done."""
        at = {"tenant": self._deps.tenant, "model": model, "limit": limit}

        def work(conn: Connection[Any]) -> list[_Text]:
            rows = conn.execute(_SQL["missing_memories"], at).fetchall()
            return [_Text(*row) for row in rows or conn.execute(_SQL["missing_archive"], at).fetchall()]

        return self._deps.store.database.run(work)

    def _keep(self, model: str, texts: Sequence[_Text], vectors: Sequence[Vector | None]) -> None:
        rows: dict[str, list[dict[str, Any]]] = {"keep_of_memory": [], "keep_of_archive": []}
        for one, vector in zip(texts, vectors, strict=True):
            row = one._asdict() | {"tenant": self._deps.tenant, "model": model, "digest": digest(one.text)}
            row |= {"vector": None if vector is None else HalfVector(vector)}
            rows["keep_of_memory" if one.version is None else "keep_of_archive"].append(row)

        def work(conn: Connection[Any]) -> None:
            for query, params in rows.items():
                if params:
                    conn.cursor().executemany(_SQL[query], params)

        self._deps.store.database.run(work)
        for vector in vectors:
            if vector is not None:
                self._deps.models.measured(model, len(vector))
                break

    def _switch(self, own: Embedder) -> bool:
        """Let the new model serve, if it is fit to. Returns whether more is to be done now."""
        now = self.report()
        if (why := self._why_not_yet(now)) is not None:
            self._note(own.model, why)
            return False
        self._vectors.index_archive(own)
        at = {"tenant": self._deps.tenant, "model": own.model, "now": self._deps.now(), "limit": 1}

        def work(conn: Connection[Any]) -> bool:
            with conn.transaction():
                conn.execute(_SQL["hold"], at)
                # What is ahead of the tables first: what they read meanwhile is then found in both, not in neither.
                if not self._all_kept(conn, unread(conn, self._deps.store, "archive", kinds=_SAYING), own.model):
                    return False
                if any(conn.execute(_SQL[q], at).fetchone() for q in ("missing_memories", "missing_archive")):
                    return False
                conn.execute(_SQL["leave_serving"], at)
                if conn.execute(_SQL["serve"], at).rowcount != 1:
                    raise _Displaced
                return True

        try:
            switched = self._deps.store.database.run(work)
        except _Displaced:
            switched = False
        self._deps.models.look_again()
        if not switched:
            return self._wait_for_the_tables(own)
        log.warning("%s serves from now on (D23).", own.model)
        self._vectors.adopt(own.model)
        return False

    def _wait_for_the_tables(self, own: Embedder) -> bool:
        """Something was saved a moment ago. True if it is worth trying again at once."""
        self._stopped.wait(PROJECTED_SECONDS)
        self._waits += 1
        if self._waits % MOST_WAITS:
            return self._coming() is not None
        self._note(own.model, "the projections have yet to read what was saved")
        return False

    def _all_kept(self, conn: Connection[Any], ahead: Sequence[e.Recorded], model: str) -> bool:
        """Have the texts that no table has yet a vector of this model?"""
        texts = {
            (r.event.key.owner, r.event.text)
            for r in ahead
            if isinstance(r.event, _SAYING) and r.event.tenant == self._deps.tenant and r.event.text != ERASED
        }
        if not texts:
            return True
        at = {
            "tenant": self._deps.tenant, "model": model,
            "shards": [shard_of(self._deps.tenant, owner) for owner, _ in texts],
            "kinds": [owner.kind for owner, _ in texts], "subjects": [owner.key for owner, _ in texts],
            "digests": [digest(text) for _, text in texts],
        }  # fmt: skip
        row = conn.execute(_SQL["kept"], at).fetchone()
        return row is not None and int(row[0]) == len(texts)

    def _why_not_yet(self, now: ModelChange) -> str | None:
        """What a person has to see to before the new model may serve."""
        assert now.coming is not None
        if now.refused > max(FEW, now.texts // 100) or now.refused == now.texts > 0:
            return f"the model refuses {now.refused} of {now.texts} texts"
        policy, _ = self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))
        if now.texts and self._deps.threshold(policy, now.coming) is None:
            return (
                f"no match threshold is known for {now.coming}: run `remembrancer calibrate`, then "
                "`remembrancer policy set match_threshold=…` (D5)"
            )
        return None

    def report(self) -> ModelChange:
        """Where the change of the model is."""
        models = self._deps.models
        models.look_again()
        by_state = {one.state: one for one in models.met.values()}
        serving, coming = by_state.get("serving"), by_state.get("coming")
        one = coming or serving
        answer = ModelChange(
            serving=serving and serving.model, coming=coming and coming.model, settings=models.own and models.own.model,
            since=one and one.since, error=one and one.error, error_at=one and one.error_at,
        )  # fmt: skip
        if coming is None:
            return answer
        at = {"tenant": self._deps.tenant, "model": coming.model}
        (found,) = self._deps.store.database.run(lambda conn: conn.execute(_SQL["progress"], at).fetchall())
        names = ("texts", "embedded", "refused", "per_second")
        return answer.model_copy(update=dict(zip(names, found, strict=True)))

    def _note(self, model: str, error: str | None) -> None:
        known = self._deps.models.met.get(model)
        if known is None or known.error != error:
            self._run("note", model=model, error=error, now=self._deps.now())
            self._deps.models.look_again()

    def _run(self, query: str, **at: Any) -> int:
        at["tenant"] = self._deps.tenant
        return self._deps.store.database.run(lambda conn: conn.execute(_SQL[query], at).rowcount)


_SAYING = (e.MemorySaved, e.MemoryEdited)
"""Events that say a text."""


class _Displaced(Exception):
    """Somebody has decided otherwise meanwhile: nothing is switched."""
