"""An index for finding expired and completed approvals, which are removed."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_index("fastrpc_approvals_expiry", "fastrpc_approvals", ["expires_at"])
