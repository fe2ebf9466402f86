"""Changes of tasks that the processes of one PostgreSQL database tell each other (`storage.notifications`).

A notification says which task has changed, and which process has changed it: nothing of its content. SQLite
has none: there, processes look from time to time.
"""

from __future__ import annotations

from fastrpc.storage.notifications import HeardChannel, notify
from fastrpc.storage.notifications import listen as listen_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

CHANNEL = "fastrpc_tasks"


def announce(connection: Connection, id: str, worker: str) -> None:
    """Tell the other processes, once the transaction is committed, that a task has changed."""
    notify(connection, CHANNEL, f"{id} {worker}")


def listen(database: Database, heard: Callable[[str, str], object]) -> HeardChannel:
    """Call ``heard(id, worker)`` on a thread for each notification; with two empty texts when the connection
    has been made: what was announced before is unknown."""

    def take(payload: str) -> None:
        id, _, worker = payload.partition(" ")
        heard(id, worker)

    return listen_to(database, CHANNEL, take, lambda: heard("", ""))
