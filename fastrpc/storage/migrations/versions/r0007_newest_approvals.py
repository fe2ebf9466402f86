"""An index for the pages of approvals, the newest first, which has all that chooses their rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_index(
        "fastrpc_approvals_newest",
        "fastrpc_approvals",
        ["state", sa.text("asked_at DESC"), "id", "expires_at", "valid_until"],
    )
