"""The table of tasks in its newest revision; `migrations` makes it. The columns are `TaskRecord`'s."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text

ID_LENGTH = 32

metadata = MetaData()

tasks = Table(
    "fastrpc_tasks",
    metadata,
    Column("id", String(ID_LENGTH), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("version", String(10), nullable=False),
    Column("params", Text, nullable=False),
    Column("idempotent", Integer, nullable=False),
    Column("state", String(14), nullable=False),
    Column("message", Text, nullable=False),
    Column("questions", Text, nullable=False),
    Column("answers", Text, nullable=False),
    Column("request_state", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("ttl_ms", BigInteger),
    Column("expires_at", Double),
    Column("poll_ms", Integer, nullable=False),
    Column("worker", String(64), nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("approval", String(64), nullable=False, server_default=""),
    Column("guard", Text, nullable=False, server_default=""),
    Column("caller", Text, nullable=False, server_default=""),
    Index("fastrpc_tasks_owner", "owner", "created_at", "id"),
    Index("fastrpc_tasks_open", "owner", "state"),
    Index("fastrpc_tasks_lease", "state", "lease_until"),
    Index("fastrpc_tasks_expiry", "expires_at"),
)
