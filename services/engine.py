"""Puts the parts together: settings, database, event store, projections, services. Nothing else knows them all."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from psycopg import Connection

from remembrancer.domain.errors import Unavailable
from remembrancer.domain.events import Recorded
from remembrancer.projections.archive import ArchiveProjection
from remembrancer.projections.conversation import ConversationProjection
from remembrancer.projections.documents import DocumentsProjection
from remembrancer.projections.history import HistoryProjection
from remembrancer.projections.memory import MemoryProjection
from remembrancer.projections.projection import ReadStream
from remembrancer.projections.runner import Runner
from remembrancer.projections.summary_work import SummaryWorkFollower
from remembrancer.projections.worker import Worker
from remembrancer.services.change_model import ChangeOfModel
from remembrancer.services.chat_models import make_chat_model
from remembrancer.services.chats import Chats
from remembrancer.services.clock import system_clock, utc
from remembrancer.services.compactor import Compactor
from remembrancer.services.configure import Configure
from remembrancer.services.deep_memory import DeepMemory
from remembrancer.services.deps import Deps
from remembrancer.services.embedded import EmbeddedPostgres, open_embedded
from remembrancer.services.finder import Finder
from remembrancer.services.models import Models
from remembrancer.services.opening import Opening
from remembrancer.services.reading import Reading
from remembrancer.services.recall import Recall
from remembrancer.services.remember import Remember
from remembrancer.services.settings import Settings
from remembrancer.services.signal import Listener, Signal, make_signal
from remembrancer.services.store import EventStore, StoreSource, UnknownEvent, migrate, open_store
from remembrancer.services.summariser import Summariser
from remembrancer.services.turns import Turns
from remembrancer.services.undo import Undo
from remembrancer.services.vectors import Vectors
from remembrancer.services.waiting import Waiting

if TYPE_CHECKING:
    from remembrancer.services.at import At
    from remembrancer.services.calibrate import Calibrator
    from remembrancer.services.chat_import import ChatImport
    from remembrancer.services.diff import Diff
    from remembrancer.services.doctor import Doctor
    from remembrancer.services.documents import Documents
    from remembrancer.services.drafting import Drafting
    from remembrancer.services.erase import Erase
    from remembrancer.services.personas import Personas
    from remembrancer.services.rebuild import Rebuild
    from remembrancer.services.summaries import SummaryVerbs
    from remembrancer.services.talking import Talking
    from remembrancer.services.tools import Tools
    from remembrancer.services.transfer import Transfer
    from remembrancer.services.what_if import WhatIfs
    from remembrancer.services.why import Why

log = logging.getLogger("remembrancer")
CATCH_UP_SECONDS = 3.0
TAKE_UP_SECONDS = 30.0
SUMMARISE_AFTER_SECONDS = 2.0
"""A process that comes and goes, such as a command, asks no chat model whose answer it would not wait for."""


def _stream_reader(store: EventStore) -> ReadStream:
    """Reads a whole stream up to a version, inside the caller's transaction."""

    def read(conn: Connection[Any], stream: UUID, upto: int) -> Sequence[Recorded]:
        rows = store.select_streams(conn, [(stream, 0)])
        return store.decode([row for row in rows if row[3] <= upto], conn)

    return read


