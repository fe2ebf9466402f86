"""The state that outlives a server: one SQLite database in the state folder, shared by all servers.

`reading` and `changing` are the two entry points. At the end of a `changing` block, all that it has written
is on disk, or none of it is. Both wait for other servers, ten seconds at most, and raise a ToolError that
says what is wrong. A file that is damaged, of another program or of a newer version is refused and not
changed. The first use imports SQLite (3 ms). A change costs an fsync, so it belongs on a worker thread. The
tools define what the tables mean.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread  # threading itself would cost an import at the start

from fastrpc import ToolError, regular_files
from fastrpc.settings import STATE_DIR

from ... import _private_folder
from . import file as state_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection
    from types import TracebackType
    from typing import TypeVar

    Value = TypeVar("Value")

WAIT_SECONDS = 10.0
LATE_SECONDS = 2.0  # how much later than its deadline an opening may finish
FILE = "state.sqlite3"
KEPT_OPEN = 2  # connections that stay open between uses; in use there are as many as threads want

# The statements at index n - 1 make version n of the schema from version n - 1. Released statements are never
# edited: a change is a new entry at the end. Times are Unix seconds.
MIGRATIONS: list[tuple[str, ...]] = [
    (
        """CREATE TABLE projects (
            id INTEGER PRIMARY KEY,
            path TEXT NOT NULL UNIQUE,
            current_task INTEGER
        )""",
        """CREATE TABLE tasks (
            project INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
            id INTEGER NOT NULL,  -- from 1 in each project
            name TEXT NOT NULL,
            created_at REAL NOT NULL,
            done_at REAL,
            PRIMARY KEY (project, id)
        ) WITHOUT ROWID""",
        """CREATE TABLE steps (
            project INTEGER NOT NULL,
            id INTEGER NOT NULL,  -- from 1, unique over all tasks of the project
            task INTEGER NOT NULL,
            text TEXT NOT NULL,
            created_at REAL NOT NULL,
            done_at REAL,
            PRIMARY KEY (project, id),
            FOREIGN KEY (project, task) REFERENCES tasks (project, id) ON DELETE CASCADE
        ) WITHOUT ROWID""",
        "CREATE INDEX steps_of_task ON steps (project, task, id)",
        """CREATE TABLE plan_mode (
            instance TEXT PRIMARY KEY,  -- the server that is in plan mode
            project TEXT NOT NULL,  -- its path
            goal TEXT,
            plan_file TEXT,
            started_at REAL NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE callbacks (
            id INTEGER PRIMARY KEY,
            instance TEXT NOT NULL,  -- the server that has the timer
            project TEXT NOT NULL,  -- its path
            slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 7),
            message TEXT NOT NULL,
            delay_seconds INTEGER NOT NULL,
            fires_left INTEGER NOT NULL,  -- -1: for ever; 0: over, kept while something is undelivered
            due_at REAL NOT NULL,
            undelivered INTEGER NOT NULL,  -- fires that no result has told of
            fired_at REAL NOT NULL  -- when the last fire was due
        )""",
        "CREATE INDEX callbacks_of_instance ON callbacks (instance)",
    ),
]
OWNED = ("plan_mode", "callbacks")
"""The tables whose rows belong to a server, by their column ``instance``."""

_opening = allocate_lock()
_checked: dict[str, tuple[int, int]] = {}  # path -> the file that passed the check, by device and inode
_idle: list[Held] = []


def path() -> str:
    """Return the path of the database, which need not exist yet."""
    return os.path.join(STATE_DIR.read(), FILE)


def reading(wait_seconds: float = WAIT_SECONDS) -> Transaction:
    """Return a block that sees the database in its state at the block's beginning: ``with reading() as db:
    rows = db.execute(…).fetchall()``."""
    return Transaction(False, wait_seconds)


def changing(wait_seconds: float = WAIT_SECONDS) -> Transaction:
    """Return a block that is one change: on disk at its end, undone by an exception.

    Others wait meanwhile, so it should be short. Blocks must not be nested.
    """
    return Transaction(True, wait_seconds)


def close() -> None:
    """Close the idle connections. The last server to do so leaves the database as a single file."""
    while _idle:
        _idle.pop().connection.close()


class Held:
    """A connection, and the file that it has open: the path may lead to another file now."""

    def __init__(self, place: str, file: tuple[int, int] | None, connection: Connection) -> None:
        self.place = place
        self.file = file
        self.connection = connection


class Transaction:
    """A block with a connection whose rows have column names. Raises ToolError, also at its end."""

    def __init__(self, changes: bool, wait_seconds: float) -> None:
        self._changes = changes
        self._wait_seconds = wait_seconds

    def __enter__(self) -> Connection:
        import sqlite3

        place = path()
        self._deadline = time.monotonic() + self._wait_seconds
        try:
            self._held = _take(place, self._deadline)
            try:
                self._begin()
            except BaseException:
                self._held.connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            if self._changes or state_file.is_busy(error) or not self._look(place):
                raise _told(error, place) from error
        return self._held.connection

    def _begin(self) -> None:
        db = self._held.connection
        _patiently(lambda: db.execute("BEGIN IMMEDIATE" if self._changes else "BEGIN"), self._deadline)
        version = _patiently(lambda: _number(db, "user_version"), self._deadline)
        if version > len(MIGRATIONS):  # a newer server has used the database since the file was opened
            raise ToolError(state_file.newer(self._held.place, version, len(MIGRATIONS)))

    def _look(self, place: str) -> bool:
        """Read on a full or read-only disk, where the usual connection cannot be opened."""
        import sqlite3

        try:
            self._held = _Aside(lambda: _looked(place)).result(place, self._deadline)
        except (sqlite3.Error, OSError):
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import sqlite3

        held = self._held
        db = held.connection
        broken = isinstance(error, sqlite3.Error)
        try:
            if error is None and self._changes:
                until = max(self._deadline, time.monotonic() + WAIT_SECONDS)
                _Aside(lambda: _committed(held, until)).result(held.place, until, "the change may be lost")
            elif error is None:
                db.execute("COMMIT")
            elif db.in_transaction:  # a full disk has ended the transaction already
                db.execute("ROLLBACK")
        except sqlite3.Error as failure:
            broken, error = True, error or failure
        if not broken:
            _put_back(held)
            return
        db.close()  # this undoes an open transaction; the next block uses another connection
        if isinstance(error, sqlite3.DatabaseError) and type(error) not in (
            sqlite3.IntegrityError,
            sqlite3.ProgrammingError,
        ):
            raise _told(error, held.place) from error


def _told(error: Exception, place: str) -> ToolError:
    if state_file.is_damage(error):
        _checked.pop(place, None)
    return state_file.explained(error, place)


def _patiently(action: Callable[[], Value], deadline: float) -> Value:
    """Retry an operation that another server may block. SQLite itself also waits, a little while each
    time."""
    import sqlite3

    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not state_file.is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(0.001)  # some locks are released at once


def _number(db: Connection, pragma: str) -> int:
    value: int = db.execute(f"PRAGMA {pragma}").fetchone()[0]
    return value


# ------------------------------------------------------------------------------------------ connections


def _identity(place: str) -> tuple[int, int] | None:
    try:
        facts = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_dev, facts.st_ino


def _take(place: str, deadline: float) -> Held:
    """Return a connection for the caller alone, opened only if none is idle."""
    file = _identity(place)
    while True:
        try:
            held = _idle.pop()
        except IndexError:
            return _open(place, deadline)
        if held.place == place and held.file == file:
            state_file.check_kinds(place)  # without a WAL, SQLite opens the journal for each change
            return held
        held.connection.close()  # the file was replaced, or the settings name another folder


def _put_back(held: Held) -> None:
    if held.file is None:
        held.connection.close()
        return
    _idle.append(held)
    while len(_idle) > KEPT_OPEN:
        _idle.pop(0).connection.close()


def _open(place: str, deadline: float) -> Held:
    if not _opening.acquire(timeout=max(0.0, deadline - time.monotonic())):
        raise ToolError(f"{place} is being opened by another call; try again.")
    try:
        return _Aside(lambda: _opened(place, deadline)).result(place, deadline)
    finally:
        _opening.release()


class _Aside:
    """A connection that is opened, or whose change is finished, on a separate thread. SQLite would wait for
    ever for a FIFO that replaces a file or the folder after the check, and for a disk that does not answer.
    The thread closes a connection that comes too late."""

    def __init__(self, action: Callable[[], Held]) -> None:
        self._action = action
        self._held: Held | None = None
        self._error: BaseException | None = None
        self._given_up = False
        self._deciding = allocate_lock()
        self._over = allocate_lock()
        self._over.acquire()
        start_new_thread(self._run, ())

    def _run(self) -> None:
        held = error = None
        try:
            held = self._action()
        except BaseException as problem:
            error = problem
        with self._deciding:
            if self._given_up and held is not None:
                held.connection.close()
            self._held, self._error = held, error
        self._over.release()

    def result(self, place: str, deadline: float, means: str = "nothing was changed") -> Held:
        """Return the connection, or raise the exception of the action; ToolError if it does not finish in
        time."""
        self._over.acquire(timeout=max(0.0, deadline - time.monotonic()) + LATE_SECONDS)
        with self._deciding:
            self._given_up = self._held is None and self._error is None
        if self._error is not None:
            raise self._error
        if self._held is None:
            raise ToolError(f"{place} does not answer; {means}.")
        return self._held


def _committed(held: Held, deadline: float) -> Held:
    _patiently(lambda: held.connection.execute("COMMIT"), deadline)
    return held


def _opened(place: str, deadline: float) -> Held:
    """Check what exists, make what is missing, and connect. Only one thread at a time."""
    try:
        _private_folder.make(os.path.dirname(place))
    except OSError as error:  # a ToolError, so that the caller does not try to read there either
        raise state_file.explained(error, place) from error
    state_file.check_kinds(place)
    file = _identity(place)
    if file is None or _checked.get(place) != file:
        # Closing any descriptor of the file releases all locks of this process on it (POSIX). Here no
        # connection to it is open yet.
        file = _made(place)
        state_file.check(place, len(MIGRATIONS), deadline)
    connection = state_file.connect(place, "mode=rw")
    try:
        _prepare(connection, place, deadline)
        if _identity(place) != file:
            raise ToolError(f"{place} was replaced while it was opened; nothing was changed. Try again.")
        state_file.check_kinds(place)
    except BaseException:
        connection.close()
        raise
    if not _checked:
        import atexit

        atexit.register(close)
    _checked[place] = file
    return Held(place, file, connection)


def _looked(place: str) -> Held:
    """Return a connection that only reads. Raises sqlite3.Error, also for a schema that is not the newest."""
    import sqlite3

    connection = state_file.look(place)
    try:
        connection.execute("BEGIN")
        if _number(connection, "user_version") != len(MIGRATIONS):
            raise sqlite3.OperationalError("another version of the schema")
    except BaseException:
        connection.close()
        raise
    return Held(place, None, connection)


def _made(place: str) -> tuple[int, int]:
    """Make the file, empty and private to its owner, unless it exists."""
    try:
        descriptor = regular_files.open_regular(place, os.O_RDWR | os.O_CREAT, follow=False)
    except OSError:
        file = _identity(place)
        if file is None:
            raise
        return file  # it cannot be written, but may be readable
    try:
        facts = os.fstat(descriptor)
        return facts.st_dev, facts.st_ino
    finally:
        os.close(descriptor)


def _prepare(db: Connection, place: str, deadline: float) -> None:
    _patiently(lambda: state_file.check_opened(db, place), deadline)
    if _patiently(lambda: _number(db, "user_version"), deadline) < len(MIGRATIONS):
        _migrate(db, deadline)
    network = state_file.on_network(os.path.dirname(place))
    wanted = "delete" if network else "wal"
    mode = db.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != wanted:  # it stays as it is if the file system cannot share memory
        mode = _patiently(lambda: db.execute(f"PRAGMA journal_mode={wanted}").fetchone()[0], deadline)
    # Without a WAL, a change is durable only after the folder is synchronised too.
    db.execute(f"PRAGMA synchronous={'FULL' if mode == 'wal' else 'EXTRA'}")
    db.execute("PRAGMA foreign_keys=ON")


def _migrate(db: Connection, deadline: float) -> None:
    """Bring the schema to the newest version in one change: if the server is killed, the old one remains."""
    _patiently(lambda: db.execute("BEGIN IMMEDIATE"), deadline)
    for statements in MIGRATIONS[_number(db, "user_version") :]:
        for statement in statements:
            db.execute(statement)
    db.execute(f"PRAGMA application_id={state_file.APPLICATION}")
    if _number(db, "user_version") < len(MIGRATIONS):  # another server may have done it
        db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
    _patiently(lambda: db.execute("COMMIT"), deadline)
