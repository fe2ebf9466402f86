"""`TaskDatabase`: the database of tasks, as the dashboard reads it. It is opened only if it exists: a server
without tasks has none."""

from __future__ import annotations

import os
from threading import Lock

from fastrpc.settings import TASKS_DATABASE
from fastrpc.storage import open_database
from fastrpc.tasks.kind import TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database


class TaskDatabase:
    """The database that FASTRPC_TASKS_DATABASE names, or the file in the state folder."""

    def __init__(self) -> None:
        self._url = TASKS_DATABASE.read()
        self._opening = Lock()
        self._opened: Database | None = None

    def open(self) -> Database | None:
        """Return the database, None as long as there is none. Raises StorageError."""
        with self._opening:
            if self._opened is None and (self._url or os.path.exists(TASKS.default_path)):
                self._opened = open_database(self._url, TASKS)
            return self._opened
