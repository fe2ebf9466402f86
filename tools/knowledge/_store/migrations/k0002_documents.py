"""Documents: their pages, their passages, and the index of words in passages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "k0002"
down_revision = "k0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "knowledge_documents",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(20), nullable=False, unique=True),
        sa.Column("space", NUMBER, sa.ForeignKey("knowledge_spaces.number"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("warnings", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("language", sa.Text, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.UniqueConstraint("space", "digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("knowledge_documents_digest", "knowledge_documents", ["digest"])
    op.create_table(
        "knowledge_pages",
        sa.Column("document", NUMBER, sa.ForeignKey("knowledge_documents.number"), primary_key=True),
        sa.Column("page", sa.Integer, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("markdown", sa.Text),
    )
    op.create_table(
        "knowledge_passages",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("document", NUMBER, sa.ForeignKey("knowledge_documents.number"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("page", sa.Integer, nullable=False),
        sa.Column("heading", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.UniqueConstraint("document", "position"),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE knowledge_passage_words USING fts5 (words, stems, tokenize = 'ascii')"
        )
        return
    op.execute(
        "CREATE TABLE knowledge_passage_words (number BIGINT PRIMARY KEY "
        "REFERENCES knowledge_passages ON DELETE CASCADE, words TSVECTOR NOT NULL, stems TSVECTOR NOT NULL)"
    )
    op.execute("CREATE INDEX knowledge_passage_words_words ON knowledge_passage_words USING gin (words)")
    op.execute("CREATE INDEX knowledge_passage_words_stems ON knowledge_passage_words USING gin (stems)")
