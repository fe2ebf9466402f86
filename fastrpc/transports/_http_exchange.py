"""One POST on its way through a connection of its own: its answer, and what is said before that.

An exchange is used again when it is over. Knows nothing of HTTP: whoever reads it decides how things go out.
Costs two objects a request, and none where one is used again.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any

ANSWER, MESSAGE, DROPPED = "answer", "message", "dropped"

UNREAD_LIMIT = 4 * 1024 * 1024
"""Bytes that wait for a reader at most; one that lets more wait is given up."""


class Exchange:
    """A connection for one request at a time.

    `take` may be set: it is then called with each item instead of keeping it for `next`.
    """

    def __init__(self, dispatcher: Any, loop: AbstractEventLoop) -> None:
        self.dispatcher = dispatcher
        self.connection = dispatcher.connection
        self.connection.flush = self._flush
        self.connection.tell = self._tell
        self.connection.call_in_loop = lambda function: function()
        dispatcher.on_dropped = lambda: self._put(DROPPED, b"")
        dispatcher.loop_runs(loop)
        self.take: Callable[[str, bytes], object] | None = None
        self.overflown = False
        self._loop = loop
        self._items: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0
        self._waiter: Future[None] | None = None

    def receive(self, body: bytes) -> bytes | None:
        """Take a message; return its answer if it is there at once and nothing else was said."""
        self.connection.flush = None  # what is written now is the answer at once
        try:
            self.connection.receive(body)
        finally:
            self.connection.flush = self._flush
        answer: bytes = self.connection.output.take()
        if not answer:
            return None
        if self._items:
            self._put(ANSWER, answer)
            return None
        return answer

    async def next(self) -> tuple[str, bytes]:
        """Wait for what is said next, and return its kind and its line."""
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        kind, line = self._items.popleft()
        self._waiting_bytes -= len(line)
        return kind, line

    def cancel(self) -> None:
        """Stop the request that is in flight; nothing more of it is said (MCP 2026-07-28: closing the stream)."""
        self.dispatcher.on_dropped = None
        self.dispatcher.cancel_all()

    def _flush(self) -> None:
        answer = self.connection.output.take()
        if answer:
            self._put(ANSWER, answer)

    def _tell(self, line: bytes) -> None:
        self._put(MESSAGE, line)

    def _put(self, kind: str, line: bytes) -> None:
        if self.take is not None:
            self.take(kind, line)
            return
        self._waiting_bytes += len(line)
        if self._waiting_bytes > UNREAD_LIMIT and kind == MESSAGE:
            self.overflown = True
            return
        self._items.append((kind, line))
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
