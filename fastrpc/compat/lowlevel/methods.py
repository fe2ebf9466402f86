"""Has the engine call the handlers of a low-level server: one for each method, instead of one for each tool.

The methods themselves are `fastrpc.compat.lowlevel.own_methods`. Lists are not kept: the handler is called
for each request. A tool that has been listed is registered as a `ListedTool`, whose calls compiled code
begins; lists are compared by value, so that nothing is planned anew while they stay the same. A tool that is
not listed takes the longer way.
"""

from __future__ import annotations

from fastrpc import methods
from fastrpc.compat.lowlevel.own_methods import OwnMethods, ParamsSignature, current
from fastrpc.compat.lowlevel.schema import SchemaCheck
from fastrpc.compat.lowlevel.values import (
    call_result,
    error_of,
    is_url_elicitation,
    tool_result,
    wire_result,
)
from fastrpc.compat.sdk2.cache_hints import caching
from fastrpc.definitions.handler import Handler
from fastrpc.definitions.tool import Tool
from fastrpc.engine.list_pages import ListPages
from fastrpc.engine.runtime import Runtime, made_once
from fastrpc.engine.visibility import ServerDescription
from fastrpc.errors import InvalidParams, ToolError
from fastrpc.methods import Method
from fastrpc.protocol.versions import VERSIONS, known
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc.context import Context
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.schema import Signature

# -------------------------------------------------------------------------------------------- tools


class ListedTool(Tool):
    """A tool that the server's handler has listed. `raw` is its descriptor."""

    __slots__ = ("checks", "raw")

    def __init__(self, function: Callable[..., Any], raw: dict[str, Any], checks: ToolChecks) -> None:
        Handler.__init__(self, function, name=raw["name"])
        self.raw = raw
        self.checks = checks
        self.title = raw.get("title")
        self.description = raw.get("description")
        self.icons = raw.get("icons")
        self.meta = raw.get("_meta")
        self.style = PLAIN
        self.effect = self.risk = self.task = None
        hints: Any = raw.get("annotations") or {}
        self.annotations = hints
        self._input_schema, self._documents = raw.get("inputSchema"), None
        self._schema_extra, self._structured = None, False

    def describe(self) -> Signature:
        signature = ParamsSignature(self._input_schema or {})
        signature.check = self.checks.input_problem
        signature.vectorizable = True
        return signature

    def descriptor(self, version: str) -> dict[str, Any]:
        return known("Tool", self.raw, version)


class ToolChecks:
    """The validation of a tool's arguments and structured results, by its descriptor."""

    __slots__ = ("_input", "output")

    def __init__(self, raw: dict[str, Any], validates: bool) -> None:
        self._input = SchemaCheck(raw.get("inputSchema")) if validates else None
        schema = raw.get("outputSchema")
        self.output = SchemaCheck(schema) if schema is not None else None

    @property
    def input_problem(self) -> Callable[[dict[str, Any]], str | None] | None:
        """A function that returns what is wrong with arguments; None: they are not validated."""
        check = self._input
        if check is None:
            return None

        def problem_of(arguments: dict[str, Any]) -> str | None:
            try:
                problem = check.problem(arguments)
            except Exception as error:  # the schema itself is invalid
                return str(error)
            return None if problem is None else f"Input validation error: {problem}"

        return problem_of


class ToolCalls:
    """Calls the handler of ``tools/call``, for any tool.

    With `takes_arguments` the handler takes name and arguments, as that of ``@server.call_tool()``; otherwise
    the params of the request, and returns a whole result. `validates`: arguments are validated.
    """

    def __init__(
        self, handler: Callable[..., Awaitable[Any]], *, takes_arguments: bool, validates: bool
    ) -> None:
        self.handler = handler
        self.takes_arguments = takes_arguments
        self.validates = validates and takes_arguments

    def tool(self, raw: dict[str, Any]) -> ListedTool:
        """Return the tool for a descriptor."""
        checks = ToolChecks(raw, self.validates)
        call = (
            self._with_arguments(raw["name"], checks)
            if self.takes_arguments
            else self._with_params(raw["name"])
        )
        return ListedTool(call, raw, checks)

    def unlisted(self, name: str, find: Callable[[], Awaitable[dict[str, Any] | None]]) -> ListedTool:
        """Return a tool for one call of a name that has not been listed; `find` looks for its descriptor."""
        if not self.takes_arguments:
            return self.tool({"name": name})

        async def call(arguments: dict[str, Any], context: Context) -> Any:
            current.set(context)
            try:
                raw = await find()
            except Exception as error:
                raise ToolError(str(error)) from error
            checks = ToolChecks(raw or {}, self.validates and raw is not None)
            problem_of = checks.input_problem
            problem = None if problem_of is None else problem_of(arguments)
            if problem is not None:
                raise ToolError(problem)
            return await self._with_arguments(name, checks)(arguments, context)

        return ListedTool(call, {"name": name}, ToolChecks({}, False))

    async def serve(
        self, params: dict[str, Any], find: Callable[[str], Awaitable[dict[str, Any] | None]]
    ) -> dict[str, Any]:
        """Return the result for the params of a request, in its wire format: for handlers that call this one.
        Raises ProtocolError."""
        if not self.takes_arguments:
            result: dict[str, Any] = await self.handler(params)
            return result
        name = params["name"]
        tool = self.unlisted(name, lambda: find(name))
        try:
            return wire_result(await tool.function(params.get("arguments") or {}, current.get()))
        except ToolError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}

    def _with_arguments(
        self, name: str, checks: ToolChecks
    ) -> Callable[[dict[str, Any], Context], Awaitable[Any]]:
        handler, output = self.handler, checks.output

        async def call(arguments: dict[str, Any], context: Context) -> Any:
            current.set(context)
            try:
                return tool_result(await handler(name, arguments), output)
            except ToolError:
                raise
            except Exception as error:
                if is_url_elicitation(error):
                    raise error_of(error, context.protocol_version) from error
                raise ToolError(str(error)) from error

        return call

    def _with_params(self, name: str) -> Callable[[dict[str, Any], Context], Awaitable[Any]]:
        handler = self.handler

        async def call(arguments: dict[str, Any], context: Context) -> Any:
            current.set(context)
            channel: Any = context._channel
            params: dict[str, Any] = {**channel.request.params, "name": name, "arguments": arguments}
            try:
                return call_result(await handler(params))
            except Exception as error:
                raise error_of(error, context.protocol_version) from error

        return call


