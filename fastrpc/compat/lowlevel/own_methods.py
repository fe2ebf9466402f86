"""Methods that a compat server answers itself, beside or instead of those of `fastrpc.methods`.

Each becomes a `MethodHandler` of the engine, called with the params of the request; so guards, cancellation,
the bound on calls in flight, all protocol versions and HTTP work as for any other handler.
"""

from __future__ import annotations

from contextvars import ContextVar

from fastrpc import methods, tracebacks
from fastrpc.compat.lowlevel.values import error_of
from fastrpc.compat.models import typed
from fastrpc.content import Block, block_of
from fastrpc.definitions.handler import Handler
from fastrpc.errors import ArgumentError, CallRefused, InvalidParams, ToolError
from fastrpc.json_encoding import to_json
from fastrpc.methods import Method
from fastrpc.protocol.uri_template import normal
from fastrpc.protocol.versions import SERVER_KEY, STATELESS, VERSIONS, known
from fastrpc.schema import Parameter, Signature
from fastrpc.schema.converters import ANY
from fastrpc.schema.passed_signature import PassedSignature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any

    from fastrpc.context import Context
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request

    Handle = Callable[[dict[str, Any]], Awaitable[Any]]
    """A handler of a method: it is called with the params of the request, and returns the result."""

current: ContextVar[Context] = ContextVar("fastrpc_lowlevel_call")
"""The context of the running call, for `Server.request_context`."""

LISTS = {
    "tools/list": ("tools", "Tool"),
    "resources/list": ("resources", "Resource"),
    "resources/templates/list": ("resourceTemplates", "ResourceTemplate"),
    "prompts/list": ("prompts", "Prompt"),
}
"""The member of a list's result that has the entries, and what these are."""

KINDS = {"resources/read": "resource", "prompts/get": "prompt"}
"""The methods before which guards are called, besides calls of tools."""

SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")


class ParamsSignature(PassedSignature):
    """Hands all arguments over as one dict, and the Context after it."""

    __slots__ = ("check",)

    check: Callable[[dict[str, Any]], str | None] | None
    """Returns what is wrong with the arguments."""
    binds_whole = True
    changed = Signature.changed

    def __init__(self, input_schema: dict[str, Any]) -> None:
        super().__init__([Parameter("arguments", ANY, {})], input_schema)
        self.context_index = self.positional_count = 1
        self.takes_others = False
        self.check = None

    @property
    def binder(self) -> Callable[[dict[str, Any]], list[Any] | str]:
        check = self.check
        if check is None:
            return lambda arguments: [arguments]
        return lambda arguments: check(arguments) or [arguments]

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        problem = None if self.check is None else self.check(arguments)
        if problem is not None:
            raise ArgumentError(problem)
        return [arguments]

    def call(self, function: Callable[..., Any], values: Any, context: object = None) -> Any:
        (arguments,) = values
        return function(arguments, context)


class MethodHandler(Handler):
    """The handler of one method."""

    __slots__ = ("kind", "method")

    kind: str

    def __init__(self, method: str, handle: Handle) -> None:
        async def call(params: dict[str, Any], context: Context) -> Any:
            current.set(context)
            result = await handle(params)
            if method in SUBSCRIPTIONS:
                _note_subscription(context, method, params)
            return result

        super().__init__(call, name=method)
        self.method = method
        self.kind = KINDS.get(method, "completion")

    def describe(self) -> Signature:
        return ParamsSignature({})


def _note_subscription(context: Context, method: str, params: dict[str, Any]) -> None:
    """Remember a subscription for `Server.resource_updated`."""
    channel: Any = context._channel
    session, uri = channel.request.dispatcher.session, normal(params["uri"])
    if method == "resources/subscribe":
        session.subscribe(uri)
    else:
        session.unsubscribe(uri)


