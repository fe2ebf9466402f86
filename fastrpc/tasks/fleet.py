"""Tasks that the processes of `fastrpc worker` run, and how a worker takes them.

A task that is left to workers is a row without a worker. Each worker takes as many as it has places for, the
oldest first, and none whose guard it does not have; the row's lock decides between two of them (FOR UPDATE
SKIP LOCKED). From then on it is the worker's, as a task of a server is that server's: with a lease, which
others take over when it has ended.
"""

from __future__ import annotations

import asyncio
import time

from fastrpc import diagnostics
from fastrpc.errors import UsageError
from fastrpc.storage import DatabaseUnavailable
from fastrpc.tasks import store
from fastrpc.tasks.board import LEASE_SECONDS, TaskBoard, on_other_hosts
from fastrpc.tasks.placement import guards_of
from fastrpc.transports.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.tasks.run import TaskRun
    from fastrpc.tasks.self_call import TaskServer
    from fastrpc.transports.base import Connections


class WorkerBoard(TaskBoard):
    """The tasks that run in a worker: at most `most` at once."""

    is_worker = True

    def __init__(self, server: TaskServer, most: int) -> None:
        super().__init__(server)
        self._most = most
        self._waiting_tasks = diagnostics.Once("error")
        self._accepts = True
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(self) -> None:
        """Open the database, and begin to take tasks: later, if a server's database is away, as it is while
        that is started again. Raises StorageError for another problem."""
        try:
            problem = await self._other_guards()
        except DatabaseUnavailable:
            if not on_other_hosts():
                raise
            self._rows.open_once_there()
        else:
            if problem:
                raise UsageError(problem)

    async def _other_guards(self) -> str:
        """Return which tasks of the server wait for a worker with another guard, "" for none. Raises
        StorageError."""
        (mine,) = guards = guards_of(self.server, True)
        others = await self._rows.do(store.other_guards, self.server.name, guards)
        own = f", and this worker's in {mine}" if mine else ""
        what = [
            f"their guard has its database in {each}{own}: a worker runs them with the same --guard FILE"
            if each
            else "they were created without a guard: a worker runs them without --guard"
            for each in others
        ]
        return "".join(f"tasks of the server {self.server.name} wait: {each}" for each in what[:1])

    async def _sweep(self) -> None:
        await super()._sweep()
        problem = await self._other_guards()
        if problem:
            self._waiting_tasks.write(problem)

    def stop_accepting(self) -> None:
        """Take no more tasks."""
        self._accepts = False

    async def wait_idle(self) -> None:
        """Return when no task runs here, and the rows of those that ran are written."""
        await self._idle.wait()

    def run_over(self, run: TaskRun) -> None:
        super().run_over(run)
        self._when_idle()
        self._woken.set()

    def _when_idle(self) -> None:
        if not self._runs:
            self._idle.set()

    async def _take_turn(self) -> None:
        await super()._take_turn()
        # one whose call waits for an approval runs nothing, for as long as people take
        places = self._most - sum(not run.approval for run in self._runs.values())
        guard = self.server.runtime.task_guard
        if self._accepts and places > 0 and (guard is None or guard.is_ready):
            await self._rows.logged(self._take_queued(places))

    async def _take_queued(self, places: int) -> None:
        server, tools, known = self.server.name, list(self.server.runtime.plans.tools), list(self._runs)
        until, guards = time.time() + LEASE_SECONDS, guards_of(self.server, True)
        self._idle.clear()  # at the end of this process, too, what it has taken is run
        try:
            for record in await self._rows.do(
                store.take_queued, server, tools, self.worker, until, known, places, guards
            ):
                self._resume(record)
        finally:
            self._when_idle()

    def _resume(self, record: Any, *, is_cancelled: bool = False) -> None:
        self._idle.clear()
        super()._resume(record, is_cancelled=is_cancelled)


class WorkerTransport(Transport):
    """Serves no client: runs tasks until the process is ended. `board` is made in the event loop."""

    remote = True

    def __init__(self, server: Any, most: int) -> None:
        self._server = server
        self._most = most
        self._board: WorkerBoard | None = None

    async def start(self, connections: Connections) -> None:
        self._board = self._server.runtime.tasks = WorkerBoard(self._server, self._most)
        await self._board.open()

    async def stop_accepting(self) -> None:
        if self._board is not None:
            self._board.stop_accepting()

    async def drain(self) -> None:
        if self._board is not None:
            await self._board.wait_idle()
