"""The contract of a transport: what carries messages between clients and a server, and what it is handed.

A transport moves bytes and knows nothing of MCP. The server hands it `Connections`; it opens one for each
client, feeds it what comes, and sends what the connection writes. As with h11 nothing here does I/O. One
transport is one file: see ``examples/unix_socket.py``, `fastrpc.transports.memory` (the smallest one), and
`fastrpc.transports.stdio`.

**Life.** ``Server.serve(transport)`` awaits `Transport.start`, which begins to take clients, and then waits
until `Transport.wait_closed` returns, a signal comes (``Server.run(transport=…)``), or it is cancelled. The
end is written once, in `fastrpc.transports.shutdown`: `stop_accepting`; calls in flight have `drain_seconds`
and their answers go out (`drain`); what is left is cancelled; `close`; lifespans are left and the programs of
tools are ended. A second signal skips the wait, and so does a cancellation from the beginning.

**Messages.** A message is one line of JSON in UTF-8. `ClientConnection.feed_data` takes any part of a stream
of lines; `receive` one whole message, for what has frames of its own (WebSocket). Answers, notifications and
requests come as calls of `write(data)`: one or more whole lines, each with its newline, on the thread of the
loop.

**Back-pressure.** `write` must not block: what the client does not read waits in the transport. Feed a
connection no more until that has drained, as ``await writer.drain()`` does between two reads; calls that are
still running are bounded by the server's `max_in_flight`.

**Errors.** What is wrong with a message is answered, never raised. An OSError of `write` means that the
client is gone: the connection is closed. When the transport notices that by itself it calls `close`: calls in
flight are cancelled and nothing is written any more. What `start` and `wait_closed` raise, `Server.serve`
raises, after an end without a wait.

**Threads and forks.** Everything is called, and is to be called, on the thread of the event loop. A child
process that a tool forks ends when it comes back from the call; `let_go` is called in it at once.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from fastrpc import forks
from fastrpc._core.framer import Framer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable
    from typing import Protocol

    from fastrpc._core.connection import Connection
    from fastrpc.transports.interfaces import Dispatcher

    Trace = Callable[[bytes, bytes], object]
    """Is called with ``b"<"`` and a line that came, or ``b">"`` and bytes that went."""
else:
    Protocol = object

MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class Transport(Protocol):
    """What `Server.serve` is handed. Only `start` has to be written; the rest does nothing by default."""

    remote: bool = True
    """Whether clients may be on other machines. Tools then fetch nothing that only this one can reach
    (`Server.over_http`)."""

    @abstractmethod
    async def start(self, connections: Connections) -> None:
        """Begin to take clients: open a connection for each, and feed it. Returns when clients can come.

        Whatever it raises, an OSError for an address that is taken, ends `Server.serve`.
        """
        raise NotImplementedError

    async def wait_closed(self) -> None:
        """Return when no message can come any more, because the only client has sent its last one.

        A transport that listens for clients never returns. Is cancelled when the end begins otherwise.
        """
        await asyncio.get_running_loop().create_future()

    async def stop_accepting(self) -> None:
        """Take no new clients. Those that there are may still be read: to answer a request of a tool's."""
        return

    async def drain(self) -> None:
        """Return when all that was written has gone out. Called when all calls have been answered; cancelled
        when `drain_seconds` are over."""
        return

    async def close(self) -> None:
        """Close what is open. All connections have been closed; it may take some seconds, then it is
        cancelled."""
        return

    def let_go(self) -> None:
        """Close what belongs to clients, in a child process that a tool has forked: sockets, descriptors.
        Must not touch the event loop, which is the parent's."""
        return


class Connections:
    """The connections of one server over one transport: `Transport.start` is handed them, to `open` more.

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
        """Return the connection of a new client. `write` is called with bytes for it, whole lines: for each
        message where `at_once` says so, else for all that is written in one turn of the loop.

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
        """Have a connection that something else feeds end with the others (`fastrpc.transports.stdio`)."""
        self._opened[ServedConnection(connection, self._opened)] = None

    def end_listening(self) -> None:
        """Tell all clients that listen for changes that there will be none (MCP 2026-07-28)."""
        for connection in list(self._opened):
            connection.end_listening()

    async def wait_idle(self) -> None:
        """Return when no call is in flight on any connection, and all answers are handed to `write`."""
        while busy := [connection for connection in self._opened if connection.busy]:
            await busy[0].wait_idle()
        for connection in list(self._opened):
            connection.flush()

    def close(self) -> None:
        """Close all connections, after what they have written is handed to `write`, and open no more."""
        self._closed = True
        for connection in list(self._opened):
            connection.flush()
            connection.close()


