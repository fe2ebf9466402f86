"""`Database`: opens a database, checks and migrates it, and runs transactions.

        with database.reading() as connection: …
        with database.changing() as connection: …

A transaction is committed at the end of the block, or rolled back as a whole. `changing` takes SQLite's
write lock at once, so that two writers wait for each other instead of failing. Each transaction takes a
connection from a pool, on any thread; a thread that writes often keeps one (`KeptConnection`), since taking
one costs as much as a small change. A forked child opens new ones. A SQLite file that has been replaced is no
longer used: this process would continue with the old file, and with a log (WAL) that belongs to neither.
All errors except IntegrityError are `StorageError`; none contains a password or the values of a statement.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from threading import Lock

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from fastrpc import forks
from fastrpc.errors import Reworded
from fastrpc.storage import sqlite
from fastrpc.storage.errors import (
    CommitUnknown,
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseUnavailable,
    LibraryMissing,
    StorageError,
    UnstorableValue,
)
from fastrpc.storage.kinds import GUARD, DatabaseKind
from fastrpc.storage.urls import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from sqlalchemy.engine import URL, Connection, Engine

IMMEDIATE = "fastrpc_immediate"
MIGRATION_LOCK = 0x66727063_67756172
"""The key of PostgreSQL's advisory lock under which one process at a time migrates."""
POOL_SIZE = 4
WAIT_SECONDS = 10.0

_opening = Lock()


