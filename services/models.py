"""Which embedding model serves the tenant, and how to reach it (D23, docs/decisions/changing-the-model.md).

The settings of a process name a model; what serves is recorded in the database, once for all processes. They differ
from a change of the settings until every memory has a vector of the new model, and wherever a process runs under other
settings than the rest. Replies, saves and searches always use the one that serves.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.projections.queries import load_queries
from remembrancer.services.clock import Clock
from remembrancer.services.embedders import Embedder, EmbedderFailed, Vector, make_embedder
from remembrancer.services.settings import Settings
from remembrancer.services.store import EventStore

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "models")

OPENAI = "https://api.openai.com/v1"
"""Where an endpoint without an address is."""


class Met(NamedTuple):
    """A model that a tenant has met: it serves, is about to take over, or was left."""

    model: str
    state: Literal["serving", "coming", "left"]
    since: datetime
    url: str | None
    dimensions: int | None
    error: str | None
    error_at: datetime | None


class Models:
    """The embedders of one tenant in this process. Safe to share between threads.

    Attributes:
        own: that of the settings; None for ``none``, and then nothing here does anything (T11).
        serving: that of the model which serves, as last looked up. Whoever relies on it has to notice a switch.
        coming: that of the model which is to take over, if a change is on and this process can reach it.
    """

    def __init__(self, store: EventStore, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._made: dict[str, Embedder] = {}
        self._measured: set[str] = set()
        self.met: dict[str, Met] = {}
        self.own: Embedder | None = None
        self.serving: Embedder | None = None
        self.coming: Embedder | None = None
        if settings.embedder != "none":
            self._start()

    def _start(self) -> None:
        s = self._settings
        self.met = self._look_up()
        name = f"{s.embedder}:{s.embedder_model}"
        self.own = make_embedder(
            s.embedder,
            url=s.embedder_url,
            model=s.embedder_model,
            key=s.embedder_key,
            dimensions=self._dimensions(name),
        )
        assert self.own is not None
        self._made[self.own.model] = self.own
        at = {"model": self.own.model, "url": self.own_url, "dimensions": self.own.dimensions, "now": self._clock()}
        try:
            if all(one.state != "serving" for one in self.met.values()):
                self._write("first", at)
            elif self.own.model in self.met and self.met[self.own.model].url != self.own_url:
                self._write("moved_to", at)
        except Unavailable as unavailable:  # a standby, say: reading goes on
            log.warning("The model of this process is not recorded: %s", unavailable)
        self.look_again()
        met = self.met.get(self.own.model)
        if met is not None and met.state == "left":
            log.warning(
                "The settings name %s, but %s serves this tenant and is used. `remembrancer doctor` says what to do.",
                self.own.model,
                self.serving and self.serving.model,
            )

    @property
    def own_url(self) -> str | None:
        """Where the settings' endpoint is, as it may be recorded; None for the built-in model."""
        s = self._settings
        return public_part(s.embedder_url or OPENAI) if s.embedder == "openai" else None

    def look_again(self) -> Embedder | None:
        """The model that serves now, as the database has it."""
        if self.own is None:
            return None
        met = self._look_up()
        with self._lock:
            self.met = met
            by_state = {one.state: one for one in met.values()}
            serving, coming = by_state.get("serving"), by_state.get("coming")
            if serving is None:
                self.serving = self.serving or self.own
            elif self.serving is None or self.serving.model != serving.model:
                self.serving = self._embedder(serving)
            if coming is None or not self._can_reach(coming):
                self.coming = None
            elif self.coming is None or self.coming.model != coming.model:
                self.coming = self._embedder(coming)
        return self.serving

    def measured(self, model: str, dimensions: int) -> None:
        """Note how long the vectors of a model are, once some are kept (C25)."""
        if model not in self._measured:
            self._write("measured", {"model": model, "dimensions": dimensions})
            self._measured.add(model)

    def close(self) -> None:
        """Close every embedder. What waits for one ends."""
        for embedder in {self.serving, self.own, *self._made.values()} - {None}:
            with suppress(Exception):
                embedder.close()  # type: ignore[union-attr]

    def _look_up(self) -> dict[str, Met]:
        at = {"tenant": self._settings.tenant}

        def work(conn: Connection[Any]) -> dict[str, Met]:
            return {row[0]: Met(*row) for row in conn.execute(_SQL["models"], at, prepare=True)}

        return self._store.database.run(work)

    def _write(self, query: str, at: dict[str, Any]) -> None:
        at = at | {"tenant": self._settings.tenant}
        self._store.database.run(lambda conn: conn.execute(_SQL[query], at))

    def _dimensions(self, model: str) -> int | None:
        if model in self.met and self.met[model].dimensions is not None:
            return self.met[model].dimensions

        def work(conn: Connection[Any]) -> int | None:
            row = conn.execute(_SQL["dimensions"], {"model": model}).fetchone()
            return None if row is None else int(row[0])

        return self._store.database.run(work)

    # -- how to reach them -----------------------------------------------------------------------------------------

    def _embedder(self, one: Met) -> Embedder:
        """The embedder of a model, made once. One that cannot be made fails at each call, and says what to set."""
        if one.model not in self._made:
            self._made[one.model] = self._make(one)
        return self._made[one.model]

    def _make(self, one: Met) -> Embedder:
        kind, _, name = one.model.partition(":")
        if kind == "local":
            local = make_embedder("local")
            if local is not None and local.model == one.model:
                return local
            return Unreachable(one, "this version does not bring it", "Install the version that did.")
        url = self._settings.embedder_previous_url if one.state == "serving" else None
        if (url := url or one.url) is None:
            return Unreachable(one, "nobody has noted where it is", "Set REMEMBRANCER_EMBEDDER_PREVIOUS_URL.")
        return make_embedder("openai", url=url, model=name, key=self._key(one, url), dimensions=one.dimensions) or (
            Unreachable(one, "it cannot be made")
        )

    def _key(self, one: Met, url: str) -> str | None:
        """A key goes to the server that it is for and to no other."""
        s = self._settings
        if one.state == "serving" and s.embedder_previous_key is not None:
            return s.embedder_previous_key
        return s.embedder_key if self._is_ours(url) else None

    def _is_ours(self, url: str) -> bool:
        """Is this the server of the settings' own endpoint?"""
        return self.own_url is not None and urlsplit(public_part(url))[:2] == urlsplit(self.own_url)[:2]

    def _can_reach(self, one: Met) -> bool:
        """Is it the settings' own, built in, or behind the same endpoint?"""
        assert self.own is not None
        own = one.model == self.own.model
        return own or one.model.startswith("local:") or (one.url is not None and self._is_ours(one.url))


def public_part(url: str) -> str:
    """An address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Unreachable:
    """Stands for a model that this process cannot ask. Replies go on without search (T8)."""

    def __init__(self, one: Met, why: str, hint: str | None = None) -> None:
        self.model, self.dimensions = one.model, one.dimensions
        self._why, self._hint = why, hint

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """Fails."""
        raise EmbedderFailed(f"{self.model} cannot be reached: {self._why}", hint=self._hint)

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """Fails."""
        raise EmbedderFailed(f"{self.model} cannot be reached: {self._why}", hint=self._hint)

    def warm(self, *, timeout: float) -> None:
        """Fails."""
        self.embed_query("", timeout=timeout)

    def close(self) -> None:
        """Nothing to close."""
