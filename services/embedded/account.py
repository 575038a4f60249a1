"""Whom the server runs as: the user who calls, or, when that is root, a number that belongs to nobody else.

PostgreSQL refuses to run as root. No user is added for it and none is borrowed: files of `nobody` or `postgres` would
be open to whatever else runs under that name.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from remembrancer.domain.errors import Unavailable

# Outside the ranges that distributions and systemd hand out (`systemd.io/UIDS-GIDS`: 60578-61183 is nobody's), and
# below 65536, so that it exists in containers with a mapped range of ids.
SERVER_ID = 61000


@dataclass(frozen=True)
class Account:
    """A user and a group that a program of the server runs as; `switched` if they are not the caller's own."""

    uid: int
    gid: int
    switched: bool

    def blocked_on_way_to(self, path: Path) -> Path | None:
        """Returns the first folder above `path` that this account may not enter, or None."""
        for folder in reversed(path.parents):
            if folder.exists() and not self.may_enter(folder):
                return folder
        return None

    def may_enter(self, path: Path) -> bool:
        """Whether this account may enter a folder, or run a program."""
        if not self.switched:
            return os.access(path, os.X_OK)
        status = path.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    def give(self, path: Path) -> None:
        """Makes this account the owner of `path`."""
        if self.switched:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def server_account() -> Account:
    """Returns the account of the server: ours, or `SERVER_ID` when we are root.

    Raises:
        Unavailable: we are a root that may not act for others, as in a container without capabilities.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switched=False)
    try:
        subprocess.run(["/bin/sh", "-c", ":"], user=SERVER_ID, group=SERVER_ID, extra_groups=(), check=True, cwd="/")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(
            f"PostgreSQL refuses to run as root, and this root may not run it as another user ({SERVER_ID}): {error}.",
            hint="Run as an ordinary user, or set REMEMBRANCER_DATABASE_URL.",
        ) from error
    return Account(SERVER_ID, SERVER_ID, switched=True)


def initdb_account(server: Account) -> Account:
    """Returns the account that makes a new cluster: `initdb` insists on a user with a name, the server does not.

    As root that is `nobody` in the server's own group, which alone opens the way to the unfinished cluster.

    Raises:
        Unavailable: our own user id has no name.
    """
    if server.switched:
        return Account(_nobody(), server.gid, switched=True)
    try:
        pwd.getpwuid(server.uid)
    except KeyError:
        raise Unavailable(
            f"User id {server.uid} has no name on this machine, and initdb refuses to work without one.",
            hint="Add the user to /etc/passwd, run as root, or set REMEMBRANCER_DATABASE_URL.",
        ) from None
    return server


def _nobody() -> int:
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0), SERVER_ID)
