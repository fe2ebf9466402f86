"""The knowledge toolset's database: its name, its path, and the modules that make its tables."""

from __future__ import annotations

import os

from fastrpc.storage import DatabaseKind

KNOWLEDGE = DatabaseKind(
    "the knowledge store",
    file_name="knowledge.sqlite3",
    extra="knowledge",
    revisions=tuple(f"k{number:04}" for number in range(1, 13)),
    migrations=os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations"),
    version_table="knowledge_schema_version",
    wait_seconds=15.0,  # agents of many processes write into it
)
