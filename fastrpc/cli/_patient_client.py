"""A client that says once, on standard error, what it waits for when a server is slow to connect or to list.

Of calls, reads and prompts nothing is said: they may take long, and report progress.
"""

from __future__ import annotations

import asyncio

from fastrpc.client.session import REPORTING
from fastrpc.client.sync import SyncClient
from fastrpc.diagnostics import write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    Result = TypeVar("Result")

SLOW_SECONDS = 2.0


class PatientClient(SyncClient):
    """`SyncClient` for a command; `shown`: what messages call the server, `limit`: what ends the waiting."""

    def __init__(
        self, target: Any, shown: str, limit: str = "--timeout sets the limit", **options: Any
    ) -> None:
        super().__init__(target, **options)
        self._shown = shown
        self._limit = limit
        self._has_told = False

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return super()._run(self._timed(coroutine))

    async def _timed(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        if self._has_told:
            return await coroutine
        telling = asyncio.get_running_loop().create_task(self._tell())
        try:
            return await coroutine
        finally:
            telling.cancel()

    async def _tell(self) -> None:
        awaited = ""
        while not awaited:
            await asyncio.sleep(SLOW_SECONDS)
            session = self._client._session
            is_working = any(each.method in REPORTING for each in session.stream.pending.values())
            awaited = "" if is_working else session.awaited
        self._has_told = True
        write_line(f"fastrpc: {self._shown}: waiting for {awaited} ({self._limit})")
