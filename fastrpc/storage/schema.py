"""The tables of the guard's database in the newest revision. `migrations` creates them.

Times are seconds since 1970. `fastrpc_changes` has a number for each topic. Every change of the topic
increments it in the same transaction (`note_change`), so a cache of rows only compares one number.
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
"""`digest` is the SHA-256 of the whole token; `family` the id of the first token in its chain of rotations;
`scopes` are separated by spaces (RFC 6749, 3.3)."""

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
"""`digest` is the digest of everything an approval is bound to, `call_digest` that of the caller and the call
alone (`fastrpc.guard.approvals.binding`). `arguments`, `edited_arguments`, `schema`, `rest_digests` and
`prefix` are JSON, `extra_params` JSON or empty. `rest_digests` maps the name of each text argument to the
digest of all other arguments. `approvers` are separated by line feeds."""

changes = Table(
    "fastrpc_changes",
    metadata,
    Column("topic", String(40), primary_key=True),
    Column("number", BigInteger, nullable=False),
)

_NUMBER_OF = select(changes.c.number).where(changes.c.topic == bindparam("topic"))


def note_change(connection: Connection, topic: str) -> None:
    """Increment the number of a topic, in the transaction of the change."""
    statement = update(changes).where(changes.c.topic == topic).values(number=changes.c.number + 1)
    if connection.execute(statement).rowcount != 1:
        raise LookupError(f"there is no topic {topic}")


def change_number(connection: Connection, topic: str) -> int:
    """Return the number of a topic. Call it before reading the rows, so that no later change is missed."""
    return int(connection.execute(_NUMBER_OF, {"topic": topic}).scalar_one())
