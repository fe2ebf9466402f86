"""The shutdown of a server, for all transports: in one order, bounded in time.

Where there is a time of notice, it is announced that the server ends, and the server serves on meanwhile.
Then no new clients are accepted, and subscription streams are ended; calls in flight have `drain_seconds`,
and their responses are sent; the rest is cancelled; the transport closes; lifespans are left, and the
programs that tools have started are ended. A signal begins it, or the end of the input; a second signal, or
an output that is no longer read, hurries it, which skips the waits. The part of a transport is in `base`.

Costs one waiting task while a server runs. Imported when there is an event loop.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading

from fastrpc import forks
from fastrpc.transports.base import Connections, drained, wait_for_either

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.base import Trace, Transport
    from fastrpc.transports.interfaces import ServedRuntime, ServedServer
    from fastrpc.transports.trace import Trace as TraceFile

UNWIND_SECONDS = 0.5
"""Seconds that cancelled tasks may take to clean up."""
PROGRAM_GRACE_SECONDS = 0.3
"""Seconds between SIGTERM and SIGKILL for the programs of tools."""
CLOSE_SECONDS = 5.0
"""Seconds that a transport may take to close."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that end a server; SIGHUP only if it is not ignored, as it is below ``nohup``."""

_served = 0
"""The number of transports being served in this process."""


class Shutdown:
    """The state of a shutdown: `begun` is set when it begins, `hurried` when it waits for no calls any more.

    Calls in flight have `drain_seconds`; None: no limit. `announce`, if there is one, is called
    `notice_seconds` before clients are no longer accepted. To be created and used in the event loop.
    """

    def __init__(self, drain_seconds: float | None) -> None:
        self.drain_seconds = drain_seconds
        self.notice_seconds = 0.0
        self.announce: Callable[[], object] | None = None
        self.begun = asyncio.Event()
        self.hurried = asyncio.Event()

    def begin(self) -> None:
        """Begin the shutdown, if it has not begun."""
        self.begun.set()

    def hurry(self) -> None:
        """Begin the shutdown, or go on with it, without waiting for calls in flight."""
        self.begun.set()
        self.hurried.set()


async def serve(
    transport: Transport,
    connections: Connections,
    shutdown: Shutdown,
    runtime: ServedRuntime,
    *,
    owns_loop: bool,
) -> None:
    """Serve over a transport, from its start to the end of the shutdown. `runtime` is the server's.

    With `owns_loop` all tasks of the event loop are cancelled at the end, otherwise only the calls of this
    transport. Raises what the transport raises; if this is cancelled, the shutdown is hurried.
    """
    global _served
    forks.in_child(transport.let_go)
    _served += 1
    try:
        try:
            await transport.start(connections)
            await wait_for_either(transport.wait_closed(), None, shutdown.begun.wait())
            shutdown.begin()
        except BaseException:
            shutdown.hurry()
            raise
        finally:
            await end(transport, connections, shutdown)
    finally:
        _served -= 1
        forks.forget(transport.let_go)
        if owns_loop:
            for dispatcher in list(runtime.dispatchers):
                dispatcher.close()
        await runtime.leave()
        await _unwind(owns_loop)


async def end(transport: Transport, connections: Connections, shutdown: Shutdown) -> None:
    """Shut a transport down: see the module's docstring."""
    try:
        if shutdown.announce is not None and not shutdown.hurried.is_set():
            shutdown.announce()
            # The transport goes on as before: `wait_closed` may do some of its work, such as a timer.
            await drained(transport.wait_closed(), shutdown.notice_seconds, shutdown.hurried.wait())
        await transport.stop_accepting()
        connections.end_listening()
        if not shutdown.hurried.is_set():
            answered = _all_answered(transport, connections)
            await drained(answered, shutdown.drain_seconds, shutdown.hurried.wait())
    finally:
        connections.close()
        await drained(transport.close(), CLOSE_SECONDS)


async def _all_answered(transport: Transport, connections: Connections) -> None:
    """Wait until all calls have ended and their responses are sent."""
    await connections.wait_idle()
    await transport.drain()


