"""`DatabaseKind`: the title of a kind of database in messages, its default file, and its migrations.

The guard's is `GUARD`. A toolset that stores rows declares a kind, and opens it with
`open_database(url, kind)`: the checks, migrations and transactions are the same.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from fastrpc.settings import STATE_DIR


class DatabaseKind(NamedTuple):
    """`title` begins every message; `file_name` is that of SQLite's file in the state folder; `extra`
    installs the libraries; `revisions` are all revisions of the schema, the oldest first; `migrations` is the
    folder with an Alembic file for each; `version_table` holds the revision, so several kinds may share one
    PostgreSQL database. `wait_seconds` is how long a change waits for other writers of SQLite's file.
    """

    title: str
    file_name: str
    extra: str
    revisions: tuple[str, ...]
    migrations: str
    version_table: str
    wait_seconds: float | None = None

    def __repr__(self) -> str:
        return f"DatabaseKind({self.title!r})"

    @property
    def default_path(self) -> str:
        """The file that is used without a URL."""
        return os.path.join(STATE_DIR.read(), self.file_name)


GUARD = DatabaseKind(
    "the guard's database",
    file_name="guard.sqlite3",
    extra="guard",
    revisions=("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008"),
    migrations=os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations", "versions"),
    version_table="fastrpc_schema_version",
)
