"""The parent process of several workers that serve one address: starts, replaces and stops them.

The workers are forked before anything of the server is imported, so each imports it for itself; the first
does so alone, and if it fails, the server ends. They share the key that signs request states (made before
the fork, in memory only), the sockets' addresses, and a folder for Unix sockets (`session_router`). A worker
that dies is replaced at once, one that dies young after a pause. If the parent dies, its workers notice and
shut down in order.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import monotonic

from fastrpc import diagnostics, forks
from fastrpc.errors import DefinitionError, UsageError
from fastrpc.transports.http.process import WorkerGroup, receive_byte, serve
from fastrpc.transports.http.signals import SignalWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.transports.http.process import HttpServable
    from fastrpc.transports.http.settings import HttpSettings

YOUNG_SECONDS = 10.0
PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before a worker that died young is replaced, by how often that happened in a row; then the server
ends."""
LONGEST_WAIT = 3600.0
OVERTIME_SECONDS = 6.0
"""Seconds that a worker may take to end besides its grace period; then it is killed."""


@dataclass(eq=False)
class Worker:
    """One worker: a number, and the process that has it now."""

    number: int
    pid: int = 0
    channel: socket.socket | None = None
    ready: bool = False
    begun: float = 0.0
    young_deaths: int = 0
    begins_at: float = 0.0
    """When the next process with this number is started; `inf` while there is one."""


