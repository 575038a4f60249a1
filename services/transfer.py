"""The verbs `export` and `import`: a tenant's memories and settings as lines, and back; and TomoriBot's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from psycopg import Connection

from remembrancer.domain.errors import InvalidInput, RemembrancerError
from remembrancer.domain.identity import ListKey, Subject, check_key, list_key, list_stream
from remembrancer.domain.imports import Incoming
from remembrancer.domain.memory import Memory, State
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import ERASED, check_text
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import ImportAnswer, Skipped
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.finder import Finder
from remembrancer.services.formats.rows import Header, MemoryRow, as_moment, read_header, read_row
from remembrancer.services.formats.tomori import read_tomori
from remembrancer.services.intake import Intake
from remembrancer.services.moved_settings import MovedSettings
from remembrancer.services.remember import names
from remembrancer.services.vectors import Vectors
from remembrancer.services.waiting import Waiting

_SQL = load_queries("remembrancer.services", "transfer")
LISTS_AT_ONCE = 50
LONGEST = 20_000
NAMED = 60
"""Characters by which a memory that is left out is named."""

Progress = Callable[[int, int | None], None]


class Transfer:
    """What leaves, and what comes in. See `Remembrancer.export`, `import_rows` and `import_tomori`."""

    def __init__(self, deps: Deps, vectors: Vectors, finder: Finder, waiting: Waiting) -> None:
        self._deps = deps
        self._vectors = vectors
        self._finder = finder
        self._waiting = waiting
        self._settings = MovedSettings(deps)

    # -- out ------------------------------------------------------------

    def export(self, persona: str | None) -> Iterator[dict[str, Any]]:
        """The header, what is set, and every memory, as plain JSON: list by list, each as of one moment.

        The order is that of names and stamps, so that two exports can be compared line by line. What is gone or erased
        is not in it.

        Raises:
            NotFound: a persona that never was (D31).
        """
        if persona is not None:
            check_key("persona", persona)
        keys = [home.key for home in self._finder.lists(persona)]
        if persona is not None and not keys:
            self._waiting.settle()
            if not self._finder.knows(persona):
                raise self._finder.no_such_persona(persona)
        return self._lines(persona, keys)

    def _lines(self, persona: str | None, keys: Sequence[ListKey]) -> Iterator[dict[str, Any]]:
        policy, _ = self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))
        yield Header(
            tenant=self._deps.tenant,
            exported_at=self._deps.now(),
            persona=persona,
            longest=min(LONGEST, max(policy.max_characters, self._longest())),
        ).line()
        if persona is None:
            yield from (row.line() for row in self._settings.policy())
            subjects = self._settings.everybody()
        else:
            subjects = [Subject("persona", persona), *sorted({key.owner for key in keys})]
        yield from (row.line() for row in self._settings.rows(subjects))
        for start in range(0, len(keys), LISTS_AT_ONCE):
            part = keys[start : start + LISTS_AT_ONCE]
            loaded = self._deps.store.load_many([(list_stream(self._deps.tenant, key), LIST) for key in part])
            for key, at in zip(part, loaded, strict=True):
                yield from self._memories(key, at.state, policy)

    def _memories(self, key: ListKey, s: MemoryList, policy: Policy) -> Iterator[dict[str, Any]]:
        today = self._deps.now().date()
        for m in sorted(s.memories.values(), key=lambda m: (m.created_at, m.updated_at, m.text)):
            if m.text != ERASED:
                yield _row(m, key, s, m.state(s.days, policy, today)).line()

    def _longest(self) -> int:
        def work(conn: Connection[Any]) -> int:
            found = conn.execute(_SQL["longest"], {"tenant": self._deps.tenant}).fetchone()
            return 0 if found is None else int(found[0])

        return self._deps.store.database.run(work)

    # -- in ------------------------------------------------------------

    def import_rows(self, rows: Iterable[object], progress: Progress | None) -> ImportAnswer:
        """Bring in an export of ours. A row that cannot be taken is skipped and named; the header must fit.

        The same rows again bring nothing: what a list says already stays as it is, its counter too. A row skipped once
        comes in when what was wrong with it is put right and the file is imported again.

        Raises:
            InvalidInput: this is no export of ours; nothing was written.
        """
        if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
            raise InvalidInput("The rows of an export are a sequence of JSON objects, the header first.")
        total = len(rows) if isinstance(rows, Sized) else None
        each = iter(rows)
        header = read_header(each)
        coming = _Coming(Intake(self._deps, self._vectors), progress, total)
        limit = max(self._policy().max_characters, header.longest)
        for number, raw in enumerate(each, start=2):
            with coming.row(number, raw.get("text") if isinstance(raw, Mapping) else None):
                row = read_row(raw)
                if isinstance(row, MemoryRow):
                    coming.add(*_incoming(row, limit))
                elif self._settings.bring(row):
                    coming.settings += 1
                    limit = max(limit, self._policy().max_characters)
        return coming.answer()

    def import_tomori(
        self, data: Mapping[str, Any], persona: str | None, subject: str | None, progress: Progress | None
    ) -> ImportAnswer:
        """Bring in a TomoriBot file: server memories of a workspace, or a user's personal and global ones.

        A persona that is given gets all of it; left out, each bucket goes to the persona of its name. Memories are as
        old as the export, in its order; they are not protected (T13), and their tags are ours (T10).

        Raises:
            InvalidInput: no such file, or nobody says of which server or user it is; nothing was written.
        """
        file = read_tomori(data)
        for what, name in (("persona", persona), ("subject", subject)):
            if name is not None:
                check_key(what, name)
        keyed = [(file.key(bucket, persona, subject), bucket) for bucket in file.data.buckets]
        items = [(key, bucket, memory) for key, bucket in keyed for memory in bucket.memories]
        now = self._deps.now()
        at = min(as_moment(file.exported_at) or now, now)
        coming = _Coming(Intake(self._deps, self._vectors), progress, len(items))
        limit = self._policy().max_characters
        for number, (key, bucket, memory) in enumerate(items, start=1):
            with coming.row(number, memory.content, place=bucket.label or bucket.name):
                stamp = at - timedelta(microseconds=number)
                check_text(memory.content, limit)
                tags = names("tag", memory.tags)
                coming.add(key, Incoming(memory.content, created_at=stamp, updated_at=stamp, tags=tags))
        return coming.answer()

    def _policy(self) -> Policy:
        return self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))[0]


class _Coming:
    """An import under way: what is to be written, what was left out and why, how far it is."""

    def __init__(self, intake: Intake, progress: Progress | None, total: int | None) -> None:
        self._intake = intake
        self._progress = progress
        self._total = total
        self._skipped: list[Skipped] = []
        self._done = 0
        self.settings = 0

    @contextmanager
    def row(self, number: int, text: object, *, place: str = "") -> Iterator[None]:
        """One row: what is wrong with it alone is noted, with the beginning of its text."""
        try:
            yield
        except RemembrancerError as error:
            if error.status >= 500:
                raise
            named = ", ".join(part for part in (place, _beginning(text)) if part)
            self._skipped.append(Skipped(row=number, why=f"{named}: {error}" if named else str(error)))
        self._done = number

    def add(self, key: ListKey, memory: Incoming) -> None:
        """A memory that can be taken."""
        if self._intake.add(key, memory):
            self._report()

    def answer(self) -> ImportAnswer:
        """Write the last ones."""
        self._intake.flush()
        self._report()
        return ImportAnswer(
            imported=self._intake.imported,
            duplicates=self._intake.duplicates,
            skipped=self._skipped,
            settings=self.settings,
            without_vector=self._intake.without_vector,
        )

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)


def _beginning(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        return ""
    readable = " ".join(text.encode("utf-8", "replace").decode().replace("\x00", " ").split())
    return f"\u201c{readable[:NAMED]}\u2026\u201d" if len(readable) > NAMED else f"\u201c{readable}\u201d"


def _row(m: Memory, key: ListKey, s: MemoryList, state: State) -> MemoryRow:
    """Everything that is known of a memory."""
    return MemoryRow(
        id=m.id,
        persona=key.persona,
        scope=key.scope,
        subject=key.subject,
        text=m.text,
        state=state,
        until=m.until,
        unused_days=m.unused_days(s.days),
        pinned=m.pinned,
        protected=m.protected,
        actor=m.actor,
        created_at=m.created_at,
        updated_at=m.updated_at,
        last_matched_at=m.last_matched_at,
        tags=m.tags,
        channels=m.channels,
        source=m.source if m.turn is None else m.source.model_copy(update={"turn": m.turn}),
    )


def _incoming(row: MemoryRow, limit: int) -> tuple[ListKey, Incoming]:
    """Where a memory goes, and what is brought.

    Raises:
        InvalidInput, TextTooLong: a name or the text cannot be.
    """
    return list_key(row.persona, row.scope, row.subject), Incoming(
        text=check_text(row.text, limit),
        id=row.id,
        by=row.actor,
        until=row.until,
        unused_days=row.unused_days,
        pinned=row.pinned,
        protected=row.protected,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_matched_at=row.last_matched_at,
        tags=names("tag", row.tags),
        channels=names("channel", row.channels),
        source=row.source,
    )
