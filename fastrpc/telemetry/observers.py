"""Passes the records of calls to the observers, in batches, on a thread of its own.

An observer receives a record at most 50 ms later, and many at once (`DrainThread`). If it fails, that is
logged, once for each kind of failure, and it is called again. Records that do not fit into the ring buffer
while an observer is slow are counted.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

from fastrpc import tracebacks
from fastrpc._core.recorder import Recorder
from fastrpc.telemetry.drain_thread import DrainThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.recorder import CallRecord

    Observer = Callable[[list[CallRecord]], object]

CAPACITY = 8192
BATCH = 1024
DRAIN_SECONDS = 2.0


class Observers:
    """The observers of one server, and the recorder that they drain."""

    def __init__(self) -> None:
        self.functions: list[Observer] = []
        self._draining = Lock()
        self.recorder = Recorder(
            CAPACITY, DrainThread("fastrpc-observers", self._hand_over_all, self.drain).wake
        )

    def _hand_over_all(self) -> None:
        while self._hand_over():
            pass

    def drain(self) -> None:
        """Pass on the current records, from any thread; later ones are left to the observers' thread. If an
        observer hangs there, wait `DRAIN_SECONDS` for it."""
        until = monotonic() + DRAIN_SECONDS
        for _ in range(0, CAPACITY, BATCH):
            if not self._hand_over(max(0.0, until - monotonic())):
                break

    def _hand_over(self, seconds: float = -1) -> bool:
        """Pass on one batch, after waiting `seconds` (-1: without limit) for another thread's batch; False if
        there was none, or the wait timed out."""
        if not self._draining.acquire(timeout=seconds):
            return False
        try:
            records = self.recorder.drain(BATCH)
            if records:
                for function in list(self.functions):
                    self._call(function, records)
        finally:
            self._draining.release()
        return bool(records)

    def _call(self, function: Any, records: list[CallRecord]) -> None:
        try:
            function(list(records))
        except Exception as error:
            tracebacks.report(f"observer {getattr(function, '__name__', function)!s} failed", error)
