"""What each entry names, and how often a space has changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0003"
down_revision = "k0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "knowledge_mentions",
        sa.Column(
            "entry", NUMBER, sa.ForeignKey("knowledge_entries.number", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("space", NUMBER, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
    )
    op.create_index("knowledge_mentions_key", "knowledge_mentions", ["space", "key", "entry"])
    op.add_column("knowledge_spaces", sa.Column("changes", sa.BigInteger, nullable=False, server_default="0"))
