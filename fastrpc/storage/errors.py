"""The errors of databases. Their messages name the database, and never hold its password."""

from __future__ import annotations

from fastrpc.errors import FastrpcError


class StorageError(FastrpcError):
    """The root of all errors of a database."""


class InvalidUrl(StorageError):
    """A URL that names no database that can be opened."""


class LibraryMissing(StorageError):
    """A library that the database needs is not installed."""

    def __init__(self, title: str, library: str, extra: str, reason: str = "") -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f'{title} needs {library}{why}: pip install "fastrpc-mcp[{extra}]"')


class DatabaseUnavailable(StorageError):
    """The database cannot be reached, read or written now. It may be again."""


class DatabaseDamaged(StorageError):
    """The file is no database, or its content is broken. It was not changed."""


class DatabaseTooNew(StorageError):
    """The schema is one that this version of fastrpc does not know. It was not changed."""
