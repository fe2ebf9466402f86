"""The contract of a transport, which carries messages between clients and a server.

A transport carries bytes and is independent of MCP. The server passes it `Connections`; it opens one for each
client, feeds it the received bytes, and sends what the connection writes. As with h11 nothing here does I/O.
A transport is one file: see ``examples/unix_socket.py``, `fastrpc.transports.memory` (the smallest one), and
`fastrpc.transports.stdio`.

**Life.** ``Server.serve(transport)`` awaits `Transport.start`, which begins to accept clients, and then waits
until `Transport.wait_closed` returns, a signal arrives (``Server.run(transport=…)``), or it is cancelled. The
shutdown is the same for all, in `fastrpc.transports.shutdown`: `stop_accepting`; calls in flight have
`drain_seconds` and their responses are sent (`drain`); the rest is cancelled; `close`; lifespans are left and
the programs of tools are ended. A second signal, or the cancellation of `Server.serve`, skips the wait.

**Messages.** A message is one line of JSON in UTF-8. `ClientConnection.feed_data` takes any part of a stream
of lines; `receive` one complete message, for transports with frames of their own (WebSocket). Responses,
notifications and requests are passed to `write(data)`: one or more complete lines, each with its newline, on
the thread of the loop.

**Back-pressure.** `write` must not block: the transport buffers what the client does not read. Stop feeding
the connection until the buffer has drained, as ``await writer.drain()`` does between two reads; running calls
are bounded by the server's `max_in_flight`.

**Errors.** An invalid message is answered with an error, never raised. An OSError of `write` means that the
client has disconnected: the connection is closed; anything else that it raises is logged. When the transport
itself notices that, it calls `close`: calls in flight are cancelled and nothing is written any more.
Exceptions of `start` and `wait_closed` are raised by `Server.serve`, after a shutdown without a wait.

**Threads and forks.** Everything is called, and is to be called, on the thread of the event loop. A child
process that a tool forks ends when it returns from the call; `let_go` is called in it at once.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from fastrpc import forks, tracebacks
from fastrpc._core.framer import Framer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Protocol

    from fastrpc._core.connection import Connection
    from fastrpc.transports.interfaces import ServedDispatcher

    Trace = Callable[[bytes, bytes], object]
    """Is called with ``b"<"`` and a received line, or ``b">"`` and sent bytes."""
else:
    Protocol = object

MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class Transport(Protocol):
    """The argument of `Server.serve`. Only `start` must be implemented; the rest does nothing by default."""

    remote: bool = True
    """Whether clients may be on other machines. Tools then fetch nothing that only this machine can reach
    (`Server.over_http`)."""

    @abstractmethod
    async def start(self, connections: Connections) -> None:
        """Accept clients: open a connection for each, and feed it. Returns when clients can connect."""
        raise NotImplementedError

    async def wait_closed(self) -> None:
        """Return when no more messages can arrive, because the only client has sent its last one.

        A transport that listens for clients never returns. Is cancelled when the shutdown begins otherwise.
        """
        await asyncio.get_running_loop().create_future()

    async def stop_accepting(self) -> None:
        """Accept no new clients. Connected ones may still be read: to answer the server's own requests."""
        return

    async def drain(self) -> None:
        """Return when everything that was written has been sent. Called when all calls have been answered;
        cancelled after `drain_seconds`."""
        return

    async def close(self) -> None:
        """Close the sockets. All connections have been closed; this may take some seconds, then it is
        cancelled."""
        return

    def let_go(self) -> None:
        """Close the sockets and descriptors of clients, in a child process that a tool has forked.
        Must not use the event loop, which is the parent's."""
        return


class Connections:
    """The connections of one server over one transport: the argument of `Transport.start`, to `open` more.

    `make` returns a new compiled connection with its dispatcher.
    """

    def __init__(self, make: Callable[[], Connection], trace: Trace | None = None) -> None:
        self._make = make
        self._trace = trace
        self._closed = False
        self._opened: dict[ServedConnection, None] = {}

    def open(
        self,
        write: Callable[[bytes], object],
        *,
        principal: str = "",
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        at_once: bool = False,
    ) -> ClientConnection:
        """Return the connection of a new client. `write` is called with bytes for it, complete lines: with
        `at_once` for each message, else once for all messages of one turn of the loop.

        `principal` is the authenticated principal (`Context.principal`), "" if there is none. A message of
        more than `max_message_bytes` is answered with an error. Raises ConnectionAbortedError when the server
        has ended.
        """
        if self._closed:
            raise ConnectionAbortedError("the server has ended")
        connection = self._make()
        connection.principal = principal
        opened = ClientConnection(connection, self._opened, write, max_message_bytes, at_once, self._trace)
        self._opened[opened] = None
        return opened

    def adopt(self, connection: Connection) -> None:
        """Add a connection that something else feeds, to be closed with the others (`transports.stdio`)."""
        self._opened[ServedConnection(connection, self._opened)] = None

    def end_listening(self) -> None:
        """End the subscription streams of all clients (MCP 2026-07-28: subscriptions/listen)."""
        for connection in list(self._opened):
            connection.end_listening()

    async def wait_idle(self) -> None:
        """Return when no call is in flight on any connection, and all responses are passed to `write`."""
        while busy := [connection for connection in self._opened if connection.busy]:
            await busy[0].wait_idle()
        for connection in list(self._opened):
            connection.flush()

    def close(self) -> None:
        """Flush and close all connections, and open no more."""
        self._closed = True
        for connection in list(self._opened):
            connection.flush()
            connection.close()


