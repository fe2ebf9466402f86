"""Serves one peer over standard input and output (MCP: transports, stdio).

The protocol owns descriptor 1 alone: both standard descriptors are moved away at the start, 0 then
reads from /dev/null and 1 points to standard error, so that no `print`, no C library and no child can
break the stream or eat of it. Non-blocking mode is set on descriptions of our own where the system can
reopen them, and put back at the end where it cannot.

The first messages are answered without an event loop; asyncio and uvloop are imported when a call
needs them. At the end of input calls in flight have `drain_seconds` to end, with a regular file as
input all the time they need; then the rest is cancelled. SIGTERM, SIGINT and SIGHUP end at once.
"""

from __future__ import annotations

import os
import stat

from fastrpc import forks
from fastrpc._core import stream as _stream
from fastrpc._core.stream import Stream
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc._core.connection import Connection

MAX_LINE = 16 * 1024 * 1024
LAST_WORDS_MS = 300  # how long a reader that stalls can hold up the end
UNWIND_SECONDS = 0.5  # how long cancelled calls may take to clean up
GRACE_SECONDS = 0.3  # between SIGTERM and SIGKILL for the children, at the end


class Descriptors:
    """Standard input and output, taken over; `give_back` puts everything as it was."""

    def __init__(self) -> None:
        closed = _fill_closed()
        if closed & {0, 1}:
            _close_again(closed)
            names = " and ".join(name for fd, name in ((0, "input"), (1, "output")) if fd in closed)
            raise UsageError(f"standard {names} must not be closed: the protocol needs both")
        self._kept = (os.dup(0), os.dup(1))
        self.input_is_file = stat.S_ISREG(os.fstat(0).st_mode)
        self._blocking: list[int] = []
        self.input = self._own(self._kept[0], os.O_RDONLY)
        self.output = self._own(self._kept[1], os.O_WRONLY)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)

    def _own(self, descriptor: int, access: int) -> int:
        """Return a non-blocking descriptor for the same thing, on a description that nobody shares."""
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(descriptor):
            try:
                return os.open(f"/proc/self/fd/{descriptor}", access | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:
                pass  # another user's pipe, no /proc, or nobody at the other end
        if not stat.S_ISREG(mode) and os.get_blocking(descriptor):
            os.set_blocking(descriptor, False)
            self._blocking.append(descriptor)
        return descriptor

    def let_go(self) -> None:
        """Keep nothing of what the client reads and writes, in a child process."""
        forks.replace({self.input, self.output, *self._kept})

    def give_back(self) -> None:
        for descriptor in self._blocking:
            os.set_blocking(descriptor, True)
        for descriptor in {self.input, self.output} - set(self._kept):
            os.close(descriptor)
        for number, kept in enumerate(self._kept):
            os.dup2(kept, number)
            os.close(kept)


_prepared: Descriptors | None = None


def prepare() -> None:
    """Take the standard descriptors over now, before somebody else's code is imported that may print.

    `serve` does it otherwise. Raises UsageError if standard input or output is closed.
    """
    global _prepared
    if _prepared is None:
        _prepared = Descriptors()
        forks.in_child(_let_go)


def _let_go() -> None:
    global _prepared
    if _prepared is not None:
        _prepared.let_go()
        _prepared = None


def _give_back() -> None:
    global _prepared
    forks.forget(_let_go)
    if _prepared is not None:
        _prepared.give_back()
        _prepared = None


def _fill_closed() -> set[int]:
    """Put /dev/null where a standard descriptor is closed, lest a file of ours gets its number."""
    closed = set()
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed.add(number)
    return closed


def _close_again(closed: set[int]) -> None:
    for number in closed - {2}:
        os.close(number)


def serve(
    connection: Connection,
    *,
    drain_seconds: float = 1.0,
    trace: Callable[[bytes, bytes], object] | None = None,
    max_line: int = MAX_LINE,
) -> None:
    """Serve until the client is gone or a signal comes. Raises UsageError for closed descriptors."""
    prepare()
    descriptors = _prepared
    assert descriptors is not None
    signals = _stream.catch_signals()
    forks.in_child(_stream.forget_signals)
    stream: Stream | None = None
    try:
        stream = Stream(connection, descriptors.input, descriptors.output, max_line, trace)
        connection.generation = forks.generation
        forks.in_child(stream.abandon)
        reason = stream.run()
        if reason == _stream.LOOP:
            drain = None if descriptors.input_is_file else drain_seconds
            _serve_in_loop(stream, connection, signals, drain)
        stream.send_rest(LAST_WORDS_MS)
    finally:
        forks.forget(_stream.forget_signals)
        if stream is not None:
            forks.forget(stream.abandon)
        _stream.release_signals()
        _give_back()


def _serve_in_loop(stream: Stream, connection: Connection, signals: int, drain_seconds: float | None) -> None:
    """Go on in an event loop, to the end. A signal is never a KeyboardInterrupt here: see `serve`."""
    from fastrpc.transports.loop import run

    run(_Ending(stream, connection, signals, drain_seconds).serve(), is_signal=lambda: False)


class _Ending:
    """The loop phase of a connection, and its orderly end."""

    def __init__(
        self,
        stream: Stream,
        connection: Connection,
        signals: int,
        drain_seconds: float | None,
    ) -> None:
        import asyncio

        self.stream = stream
        self.connection = connection
        self.signals = signals
        self.drain_seconds = drain_seconds
        self.ended = asyncio.Event()  # the input is over
        self.hurry = asyncio.Event()  # a signal has come, or nobody reads the output

    async def serve(self) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self.signals, self.on_signal)
        self.connection.dispatcher.loop_runs(self.loop)
        self.stream.attach(self.loop, self.on_end)
        await self.ended.wait()
        self.connection.dispatcher.end_listening()
        if not self.hurry.is_set():
            await self.drain()
        self.loop.remove_reader(self.signals)
        await self.stop_everything()

    def on_signal(self) -> None:
        self.loop.remove_reader(self.signals)
        self.hurry.set()
        self.ended.set()

    def on_end(self, reason: int) -> None:
        if reason == _stream.BROKEN:
            self.hurry.set()
        self.ended.set()

    async def drain(self) -> None:
        """Let the calls in flight end, and their answers go, for as long as the end may wait."""
        import asyncio

        idle = asyncio.ensure_future(self.idle())
        hurry = asyncio.ensure_future(self.hurry.wait())
        await asyncio.wait({idle, hurry}, timeout=self.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        hurry.cancel()

    async def idle(self) -> None:
        import asyncio

        if self.connection.dispatcher.busy:
            nothing_left = asyncio.Event()
            self.connection.dispatcher.on_idle = nothing_left.set
            await nothing_left.wait()
        self.stream.flush()
        while self.stream.unsent and not self.hurry.is_set():
            await asyncio.sleep(0.005)

    async def stop_everything(self) -> None:
        """Cancel what is left and end the children; what cannot be stopped is left behind."""
        import asyncio
        import sys

        self.connection.dispatcher.close()
        await self.connection.dispatcher.runtime.leave()
        rest = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        processes = sys.modules.get("fastrpc.processes")
        if processes is not None:
            rest.add(asyncio.ensure_future(processes.close(grace_seconds=GRACE_SECONDS)))
        if rest:
            await asyncio.wait(rest, timeout=UNWIND_SECONDS)
