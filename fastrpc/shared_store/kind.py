"""The database of what hosts share: name and migrations. It is PostgreSQL, which has notifications."""

from __future__ import annotations

import os

from fastrpc.storage import DatabaseKind

SHARED_STORE = DatabaseKind(
    "the shared store",
    file_name="shared.sqlite3",
    extra="postgresql",
    revisions=("s0001",),
    migrations=os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations"),
    version_table="fastrpc_shared_version",
)
