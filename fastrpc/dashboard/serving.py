"""`ServingProcess`: the server of this process, as the pages show it; and its calls in flight.

They are read from the tables that the server has anyway, on the event loop's thread, when a page asks: calls
cost nothing more. What is behind the server is in `behind.py`.
"""

from __future__ import annotations

import os
from heapq import nsmallest
from time import time

from fastrpc._core.context import InFlightCall
from fastrpc.callers import unguarded
from fastrpc.dashboard.own_calls import OwnCalls
from fastrpc.errors import CallStopped
from fastrpc.guard.approvals.display import visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.server import Server


class ServingProcess:
    """The server of this process, which is one of `workers`."""

    def __init__(self, server: Server, workers: int = 1) -> None:
        self.server = server
        self.workers = workers
        self.pid = os.getpid()
        self.own_calls = OwnCalls(server)

    def caller(self, principal: str) -> Caller:
        """Return the caller of a principal."""
        found = self.server.runtime.caller_of
        return unguarded(principal) if found is None else found(principal)

    async def calls(self, start: int, limit: int) -> tuple[list[ShownCall], int]:
        """Return the calls in flight, the oldest first, from a place on; and how many there are."""
        found = [(request.began, number, request) for number, request in enumerate(self._requests())]
        oldest = nsmallest(start + limit, found)[start:]
        return [ShownCall(request, self) for _, _, request in oldest], len(found)

    async def call(self, id: str) -> ShownCall | None:
        """Return the call in flight with the id of a `ShownCall`."""
        for request in self._requests():
            if _id_of(request) == id:
                return ShownCall(request, self)
        return None

    def _requests(self) -> Iterator[Any]:
        """Yield the calls in flight as their tables have them; the connections of a session share one. A
        request that has become a task, or may, waits for a call that is in another table."""
        dispatchers: list[Any] = list(self.server.runtime.dispatchers)
        tables = {id(table): table for each in dispatchers if (table := each.requests.in_flight)}
        for table in tables.values():
            for request in list(table.values()):
                if isinstance(request.call, InFlightCall) and request.call.plan is not None:
                    yield request


class ShownCall:
    """A call in flight, as it is when this is made."""

    def __init__(self, request: Any, serving: ServingProcess) -> None:
        self._call = call = request.call
        dispatcher = request.dispatcher
        self.id = _id_of(request)
        self.kind: str = call.plan.tool.kind
        self.name = visible_name(call.plan.name)
        self.caller = serving.caller(dispatcher.principal)
        self.seconds: float | None = None
        self.since: float | None = None
        if request.began:
            self.seconds = dispatcher.connection.seconds_since(request.began)
            self.since = time() - self.seconds
        self.waits = call.state == "waiting"
        """Whether its function has not begun: it waits for an approval, or for a place."""
        task = dispatcher.call_task
        self.task: Any = task if task is not None and task.exists else None
        channel = getattr(call.request, "channel", None)
        self.progress = _progress_of(getattr(channel, "reported", None))

    def stop(self, why: str) -> None:
        """Have the caller get an error with a reason, and stop the work. On the event loop's thread."""
        self._call.break_off(CallStopped(why))

    @property
    def caller_name(self) -> str:
        return visible_name(self.caller.principal)

    @property
    def caller_class(self) -> str:
        return visible_name(self.caller.caller_class)


def _id_of(request: Any) -> str:
    """Return a text that only this call has: no other one at this address has begun at this tick."""
    return f"{id(request.call):x}-{request.began:x}"


def _progress_of(report: dict[str, Any] | None) -> str:
    if report is None:
        return ""
    total, message = report.get("total"), report.get("message")
    done = f"{report['progress']:g}" + (f" / {total:g}" if total is not None else "")
    return f"{done}: {visible_name(str(message))}" if message is not None else done
