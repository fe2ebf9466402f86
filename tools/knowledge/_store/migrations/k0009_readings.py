"""The results of models for entries and passages: vectors, and the entities that entries name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

revision = "k0009"
down_revision = "k0008"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    for name, texts in (
        ("knowledge_entry_vectors", "knowledge_entries"),
        ("knowledge_passage_vectors", "knowledge_passages"),
    ):
        _create(
            name,
            texts,
            sa.Column("space", NUMBER, nullable=False),
            sa.Column("model", sa.Text, nullable=False, server_default=sa.text("''")),
            sa.Column("dimensions", sa.Integer, nullable=False, server_default="0"),
            sa.Column("vector", sa.LargeBinary),
        )
        op.create_index(f"{name}_space", name, ["space", "model", "dimensions", "number", "claimed_until"])
        op.create_index(f"{name}_model", name, ["model", "dimensions"])
    _create("knowledge_entity_readings", "knowledge_entries")


def _create(name: str, texts: str, *columns: sa.Column[Any]) -> None:
    number = sa.ForeignKey(f"{texts}.number", ondelete="CASCADE")
    op.create_table(
        name,
        sa.Column("number", NUMBER, number, primary_key=True),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        *columns,
    )
    is_open = sa.column("done").is_(False)
    op.create_index(f"{name}_open", name, ["claimed_until"], sqlite_where=is_open, postgresql_where=is_open)
