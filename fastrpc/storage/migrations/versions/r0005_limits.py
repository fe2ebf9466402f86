"""What has been granted of the rates and budgets that servers share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "fastrpc_limits",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("fastrpc_limits_expiry", "fastrpc_limits", ["expires_at"])
