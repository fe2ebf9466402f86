"""All names under which the file of a document was added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0011"
down_revision = "k0010"


def upgrade() -> None:
    op.add_column("knowledge_documents", sa.Column("names", sa.Text, nullable=False, server_default=""))
    filled = sa.text("UPDATE knowledge_documents SET names = :line || name || :line")
    op.get_bind().execute(filled, {"line": "\n"})
