"""The embedded database in ordinary life: one server for all who open a data directory, and for nobody else."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from remembrancer.services import embedded
from remembrancer.services.embedded import open_embedded
from remembrancer.services.embedded.account import SERVER_ID, server_account
from remembrancer.services.embedded.server import Postmaster

FAST = {"fsync": "off"}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to give its server to another user")

# A process that opens the directory, says the address, and stays until its input ends.
VISIT = """
import sys
from pathlib import Path
from remembrancer.services.embedded import open_embedded
with open_embedded(Path(sys.argv[1]), settings={"fsync": "off"}) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def visit(data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", VISIT, data_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def address(visitor: subprocess.Popen[str]) -> str:
    assert visitor.stdout
    url = visitor.stdout.readline().strip()
    assert url, "the visitor did not get in"
    return url


def leave(visitor: subprocess.Popen[str]) -> None:
    visitor.communicate(timeout=60)
    assert visitor.returncode == 0


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()
        assert row is not None
        return row[0]


def server_of(data_dir: Path) -> int | None:
    running = Postmaster.of(data_dir.resolve() / "postgres")
    return running.pid if running else None


def test_what_is_written_is_there_when_the_directory_is_opened_again(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as server, psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE fact AS SELECT 'Juno''s cat is named Mochi' AS text")
    assert server_of(data_dir) is None
    with open_embedded(data_dir, settings=FAST) as server:
        assert ask(server.url, "SELECT text FROM fact") == "Juno's cat is named Mochi"


def test_two_processes_share_one_server_and_the_last_one_out_stops_it(data_dir: Path) -> None:
    first, second = visit(data_dir), visit(data_dir)
    assert address(first) == address(second)
    running = server_of(data_dir)
    leave(first)
    assert server_of(data_dir) == running
    leave(second)
    assert server_of(data_dir) is None


def test_six_processes_that_start_together_on_an_empty_directory_all_get_in(data_dir: Path) -> None:
    visitors = [visit(data_dir) for _ in range(6)]
    try:
        assert len({address(visitor) for visitor in visitors}) == 1
    finally:
        for visitor in visitors:
            leave(visitor)
    assert server_of(data_dir) is None


def test_processes_that_come_and_go_at_random_always_find_a_server(data_dir: Path) -> None:
    def come_and_go(_: int) -> object:
        with open_embedded(data_dir, settings=FAST) as server:
            return ask(server.url, "SELECT 1")

    with ThreadPoolExecutor(4) as crowd:
        assert list(crowd.map(come_and_go, range(16))) == [1] * 16
    assert server_of(data_dir) is None


def test_a_forked_child_that_closes_leaves_the_server_to_its_parent(data_dir: Path) -> None:
    script = f"""
import os, psycopg
from pathlib import Path
from remembrancer.services.embedded import open_embedded
with open_embedded(Path({str(data_dir)!r}), settings={FAST!r}) as server:
    child = os.fork()
    if child == 0:
        server.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    psycopg.connect(server.url).close()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert server_of(data_dir) is None


def test_leaving_without_closing_stops_the_server_too(data_dir: Path) -> None:
    script = VISIT.replace("with open_embedded", "server = open_embedded").replace(" as server:", "\nif True:")
    subprocess.run([sys.executable, "-c", script, data_dir], check=True, timeout=60, stdin=subprocess.DEVNULL)
    assert server_of(data_dir) is None


def test_ctrl_c_reaches_the_program_and_not_the_server(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as other:
        visitor = subprocess.Popen(
            [sys.executable, "-c", VISIT, data_dir],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        address(visitor)
        os.killpg(visitor.pid, signal.SIGINT)
        visitor.communicate(timeout=60)
        assert ask(other.url, "SELECT 1") == 1


def test_the_server_keeps_no_pipe_of_the_program_that_started_it(data_dir: Path) -> None:
    visitor = visit(data_dir)
    url = address(visitor)
    visitor.kill()
    visitor.communicate(timeout=10)  # would wait as long as the server had the pipe open
    assert ask(url, "SELECT 1") == 1
    open_embedded(data_dir).close()


def test_only_who_has_the_password_gets_in(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as server:
        password = (data_dir / "password").read_text(encoding="utf-8")
        assert len(password) >= 40
        for wrong in ("", "remembrancer", password[:-1]):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(server.url.replace(password, wrong))
        assert password not in repr(server)


def test_password_and_sockets_are_closed_to_others_and_no_port_is_open(data_dir: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    with open_embedded(data_dir, settings=FAST) as server:
        assert mode(data_dir / "password") == 0o600
        assert mode(data_dir / "run") == 0o700
        assert mode(data_dir / "run" / ".s.PGSQL.5432") == 0o700
        assert mode(data_dir / "postgres") == 0o700
        assert mode(data_dir) & 0o007 == 0
        assert ask(server.url, "SHOW listen_addresses") == ""


def test_the_server_flushes_by_default_and_speaks_utf8_and_utc(data_dir: Path) -> None:
    with open_embedded(data_dir) as server, psycopg.connect(server.url) as connection:
        assert connection.info.dsn
        expected = {"fsync": "on", "data_checksums": "on", "server_encoding": "UTF8", "TimeZone": "UTC", "jit": "off"}
        found = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(expected)])
        assert dict(found.fetchall()) == expected
        assert connection.execute("SELECT lower('ÄЖ'), 'Київ' ~ '^\\w+$'").fetchone() == ("äж", True)
        connection.execute("CREATE EXTENSION vector")


def test_the_log_repeats_nothing_of_what_people_said(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE fact (text text UNIQUE CHECK (text <> 'Mochi'))")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("INSERT INTO fact VALUES ('Mochi')")
    log = "".join(path.read_text(encoding="utf-8") for path in (data_dir / "log").iterdir())
    assert "violates check constraint" in log
    assert "Mochi" not in log


def test_a_path_too_long_for_a_socket_works_and_leaves_no_folder_behind(open_folder: Path) -> None:
    data_dir = open_folder / ("deep" * 30) / "data"
    with open_embedded(data_dir, settings=FAST) as server, open_embedded(data_dir) as again:
        assert server.url == again.url
        running = Postmaster.of(data_dir / "postgres")
        assert running is not None
        assert running.sockets.is_dir()
        assert stat.S_IMODE(running.sockets.stat().st_mode) == 0o700
        assert ask(again.url, "SELECT 1") == 1
    assert not running.sockets.exists()


@pytest.mark.parametrize("name", ["with space", "Ünïcode 記憶", "quote\"'s", "comma,s", "percent%20", "dollar$HOME"])
def test_a_directory_may_have_any_name(open_folder: Path, name: str) -> None:
    account = server_account()
    if account.blocked_on_way_to(embedded.find_programs()) and re.search('["$]', name):
        pytest.skip("the programs are copied into the directory, and initdb cannot run under such a name")
    with open_embedded(open_folder / name, settings=FAST) as server:
        assert ask(server.url, "SELECT 1") == 1


def test_a_directory_reached_through_a_link_is_the_same_directory(open_folder: Path, data_dir: Path) -> None:
    link = open_folder / "link"
    link.symlink_to(data_dir)
    with open_embedded(link, settings=FAST) as first, open_embedded(data_dir) as second:
        assert first.url == second.url
    assert server_of(data_dir) is None


@AS_ROOT
def test_as_root_the_server_has_a_number_of_its_own_and_no_user_is_added(data_dir: Path) -> None:
    before = Path("/etc/passwd").read_bytes()
    with open_embedded(data_dir, settings=FAST):
        running = server_of(data_dir)
        assert Path(f"/proc/{running}").stat().st_uid == SERVER_ID
        assert (data_dir / "password").stat().st_uid == 0
    assert Path("/etc/passwd").read_bytes() == before


@pytest.fixture
def private_programs(open_folder: Path) -> Iterator[Path]:
    """The wheel as it lies in a virtual environment under a private home."""
    package = embedded.find_programs().parents[1]
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    skip = shutil.ignore_patterns("include", "pginstall", "*.a", "__pycache__")
    shutil.copytree(package, home / package.name, ignore=skip)
    if (libraries := package.parent / f"{package.name}.libs").is_dir():
        shutil.copytree(libraries, home / libraries.name)
    yield home / package.name / "pginstall18" / "bin"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@AS_ROOT
def test_as_root_programs_in_a_private_environment_are_copied_and_their_folder_stays_closed(
    data_dir: Path, private_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "find_programs", lambda: private_programs)
    for _ in range(2):
        with open_embedded(data_dir, settings=FAST) as server, psycopg.connect(server.url) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    assert len(list(data_dir.glob("programs-*"))) == 1
