"""What a server sends besides answers, over one connection: notifications, and its own requests.

Only the thread that serves a connection writes to it; other threads `post` what is to happen there. What is
sent, and whether the client wants it, is decided by the features.
"""

from __future__ import annotations

from _thread import get_ident

from fastrpc.engine.messages import notification
from fastrpc.json_encoding import to_json
from fastrpc.protocol.lifecycle import NEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections import deque
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc._core.connection import Connection
    from fastrpc.engine.runtime import Runtime
    from fastrpc.protocol.lifecycle import SessionState
else:
    from _collections import deque  # without what `collections` imports


MOST_UNSENT = 64 * 1024 * 1024
"""Bytes that may wait for a client that does not read; beyond this, notifications and requests to it are
dropped. Answers are not: the client's requests are not read meanwhile."""


def tell(function: Callable[[], object]) -> None:
    """Tell a transport of something. What that raises is logged: calls that end later are not to notice."""
    from fastrpc import tracebacks

    tracebacks.call("a transport could not be notified", function)


class OutboundMessages:
    """The sending half of a dispatcher. Bound to the thread that creates it until a loop serves it."""

    session: SessionState
    listening: dict[bytes, Any]

    def __init__(self, runtime: Runtime, connection: Connection) -> None:
        self.runtime = runtime
        self.connection = connection
        self.thread = get_ident()
        """The thread that serves the connection: no other one may write to it."""
        self.loop: AbstractEventLoop | None = None
        self.posted: deque[Callable[[], object]] = deque()
        """What other threads have posted and the connection's own thread has not called yet."""
        self.overflowed = False

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification. To be called on the connection's own thread: see `post`."""
        self.send_line(notification(method, params))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, on the connection's own thread."""
        self.send_line(to_json(message))

    def send_line(self, line: bytes) -> None:
        """Send a message that is JSON text and no answer, on the connection's own thread."""
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
        """Drop a message: the client does not read. Said once for each connection."""
        if not self.overflowed:
            from fastrpc import diagnostics

            self.overflowed = True
            diagnostics.write("warning", "a client does not read: messages to it are dropped, except answers")

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` on the connection's own thread: now if this is it, else soon, in the order of the
        posts, and before a call that ends is answered.
        """
        if get_ident() == self.thread:
            if self.posted:
                self.run_posted()
            function()
        elif self.loop is None:
            if self.connection.call_in_loop is not None:  # else there is no transport, and so no client
                self.posted.append(function)
                self.connection.call_in_loop(self.run_posted)
        else:
            self.posted.append(function)
            try:
                self.loop.call_soon_threadsafe(self.run_posted)
            except RuntimeError:  # the loop is closed: no client is connected
                self.posted.clear()

    def run_posted(self) -> None:
        """Call what other threads have posted until now, on the connection's own thread.

        The loop does so soon after each post. Whatever ends a call does so too: a function can return before
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

    def loop_runs(self, loop: AbstractEventLoop) -> None:
        """The connection is served by this loop from now on."""
        self.loop = self.connection.loop = loop
        self.thread = get_ident()
        self.watch()

    def watch(self) -> None:
        """If a loop serves the connection, have it call the watching functions; else forget the prepared
        lists, so that the next list request does. Thread-safe.
        """
        loop = self.loop
        if loop is not None:
            self.post(lambda: self.runtime.monitors.begin(loop))
        else:
            self.connection.forget_lists()

    def begin_loop(self) -> None:
        """Have the transport start the event loop, if it has not: something must happen without a message."""
        if self.loop is None and self.connection.call_in_loop is not None:
            self.connection.call_in_loop(lambda: None)

    # --- changes --------------------------------------------------------------------------------------

    def stop_listening(self, key: bytes) -> None:
        """Forget the stream of changes with this key, if there is one."""
        request = self.listening.pop(key, None)
        if request is not None:
            if request.quota is not None:
                request.quota.close()
            self.unwatch(request.params["notifications"].get("resourceSubscriptions", ()))

    def has_subscribed(self, meant: str) -> bool:
        """Whether the client has subscribed to the resource with this URI in its normal form."""
        return meant in self.session.subscriptions or any(
            meant in request.params["notifications"].get("resourceSubscriptions", ())
            for request in list(self.listening.values())
        )

    def unwatch(self, uris: Iterable[str]) -> None:
        """End subscriptions that this client had at upstream servers, if no other client has them."""
        if self.runtime.has_upstreams:
            for uri in list(uris):
                self.runtime.upstreams.unwatch(uri)

    def end_listening(self) -> None:
        """Tell those who listen for changes that there will be none (MCP 2026-07-28: subscriptions)."""
        if self.listening:
            for request in list(self.listening.values()):
                self.runtime.features.end_stream(self, request)

    def forget_plans(self, before: Callable[[], object] = lambda: None) -> None:
        """Have the dispatcher asked for the plan of the next call; from whatever thread. What the
        connection's own thread makes at this moment is forgotten too, after `before`."""

        def again() -> None:
            before()
            self.connection.take_plans({})

        self.connection.take_plans({})
        self.post(again)

    def list_changed(self, kind: str) -> None:
        """Tell the client, if it may know, that a list is another now; from whatever thread."""
        if self.listening or self.session.state != NEW:
            self.post(lambda: self.runtime.features.list_changed(self, kind))

    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Tell the client, if it has subscribed, that a resource has changed; from whatever thread. `rest`:
        other members of the notification's params."""
        if self.listening or self.session.subscriptions:
            self.post(lambda: self.runtime.features.resource_updated(self, uri, rest))
