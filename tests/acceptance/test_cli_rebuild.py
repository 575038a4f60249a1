"""`remembrancer rebuild`: asks on a terminal, obeys --yes in a script, can be broken off (U3)."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import psycopg
import pytest

from tests.support.command_line import PROGRAM, CommandLine, plain


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    cli = CommandLine(database_url)
    cli("save", "mira", "Juno's cat is named Mochi", "--server", "guild")
    cli("save", "mira", "Juno is left-handed", "--user", "juno")
    return cli


def damage(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        assert (
            conn.execute("UPDATE remembrancer.memory SET text = 'wrong' WHERE text LIKE 'Juno''s cat%'").rowcount == 1
        )


def test_it_says_what_it_compared_and_that_it_switched(remembrancer: CommandLine) -> None:
    said = remembrancer("rebuild").out.splitlines()
    assert said[0].split() == ["table", "rows", "now", "rows", "anew", "not", "the", "same"]
    assert said[3].split() == ["memory", "2", "2", "0"]
    assert said[-2].startswith("Rebuilt memory, archive, history, conversation, documents: generation 2 is live (")
    assert said[-1] == "Dropped: archive 1, conversation 1, documents 1, history 1, memory 1."
    answer = remembrancer.json("rebuild", "history")
    assert (answer["status"], answer["generation"], answer["projections"]) == ("switched", 3, ["history"])


def test_a_script_says_yes_where_rows_differ(database_url: str, remembrancer: CommandLine) -> None:
    damage(database_url)
    said = remembrancer("rebuild", code=1)
    assert "Not switched: the new rows are not the same as the old ones." in said.out
    assert "5 characters" in said.out
    assert "wrong" not in said.out
    assert "25 characters" in said.out
    assert remembrancer.json("rebuild", code=1)["status"] == "waiting"
    under_way = remembrancer.json("rebuild", "--status")
    assert (under_way["state"], under_way["generation"]) == ("catching up", 2)
    assert (
        "A rebuild of memory, archive, history, conversation, documents is under way"
        in remembrancer("rebuild", "--status").out
    )
    assert remembrancer.json("rebuild", "--yes")["status"] == "switched"


def test_on_a_terminal_it_shows_the_difference_and_asks(database_url: str, remembrancer: CommandLine) -> None:
    damage(database_url)
    question = "Switch? [y/N]"
    said = remembrancer.terminal("rebuild", answers=[(question, "n\n")])
    assert said.code == 1
    shown = plain(said.out)
    heading = "Some of what is not the same"
    assert shown.index(heading) < shown.index(question) < shown.index("Not switched")
    assert shown.count(heading) == 1, "the difference is shown once"
    said = remembrancer.terminal("rebuild", answers=[(question, "y\n")])
    assert said.code == 0
    assert "Rebuilt memory, archive, history" in plain(said.out)


def test_cancel_and_drop_old(database_url: str, remembrancer: CommandLine) -> None:
    damage(database_url)
    remembrancer("rebuild", "memory", code=1)
    assert "The rebuild of memory is given up. Nothing else was changed." in remembrancer("rebuild", "--cancel").out
    assert remembrancer("rebuild", "--cancel").out == "There is none.\n"
    remembrancer("rebuild", "--yes", "--keep-old")
    assert (
        "Dropped: archive 1, conversation 1, documents 1, history 1, memory 1."
        in remembrancer("rebuild", "--drop-old").out
    )


def test_usage(remembrancer: CommandLine) -> None:
    assert "Did you mean history?" in remembrancer("rebuild", "histroy", code=2).err
    assert "stand alone" in remembrancer("rebuild", "--status", "--cancel", code=2).err


def test_ctrl_c_leaves_a_rebuild_that_goes_on(database_url: str, remembrancer: CommandLine) -> None:
    """Held up at its first shard by somebody else, it is broken off there."""
    environment = {**os.environ, "REMEMBRANCER_DATABASE_URL": database_url, "REMEMBRANCER_EMBEDDER": "none"}
    with psycopg.connect(database_url) as conn:
        conn.execute("LOCK TABLE remembrancer.rebuild_shard IN SHARE MODE")
        command = [*PROGRAM, "rebuild"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            time.sleep(1.0)
            waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            with psycopg.connect(database_url, autocommit=True) as looking:
                deadline = time.monotonic() + 20
                while not looking.execute(waiting).rowcount:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            conn.rollback()
            _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"goes on from here" in said
    assert remembrancer.json("rebuild")["status"] == "switched"
