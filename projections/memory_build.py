"""The projection `memory`, folded in memory for a rebuild: the rows are what the lists of a shard come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from remembrancer.domain.events import Recorded
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.projections import memory_rows as rows
from remembrancer.projections.building import FoldedList, Text, copy, copy_with_vectors

_LIST = ("int2", "int2", "uuid", "text", "text", "text", "text", "int8", "date[]", "bool")
_LIST_DAY = ("int2", "int2", "uuid", "date", "bool", "uuid[]")
_MEMORY = ("int2", "int2", "uuid", "uuid", "text", "int4[]", "timestamptz", "timestamptz", "date", "text[]", "text[]",
           "text", "text", "jsonb", "bool", "bool", "text", "halfvec")  # fmt: skip
_MEMORY_USE = ("int2", "int2", "uuid", "uuid", "date", "int4", "bool", "int4", "timestamptz", "date", "text[]",
               "text[]", "timestamptz", "date", "int4", "timestamptz", "jsonb")  # fmt: skip


class MemoryBuild:
    """Writes `list`, `list_day`, `memory` and `memory_use`, list after list."""

    def __init__(self, generation: int, shard: int) -> None:
        self._generation, self._shard = generation, shard

    def take(self, r: Recorded, state: MemoryList) -> None:
        """Nothing: the list's state is all."""

    def pour(self, conn: Connection[Any]) -> None:
        """Nothing: any later event may change any row."""

    def finish(self, conn: Connection[Any], lists: Sequence[FoldedList]) -> None:
        """All rows."""
        g, s = self._generation, self._shard
        listed = (
            (g, s, x.stream, x.tenant, *x.key, x.version, list(x.state.days.days), x.state.cleared) for x in lists
        )
        copy(conn, "list", g, _LIST, listed)
        off = (
            (g, s, x.stream, day, out.all_but, sorted(out.ids)) for x in lists for day, out in x.state.days.off.items()
        )
        copy(conn, "list_day", g, _LIST_DAY, off)
        copy_with_vectors(conn, "memory", g, s, _MEMORY, self._memories(lists))
        copy(conn, "memory_use", g, _MEMORY_USE, self._uses(lists))

    def _memories(self, lists: Sequence[FoldedList]) -> Iterator[tuple[tuple[Any, ...], Text]]:
        for x in lists:
            owner = x.key.owner
            at = (self._generation, self._shard, x.stream)
            for m in x.state.memories.values():
                row = rows.text_row(m, x.tenant, owner)
                yield (*at, *(row[name] for name in rows.TEXT_COLUMNS)), (x.tenant, owner, row["digest"])

    def _uses(self, lists: Sequence[FoldedList]) -> Iterator[tuple[Any, ...]]:
        for x in lists:
            at = (self._generation, self._shard, x.stream)
            for m in x.state.memories.values():
                row = rows.use_row(m)
                row["uses"] = Jsonb(row["uses"], _as_it_is)
                yield (*at, *row.values())


def _as_it_is(text: str) -> str:
    return text
