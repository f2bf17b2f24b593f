"""The tokens that the `tdf up` of this user have stored (docs/tdf.md, "All of it on one machine")."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
from typing import Callable

Token = Callable[[], str]


class NoToken(ConnectionError):
    """There is no token for an API, or no longer the one that there was."""


def of_tdf_up(address: str) -> Token:
    """Returns the token of a `tdf up` that serves an address, HOST:PORT: "" while none of this user does."""
    config = os.path.expanduser("~/Library/Application Support")
    if sys.platform != "darwin":
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    name = f"api-{socket.gethostname()}-{address}"

    def token() -> str:
        for directory in (os.path.join(config, "tdf"), os.path.join(tempfile.gettempdir(), f"tdf-{os.geteuid()}")):
            found = held(os.path.join(directory, name)) if private(os.lstat, directory, 0o022) else ""
            if found:
                return found
        return ""

    return token


def held(path: str) -> str:
    """Returns the token in a file, if a running process holds it: tdf up locks its file as long as it listens. After
    that, another program may listen at its address.
    """
    try:
        import fcntl
    except ImportError:  # on systems without tdf up
        return ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor) as file:
        if not private(os.fstat, descriptor, 0o077):
            return ""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return (file.read(1024).split() or [""])[-1]
    return ""


def private(read: Callable[..., os.stat_result], what: object, denied: int) -> bool:
    """Reports whether a file or a directory is of this user, without these rights of others."""
    try:
        found = read(what)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & denied and not stat.S_ISLNK(found.st_mode)
