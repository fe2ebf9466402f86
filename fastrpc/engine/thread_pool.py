"""Worker threads for synchronous tools: started on demand, kept, never waited for.

A thread is started when a call finds none idle, up to a limit; beyond it calls wait in order. The
threads are daemons, so a tool that never returns cannot hold the process back: at exit it is left
behind. Results are passed to the event loop's thread. Costs about 25 µs a call, and a thread the first time.
Which tools run here, and when one may run on the loop's own thread, is decided by the caller.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from time import perf_counter_ns

from fastrpc import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any, NoReturn, Protocol

    class Claims(Protocol):
        """What tells another library of the loop that a worker runs for."""

        def begin(self, loop: AbstractEventLoop) -> None:
            """Called on a worker before a job of this loop."""

        def called_back(self) -> bool:
            """Whether the job has called into the loop, which on the loop's own thread it could not."""

    Job = tuple[
        AbstractEventLoop,
        Callable[[], Any],
        Callable[[Any, BaseException | None, int], object],
    ]

claims: Claims | None = None
"""Set by what serves programs that know another library's worker threads."""
NOT_INLINE = 1_000_000_000
"""Nanoseconds that no function takes that may run on the loop's own thread."""


class ThreadPool:
    """A pool of at most `limit` threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.started = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job] = SimpleQueue()

    def run(
        self,
        loop: AbstractEventLoop,
        function: Callable[[], Any],
        done: Callable[[Any, BaseException | None, int], object],
    ) -> None:
        """Call `function` on a worker; then, in `loop`, ``done(result, error, nanoseconds)``."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self.started < self.limit:
                self.started += 1
                threading.Thread(target=self._work, name=f"fastrpc-{self.started}", daemon=True).start()
        self._jobs.put((loop, function, done))

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        return self._idle < self.started or not self._jobs.empty()

    def leave(self) -> NoReturn:
        """End the process with exit code 0, without waiting for the threads."""
        import atexit
        import os
        import sys

        atexit._run_exitfuncs()
        for file in (sys.stdout, sys.stderr):
            try:
                file.flush()
            except (OSError, ValueError):
                pass  # closed, or not read: this cannot be reported either
        os._exit(0)

    def _work(self) -> None:
        generation = forks.generation
        while True:
            loop, function, done = self._jobs.get()
            result: Any = None
            failure: BaseException | None = None
            if claims is not None:
                claims.begin(loop)
            began = perf_counter_ns()
            try:
                result = function()
            except BaseException as error:  # a tool's SystemExit must not end the worker either
                failure = error
            took = perf_counter_ns() - began
            if claims is not None and claims.called_back():
                took = NOT_INLINE
            if generation != forks.generation:
                forks.leave(failure)
            with self._lock:
                self._idle += 1
            try:
                loop.call_soon_threadsafe(done, result, failure, took)
            except RuntimeError:  # the loop is closed: no call waits for the result
                return
            del loop, function, done, result, failure
