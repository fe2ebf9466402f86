"""`Journal`: writes and reads the rows of tasks on one thread, for any number of calls at once.

What is asked for while a transaction runs goes into the next one together, so many tasks share one flush to
the disk. If one function of a transaction fails, the others are run again without it. A function is awaited
until its transaction is committed: what a client receives is durable.
"""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread

from fastrpc.errors import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any, TypeVar

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    Value = TypeVar("Value")

AT_ONCE = 256
"""Functions in one transaction."""


class JournalClosed(FastrpcError):
    """The server is ending: nothing more is written."""

    def __init__(self) -> None:
        super().__init__("the server is ending")


class Journal:
    """Runs functions on the database of tasks. May be used from any thread."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._waiting: deque[tuple[Callable[[Connection], object], Future[object]]] = deque()
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="fastrpc-tasks", daemon=True)
        self._thread.start()

    async def do(self, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
        """Call ``function(connection, *values, **named)`` in a transaction; return its value once that is
        committed. Raises StorageError if the database is not available, JournalClosed, and what the function
        raises."""
        import asyncio

        def called(connection: Connection) -> Value:
            return function(connection, *values, **named)

        return await asyncio.wrap_future(self.submit(called))

    def submit(self, function: Callable[[Connection], Value]) -> Future[Value]:
        """The same, for whoever does not await it."""
        from concurrent.futures import Future

        future: Future[Value] = Future()
        with self._changed:
            if self._closed:
                future.set_exception(JournalClosed())
            else:
                self._waiting.append((function, future))  # type: ignore[arg-type]
                self._changed.notify()
        return future

    def close(self) -> None:
        """Write what is waiting, then end the thread and the database's connections."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self.database.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                batch = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            self._commit([item for item in batch if item[1].set_running_or_notify_cancel()])

    def _commit(self, batch: list[tuple[Callable[[Connection], object], Future[object]]]) -> None:
        """Run functions in one transaction; each in its own if that fails."""
        values: list[object] = []
        try:
            with self.database.changing() as connection:
                for function, _ in batch:
                    values.append(function(connection))
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:
                for item in batch:
                    self._commit([item])
            return
        for (_, future), value in zip(batch, values, strict=True):
            future.set_result(value)
