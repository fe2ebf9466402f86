"""Definitions of workflows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0004"
down_revision = "k0003"


def upgrade() -> None:
    op.create_table(
        "knowledge_workflows",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )
