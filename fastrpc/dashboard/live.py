"""Tells open pages what has changed: a stream of events for each, and one reader of the database for all.

The numbers of the topics (`fastrpc.storage.schema.changes`) are read every `POLL_SECONDS` while a page is
open. An event has a topic's name and, as its id, the number: a browser that connects again sends the last one
that it has received, and gets an event at once if the number is another one. A stream ends with its visitor's
session.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.errors import FastrpcError
from fastrpc.guard.approvals.store import TOPIC
from fastrpc.storage.errors import StorageError
from fastrpc.storage.schema import change_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from concurrent.futures import Executor

    from fastrpc.storage.database import Database

POLL_SECONDS = 0.5
ALIVE_SECONDS = 15.0
"""After how long without an event a comment is sent, and the visitor's session is checked."""
MOST_PAGES = 500
RETRY_MS = 2000


class TooManyPages(FastrpcError):
    """The maximum number of pages is open."""


class Changes:
    """The streams of the open pages of a process. `threads` read the database."""

    def __init__(self, database: Callable[[], Database], threads: Executor) -> None:
        self._database = database
        self._threads = threads
        self._number = -1
        self._changed = asyncio.Condition()
        self._pages = 0
        self._reader: asyncio.Task[None] | None = None
        self._is_stopping = False

    def stream(self, since: str, is_signed_in: Callable[[], Awaitable[object]]) -> AsyncIterator[bytes]:
        """Return the events after the number `since`, until the visitor is no longer signed in. Raises
        TooManyPages."""
        if self._pages >= MOST_PAGES or self._is_stopping:
            raise TooManyPages(f"{MOST_PAGES} pages are open: close one")
        return self._events(since, is_signed_in)

    async def _events(
        self, since: str, is_signed_in: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[bytes]:
        self._pages += 1
        if self._reader is None or self._reader.done():
            self._number = -1
            self._reader = asyncio.create_task(self._read())
        try:
            yield b"retry: %d\n\n" % RETRY_MS
            known = int(since) if since.isascii() and since.isdigit() and len(since) < 19 else -1
            while not self._is_stopping:
                try:
                    await asyncio.wait_for(self._change_after(known), ALIVE_SECONDS)
                except asyncio.TimeoutError:
                    if await is_signed_in() is None:
                        return
                    yield b": still here\n\n"
                    continue
                if not self._is_stopping:
                    known = self._number
                    yield b"event: %s\nid: %d\ndata: %d\n\n" % (TOPIC.encode(), known, known)
        finally:
            self._pages -= 1

    async def _change_after(self, known: int) -> None:
        """Wait until the number is another one, or the server ends."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_stopping or self._number not in (-1, known))

    async def _read(self) -> None:
        trouble = ""
        while self._pages and not self._is_stopping:
            try:
                loop = asyncio.get_running_loop()
                number = await loop.run_in_executor(self._threads, self._read_number)
                trouble = ""
            except StorageError as error:
                if str(error) != trouble:
                    trouble = str(error)
                    diagnostics.write("error", f"changes for the dashboard cannot be read: {trouble}")
            else:
                if number != self._number:
                    self._number = number
                    async with self._changed:
                        self._changed.notify_all()
            await asyncio.sleep(POLL_SECONDS)

    def _read_number(self) -> int:
        with self._database().reading() as connection:
            return change_number(connection, TOPIC)

    async def stop(self) -> None:
        """End all streams: the server ends."""
        self._is_stopping = True
        async with self._changed:
            self._changed.notify_all()
