"""The tables of the shared store in their newest revision; `migrations` makes them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

sessions = Table(
    "fastrpc_sessions",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("ended", Integer, nullable=False),
    Column("log_level", String(9)),
    Column("subscriptions", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("fastrpc_sessions_expiry", "expires_at"),
)
"""What a session has beyond its sealed id. `id` is the id's random part; `subscriptions` maps each URI, as
JSON, to the form in which the client has written it."""

messages = Table(
    "fastrpc_session_messages",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("session", String(16), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("fastrpc_session_messages_expiry", "expires_at"),
)
"""Messages of a session that another process may need: those of its client, and lines of the server."""
