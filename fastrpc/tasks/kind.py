"""The database of tasks: its name, its file in the state folder, and its migrations."""

from __future__ import annotations

import os

from fastrpc.storage import DatabaseKind

TASKS = DatabaseKind(
    "the tasks' database",
    file_name="tasks.sqlite3",
    extra="tasks",
    revisions=("t0001", "t0002", "t0003"),
    migrations=os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations"),
    version_table="fastrpc_tasks_version",
)