@dataclass(eq=False)
class Workers:
    """The workers of a server, as their parent process manages them."""

    make: Callable[[], HttpServable]
    settings: HttpSettings
    sockets: list[list[socket.socket]]
    on_ready: Callable[[], object]

    def __post_init__(self) -> None:
        self._workers = [Worker(number) for number in range(self.settings.workers)]
        self._selector = selectors.DefaultSelector()
        self._announced = False
        self._ends = 0
        """The number of ending signals received."""
        self._killed_at = 0.0
        self._exit_code = 0

    def run(self) -> None:
        """Manage the workers until a signal ends them. Raises UsageError; SystemExit if they cannot start."""
        if threading.active_count() > 1:
            raise UsageError(
                f"http: workers: {threading.active_count() - 1} thread(s) run already, which a fork would "
                "lose; begin them in the server's lifespan"
            )
        others = (signal.SIGUSR1,) if self.settings.stats else ()
        with (
            tempfile.TemporaryDirectory(prefix="fastrpc-") as self._folder,
            SignalWriter(*others) as self._signals,
        ):
            self._selector.register(self._signals.pipe, selectors.EVENT_READ)
            self._supervise()
        if self._exit_code:
            raise SystemExit(self._exit_code)

    def _supervise(self) -> None:
        while True:
            for worker in self._workers:
                if self._may_begin(worker) and worker.begins_at <= monotonic():
                    self._begin(worker)
            if self._ends and not any(worker.pid for worker in self._workers):
                return
            ready = {key.fileobj for key, _ in self._selector.select(self._wait_seconds())}
            for worker in self._workers:
                if worker.channel in ready:
                    self._on_readable(worker)
            for number in self._signals.take():
                if number == signal.SIGCHLD:
                    self._reap()
                elif number == signal.SIGUSR1:
                    self._signal_all(number)  # each prints its own statistics
                else:
                    self._end()
            if self._ends and monotonic() > self._killed_at:
                self._signal_all(signal.SIGKILL)
                self._killed_at = monotonic() + LONGEST_WAIT

    def _wait_seconds(self) -> float:
        if self._ends:
            return max(0.0, self._killed_at - monotonic())
        times = [worker.begins_at for worker in self._workers if self._may_begin(worker)]
        return min(max(0.0, min(times, default=inf) - monotonic()), LONGEST_WAIT)

    def _may_begin(self, worker: Worker) -> bool:
        """Whether a worker may start: the first starts alone, so that an error is reported once."""
        return not self._ends and (worker.number == 0 or self._workers[0].ready or self._announced)

    def _begin(self, worker: Worker) -> None:
        ours, theirs = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # or it would be written twice
        worker.pid = os.fork()
        if worker.pid == 0:
            ours.close()
            self._run_worker(worker, theirs)
        theirs.close()
        worker.channel, worker.begun, worker.begins_at, worker.ready = ours, monotonic(), inf, False
        self._selector.register(ours, selectors.EVENT_READ)

    def _run_worker(self, worker: Worker, channel: socket.socket) -> None:
        """Run the worker, to the end of this process."""
        code = 1
        try:
            self._leave_to_parent(worker)
            code = self._serve(worker, channel)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException as error:
            diagnostics.write("error", f"worker {worker.number} failed", error)
        finally:
            diagnostics.finish()
            forks.leave(SystemExit(code))

    def _leave_to_parent(self, worker: Worker) -> None:
        """Close the parent's descriptors, so that its death is noticed, and the other workers' sockets."""
        self._signals.leave_to_parent()
        self._selector.close()
        own = set(self.sockets[worker.number])
        for found in {found for sockets in self.sockets for found in sockets} - own:
            found.close()
        for other in self._workers:
            if other.channel is not None:
                other.channel.close()

    def _serve(self, worker: Worker, channel: socket.socket) -> int:
        from fastrpc.transports.http.session_ids import be_worker

        be_worker(worker.number, len(self._workers))
        group = WorkerGroup(worker.number, len(self._workers), self._folder, channel)
        try:
            serve(
                self.make(),
                self.settings,
                self.sockets[worker.number],
                lambda: channel.send(b"r"),
                group,
            )
        except (UsageError, DefinitionError) as error:
            sys.stderr.write("fastrpc: " + " ".join(str(error).split()) + "\n")
            return 2
        return 0

    def _on_readable(self, worker: Worker) -> None:
        """A worker is ready, or has closed its end; SIGCHLD reports its death."""
        if worker.channel is None:
            return
        if receive_byte(worker.channel):
            worker.ready = True
            if not self._announced and all(worker.ready for worker in self._workers):
                self._announced = True
                self.on_ready()
        else:
            self._selector.unregister(worker.channel)

    def _reap(self) -> None:
        """Some child has died. (The channel does not show that: a child of the worker may hold it open.)"""
        for worker in self._workers:
            if worker.pid:
                pid, status = os.waitpid(worker.pid, os.WNOHANG)
                if pid:
                    self._on_exit(worker, os.waitstatus_to_exitcode(status))

    def _on_exit(self, worker: Worker, code: int) -> None:
        pid, worker.pid = worker.pid, 0
        channel, worker.channel = worker.channel, None
        if channel is not None:
            if channel in self._selector.get_map():
                self._selector.unregister(channel)
            channel.close()
        if not self._ends:
            self._replace(worker, pid, code)
        worker.ready = False

    def _replace(self, worker: Worker, pid: int, code: int) -> None:
        """Schedule a replacement for a worker that has died, or end the server."""
        young = monotonic() - worker.begun < YOUNG_SECONDS
        worker.young_deaths = worker.young_deaths + 1 if young else 0
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if not self._announced and not worker.ready:
            self._exit_code = code if code > 0 else 1
            if code <= 0:
                diagnostics.write(
                    "error", f"worker {worker.number} (process {pid}) ended {how} before it was ready"
                )
            self._end()
        elif worker.young_deaths >= len(PAUSES):
            diagnostics.write(
                "error", f"worker {worker.number} has died {worker.young_deaths} times in a row; all is ended"
            )
            self._exit_code = 1
            self._end()
        else:
            pause = PAUSES[worker.young_deaths]
            diagnostics.write(
                "error", f"worker {worker.number} (process {pid}) ended {how}; another one takes its place"
            )
            worker.begins_at = monotonic() + pause

    def _end(self) -> None:
        """End all workers: with the grace period; the second time, without; the third, by SIGKILL."""
        self._ends += 1
        if self._ends == 1:
            settings = self.settings
            for found in {found for sockets in self.sockets for found in sockets}:
                found.close()
            self._killed_at = (
                monotonic() + settings.notice_seconds + settings.drain_seconds + OVERTIME_SECONDS
            )
            self._signal_all(signal.SIGTERM)
        elif self._ends == 2:
            for worker in self._workers:
                if worker.channel is not None:
                    with suppress(OSError):  # it has just ended by itself
                        worker.channel.send(b"h")
        else:
            self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: int) -> None:
        for worker in self._workers:
            if worker.pid:
                os.kill(worker.pid, number)  # it runs, or is a zombie: only `_reap` waits for it
