"""The approval that a task waits for, and the policy of the guard that decides about its call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0002"
down_revision = "t0001"


def upgrade() -> None:
    for name in ("approval", "policy"):
        op.add_column("fastrpc_tasks", sa.Column(name, sa.String(64), nullable=False, server_default=""))
