"""The params of a request besides its arguments, in the form in which the approver has seen them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("fastrpc_approvals", sa.Column("extra_params", sa.Text, nullable=False, server_default=""))
