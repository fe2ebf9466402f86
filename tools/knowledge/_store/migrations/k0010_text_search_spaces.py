"""The space of each text in PostgreSQL's index of words, as FTS5's has it."""

from __future__ import annotations

from alembic import op

revision = "k0010"
down_revision = "k0009"

SPACES = {
    "knowledge_words": "knowledge_entries AS e WHERE e.number = w.number",
    "knowledge_passage_words": "knowledge_passages AS p JOIN knowledge_documents AS e "
    "ON e.number = p.document WHERE p.number = w.number",
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, texts in SPACES.items():
        op.execute(f"ALTER TABLE {table} ADD COLUMN space BIGINT")
        op.execute(f"UPDATE {table} AS w SET space = e.space FROM {texts}")
        op.execute(f"ALTER TABLE {table} ALTER COLUMN space SET NOT NULL")
        op.execute(f"CREATE INDEX {table}_space ON {table} (space, number)")
