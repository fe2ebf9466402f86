"""Where the function of a synchronous tool runs whose original sends it to a worker thread.

The first calls run on AnyIO's worker threads, as in the original, and are timed. A function that has proved
to be quick then runs in the event loop: a thread costs many times what it takes. One call that is slow there
sends it back to threads, until it has proved itself again. Functions that call back into the loop
(``anyio.from_thread``) stay on threads.
"""

from __future__ import annotations

from time import perf_counter_ns

from fastrpc._core.plan import LIMITS_OF_AUTO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROOF, QUICK_NANOSECONDS, SLOW_NANOSECONDS = LIMITS_OF_AUTO


class ToolThreads:
    """Runs the calls of one tool."""

    __slots__ = ("_quick_calls", "_stays")

    def __init__(self, stays: bool) -> None:
        self._quick_calls = 0
        self._stays = stays
        """Whether the function stays on threads, however quick it is."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns, which may take its time. Raises what it raises."""
        if self._quick_calls >= PROOF:
            began = perf_counter_ns()
            try:
                return function()
            finally:
                if perf_counter_ns() - began > SLOW_NANOSECONDS:
                    self._quick_calls = 0
        from anyio import to_thread

        return await to_thread.run_sync(self._timed, function)

    def _timed(self, function: Callable[[], Any]) -> Any:
        began = perf_counter_ns()
        try:
            return function()
        finally:
            is_quick = not self._stays and perf_counter_ns() - began <= QUICK_NANOSECONDS
            self._quick_calls = self._quick_calls + 1 if is_quick else 0


def driven(coroutine: Any) -> Any:
    """Return the result of a coroutine that waits for nothing. Raises what it raises; RuntimeError if it
    waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("a synchronous tool has waited for something")
