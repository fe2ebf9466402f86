"""The rows of the shared store. Each function takes the connection of a transaction.

Several processes may change one session at the same time: each writes what its client has changed, not the
whole, under the lock of the row.
"""

from __future__ import annotations

import json
import time

from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from fastrpc.protocol.session_changes import CommonState, SessionChange
from fastrpc.shared_store.schema import messages, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

SESSION_SECONDS = 25 * 3600
"""How long an unchanged row is kept: longer than a process that does not have the session accepts
its id."""
MESSAGE_SECONDS = 60.0
MOST_MESSAGE_BYTES = 1024 * 1024
READ_AT_ONCE = 500
REMOVED_AT_ONCE = 1000


def read(connection: Connection, ids: list[str]) -> dict[str, CommonState]:
    """Return those of some sessions that the store has."""
    found: dict[str, CommonState] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        some = sessions.c.id.in_(ids[start : start + READ_AT_ONCE])
        columns = (sessions.c.id, sessions.c.ended, sessions.c.log_level, sessions.c.subscriptions)
        for id, ended, level, subscriptions in connection.execute(select(*columns).where(some)):
            found[id] = CommonState(bool(ended), level, _subscriptions(subscriptions))
    return found


def change(connection: Connection, id: str, made: SessionChange) -> CommonState:
    """Write what has changed of a session, and return all of it. An ended one is left as it is."""
    _make(connection, id)
    columns = (sessions.c.ended, sessions.c.log_level, sessions.c.subscriptions)
    locked = select(*columns).where(sessions.c.id == id).with_for_update()
    ended, level, text = connection.execute(locked).one()
    state = CommonState(bool(ended), level, _subscriptions(text))
    if not ended:
        state = state.with_change(made)
        text = json.dumps(state.subscriptions, separators=(",", ":"))
        _write(connection, id, log_level=state.log_level, subscriptions=text)
    return state


def end(connection: Connection, id: str) -> None:
    """Write that a client has ended its session."""
    _make(connection, id)
    _write(connection, id, ended=1, log_level=None, subscriptions="{}")


def _subscriptions(text: str) -> dict[str, str]:
    """Return the subscriptions of a row; none for a text that this code has not written."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {uri: asked for uri, asked in found.items() if isinstance(asked, str)}


def _make(connection: Connection, id: str) -> None:
    new = {"id": id, "ended": 0, "subscriptions": "{}", "expires_at": time.time() + SESSION_SECONDS}
    connection.execute(insert_unless(sessions).values(new).on_conflict_do_nothing())


def _write(connection: Connection, id: str, **values: object) -> None:
    until = time.time() + SESSION_SECONDS
    connection.execute(update(sessions).where(sessions.c.id == id).values(expires_at=until, **values))


def post(connection: Connection, session: str, kind: str, body: bytes) -> int:
    """Store a message of a session for the other processes that have it; return its number."""
    until = time.time() + MESSAGE_SECONDS
    values = {"session": session, "kind": kind, "body": body, "expires_at": until}
    made = connection.execute(insert(messages).values(values).returning(messages.c.id))
    return int(made.scalar_one())


def posted(connection: Connection, session: str, number: int) -> tuple[str, bytes] | None:
    """Return the kind and the text of a session's message; None if there is none with this number."""
    wanted = select(messages.c.kind, messages.c.body)
    found = connection.execute(wanted.where(messages.c.id == number, messages.c.session == session)).first()
    return None if found is None else (found[0], bytes(found[1]))


def remove_expired(connection: Connection) -> None:
    """Delete rows whose time is over, `REMOVED_AT_ONCE` of each table."""
    for table in (sessions, messages):
        ids = select(table.c.id).where(table.c.expires_at < time.time()).limit(REMOVED_AT_ONCE)
        connection.execute(delete(table).where(table.c.id.in_(ids)))