class Engine:
    """All parts of one `open_memory`.

    Args:
        settings: where and how.
        clock: returns an aware moment; left out, the system's.
        background: whether projections run in a thread of this process. Without it replies are right all the same.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], datetime] | None, background: bool = True) -> None:
        self.settings = settings
        self.embedded: EmbeddedPostgres | None = None
        self._closed = False
        self._close_lock = threading.Lock()
        url = settings.database_url
        if url is None:
            self.embedded = open_embedded(settings.data_dir)
            url = self.embedded.url
        try:
            migrate(url)
            self._build(settings, url, utc(clock or system_clock), background)
        except BaseException:
            for part in (getattr(self, "signal", None), getattr(self, "store", None), self.embedded):
                if part is not None:
                    part.close()
            raise
        atexit.register(self.close)

    def _build(self, settings: Settings, url: str, clock: Callable[[], datetime], background: bool) -> None:
        self.signal: Signal = make_signal(settings.redis_url)
        self.store = open_store(url, clock=clock, on_commit=self.signal.publish)
        self.deps = Deps(self.store, clock, settings, Models(self.store, settings, clock))
        self.vectors = Vectors(self.deps)
        self.change = ChangeOfModel(self.deps, self.vectors)
        self.finder = Finder(self.deps)
        self.turns = Turns(self.finder)
        self.waiting = Waiting(self.deps)
        self.remember = Remember(self.deps, self.vectors, self.finder, self.turns)
        self.chats = Chats(self.deps, self.turns, self.waiting)
        self.deep = DeepMemory(self.deps, self.chats, self.finder, self.remember, self.vectors)
        self.chats.on_gone = self.deep.forget_gone
        self.chats.deep_memory = self.deep.view
        self.undo = Undo(self.deps, self.finder, self.chats)
        self.opening = Opening(self.deps, self.chats)
        self.recall = Recall(self.deps, self.turns, self.undo, self.chats)
        self.reading = Reading(self.deps, self.finder, self.waiting)
        self.configure = Configure(self.deps)
        read_stream = _stream_reader(self.store)
        self.runner = Runner(
            self.store.database.connection,
            StoreSource(self.store),
            [
                MemoryProjection(read_stream),
                ArchiveProjection(read_stream),
                HistoryProjection(),
                ConversationProjection(read_stream),
                DocumentsProjection(),
                SummaryWorkFollower(),
            ],
        )
        self.runner.on_progress = self.waiting.progressed
        chat_model = make_chat_model(
            settings.chat_model, url=settings.chat_model_url, key=settings.chat_model_key, prices=settings.chat_prices
        )
        self.summariser = Summariser(self.deps, self.chats, self.runner)
        self.compactor = Compactor(self.deps, self.summariser, self.deep, chat_model)
        self.worker: Worker | None = None
        self._compacting: Future[int] | None = None
        self._compact_at = time.monotonic() + SUMMARISE_AFTER_SECONDS
        self._compact_pool = ThreadPoolExecutor(1, thread_name_prefix="remembrancer-summaries")
        self._chores = ThreadPoolExecutor(1, thread_name_prefix="remembrancer-chores")
        self._chore: Future[None] | None = None
        self._take_up_at = 0.0
        if background:
            listener = self.signal.listen()
            self.worker = Worker(
                uuid4(),
                self.store.database.connection,
                self.runner,
                _waiter(listener),
                wake=listener.wake,
                chores=[self._embed_pending, self._take_up_again, self._compact],
                revive=None if self.embedded is None else self.embedded.revive,
            )
            self.worker.start()

    # Imported at their first use: most processes need none of them.

    @cached_property
    def personas(self) -> Personas:
        """Deletes personas."""
        from remembrancer.services.personas import Personas

        return Personas(self.deps, self.finder)

    @cached_property
    def tools(self) -> Tools:
        """What a model calls in mid-reply."""
        from remembrancer.services.tools import Tools

        return Tools(self.deps, self.remember, self.finder, self.turns)

    @cached_property
    def drafting(self) -> Drafting:
        """Drafts memories, and saves them out of a conversation."""
        from remembrancer.services.drafting import Drafting

        return Drafting(self.deps, self.chats, self.remember, self.vectors, self.compactor.model)

    @cached_property
    def talking(self) -> Talking:
        """Plays turns with the chat model."""
        from remembrancer.services.talking import Talking

        return Talking(self.deps, self.recall, self.chats, self.tools, self.summaries, self.compactor.model)

    @cached_property
    def chat_import(self) -> ChatImport:
        """Brings chats of other programs in."""
        from remembrancer.services.chat_import import ChatImport

        return ChatImport(self.deps, self.chats)

    @cached_property
    def transfer(self) -> Transfer:
        """Import and export."""
        from remembrancer.services.transfer import Transfer

        return Transfer(self.deps, self.vectors, self.finder, self.waiting)

    @cached_property
    def biographer(self) -> Why:
        """Tells the lives of memories."""
        from remembrancer.services.layers import Layers
        from remembrancer.services.why import Why

        layers = Layers(self.deps, self.chats, self.summariser)
        return Why(self.deps, self.finder, self.waiting, self.reading, layers)

    @cached_property
    def documents(self) -> Documents:
        """Documents of personas and servers."""
        from remembrancer.services.documents import Documents

        return Documents(self.deps, self.vectors, self.finder, self.waiting)

    @cached_property
    def calibrator(self) -> Calibrator:
        """Measures the match threshold."""
        from remembrancer.services.calibrate import Calibrator

        return Calibrator(self.deps)

    @cached_property
    def doctor(self) -> Doctor:
        """Looks whether all is well."""
        from remembrancer.services.doctor import Doctor

        return Doctor(self)

    @cached_property
    def at(self) -> At:
        """Looks at past moments."""
        from remembrancer.services.at import At

        return At(self.deps, self.finder)

    @cached_property
    def diff(self) -> Diff:
        """Compares two of them."""
        from remembrancer.services.diff import Diff

        return Diff(self.at)

    @cached_property
    def erasure(self) -> Erase:
        """Erases people."""
        from remembrancer.services.erase import Erase

        return Erase(self.deps)

    @cached_property
    def what_ifs(self) -> WhatIfs:
        """Folds histories under other numbers."""
        from remembrancer.services.what_if import WhatIfs

        return WhatIfs(self.deps, self.finder)

    @cached_property
    def rebuilding(self) -> Rebuild:
        """Makes the read model anew."""
        from remembrancer.services.rebuild import Rebuild

        return Rebuild(self.deps, self.runner, StoreSource(self.store))

    @cached_property
    def summaries(self) -> SummaryVerbs:
        """Reads, edits and rebuilds summaries."""
        from remembrancer.services.summaries import SummaryVerbs

        return SummaryVerbs(self.deps, self.chats, self.finder, self.summariser, self.compactor.model)

    def _take_up_again(self) -> None:
        """Go on with streams that a newer version wrote to, if this is that version."""
        if time.monotonic() >= self._take_up_at:
            self._take_up_at = time.monotonic() + TAKE_UP_SECONDS
            self.runner.take_up_again(UnknownEvent.__name__)

    def _embed_pending(self) -> None:
        """Make up for vectors that could not be had, and get those of a model that is to take over, beside the
        projections: a model may take its time (D22, D23)."""
        due = self.vectors.is_due() or self.change.is_due()
        if due and (self._chore is None or self._chore.done()):
            self._chore = self._chores.submit(self._do_chores)

    def _do_chores(self) -> None:
        for one in (self.vectors, self.change):
            try:
                if one.is_due():
                    one.chore()
            except Unavailable as unavailable:
                log.info("Missing vectors are asked for again later: %s", unavailable)
            except Exception:
                log.exception("The vectors stumble and go on.")

    def _compact(self) -> None:
        """Summarise what is due, beside the projections and never in the way of a reply (R4)."""
        if self.compactor.model is None or not self.compactor.automatic or time.monotonic() < self._compact_at:
            return
        if self._compacting is None or self._compacting.done():
            self._compacting = self._compact_pool.submit(self._do_compact)

    def _do_compact(self) -> int:
        try:
            return self.compactor.work()
        except Unavailable as unavailable:
            log.info("Summaries wait: %s", unavailable)
        except Exception:
            log.exception("The summaries stumble and go on.")
        return 0

    def _catch_up(self) -> None:
        """Project what there is, whoever holds the leases, for a while at most: nobody may come after us."""
        end = time.monotonic() + CATCH_UP_SECONDS
        for projection in self.runner.projections:
            while time.monotonic() < end and self.runner.run_batch(projection):
                pass

    def close(self) -> None:
        """See `Remembrancer.close`. A second call does nothing."""
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        database = self.store.database  # one that is away must not hold up an end
        database.patience = database.pool.timeout = min(database.patience, CATCH_UP_SECONDS)
        if self.worker is not None:
            self.worker.stop()
            with suppress(Exception):
                self._catch_up()
        self.compactor.stop()
        if self.compactor.model is not None:
            self.compactor.model.close()  # ends what a summary waits for
        self._compact_pool.shutdown(cancel_futures=True)
        self.recall.close()
        self.change.stop()
        self.deps.models.close()  # ends what a chore waits for
        self._chores.shutdown(cancel_futures=True)
        self.signal.close()
        self.store.close()
        if self.embedded is not None:
            self.embedded.close()


def _waiter(listener: Listener) -> Callable[[float], Collection[int]]:
    def wait(timeout: float) -> Collection[int]:
        return listener.wait(timeout)

    return wait
