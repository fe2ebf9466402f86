"""Routes the requests of a session to the worker that has the session, among the workers of one server.

The system distributes connections over the workers; a session lives in one of them, whose number is in the
session's id (`session_ids`). A request that arrives at another worker is forwarded over a Unix socket, in a
folder with mode 0700, as frames with the events of ASGI. The worker that serves it checks it, as if it had
arrived there. Requests of 2026-07-28 need no session and are never forwarded. Over the same sockets a worker
sends its announcements (`fastrpc.engine.announcements`) to the other workers, which notify their clients in
the same order.
"""

from __future__ import annotations

import asyncio
import json
import os

from fastrpc import diagnostics
from fastrpc.errors import ProtocolError
from fastrpc.protocol.versions import STATELESS
from fastrpc.transports.base import drained
from fastrpc.transports.http.session_ids import worker_of
from fastrpc.unix_sockets import SocketFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Mapped, Receive, Send
    from fastrpc.transports.http.request import HttpRequest

HEAD, PART, LAST, ANNOUNCED = b"HPLA"
LONGEST_FRAME = 1024 * 1024
SHARE_SECONDS = 2.0
"""How long another worker may take to read announcements, in seconds. Behind it they are dropped, and the
log says so."""
MOST_UNSENT = 16 * 1024 * 1024
"""Bytes of announcements that wait for another worker meanwhile."""
CLOSE_SECONDS = 1.0
LOOK_SECONDS = 0.01


class NoSession(ProtocolError):
    """The worker that kept a session has ended, and the session with it."""

    code = -32001


