"""The tables of the store in the newest revision. Times are seconds since 1970.

A space holds what one owner stores for all of their callers (`caller_class` is "" then), or for the callers
of one class. `number` is the order in which entries were written; no number is used twice. The index of words
is a separate table in each kind of database: `knowledge_words` has a row for each entry's number,
`knowledge_passage_words` one for each passage's.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NUMBER = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

spaces = Table(
    "knowledge_spaces",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("caller_class", Text, nullable=False),
    Column("changes", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("owner", "caller_class"),
)
"""`changes` counts the transactions that changed an entry of the space."""

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
"""`digest` is the SHA-256 of the content; `tags` are folded, with a line feed before and after each."""

tombstones = Table(
    "knowledge_tombstones",
    metadata,
    Column("id", String(20), primary_key=True),
    Column("space", NUMBER, nullable=False),
    Column("forgotten_at", Double, nullable=False),
)

keys = Table(
    "knowledge_keys",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("key", LargeBinary, nullable=False),
)
"""`cursors` is the key of `cursors.Cursors`, 32 random bytes."""

mentions = Table(
    "knowledge_mentions",
    metadata,
    Column("entry", NUMBER, ForeignKey("knowledge_entries.number", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("space", NUMBER, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("name", Text, nullable=False),
    Index("knowledge_mentions_key", "space", "key", "entry"),
)
"""What each entry names. An entity has no row: it exists as long as an entry names it."""
documents = Table(
    "knowledge_documents",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(20), nullable=False, unique=True),
    Column("space", NUMBER, ForeignKey("knowledge_spaces.number"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("names", Text, nullable=False, server_default=""),
    Column("type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("tags", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("pages", Integer, nullable=False),
    Column("added_at", Double, nullable=False),
    UniqueConstraint("space", "digest"),
    Index("knowledge_documents_digest", "digest"),
    Index("knowledge_documents_space", "space", "number"),
    sqlite_autoincrement=True,
)
"""`digest` is the SHA-256 of the original, in hexadecimal, which is its file's name. `changed_at` is when
`state` was set. `warnings` are lines. `names`, the latest last, are those under which the file was added,
with a line feed before and after each."""

pages = Table(
    "knowledge_pages",
    metadata,
    Column("document", NUMBER, ForeignKey("knowledge_documents.number"), primary_key=True),
    Column("page", Integer, primary_key=True),
    Column("content", Text, nullable=False),
    Column("markdown", Text),
)
"""`markdown` is null if a document has no form."""

passages = Table(
    "knowledge_passages",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("document", NUMBER, ForeignKey("knowledge_documents.number"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("page", Integer, nullable=False),
    Column("heading", Text, nullable=False),
    Column("content", Text, nullable=False),
    UniqueConstraint("document", "position"),
    sqlite_autoincrement=True,
)
"""`heading` has a line for each heading above a passage, the outermost first."""

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
"""Calls of each hour; `start` is the hour's start, for those older than 90 days the day's (UTC)."""

workflows = Table(
    "knowledge_workflows",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("definition", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("trigger", Text, nullable=False, server_default=text("''")),
    Column("starter", Text, nullable=False, server_default=text("''")),
    Column("secret", Text, nullable=False, server_default=text("''")),
)
"""`definition` is the JSON as loaded, without the secret of its webhook; `trigger` is the type of its
trigger; `starter` is the user who created it, for runs that a trigger begins. The runs are in DBOS's own
tables."""


def _readings(name: str, texts: str, *columns: Column[Any] | Index) -> Table:
    """Return the table for a model's reading of the texts of a table. From `claimed_until` on, another server
    may read a text that is not `done`. `failures` counts how often the model has refused it."""
    number = Column("number", NUMBER, ForeignKey(f"{texts}.number", ondelete="CASCADE"), primary_key=True)
    table = Table(
        name,
        metadata,
        number,
        Column("done", Boolean, nullable=False),
        Column("claimed_until", Double, nullable=False),
        Column("failures", Integer, nullable=False),
        *columns,
    )
    is_open = table.c.done.is_(False)
    Index(f"{name}_open", table.c.claimed_until, sqlite_where=is_open, postgresql_where=is_open)
    return table


def _vectors(name: str, texts: str) -> Table:
    """Return a table of vectors, of `dimensions` numbers of four bytes each and of length 1, which the
    `model` with this name has made."""
    return _readings(
        name,
        texts,
        Column("space", NUMBER, nullable=False),
        Column("model", Text, nullable=False, server_default=text("''")),
        Column("dimensions", Integer, nullable=False, server_default="0"),
        Column("vector", LargeBinary),
        Index(f"{name}_model", "model", "dimensions"),
        Index(f"{name}_space", "space", "model", "dimensions", "number", "claimed_until"),
    )


entry_vectors = _vectors("knowledge_entry_vectors", "knowledge_entries")
passage_vectors = _vectors("knowledge_passage_vectors", "knowledge_passages")
entity_readings = _readings("knowledge_entity_readings", "knowledge_entries")
"""Entries whose mentions a model has found."""
