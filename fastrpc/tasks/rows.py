"""`TaskRows`: opens the database of tasks when it is first needed, in an event loop, and closes it."""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.settings import TASKS_DATABASE
from fastrpc.storage import CommitUnknown, StorageError, open_database
from fastrpc.tasks.journal import Journal, JournalClosed
from fastrpc.tasks.kind import TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from fastrpc.tasks.changes import Listener

    Value = TypeVar("Value")


PAUSE_SECONDS = 0.5
"""Between two attempts to find out whether a transaction has been committed."""


class TaskRows:
    """The database of one server. `on_open` is called when it has been opened, and again for another event
    loop after the one that used it has been closed."""

    def __init__(self, on_open: Callable[[], object]) -> None:
        self._on_open = on_open
        self._journal: Journal | None = None
        self._opening: asyncio.Future[Journal] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problems = diagnostics.Once("error")

    @property
    def is_open(self) -> bool:
        return self._journal is not None

    def listen(self, heard: Callable[[str, str], object]) -> Listener | None:
        """Have changes of other processes heard, on a thread, where the database tells of them."""
        if self._journal is None or self._journal.database.path:
            return None
        from fastrpc.tasks.changes import Listener

        return Listener(self._journal.database, heard)

    async def do(self, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
        """Run a function of `store` in a transaction, and return its value once that is committed. Raises
        StorageError, also if the database cannot be opened: the next call tries again."""
        if self._journal is None:
            journal = await self._opened()
            if self._journal is None:
                self._journal = journal
                self._begin()
        elif self._loop is None or self._loop.is_closed():
            self._begin()
        return await self._journal.do(function, *values, **named)

    async def do_until_known(self, function: Callable[..., Value], *values: Any) -> Value:
        """`do` a function that may be run twice, again while it is unknown whether its transaction has been
        committed: an error says that it has not."""
        is_unknown = False
        while True:
            try:
                return await self.do(function, *values)
            except StorageError as error:
                is_unknown |= isinstance(error, CommitUnknown)
                if not is_unknown:
                    raise
                self.log(error)
            await asyncio.sleep(PAUSE_SECONDS)

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
        """Await what no request waits for. A database that is away is logged."""
        try:
            await writing
        except (StorageError, JournalClosed) as error:
            self.log(error)

    def log(self, error: Exception) -> None:
        """Log that a row cannot be read or written, the same problem once."""
        self._problems.write(f"a task's row cannot be read or written: {error}")


def _open() -> Journal:
    return Journal(open_database(TASKS_DATABASE.read(), TASKS))
