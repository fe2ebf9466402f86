"""Approvals: calls that a person is asked about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "fastrpc_approvals",
        sa.Column("id", sa.String(15), primary_key=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("call_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("caller_class", sa.Text, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("rest_digests", sa.Text, nullable=False),
        sa.Column("schema", sa.Text, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("risk", sa.String(10), nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("approvers", sa.Text, nullable=False),
        sa.Column("may_edit", sa.Integer, nullable=False),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("decided_at", sa.Double),
        sa.Column("decided_by", sa.Text),
        sa.Column("channel", sa.String(20)),
        sa.Column("comment", sa.Text),
        sa.Column("edited_arguments", sa.Text),
        sa.Column("prefix", sa.Text),
        sa.Column("valid_until", sa.Double),
        sa.Column("uses_left", sa.Integer, nullable=False),
        sa.Column("used_at", sa.Double),
    )
    op.create_index("fastrpc_approvals_digest", "fastrpc_approvals", ["digest"])
    op.create_index("fastrpc_approvals_call", "fastrpc_approvals", ["call_digest"])
    op.create_index("fastrpc_approvals_state", "fastrpc_approvals", ["state", "caller"])
    op.execute("INSERT INTO fastrpc_changes (topic, number) VALUES ('approvals', 0)")
