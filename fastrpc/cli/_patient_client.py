"""A client that shows, on standard error, what it waits for when a server is slow.

On a terminal it shows a line that counts the seconds, also for calls while nothing else is shown, and erases
it at the end. Elsewhere it writes one line once, but not for calls, reads and prompts, which may take long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Any, TypeVar

from fastrpc.cli._feedback import Feedback
from fastrpc.client.session import REPORTING
from fastrpc.client.sync import SyncClient
from fastrpc.diagnostics import write_line
from fastrpc.errors import RequestTimeout
from fastrpc.time_limit import TimeLimit

Result = TypeVar("Result")

SLOW_SECONDS = 2.0
TERMINAL_SECONDS = 1.0


class PatientClient(SyncClient):
    """`SyncClient` for a command. `shown`: the server's name in messages; `limit`: a text about what ends the
    wait; `feedback`: shows progress. `time_limit`: the seconds from now on for all requests together; after
    them RequestTimeout is raised."""

    def __init__(
        self,
        target: Any,
        shown: str,
        limit: str = "--timeout sets the limit",
        *,
        feedback: Feedback | None = None,
        time_limit: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(target, **options)
        self._shown = shown
        self._limit = limit
        self._feedback = feedback or Feedback()
        self._time_limit = time_limit
        self._ends_at = None if time_limit is None else monotonic() + time_limit
        self._has_told = False

    def close(self) -> None:
        """Close the connection, also after the time limit."""
        self._ends_at = None
        super().close()

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return super()._run(self._limited(coroutine))

    async def _limited(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        if self._ends_at is None:
            return await self._watched(coroutine)
        late = RequestTimeout(f"not done within {self._time_limit:g} s (--time-limit)")
        with TimeLimit(max(0.001, self._ends_at - monotonic()), lambda: late):
            return await self._watched(coroutine)

    async def _watched(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        telling = asyncio.get_running_loop().create_task(
            self._show() if self._feedback.has_terminal else self._tell()
        )
        try:
            return await coroutine
        finally:
            telling.cancel()
            self._feedback.wipe()

    async def _show(self) -> None:
        """Show what the client waits for, and for how long, until something else is shown."""
        before = self._feedback.count
        seconds = 0.0
        while self._feedback.count == before:
            await asyncio.sleep(TERMINAL_SECONDS)
            seconds += TERMINAL_SECONDS
            awaited = self._client._session.awaited
            if awaited and self._feedback.count == before:
                self._feedback.draw(f"waiting for {awaited}, {seconds:.0f} s: {self._shown} ({self._limit})")

    async def _tell(self) -> None:
        while not self._has_told:
            await asyncio.sleep(SLOW_SECONDS)
            session = self._client._session
            is_working = any(each.method in REPORTING for each in session.stream.pending.values())
            if not is_working and session.awaited:
                self._has_told = True
                write_line(f"fastrpc: {self._shown}: waiting for {session.awaited} ({self._limit})")
