"""Memory: spaces, entries, tombstones, and the index of words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "knowledge_spaces",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("caller_class", sa.Text, nullable=False),
        sa.UniqueConstraint("owner", "caller_class"),
    )
    op.create_table(
        "knowledge_entries",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(20), nullable=False, unique=True),
        sa.Column("space", NUMBER, sa.ForeignKey("knowledge_spaces.number"), nullable=False),
        sa.Column("category", sa.String(20), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("written_at", sa.Double, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("superseded_by", sa.String(20)),
        sa.UniqueConstraint("space", "digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("knowledge_entries_space", "knowledge_entries", ["space", "number"])
    op.create_table(
        "knowledge_tombstones",
        sa.Column("id", sa.String(20), primary_key=True),
        sa.Column("space", NUMBER, nullable=False),
        sa.Column("forgotten_at", sa.Double, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE knowledge_words USING fts5 (words, stems, tokenize = 'ascii')")
        return
    op.execute(
        "CREATE TABLE knowledge_words (number BIGINT PRIMARY KEY "
        "REFERENCES knowledge_entries ON DELETE CASCADE, words TSVECTOR NOT NULL, stems TSVECTOR NOT NULL)"
    )
    op.execute("CREATE INDEX knowledge_words_words ON knowledge_words USING gin (words)")
    op.execute("CREATE INDEX knowledge_words_stems ON knowledge_words USING gin (stems)")
