"""SQL lives in `.sql` files beside the code that uses it: each query has a name and a line that says what it is for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString, cast

from psycopg import Cursor

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include: (\w+)\.(\w+)\s*$", re.MULTILINE)


def queries(file: str) -> dict[str, LiteralString]:
    """The queries of `projections/sql/<file>.sql` by name."""
    return load_queries("remembrancer.projections", file)


@cache
def load_queries(package: str, file: str) -> dict[str, LiteralString]:
    """The queries of `<package>/sql/<file>.sql` by name. What stands before the first name is a comment.

    A line `-- include: file.name` stands for that query of the projections.
    """
    text = files(package).joinpath("sql", f"{file}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    found = dict(zip(parts[::2], (body.strip() for body in parts[1::2]), strict=True))
    here = cast("dict[str, LiteralString]", found)
    for name, body in here.items():
        here[name] = _included(body, file, here)
    return here


def _included(body: LiteralString, file: str, here: dict[str, LiteralString]) -> LiteralString:
    """A query with each line `-- include: file.name` replaced by that query of this package."""

    def part(found: re.Match[str]) -> str:
        source = here if found[1] == file else queries(found[1])
        return source[found[2]]

    return _INCLUDE.sub(part, body)


def write(cur: Cursor[Any], query: LiteralString, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement for each row: one by itself, several in a pipeline (whose set-up one row does not pay back)."""
    if len(rows) == 1:
        cur.execute(query, rows[0], prepare=True)
    elif rows:
        cur.executemany(query, rows)
