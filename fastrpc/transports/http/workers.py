"""Several processes that serve one address, and the one that begins them, replaces those that die, and ends them.

The workers are forked before anything of the server is imported, so each imports it for itself; the first does so
alone, and if it cannot, that is the end. They share the key that signs what clients carry (made before, in memory
only), the sockets' addresses, and a folder to meet in (`relay`). A worker that dies is replaced at once, one that
dies young a while later, and in the end all are ended. If the parent dies its workers notice and end in order.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
from time import monotonic

from fastrpc import log
from fastrpc.errors import DefinitionError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.settings import Settings

YOUNG_SECONDS = 10.0
PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Before a worker that died young is replaced, by how often that happened in a row; then all is over."""
LONGEST_WAIT = 3600.0
OVERTIME_SECONDS = 6.0
"""What a worker may take to end besides its grace time; then it is killed."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Worker:
    """One worker: the process that has its number now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0
        self.pipe = -1
        self.ready = False
        self.begun = 0.0
        self.young_deaths = 0
        self.begins_at: float | None = 0.0
        """When the next process of this number begins; None while there is one."""


class Workers:
    """The workers of a server, seen from the process that looks after them."""

    def __init__(
        self,
        make: Callable[[], Any],
        settings: Settings,
        sockets: list[list[socket.socket]],
        on_ready: Callable[[], object],
    ) -> None:
        self._make = make
        self._settings = settings
        self._sockets = sockets
        self._on_ready = on_ready
        self._workers = [Worker(number) for number in range(settings.workers)]
        self._selector = selectors.DefaultSelector()
        self._announced = False
        self._ending_at: float | None = None
        self._exit_code = 0

    def run(self) -> None:
        """Look after the workers until a signal comes. Raises UsageError; SystemExit if they cannot begin."""
        import tempfile
        import threading

        if threading.active_count() > 1:
            raise UsageError(
                f"http: workers: {threading.active_count() - 1} thread(s) run already, which a fork would lose; "
                "begin them in the server's lifespan"
            )
        with tempfile.TemporaryDirectory(prefix="fastrpc-") as self._folder:
            self._parent_pipe = os.pipe()
            signals = _Signals()
            self._signals = signals
            self._selector.register(signals.pipe, selectors.EVENT_READ)
            try:
                self._look_after()
            finally:
                signals.release()
        if self._exit_code:
            raise SystemExit(self._exit_code)

    def _look_after(self) -> None:
        while True:
            self._begin_due()
            if self._ending_at is not None and not any(worker.pid for worker in self._workers):
                return
            ready = {key.fileobj for key, _ in self._selector.select(self._wait_seconds())}
            for worker in self._workers:
                if worker.pipe in ready:
                    self._hear(worker)
            for number in self._signals.take():
                if number in ENDING:
                    self._end()
            if self._ending_at is not None and monotonic() > self._ending_at:
                self._signal_all(signal.SIGKILL)
                self._ending_at = monotonic() + LONGEST_WAIT

    def _wait_seconds(self) -> float:
        times = [worker.begins_at for worker in self._workers if worker.begins_at and self._may_begin(worker)]
        if self._ending_at is not None:
            times = [self._ending_at]
        return max(0.0, min([*times, monotonic() + LONGEST_WAIT]) - monotonic())

    # --- begin ------------------------------------------------------------------------------------------------

    def _may_begin(self, worker: Worker) -> bool:
        """The first begins alone: what is wrong with the server is found once."""
        return self._ending_at is None and (worker.number == 0 or self._workers[0].ready or self._announced)

    def _begin_due(self) -> None:
        for worker in self._workers:
            due = worker.begins_at
            if due is not None and self._may_begin(worker) and due <= monotonic():
                self._begin(worker)

    def _begin(self, worker: Worker) -> None:
        pipe, theirs = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # or it would be written twice
        worker.pid = os.fork()
        if worker.pid == 0:
            self._be(worker, theirs)
        os.close(theirs)
        worker.pipe, worker.begun, worker.begins_at, worker.ready = pipe, monotonic(), None, False
        self._selector.register(pipe, selectors.EVENT_READ)

    def _be(self, worker: Worker, pipe: int) -> None:
        """Be a worker, to the end of this process."""
        code = 1
        try:
            self._leave_to_parent(worker)
            code = self._serve(worker, pipe)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException as error:
            log.write("error", f"worker {worker.number} failed", error)
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (AttributeError, OSError):
                    pass
            os._exit(code)

    def _leave_to_parent(self, worker: Worker) -> None:
        """Close what is the parent's, so that its death shows, and each address has one worker."""
        self._signals.release()
        signal.signal(signal.SIGINT, lambda number, frame: None)  # of a terminal: the parent passes it on
        self._selector.close()
        os.close(self._parent_pipe[1])
        own = set(self._sockets[worker.number])
        for found in {found for sockets in self._sockets for found in sockets} - own:
            found.close()
        for other in self._workers:
            if other.pipe >= 0:
                os.close(other.pipe)

    def _serve(self, worker: Worker, pipe: int) -> int:
        from fastrpc.transports.http.run import Colleagues, serve
        from fastrpc.transports.http.session_ids import be_worker

        be_worker(worker.number)
        place = Colleagues(worker.number, len(self._workers), self._folder, self._parent_pipe[0])
        try:
            serve(
                self._make(),
                self._settings,
                self._sockets[worker.number],
                lambda: os.write(pipe, b"r"),
                place,
            )
        except (UsageError, DefinitionError) as error:
            sys.stderr.write("fastrpc: " + " ".join(str(error).split()) + "\n")
            return 2
        return 0

    # --- hear -------------------------------------------------------------------------------------------------

    def _hear(self, worker: Worker) -> None:
        """A worker is ready, or its end of the pipe is closed: it has died."""
        if os.read(worker.pipe, 1):
            worker.ready = True
            if not self._announced and all(worker.ready for worker in self._workers):
                self._announced = True
                self._on_ready()
            return
        self._selector.unregister(worker.pipe)
        os.close(worker.pipe)
        _, status = os.waitpid(worker.pid, 0)
        pid, worker.pid, worker.pipe = worker.pid, 0, -1
        if self._ending_at is None:
            self._replace(worker, pid, os.waitstatus_to_exitcode(status))
        worker.ready = False

    def _replace(self, worker: Worker, pid: int, code: int) -> None:
        """A worker has died: have another one begin in its place, if that makes sense."""
        young = monotonic() - worker.begun < YOUNG_SECONDS
        worker.young_deaths = worker.young_deaths + 1 if young else 0
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if not self._announced and not worker.ready:
            self._exit_code = code if code > 0 else 1
            if code < 0:
                log.write("error", f"worker {worker.number} (process {pid}) ended {how} before it was ready")
            self._end()
        elif worker.young_deaths >= len(PAUSES):
            log.write(
                "error", f"worker {worker.number} has died {worker.young_deaths} times in a row; all is ended"
            )
            self._exit_code = 1
            self._end()
        else:
            pause = PAUSES[worker.young_deaths]
            log.write(
                "error", f"worker {worker.number} (process {pid}) ended {how}; another one takes its place"
            )
            worker.begins_at = monotonic() + pause

    # --- end --------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """End all workers in order; the second time, soon."""
        if self._ending_at is None:
            for found in {found for sockets in self._sockets for found in sockets}:
                found.close()
            self._ending_at = monotonic() + self._settings.drain_seconds + OVERTIME_SECONDS
        self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: int) -> None:
        for worker in self._workers:
            if worker.pid:
                try:
                    os.kill(worker.pid, number)
                except ProcessLookupError:
                    pass  # it has just ended by itself


class _Signals:
    """Signals as bytes in a pipe, until `release`."""

    def __init__(self) -> None:
        self.pipe, self._write = os.pipe()
        for end in (self.pipe, self._write):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, lambda number, frame: None) for number in ENDING}

    def take(self) -> bytes:
        """Return the numbers of the signals that have come."""
        try:
            return os.read(self.pipe, 1024)
        except BlockingIOError:
            return b""

    def release(self) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.pipe)
        os.close(self._write)
