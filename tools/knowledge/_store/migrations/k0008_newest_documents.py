"""An index that returns a page of an owner's documents without reading all of them."""

from __future__ import annotations

from alembic import op

revision = "k0008"
down_revision = "k0007"


def upgrade() -> None:
    op.create_index("knowledge_documents_space", "knowledge_documents", ["space", "number"])
