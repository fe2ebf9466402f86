"""What a request says besides its arguments, as it was shown to the approver."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("fastrpc_approvals", sa.Column("extra_params", sa.Text, nullable=False, server_default=""))
