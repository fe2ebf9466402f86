"""What a server sends besides responses, over one connection: notifications, and its own requests.

Only the thread that serves a connection writes to it; other threads `post` functions, which it calls. What is
sent, and whether the client wants it, is decided by the features.
"""

from __future__ import annotations

from _thread import get_ident

from fastrpc.engine.messages import notification
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.connection import Connection
else:
    from _collections import deque  # without what `collections` imports


MOST_UNSENT = 64 * 1024 * 1024
"""Bytes that may wait for a client that does not read; beyond this, notifications and requests to it are
dropped. Responses are not: the client's requests are not read meanwhile."""


def tell(function: Callable[[], object]) -> None:
    """Call a function of a transport. An exception is logged, and does not reach the call that has ended."""
    from fastrpc import tracebacks

    tracebacks.call("a transport could not be notified", function)


class Outbound:
    """Sends messages that are no responses. Bound to its creator's thread until a loop serves."""

    __slots__ = ("_overflowed", "connection", "on_paused", "posted", "thread")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.thread = get_ident()
        """The thread that serves the connection: no other one may write to it."""
        self.posted: deque[Callable[[], object]] = deque()
        """Functions that other threads have posted and the connection's own thread has not called yet."""
        self.on_paused: Callable[[], object] | None = None
        """Called when a call wants its client to reconnect later for the rest (MCP 2025-11-25: polling)."""
        self._overflowed = False

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification. To be called on the connection's own thread: see `post`."""
        self.send_line(notification(method, params))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, on the connection's own thread."""
        self.send_line(to_json(message))

    def send_line(self, line: bytes) -> None:
        """Send a message that is JSON text and no response, on the connection's own thread."""
        connection = self.connection
        if connection.notify is not None:
            connection.notify(line)
            return
        if connection.output.unsent > MOST_UNSENT:
            self._drop()
            return
        connection.output.line(line)
        connection.wrote()

    def _drop(self) -> None:
        """Drop a message, since the client does not read. Logged once for each connection."""
        if not self._overflowed:
            from fastrpc import diagnostics

            self._overflowed = True
            diagnostics.write("warning", "a client does not read: messages to it are dropped, except answers")

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` on the connection's own thread: now if this is it, else soon, in the order of the
        posts, and before a call that ends is answered.
        """
        connection = self.connection
        if get_ident() == self.thread:
            if self.posted:
                self.run_posted()
            function()
        elif connection.loop is None:
            if connection.call_in_loop is not None:  # else there is no transport, and so no client
                self.posted.append(function)
                connection.call_in_loop(self.run_posted)
        else:
            self.posted.append(function)
            try:
                connection.loop.call_soon_threadsafe(self.run_posted)
            except RuntimeError:  # the loop is closed: no client is connected
                self.posted.clear()

    def run_posted(self) -> None:
        """Call the functions that other threads have posted until now, on the connection's own thread.

        The loop does so soon after each post. The end of a call does so too: a function can return before
        the loop has had its turn, since it waited for its thread or, from CPython 3.14 on, since ``await
        asyncio.to_thread(…)`` need not wait for the loop.
        """
        for _ in range(len(self.posted)):
            if not self.posted:  # one of them has called this
                return
            function = self.posted.popleft()
            try:
                function()
            except Exception as error:
                from fastrpc import tracebacks

                tracebacks.report("a message of another thread could not be sent", error)

    def begin_loop(self) -> None:
        """Have the transport start the event loop, if it has not: something must happen without a message."""
        if self.connection.loop is None and self.connection.call_in_loop is not None:
            self.connection.call_in_loop(lambda: None)