# ------------------------------------------------------------------------------------- for the engine


_NEEDS = {
    "tools/list": "has_tools",
    "tools/call": "has_tools",
    "resources/templates/list": "has_templates",
    "resources/subscribe": "has_subscriptions",
    "resources/unsubscribe": "has_subscriptions",
    "logging/setLevel": "has_logging",
}
"""What a server without a handler must have for some methods, a property of `LowLevelRuntime`."""


class LowLevelFeatures(OwnMethods):
    """The table of methods of one low-level server."""

    def __init__(self) -> None:
        super().__init__()
        for name, property_name in _NEEDS.items():
            default = self.METHODS[name]
            self.METHODS[name] = Method(default.versions, default.serve, property_name)

    def take_request_state(self, request: Request) -> None:
        """Take what a client brings to a repeated request. A state that is not fastrpc's may be the handler's
        own, which looks at it itself."""
        try:
            methods.take_request_state(request)
        except InvalidParams:
            responses = request.params.get("inputResponses", {})
            if not isinstance(responses, dict) or not isinstance(request.params.get("requestState"), str):
                raise
            from fastrpc.client_requests.request_state import Memory

            request.asking = Memory()
            request.asking.responses = responses

    def handle_calls(self, calls: ToolCalls, find: Callable[[str], Awaitable[dict[str, Any] | None]]) -> None:
        """Have calls of tools served; `find` returns the descriptor of a tool that is not listed yet."""

        def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
            return _call_tool(dispatcher, request, calls, find)

        self.METHODS["tools/call"] = Method(VERSIONS, serve)


def _call_tool(
    dispatcher: Dispatcher,
    request: Request,
    calls: ToolCalls,
    find: Callable[[str], Awaitable[dict[str, Any] | None]],
) -> bytes | None:
    """Call a tool that compiled code has not called: of the first calls, or one that is not listed."""
    runtime = dispatcher.runtime
    name = request.params.get("name")
    plans = dispatcher.take_plans()
    if request.params.get("arguments") is None:
        request.params = {**request.params, "arguments": {}}
    if isinstance(name, str) and name in plans:
        return methods.METHODS["tools/call"].serve(dispatcher, request)
    if not isinstance(name, str):
        raise InvalidParams("name: expected a string" if "name" in request.params else "name: missing")
    arguments = request.params["arguments"]
    if not isinstance(arguments, dict):
        raise InvalidParams("arguments: expected an object")
    plan: Plan = runtime.plans.of_tool(calls.unlisted(name, lambda: find(name)))
    return dispatcher.begin(request, plan, [arguments])


class HintedPages(ListPages):
    """The pages of a low-level server's own lists, with the hints of its `cache_hints`."""

    def caching(self, version: str, what: str = "") -> dict[str, Any]:
        return caching(self.server.hints, version, what)


class LowLevelDescription(ServerDescription):
    """What a low-level server declares follows from its handlers."""

    def capabilities(self, version: str) -> dict[str, Any]:
        declared: dict[str, Any] = self._state.server.declared_capabilities()
        found = {"extensions": self.extensions, **declared}
        return known("ServerCapabilities", found, version)

    @property
    def has_tools(self) -> bool:
        """Whether tools were added to the server itself, besides its handlers."""
        return any(not isinstance(tool, ListedTool) for tool in self._state.registries.tools)

    @property
    def has_templates(self) -> bool:
        """The same for templates."""
        return len(self._state.registries.templates) > 0

    @property
    def has_subscriptions(self) -> bool:
        """Whether clients may subscribe without a handler for it: to resources that were added."""
        return self.has_resources

    @property
    def has_logging(self) -> bool:
        """Whether clients may set a level, without a handler for it: for messages of such tools."""
        return self.has_tools


class ListedToolsRuntime(Runtime):
    """The runtime of a server whose tools are registered as its author's own list has them."""

    server: Any

    def replace_tools(self, gone: list[str], new: list[ListedTool]) -> None:
        """Register other tools. No client is notified: that is up to the author's server, or one of them has
        asked for the list."""
        self.loading = True
        try:
            self.registries.tools.replace(gone, new)
        finally:
            self.loading = False


class LowLevelRuntime(ListedToolsRuntime):
    """The runtime of a low-level server."""

    description_type = LowLevelDescription

    @made_once
    def pages(self) -> ListPages:
        return HintedPages(self.server, self.filters, self.results)
