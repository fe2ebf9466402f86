"""What a server sends to a client besides responses: requests, notifications, invalid messages.

Handlers answer the requests, each in a task; their number and memory are bounded. Notifications go to the
functions that take progress, to the open `Listening` objects, and to the handlers of the client.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc._core.client_request import sent_id
from fastrpc._core.client_stream import LONGEST_LINE, OVER_LIMIT, ClientStream
from fastrpc.client.listening import LISTEN, Listening
from fastrpc.errors import ClientError, InternalError, InvalidAnswer, InvalidRequest, Overloaded, RemoteError
from fastrpc.json_encoding import UNWRITABLE, message_json, to_json
from fastrpc.quotas import Quota, size_of
from fastrpc.redaction import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from fastrpc.client.handlers import Handlers

MOST_ANSWERING = 256
MOST_ANSWERING_BYTES = 64 * 1024 * 1024
"""Requests of the server that are being answered at a time, and their memory; one more is refused."""
MOST_HANDLING_BYTES = 64 * 1024 * 1024
TASK_BYTES = 4 * 1024
"""Memory of the notifications that asynchronous handlers work on, each with its task; one more is dropped."""
LONGEST_EXCERPT = 80
MOST_INVALID_LOGGED = 5
"""Invalid messages that are logged of one connection; a server may write any number of them."""


class ServerMessages:
    """Takes the messages of a server that are no responses. `peer`: the server's name in logs and errors."""

    def __init__(self, stream: ClientStream, handlers: Handlers, peer: str) -> None:
        self.is_closed = False
        """Whether the connection is lost: nothing more is answered."""
        self.listening: list[Listening] = []
        """The open `Listening` objects, which receive change notifications."""
        self.progress: dict[int, Callable[[dict[str, Any]], object]] = {}
        """What takes the progress of requests, by their tokens."""
        self._stream = stream
        self._handlers = handlers
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._invalid_messages = 0
        self._answering: dict[str | int, asyncio.Task[None]] = {}
        self._answering_bytes = Quota(MOST_ANSWERING_BYTES)
        self._handling_bytes = Quota(MOST_HANDLING_BYTES)
        self._has_dropped = False
        self._tasks: set[asyncio.Task[Any]] = set()
        stream.on_request = self._on_request
        stream.on_notification = self._on_notification
        stream.on_unreadable = self._on_unreadable

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the result for a request of the server. Raises RemoteError, and what a handler raises."""
        return await self._handlers.answer(str(request.get("method")), params_of(request))

    def _on_request(self, request: dict[str, Any]) -> None:
        size = size_of(request, MOST_ANSWERING_BYTES)
        if request["id"] in self._answering:
            self._refuse(request, InvalidRequest.code, "a request with this id is not answered yet")
            return
        if len(self._answering) >= MOST_ANSWERING or not self._answering_bytes.take(size):
            self._refuse(request, Overloaded.code, "too many requests are unanswered")
            return
        self._stream.needs_loop = True
        task = self._loop.create_task(self._reply(request, size))
        self._answering[request["id"]] = task
        self._keep(task)

    def _refuse(self, request: dict[str, Any], code: int, why: str) -> None:
        self._respond(_error_line(request["id"], {"code": code, "message": why}))

    async def _reply(self, request: dict[str, Any], size: int) -> None:
        """Answer a request of the server, which takes so many bytes. An exception of a handler, or a result
        of it that JSON cannot hold, also fails the pending requests."""
        id = request["id"]
        try:
            result = await self.answer(request)
            line = message_json({"jsonrpc": "2.0", "id": id, "result": result})
        except RemoteError as error:
            refusal: dict[str, Any] = {"code": error.code, "message": error.message}
            if error.data is not None:
                refusal["data"] = error.data
            line = _error_line(id, refusal)
        except Exception as error:
            failure = error
            words = f"{type(error).__name__}: {error}"
            line = _error_line(id, {"code": InternalError.code, "message": words})
            self._stream.fail_all(lambda request: failure)
        finally:
            self._answering.pop(id, None)
            self._answering_bytes.release(size)
        if not self.is_closed:
            self._respond(line)

    def _respond(self, line: bytes) -> None:
        """Send a response, if the server reads any."""
        try:
            self._stream.send(line)
        except ClientError as error:
            diagnostics.write("warning", f"{self._peer} gets no response to its request: {error}")

    def _on_notification(self, message: dict[str, Any]) -> None:
        method: str = message["method"]
        params = params_of(message)
        if method == "notifications/progress":
            token = sent_id(params.get("progressToken"))
            on_progress = None if token is None else self.progress.get(token)
            if on_progress is not None:
                self._run(on_progress, params)
        elif method == "notifications/cancelled":
            task = self._answering.pop(params.get("requestId", ""), None)
            if task is not None:
                task.cancel()
        for listening in self.listening:
            listening.take(message, params)
        handler = self._handlers.by_method.get(method)
        if handler is not None:
            self._run(handler, params)
        if self._handlers.on_notification is not None:
            self._run(self._handlers.on_notification, message)

    def _run(self, handler: Callable[[dict[str, Any]], object], params: dict[str, Any]) -> None:
        """Call a handler of notifications. Its exceptions are logged: there is no request to fail."""
        try:
            awaited = handler(params)
            if hasattr(awaited, "__await__"):
                self._begin_handling(awaited, TASK_BYTES + size_of(params, MOST_HANDLING_BYTES))
        except Exception as error:
            diagnostics.write("error", "a notification handler of the client raised an exception", error)

    def _begin_handling(self, awaited: Any, size: int) -> None:
        """Await what a handler of notifications has returned; they take so many bytes until then."""
        if not self._handling_bytes.take(size):
            if hasattr(awaited, "close"):
                awaited.close()  # a coroutine that does not begin
            if not self._has_dropped:
                self._has_dropped = True
                said = "notifies faster than the handlers end: notifications are dropped"
                diagnostics.write("warning", f"{self._peer} {said}")
            return
        self._stream.needs_loop = True
        task = self._loop.create_task(_awaited(awaited))
        task.add_done_callback(lambda task: self._handling_bytes.release(size))
        self._keep(task)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._dropped)

    def _dropped(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._stream.needs_loop = False

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine until it ends or the session does."""
        self._keep(self._loop.create_task(coroutine))

    def _on_unreadable(self, line: bytes) -> None:
        """Log an invalid message, unless many were (MCP, stdio transport: none is allowed). A line over the
        limit may be the response to any pending request: all of them fail."""
        if line == OVER_LIMIT:
            text = f"{self._peer} sent a line of more than {LONGEST_LINE} bytes"
            for request in list(self._stream.pending.values()):
                if request.method != LISTEN:  # its response only ends the stream
                    self._stream.fail(request, InvalidAnswer(f"{request.method}: {text}"))
            return
        self._invalid_messages += 1
        if self._invalid_messages > MOST_INVALID_LOGGED:
            return
        shown = repr(masked(line.decode(errors="replace"))[:LONGEST_EXCERPT])
        self._stream.remark = f"; it sent an invalid message: {shown}"
        diagnostics.write("warning", f"{self._peer} sent an invalid message: {shown}")
        if self._invalid_messages == MOST_INVALID_LOGGED:
            diagnostics.write("warning", f"{self._peer}: further invalid messages are not logged")

    async def end(self) -> None:
        """Cancel the handlers that still run."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def params_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a message; an empty dict if they are missing or not an object."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _error_line(id: Any, error: dict[str, Any]) -> bytes:
    """Return the response with an error, as JSON; a handler may have given it what JSON cannot hold."""
    try:
        return to_json({"jsonrpc": "2.0", "id": id, "error": error})
    except UNWRITABLE:
        words = "the handler raised an error that cannot be written as JSON"
        return to_json({"jsonrpc": "2.0", "id": id, "error": {"code": InternalError.code, "message": words}})


async def _awaited(awaited: Any) -> None:
    try:
        await awaited
    except Exception as error:
        diagnostics.write("error", "a notification handler of the client raised an exception", error)
