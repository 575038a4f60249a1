"""The verb `rebuild`: the read model made anew from the events by the present code, beside the live one (U3, DESIGN 4).

1. A generation is begun: tables that nobody reads. 2. Shard after shard is poured into it, each in one transaction.
3. The tables are attached, which makes their indexes. 4. It catches up through the ordinary runner. 5. It is compared
with the live one. 6. One row switches, while both stand still and the new one is nowhere behind. 7. The old tables go.

Every step may end at any moment, by a kill or an outage: the next `run` goes on where it stopped. Any number of
processes may work at it together; a shard or a table is taken by the lock of its row, which ends with its taker.
"""

from __future__ import annotations

import difflib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors

from remembrancer.domain.errors import InvalidInput, Refused
from remembrancer.projections.building import pour_shard
from remembrancer.projections.projection import Projection
from remembrancer.projections.queries import load_queries, queries
from remembrancer.projections.runner import EventSource, Runner, is_outage, where
from remembrancer.services.answers_rebuild import Comparison, GenerationView, RebuildAnswer, RebuildStatus
from remembrancer.services.comparison import Comparing
from remembrancer.services.deps import Deps
from remembrancer.services.retired import READERS_SECONDS, Retired

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "rebuild")
_POUR = queries("rebuild")
_RUNNER = queries("runner")
STANDSTILL_SECONDS = 60.0
"""A process that stands still so long in the middle of a shard loses it."""
PAUSE_SECONDS = 0.1
NEARLY = 500
"""Events: a generation that is only so far behind can catch up while the live one waits for it."""
FAR = 10_000
"""Events: a live generation that is so far behind is not worth waiting for."""

Progress = Callable[[str, int, int], None]
"""Called with the step (``events``, ``indexes``, ``catching up``, ``comparing``), what is done of it, and all of it."""
Agreed = bool | Callable[[Comparison], bool]
"""Whether to switch where something differs."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A rebuild that is under way."""

    generation: int
    projections: Sequence[Projection]

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.projections]

    @property
    def at(self) -> dict[str, Any]:
        return {"generation": self.generation, "projections": self.names}


class _Over(Exception):
    """Another process has switched this rebuild, or cancelled it."""

    def __init__(self, state: str) -> None:
        self.state = state