class ServedConnection:
    """The life of one connection in the running event loop: whether it is busy, and its end."""

    def __init__(self, connection: Connection, among: dict[ServedConnection, None]) -> None:
        self.closed = False
        self._connection = connection
        self._dispatcher: ServedDispatcher = connection.dispatcher
        self._among = among
        self._idle: asyncio.Event | None = None
        self._loop = asyncio._get_running_loop()
        if self._loop is not None:
            self._dispatcher.loop_runs(self._loop)

    @property
    def busy(self) -> bool:
        """Whether a call of this client is in flight."""
        return not self.closed and self._dispatcher.requests.busy

    async def wait_idle(self) -> None:
        """Return when no call is in flight, or the connection is closed."""
        while self.busy:
            if self._idle is None:
                self._idle = asyncio.Event()
                self._dispatcher.requests.on_idle = self._idle.set
            self._idle.clear()
            await self._idle.wait()

    def end_listening(self) -> None:
        """End the client's subscription streams (MCP 2026-07-28: subscriptions/listen)."""
        self._dispatcher.changes.end_listening()

    def flush(self) -> None:
        """Pass on what has been written. Does nothing here: the connection's stream does it by itself."""

    def close(self) -> None:
        """The client has disconnected: cancel its calls, and write nothing any more. May be called twice."""
        if not self.closed:
            self.closed = True
            self._among.pop(self, None)
            self._dispatcher.close()
            if self._idle is not None:
                self._idle.set()


class ClientConnection(ServedConnection):
    """One client's connection, as a transport feeds it. Made by `Connections.open`.

    Costs one call of `write` for all immediate responses to one `feed_data` or `receive`, and one for
    everything written in a turn of the loop.
    """

    def __init__(
        self,
        connection: Connection,
        among: dict[ServedConnection, None],
        write: Callable[[bytes], object],
        max_message_bytes: int,
        at_once: bool,
        trace: Trace | None,
    ) -> None:
        connection.call_in_loop = self._call_in_loop
        connection.flush = self.flush if at_once else self._flush_soon
        connection.generation = forks.generation
        super().__init__(connection, among)
        self._framer = Framer(max_message_bytes)
        self._write = write
        self._trace = trace
        self._receiving = False
        self._flush_is_due = False

    def feed_data(self, data: bytes) -> None:
        """Handle bytes of a stream of lines: any part of a line, or many."""
        lines = self._framer.feed(data)
        self._receiving = True
        try:
            for line in lines:
                self._take(line)
        finally:
            self._receiving = False
        self.flush()

    def receive(self, message: bytes) -> None:
        """Handle one complete message: JSON text, of any length, without a final newline."""
        self._receiving = True
        try:
            self._take(message)
        finally:
            self._receiving = False
        self.flush()

    async def end(self, drain_seconds: float = 1.0) -> None:
        """The client has sent its last byte: handle a last line without a newline, wait `drain_seconds` for
        calls in flight and their responses, cancel the rest, and close."""
        for line in self._framer.finish():
            self.receive(line)
        await drained(self.wait_idle(), drain_seconds)
        self.flush()
        self.close()

    def close(self) -> None:
        super().close()
        self._connection.flush = None

    def _take(self, line: bytes | None) -> None:
        """Handle a line; None is one over the limit."""
        if self.closed:
            return
        if self._trace is not None:
            tracebacks.call(
                "a trace failed", self._trace, b"<", b"(a line over the limit)" if line is None else line
            )
        before = self._connection.output.total
        try:
            if line is None:
                self._dispatcher.responses.line_too_long()
            else:
                self._connection.receive(line)
        except Exception as error:
            self._dispatcher.responses.line_failed(line or b"", before, error)
        if self._connection.generation != forks.generation:
            forks.leave()

    def _call_in_loop(self, function: Callable[[], object]) -> None:
        """Call a function in the loop: now, unless a message was fed while the loop did not run."""
        if self._loop is None or asyncio._get_running_loop() is not None:
            function()
        else:
            self._loop.call_soon(function)

    def _flush_soon(self) -> None:
        """The connection has written: flush after this turn of the loop, in which it may write more."""
        if self._loop is None:
            self.flush()
        elif not self._receiving and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Pass what has been written to `write` now."""
        self._flush_is_due = False
        data = self._connection.output.take()
        if not data or self.closed:
            return
        if self._trace is not None:
            tracebacks.call("a trace failed", self._trace, b">", data)
        try:
            self._write(data)
        except OSError:
            self.close()
        except Exception as error:
            tracebacks.report("a transport could not write", error)


async def wait_for_either(
    idle: Awaitable[object], seconds: float | None, hurried: Awaitable[object] | None
) -> None:
    """Wait until `idle` has ended, for at most `seconds` (None: without limit), or until `hurried` has ended.
    Raises what `idle` raises."""
    waiting = [asyncio.ensure_future(each) for each in (idle, hurried) if each is not None]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if waiting[0].done():
            waiting[0].result()
    finally:
        for each in waiting:
            each.cancel()


async def drained(
    idle: Awaitable[object], seconds: float | None, hurried: Awaitable[object] | None = None
) -> None:
    """Do so, but raise no OSError: the client has disconnected."""
    try:
        await wait_for_either(idle, seconds, hurried)
    except OSError:
        pass
