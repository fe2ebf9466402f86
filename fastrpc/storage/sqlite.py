"""SQLite: the file of a database, created for this user only, and checked before anything is written.

The check uses a read-only connection, so a refused file is not changed. Only SQLite opens an existing file:
closing another descriptor of it would release SQLite's locks.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from time import monotonic, sleep
from urllib.parse import quote

from fastrpc.errors import Reworded
from fastrpc.regular_files import is_trusted, look
from fastrpc.storage.errors import DatabaseDamaged, DatabaseUnavailable
from fastrpc.storage.kinds import DatabaseKind

BUSY_SECONDS = 5.0
TURN_SECONDS = 0.05
"""SQLite polls the lock at growing intervals. A waiter that starts again after this time polls as often as
one that has just begun to wait."""


class WaitingConnection(sqlite3.Connection):
    """A connection that keeps for how long its statements wait for a lock: to set that costs two thirds of
    what it costs to begin a transaction."""

    wait_seconds = BUSY_SECONDS

    def wait_for(self, seconds: float) -> None:
        """Wait so long for a lock from now on."""
        if self.wait_seconds != seconds:
            self.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
            self.wait_seconds = seconds


def prepare(path: str, kind: DatabaseKind) -> None:
    """Create the file and its folder, unless they exist, for this user only. Raises DatabaseUnavailable for a
    file or folder that others may change."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        facts = os.stat(folder)
        if facts.st_mode & stat.S_IWOTH:
            raise _unsafe(path, kind, f"others may write to {folder}", "chmod o-w")
        if not is_trusted(facts):
            raise _unsafe(path, kind, f"{folder} belongs to another user", "name a folder of your own")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        facts = look(path)
    except OSError as error:
        raise DatabaseUnavailable(f"{kind.title}: {error.filename or path}: {error.strerror}") from None
    if facts.st_mode & 0o007:
        raise _unsafe(path, kind, f"others may use it (mode {facts.st_mode & 0o777:04o})", "chmod 600")
    if not is_trusted(facts):
        raise _unsafe(path, kind, "it belongs to another user", "name a file of your own")


def _unsafe(path: str, kind: DatabaseKind, reason: str, advice: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"{kind.title}: {path}: {reason}: {advice}")


def revision_of(path: str, kind: DatabaseKind) -> str | None:
    """Check all pages of a file, and return the revision of its schema, None for a file without tables.
    Writes nothing. Raises DatabaseDamaged, and DatabaseUnavailable."""
    try:
        with closing(connect(path, mode="ro")) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise _damaged(path, kind, str(found))
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {row[0] for row in tables}
            if not names:
                return None
            if kind.version_table not in names:
                raise _damaged(path, kind, "it is another program's database")
            row = connection.execute(f"SELECT version_num FROM {kind.version_table}").fetchone()
            return None if row is None else str(row[0])
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailable(f"{kind.title}: {path}: {error}") from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, kind, str(error)) from None


def _damaged(path: str, kind: DatabaseKind, reason: str) -> DatabaseDamaged:
    reason = reason.splitlines()[-1] if reason else "it is broken"
    return DatabaseDamaged(
        f"{kind.title}: {path} cannot be used: {reason}. It was not changed: put a copy of the "
        f"database in its place, or move it away to begin with an empty one"
    )


def connect(path: str, mode: str = "rw") -> WaitingConnection:
    """Open an existing file. Transactions are begun by statements, never by the module `sqlite3`."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        factory=WaitingConnection,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    if mode == "rw":
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
    return connection


def begin_read(connection: WaitingConnection) -> None:
    """Begin a transaction that reads. Its first statement waits while another process repairs the log (WAL),
    or is the last to close it."""
    connection.wait_for(BUSY_SECONDS)
    connection.execute("BEGIN")


def begin_change(connection: WaitingConnection, kind: DatabaseKind) -> None:
    """Begin a writing transaction as soon as no other writes; its statements wait for nothing then. Raises
    sqlite3.OperationalError."""
    deadline = monotonic() + (BUSY_SECONDS if kind.wait_seconds is None else kind.wait_seconds)
    connection.wait_for(TURN_SECONDS)
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if monotonic() > deadline or str(error) != "database is locked":
                raise


def use_write_ahead_log(path: str, kind: DatabaseKind) -> None:
    """Switch a file to WAL permanently. Raises DatabaseUnavailable if the file system does not support it."""
    deadline = monotonic() + BUSY_SECONDS
    failing = Reworded(sqlite3.Error, DatabaseUnavailable, f"{kind.title}: {path}: ")
    with failing, closing(connect(path)) as connection:
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError:  # another process is switching it; SQLite does not wait
                if monotonic() > deadline:
                    raise
                sleep(0.02)
    if mode != "wal":
        raise DatabaseUnavailable(
            f"{kind.title}: {path}: the file system has no shared memory for SQLite's log (WAL): "
            f"name a file on a local disk"
        )


def overwrite_deleted(path: str) -> None:
    """Checkpoint and truncate the log (WAL), which overwrites deleted rows in the file, as far as other
    readers and writers permit. Raises DatabaseError of `sqlite3`."""
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
