"""`TaskDatabase`: the tasks of a database, as the dashboard reads and cancels them. The database is opened
only if it exists: a server without tasks has none. Methods raise StorageError."""

from __future__ import annotations

import os
from threading import Lock
from time import time

from fastrpc.settings import TASKS_DATABASE
from fastrpc.storage import open_database
from fastrpc.tasks import store
from fastrpc.tasks.changes import announce
from fastrpc.tasks.kind import TASKS
from fastrpc.tasks.overview import page_of_all, task_with
from fastrpc.tasks.workers import is_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database
    from fastrpc.tasks.record import TaskRecord


class TaskDatabase:
    """The database that FASTRPC_TASKS_DATABASE names, or the file in the state folder."""

    def __init__(self) -> None:
        self._url = TASKS_DATABASE.read()
        self._opening = Lock()
        self._opened: Database | None = None

    @property
    def opened(self) -> Database | None:
        """The database, None as long as there is none."""
        with self._opening:
            if self._opened is None and (self._url or os.path.exists(TASKS.default_path)):
                self._opened = open_database(self._url, TASKS)
            return self._opened

    def page(self, limit: int, states: tuple[str, ...], after: str) -> list[TaskRecord]:
        """Return a page of tasks: see `page_of_all`."""
        database = self.opened
        if database is None:
            return []
        with database.reading() as connection:
            return page_of_all(connection, time(), limit, states, after)

    def task(self, id: str) -> TaskRecord | None:
        """Return the task with an id."""
        database = self.opened
        if database is None:
            return None
        with database.reading() as connection:
            return task_with(connection, id, time())

    def cancel(self, record: TaskRecord, message: str) -> str | None:
        """Cancel a task. The process that runs it ends its call; without one, if the function has begun,
        a process of its server runs it once more to end what it has begun. Return the approval that has to
        be withdrawn with it, "" without one; None: it has ended."""
        database = self.opened
        assert database is not None
        with database.changing() as connection:
            now = time()
            last = task_with(connection, record.id, now)
            keeps_call = last is not None and bool(last.idempotent) and is_left(last, now)
            if not store.cancel(
                connection, record.id, record.owner, now, message=message, keeps_call=keeps_call
            ):
                return None
            announce(connection, record.id, "")
            return store.approval_of(connection, record.id)
