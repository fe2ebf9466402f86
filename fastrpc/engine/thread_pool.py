"""Worker threads for synchronous tools: started on demand, reused, never joined.

The first threads are started at once, when calls find none idle; more, up to a limit, when calls still wait
half a millisecond later: a burst of quick calls needs no more than a few. Beyond the limit calls wait in
order. The threads are daemons, so a tool that never returns cannot delay the exit of the process: it is
abandoned. Results are passed to the event loop's thread. Costs about 25 µs a call, and a thread the first
time. The caller decides which tools run here, and when one may run on the event loop's thread.
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


AT_ONCE = 4
"""So many threads are started as soon as calls find none idle; to start one takes as long as ten calls."""
GROWTH_DELAY_SECONDS = 0.0005


class ThreadPool:
    """A pool of at most `limit` threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.started = 0
        self._idle = 0  # threads that take the next job, or will when they have started
        self._waiting = 0  # jobs that no thread has taken
        self._growing_in: AbstractEventLoop | None = None
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
            self._waiting += 1
            self._start_threads(AT_ONCE)
            grows = self._waiting > self._idle and self.started < self.limit and self._growing_in is not loop
            if grows:
                self._growing_in = loop
        self._jobs.put((loop, function, done))
        if grows:
            loop.call_later(GROWTH_DELAY_SECONDS, self._grow)

    def _grow(self) -> None:
        """Start a thread for each job that still waits, up to the limit."""
        with self._lock:
            self._growing_in = None
            self._start_threads(self.limit)

    def _start_threads(self, most: int) -> None:
        """Start threads for jobs that wait, until there are `most` or as many as the limit."""
        while self._waiting > self._idle and self.started < min(most, self.limit):
            self.started += 1
            self._idle += 1
            threading.Thread(target=self._work, name=f"fastrpc-{self.started}", daemon=True).start()

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        return self._idle < self.started or self._waiting > 0

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
            with self._lock:
                self._idle -= 1
                self._waiting -= 1
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