class Database:
    """The database of a kind at a URL, "" for the kind's default file in the state folder.

    Raises StorageError if it cannot be opened; then nothing has been changed.
    """

    def __init__(self, url: str = "", kind: DatabaseKind = GUARD) -> None:
        self.kind = kind
        self._place = place = place_of(url, kind)
        self.shown = place.shown
        """The URL without its secrets."""
        self.url: URL = place.url
        """The whole URL, with its secrets: the same for all kinds in one database."""
        self.path = place.path
        """SQLite's file, "" for another database."""
        self._file: tuple[int, int] | None = None
        self._engine = self._make_engine()
        try:
            with _opening:
                self._open()
        except BaseException:
            self._engine.dispose()
            raise
        forks.in_child(self._forget_connections)

    def __repr__(self) -> str:
        return f"Database({self.shown})"

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that reads. Raises StorageError."""
        return self._transaction(False)

    def changing(self, kept: KeptConnection | None = None) -> AbstractContextManager[Connection]:
        """A transaction that writes. Raises StorageError, CommitUnknown if it may have been committed, and
        IntegrityError for a broken constraint."""
        return self._transaction(True, kept)

    @contextmanager
    def listening(self) -> Iterator[Any]:
        """A separate connection to PostgreSQL, psycopg's, for LISTEN (`notifications`). Raises StorageError,
        and psycopg's errors."""
        try:
            connection = self._engine.raw_connection()
        except SQLAlchemyError as error:
            raise self._unavailable(error) from None
        driver: Any = connection.driver_connection
        connection.detach()
        try:
            driver.autocommit = True
            yield driver
        finally:
            driver.close()

    def overwrite_deleted(self) -> None:
        """Overwrite what transactions have deleted so far, which SQLite's file and log still contain.
        PostgreSQL does so by itself (VACUUM), when no transaction can see it any more."""
        if self.path:
            with Reworded(sqlite3.Error, DatabaseUnavailable, f"{self.kind.title}: {self.path}: "):
                sqlite.overwrite_deleted(self.path)

    def close(self) -> None:
        """Close all connections that are not in use."""
        forks.forget(self._forget_connections)
        self._engine.dispose()

    # --- transactions -------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, changes: bool, kept: KeptConnection | None = None) -> Iterator[Connection]:
        if self.path and self._file != self._file_there():
            raise DatabaseUnavailable(
                f"{self.kind.title}: {self.path} was replaced while it was in use. End all that "
                f"use it, remove its files -wal and -shm, and start again"
            )
        is_committing = False
        try:
            with kept or self._connection(changes) as connection, connection.begin():
                yield connection
                is_committing = changes
        except IntegrityError:
            raise
        except (SQLAlchemyError, sqlite3.Error) as error:
            unavailable = self._unavailable(error)
            if is_committing and isinstance(error, DBAPIError) and error.connection_invalidated:
                raise CommitUnknown(str(unavailable)) from None
            raise unavailable from None

    def _connection(self, changes: bool) -> Connection:
        return self._engine.connect().execution_options(**{IMMEDIATE: changes})

    def _unavailable(self, error: SQLAlchemyError | sqlite3.Error) -> StorageError:
        original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        where = self.path or self.shown
        problem = f"{self.kind.title}: {where}: {self._place.cause(original)}"
        return (UnstorableValue if isinstance(error, DataError) else DatabaseUnavailable)(problem)

    def _file_there(self) -> tuple[int, int] | None:
        with Reworded(OSError, DatabaseUnavailable, f"{self.kind.title}: {self.path}: "):
            facts = os.stat(self.path)
        return facts.st_dev, facts.st_ino

    def _forget_connections(self) -> None:
        """In a forked child, drop the parent's connections, and replace the lock: its holder may be a thread
        that does not exist in the child."""
        global _opening
        _opening = Lock()
        self._engine.dispose(close=False)

    # --- opening ------------------------------------------------------------------------------------------

    def _make_engine(self) -> Engine:
        path = self.path
        limits: Any = {"pool_size": POOL_SIZE, "pool_timeout": WAIT_SECONDS, "hide_parameters": True}
        if path:
            limits |= {"creator": lambda: sqlite.connect(path), "poolclass": QueuePool}
            engine = create_engine(self.url, **limits)
            event.listen(engine, "begin", self._begin_sqlite)
            return engine
        try:
            engine = create_engine(self.url, **limits)
            from fastrpc.storage.postgresql import limit_statements
        except ImportError as error:  # without psycopg, or psycopg without libpq
            reason = "" if isinstance(error, ModuleNotFoundError) else "it finds no libpq"
            raise LibraryMissing(self.kind.title, "psycopg", "postgresql", reason) from None
        limit_statements(engine)
        return engine

    def _begin_sqlite(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if connection.get_execution_options().get(IMMEDIATE):
            sqlite.begin_change(driver, self.kind)
        else:
            sqlite.begin_read(driver)

    def _open(self) -> None:
        """Check the database, and migrate its schema. Raises StorageError."""
        path = self.path
        if path:
            sqlite.prepare(path, self.kind)
            identity = self._file_there()
            revision = sqlite.revision_of(path, self.kind)
            self._check_revision(revision)
            sqlite.use_write_ahead_log(path, self.kind)
        try:
            with self._engine.connect() as connection:
                self._migrate(connection.execution_options(**{IMMEDIATE: True}))
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._unavailable(error) from None
        if path:
            self._file = identity

    def _migrate(self, connection: Connection) -> None:
        """Migrate under a lock, unless the schema is the newest."""
        with connection.begin():
            revision = revision_in(connection, self.kind)
        self._check_revision(revision)
        if revision == self.kind.revisions[-1]:
            return
        from fastrpc.storage.migrations import migrate

        with connection.begin():
            if not self.path:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            self._check_revision(revision_in(connection, self.kind))
            migrate(connection, self.kind)

    def _check_revision(self, revision: str | None) -> None:
        if revision is not None and revision not in self.kind.revisions:
            raise DatabaseTooNew(
                f"{self.kind.title}: {self.shown} was made by a newer fastrpc (schema {revision:.32}, "
                f"known up to {self.kind.revisions[-1]}). It was not changed: update fastrpc, or name "
                f"another database"
            )


class KeptConnection:
    """The connection in which one thread changes a database, transaction after transaction
    (`Database.changing`). After one that has failed, the next takes another connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None

    def __enter__(self) -> Connection:
        if self._connection is None:
            self._connection = self._database._connection(True)
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.close()

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def revision_in(connection: Connection, kind: DatabaseKind) -> str | None:
    """Return the revision of the schema, None for a new database. Raises DatabaseDamaged for several."""
    if not inspect(connection).has_table(kind.version_table):
        return None
    found = [str(row[0]) for row in connection.execute(text(f"SELECT version_num FROM {kind.version_table}"))]
    if len(found) > 1:
        raise DatabaseDamaged(f"{kind.title}: its schema has several versions at once")
    return found[0] if found else None
