"""The errors of databases. Their messages name the database, and never contain its password."""

from __future__ import annotations

from fastrpc.errors import FastrpcError


class StorageError(FastrpcError):
    """The root of all errors of a database."""

    for_clients = "the database is away"
    """What a client learns: the whole message, which says where the database is, is for the log."""


class InvalidUrl(StorageError):
    """The URL is not that of a database that can be opened."""


class LibraryMissing(StorageError):
    """A library that the database needs is not installed."""

    def __init__(self, title: str, library: str, extra: str, reason: str = "") -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f'{title} needs {library}{why}: pip install "fastrpc-mcp[{extra}]"')


class DatabaseUnavailable(StorageError):
    """The database cannot be reached, read or written at present; a later attempt may succeed."""

    retry_after_seconds = 5


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost while a transaction was committed: it may have been, or not."""


class UnstorableValue(StorageError):
    """The database cannot hold a value, such as U+0000 in PostgreSQL. A later attempt fails, too."""

    for_clients = "the database cannot hold a text"


class DatabaseDamaged(StorageError):
    """The file is not a database, or its content is damaged. It was not changed."""


class DatabaseTooNew(StorageError):
    """This version of fastrpc does not know the schema's revision. The database was not changed."""
