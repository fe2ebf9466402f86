"""Decides when a call begins: bounds how many calls are in flight, and how many of a handler run at once.

A call that must wait for its server's lifespan, or for a place among those of its handler (`max_running`),
waits in the order of arrival. One call too many is refused (`Overloaded`). On the loop's thread alone.
"""

from __future__ import annotations

from fastrpc.errors import Overloaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable

    from fastrpc._core.connection import CallsInFlight
    from fastrpc.definitions.handler import Handler
    from fastrpc.engine.lifespan import AdmittedCall, ServerLifespan


class CallAdmission:
    """The calls of one server that have been admitted and have not ended."""

    def __init__(
        self, calls: CallsInFlight, pending_lifespan: Callable[[Handler], ServerLifespan | None]
    ) -> None:
        self._calls = calls
        self._pending_lifespan = pending_lifespan
        self._running: dict[Handler, int] = {}  # calls of one with a `max_running`
        self._queues: dict[Handler, OrderedDict[AdmittedCall, None]] = {}  # and those that wait for a place

    def admit(self, call: AdmittedCall) -> None:
        """Begin a call as soon as the loop runs and its tool's `max_running` allows. Raises Overloaded."""
        self.count_in()
        self.place(call)

    def count_in(self) -> None:
        """Count a call as one in flight. Raises Overloaded if there are too many."""
        calls = self._calls
        if calls.count >= calls.limit:
            raise Overloaded(f"Server busy: {calls.count} calls are in flight", {"maxInFlight": calls.limit})
        calls.count += 1

    def place(self, call: AdmittedCall) -> None:
        """Begin a call that is admitted, or queue it for what it needs."""
        handler = call.plan.tool
        lifespan = self._pending_lifespan(handler)
        if lifespan is not None:
            lifespan.hold(call)
            return
        if handler.max_running is not None:
            running = self._running.get(handler, 0)
            if running >= handler.max_running:
                if handler not in self._queues:
                    from collections import OrderedDict

                    self._queues[handler] = OrderedDict()
                self._queues[handler][call] = None
                return
            self._running[handler] = running + 1
        call.dispatcher.connection.call_in_loop(call.start)

    def release(self, call: AdmittedCall) -> None:
        """A call's function has ended: the next call that waits for its place begins."""
        self._calls.count -= 1
        handler = call.plan.tool
        if handler.max_running is None:
            return
        queue = self._queues.get(handler)
        if queue:
            following, _ = queue.popitem(last=False)
            if not queue:
                del self._queues[handler]
            following.dispatcher.connection.call_in_loop(following.start)
        else:
            self._running[handler] -= 1
            if self._running[handler] == 0:
                del self._running[handler]

    def withdraw(self, call: AdmittedCall) -> None:
        """Remove a call that was cancelled before it began from the queue, if it is in one."""
        queue = self._queues.get(call.plan.tool)
        if queue and call in queue:
            del queue[call]
            self._calls.count -= 1
