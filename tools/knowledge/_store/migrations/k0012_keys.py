"""The key that encrypts the cursors of lists."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "k0012"
down_revision = "k0011"


def upgrade() -> None:
    keys = op.create_table(
        "knowledge_keys",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
    )
    op.bulk_insert(keys, [{"name": "cursors", "key": secrets.token_bytes(32)}])
