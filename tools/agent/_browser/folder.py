"""The folder in which a browser keeps its profile while it runs, and the removal of folders of dead servers.

Each is in the folder for temporary files, private to the user, and marked with a lock that the system
releases when the server ends. The next server that makes a folder removes those whose owner is dead. The
browser and its driver write only to this folder. Costs a few system calls.
"""

from __future__ import annotations

import os

from fastrpc import regular_files

from ..._file_lock import lock

PREFIX = "fastrpc-browser-"
LOCK = "lock"
NEW_SECONDS = 60  # a folder without a lock may be one that is just being made
LONGEST_BASE = 32  # bytes: the browser makes a socket below it, whose whole path may have about a hundred
SHORT_BASES = ("/tmp", "/var/tmp", "/dev/shm")  # for users whose folder has a longer path


class Folder:
    """A folder for one browser. Call `remove` when the browser has ended."""

    def __init__(self) -> None:
        import atexit
        import tempfile

        base = _base()
        tidy(base)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=base)
        self._lock = _locked_file(self.path)
        self._owner = os.getpid()
        for name in ("config", "cache"):
            os.mkdir(os.path.join(self.path, name), 0o700)
        atexit.register(self.remove)

    def remove(self) -> None:
        """Remove it with its content. Never raises OSError; the next `tidy` removes what remains."""
        import atexit

        if self._lock < 0 or os.getpid() != self._owner:
            return
        _remove(self.path)
        os.close(self._lock)
        self._lock = -1
        atexit.unregister(self.remove)


def _base() -> str:
    """Return the folder for temporary files; another one if its path is too long for the browser."""
    import tempfile

    base = tempfile.gettempdir()
    if len(os.fsencode(base)) <= LONGEST_BASE:
        return base
    return next((short for short in SHORT_BASES if os.access(short, os.W_OK | os.X_OK)), base)


def _locked_file(folder: str) -> int:
    """Make the lock. The file gets its name after it is locked, so no process finds it unlocked."""
    path = os.path.join(folder, LOCK)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path + ".new", flags, 0o600)
    lock(descriptor)
    os.rename(path + ".new", path)
    return descriptor


def tidy(base: str) -> None:
    """Remove the folders whose owner is dead. Never raises OSError."""
    found = []
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    except OSError:
        return
    for path, facts in found:
        if facts.st_uid == os.geteuid():
            _remove_if_left(path, facts.st_mtime)


def _remove_if_left(path: str, changed: float) -> None:
    import time

    try:
        descriptor = regular_files.open_regular(os.path.join(path, LOCK), os.O_RDWR, follow=False)
    except FileNotFoundError:
        if time.time() - changed > NEW_SECONDS:
            _remove(path)
        return
    except OSError:
        return
    try:
        if lock(descriptor) is not False:
            _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