async def _unwind(owns_loop: bool) -> None:
    """Wait for cancelled tasks, and end programs; what cannot be stopped goes on."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if owns_loop:
        for task in tasks:
            if not getattr(task, "cancelling", int)():  # a second one would interrupt the clean-up
                task.cancel()  # tasks of Python 3.10 do not tell; those of calls always do
        waiting: set[asyncio.Future[Any]] = {*tasks}
    else:
        from fastrpc._core.task import CallTask

        waiting = {task for task in tasks if isinstance(task, CallTask) and task.cancelling()}
    processes = sys.modules.get("fastrpc.processes")
    if processes is not None and not _served:
        waiting.add(asyncio.ensure_future(processes.close(grace_seconds=PROGRAM_GRACE_SECONDS)))
    if waiting:
        await asyncio.wait(waiting, timeout=UNWIND_SECONDS)


async def serve_in_loop(
    server: ServedServer, transport: Transport, drain_seconds: float, trace_path: str | None
) -> None:
    """Serve a `fastrpc.Server` in the running event loop, until the transport is closed.

    Raises what the transport raises, and UsageError for a trace that cannot be written.
    """
    trace: TraceFile | None = None
    if trace_path is not None:
        from fastrpc.transports.trace import Trace as TraceFile

        trace = TraceFile(trace_path)
    try:
        connections = connections_of(server, trace)
        await serve(transport, connections, Shutdown(drain_seconds), server.runtime, owns_loop=False)
    finally:
        if trace is not None:
            trace.close()
        server.drain_observers(at_end=True)


def run(server: ServedServer, transport: Transport, drain_seconds: float, trace: Trace | None) -> None:
    """Serve a `fastrpc.Server` in a new event loop, until the transport is closed or a signal arrives.

    The first signal begins the shutdown, the second hurries it. Raises what the transport raises.
    """
    from fastrpc.transports import loop

    async def serving() -> None:
        shutdown = Shutdown(drain_seconds)
        with ShutdownSignals(shutdown):
            connections = connections_of(server, trace)
            await serve(transport, connections, shutdown, server.runtime, owns_loop=True)

    loop.run(serving(), is_signal=may_be_interrupted)


def connections_of(server: ServedServer, trace: Trace | None = None) -> Connections:
    """Return the connections of a server over a transport that is about to start."""
    return Connections(lambda: server.connect().connection, trace)


class _HandledSignals:
    """Within `with`, `_take` handles the signals in `handled`: in the running loop, on the main thread."""

    def __init__(self, shutdown: Shutdown, handled: list[signal.Signals]) -> None:
        self._shutdown = shutdown
        self._handled = handled

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is not threading.main_thread():
            self._handled = []
            return
        forks.in_child(let_go)
        for number in self._handled:
            self._loop.add_signal_handler(number, self._take, number)

    def __exit__(self, *exception: object) -> None:
        forks.forget(let_go)
        self._release()

    def _release(self) -> None:
        while self._handled:
            self._loop.remove_signal_handler(self._handled.pop())

    def _take(self, number: signal.Signals) -> None:
        raise NotImplementedError


class ShutdownSignals(_HandledSignals):
    """Handles the signals that begin the shutdown.

    The second signal hurries it, and the third has the system's default action. With `supervised` the parent
    process hurries it, and further signals are ignored: a signal to the whole process group, as terminals and
    systemd send it, reaches parent and child, and counts once.
    """

    def __init__(self, shutdown: Shutdown, *, supervised: bool = False) -> None:
        super().__init__(shutdown, ending_signals())
        self._supervised = supervised

    def _take(self, number: signal.Signals) -> None:
        if self._shutdown.begun.is_set() and not self._supervised:
            self._shutdown.hurry()
            self._release()
        self._shutdown.begin()


class UnhandledSignals(_HandledSignals):
    """Ends a server in a loop that the program runs by SIGTERM and SIGHUP, where they would end the process,
    which they do at the end of the block. Handlers that the program has installed stay.
    """

    def __init__(self, shutdown: Shutdown) -> None:
        unhandled = (signal.SIGTERM, signal.SIGHUP)
        super().__init__(shutdown, [each for each in unhandled if signal.getsignal(each) == signal.SIG_DFL])
        self._seen: signal.Signals | None = None

    def __exit__(self, *exception: object) -> None:
        super().__exit__()
        if self._seen is not None:
            signal.raise_signal(self._seen)

    def _take(self, number: signal.Signals) -> None:
        self._seen = number
        self._shutdown.hurry()


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end this process."""
    return [
        number
        for number in ENDING_SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def may_be_interrupted() -> bool:
    """Whether a KeyboardInterrupt raised now may come from SIGINT: no other handler is installed."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def let_go() -> None:
    """Restore the default signal handlers, in a forked child: its signals are not the server's."""
    signal.set_wakeup_fd(-1)
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
