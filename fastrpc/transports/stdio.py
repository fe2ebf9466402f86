"""Serves one client over standard input and output (MCP: transports, stdio).

Only the protocol writes to the client: both standard descriptors are moved away at the start, 0 then
reads from /dev/null and 1 points to standard error, so that no `print`, no C library and no child can
break the stream or read from it. Non-blocking mode is set on open file descriptions of our own where the
system can reopen them, and reset at the end where it cannot.

The first messages are answered without an event loop; asyncio and uvloop are imported when a call
needs them. At the end of input calls in flight have `drain_seconds` to end, with a regular file as
input without limit; then the rest is cancelled. SIGTERM, SIGINT and SIGHUP end at once. The shutdown is
that of `fastrpc.transports.shutdown`. Programs that run an event loop themselves use `serve_in_running_loop`.
"""

from __future__ import annotations

import os
import stat
import sys

from fastrpc import forks
from fastrpc._core import stream as _stream
from fastrpc._core.stream import Stream
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc._core.connection import Connection
    from fastrpc.transports.base import Connections
    from fastrpc.transports.interfaces import ServedServer
    from fastrpc.transports.shutdown import Shutdown

MAX_LINE = 16 * 1024 * 1024
LAST_WORDS_MS = 300  # how long a reader that stalls can hold up the end


