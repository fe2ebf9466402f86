"""The space of each text in FTS5's index of words, and no weight for it in the rank."""

from __future__ import annotations

from alembic import op

revision = "k0007"
down_revision = "k0006"

SPACES = {
    "knowledge_words": "knowledge_entries AS e ON e.number = w.rowid",
    "knowledge_passage_words": "knowledge_passages AS p ON p.number = w.rowid "
    "JOIN knowledge_documents AS e ON e.number = p.document",
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    for table, texts in SPACES.items():
        op.execute(f"ALTER TABLE {table} RENAME TO {table}_older")
        op.execute(f"CREATE VIRTUAL TABLE {table} USING fts5 (space, words, stems, tokenize = 'ascii')")
        op.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)')")
        op.execute(
            f"INSERT INTO {table} (rowid, space, words, stems) "
            f"SELECT w.rowid, '§' || e.space, w.words, w.stems FROM {table}_older AS w JOIN {texts}"
        )
        op.execute(f"DROP TABLE {table}_older")
