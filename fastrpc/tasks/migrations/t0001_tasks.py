"""The table of tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "fastrpc_tasks",
        sa.Column("id", sa.String(32), primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("owner", "server", "tool")),
        sa.Column("version", sa.String(10), nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("idempotent", sa.Integer, nullable=False),
        sa.Column("state", sa.String(14), nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("message", "questions", "answers", "request_state")
        ),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("result", "error")),
        *(sa.Column(name, sa.Double, nullable=False) for name in ("created_at", "updated_at")),
        sa.Column("ttl_ms", sa.BigInteger),
        sa.Column("expires_at", sa.Double),
        sa.Column("poll_ms", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(64), nullable=False),
        sa.Column("lease_until", sa.Double, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
    )
    op.create_index("fastrpc_tasks_owner", "fastrpc_tasks", ["owner", "created_at", "id"])
    op.create_index("fastrpc_tasks_open", "fastrpc_tasks", ["owner", "state"])
    op.create_index("fastrpc_tasks_lease", "fastrpc_tasks", ["state", "lease_until"])
    op.create_index("fastrpc_tasks_expiry", "fastrpc_tasks", ["expires_at"])
