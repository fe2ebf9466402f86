"""Writes all messages over HTTP to a trace, one a line: ``--trace`` with ``--http``.

A line is that of `transports.trace`, with the number of the request (``#7``; ``#2.7`` in worker 2) and the
method and path, or the status, before the message. Each event of a stream that is a message has a line.
Headers are omitted: they contain tokens and session ids. It wraps the application, so with a trace no request
takes the fast path. Without ``--trace`` this module is not imported.
"""

from __future__ import annotations

from fastrpc.transports.trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.transports.http.interfaces import Front, Mapped, Receive, Send

EVENTS = b"text/event-stream"


class Traced:
    """An ASGI application that forwards everything to another one, and writes the trace.

    `worker` is this process's number among several. Raises UsageError if the file cannot be written.
    """

    def __init__(self, app: Front, path: str, worker: int | None = None) -> None:
        self._app = app
        self._trace = Trace(path)
        self._label = b"#" if worker is None else b"#%d." % worker
        self._count = 0

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._count += 1
            traced = TracedRequest(self._trace, b"%b%d" % (self._label, self._count), scope, receive, send)
            receive, send = traced.receive, traced.send
        await self._app(scope, receive, send)

    async def stop(self, grace_seconds: float | None) -> None:
        """Shut the application down."""
        await self._app.stop(grace_seconds)


class TracedRequest:
    """The `receive` and `send` of one request."""

    def __init__(self, trace: Trace, label: bytes, scope: Mapped, receive: Receive, send: Send) -> None:
        self._trace = trace
        self._label = label
        self._head = b"%b %b" % (scope["method"].encode(), scope["raw_path"])
        self._receive = receive
        self._send = send
        self._body: bytes | None = b""
        """The received part of the request; None once its line is written."""
        self._status = b""
        self._is_stream = False
        self._answer = b""

    async def receive(self) -> Mapped:
        """Return a part of the request; its line is written when it is complete."""
        message = await self._receive()
        if message["type"] == "http.request" and self._body is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._come()
        return message

    async def send(self, message: Mapped) -> None:
        """Send a part of the response. A request that is answered before it is complete has a line too."""
        self._come()
        if message["type"] == "http.response.start":
            self._status = b"%d" % message["status"]
            self._is_stream = (b"content-type", EVENTS) in message["headers"]
        elif message["type"] == "http.response.body":
            self._go(message.get("body", b""), last=not message.get("more_body", False))
        await self._send(message)

    def _come(self) -> None:
        if self._body is not None:
            self._line(b"<", self._head, self._body)
            self._body = None

    def _go(self, part: bytes, *, last: bool) -> None:
        if self._is_stream:
            for line in part.split(b"\n"):
                if line.startswith((b"data: {", b"data: [")):  # else it is the endpoint event
                    self._line(b">", self._status, line[6:])
            return
        self._answer += part
        if last:
            self._line(b">", self._status, self._answer)
            self._answer = b""

    def _line(self, direction: bytes, what: bytes, message: bytes) -> None:
        """Write a line, with line breaks removed: white space in JSON, while other text could forge lines."""
        message = message.replace(b"\r", b" ").replace(b"\n", b" ").strip()
        self._trace.write(direction, b" ".join([self._label, what, message]).rstrip())
