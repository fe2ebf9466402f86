"""Routes the requests of a session to the worker that has the session, among the workers of one server.

The system distributes connections over the workers; a session lives in one of them, whose number is in the
session's id (`session_ids`). A request that arrives at another worker is forwarded over a Unix socket, in a
folder with mode 0700, as frames: the scope and the events of ASGI, in MessagePack. The worker that serves it
checks it, as if it had arrived there. Requests of 2026-07-28 need no session and are never forwarded. Of a
sealed session only the stream that a client opens by GET is. Over the same sockets a worker sends to the
others, in order, its announcements (`fastrpc.engine.announcements`), of which they notify their clients, and
what concerns sealed sessions (`session_sharing`). If a worker has not taken some of that, it notifies its
clients of everything as changed, and asks again what is known of its sessions, as soon as it takes frames.
The dashboard asks the other workers questions (`ask`).
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial

from msgspec import msgpack

from fastrpc import diagnostics, tracebacks
from fastrpc.errors import FAILURES
from fastrpc.protocol.versions import STATELESS
from fastrpc.transports.base import drained
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.session_ids import is_sealed, worker_of, worker_of_stream
from fastrpc.transports.http.session_sharing import MESSAGE, SHARED, SessionSharing
from fastrpc.transports.http.session_wire import no_session
from fastrpc.unix_sockets import SocketFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Frame = tuple[bytes, Callable[[bool], object] | None]
    Of = tuple[str, str | None]  # the type of frames, and the principal, or None for all of that type
    Queue = tuple[int, bool]  # to a worker: what clients have posted, which may be long, or all else

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Mapped, Receive, Send
    from fastrpc.transports.http.request import HttpRequest

MISSED = "fastrpc.missed"
"""The type of a frame after others, announcements or what concerns sessions, that were dropped."""
ANNOUNCED = "fastrpc.announced"
"""The type of a frame with an announcement."""
ASKED = "fastrpc.asked"
"""The type of a frame with a question, which is answered with a frame."""
FORWARDED = (
    "type",
    "asgi",
    "http_version",
    "method",
    "scheme",
    "path",
    "raw_path",
    "root_path",
    "query_string",
    "headers",
    "client",
    "server",
)
"""The members of a scope that another worker receives."""
MOST_UNREAD = 1024 * 1024
"""Bytes that are read from another worker before they are used."""
SHARE_SECONDS = 2.0
"""How long another worker may take to read announcements, in seconds. After it they are dropped, and the
log says so."""
MISSED_SECONDS = 1.0
"""How long after that it is notified, and again until it takes that: its clients may have missed changes."""
MOST_UNSENT = 16 * 1024 * 1024
"""Bytes that wait for another worker meanwhile: of announcements, and in each of the two queues of what
concerns sessions."""
MOST_OF_ONE = 4 * 1024 * 1024
"""The part of the latter that concerns the sessions of one principal: others are not dropped for it."""
ASK_SECONDS = 5.0
"""How long another worker may take to answer a question."""
CLOSE_SECONDS = 1.0
LOOK_SECONDS = 0.01


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
        self._unsent: dict[Queue, list[Frame]] = {}  # those that have a task
        self._unsent_bytes: dict[Queue, dict[Of, int]] = {}
        self._owed: set[int] = set()  # workers to which something was dropped
        self._log = diagnostics.Once("info")
        self._tasks: set[asyncio.Task[None]] = set()
        self._forwarded = 0
        self._is_closed = False
        self._server: asyncio.AbstractServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sharing: SessionSharing | None = None
        self.answer: Callable[[Any], Awaitable[Any]] | None = None
        app.workers = self

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
        id = last_event_id = b""
        for name, value in scope["headers"]:
            if name == b"mcp-session-id":
                id = value
            elif name == b"last-event-id":
                last_event_id = value
            elif name == b"mcp-protocol-version" and value >= STATELESS.encode():
                return None
        if not id:
            query: bytes = scope.get("query_string", b"")
            id = query.partition(b"session_id=")[2]
        elif is_sealed(id.decode("latin-1")):
            if scope["method"] != "GET":
                return None
            owner = worker_of_stream(last_event_id)
            return worker_of(id, self._count) if owner is None else owner
        return worker_of(id, self._count)

    async def _forward(self, owner: int, scope: Mapped, receive: Receive, send: Send) -> None:
        """Have another worker serve a request, and forward its response."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._address(owner), limit=MOST_UNREAD)
        except OSError:
            await self._refuse(scope, receive, send)  # it has ended, and its sessions with it
            return
        sending = asyncio.ensure_future(_send_request(writer, scope, receive))
        begun = False
        try:
            while True:
                try:
                    message = await _frame(reader)
                except (asyncio.IncompleteReadError, ConnectionError):
                    break  # the worker has died, or the client has gone
                begun = True
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    return
            if begun:
                await send({"type": "http.response.body", "body": b""})
            else:
                await self._refuse(scope, receive, send)
        finally:
            sending.cancel()
            writer.close()

    async def _refuse(self, scope: Mapped, receive: Receive, send: Send) -> None:
        """Respond with 404: the session has ended with its worker. A sealed one goes on, so that the client
        may try again when the worker has been replaced: 503."""
        request = self._app.make_request(scope, receive, send)
        request.is_unread = False
        is_lost = not is_sealed(request.header(b"mcp-session-id") or "")
        await request.serve(_refuse_session if is_lost else _refuse_stream)

    async def begin(self) -> None:
        """Listen to the other workers."""
        self._loop = asyncio.get_running_loop()
        self._sharing = self._app.sessions.sharing = SessionSharing(
            self._app.sessions, self._loop, self._number, self._count, self._send_later
        )
        path = self._address(self._number)
        if os.path.exists(path):
            os.unlink(path)  # of the worker whose place this one takes
        self._server = await asyncio.start_unix_server(self._take, path, limit=MOST_UNREAD)

    async def close(self) -> None:
        """Stop listening, and let requests that are being answered end within `CLOSE_SECONDS`."""
        self._is_closed = True
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
            frame = await _frame(reader)
            if frame["type"] in (ANNOUNCED, SHARED, MISSED):
                await self._take_frames(frame, reader)
            elif frame["type"] == ASKED:
                if self.answer is not None:
                    _write(writer, await self.answer(frame["question"]))
                    await writer.drain()
            else:
                body = _Body(reader)
                await self._app(frame, body.receive, partial(_respond, writer))
                # Closing the socket before the whole body is read would lose the response.
                await asyncio.wait_for(body.skip(), CLOSE_SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.TimeoutError):
            pass  # the other worker has ended, or its client has gone
        finally:
            self._tasks.discard(task)
            writer.close()

    async def ask(self, question: Mapped) -> list[Mapped]:
        """Ask each other worker, and return the answers of those that have given one within `ASK_SECONDS`."""
        others = (other for other in range(self._count) if other != self._number)
        answers = await asyncio.gather(*(self._ask_one(other, question) for other in others))
        return [each for each in answers if each is not None]

    async def _ask_one(self, other: int, question: Mapped) -> Mapped | None:
        try:
            return await asyncio.wait_for(self._answer_of(other, question), ASK_SECONDS)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            return None  # it has ended, begins only now, or is busy

    async def _answer_of(self, other: int, question: Mapped) -> Mapped:
        reader, writer = await asyncio.open_unix_connection(self._address(other), limit=MOST_UNREAD)
        try:
            _write(writer, {"type": ASKED, "question": question})
            return await _frame(reader)
        finally:
            writer.close()

    def share(self, announcement: bytes) -> None:
        """Send an announcement to the other workers. Thread-safe."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._share, announcement)
            except RuntimeError:  # the loop is closed: this worker has ended
                pass

    def _share(self, announcement: bytes) -> None:
        for other in range(self._count):
            if other != self._number:
                self._send_later(other, {"type": ANNOUNCED, "announcement": announcement})

    def _send_later(
        self, other: int, message: Mapped, on_taken: Callable[[bool], object] | None = None
    ) -> None:
        """Send a frame to another worker, after those of its queue that it has not taken yet. `on_taken` is
        called later: with True when it has been taken, with False when it has been dropped."""
        data = _encoded(message)
        queue = other, message.get("what") == MESSAGE
        if not self._fits(queue, message, len(data)):
            self._log.write(f"worker {other} takes {_name_of(queue)} too slowly: some are dropped")
            self._dropped(queue)
            if on_taken is not None:
                asyncio.get_running_loop().call_soon(on_taken, False)
            return
        if queue in self._unsent:
            self._unsent[queue].append((data, on_taken))
        else:
            self._unsent[queue] = [(data, on_taken)]
            task = asyncio.ensure_future(self._send_unsent(queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send_unsent(self, queue: Queue) -> None:
        """Send the frames of a queue, one connection after the other, to keep their order."""
        other = queue[0]
        while frames := self._unsent[queue]:
            self._unsent[queue], self._unsent_bytes[queue] = [], {}
            are_taken = False
            try:
                await asyncio.wait_for(self._send_all(other, [data for data, _ in frames]), SHARE_SECONDS)
                are_taken = True
            except (OSError, asyncio.TimeoutError) as error:
                what = f"{len(frames)} {_name_of(queue)}"
                diagnostics.write("info", f"worker {other} did not take {what}: {type(error).__name__}")
                self._dropped(queue)
            for _, on_taken in frames:
                if on_taken is not None:
                    on_taken(are_taken)
        del self._unsent[queue]

    def _fits(self, queue: Queue, message: Mapped, size: int) -> bool:
        """Count the bytes of a frame, if there is room for it in its queue: one always fits."""
        unsent = self._unsent_bytes.setdefault(queue, {})
        kind = message["type"]
        bounds: dict[Of, int] = {(kind, None): MOST_UNSENT}
        if kind == SHARED:
            bounds[kind, message["principal"]] = MOST_OF_ONE
        for of, most in bounds.items():
            before = unsent.get(of, 0)
            if before and before + size > most:
                return False
        for of in bounds:
            unsent[of] = unsent.get(of, 0) + size
        return True

    def _dropped(self, queue: Queue) -> None:
        """Something was dropped: have that worker's clients notified of everything as changed, once it takes
        frames again. What clients have posted cannot be made good."""
        other, is_posted = queue
        if not is_posted and other not in self._owed:
            self._owed.add(other)
            asyncio.get_running_loop().call_later(MISSED_SECONDS, self._send_missed, other)

    def _send_missed(self, other: int) -> None:
        self._owed.discard(other)
        if not self._is_closed:
            self._send_later(other, {"type": MISSED, "from": self._number})

    async def _send_all(self, other: int, frames: list[bytes]) -> None:
        reader, writer = await asyncio.open_unix_connection(self._address(other))
        try:
            writer.writelines(frames)
            writer.write_eof()
            await reader.read()  # it closes when it has taken all
        finally:
            writer.close()

    async def _take_frames(self, frame: Mapped, reader: asyncio.StreamReader) -> None:
        """Handle a frame of another worker and those after it. Raises IncompleteReadError at the end."""
        while True:
            try:
                self._take_one(frame)
            except FAILURES as error:  # those after it concern others
                tracebacks.report("a message of another worker could not be handled", error)
            frame = await _frame(reader)

    def _take_one(self, frame: Mapped) -> None:
        if frame["type"] == ANNOUNCED:
            self._on_announcement(*json.loads(frame["announcement"]))
        elif frame["type"] == MISSED:
            self._on_announcement("missed")
            if self._sharing is not None:
                self._sharing.ask_again(frame["from"])
        elif self._sharing is not None:
            self._sharing.take(frame)

    def _address(self, number: int) -> str:
        return self._sockets.address(str(number))


def _name_of(queue: Queue) -> str:
    return "messages of clients" if queue[1] else "announcements"


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
                return await _frame(self._reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            return {"type": "http.disconnect"}


async def _respond(writer: asyncio.StreamWriter, message: Mapped) -> None:
    """The `send` of a request that another worker has forwarded."""
    try:
        _write(writer, message)
        await writer.drain()
    except ConnectionError:
        pass  # the other worker has closed the socket: `receive` returns http.disconnect


async def _send_request(writer: asyncio.StreamWriter, scope: Mapped, receive: Receive) -> None:
    """Send a request to another worker: head and body as they arrive. Close if the client disconnects."""
    try:
        _write(writer, {name: scope[name] for name in FORWARDED if name in scope})
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                writer.close()
                return
            _write(writer, message)
            await writer.drain()
    except ConnectionError:
        pass  # the worker has died: `_forward` responds with an error


def _write(writer: asyncio.StreamWriter, message: Mapped) -> None:
    """Write a frame. Raises ConnectionResetError on a closed socket, where uvloop raises RuntimeError."""
    if writer.is_closing():
        raise ConnectionResetError("the other worker has closed the socket")
    writer.write(_encoded(message))


def _encoded(message: Mapped) -> bytes:
    data = msgpack.encode(message)
    return len(data).to_bytes(4, "big") + data


async def _frame(reader: asyncio.StreamReader) -> Mapped:
    """Read a frame. Raises IncompleteReadError at the end."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    message: Mapped = msgpack.decode(await reader.readexactly(size))
    if "headers" in message:
        message["headers"] = [tuple(pair) for pair in message["headers"]]
    return message


async def _refuse_stream(request: HttpRequest) -> None:
    raise Refused(503, "The worker that has this stream has ended", headers=[(b"retry-after", b"1")])


async def _refuse_session(request: HttpRequest) -> None:
    raise no_session()
