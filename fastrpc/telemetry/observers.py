"""Passes the records of calls to the observers, in batches, on a separate thread.

An observer receives a record at most 50 ms later, and many at once (`DrainThread`). If it fails, that is
logged, once for each kind of failure, and it is called again. Records that do not fit into the ring buffer
while an observer is slow are counted. Records of calls of mounted handlers are passed on to the observers of
the server that they are mounted from; which these are, and by which names, is left to `fastrpc.mounting`.

An observer with a true attribute `wants_content` has records with the arguments and the answer of each call,
on connections that are opened from then on. These lie in memory until then, so it receives them every 2 ms. A
method `missed` of an observer receives how many records did not fit. With a true attribute `may_wait`, calls
wait for the observers instead, at most `FULL_SECONDS` at once. One with a method `take_batch` is handed a
`RecordBatch`, which saves making objects. One with a method `before_answer` holds the answers of calls back
(`fastrpc.engine.held_answers`).
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from time import monotonic, sleep

from fastrpc import tracebacks
from fastrpc._core.recorder import Recorder
from fastrpc.errors import DefinitionError
from fastrpc.telemetry.drain_thread import PAUSE_SECONDS, DrainThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc._core.recorder import CallRecord, RecordBatch
    from fastrpc.engine.dispatcher import Dispatcher

    Observer = Callable[[list[CallRecord]], object]
    SharesOf = Callable[[RecordBatch], "Iterable[tuple[Observers, list[CallRecord]]]"]

CAPACITY = 8192
BATCH = 1024
DRAIN_SECONDS = 2.0
CONTENT_PAUSE_SECONDS, CONTENT_BATCH = 0.002, 32
"""With content; the batch where an observer takes no batches, but objects, which take long to make."""
FULL_SECONDS = 3.0
"""Longer than the audit log waits for its disk."""
YIELD_SECONDS = 0.00005
"""Between two batches with content, which take long: calls would wait for the interpreter's lock instead."""


class Observers:
    """The observers of one server, and the recorder that they drain.

    `on_change` is called when there are others. `shares_of` returns which of the records that are drained are
    those of mounted servers, too, for the observers of each.
    """

    def __init__(
        self, on_change: Callable[[], object] = lambda: None, shares_of: SharesOf = lambda records: ()
    ) -> None:
        self.functions: list[Observer] = []
        self._on_change = on_change
        self._shares_of = shares_of
        self._shares: deque[list[CallRecord]] = deque()  # of what servers that mount this one have recorded
        self._draining = Lock()
        self._thread = DrainThread("fastrpc-observers", self._hand_over_all, self.drain)
        self.recorder = Recorder(CAPACITY, self._thread.wake)
        self._dropped = 0
        self._batch = BATCH
        self._is_patient = True
        """Whether it is worth for calls to wait for the observers."""

    def add(self, function: Observer) -> None:
        """Have a function see the records of calls from now on."""
        self.functions.append(function)
        self._on_change()

    def remove(self, function: Observer) -> None:
        """Hand a function no records any more. Raises ValueError if it gets none."""
        self.functions.remove(function)
        self._on_change()

    def recorder_for(self, all_observers: Iterable[Observers]) -> Recorder:
        """Return the recorder, ready for all whose calls it records: these, and those of mounted servers.
        Answers are held by one of its own observers at most. Raises DefinitionError."""
        functions = [function for each in all_observers for function in each.functions]
        wanted = any(getattr(function, "wants_content", False) for function in functions)
        may_wait = any(getattr(function, "may_wait", False) for function in functions)
        holders = [function for function in self.functions if hasattr(function, "before_answer")]
        if len(holders) > 1:
            raise DefinitionError("observe: two observers hold answers; one may")
        self.recorder.holder = holders[0].before_answer if holders else None
        self.recorder.keeps_content = wanted
        self.recorder.on_full = self._make_room if may_wait else None
        capable = all(hasattr(function, "take_batch") for function in functions)
        self._batch = BATCH if capable or not wanted else CONTENT_BATCH
        self._thread.pause_seconds = CONTENT_PAUSE_SECONDS if wanted else PAUSE_SECONDS
        return self.recorder

    @property
    def dispatcher_type(self) -> type[Dispatcher]:
        """What serves the connections whose calls the recorder records."""
        if self.recorder.holder is not None:
            from fastrpc.engine.held_answers import HoldingDispatcher

            return HoldingDispatcher
        if self.recorder.keeps_content:
            from fastrpc.engine.recorded_content import RecordingDispatcher

            return RecordingDispatcher
        from fastrpc.engine.dispatcher import Dispatcher

        return Dispatcher

    def _hand_over_all(self) -> None:
        while self._hand_over():
            if self._batch == CONTENT_BATCH:
                sleep(YIELD_SECONDS)

    def drain(self, *, at_end: bool = False) -> None:
        """Pass on the current records, from any thread; later ones are left to the observers' thread. If an
        observer hangs there, wait `DRAIN_SECONDS` for it. `at_end`: serving has ended; observers that have a
        method ``at_end`` are called."""
        until = monotonic() + DRAIN_SECONDS
        for _ in range(0, CAPACITY, self._batch):
            if not self._hand_over(max(0.0, until - monotonic())):
                break
        for function in self.functions if at_end else ():
            end = getattr(function, "at_end", None)
            if end is not None:
                end()

    def _hand_over(self, seconds: float = -1) -> bool | None:
        """Pass on one batch, after waiting `seconds` (-1: without limit) for another thread's batch; return
        whether there may be more, None if the wait timed out."""
        if not self._draining.acquire(timeout=seconds):
            return None
        try:
            if self._shares:
                share = self._shares.popleft()
                for function in list(self.functions):
                    self._call(function, list(share))
                return True
            batch = self.recorder.take(self._batch)
            if self.recorder.dropped != self._dropped:
                self._tell_dropped()
            if batch:
                for function in list(self.functions):
                    take = getattr(function, "take_batch", None)
                    if take is not None:
                        self._call(take, batch)
                    else:
                        self._call(function, list(batch.calls()))
                self._hand_on(batch, seconds)
            return batch.count == self._batch
        finally:
            self._draining.release()

    def _make_room(self) -> None:
        """Pass on a batch on the thread that serves calls: the ring is full. After a wait in vain it does not
        wait again before there has been room."""
        self._is_patient = self._hand_over(FULL_SECONDS if self._is_patient else 0) is not None

    def _tell_dropped(self) -> None:
        """Pass the number of records that did not fit since the last time to observers that want it."""
        count = self.recorder.dropped - self._dropped
        self._dropped += count
        for function in list(self.functions):
            missed = getattr(function, "missed", None)
            if missed is not None:
                self._call(missed, count)

    def _hand_on(self, batch: RecordBatch, seconds: float) -> None:
        """Have the observers of mounted servers see those of these records that are theirs."""
        try:
            shares = self._shares_of(batch)
        except Exception as error:  # of ours: the thread must go on
            tracebacks.report("observers of mounted servers miss records", error)
            return
        for observers, share in shares:
            observers._take_share(share, seconds)

    def _take_share(self, records: list[CallRecord], seconds: float) -> None:
        """Hand over what a server has recorded that mounts this one; after `seconds`, whoever hands over next
        does. Locks are taken from the server that is served inwards: servers are not mounted in a circle."""
        self._shares.append(records)
        while self._shares and self._hand_over(seconds):
            pass

    def _call(self, function: Callable[[Any], object], value: object) -> None:
        try:
            function(value)
        except Exception as error:
            tracebacks.report(f"observer {getattr(function, '__name__', function)!s} failed", error)
