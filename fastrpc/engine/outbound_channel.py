"""What a running call sends to its client besides its result: progress, log messages, requests.

A `Context` hands everything on to its `RequestChannel`, which knows the request, its version and what its
client can do. May be used from the call's own thread as well as from the loop's; nothing is sent once the
call is over. Costs nothing to a handler that takes no Context.
"""

from __future__ import annotations

from _thread import RLock
from time import monotonic

from fastrpc.context import Context, undeclared
from fastrpc.engine.messages import ENDED, RUNNING, id_value, notification
from fastrpc.protocol.versions import PROGRESS_MESSAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.engine.ports import Features, TaskOfCall
    from fastrpc.engine.request import Request

SPACING_SECONDS = 1 / 15
BURST = 5
"""A call's first few progress reports go at once, then there is room between them: with these two at most
20 in any second. The last one is always sent."""

_bookkeeping = RLock()  # of all channels: held for a few instructions


class RequestChannel:
    """The outbound channel of one call: see `fastrpc.engine.ports.OutboundChannel`."""

    __slots__ = (
        *("_due", "_held", "_paid_until", "_reached", "_spent", "_told"),
        *("reported", "request", "server", "token"),
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        self.token = request.progress_token
        call = request.call
        runtime = request.dispatcher.runtime
        self.server: Any = runtime.server if call is None else runtime.server_of(call.plan.tool)
        """The server that the handler belongs to: the one that is served, or one that is mounted there."""
        self.reported: dict[str, Any] | None = None
        """The last progress report: ``progress``, ``total`` and ``message``, as far as it has them."""
        self._reached: float | None = None
        self._told: float | None = None
        self._paid_until = 0.0  # each report that is sent takes its time from here
        self._held: dict[str, Any] | None = None
        self._due = False
        self._spent: dict[str, float] | None = None

    @property
    def state(self) -> Any:
        """What the lifespan gave, of the server that the handler belongs to."""
        return self.server.runtime.state

    @property
    def principal(self) -> str:
        """The authenticated principal of the request."""
        return self.request.dispatcher.principal

    @property
    def caller(self) -> Caller:
        """Whoever has this principal, as the guard of the served server knows them."""
        caller_of = self.request.dispatcher.runtime.caller_of
        if caller_of is not None:
            return caller_of(self.principal)
        from fastrpc.callers import unguarded

        return unguarded(self.principal)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the client can do."""
        return self.request.client_capabilities

    @property
    def task(self) -> TaskOfCall | None:
        """The task that the call is or may become."""
        return self.request.dispatcher.call_task

    # --- progress -------------------------------------------------------------------------------------

    def progress(self, report: dict[str, Any]) -> None:
        """Send a progress report, or hold it back where there have been many; the last one always goes.

        Raises TypeError and ValueError for what is no number.
        """
        if self.token is None:
            return
        for name in ("progress", "total"):
            if name in report:
                report[name] = number_of(name, report[name])
        with _bookkeeping:
            if self._reached is not None and report["progress"] <= self._reached:
                return
            self._reached = report["progress"]
            self.reported = report
            now = monotonic()
            wait = max(self._paid_until, now - BURST * SPACING_SECONDS) + SPACING_SECONDS - now
            if wait > 0:
                self._held = report
                due, self._due = self._due, True
            else:
                self._held = None
                self._paid_until = now + wait
        if wait <= 0:
            self._report(report)
        elif not due:
            dispatcher = self.request.dispatcher
            loop = dispatcher.connection.loop
            if loop is not None:  # without one the call runs inline: its end is near, and sends the last
                dispatcher.outbound.post(lambda: loop.call_later(wait, self.flush))

    def flush(self) -> None:
        """Send the report that is held back, if there is one."""
        with _bookkeeping:
            report, self._held = self._held, None
            self._due = False
            if report is None:
                return
            now = monotonic()
            self._paid_until = max(self._paid_until, now - BURST * SPACING_SECONDS) + SPACING_SECONDS
        self._report(report)

    def _report(self, report: dict[str, Any]) -> None:
        if "message" in report:
            if self.request.version in PROGRESS_MESSAGES:
                report["message"] = text_of(report["message"])
            else:
                del report["message"]
        params = {"progressToken": self.token, **report}
        line = notification("notifications/progress", params)

        def notify() -> None:
            # Two threads may have come here in either order, and progress must grow on the wire.
            if self._told is None or report["progress"] > self._told:
                self._told = report["progress"]
                self._write(line)

        self.request.dispatcher.outbound.post(notify)

    # --- costs ----------------------------------------------------------------------------------------

    def spend(self, unit: str, amount: float) -> None:
        """Count what the call costs, in the budgets of this server and of that which the tool is mounted
        from; what a tool spends after its call's end, too. Raises ValueError for a unit that it does not
        declare."""
        call, runtime = self.request.call, self.request.dispatcher.runtime
        if call is not None:
            tool = call.plan.tool
            if unit not in (getattr(tool, "costs", None) or ()):
                raise ValueError(undeclared(tool.name, unit))
            way = runtime.mount_path_of(tool)
        else:
            way = [(self.request.target, runtime)]
        with _bookkeeping:
            spent = self._spent = {} if self._spent is None else self._spent
            is_first = unit not in spent
            total = spent[unit] = spent.get(unit, 0) + amount
        for name, each in way:
            for count in each.spending:
                count(self.principal, name, unit, amount, total, is_first and call is not None)

    # --- messages of the call -------------------------------------------------------------------------

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification that belongs to the call, while it runs; from whatever thread."""
        self.send_line(notification(method, params))

    def send_line(self, line: bytes) -> None:
        """Send a message that belongs to the call, as JSON text, while it runs; from whatever thread."""
        self.request.dispatcher.outbound.post(lambda: self._write(line))

    def _write(self, line: bytes) -> None:
        call = self.request.call
        if call is not None and call.state != ENDED:  # it runs, or its guard decides
            self.request.dispatcher.outbound.send_line(line)

    def pause(self) -> None:
        """Have the client come back later for the rest, where it can; from whatever thread."""
        outbound = self.request.dispatcher.outbound

        def pause() -> None:
            call = self.request.call
            if outbound.on_paused is not None and call is not None and call.state == RUNNING:
                outbound.on_paused()

        outbound.post(pause)

    def in_thread(self, function: Callable[[], Any]) -> Awaitable[Any]:
        """Call a function on a worker thread; for what runs in the loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def done(result: Any, error: BaseException | None, nanoseconds: int) -> None:
            if future.done():
                return
            if isinstance(error, StopIteration):
                error = RuntimeError(repr(error))  # a future cannot hold it
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.request.dispatcher.runtime.thread_pool.run(loop, function, done)
        return future

    # --- features -------------------------------------------------------------------------------------

    @property
    def _features(self) -> Features:
        return self.request.dispatcher.runtime.features

    def log(self, level: str, data: Any, logger: str | None, rest: dict[str, Any] | None = None) -> None:
        """Send a log message, if the client has asked for its level; `rest`: other members of its params."""
        self._features.log(self, level, data, logger, rest)

    def ask(self, input_requests: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        """Ask the client; return what it answers, by key. See `fastrpc.client_requests`."""
        return self._features.ask(self, input_requests)

    def once(self, key: str, function: Callable[[], Any]) -> Any:
        """Call `function` the first time that the call comes here; see `Context.once`."""
        return self._features.once(self.request, key, function)

    def read_resource(self, uri: str) -> Awaitable[Any]:
        """Read a resource of this server. See `fastrpc.methods.resources`."""
        return self._features.read_resource(self, uri)


def context_of(request: Request) -> Context:
    """Return what a handler that serves a request is handed.

    Raises InvalidParams for a request state that is not its own: nothing must run on it.
    """
    if "requestState" in request.params or "inputResponses" in request.params:
        request.dispatcher.runtime.features.take_request_state(request)
    context = Context.__new__(Context)
    fill(context, request)
    return context


def fill(context: Context, request: Request) -> None:
    """Fill in the context of a request, with a new channel to its client."""
    request.channel = channel = RequestChannel(request)
    context.fill(id_value(request.id), request.version, request.client_info, channel)


def number_of(name: str, value: Any) -> int | float:
    """Return a number as JSON has them. Raises TypeError and ValueError."""
    kind = type(value)
    if kind is not int and kind is not float:
        if kind is bool or not hasattr(kind, "__float__"):
            raise TypeError(f"{name}: expected a number, got {kind.__name__}")
        value = float(value)  # of another library
    if value - value != 0:
        raise ValueError(f"{name}: expected a finite number, got {value}")
    found: int | float = value
    return found


def text_of(value: Any) -> str:
    """Return a value as a text that UTF-8 can hold."""
    return str(value).encode("utf-8", "backslashreplace").decode()