class Descriptors:
    """Standard input and output, taken over; `give_back` restores them."""

    def __init__(self) -> None:
        closed = _fill_closed()
        if closed & {0, 1}:
            for number in closed - {2}:
                os.close(number)
            names = " and ".join(name for fd, name in ((0, "input"), (1, "output")) if fd in closed)
            raise UsageError(f"standard {names} must not be closed: the protocol needs both")
        self.kept = (os.dup(0), os.dup(1))
        self.input_is_file = stat.S_ISREG(os.fstat(0).st_mode)
        self._blocking: list[int] = []
        self.input = self._own(self.kept[0], os.O_RDONLY)
        self.output = self._own(self.kept[1], os.O_WRONLY)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)

    def _own(self, descriptor: int, access: int) -> int:
        """Return a non-blocking descriptor of the same file, on a separate open file description."""
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(descriptor):
            try:
                return os.open(f"/proc/self/fd/{descriptor}", access | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:
                pass  # another user's pipe, no /proc, or no other end
        if not stat.S_ISREG(mode) and os.get_blocking(descriptor):
            os.set_blocking(descriptor, False)
            self._blocking.append(descriptor)
        return descriptor

    def give_back(self) -> None:
        """Restore them. What has been printed and is still buffered goes to standard error first, as all
        that was printed before it: it would reach the client at the end of the process."""
        for file in (sys.stdout, sys.__stdout__):
            try:
                if file is not None:
                    file.flush()
            except (AttributeError, OSError, ValueError):
                pass  # not a file, not writable, or closed
        _stream.flush_c_output()
        for descriptor in self._blocking:
            os.set_blocking(descriptor, True)
        for descriptor in {self.input, self.output} - set(self.kept):
            os.close(descriptor)
        for number, kept in enumerate(self.kept):
            os.dup2(kept, number)
            os.close(kept)


_prepared: Descriptors | None = None
_is_serving = False


def is_serving() -> bool:
    """Whether this process serves a client over standard input and output now."""
    return _is_serving


def prepare() -> Descriptors:
    """Take the standard descriptors over now, before code is imported that may print.

    Otherwise `serve` does it. Raises UsageError if standard input or output is closed.
    """
    global _prepared
    if _prepared is None:
        _prepared = Descriptors()
        forks.in_child(_let_go)
    return _prepared


def _let_go() -> None:
    """Close the client's descriptors, in a child process."""
    global _prepared
    if _prepared is not None:
        forks.replace({_prepared.input, _prepared.output, *_prepared.kept})
        _prepared = None


def give_back() -> None:
    """Restore the standard descriptors, if they were taken over."""
    global _prepared
    forks.forget(_let_go)
    if _prepared is not None:
        _prepared.give_back()
        _prepared = None


def _fill_closed() -> set[int]:
    """Open /dev/null where a standard descriptor is closed, so that no other file gets its number."""
    closed = set()
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed.add(number)
    return closed


def run(server: ServedServer, drain_seconds: float, trace: Callable[[bytes, bytes], object] | None) -> None:
    """Serve a server until the client disconnects or a signal arrives. Raises UsageError."""
    dispatcher = server.connect()
    try:
        serve(dispatcher.connection, drain_seconds=drain_seconds, trace=trace)
    finally:
        dispatcher.close()


def serve(
    connection: Connection,
    *,
    drain_seconds: float = 1.0,
    trace: Callable[[bytes, bytes], object] | None = None,
) -> None:
    """Serve until the client disconnects or a signal arrives. Raises UsageError for closed descriptors."""
    global _is_serving
    descriptors = prepare()
    signals = _stream.catch_signals()
    forks.in_child(_stream.forget_signals)
    stream: Stream | None = None
    _is_serving = True
    try:
        stream = Stream(connection, descriptors.input, descriptors.output, MAX_LINE, trace)
        connection.generation = forks.generation
        forks.in_child(stream.abandon)
        reason = stream.run()
        if reason == _stream.LOOP:
            drain = None if descriptors.input_is_file else drain_seconds
            _serve_in_loop(stream, connection, signals, drain)
        stream.send_rest(LAST_WORDS_MS)
    finally:
        _is_serving = False
        forks.forget(_stream.forget_signals)
        if stream is not None:
            forks.forget(stream.abandon)
        _stream.release_signals()
        give_back()


def _serve_in_loop(stream: Stream, connection: Connection, signals: int, drain_seconds: float | None) -> None:
    """Continue in an event loop, to the end. A signal never raises KeyboardInterrupt here: see `serve`."""
    from fastrpc.transports import shutdown as ending
    from fastrpc.transports.base import Connections
    from fastrpc.transports.loop import run

    async def serving() -> None:
        shutdown = ending.Shutdown(drain_seconds)
        transport = StdioServerTransport(stream, connection, signals, shutdown)
        connections = Connections(lambda: connection)
        await ending.serve(transport, connections, shutdown, connection.dispatcher.runtime, owns_loop=True)

    run(serving(), is_signal=lambda: False)


async def serve_in_running_loop(connection: Connection, *, drain_seconds: float = 1.0) -> None:
    """Serve in the running event loop until the client disconnects, or this is cancelled.

    For programs that run the loop themselves: at the end it goes on, and only the calls of this client are
    cancelled. SIGTERM and SIGHUP, where they have no handler, end the serving; they are raised again once
    the descriptors are restored. SIGINT is the loop's. Raises UsageError for closed descriptors.
    """
    global _is_serving
    from fastrpc.transports import shutdown as ending
    from fastrpc.transports.base import Connections

    for file, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output")):
        if file is None and _prepared is None:  # its number may be the loop's by now
            raise UsageError(f"standard {name} must not be closed: the protocol needs both")
    descriptors = prepare()
    shutdown = ending.Shutdown(None if descriptors.input_is_file else drain_seconds)
    stream: Stream | None = None
    with ending.UnhandledSignals(shutdown):
        try:
            _is_serving = True
            stream = Stream(connection, descriptors.input, descriptors.output, MAX_LINE, None)
            connection.generation = forks.generation
            forks.in_child(stream.abandon)
            transport = StdioServerTransport(stream, connection, None, shutdown, descriptors)
            connections = Connections(lambda: connection)
            runtime = connection.dispatcher.runtime
            await ending.serve(transport, connections, shutdown, runtime, owns_loop=False)
            stream.send_rest(LAST_WORDS_MS)
        finally:
            _is_serving = False
            if stream is not None:
                forks.forget(stream.abandon)
                stream.abandon()  # a turn that the loop still has to call must not touch the descriptors
            give_back()


class StdioServerTransport:
    """The loop phase of standard input and output, by the contract of `fastrpc.transports.base`.

    The stream feeds the connection by itself. A signal hurries the shutdown, and so does an output that is no
    longer read; `signals` is the descriptor that becomes readable by a signal, or None. `descriptors` are
    those that a loop which goes on must not watch any more.
    """

    remote = False

    def __init__(
        self,
        stream: Stream,
        connection: Connection,
        signals: int | None,
        shutdown: Shutdown,
        descriptors: Descriptors | None = None,
    ) -> None:
        self._stream = stream
        self._connection = connection
        self._signals = signals
        self._shutdown = shutdown
        self._descriptors = descriptors

    async def start(self, connections: Connections) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        if self._signals is not None:
            self._loop.add_reader(self._signals, self._take_signal)
        connections.adopt(self._connection)
        self._stream.attach(self._loop, self._take_end)

    def _take_signal(self) -> None:
        self._ignore_signals()
        self._shutdown.hurry()

    def _ignore_signals(self) -> None:
        if self._signals is not None:
            self._loop.remove_reader(self._signals)

    def _take_end(self, reason: int) -> None:
        if reason == _stream.BROKEN:
            self._shutdown.hurry()
        self._shutdown.begin()

    async def wait_closed(self) -> None:
        await self._shutdown.begun.wait()

    async def stop_accepting(self) -> None:
        """Does nothing: either the input has ended, or a signal ends the server."""

    async def drain(self) -> None:
        import asyncio

        self._stream.flush()
        while self._stream.unsent:
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        """The rest is sent without a loop: see `serve`."""
        self._ignore_signals()
        if self._descriptors is not None:
            self._loop.remove_reader(self._descriptors.input)
            self._loop.remove_writer(self._descriptors.output)

    def let_go(self) -> None:
        """Does nothing: `serve` has done that, before there was a loop."""
