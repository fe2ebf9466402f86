"""`TaskRows`: opens the database of tasks when it is first needed, in an event loop, and closes it."""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.settings import TASKS_DATABASE
from fastrpc.storage import CommitUnknown, DatabaseUnavailable, StorageError, open_database
from fastrpc.tasks import store
from fastrpc.tasks.journal import Journal, JournalClosed
from fastrpc.tasks.kind import TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from fastrpc.storage.notifications import HeardChannel
    from fastrpc.tasks.record import TaskRecord

    Value = TypeVar("Value")


RETRY_SECONDS = 0.5
LONGEST_PAUSE = 4.0
"""The longest pause between two attempts to open a database that is away."""


class TaskRows:
    """The database of one server. `on_open` is called when it has been opened, and again for another event
    loop after the one that used it has been closed."""

    def __init__(self, on_open: Callable[[], object]) -> None:
        self._on_open = on_open
        self._journal: Journal | None = None
        self._opening: asyncio.Future[Journal] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.opening: asyncio.Future[None] | None = None
        self._problems = diagnostics.Once("error")

    @property
    def is_open(self) -> bool:
        return self._journal is not None

    def listen(self, heard: Callable[[str, str], object]) -> HeardChannel | None:
        """Have changes of other processes heard, on a thread, where the database tells of them."""
        if self._journal is None or self._journal.database.path:
            return None
        from fastrpc.tasks.changes import listen

        return listen(self._journal.database, heard)

    async def open(self) -> None:
        """Open the database, if it is not open. Raises StorageError."""
        await self.do(lambda connection: None)

    def open_once_there(self) -> None:
        """Open a database that is away as soon as it is there, unless `opening` does so already."""
        opening = self.opening
        if opening is None or opening.done() or opening.get_loop().is_closed():
            self.opening = asyncio.ensure_future(self.logged(self._open_once_there()))

    async def _open_once_there(self) -> None:
        pause = RETRY_SECONDS
        while True:
            try:
                await self.open()
                return
            except DatabaseUnavailable as error:
                self._problems.write(f"{error}; it is tried again until it can be opened")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def do(self, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
        """Run a function of `store` in a transaction, and return its value once that is committed. Raises
        StorageError, also if the database cannot be opened: the next call tries again. Logs it, since who
        asks may be a client, which does not learn where the database is."""
        try:
            return await self._do(function, *values, **named)
        except StorageError as error:
            self._log(error)
            raise

    async def _do(self, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
        if self._journal is None:
            journal = await self._opened()
            if self._journal is None:
                self._journal = journal
                self._begin()
        elif self._loop is None or self._loop.is_closed():
            self._begin()
        return await self._journal.do(function, *values, **named)

    async def insert(self, record: TaskRecord, written: Callable[[], object]) -> None:
        """Write a new row. While it is unknown whether it has been written, try again: an error says to the
        client that it may send its call again, so no other process may run this one. `written` is called in
        this event loop when the row is in the transaction, before that is committed, which may still fail: in
        each attempt. Raises StorageError, and what `store.create` raises."""
        loop = asyncio.get_running_loop()

        def create(connection: Any) -> None:
            store.create(connection, record)
            loop.call_soon_threadsafe(written)  # while this thread waits for the disk

        is_unknown = False
        while True:
            try:
                await self.do(create)
                return
            except StorageError as error:
                is_unknown |= isinstance(error, CommitUnknown)
                if not is_unknown:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_open()

    async def _opened(self) -> Journal:
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.get_running_loop().run_in_executor(None, _open)
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Write what is waiting, and close the database."""
        journal, self._journal, self._opening = self._journal, None, None
        if journal is not None:
            await asyncio.get_running_loop().run_in_executor(None, journal.close)

    async def logged(self, writing: Awaitable[Any]) -> None:
        """Await what no request waits for. A database that is away is logged, the guard's too."""
        try:
            await writing
        except (StorageError, JournalClosed) as error:
            self._log(error)

    def _log(self, error: Exception) -> None:
        """Log that a row cannot be read or written, the same problem once."""
        self._problems.write(f"a task's row cannot be read or written: {error}")


def _open() -> Journal:
    return Journal(open_database(TASKS_DATABASE.read(), TASKS))
