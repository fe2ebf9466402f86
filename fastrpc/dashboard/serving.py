"""`ServingProcess`: the server of this process, as the pages show it; the calls in flight of all its workers.

They are read from the tables that the server has anyway, on the event loop's thread, when a page asks: calls
cost nothing more. Of the other workers of the server they are asked for over the sockets between these
(`fastrpc.transports.http.session_router`), as are the calls that people have made at the dashboard. A worker
that does not answer in time is counted as missing. What is behind the server is in `behind.py`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from heapq import nsmallest
from time import time
from typing import Any

from fastrpc._core.context import InFlightCall
from fastrpc.callers import unguarded
from fastrpc.dashboard.own_calls import OwnCalls, ShownOwnCall
from fastrpc.errors import CallStopped
from fastrpc.guard.approvals.display import visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastrpc.callers import Caller
    from fastrpc.server import Server
    from fastrpc.transports.http.interfaces import AsksWorkers

    Answer = dict[str, Any]


CALLS, CALL, STOP, OWN, END_OWN = "calls", "call", "stop", "own", "end own"
"""The questions of a worker to others: for their calls in flight, for one of them, to cancel one; for a call
that a person has made by the form, to cancel it."""


@dataclass(frozen=True)
class ShownCall:
    """A call in flight, as it was when this was made. `principal` is that of the caller; `since` is in
    seconds since 1970, and `seconds` how long ago that was, both None if that is not known. `waits`: its
    function has not begun, since it waits for an approval, or for a place. `task`: the id of its task."""

    id: str
    pid: int
    kind: str
    name: str
    principal: str
    caller_name: str
    caller_class: str
    seconds: float | None
    since: float | None
    waits: bool
    task: str
    progress: str


@dataclass(frozen=True)
class CallsOfWorkers:
    """Calls in flight, the oldest first; how many there are; and how many workers did not say."""

    calls: list[ShownCall]
    count: int
    missing: int


class ServingProcess:
    """The server of this process, which is one of `workers`. `others` asks the other ones."""

    def __init__(self, server: Server, workers: int = 1) -> None:
        self.server = server
        self.workers = workers
        self.pid = os.getpid()
        self.own_calls = OwnCalls(server)
        self.others: AsksWorkers | None = None

    @property
    def has_other_hosts(self) -> bool:
        """Whether servers of other hosts may serve the same clients."""
        return self.server.runtime.shared is not None

    def caller(self, principal: str) -> Caller:
        """Return the caller of a principal."""
        found = self.server.runtime.caller_of
        return unguarded(principal) if found is None else found(principal)

    # --- of all workers -----------------------------------------------------------------------------------

    async def calls(self, start: int, limit: int) -> CallsOfWorkers:
        """Return the calls in flight of all workers from a place on."""
        answers = [self._calls(start + limit), *await self._ask(what=CALLS, limit=start + limit)]
        found = [ShownCall(**each) for answer in answers for each in answer["calls"]]
        found.sort(key=lambda call: -(call.seconds or 0.0))
        count = sum(int(answer["count"]) for answer in answers)
        return CallsOfWorkers(found[start : start + limit], count, self.workers - len(answers))

    async def call(self, id: str) -> ShownCall | None:
        """Return the call in flight with an id."""
        found = await self._first(what=CALL, id=id)
        return None if found is None else ShownCall(**found)

    async def stop(self, id: str, why: str) -> bool:
        """Have the caller of a call get an error with a reason, and stop the work; if the call is that of a
        task, cancel it. False: it has ended."""
        return await self._first(what=STOP, id=id, why=why) is not None

    async def own_call(self, id: str, person: str) -> ShownOwnCall | None:
        """Return a call that a person has made at the dashboard, None if there is none, or no longer."""
        found = await self._first(what=OWN, id=id, person=person)
        return None if found is None else ShownOwnCall(**found)

    async def end_own_call(self, id: str, person: str) -> None:
        """Cancel a call that a person has made, unless it has ended."""
        await self._first(what=END_OWN, id=id, person=person)

    async def _first(self, **question: Any) -> Answer | None:
        """Return what the first worker that has something to say answers, this process before the others."""
        for answer in (await self.answer(question), *await self._ask(**question)):
            if answer.get("found") is not None:
                found: Answer = answer["found"]
                return found
        return None

    async def _ask(self, **question: Any) -> list[Answer]:
        return [] if self.others is None else await self.others.ask(question)

    async def answer(self, question: Answer) -> Answer:
        """Return what this process answers to a question of a worker."""
        what = question["what"]
        if what == CALLS:
            return self._calls(question["limit"])
        if what in (CALL, STOP):
            request = next((each for each in self._requests() if self._id_of(each) == question["id"]), None)
            if request is None:
                return {"found": None}
            found = asdict(self._shown(request))  # an ended call is of another form
            is_done = what == CALL or await self._stop(request, question["why"])
            return {"found": found if is_done else None}
        own = await self.own_calls.get(question["id"], question["person"])
        if own is not None and what == END_OWN:
            own.cancel()
        return {"found": None if own is None else asdict(own.shown())}

    # --- of this process ----------------------------------------------------------------------------------

    def _calls(self, limit: int) -> Answer:
        found = [(request.began, number, request) for number, request in enumerate(self._requests())]
        oldest = nsmallest(limit, found)
        return {"calls": [asdict(self._shown(each)) for _, _, each in oldest], "count": len(found)}

    def _requests(self) -> Iterator[Any]:
        """Yield the calls in flight as their tables have them; the connections of a session share one. A
        request that has become a task, or may, waits for a call that is in another table."""
        dispatchers: list[Any] = list(self.server.runtime.dispatchers)
        tables = {id(table): table for each in dispatchers if (table := each.requests.in_flight)}
        for table in tables.values():
            for request in list(table.values()):
                if isinstance(request.call, InFlightCall) and request.call.plan is not None:
                    yield request

    def _id_of(self, request: Any) -> str:
        """Return a text that only this call has: no other one of this process at this address has begun at
        this tick."""
        return f"{self.pid:x}-{id(request.call):x}-{request.began:x}"

    def _shown(self, request: Any) -> ShownCall:
        call, dispatcher = request.call, request.dispatcher
        caller = self.caller(dispatcher.principal)
        seconds = dispatcher.connection.seconds_since(request.began) if request.began else None
        task = dispatcher.call_task
        channel = getattr(call.request, "channel", None)
        return ShownCall(
            self._id_of(request),
            self.pid,
            call.plan.tool.kind,
            visible_name(call.plan.name),
            caller.principal,
            visible_name(caller.principal),
            visible_name(caller.caller_class),
            seconds,
            None if seconds is None else time() - seconds,
            call.state == "waiting",
            task.id if task is not None and task.exists else "",
            _progress_of(getattr(channel, "reported", None)),
        )

    async def _stop(self, request: Any, why: str) -> bool:
        task = request.dispatcher.call_task
        if task is None or not task.exists:
            request.call.break_off(CallStopped(f"The call was {why}"))
            return True
        is_cancelled: bool = await self.server.runtime.tasks.cancel(task.id, task.record.owner, why)
        return is_cancelled


def _progress_of(report: dict[str, Any] | None) -> str:
    if report is None:
        return ""
    total, message = report.get("total"), report.get("message")
    done = f"{report['progress']:g}" + (f" / {total:g}" if total is not None else "")
    return f"{done}: {visible_name(str(message))}" if message is not None else done
