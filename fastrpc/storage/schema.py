"""The tables of the guard's database, as the newest revision has them. `migrations` makes them.

Times are seconds since 1970. `fastrpc_changes` has a number for each topic, which every change of that topic
raises in its own transaction (`note_change`): whoever keeps rows in memory compares one number.
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
    bindparam,
    select,
    update,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ID_LENGTH = 12

metadata = MetaData()

tokens = Table(
    "fastrpc_tokens",
    metadata,
    Column("id", String(ID_LENGTH), primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Column("family", String(ID_LENGTH), nullable=False),
    Column("owner", Text, nullable=False),
    Column("caller_class", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("last_used_at", Double),
    Column("rotated_from", String(ID_LENGTH), ForeignKey("fastrpc_tokens.id")),
)
"""`digest` is the SHA-256 of the whole token; `family` the id of the first of the tokens that were made of
each other by rotation; `scopes` are separated by spaces (RFC 6749, 3.3)."""

approvals = Table(
    "fastrpc_approvals",
    metadata,
    Column("id", String(ID_LENGTH + 3), primary_key=True),
    Column("state", String(10), nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("call_digest", LargeBinary(32), nullable=False),
    Column("caller", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("caller_class", Text, nullable=False),
    Column("server", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("name", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("rest_digests", Text, nullable=False),
    Column("schema", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("risk", String(10), nullable=False),
    Column("rule", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("approvers", Text, nullable=False),
    Column("may_edit", Integer, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("decided_at", Double),
    Column("decided_by", Text),
    Column("channel", String(20)),
    Column("comment", Text),
    Column("edited_arguments", Text),
    Column("prefix", Text),
    Column("valid_until", Double),
    Column("uses_left", Integer, nullable=False),
    Column("used_at", Double),
    Column("extra_params", Text, nullable=False, server_default=""),
    Index("fastrpc_approvals_digest", "digest"),
    Index("fastrpc_approvals_call", "call_digest"),
    Index("fastrpc_approvals_state", "state", "caller"),
    Index("fastrpc_approvals_expiry", "expires_at"),
)
"""`digest` is that of everything an approval is bound to, `call_digest` that of the caller and the call alone
(`fastrpc.guard.approvals.binding`); `arguments`, `edited_arguments`, `schema`, `rest_digests`, the
digest of all other arguments by the name of a text, and `prefix` are JSON, `extra_params` JSON or nothing;
`approvers` are separated by line feeds."""

changes = Table(
    "fastrpc_changes",
    metadata,
    Column("topic", String(40), primary_key=True),
    Column("number", BigInteger, nullable=False),
)

_NUMBER_OF = select(changes.c.number).where(changes.c.topic == bindparam("topic"))


def note_change(connection: Connection, topic: str) -> None:
    """Raise the number of a topic, in the transaction of the change."""
    statement = update(changes).where(changes.c.topic == topic).values(number=changes.c.number + 1)
    if connection.execute(statement).rowcount != 1:
        raise LookupError(f"there is no topic {topic}")


def change_number(connection: Connection, topic: str) -> int:
    """Return the number of a topic. Read before what it is about, so that a later change is not missed."""
    return int(connection.execute(_NUMBER_OF, {"topic": topic}).scalar_one())
