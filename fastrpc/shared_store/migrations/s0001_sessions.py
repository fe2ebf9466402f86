"""What sessions have beyond their ids, and messages of their clients."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "fastrpc_sessions",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("log_level", sa.String(9)),
        sa.Column("subscriptions", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("fastrpc_sessions_expiry", "fastrpc_sessions", ["expires_at"])
    op.create_table(
        "fastrpc_session_messages",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("session", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("fastrpc_session_messages_expiry", "fastrpc_session_messages", ["expires_at"])
