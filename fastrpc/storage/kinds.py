"""`DatabaseKind`: what a kind of database is called in messages, where it lies, and what makes its tables.

The guard's is `GUARD`. A toolset that keeps rows declares its own, and opens it with
`open_database(url, kind)`: the checks, migrations and transactions are the same.
"""

from __future__ import annotations

import os

from fastrpc.settings import STATE_DIR


class DatabaseKind:
    """`title` begins every message; `file_name` is that of SQLite's file in the state folder; `extra` brings
    the libraries; `revisions` are all of the schema's, the oldest first; `migrations` is the folder with
    a file of Alembic's for each; `version_table` holds the revision, so several kinds may share one
    PostgreSQL database. `wait_seconds` is how long a change waits for others that write SQLite's file.
    """

    __slots__ = (
        "extra", "file_name", "migrations", "revisions", "title", "version_table", "wait_seconds",
    )  # fmt: skip

    def __init__(
        self,
        title: str,
        *,
        file_name: str,
        extra: str,
        revisions: tuple[str, ...],
        migrations: str,
        version_table: str,
        wait_seconds: float | None = None,
    ) -> None:
        self.title = title
        self.file_name = file_name
        self.extra = extra
        self.revisions = revisions
        self.migrations = migrations
        self.version_table = version_table
        self.wait_seconds = wait_seconds

    def __repr__(self) -> str:
        return f"DatabaseKind({self.title!r})"

    @property
    def default_path(self) -> str:
        """The file where no URL names another database."""
        return os.path.join(STATE_DIR.read(), self.file_name)


GUARD = DatabaseKind(
    "the guard's database",
    file_name="guard.sqlite3",
    extra="guard",
    revisions=("0001", "0002", "0003", "0004"),
    migrations=os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations", "versions"),
    version_table="fastrpc_schema_version",
)
