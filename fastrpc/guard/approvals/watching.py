"""Notices decisions about approvals that other processes write to the database.

While calls wait, one task reads the change number of the topic twice a second, and at once when PostgreSQL
notifies this process of a change. When the number has changed, it reads the states of the approvals that
calls wait for. Each waiting call is a future. All database access runs on one thread, so the event loop never
waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastrpc import diagnostics
from fastrpc.guard.approvals.store import CHANNEL, TOPIC, WAITING, ApprovalStore
from fastrpc.storage.database import Database
from fastrpc.storage.errors import StorageError
from fastrpc.storage.notifications import HeardChannel, listen
from fastrpc.storage.schema import change_number

Value = TypeVar("Value")

POLL_SECONDS = 0.5
STALE, UNKNOWN = -1, -2
"""Values instead of a change number: no number is known, and the number is being read."""


class ApprovalWatcher:
    """The waiting calls of one event loop."""

    def __init__(self, database: Database, store: ApprovalStore) -> None:
        self._database = database
        self.store = store
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self.count = 0
        """How many calls wait; several may wait for one approval."""
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fastrpc-approvals")
        self._number = STALE
        self._woken = asyncio.Event()

    async def run(self, function: Callable[..., Value], *arguments: Any) -> Value:
        """Call a function on the database's thread, and return what it returns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def watch(self, approval_id: str) -> asyncio.Future[None]:
        """Return a future that is done once an approval no longer waits. The caller must then `forget` it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(approval_id, set()).add(future)
        self.count += 1
        self._number = STALE  # it may have been decided before
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll())
        return future

    def forget(self, approval_id: str, future: asyncio.Future[None]) -> None:
        future.cancel()
        self.count -= 1
        waiting = self._waiting.get(approval_id, set())
        waiting.discard(future)
        if not waiting:
            self._waiting.pop(approval_id, None)

    async def _poll(self) -> None:
        trouble = ""
        listening = None if self._database.path else self._listen()
        try:
            while self._waiting:
                self._woken.clear()
                try:
                    for approval_id in await self._decided():
                        for future in self._waiting.pop(approval_id, ()):
                            if not future.done():
                                future.set_result(None)
                    trouble = ""
                except StorageError as error:  # the calls continue to wait
                    if str(error) != trouble:
                        trouble = str(error)
                        diagnostics.write("error", f"decisions about approvals cannot be read: {trouble}")
                await self._sleep()
        finally:
            if listening is not None:
                listening.end()

    def _listen(self) -> HeardChannel:
        """Wake the task when PostgreSQL notifies this process of a change, while calls wait."""
        loop = asyncio.get_running_loop()

        def heard(approval_id: str) -> None:
            if approval_id in self._waiting:
                wake()

        def wake() -> None:
            loop.call_soon_threadsafe(self._woken.set)

        return listen(self._database, CHANNEL, heard, wake)

    async def _sleep(self) -> None:
        """Return after `POLL_SECONDS`, or when this process is notified of a change."""
        waking = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({waking}, timeout=POLL_SECONDS)
        finally:
            waking.cancel()

    async def _decided(self) -> list[str]:
        """Return the approvals that no longer wait, if anything has changed since the last call."""
        known, self._number = self._number, UNKNOWN
        waiting = list(self._waiting)
        number, states = await self.run(self._changed, waiting, known)
        if self._number == UNKNOWN:  # no call has begun to wait meanwhile
            self._number = number
        return [approval_id for approval_id, state in states.items() if state != WAITING]

    def _changed(self, waiting: list[str], known: int) -> tuple[int, dict[str, str]]:
        with self._database.reading() as connection:
            number = change_number(connection, TOPIC)
        return number, {} if number == known else self.store.states(waiting)
