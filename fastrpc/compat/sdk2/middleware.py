"""Middleware of the official SDK 2.x: ``async def middleware(ctx, call_next)`` around each message.

As there, it sees requests and results as JSON objects: each costs their parsing, twice. A result that it
returns as it was goes on unchanged. `ctx` has the method and the params, which ``dataclasses.replace`` may
change for the inner middleware and the handler. It is called for calls, lists, the handshake, streams of
changes, and the methods that a low-level server handles; not for ping, completion and unknown methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from json import loads
from types import SimpleNamespace

from fastrpc.compat.calls.typed_content import ReplacedResult
from fastrpc.compat.errors import McpError
from fastrpc.compat.interception.calls import CALL_OF, KINDS
from fastrpc.compat.interception.listed import ListedComponent, component_of
from fastrpc.compat.lowlevel.context import NotificationContext, RequestContext
from fastrpc.compat.lowlevel.own_methods import current
from fastrpc.compat.lowlevel.values import HandlerError, WholeResult, error_of, result_of
from fastrpc.compat.models import typed
from fastrpc.content import Block, Contents
from fastrpc.definitions.prompt import Message
from fastrpc.errors import FAILURES, ProtocolError
from fastrpc.json_encoding import to_json
from fastrpc.methods import METHODS, Method
from fastrpc.protocol.versions import SERVER_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.engine.wrappers import WrappedCall

    Next = Callable[[Any], Awaitable[Any]]

HANDSHAKES = ("initialize", "server/discover")


@dataclass
class MessageContext:
    """The ``ctx`` of a middleware."""

    session: Any
    lifespan_context: Any
    protocol_version: str
    method: str
    params: Any
    request_id: Any = None
    meta: Any = None
    request: Any = None
    close_sse_stream: Any = None
    close_standalone_sse_stream: Any = None

    @classmethod
    def of(cls, context: Any) -> MessageContext:
        """Return one with the attributes of a request's, or a notification's, context."""
        names = cls.__dataclass_fields__
        return cls(**{name: getattr(context, name) for name in names})


async def around(middleware: Sequence[Any], context: MessageContext, inner: Next) -> Any:
    """Return what the middleware, the outermost first, makes of the result of `inner`. Raises HandlerError in
    the place of an error with a code."""
    call = inner
    for each in reversed(middleware):
        call = partial(_called, each, call)
    try:
        return await call(context)
    except ProtocolError:
        raise
    except Exception as error:
        code = getattr(getattr(error, "error", None), "code", None)
        if isinstance(code, int):
            raise error_of(error, context.protocol_version) from error
        raise


async def _called(middleware: Any, call_next: Next, context: Any) -> Any:
    return await middleware(context, call_next)


def _raised(error: ProtocolError) -> McpError:
    """Return the error that middleware sees in the place of one of the protocol."""
    return McpError(error.code, str(error), error.data)


class WireChain:
    """What `fastrpc.engine.wrappers` calls: the middleware of a server, and within it what extensions have
    around calls of tools."""

    declares_everything = False
    """Whether there may be resources and prompts that no registry has."""

    def __init__(self, server: Any, middleware: Sequence[Any], interceptors: Sequence[Any]) -> None:
        self.server = server
        self._middleware = middleware
        self._interceptors = interceptors

    def wraps_calls(self, method: str) -> bool:
        return bool(self._middleware) or (method == "tools/call" and bool(self._interceptors))

    def wraps_requests(self, method: str) -> bool:
        if method in CALL_OF:
            return self.wraps_calls(method)
        known = METHODS.get(method)
        wrappable = method in HANDSHAKES or (known is not None and known.entries is not None)
        return wrappable and bool(self._middleware)

    def wraps_notifications(self) -> bool:
        return bool(self._middleware)

    def of_host(self, server: Any) -> WireChain:
        return WireChain(server, (), ())

    async def notification(self, dispatcher: Any, method: str, params: dict[str, Any]) -> None:
        async def end(context: Any) -> None:
            return None

        context = NotificationContext(dispatcher, method, params, self.server)
        await around(self._middleware, MessageContext.of(context), end)

    # --- calls ----------------------------------------------------------------------------------------

    async def call(self, call: CallInfo, within: WrappedCall) -> Any:
        """Return the value of a call."""
        return await self._run(KINDS[call.kind](self.server, call, within), call)

    async def request(self, request: Request, call: CallInfo, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a request that is no wrapped call is answered with."""
        kind = CALL_OF.get(request.method)
        if kind is not None:
            return await self._run(kind(self.server, call, None, request, proceed), call)
        if request.method in HANDSHAKES:
            return await self._handshake(call, proceed)
        return await self._list(request, call, proceed)

    async def _run(self, seen: Any, call: CallInfo) -> Any:
        """Call the middleware around a call; return the value that goes on."""
        run = _Run(self.server, seen, call)
        inner = run.end
        for extension in reversed(self._interceptors if seen.kind == "tool" else ()):
            inner = partial(run.intercepted, extension, inner)
        current.set(call.context)
        context = MessageContext.of(RequestContext(call.context, self.server))
        context.params = {name: value for name, value in context.params.items() if name != "_meta"}
        return run.value_of(await around(self._middleware, context, inner))

    async def _handshake(self, call: CallInfo, proceed: Callable[[], Awaitable[Any]]) -> bytes:
        async def end(context: Any) -> Any:
            return loads(await proceed())

        context = MessageContext.of(RequestContext(call.context, self.server))
        return to_json(result_of(await around(self._middleware, context, end)))

    async def _list(
        self, request: Request, call: CallInfo, proceed: Callable[[], Awaitable[Any]]
    ) -> list[ListedComponent]:
        member = METHODS[request.method].member

        async def end(context: Any) -> Any:
            return {member: [dict(each.descriptor(request.version)) for each in await proceed()]}

        context = MessageContext.of(RequestContext(call.context, self.server))
        found = result_of(await around(self._middleware, context, end))
        return [component_of(ListedComponent(raw), request.version) for raw in found.get(member, ())]