class SessionRouter:
    """An ASGI application in front of one worker's. `number` is the worker's, `count` how many there are.

    The router calls `on_announcement` with each announcement of another worker.
    """

    def __init__(
        self, app: HttpApp, folder: str, number: int, count: int, on_announcement: Callable[..., object]
    ) -> None:
        self._app = app
        self._sockets = SocketFolder(folder)  # open as long as the process: others may connect at any time
        self._number = number
        self._count = count
        self._on_announcement = on_announcement
        self._unsent: dict[int, list[bytes]] = {}  # announcements, by worker, each of which has a task
        self._unsent_bytes = [0] * count
        self._log = diagnostics.Once("info")
        self._tasks: set[asyncio.Task[None]] = set()
        self._forwarded = 0
        self._server: asyncio.AbstractServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        owner = self._owner_of(scope) if scope["type"] == "http" else None
        if owner is None or owner == self._number or owner >= self._count:
            await self._app(scope, receive, send)
        else:
            self._forwarded += 1
            try:
                await self._forward(owner, scope, receive, send)
            finally:
                self._forwarded -= 1

    async def stop(self, grace_seconds: float | None) -> None:
        """Shut down as `HttpApp.stop` does; requests that other workers serve have the same grace period."""
        await asyncio.gather(self._app.stop(grace_seconds), drained(self._wait_forwarded(), grace_seconds))

    async def _wait_forwarded(self) -> None:
        while self._forwarded:
            await asyncio.sleep(LOOK_SECONDS)

    def _owner_of(self, scope: Mapped) -> int | None:
        """Return the number of the worker that has the session of a request, None without one."""
        id = b""
        for name, value in scope["headers"]:
            if name == b"mcp-session-id":
                id = value
            elif name == b"mcp-protocol-version" and value >= STATELESS.encode():
                return None
        if not id:
            query: bytes = scope.get("query_string", b"")
            id = query.partition(b"session_id=")[2]
        return worker_of(id)

    # --- to another worker ----------------------------------------------------------------------------

    async def _forward(self, owner: int, scope: Mapped, receive: Receive, send: Send) -> None:
        """Have another worker serve a request, and forward its response."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._address(owner), limit=LONGEST_FRAME)
        except OSError:
            await self._refuse(scope, receive, send)  # it has ended, and its sessions with it
            return
        sending = asyncio.ensure_future(_send_request(writer, scope, receive))
        try:
            await self._forward_response(reader, scope, receive, send)
        finally:
            sending.cancel()
            writer.close()

    async def _forward_response(
        self, reader: asyncio.StreamReader, scope: Mapped, receive: Receive, send: Send
    ) -> None:
        begun = False
        while True:
            try:
                kind, data = await _frame(reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                break  # the worker has died, or the client has gone
            if kind == HEAD:
                head = json.loads(data)
                headers = [
                    (name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]
                ]
                await send({"type": "http.response.start", "status": head["status"], "headers": headers})
                begun = True
            else:
                await send({"type": "http.response.body", "body": data, "more_body": kind == PART})
                if kind == LAST:
                    return
        if begun:
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Mapped, receive: Receive, send: Send) -> None:
        """Respond with 404: the session has ended with its worker."""
        request = self._app.make_request(scope, receive, send)
        request.body_is_read()
        await request.serve(_refuse)

    # --- from another worker --------------------------------------------------------------------------

    async def begin(self) -> None:
        """Listen to the other workers."""
        self._loop = asyncio.get_running_loop()
        path = self._address(self._number)
        if os.path.exists(path):
            os.unlink(path)  # of the worker whose place this one takes
        self._server = await asyncio.start_unix_server(self._take, path, limit=LONGEST_FRAME)

    async def close(self) -> None:
        """Stop listening, and let requests that are being answered end within `CLOSE_SECONDS`."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            kind, data = await _frame(reader)
            if kind == ANNOUNCED:
                await self._take_announcements(data, reader)
            else:
                body = _Body(reader)
                await self._app(_scope_of(data), body.receive, _Response(writer).send)
                # Closing the socket before the whole body is read would lose the response.
                await asyncio.wait_for(body.skip(), CLOSE_SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.TimeoutError):
            pass  # the other worker has ended, or its client has gone
        finally:
            self._tasks.discard(task)
            writer.close()

    # --- announcements --------------------------------------------------------------------------------

    def share(self, announcement: bytes) -> None:
        """Send an announcement to the other workers. Thread-safe."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._share, announcement)
            except RuntimeError:  # the loop is closed: this worker has ended
                pass

    def _share(self, announcement: bytes) -> None:
        for other in range(self._count):
            if other == self._number:
                continue
            unsent = self._unsent_bytes[other]
            if unsent and unsent + len(announcement) > MOST_UNSENT:
                self._log.write(f"worker {other} takes announcements too slowly: some are dropped")
                continue
            self._unsent_bytes[other] += len(announcement)
            if other in self._unsent:
                self._unsent[other].append(announcement)
            else:
                self._unsent[other] = [announcement]
                task = asyncio.ensure_future(self._send_announcements(other))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _send_announcements(self, other: int) -> None:
        """Send announcements to another worker, one connection after the other, to keep their order."""
        while announcements := self._unsent[other]:
            self._unsent[other], self._unsent_bytes[other] = [], 0
            try:
                await asyncio.wait_for(self._send_all(other, announcements), SHARE_SECONDS)
            except (OSError, asyncio.TimeoutError) as error:
                what = f"{len(announcements)} announcement(s)"
                diagnostics.write("info", f"worker {other} did not take {what}: {type(error).__name__}")
        del self._unsent[other]

    async def _send_all(self, other: int, announcements: list[bytes]) -> None:
        reader, writer = await asyncio.open_unix_connection(self._address(other))
        try:
            for announcement in announcements:
                _write(writer, ANNOUNCED, announcement)
            writer.write_eof()
            await reader.read()  # it closes when it has taken all
        finally:
            writer.close()

    async def _take_announcements(self, data: bytes, reader: asyncio.StreamReader) -> None:
        """Handle an announcement, then read and handle those that follow it. Raises IncompleteReadError at
        the end of the stream."""
        while True:
            self._on_announcement(*json.loads(data))
            _, data = await _frame(reader)

    def _address(self, number: int) -> str:
        return self._sockets.address(str(number))


class _Body:
    """The `receive` of a request that another worker has forwarded."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._reading = asyncio.Lock()

    async def skip(self) -> None:
        """Read what is left, to the end."""
        async with self._reading:
            while await self._reader.read(65536):
                pass

    async def receive(self) -> Mapped:
        try:
            async with self._reading:
                kind, data = await _frame(self._reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": data, "more_body": kind == PART}


class _Response:
    """The `send` of a request that another worker has forwarded."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, message: Mapped) -> None:
        try:
            if message["type"] == "http.response.start":
                headers = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
                ]
                head = {"status": message["status"], "headers": headers}
                _write(self._writer, HEAD, json.dumps(head).encode())
            else:
                _write_body(self._writer, message)
            await self._writer.drain()
        except ConnectionError:
            pass  # the other worker has closed the socket: `receive` returns http.disconnect


async def _send_request(writer: asyncio.StreamWriter, scope: Mapped, receive: Receive) -> None:
    """Send a request to another worker: head and body as they arrive. Close if the client disconnects."""
    head = {
        "method": scope["method"],
        "path": scope["path"],
        "root_path": scope.get("root_path", ""),
        "scheme": scope.get("scheme", "http"),
        "query_string": scope.get("query_string", b"").decode("latin-1"),
        "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
        "client": scope.get("client"),
        "server": scope.get("server"),
    }
    try:
        _write(writer, HEAD, json.dumps(head).encode())
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                writer.close()
                return
            _write_body(writer, message)
            await writer.drain()
    except ConnectionError:
        pass  # the worker has died: `_forward_response` responds with an error


def _scope_of(data: bytes) -> Mapped:
    head = json.loads(data)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": head["method"],
        "scheme": head["scheme"],
        "path": head["path"],
        "raw_path": head["path"].encode("utf-8", "surrogateescape"),
        "root_path": head["root_path"],
        "query_string": head["query_string"].encode("latin-1"),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]],
        "client": head["client"],
        "server": head["server"],
    }


def _write_body(writer: asyncio.StreamWriter, message: Mapped) -> None:
    body: bytes = message.get("body", b"")
    last = LAST if not message.get("more_body", False) else PART
    while len(body) > LONGEST_FRAME:
        _write(writer, PART, body[:LONGEST_FRAME])
        body = body[LONGEST_FRAME:]
    _write(writer, last, body)


def _write(writer: asyncio.StreamWriter, kind: int, data: bytes) -> None:
    """Write a frame. Raises ConnectionResetError if the other worker has closed the socket, where uvloop
    raises RuntimeError."""
    if writer.is_closing():
        raise ConnectionResetError("the other worker has closed the socket")
    writer.write(kind.to_bytes(1, "big") + len(data).to_bytes(4, "big") + data)


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read a frame. Raises IncompleteReadError at the end."""
    head = await reader.readexactly(5)
    return head[0], await reader.readexactly(int.from_bytes(head[1:], "big"))


async def _refuse(request: HttpRequest) -> None:
    await request.refuse(404, NoSession("Mcp-Session-Id: there is no such session"))
