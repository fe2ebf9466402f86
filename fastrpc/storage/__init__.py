"""Databases: SQLite in the state folder, or PostgreSQL by URL, through SQLAlchemy Core.

        database = open_database("postgresql://guard@db.example.com/fastrpc")

Opening checks the database and migrates its schema (`migrations`), once even if many processes start at the
same time. A database that is damaged, or of a newer fastrpc, is refused and left unchanged. Only a guarded
server opens the guard's database, and no call waits for it: what calls need is cached in memory, and
refreshed when `changes` reports a change. A toolset opens a database of its own `DatabaseKind`. Importing
this package imports no library; `open_database` imports SQLAlchemy, and Alembic only to migrate.
"""

from __future__ import annotations

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
from fastrpc.storage.settings import GUARD_DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database

__all__ = [
    "GUARD_DATABASE",
    "CommitUnknown",
    "DatabaseDamaged",
    "DatabaseKind",
    "DatabaseTooNew",
    "DatabaseUnavailable",
    "LibraryMissing",
    "StorageError",
    "UnstorableValue",
    "open_database",
]


def open_database(url: str = "", kind: DatabaseKind = GUARD) -> Database:
    """Open a database by its URL, the guard's unless another kind is given. Without a URL, open the kind's
    default file; for the guard, the database that FASTRPC_GUARD_DATABASE names. Raises StorageError."""
    try:
        from fastrpc.storage.database import Database
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise LibraryMissing(kind.title, "SQLAlchemy", kind.extra) from None
    return Database(url or (GUARD_DATABASE.read() if kind is GUARD else ""), kind)
