"""The guard that decides about a task's call, and who called."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0003"
down_revision = "t0002"


def upgrade() -> None:
    for name in ("guard", "caller"):
        op.add_column("fastrpc_tasks", sa.Column(name, sa.Text, nullable=False, server_default=""))
