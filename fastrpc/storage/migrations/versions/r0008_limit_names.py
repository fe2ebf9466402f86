"""What a shared limit is about, for people."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("fastrpc_limits", sa.Column("about", sa.Text, nullable=False, server_default=""))
