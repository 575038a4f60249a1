"""Brings a database to the present schema: once, under a lock, whole or not at all.

A runner of our own, since it is one transaction: PostgreSQL's DDL is transactional, so a process that is killed
leaves neither half a schema nor a lock behind (see `docs/decisions/shard-heads.md`).
"""

from __future__ import annotations

from importlib.resources import files

import psycopg

from remembrancer.domain.errors import Unavailable
from remembrancer.services.store import sql
from remembrancer.services.store.pool import Connection, connected, unavailable


def migrations() -> dict[str, str]:
    """Name and SQL of each migration that this version brings, in order."""
    found = (f for f in (files(__package__) / "migrations").iterdir() if f.name.endswith(".sql"))
    return {f.name.removesuffix(".sql"): f.read_text(encoding="utf-8") for f in sorted(found, key=lambda f: f.name)}


def migrate(url: str) -> None:
    """Makes or updates every table. Any number of processes may call it at the same moment; all of them succeed.

    Raises:
        Unavailable: the database cannot be reached, lacks pgvector or the right to create, or was migrated by a newer
            version. Nothing was changed.
    """
    ours = migrations()
    with connected(url) as connection:
        if set(ours) == _applied(connection):
            return
        try:
            with connection.transaction():
                connection.execute(sql.BEGIN_MIGRATION)
                _apply(connection, ours)
        except psycopg.Error as error:
            raise _explained(error) from error


def _apply(connection: Connection, ours: dict[str, str]) -> None:
    applied = _applied(connection)
    if newer := sorted(applied - set(ours)):
        raise Unavailable(
            f"The database was migrated by a newer version of Remembrancer ({newer[-1]}).",
            hint="Update this installation. Nothing was changed.",
            migrations=newer,
        )
    for name, statements in ours.items():
        if name not in applied:
            connection.execute(statements.encode())
            connection.execute(sql.RECORD_MIGRATION, (name,))


def _applied(connection: Connection) -> set[str]:
    if connection.execute(sql.HAS_MIGRATIONS).fetchone() != (True,):
        return set()
    return {name for (name,) in connection.execute(sql.APPLIED_MIGRATIONS)}


def _explained(error: psycopg.Error) -> Unavailable | psycopg.Error:
    said = str(error).splitlines()[0]
    if error.sqlstate in ("0A000", "58P01") and "vector" in said:
        return Unavailable(
            f"The database has no pgvector: {said}", hint="Install the extension `vector` on the server."
        )
    if error.sqlstate == "42501":
        return Unavailable(
            f"The database does not let us make tables: {said}",
            hint="Let its owner run `CREATE EXTENSION vector; CREATE SCHEMA remembrancer AUTHORIZATION <our role>`.",
        )
    return unavailable(error) or error
