"""`Journal`: writes and reads the rows of tasks on one thread, for any number of calls at once.

What is asked for while a transaction runs goes into the next one together, so many tasks share one flush to
the disk. If one function of a transaction fails, the others are run again without it. A function is awaited
until its transaction is committed: what a client receives is durable.
"""

from __future__ import annotations

import asyncio
from queue import SimpleQueue
from threading import Lock, Thread

from fastrpc.errors import FastrpcError
from fastrpc.storage.database import KeptConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from fastrpc.storage.database import Database

    Value = TypeVar("Value")
    Job = tuple[asyncio.Future[Any], Callable[..., object], tuple[Any, ...], dict[str, Any]]

AT_ONCE = 256
"""Functions in one transaction."""


class JournalClosed(FastrpcError):
    """The server is ending: nothing more is written."""

    def __init__(self) -> None:
        super().__init__("the server is ending")


class Journal:
    """Runs functions on the database of tasks, for any event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._kept = KeptConnection(database)
        self._waiting: SimpleQueue[Job | None] = SimpleQueue()
        """None is the last: the journal is closed."""
        self._closing = Lock()
        self._closed = False
        self._thread = Thread(target=self._run, name="fastrpc-tasks", daemon=True)
        self._thread.start()

    async def do(self, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
        """Call ``function(connection, *values, **named)`` in a transaction; return its value once that is
        committed. Raises StorageError if the database is not available, JournalClosed, and what the function
        raises."""
        future: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        with self._closing:
            if self._closed:
                raise JournalClosed
            self._waiting.put((future, function, values, named))
        return await future

    def close(self) -> None:
        """Write what is waiting, then end the thread and the database's connections."""
        with self._closing:
            self._closed = True
            self._waiting.put(None)
        self._thread.join()
        self._kept.close()
        self.database.close()

    def _run(self) -> None:
        waiting = self._waiting
        while (job := waiting.get()) is not None:
            batch = [job]
            while len(batch) < AT_ONCE and waiting.qsize() and (job := waiting.get()) is not None:
                batch.append(job)
            self._commit([each for each in batch if not each[0].cancelled()])
            if job is None:
                return

    def _commit(self, batch: list[Job]) -> None:
        """Run functions in one transaction; each in its own if that fails."""
        found: list[object] = []
        try:
            with self.database.changing(self._kept) as connection:
                for _, function, values, named in batch:
                    found.append(function(connection, *values, **named))
        except Exception as error:
            if len(batch) == 1:
                _answer(batch, [None], error)
            else:
                for job in batch:
                    self._commit([job])
            return
        _answer(batch, found)


def _answer(batch: list[Job], values: list[object], error: Exception | None = None) -> None:
    """Have the event loops answer their futures: each loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], object]]] = {}
    for (future, *_), value in zip(batch, values, strict=True):
        loops.setdefault(future.get_loop(), []).append((future, value))
    for loop, answers in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, answers, error)
        except RuntimeError:  # the loop is closed: nothing waits any more
            pass


def _settle(answers: list[tuple[asyncio.Future[Any], object]], error: Exception | None) -> None:
    for future, value in answers:
        if future.done():  # cancelled meanwhile
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