class Rebuild:
    """Rebuilds. See the module."""

    def __init__(self, deps: Deps, runner: Runner, source: EventSource) -> None:
        self._store = deps.store
        self._runner = runner
        self._source = source
        made = [p for p in runner.projections if p.tables]
        self._projections = {p.name: p for p in made}
        self._retired = Retired(deps.store, made)

    # -- the verbs -----------------------------------------------------------------------------------------------------

    def run(
        self,
        projections: Sequence[str] | None = None,
        *,
        yes: Agreed = False,
        progress: Progress | None = None,
        keep_old: bool = False,
    ) -> RebuildAnswer:
        """Begin a rebuild, or go on with the one that is under way. See `Remembrancer.rebuild`."""
        began = time.monotonic()
        told: Progress = progress or (lambda _step, _done, _all: None)
        work = self._begin(projections)
        found: Comparison | None = None
        status = "switched"
        try:
            self._pour(work, told)
            self._attach(work, told)
            self._catch_up(work, told)
            self._adopt(work)
            self._not_over(work)
            comparing = Comparing(self._store, work.generation, work.projections)
            found = comparing.compare(lambda: self._come_level(work), lambda n, m: told("comparing", n, m))
            self._not_over(work)
            if found.differs and not (yes(found) if callable(yes) else yes):
                status = "waiting"
            else:
                self._catch_up(work, told)
                self._switch(work)
        except _Over as over:
            found = None  # with tables that may have gone meanwhile
            if over.state == "cancelled":
                raise Refused(
                    "The rebuild was cancelled meanwhile.",
                    hint="The read model is as it was; `remembrancer rebuild` begins anew.",
                ) from None
        events = self._ask("progress", work.at)[0][0]
        dropped, kept = ([], []) if status == "waiting" or keep_old else self._retired.drop(READERS_SECONDS)
        return RebuildAnswer(
            status=status, generation=work.generation, projections=work.names, events=events,
            seconds=round(time.monotonic() - began, 3), comparison=found, dropped=dropped, kept=kept,
        )  # fmt: skip

    def status(self) -> RebuildStatus:
        """How far a rebuild is, and which generations there are."""
        generations = [
            GenerationView(
                projection=name, generation=generation, live=live, version=version,
                current=self._projections[name].version if name in self._projections else None,
            )
            for name, generation, live, version in self._ask("generations")
        ]  # fmt: skip
        under_way = self._under_way()
        if under_way is None:
            return RebuildStatus(generations=generations)
        generation, names, state, started_at, changed_at, *_ = under_way
        events, in_all, shards, shards_in_all = self._ask("progress", {"generation": generation})[0]
        return RebuildStatus(
            state=state, generation=generation, projections=names, started_at=started_at, changed_at=changed_at,
            idle_seconds=self._ask("idle", {"generation": generation})[0][0],
            events=events, events_in_all=in_all, shards=shards, shards_in_all=shards_in_all, generations=generations,
        )  # fmt: skip

    def cancel(self) -> RebuildAnswer:
        """Give up the rebuild that is under way. Whoever works at it stops at its next shard."""
        under_way = self._under_way()
        if under_way is None or not self._write("cancel", {"generation": under_way[0]}):
            return RebuildAnswer(status="nothing")
        dropped, kept = self._retired.drop(0.0)
        return RebuildAnswer(
            status="cancelled", generation=under_way[0], projections=under_way[1], dropped=dropped, kept=kept
        )

    def drop_old(self) -> RebuildAnswer:
        """Drop the tables of generations that were switched off or cancelled."""
        dropped, kept = self._retired.drop(READERS_SECONDS)
        return RebuildAnswer(status="dropped" if dropped or kept else "nothing", dropped=dropped, kept=kept)

    # -- 1. begin, or go on --------------------------------------------------------------------------------------------

    def _begin(self, names: Sequence[str] | None) -> _Work:
        wanted = None if names is None else self._checked(names)
        while True:
            if (under_way := self._under_way()) is not None:
                if (work := self._joined(under_way, wanted)) is not None:
                    return work
                continue
            self._retired.drop(0.0)
            projections = [p for p in self._projections.values() if wanted is None or p.name in wanted]
            owned = [(table, p.name) for p in projections for table in p.tables]
            asked = {
                "projections": [p.name for p in projections],
                "versions": [p.version for p in projections],
                "tables": [table for table, _ in owned],
                "owners": [owner for _, owner in owned],
            }
            if (generation := self._ask("begin", asked)[0][0]) is not None:
                return _Work(generation, projections)

    def _checked(self, names: Sequence[str]) -> set[str]:
        if not names or isinstance(names, str):
            raise InvalidInput("No projection is named.", hint=f"There are {self._all}; left out, all are rebuilt.")
        for name in names:
            if name not in self._projections:
                near = difflib.get_close_matches(str(name), self._projections, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]}?" if near else f"There are {self._all}."
                raise InvalidInput(f"There is no projection {name!r}.", hint=hint, near=near)
        return set(names)

    @property
    def _all(self) -> str:
        *some, last = self._projections
        return f"{', '.join(some)} and {last}"

    def _joined(self, under_way: tuple[Any, ...], wanted: set[str] | None) -> _Work | None:
        """The rebuild that is under way, to go on with; None if there is none any more.

        Raises:
            Refused: it is of other projections, or of newer code.
        """
        generation, names, *_ = under_way
        if wanted is not None and wanted != set(names):
            raise Refused(
                f"A rebuild of {', '.join(names)} is under way.",
                hint="`remembrancer rebuild` goes on with it, `remembrancer rebuild --cancel` gives it up.",
            )
        built_by = dict(self._ask("built_by", {"generation": generation}))
        if any(name not in self._projections or built_by[name] > self._projections[name].version for name in names):
            raise Refused(
                "A rebuild by a newer version of Remembrancer is under way.", hint="Update this installation."
            )
        if any(built_by[name] < self._projections[name].version for name in names):
            log.warning("The rebuild that was under way is given up: its code is older than this.")
            self._write("cancel", {"generation": generation})
            return None
        return _Work(generation, [self._projections[name] for name in names])

    # -- 2. pour -------------------------------------------------------------------------------------------------------

    def _pour(self, work: _Work, told: Progress) -> None:
        """All shards, together with whoever else is at it."""
        done, in_all, *_ = self._ask("progress", work.at)[0]
        here = 0

        def events(n: int) -> None:
            nonlocal here
            here += n
            told("events", min(done + here, in_all), in_all)

        while not self._ask("all_poured", work.at)[0][0]:
            self._not_over(work)
            if not self._run(lambda conn: self._pour_one(conn, work, events)):
                time.sleep(PAUSE_SECONDS)  # the last ones are being poured by somebody else, who may be killed
            done, in_all, *_ = self._ask("progress", work.at)[0]
            here = 0
            told("events", done, in_all)

    def _pour_one(self, conn: Connection[Any], work: _Work, told: Callable[[int], None]) -> bool:
        """One shard, whole or not at all. False if none is free."""
        with conn.transaction():
            conn.execute(_RUNNER["limit_transaction"], {"milliseconds": str(round(STANDSTILL_SECONDS * 1000))})
            row = conn.execute(_POUR["claim"], work.at).fetchone()
            if row is None:
                return False
            at = work.at | {"shard": row[0]}
            try:
                with conn.transaction():
                    made = {p.name: p.build(work.generation, row[0]) for p in work.projections}
                    builds = [build for build in made.values() if build is not None]
                    position, count = pour_shard(conn, row[0], self._source.decode, builds, told)
            except Exception as error:
                if is_outage(error):
                    raise
                log.error(
                    "Shard %s has an event that cannot be folded; the runner will say which.\n%s", row[0], where(error)
                )
                conn.execute(_POUR["left_to_the_runner"], at)
            else:
                poured = [name for name, build in made.items() if build is not None]
                conn.execute(_POUR["poured"], at | {"projections": poured, "position": position, "events": count})
            return True

    # -- 3. attach -----------------------------------------------------------------------------------------------------

    def _attach(self, work: _Work, told: Progress) -> None:
        """All tables, together with whoever else is at it. Shards that an erasure has emptied are poured again."""
        while True:
            tables = self._ask("tables", work.at)
            told("indexes", sum(attached for *_, attached in tables), len(tables))
            if self._write("all_built", work.at) or self._state(work) != "building":
                self._not_over(work)
                return
            if not self._run(lambda conn: self._attach_one(conn, work)):
                time.sleep(PAUSE_SECONDS)
                self._pour(work, told) if self._state(work) == "building" else None

    def _attach_one(self, conn: Connection[Any], work: _Work) -> bool:
        with conn.transaction():
            row = conn.execute(_SQL["claim_table"], work.at).fetchone()
            if row is None:
                return False
            at = work.at | {"name": row[0]}
            conn.execute(_SQL["roomy"])
            conn.execute(_SQL["attach"], at)
            conn.execute(_SQL["attached"], at)
            conn.execute(_SQL["alive"], at)
            return True

    # -- 4. catch up ---------------------------------------------------------------------------------------------------

    def _catch_up(self, work: _Work, told: Progress | None = None) -> None:
        """Nearly to the end of the events, which may go on coming."""
        done, behind = 0, self._behind(work)
        in_all = behind
        while behind > NEARLY:
            self._not_over(work)
            read = sum(self._runner.run_batch(p, generation=work.generation) for p in work.projections)
            done, behind = done + read, self._behind(work)
            if told is not None:
                told("catching up", done, max(in_all, done + behind))
            if not read:
                time.sleep(PAUSE_SECONDS)
        for p in work.projections:
            self._runner.run_batch(p, generation=work.generation)
        self._write("alive", work.at)

    def _behind(self, work: _Work) -> int:
        return int(self._ask("behind_heads", work.at)[0][0])

    def _come_level(self, work: _Work) -> None:
        """Both generations to the end of the events, so that they can be compared: nobody may be projecting."""
        if self._ask("behind_of_live", work.at)[0][0] <= FAR:
            self._runner.catch_up(projections=work.names)
        self._catch_up(work)

    def _adopt(self, work: _Work) -> None:
        """Vectors that came while it was built."""
        for table in ("memory", "archive"):
            if table in work.names:
                self._write(f"adopt_{table}", work.at)

    # -- 6. switch -----------------------------------------------------------------------------------------------------

    def _switch(self, work: _Work) -> None:
        """In one row of each projection. The live ones stand still until the new ones are level; replies go on."""

        def switch(conn: Connection[Any]) -> bool:
            with conn.transaction():
                conn.execute(_RUNNER["limit_transaction"], {"milliseconds": str(round(STANDSTILL_SECONDS * 1000))})
                conn.execute(_SQL["lock_live"], work.at)
                for p in work.projections:
                    while self._runner.run_batch(p, generation=work.generation) > NEARLY:
                        pass
                conn.execute(_SQL["lock_new"], work.at)
                if _one(conn, "falls_short", work.at) or not conn.execute(_SQL["switched"], work.at).rowcount:
                    return False
                conn.execute(_SQL["take_down"], work.at)
                conn.execute(_SQL["put_up"], work.at)
                return True

        while not self._run(switch):
            self._not_over(work)
            self._catch_up(work)

    # -- the database --------------------------------------------------------------------------------------------------

    def _run(self, step: Callable[[Connection[Any]], bool]) -> bool:
        """One step; False also where this process stood still for so long in it that the database has ended it."""
        try:
            return self._store.database.run(step)
        except errors.IdleInTransactionSessionTimeout:
            log.warning("A step of the rebuild was lost, since this process stood still in it; it goes on.")
            return False

    def _under_way(self) -> tuple[Any, ...] | None:
        found = self._ask("under_way")
        return found[0] if found else None

    def _state(self, work: _Work) -> str:
        found = self._ask("state", work.at)
        return found[0][0] if found else "cancelled"

    def _not_over(self, work: _Work) -> None:
        """Go on, unless another process has ended it.

        Raises:
            _Over: it was switched or cancelled.
        """
        state = self._state(work)
        if state in ("switched", "cancelled"):
            raise _Over(state)

    def _ask(self, query: str, params: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._store.database.run(lambda conn: conn.execute(_SQL[query], params).fetchall())

    def _write(self, query: str, params: dict[str, Any]) -> int:
        return self._store.database.run(lambda conn: conn.execute(_SQL[query], params).rowcount)


def _one(conn: Connection[Any], query: str, at: dict[str, Any]) -> Any:
    row = conn.execute(_SQL[query], at).fetchone()
    return None if row is None else row[0]
