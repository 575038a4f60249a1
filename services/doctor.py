"""Is this installation well? One finding for each part, and what to do about those that are not.

Every check stands alone: what cannot be looked at is said to be so, and the others go on. Without a loaded model all of
it takes well under a second.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import redis
from psycopg import Connection
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from remembrancer.domain.errors import RemembrancerError
from remembrancer.projections.queries import load_queries
from remembrancer.projections.runner import Parked
from remembrancer.services.answers import Check, DoctorReport, ModelChange
from remembrancer.services.built_by import read_model
from remembrancer.services.doctor_models import CHANGE, findings
from remembrancer.services.embedders import EmbedderFailed
from remembrancer.services.store import sql
from remembrancer.services.store.migrate import migrations
from remembrancer.services.store.pool import connected

if TYPE_CHECKING:
    from remembrancer.services.engine import Engine

_SQL = load_queries("remembrancer.services", "doctor")
_SUMMARIES = load_queries("remembrancer.services", "summaries")

PGVECTOR = (0, 8, 4)
"""Older ones have known faults in the HNSW index that searches the archive."""
LATE = timedelta(seconds=10)
"""A projection that has not read an event for so long is not merely busy."""
SKEW = timedelta(seconds=5)
MODEL_SECONDS = 30.0
REDIS_SECONDS = 1.0
LEASE_SECONDS = 10.0
FIRST_HEARTBEAT_SECONDS = 1.0
FREE_BYTES = 1 << 30


class Doctor:
    """Looks, and repairs parked streams. Changes nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def report(self) -> DoctorReport:
        """All findings, always in the same order. Never raises for what it finds."""
        examination = _Examination(self._engine)
        return _report(examination.checks()).model_copy(update={"model": examination.model})

    def repair(self) -> DoctorReport:
        """Take up every parked stream again. One check for each: what still fails stays parked, with the reason."""
        parked = self._engine.runner.parked()
        nothing = Check(name="parked streams", ok=True, detail="none, so there is nothing to repair")
        return _report([self._repaired(one) for one in parked] or [nothing])

    def _repaired(self, parked: Parked) -> Check:
        name = f"stream {parked.stream}"
        try:
            self._engine.runner.repair(parked)
        except Exception as error:  # noqa: BLE001 (whatever the projection cannot take)
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            return Check(name=name, ok=False, detail=f"still parked in {parked.projection}: {said}", hint=_REPORT_IT)
        return Check(name=name, ok=True, detail=f"projected again in {parked.projection}")


def _report(checks: Iterable[Check]) -> DoctorReport:
    found = list(checks)
    return DoctorReport(ok=all(check.ok for check in found), checks=found)