class HandshakeChain(WireChain):
    """The same for a low-level server, whose handlers call the middleware themselves: it is called here for
    the handshake and for notifications."""

    def wraps_calls(self, method: str) -> bool:
        return False

    def wraps_requests(self, method: str) -> bool:
        return method in HANDSHAKES and bool(self._middleware)


class _Run:
    """One call within the middleware: its result as JSON, and as an object."""

    def __init__(self, server: Any, seen: Any, call: CallInfo) -> None:
        self._server = server
        self._seen = seen
        self._request: Any = call.context._reach().request
        self._raw: dict[str, Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None

    async def end(self, context: Any) -> Any:
        """Make the call that the context asks for; return its result. Raises McpError."""
        seen, features = self._seen, self._server.runtime.features
        encoder = features.encoder_of(seen.method)
        handler = None if seen.within is None else seen.within.handler
        try:
            result = await seen.end(SimpleNamespace(message=self._message(context.params or {})))
            self._value = result.value
            encoded = encoder.encode(self._request, handler, self._value)
        except ProtocolError as error:
            raise _raised(error) from error
        except FAILURES as error:
            self._error = error
            try:
                encoded = encoder.failure(self._request, handler, error)
            except ProtocolError as refused:
                raise _raised(refused) from refused
        self._raw = loads(encoded)
        return loads(encoded)

    def _message(self, params: dict[str, Any]) -> Any:
        """Return the message that the call is to follow."""
        message = SimpleNamespace(**{self._seen.target: params.get(self._seen.target)})
        message.arguments = params.get("arguments")
        given = self._request.params.get("arguments")
        message.are_arguments_untouched = message.arguments == given
        return message

    async def intercepted(self, extension: Any, call_next: Next, context: Any) -> Any:
        """Return the result of a call, or what an extension makes of it."""
        result: Any = None

        async def typed_next(inner: Any) -> Any:
            nonlocal result
            raw = await call_next(inner)
            result = typed("CallToolResult", raw) if raw.get("resultType", "complete") == "complete" else raw
            return result

        params = typed("CallToolRequestParams", context.params)
        found = await extension.intercept_tool_call(params, context, typed_next)
        return self._raw if found is result and result is not None else result_of(found)

    def value_of(self, found: Any) -> Any:
        """Return the value that makes the result `found`. Raises what the call has raised, if its result goes
        on as it was."""
        raw = result_of(found)
        if raw == self._raw:
            if self._error is not None:
                raise self._error
            return self._value
        if self._seen.kind == "resource":
            return [Contents.received(part) for part in raw.get("contents", ())]
        if self._seen.kind == "prompt":
            return [Message(each["role"], Block(each["content"])) for each in raw.get("messages", ())]
        if raw.get("resultType", "complete") != "complete":
            return WholeResult(raw)
        meta = {name: value for name, value in raw.get("_meta", {}).items() if name != SERVER_KEY}
        return ReplacedResult(
            [Block(block) for block in raw.get("content", ())],
            raw.get("structuredContent"),
            meta,
            bool(raw.get("isError")),
        )


# --- streams ------------------------------------------------------------------------------------------


def gated_streams(method: Method, server: Any) -> Method:
    """Return subscriptions/listen, begun within the middleware of a server: it may refuse."""
    passed: dict[int, BaseException | None] = {}

    def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
        if id(request) in passed:
            refusal = passed.pop(id(request))
            if refusal is not None:
                raise refusal
            return method.serve(dispatcher, request)
        dispatcher.connection.call_in_loop(partial(begin, dispatcher, request))
        return None

    def begin(dispatcher: Dispatcher, request: Request) -> None:
        import asyncio

        task = asyncio.ensure_future(check(dispatcher, request))
        dispatcher.requests.defer(request, task)
        task.add_done_callback(partial(decided, dispatcher, request))

    async def check(dispatcher: Dispatcher, request: Request) -> None:
        async def end(context: Any) -> dict[str, Any]:
            return {}

        context = NotificationContext(dispatcher, request.method, request.params, server)
        await around(server.middleware, MessageContext.of(context), end)

    def decided(dispatcher: Dispatcher, request: Request, task: Any) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, ProtocolError):
            error = HandlerError(0, str(error))
        passed[id(request)] = error
        dispatcher.resume(request)

    return Method(method.versions, serve, method.needs, method.member, method.entries)
