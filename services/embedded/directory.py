"""The data directory: what lies in it, whose it may be, and what is refused before a byte is written."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from remembrancer.domain.errors import Unavailable
from remembrancer.services.embedded.account import Account
from remembrancer.services.embedded.programs import MAJOR

OTHER_PLACE = "Choose another data directory, or set REMEMBRANCER_DATABASE_URL."


@dataclass(frozen=True)
class DataDirectory:
    """The places in one data directory, and the account of its server."""

    path: Path
    account: Account

    @property
    def lock(self) -> Path:
        """Held alone while the server is made, started or stopped. Its presence says that the directory is ours."""
        return self.path / "embedded.lock"

    @property
    def users(self) -> Path:
        """Shared by every process that uses the server; who can hold it alone is the last one out."""
        return self.path / "embedded.users"

    @property
    def alive(self) -> Path:
        """Held by every process of the server as long as it lives."""
        return self.path / "embedded.alive"

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory; complete as soon as it is there."""
        return self.path / "postgres"

    @property
    def unfinished(self) -> Path:
        """Where a new cluster is made."""
        return self.path / "unfinished-postgres"

    @property
    def password_file(self) -> Path:
        """The password of the database's only user."""
        return self.path / "password"

    @property
    def sockets(self) -> Path:
        """Where the server listens, if that path is short enough for a socket."""
        return self.path / "run"

    @property
    def logs(self) -> Path:
        """The server's log, a file for each day of the week."""
        return self.path / "log"

    @property
    def start_log(self) -> Path:
        """What the server says until it opens its log."""
        return self.path / "start.log"

    def refuse_what_is_not_ours(self) -> None:
        """Writes nothing.

        Raises:
            Unavailable: another user's directory, one that holds other things, one out of the server's reach, or one of
                another PostgreSQL version.
        """
        self._refuse_what_is_out_of_reach()
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise Unavailable(f"{self.path} is a file, not a data directory.", hint=OTHER_PLACE)
        self._refuse_another_owner(self.path, {os.geteuid(), self.account.uid})
        with explained(self.path):
            names = {entry.name for entry in self.path.iterdir()}
        if names and self.lock.name not in names:
            raise Unavailable(
                f"{self.path} is not empty and was not made by Remembrancer (it holds {min(names)}).", hint=OTHER_PLACE
            )
        if self.cluster.exists():
            self._refuse_another_owner(self.cluster, {self.account.uid})
            self._refuse_another_version()

    def _refuse_what_is_out_of_reach(self) -> None:
        blocked = self.account.blocked_on_way_to(self.path)
        if blocked is None:
            return
        who = f"the database's user (id {self.account.uid})" if self.account.switched else "you"
        raise Unavailable(
            f"{self.path} is out of reach of {who}: {blocked} does not let it pass.",
            hint=f"Choose a data directory elsewhere, /var/lib/remembrancer for one, or open the way with "
            f"`chmod o+x {blocked}`, which Remembrancer does not do by itself."
            if self.account.switched
            else OTHER_PLACE,
        )

    def _refuse_another_owner(self, path: Path, owners: set[int]) -> None:
        owner = path.stat().st_uid
        if owner not in owners:
            raise Unavailable(
                f"{path} belongs to another user (id {owner}, you are {os.geteuid()}).",
                hint="Run as that user, or choose another data directory.",
            )

    def _refuse_another_version(self) -> None:
        with explained(self.path):
            found = (self.cluster / "PG_VERSION").read_text(encoding="utf-8").strip()
        if found == str(MAJOR):
            return
        newer = found.isdigit() and int(found) > MAJOR
        raise Unavailable(
            f"{self.path} was written by PostgreSQL {found}; this installation brings PostgreSQL {MAJOR}.",
            hint="Install the newer version of Remembrancer that wrote it."
            if newer
            else "Export with the version of Remembrancer that wrote it, then import here.",
        )

    def create(self) -> None:
        """Makes the directory, private to us. As root the server's group may pass through it, and new folders above it
        let everybody pass, whatever the umask; those that were there stay as they are.
        """
        for folder in reversed(self.path.parents):
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                if self.account.switched:
                    folder.chmod(0o755)
        self.path.mkdir(mode=0o700, exist_ok=True)
        owner, group, mode = (0, self.account.gid, 0o710) if self.account.switched else (os.geteuid(), None, 0o700)
        status = self.path.stat()
        if status.st_uid != owner or group not in {None, status.st_gid}:
            os.chown(self.path, owner, -1 if group is None else group)
        if stat.S_IMODE(status.st_mode) != mode:
            self.path.chmod(mode)

    def create_for(self, account: Account, folder: Path) -> None:
        """Makes a folder here that this account alone, and root, may enter."""
        folder.mkdir(mode=0o700, exist_ok=True)
        account.give(folder)

    def remove_failed_start(self) -> None:
        """Takes away what a first start left that never had a cluster."""
        if self.cluster.exists():
            return
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry != self.lock:
                entry.unlink()
        self.lock.unlink()
        with suppress(OSError):
            self.path.rmdir()

    def password(self) -> str:
        """Returns the password.

        Raises:
            Unavailable: the file is gone.
        """
        try:
            return self.password_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise Unavailable(
                f"{self.password_file} is missing, so the database in {self.path} cannot be opened.",
                hint="Restore this file from the backup of the data directory.",
            ) from None

    def make_password(self) -> str:
        """Writes a new random password, readable by us alone, in one step; returns it."""
        password = secrets.token_urlsafe(32)
        unfinished = self.password_file.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(password)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self.password_file)
        return password


def flush(folder: Path) -> None:
    """Puts on disk which files a folder holds."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def default_data_dir() -> Path:
    """Returns the platform's folder for user data; as root, whose home is private, `/var/lib/remembrancer`."""
    if os.geteuid() == 0:
        return Path("/var/lib/remembrancer")
    return Path(platformdirs.user_data_dir("remembrancer"))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what the operating system says about `path` into `Unavailable`."""
    try:
        yield
    except OSError as error:
        place = error.filename or path
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        message = f"The data directory {path} cannot be used: {reason} ({place})."
        raise Unavailable(message, hint=OTHER_PLACE) from error
