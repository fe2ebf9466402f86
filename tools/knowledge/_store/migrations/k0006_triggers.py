"""What triggers workflows, the users in whose name triggered runs execute, and the secrets of webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0006"
down_revision = "k0005"


def upgrade() -> None:
    for name in ("trigger", "starter", "secret"):
        op.add_column(
            "knowledge_workflows", sa.Column(name, sa.Text, nullable=False, server_default=sa.text("''"))
        )
