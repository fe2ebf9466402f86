"""What all connections of one server share: its tools and their call plans, lists that are ready to
send, the worker threads, and the bound on calls in flight.

Plans and lists are made at the first request that needs them and again after the tools have changed.
"""

from __future__ import annotations

from fastrpc._core.encode import dumps
from fastrpc._core.plan import REQUIRED, Plan
from fastrpc.errors import InvalidParams, Overloaded
from fastrpc.results import Results, form_of, keeps_plain_values
from fastrpc.session import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.calls import Call
    from fastrpc.dispatcher import Dispatcher
    from fastrpc.registry import Registry, Tool
    from fastrpc.workers import Workers

LIST_TTL_MS = 60_000
"""For how long a 2026-07-28 client may keep a list (caching hint ``ttlMs``)."""

BINDABLE = ("str", "int", "float", "bool", "object", "array", "json")


class Service:
    """The shared half of a server; a `Dispatcher` is the other, one for each connection."""

    def __init__(
        self,
        registry: Registry,
        server_info: dict[str, Any],
        *,
        instructions: str | None = None,
        page_size: int = 1000,
        max_in_flight: int = 16384,
        threads: int = 40,
        load: Callable[[], object] | None = None,
    ) -> None:
        self.registry = registry
        self.server_info = server_info
        self.instructions = instructions
        self.results = Results(server_info)
        self.page_size = page_size
        self.max_in_flight = max_in_flight
        self.threads = threads
        self.dispatchers: set[Dispatcher] = set()
        self.in_flight = 0
        """Calls that are being worked on, of all connections."""
        self._running: dict[str, int] = {}  # calls of a tool with a `max_running`, by its name
        self._queues: dict[str, list[Call]] = {}  # and those that wait for a place
        self._load = load
        self._plans: dict[str, Plan] | None = None
        self._lists: dict[str, bytes] = {}
        self._workers: Workers | None = None
        registry.on_change = self._forget

    def _forget(self) -> None:
        self._plans = None
        self._lists.clear()
        for dispatcher in self.dispatchers:
            dispatcher.connection.take_plans({})

    # --- calls in flight ------------------------------------------------------------------------------

    def admit(self, call: Call) -> None:
        """Begin a call as soon as the loop runs and its tool's `max_running` allows. Raises Overloaded."""
        if self.in_flight >= self.max_in_flight:
            raise Overloaded(
                f"Server busy: {self.in_flight} calls are in flight", {"maxInFlight": self.max_in_flight}
            )
        self.in_flight += 1
        limit = call.plan.tool.max_running
        if limit is not None:
            running = self._running.get(call.plan.name, 0)
            if running >= limit:
                self._queues.setdefault(call.plan.name, []).append(call)
                return
            self._running[call.plan.name] = running + 1
        call.dispatcher.connection.call_in_loop(call.start)

    def release(self, call: Call) -> None:
        """A call's function has ended: its place goes to the next that waits for one."""
        self.in_flight -= 1
        name = call.plan.name
        if call.plan.tool.max_running is None:
            return
        queue = self._queues.get(name)
        if queue:
            following = queue.pop(0)
            following.dispatcher.connection.call_in_loop(following.start)
        else:
            self._running[name] -= 1

    def withdraw(self, call: Call) -> None:
        """A call has been cancelled before it began: if it waits for a place, it does so no longer."""
        queue = self._queues.get(call.plan.name)
        if queue and call in queue:
            queue.remove(call)
            self.in_flight -= 1

    # --- tools ----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the tools that were to be loaded late, if that has not been done."""
        if self._load is not None:
            load, self._load = self._load, None
            load()

    @property
    def plans(self) -> dict[str, Plan]:
        """The call plan of each tool, by name."""
        if self._plans is None:
            self.load()
            self._plans = {tool.name: plan_of(tool) for tool in self.registry}
        return self._plans

    @property
    def workers(self) -> Workers:
        if self._workers is None:
            from fastrpc.workers import Workers

            self._workers = Workers(self.threads)
        return self._workers

    def leave_threads_behind(self) -> None:
        """End the process here if a tool still runs on a thread: the interpreter's own end would wait
        for it, or abort where it holds a lock that the end wants."""
        if self._workers is not None and self._workers.busy:
            self._workers.leave()

    def needs_loop(self) -> bool:
        """Whether some tool cannot be called without an event loop, as things stand."""
        return any(plan.tool.is_async or not plan.inline for plan in self.plans.values())

    def tool_list(self, version: str, cursor: str | None) -> bytes:
        """Return the result of ``tools/list``, as JSON. Raises InvalidParams for a strange cursor."""
        self.load()
        if cursor is None:
            ready = self._lists.get(version)
            if ready is None:
                ready = self._lists[version] = self._page(version, 0)
            return ready
        return self._page(version, self._start_of(cursor))

    def _start_of(self, cursor: str) -> int:
        """The position behind the tool that a cursor names; stable when other tools come or go."""
        last = decode_cursor(cursor)
        names = [tool.name for tool in self.registry]
        if last not in names:
            raise InvalidParams("cursor: not one of this list's")
        return names.index(last) + 1

    def _page(self, version: str, start: int) -> bytes:
        tools = list(self.registry)
        page = tools[start : start + self.page_size]
        result: dict[str, Any] = {"tools": [tool.descriptor(version) for tool in page]}
        if start + self.page_size < len(tools):
            result["nextCursor"] = encode_cursor(page[-1].name)
        if version == MODERN:
            result |= {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
        return dumps(result)[:-1] + self.results.ending(version)


def plan_of(tool: Tool) -> Plan:
    """Make the call plan of a tool: may the compiled binder serve it, and where does it run?"""
    signature = tool.signature
    parameters = None
    if (
        signature.vectorizable
        and signature.context_parameter is None
        and not tool.is_async
        and all(parameter.kind in BINDABLE for parameter in signature.parameters)
    ):
        parameters = [
            (
                parameter.name,
                parameter.kind,
                REQUIRED if parameter.required else parameter.default,
                parameter.nullable,
            )
            for parameter in signature.parameters
        ]
    # A time limit cannot be kept, nor a bound on running calls be needed, on the loop's own thread.
    judged = tool.run == "auto" and tool.timeout_seconds is None
    return Plan(
        tool,
        tool.name,
        tool.function,
        parameters,
        inline=tool.run == "inline",
        judged=judged,
        form=form_of(signature) if keeps_plain_values(signature) else -1,
    )


def encode_cursor(name: str) -> str:
    """Return a cursor that names the last entry of a page."""
    from binascii import b2a_base64

    return b2a_base64(b"after:" + name.encode(), newline=False).decode("ascii")


def decode_cursor(cursor: str) -> str:
    """Return the name in a cursor. Raises InvalidParams."""
    from binascii import Error, a2b_base64

    try:
        text = a2b_base64(cursor.encode("ascii")).decode()
    except (Error, ValueError):
        raise InvalidParams("cursor: unreadable") from None
    if not text.startswith("after:"):
        raise InvalidParams("cursor: unreadable")
    return text[6:]
