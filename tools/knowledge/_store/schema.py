"""The tables of the store, as the newest revision has them. Times are seconds since 1970.

A space is what one owner keeps for all of their callers (`caller_class` is "" then), or for the callers of
one class. `number` is the order in which entries were written; none is given twice. The index of words is a
table of its own in each kind of database, `knowledge_words`, with a row for each entry's number.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NUMBER = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

spaces = Table(
    "knowledge_spaces",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("caller_class", Text, nullable=False),
    UniqueConstraint("owner", "caller_class"),
)

entries = Table(
    "knowledge_entries",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(20), nullable=False, unique=True),
    Column("space", NUMBER, ForeignKey("knowledge_spaces.number"), nullable=False),
    Column("category", String(20), nullable=False),
    Column("content", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("written_at", Double, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("superseded_by", String(20)),
    UniqueConstraint("space", "digest"),
    Index("knowledge_entries_space", "space", "number"),
    sqlite_autoincrement=True,
)
"""`digest` is the SHA-256 of the content; `tags` are folded, with a line feed before and behind each."""

tombstones = Table(
    "knowledge_tombstones",
    metadata,
    Column("id", String(20), primary_key=True),
    Column("space", NUMBER, nullable=False),
    Column("forgotten_at", Double, nullable=False),
)

counts = Table(
    "knowledge_counts",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("start", BigInteger, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("refusals", BigInteger, nullable=False),
)
"""Calls of each hour; `start` is the hour's, of what is older than 90 days the day's (UTC)."""

workflows = Table(
    "knowledge_workflows",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("definition", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
)
"""`definition` is the JSON as it was loaded. Runs are DBOS's, in tables of its own."""