class MethodEncoder:
    """Encodes the result of a method that is no call of a tool, in the form of the request's version."""

    is_text = False

    @staticmethod
    def encode(request: Request, handler: Handler, value: dict[str, Any]) -> bytes:
        runtime: Any = request.dispatcher.runtime
        version, result = request.version, dict(value)
        meta = result.pop("_meta", None)
        kind_of_result = result.pop("resultType", None)
        if version == STATELESS and kind_of_result not in (None, "complete"):
            described = {**(meta or {}), SERVER_KEY: runtime.description.info_of(version)}
            return to_json({**result, "resultType": kind_of_result, "_meta": described})
        if request.method in LISTS:
            member, kind = LISTS[request.method]
            result[member] = [_entry(kind, entry, version) for entry in result.get(member) or ()]
            result = {**runtime.pages.caching(version, member), **result}
        elif request.method == "prompts/get":
            result["messages"] = [_message(each, version) for each in result.get("messages") or ()]
        elif request.method == "resources/read":
            contents = result.get("contents") or ()
            result["contents"] = [known("ResourceContents", part, version) for part in contents]
            result = {**runtime.pages.caching(version, "contents"), **result}
        if version != STATELESS:
            result.pop("ttlMs", None)
            result.pop("cacheScope", None)
        return _closed(result, runtime.results.ending(version, meta))

    @staticmethod
    def failure(request: Request, handler: Handler, error: BaseException) -> bytes:
        if request.outcome == "refused" and isinstance(error, ToolError):
            raise CallRefused(str(error), legacy=request.version != STATELESS)
        if isinstance(error, Exception):
            raise error_of(error, request.version)
        raise error


def _closed(result: dict[str, Any], ending: bytes) -> bytes:
    """Return the JSON of a result with the members that its version ends with."""
    return to_json(result)[:-1] + (ending if result else ending.lstrip(b","))


def _entry(kind: str, entry: dict[str, Any], version: str) -> dict[str, Any]:
    found = known(kind, entry, version)
    if kind != "Tool" and found.get("annotations"):
        found["annotations"] = known("Annotations", found["annotations"], version)
    if found.get("arguments"):
        found["arguments"] = [known("PromptArgument", each, version) for each in found["arguments"]]
    return found


def _message(message: dict[str, Any], version: str) -> dict[str, Any]:
    return {**message, "content": block_of(Block(message["content"]), version)}


class OwnMethods:
    """The table of methods of one server: those of `fastrpc.methods`, and its own handlers."""

    def __init__(self) -> None:
        self.METHODS = dict(methods.METHODS)
        self.NOTIFICATIONS = dict(methods.NOTIFICATIONS)

    def __getattr__(self, name: str) -> Any:
        return getattr(methods, name)

    def handle(self, method: str, handle: Handle, versions: Iterable[str] | None = None) -> None:
        """Have a function serve a method, in the versions that have it, or in these."""
        handler = MethodHandler(method, handle)
        before = methods.METHODS.get(method)
        served = VERSIONS if before is None else before.versions

        def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
            plan = dispatcher.runtime.plans.of_handler(handler, MethodEncoder)
            return dispatcher.begin(request, plan, [request.params])

        self.METHODS[method] = Method(served if versions is None else tuple(versions), serve)

    def handle_notification(self, method: str, handle: Callable[..., Awaitable[None]]) -> None:
        """Have a function take a notification, in a separate task; its exceptions are logged."""
        before = methods.NOTIFICATIONS.get(method)
        tasks: set[Any] = set()

        def take(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
            if before is not None:
                before(dispatcher, params)
            dispatcher.connection.call_in_loop(lambda: begin(dispatcher, params))

        def begin(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
            import asyncio

            task = asyncio.ensure_future(taken(dispatcher, params))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async def taken(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
            try:
                await handle(params, dispatcher)
            except Exception as error:
                tracebacks.report(f"the handler of {method} failed", error)

        self.NOTIFICATIONS[method] = take


def meta_of(context: Context) -> dict[str, Any]:
    """Return the ``_meta`` of a call's request."""
    channel = context._channel
    return {} if channel is None else channel.request.meta


def params_of(model: Any, params: dict[str, Any]) -> Any:
    """Return the params of a request as a model: a class, or the name of one of ``mcp.types``. Raises
    InvalidParams."""
    try:
        if isinstance(model, str):
            return typed(model, params)
        return model.model_validate(params)
    except ValueError as error:
        raise InvalidParams(f"Invalid request parameters: {_first_problem(error)}") from None


def _first_problem(error: Any) -> str:
    """Return the first problem of pydantic's ValidationError; the text of any other error."""
    first = next(iter(error.errors()), None) if hasattr(error, "errors") else None
    if first is None:
        return str(error)
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
