"""The approval that a task waits for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0002"
down_revision = "t0001"


def upgrade() -> None:
    op.add_column("fastrpc_tasks", sa.Column("approval", sa.String(64), nullable=False, server_default=""))
