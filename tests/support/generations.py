"""What the tables of a generation say, to be compared with those of another, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, sql

from remembrancer.services.remembrancer import Remembrancer

OF = {"list": "memory", "list_day": "memory", "memory": "memory", "memory_use": "memory", "archive": "archive",
      "history": "history", "candidate": "history", "wording": "history", "chat": "conversation",
      "message": "conversation", "summary": "conversation", "summary_rule": "conversation",
      "summary_rebuild": "conversation", "document": "documents", "passage": "documents"}  # fmt: skip
"""Table to projection."""


def rows(conn: Connection[Any], generations: Mapping[str, int]) -> Mapping[str, Sequence[str]]:
    """All that the tables say in these generations, by projection, in an order of our own."""
    every = sql.SQL("SELECT (to_jsonb(t) - 'generation')::text FROM remembrancer.{} t WHERE generation = %s ORDER BY 1")
    return {
        table: [row[0] for row in conn.execute(every.format(sql.Identifier(table)), (generations[owner],))]
        for table, owner in OF.items()
        if owner in generations
    }


def live(conn: Connection[Any]) -> dict[str, int]:
    """The live generation of each projection."""
    return dict(conn.execute("SELECT projection, generation FROM remembrancer.generation WHERE live").fetchall())


def live_rows(memory: Remembrancer) -> Mapping[str, Sequence[str]]:
    """All that replies and readers see now."""
    with memory.engine.store.database.connection() as conn:
        return rows(conn, live(conn))


def tables(memory: Remembrancer) -> set[str]:
    """Every table of every generation."""
    like = "SELECT relname FROM pg_class WHERE relnamespace = 'remembrancer'::regnamespace AND relkind = 'r'"
    with memory.engine.store.database.connection() as conn:
        names = {row[0] for row in conn.execute(like)}
    return {name for name in names if name.rpartition("_")[0] in OF and name.rpartition("_")[2].isdigit()}
