"""The links and sessions of the dashboard."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "fastrpc_dashboard_keys",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("fastrpc_dashboard_keys_expiry", "fastrpc_dashboard_keys", ["expires_at"])