class ServedConnection:
    """The life of one connection in the running event loop: whether it is busy, and its end."""

    def __init__(self, connection: Connection, among: dict[ServedConnection, None]) -> None:
        self.closed = False
        self._connection = connection
        self._dispatcher: Dispatcher = connection.dispatcher
        self._among = among
        self._idle: asyncio.Event | None = None
        self._loop = running_loop()
        if self._loop is not None:
            self._dispatcher.loop_runs(self._loop)

    @property
    def busy(self) -> bool:
        """Whether a call of this client is in flight."""
        return not self.closed and self._dispatcher.busy

    async def wait_idle(self) -> None:
        """Return when no call is in flight, or the connection is closed."""
        while self.busy:
            if self._idle is None:
                self._idle = asyncio.Event()
                self._dispatcher.on_idle = self._idle.set
            self._idle.clear()
            await self._idle.wait()

    def end_listening(self) -> None:
        """Tell a client that listens for changes that there will be none (MCP 2026-07-28)."""
        self._dispatcher.end_listening()

    def flush(self) -> None:
        """Hand on what has been written. Does nothing here: the connection's stream does it by itself."""

    def close(self) -> None:
        """The client is gone: cancel its calls; nothing is written to it any more. May be called twice."""
        if not self.closed:
            self.closed = True
            self._among.pop(self, None)
            self._dispatcher.close()
            if self._idle is not None:
                self._idle.set()


class ClientConnection(ServedConnection):
    """One client's connection, as a transport feeds it. Made by `Connections.open`.

    Costs one call of `write` for all that one `feed_data` or `receive` is answered with at once, and one for
    all that is written in a turn of the loop.
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
        connection.call_in_loop = lambda function: function()
        connection.flush = self.flush if at_once else self._flush_soon
        connection.generation = forks.generation
        super().__init__(connection, among)
        self._framer = Framer(max_message_bytes)
        self._write = write
        self._trace = trace
        self._receiving = False
        self._flush_is_due = False

    def feed_data(self, data: bytes) -> None:
        """Take bytes of a stream of lines, as they come: any part of one, or many."""
        lines = self._framer.feed(data)
        self._receiving = True
        try:
            for line in lines:
                self._take(line)
        finally:
            self._receiving = False
        self.flush()

    def receive(self, message: bytes) -> None:
        """Take one whole message: JSON text, of any length, without a newline at its end."""
        self._receiving = True
        try:
            self._take(message)
        finally:
            self._receiving = False
        self.flush()

    async def end(self, drain_seconds: float = 1.0) -> None:
        """The client has sent its last byte: take a last line without a newline, let calls in flight end and
        be answered for so long, and close. What then is still in flight is cancelled."""
        for line in self._framer.finish():
            self.receive(line)
        await drained(self.wait_idle(), drain_seconds)
        self.flush()
        self.close()

    def close(self) -> None:
        super().close()
        self._connection.flush = None

    def _take(self, line: bytes | None) -> None:
        """Handle a line; None stands for one over the limit."""
        if self.closed:
            return
        if self._trace is not None:
            self._trace(b"<", b"(a line over the limit)" if line is None else line)
        if line is None:
            self._dispatcher.line_too_long()
        else:
            self._connection.receive(line)
        if self._connection.generation != forks.generation:
            forks.leave()

    def _flush_soon(self) -> None:
        """The connection has written something, of which more may come in this turn of the loop."""
        if self._loop is None:
            self.flush()
        elif not self._receiving and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand what has been written to `write` now."""
        self._flush_is_due = False
        data = self._connection.output.take()
        if not data or self.closed:
            return
        if self._trace is not None:
            self._trace(b">", data)
        try:
            self._write(data)
        except OSError:
            self.close()


async def drained(
    idle: Awaitable[object], seconds: float | None, hurried: Awaitable[object] | None = None
) -> None:
    """Wait until `idle` has ended, for at most so long (None: as long as it takes), or until `hurried` has
    ended. Raises what `idle` raises, but for an OSError: nobody is there to wait for."""
    waiting = [asyncio.ensure_future(each) for each in (idle, hurried) if each is not None]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if waiting[0].done():
            waiting[0].result()
    except OSError:
        pass
    finally:
        for each in waiting:
            each.cancel()


def running_loop() -> AbstractEventLoop | None:
    """Return the event loop that this thread runs, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
