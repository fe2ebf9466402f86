"""Databases: SQLite in the state folder, or PostgreSQL by URL, through SQLAlchemy Core.

        database = open_database("postgresql://guard@db.example.com/fastrpc")

Opening checks it and brings its schema up to date (`migrations`), once, however many processes start at
once. A database that is damaged, or of a newer fastrpc, is refused and left as it is. The guard's is opened
by a guarded server only, and no call waits for it: what calls need is kept in memory, and refreshed when
`changes` says so. A toolset opens one of its own `DatabaseKind`. Importing this package imports no library;
`open_database` imports SQLAlchemy, and Alembic only to migrate.
"""

from __future__ import annotations

from fastrpc.storage.errors import (
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseUnavailable,
    LibraryMissing,
    StorageError,
)
from fastrpc.storage.kinds import GUARD, DatabaseKind
from fastrpc.storage.settings import GUARD_DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database

__all__ = [
    "GUARD_DATABASE",
    "DatabaseDamaged",
    "DatabaseKind",
    "DatabaseTooNew",
    "DatabaseUnavailable",
    "LibraryMissing",
    "StorageError",
    "open_database",
]


def open_database(url: str = "", kind: DatabaseKind = GUARD) -> Database:
    """Open a database by its URL, the guard's unless another kind is given. Without a URL it is the file of
    the kind, and for the guard's the one that FASTRPC_GUARD_DATABASE names. Raises StorageError."""
    try:
        from fastrpc.storage.database import Database
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise LibraryMissing(kind.title, "SQLAlchemy", kind.extra) from None
    return Database(url or (GUARD_DATABASE.read() if kind is GUARD else ""), kind)
