"""Migrations run once, whole, whoever starts them and whoever is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from uuid import UUID

import psycopg
import pytest

from remembrancer.domain.errors import Unavailable
from remembrancer.services.store import migrate, open_store
from remembrancer.services.store.migrate import migrations

MIGRATE = "import sys; from remembrancer.services.store import migrate; migrate(sys.argv[1])"


def start(url):
    return subprocess.Popen([sys.executable, "-c", MIGRATE, url], stderr=subprocess.PIPE, text=True)


def applied(url):
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT name FROM remembrancer.migration ORDER BY name").fetchall()
    return [name for (name,) in rows]


def test_six_processes_at_once_all_succeed(empty_database_url):
    processes = [start(empty_database_url) for _ in range(6)]
    assert [(p.communicate(timeout=60)[1], p.returncode) for p in processes] == [("", 0)] * 6
    assert applied(empty_database_url) == list(migrations())
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM remembrancer.head").fetchone() == (256,)


def test_a_second_run_changes_nothing_and_takes_no_lock(database_url):
    with psycopg.connect(database_url) as holder:
        holder.execute("LOCK remembrancer.head, remembrancer.event IN ACCESS EXCLUSIVE MODE")
        migrate(database_url)


def test_a_process_that_is_killed_leaves_neither_lock_nor_half_a_schema(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as watcher:
        watcher.execute(
            "CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); END'"
        )
        watcher.execute(
            "CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('CREATE FUNCTION') EXECUTE FUNCTION wait()"
        )
        killed = start(empty_database_url)
        asleep = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        while not watcher.execute(asleep).rowcount:
            assert killed.poll() is None
            time.sleep(0.01)
        killed.kill()
        killed.communicate()
        watcher.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        watcher.execute("DROP EVENT TRIGGER slow")
        assert not watcher.execute("SELECT FROM pg_namespace WHERE nspname = 'remembrancer'").rowcount
    migrate(empty_database_url)
    assert applied(empty_database_url) == list(migrations())


def test_a_database_of_a_newer_version_is_refused_and_left_alone(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO remembrancer.migration (name) VALUES ('9999_of_tomorrow')")
        connection.execute("DELETE FROM remembrancer.migration WHERE name = '0003_append_one_v1'")
    before = applied(database_url)
    with pytest.raises(Unavailable, match="newer version") as refused:
        migrate(database_url)
    assert refused.value.hint
    assert applied(database_url) == before


def test_a_role_that_may_create_nothing_is_told_what_to_ask_for(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS poor")
        connection.execute("CREATE ROLE poor LOGIN PASSWORD 'x'")
    try:
        poor = psycopg.conninfo.make_conninfo(empty_database_url, user="poor", password="x")
        with pytest.raises(Unavailable, match="permission denied") as refused:
            migrate(poor)
        assert "CREATE SCHEMA" in refused.value.hint
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute("DROP ROLE poor")


def test_a_server_that_is_not_there_is_unavailable_and_says_so():
    for opening in (migrate, open_store):
        with pytest.raises(Unavailable, match="cannot be reached"):
            opening("host=127.0.0.1 port=1 user=nobody dbname=nothing")


def test_a_database_that_was_never_migrated_is_unavailable(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    store = open_store(empty_database_url)
    with pytest.raises(Unavailable, match="not migrated"):
        store.heads()
    store.close()
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector")
    with pytest.raises(Unavailable, match="pgvector"):
        open_store(empty_database_url)


def test_the_model_that_most_memories_have_vectors_of_serves_a_database_that_knew_of_none(
    empty_database_url, monkeypatch
):
    """D23."""
    ours = migrations()
    with monkeypatch.context() as before:
        module = sys.modules["remembrancer.services.store.migrate"]
        before.setattr(module, "migrations", lambda: {name: sql for name, sql in ours.items() if name < "0050"})
        migrate(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        for n, model in enumerate(("openai:old", "openai:old", "openai:new", None)):
            connection.execute(
                "INSERT INTO remembrancer.list (generation, shard, list, tenant, persona, scope, subject, version)"
                " VALUES (1, 7, %s, 'one', 'mira', 'server', %s, 1)",
                (UUID(int=n), str(n)),
            )
            connection.execute(
                "INSERT INTO remembrancer.memory (generation, shard, list, id, text, terms, created_at, updated_at,"
                " tags, channels, actor, source, pinned, protected, model, embedding) VALUES (1, 7, %s, %s, '', '{}',"
                " now(), now(), '{}', '{}', 'person', '{}', false, false, %s, %s::halfvec)",
                (UUID(int=n), UUID(int=n), model, model and ("[1,2]" if model == "openai:old" else "[1,2,3]")),
            )
        migrate(empty_database_url)
        found = connection.execute("SELECT tenant, model, state, url, dimensions FROM remembrancer.model").fetchall()
    assert found == [("one", "openai:old", "serving", None, 2)]
