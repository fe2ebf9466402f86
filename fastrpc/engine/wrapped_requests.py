"""Requests that a server's wrapper sees and that have no plan: lists, the handshake, notifications, and calls
that are refused before there is a plan, for their name or their arguments.

`serve` makes each a call without a handler, with the `RequestWrapper` (`fastrpc.engine.ports`) around what
would serve the request. A request that is not wrapped costs nothing more.
"""

from __future__ import annotations

from functools import partial

from fastrpc import tracebacks
from fastrpc._core.plan import Plan
from fastrpc.context import Context
from fastrpc.definitions.handler import Handler
from fastrpc.engine.messages import RECORDED
from fastrpc.errors import InternalError, InvalidParams, ProtocolError, ResourceNotFound, ToolError
from fastrpc.protocol.pagination import cursor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.task import CallTask
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.ports import MethodProtocol, RequestWrapper
    from fastrpc.engine.request import Request


class WrappedRequest(Handler):
    """What the call of such a request has as its handler."""

    __slots__ = ("description",)
    kind = "request"
    mime_type = ttl = cache_scope = None

    def __init__(self, method: str) -> None:
        super().__init__(_no_function, name=method)
        self.description: str | None = None


async def _no_function() -> None:
    """The function of such a handler: what is around it serves the request."""


def serve(dispatcher: DispatcherProtocol, request: Request, method: MethodProtocol) -> bytes | None:
    """Serve a request of a server that has a wrapper. Raises ProtocolError."""
    runtime = dispatcher.runtime
    wrapper = runtime.wrapper
    assert wrapper is not None
    if request.method in RECORDED:
        try:
            return method.serve(dispatcher, request)
        except (InvalidParams, ResourceNotFound) as error:
            if not request.target or not wrapper.wraps_calls(request.method):
                raise
            encoder = runtime.features.encoder_of(request.method)
            return _begin(dispatcher, request, partial(_refuse, error), encoder)
    if not wrapper.wraps_requests(request.method):
        return method.serve(dispatcher, request)
    if method.entries is None:
        return _begin(dispatcher, request, partial(_serve_plainly, dispatcher, request, method), PLAIN)
    return _begin(dispatcher, request, partial(method.entries, request), ListEncoder(method.member))


def _begin(
    dispatcher: DispatcherProtocol, request: Request, proceed: Callable[[], Any], encoder: Any
) -> bytes | None:
    """Begin a call that has the wrapper around what would serve the request."""
    wrapper = dispatcher.runtime.wrapper
    assert wrapper is not None

    def around(call: CallInfo) -> Any:
        return wrapper.request(request, call, proceed)

    plan = Plan(
        WrappedRequest(request.method),
        request.method,
        _no_function,
        None,
        inline=False,
        adaptive=False,
        is_async=True,
        context_kind=Context,
        kind="completion",  # of which no record is written
        target=request.method,
        encoder=encoder,
        around=around,
    )
    return dispatcher.begin(request, plan, [])


async def _refuse(error: ProtocolError) -> Any:
    raise error


async def _serve_plainly(
    dispatcher: DispatcherProtocol, request: Request, method: MethodProtocol
) -> bytes | None:
    return method.serve(dispatcher, request)


# --- notifications ----------------------------------------------------------------------------------------


def notify(dispatcher: DispatcherProtocol, method: str, params: dict[str, Any]) -> None:
    """Show the wrapper a notification, in the event loop; it has been handled, and nothing waits."""
    wrapper = dispatcher.runtime.wrapper
    if wrapper is not None and wrapper.wraps_notifications():
        dispatcher.connection.call_in_loop(partial(_show, wrapper, dispatcher, method, params))


def _show(
    wrapper: RequestWrapper, dispatcher: DispatcherProtocol, method: str, params: dict[str, Any]
) -> None:
    import asyncio

    from fastrpc._core.task import task_of

    def shown(task: CallTask) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            tracebacks.report(f"{method}: its wrapper failed", error)

    task_of(wrapper.notification(dispatcher, method, params), asyncio.get_running_loop(), shown).begin()


# --- encoders ---------------------------------------------------------------------------------------------


class PlainEncoder:
    """Passes on the result that a method has made."""

    is_text = False

    def encode(self, request: Request, handler: Handler, value: Any) -> bytes:
        encoded: bytes = value
        return encoded

    @staticmethod
    def failure(request: Request, handler: Handler, error: BaseException) -> bytes:
        """Raise the error for a failed request: there is no result for failures."""
        if isinstance(error, ToolError):
            raise InternalError(str(error))
        tracebacks.report(handler, error)
        raise InternalError(f"{handler.name} failed; see the server's log")


PLAIN = PlainEncoder()


class ListEncoder(PlainEncoder):
    """Makes a page of the entries that a wrapper has returned: objects with `key` and `descriptor`."""

    def __init__(self, member: str) -> None:
        self._member = member

    def encode(self, request: Request, handler: Handler, value: Any) -> bytes:
        cursor = cursor_of(request.params)
        return request.dispatcher.runtime.pages.of_entries(self._member, value, cursor, request.version)
