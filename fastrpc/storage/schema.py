"""The tables of the guard's database in the newest revision. `migrations` creates them.

Times are seconds since 1970. `fastrpc_changes` has a number for each topic. Every change of the topic
increments it in the same transaction (`note_change`), so a cache of rows only compares one number.
"""

from __future__ import annotations

import sqlalchemy as sa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ID_LENGTH = 12

metadata = sa.MetaData()

tokens = sa.Table(
    "fastrpc_tokens",
    metadata,
    sa.Column("id", sa.String(ID_LENGTH), primary_key=True),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("family", sa.String(ID_LENGTH), nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("caller_class", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.Column("last_used_at", sa.Double),
    sa.Column("rotated_from", sa.String(ID_LENGTH), sa.ForeignKey("fastrpc_tokens.id")),
)
"""`digest` is the SHA-256 of the whole token; `family` the id of the first token in its chain of rotations;
`scopes` are separated by spaces (RFC 6749, 3.3)."""

approvals = sa.Table(
    "fastrpc_approvals",
    metadata,
    sa.Column("id", sa.String(ID_LENGTH + 3), primary_key=True),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("call_digest", sa.LargeBinary(32), nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("caller_class", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("arguments", sa.Text, nullable=False),
    sa.Column("rest_digests", sa.Text, nullable=False),
    sa.Column("schema", sa.Text, nullable=False),
    sa.Column("policy", sa.Text, nullable=False),
    sa.Column("risk", sa.String(10), nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("approvers", sa.Text, nullable=False),
    sa.Column("may_edit", sa.Integer, nullable=False),
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("decided_at", sa.Double),
    sa.Column("decided_by", sa.Text),
    sa.Column("channel", sa.String(20)),
    sa.Column("comment", sa.Text),
    sa.Column("edited_arguments", sa.Text),
    sa.Column("prefix", sa.Text),
    sa.Column("valid_until", sa.Double),
    sa.Column("uses_left", sa.Integer, nullable=False),
    sa.Column("used_at", sa.Double),
    sa.Column("extra_params", sa.Text, nullable=False, server_default=""),
    sa.Index("fastrpc_approvals_digest", "digest"),
    sa.Index("fastrpc_approvals_call", "call_digest"),
    sa.Index("fastrpc_approvals_state", "state", "caller"),
    sa.Index("fastrpc_approvals_expiry", "expires_at"),
    sa.Index(
        "fastrpc_approvals_newest", "state", sa.text("asked_at DESC"), "id", "expires_at", "valid_until"
    ),
)
"""`digest` is the digest of everything an approval is bound to, `call_digest` that of the caller and the call
alone (`fastrpc.guard.approvals.binding`). `arguments`, `edited_arguments`, `schema`, `rest_digests` and
`prefix` are JSON, `extra_params` JSON or empty. `rest_digests` maps the name of each text argument to the
digest of all other arguments. `approvers` are separated by line feeds."""

limits = sa.Table(
    "fastrpc_limits",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("counts", sa.Text, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("about", sa.Text, nullable=False, server_default=""),
    sa.Index("fastrpc_limits_expiry", "expires_at"),
)
"""`key` is a digest of caller, tool and limit. `counts` is JSON: by the number of a stretch of time, what has
been granted in it (`fastrpc.guard.leases.store`). `about` is JSON: of a budget its caller, tool and text; ""
for a rate."""

dashboard_keys = sa.Table(
    "fastrpc_dashboard_keys",
    metadata,
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Index("fastrpc_dashboard_keys_expiry", "expires_at"),
)
"""`digest` is the SHA-256 of a link's code, or of a session's token; `kind` says which of them."""

changes = sa.Table(
    "fastrpc_changes",
    metadata,
    sa.Column("topic", sa.String(40), primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

_NUMBER_OF = sa.select(changes.c.number).where(changes.c.topic == sa.bindparam("topic"))


def note_change(connection: Connection, topic: str) -> None:
    """Increment the number of a topic, in the transaction of the change."""
    statement = sa.update(changes).where(changes.c.topic == topic).values(number=changes.c.number + 1)
    if connection.execute(statement).rowcount != 1:
        raise LookupError(f"there is no topic {topic}")


def change_number(connection: Connection, topic: str) -> int:
    """Return the number of a topic. Call it before reading the rows, so that no later change is missed."""
    return int(connection.execute(_NUMBER_OF, {"topic": topic}).scalar_one())
