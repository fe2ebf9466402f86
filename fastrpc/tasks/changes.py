"""Changes of tasks that the processes of one PostgreSQL database tell each other, by LISTEN and NOTIFY.

A notification says which task has changed, and which process has changed it: nothing of its content. SQLite
has none: there, processes look from time to time.
"""

from __future__ import annotations

from threading import Event, Thread

from sqlalchemy import text

from fastrpc.storage import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

CHANNEL = "fastrpc_tasks"
PAUSE_SECONDS = 1.0
"""Between two attempts to connect, and the longest that `Listener.end` takes."""


def announce(connection: Connection, id: str, worker: str) -> None:
    """Tell the other processes, once the transaction is committed, that a task has changed."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_notify(:channel, :said)"), _said(id, worker))


def _said(id: str, worker: str) -> dict[str, str]:
    return {"channel": CHANNEL, "said": f"{id} {worker}"}


class Listener:
    """Calls ``heard(id, worker)`` on a thread for each notification; with two empty texts when it has
    connected: what was announced before is unknown."""

    def __init__(self, database: Database, heard: Callable[[str, str], object]) -> None:
        self._database = database
        self._heard = heard
        self._ended = Event()
        Thread(target=self._listen, name="fastrpc-task-changes", daemon=True).start()

    def end(self) -> None:
        """Close the connection soon."""
        self._ended.set()

    def _listen(self) -> None:
        import psycopg

        while not self._ended.is_set():
            try:
                with self._database.listening(CHANNEL) as connection:
                    self._heard("", "")
                    while not self._ended.is_set():
                        for notification in connection.notifies(timeout=PAUSE_SECONDS):
                            id, _, worker = notification.payload.partition(" ")
                            self._heard(id, worker)
            except (psycopg.Error, StorageError):  # the rows say so, too
                self._ended.wait(PAUSE_SECONDS)
