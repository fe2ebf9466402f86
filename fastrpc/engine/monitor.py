"""Functions that poll for changes outside of the server: of a folder, a file, a clock.

Each is called when the event loop starts and every few seconds from then on, always on the thread that serves
a connection, and never without a client. A list request does not call them, except before there is a loop. A
failure is logged, once until the function works again, and the function is called again. A server that polls
for nothing does not import this: `engine/server_monitors.py` is how its connections find that out.
"""

from __future__ import annotations

from fastrpc.errors import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable


class Monitor:
    """The watching functions of one server."""

    def __init__(self) -> None:
        self._every: dict[Callable[[], object], float] = {}
        self._timers: dict[Callable[[], object], TimerHandle] = {}
        self._failing: set[Callable[[], object]] = set()
        self.loop: AbstractEventLoop | None = None
        """The loop that calls them, if one does."""
        self.polled = False
        """Whether they were called without a loop."""

    @property
    def needed(self) -> bool:
        """Whether there is a function to call, and no loop that does it."""
        return bool(self._every) and (self.loop is None or self.loop.is_closed())

    def add(self, function: Callable[[], object], every_seconds: float) -> None:
        self.remove(function)
        self._every[function] = every_seconds
        if self.loop is not None:
            self._tick(function)

    def remove(self, function: Callable[[], object]) -> None:
        """Remove a function, if it is there."""
        self._every.pop(function, None)
        timer = self._timers.pop(function, None)
        if timer is not None:
            timer.cancel()

    def poll(self) -> None:
        """Call each function now, since no loop does."""
        self.polled = True
        for function in list(self._every):
            self._call(function)

    def begin(self, loop: AbstractEventLoop) -> None:
        """Call each function now and from time to time, in this loop; unless another one does so already."""
        if self.loop is None or self.loop.is_closed():
            self.loop = loop
            self.polled = False
            for function in list(self._every):
                self._tick(function)

    def end(self) -> None:
        """No client is left to be notified: wait for the next `begin`."""
        self.loop = None
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()

    def _tick(self, function: Callable[[], object]) -> None:
        self._call(function)
        if function in self._every and self.loop is not None:  # it may have taken itself out
            self._timers[function] = self.loop.call_later(self._every[function], self._tick, function)

    def _call(self, function: Callable[[], object]) -> None:
        try:
            function()
        except FAILURES as error:
            if function not in self._failing:
                self._failing.add(function)
                name = getattr(function, "__qualname__", function)
                from fastrpc import tracebacks

                tracebacks.report(f"{name}, which watches the server, failed", error)
        else:
            self._failing.discard(function)
