"""How often each tool was called, by hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0005"
down_revision = "k0004"


def upgrade() -> None:
    op.create_table(
        "knowledge_counts",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("refusals", sa.BigInteger, nullable=False),
    )