class _Examination:
    """One look at everything."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._deps = engine.deps
        self._policy = engine.settings.policy()
        self._server: tuple[Any, ...] = ()
        self.model: ModelChange | None = None

    def checks(self) -> Iterator[Check]:
        database = self._look("database", self._database)
        yield from database
        if self._server:
            for name, look in (
                ("migrations", self._migrations),
                ("clock", self._clock),
                ("projections", self._projections),
                ("read model", self._read_model),
                ("parked streams", self._parked),
                ("workers", self._workers),
                ("vectors", self._vectors),
                (CHANGE, self._change),
            ):
                yield from self._look(name, look)
        for name, look in (
            ("model", self._model),
            ("decay", self._decay),
            ("chat model", self._chat_model),
            ("redis", self._redis),
            ("disk", self._disk),
        ):
            yield from self._look(name, look)

    @staticmethod
    def _look(name: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
        try:
            return list(look())
        except RemembrancerError as error:
            return [Check(name=name, ok=False, detail=error.message, hint=error.hint)]

    def _ask(self, query: str, **params: Any) -> list[tuple[Any, ...]]:
        def work(conn: Connection[Any]) -> list[tuple[Any, ...]]:
            return conn.execute(_SQL[query], params).fetchall()

        return self._deps.store.database.run(work)

    # -- the database ----------------------------------------------------------

    def _database(self) -> Iterator[Check]:
        with connected(self._deps.store.database.url) as conn:  # outside the pool, which would be patient
            self._server = conn.execute(_SQL["server"]).fetchone() or ()
        version, vector, _, read_only = self._server
        self._policy = self._engine.configure.policy()
        where = "embedded" if self._engine.embedded is not None else "server"
        if read_only:
            detail, hint = f"PostgreSQL {version} takes no writes", "Point REMEMBRANCER_DATABASE_URL at the primary."
            yield Check(name="database", ok=False, detail=detail, hint=hint)
        else:
            yield Check(name="database", ok=True, detail=f"PostgreSQL {version}, {where}")
        old = _version(vector) < PGVECTOR
        wanted = ".".join(map(str, PGVECTOR))
        yield Check(
            name="pgvector",
            ok=not old,
            detail=f"{vector}, older than {wanted}" if old else str(vector),
            hint="Install a newer one on the server, then run ALTER EXTENSION vector UPDATE." if old else None,
        )

    def _migrations(self) -> Iterator[Check]:
        applied = self._deps.store.database.run(lambda c: {name for (name,) in c.execute(sql.APPLIED_MIGRATIONS)})
        hint: str | None
        if newer := sorted(applied - set(migrations())):
            detail, hint = f"a newer version has migrated it: {', '.join(newer)}", "Update this installation."
        elif missing := sorted(set(migrations()) - applied):
            detail, hint = f"not applied: {', '.join(missing)}", "Start Remembrancer anew: it migrates at its start."
        else:
            detail, hint = "current", None
        yield Check(name="migrations", ok=hint is None, detail=detail, hint=hint)

    def _clock(self) -> Iterator[Check]:
        before = self._deps.now()
        theirs: datetime = self._ask("server")[0][2]
        skew = theirs - (before + (self._deps.now() - before) / 2)
        well = abs(skew) <= SKEW
        ahead = "ahead of" if skew > timedelta(0) else "behind"
        yield Check(
            name="clock",
            ok=well,
            detail=f"{_span(abs(skew))} {ahead} ours" if not well else "the database's agrees with ours",
            hint=None if well else "Days are counted by this process's clock: set both by NTP.",
        )

    # -- the read model --------------------------------------------------------

    def _projections(self) -> Iterator[Check]:
        rows = self._ask("behind")
        behind = [(name, count, since) for name, count, since in rows if count]
        now = self._deps.now()
        late = [name for name, _, since in behind if since is not None and now - since > LATE]
        detail = "; ".join(
            f"{name} is {count} event{'s' * (count != 1)} behind"
            + (f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else "")
            for name, count, since in behind
        )
        yield Check(
            name="projections",
            ok=not late,
            detail=detail or f"{', '.join(name for name, _, _ in rows)} are up to date",
            hint="Replies are right all the same. Keep a process running that projects, and see its log."
            if late
            else None,
        )

    def _read_model(self) -> Iterator[Check]:
        yield read_model(self._engine.rebuilding.status())

    def _parked(self) -> Iterator[Check]:
        parked = self._engine.runner.parked()
        if not parked:
            yield Check(name="parked streams", ok=True, detail="none")
        for p in parked:
            where = f"stream {p.stream} in {p.projection} from position {p.position} of shard {p.shard}"
            yield Check(name="parked streams", ok=False, detail=f"{where}: {p.error}", hint=_REPAIR)

    def _workers(self) -> Iterator[Check]:
        alive, held, slots = self._ask("workers", lease_seconds=LEASE_SECONDS)[0]
        until = time.monotonic() + FIRST_HEARTBEAT_SECONDS
        while self._engine.worker is not None and held < slots and time.monotonic() < until:
            time.sleep(0.02)  # ours has just been started
            alive, held, slots = self._ask("workers", lease_seconds=LEASE_SECONDS)[0]
        yield Check(
            name="workers",
            ok=held == slots,
            detail=f"{alive} alive, {held} of {slots} slots held",
            hint=None if held == slots else "Nobody projects the rest: run a process that is open in the background.",
        )

    def _vectors(self) -> Iterator[Check]:
        embedder = self._deps.embedder
        if embedder is None:
            yield Check(name="vectors", ok=True, detail="none are needed without a model")
            return
        without = self._ask("vectors", tenant=self._deps.tenant, model=embedder.model)[0][0]
        if without:
            detail = f"{without} memories wait for their first vector"
            hint = (
                f"They are embedded in the background once {embedder.model} answers; until then no search finds them."
            )
            yield Check(name="vectors", ok=False, detail=detail, hint=hint)
        else:
            yield Check(name="vectors", ok=True, detail=f"every memory has one of {embedder.model}")

    def _change(self) -> Iterator[Check]:
        if self._deps.models.own is not None:
            self.model = self._engine.change.report()
            yield from findings(self._engine, self.model, self._policy)

    # -- around it -------------------------------------------------------------

    def _model(self) -> Iterator[Check]:
        embedder = self._deps.embedder
        if embedder is None:
            detail = "none: nothing is searched, nothing rests, a full list refuses saves (T11)"
            yield Check(name="model", ok=True, detail=detail)
            return
        try:
            embedder.warm(timeout=MODEL_SECONDS)
            start = time.perf_counter()
            vector = embedder.embed_query("How is Mochi?", timeout=self._deps.settings.embed_timeout)
        except EmbedderFailed as failed:
            detail = f"{embedder.model} does not answer: {failed.reason}"
            hint = f"{failed.hint or 'See its log.'} Replies go on without search, and nothing ticks (T8)."
            yield Check(name="model", ok=False, detail=detail, hint=hint)
            return
        took = (time.perf_counter() - start) * 1000
        threshold = self._deps.threshold(self._policy)
        unmeasured = threshold is None
        yield Check(
            name="model",
            ok=not unmeasured,
            detail=f"{embedder.model}, {len(vector)} dimensions, {took:.0f} ms a message"
            + (", no match threshold" if unmeasured else f", matches from {threshold:.3f}"),
            hint="`remembrancer calibrate` measures a threshold for this model (D5)." if unmeasured else None,
        )

    def _decay(self) -> Iterator[Check]:
        if self._deps.settings.memory_decay_enabled is False:
            detail = "off for the whole installation by MEMORY_DECAY_ENABLED: all are active, full lists refuse (T11)"
        elif self._deps.embedder is None:
            detail = "off without a model (T11)"
        elif not self._policy.decay_enabled:
            detail = "off by this tenant's policy: all are active, full lists refuse saves (T11)"
        else:
            detail = "on"
        yield Check(name="decay", ok=True, detail=detail)

    def _chat_model(self) -> Iterator[Check]:
        """Nobody is asked: a question costs money. What failed last says enough."""
        model = self._engine.compactor.model
        if model is None:
            detail = "not configured: summaries wait, and messages are sent as they are (D16)"
            yield Check(name="chat model", ok=True, detail=detail)
            return
        waiting, failed, error, again = self._deps.store.database.run(
            lambda c: c.execute(_SUMMARIES["failing"], {"tenant": self._deps.tenant}).fetchall()
        )[0]
        if failed:
            detail = f"{model.name}: {failed} of {waiting} chats wait after a failure: {error}"
            hint = f"The next try is at {again:%Y-%m-%d %H:%M:%S} UTC. Check REMEMBRANCER_CHAT_MODEL, _URL and _KEY."
            yield Check(name="chat model", ok=False, detail=detail, hint=hint)
        else:
            yield Check(name="chat model", ok=True, detail=f"{model.name}, {waiting} chats to look at")

    def _redis(self) -> Iterator[Check]:
        url = self._engine.settings.redis_url
        if url is None:
            yield Check(name="redis", ok=True, detail="not configured: other processes are told within a second")
            return
        try:
            retry = Retry(NoBackoff(), 0)
            with redis.Redis.from_url(
                url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS, retry=retry
            ) as client:
                client.ping()
        except (RedisError, OSError, ValueError) as error:
            detail = f"does not answer: {(str(error) or type(error).__name__).splitlines()[0]}"
            hint = (
                "Nothing is lost: other processes then learn of a save within a second. Check REMEMBRANCER_REDIS_URL."
            )
            yield Check(name="redis", ok=False, detail=detail, hint=hint)
        else:
            yield Check(name="redis", ok=True, detail="answers")

    def _disk(self) -> Iterator[Check]:
        embedded = self._engine.embedded
        if embedded is None:
            return
        free = shutil.disk_usage(embedded.data_dir).free
        yield Check(
            name="disk",
            ok=free >= FREE_BYTES,
            detail=f"{free / (1 << 30):.1f} GiB free at {embedded.data_dir}",
            hint=None if free >= FREE_BYTES else "Make room: a full disk refuses every save.",
        )


_REPAIR = "`remembrancer doctor --repair` takes it up again; all other streams go on meanwhile."
_REPORT_IT = "Its history stays readable. Update this installation, then repair again; the log has the details."


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or "0").split(".") if part.isdigit())


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
