"""Tokens of callers, and the change numbers of topics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "fastrpc_tokens",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("family", sa.String(12), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("caller_class", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.Column("last_used_at", sa.Double),
        sa.Column("rotated_from", sa.String(12), sa.ForeignKey("fastrpc_tokens.id")),
    )
    changes = op.create_table(
        "fastrpc_changes",
        sa.Column("topic", sa.String(40), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(changes, [{"topic": "tokens", "number": 0}])
