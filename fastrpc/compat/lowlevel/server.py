"""The low-level `Server` of the official SDK: a server whose handlers answer whole methods.

``@server.list_tools()`` and ``@server.call_tool()`` as in the SDK's 1.x, ``Server(name, on_list_tools=…)`` as
in its 2.x. It is a `fastrpc.Server`, so that ``fastrpc serve``, HTTP, `fastrpc.testing.Client`, guards and
hooks work with it. How the engine calls the handlers is in `fastrpc.compat.lowlevel.methods`; a call of a
tool that has been listed takes the compiled path. Differences are in docs/compat.md.
"""

from __future__ import annotations

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.lowlevel.context import NotificationContext, RequestContext
from fastrpc.compat.lowlevel.handlers import NotificationHandlers, RequestHandlers
from fastrpc.compat.lowlevel.methods import ListedTool, LowLevelFeatures, LowLevelRuntime, ToolCalls
from fastrpc.compat.lowlevel.options import (
    InitializationOptions,
    NoTasks,
    NotificationOptions,
    StandardStream,
)
from fastrpc.compat.lowlevel.own_methods import current, params_of
from fastrpc.compat.lowlevel.values import contents_of, is_result, result_of
from fastrpc.compat.models import typed
from fastrpc.compat.sdk2.cache_hints import members_of
from fastrpc.compat.values import plain
from fastrpc.server import Server as PlainServer
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])
    Decorator = Callable[[Function], Function]

PARAMS = {
    "on_list_tools": ("tools/list", "PaginatedRequestParams"),
    "on_call_tool": ("tools/call", "CallToolRequestParams"),
    "on_list_resources": ("resources/list", "PaginatedRequestParams"),
    "on_list_resource_templates": ("resources/templates/list", "PaginatedRequestParams"),
    "on_read_resource": ("resources/read", "ReadResourceRequestParams"),
    "on_subscribe_resource": ("resources/subscribe", "SubscribeRequestParams"),
    "on_unsubscribe_resource": ("resources/unsubscribe", "UnsubscribeRequestParams"),
    "on_list_prompts": ("prompts/list", "PaginatedRequestParams"),
    "on_get_prompt": ("prompts/get", "GetPromptRequestParams"),
    "on_completion": ("completion/complete", "CompleteRequestParams"),
    "on_set_logging_level": ("logging/setLevel", "SetLevelRequestParams"),
    "on_ping": ("ping", "RequestParams"),
    "on_subscriptions_listen": ("subscriptions/listen", "SubscriptionsListenRequestParams"),
}
"""For each callback of the SDK's 2.x: the method, and the class of its params."""

NOTIFICATIONS = {
    "on_progress": ("notifications/progress", "ProgressNotificationParams"),
    "on_roots_list_changed": ("notifications/roots/list_changed", "NotificationParams"),
}

_DECLARED = {
    "tools/list": "tools",
    "resources/list": "resources",
    "prompts/list": "prompts",
    "logging/setLevel": "logging",
    "completion/complete": "completions",
}
"""The capability of each handler."""


_STATELESS = "fastrpc.compat: run has no stateless=True for streams; serve over HTTP by server.run(http=…)"


class Server(PlainServer):
    """A server that answers methods by handlers; see the module.

    `lifespan` is a function of the server that returns an async context manager. Raises TypeError for unknown
    arguments.
    """

    def __init__(
        self,
        name: str,
        version: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[Any] | None = None,
        lifespan: Any = None,
        *,
        title: str | None = None,
        description: str | None = None,
        cache_hints: Any = None,
        get_tool_input_schema: Any = None,
        **callbacks: Any,
    ) -> None:
        unknown = [
            callback for callback in callbacks if callback not in PARAMS and callback not in NOTIFICATIONS
        ]
        if unknown:
            raise TypeError(f"Server: there is no argument {unknown[0]}")
        self._has_callbacks = bool(callbacks)  # written for the SDK's 2.x, which declares less by itself
        if version is None:
            version = "" if callbacks else __version__
        super().__init__(
            name,
            version=version,
            title=title,
            description=description,
            website_url=website_url,
            icons=icons,
            instructions=instructions,
            lifespan=lifespan,
        )
        self.hints = members_of(cache_hints)
        """The members of cacheable results, by method."""
        self.experimental = NoTasks()
        self._features = LowLevelFeatures()
        self._tool_calls: ToolCalls | None = None
        self._options: InitializationOptions | None = None
        self._middleware: list[Any] | None = None
        self._session_manager: Any = None
        self.handlers: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {}
        """What serves each method: it takes the params, and returns the result in its wire format."""
        self.request_handlers = RequestHandlers(self)
        self.notification_handlers = NotificationHandlers(self)
        listen: Any = callbacks.get("on_subscriptions_listen")
        self._honours_everything = hasattr(listen, "attach")
        """Whether clients may listen for changes of what the server has no handler for."""
        for callback, handler in callbacks.items():
            if self._honours_everything and handler is listen:
                listen.attach(self)
            elif handler is not None:
                method, model = PARAMS.get(callback) or NOTIFICATIONS[callback]
                add = self.add_request_handler if callback in PARAMS else self.add_notification_handler
                add(method, model, handler)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, plain(value) if name == "icons" else value)

    def __class_getitem__(cls, parameters: Any) -> type[Server]:
        return cls

    # --- decorators of the SDK's 1.x ------------------------------------------------------------------

    def list_tools(self) -> Decorator[Any]:
        """Have a function list the tools: it returns a list of Tool, or a ListToolsResult."""
        return self._listing("tools/list", "ListToolsRequest", "tools")

    def list_resources(self) -> Decorator[Any]:
        """Have a function list the resources: it returns a list of Resource, or a ListResourcesResult."""
        return self._listing("resources/list", "ListResourcesRequest", "resources")

    def list_resource_templates(self) -> Decorator[Any]:
        """Have a function list the resource templates: it returns a list of ResourceTemplate."""
        return self._listing("resources/templates/list", "ListResourceTemplatesRequest", "resourceTemplates")

    def list_prompts(self) -> Decorator[Any]:
        """Have a function list the prompts: it returns a list of Prompt, or a ListPromptsResult."""
        return self._listing("prompts/list", "ListPromptsRequest", "prompts")

    def _listing(self, method: str, request_name: str, member: str) -> Decorator[Any]:
        def decorate(function: Any) -> Any:
            call = _caller(function, request_name)

            async def handle(params: dict[str, Any]) -> dict[str, Any]:
                found = await call({"method": method, "params": params})
                whole = not is_result(found, member)
                result = {member: plain(found)} if whole else result_of(found)
                if method == "tools/list":
                    self._remember(result["tools"], whole)
                return result

            self._handle(method, handle)
            return function

        return decorate

    def call_tool(self, *, validate_input: bool = True) -> Decorator[Any]:
        """Have a function call tools: it takes the name and the arguments, which are validated against the
        tool's schema unless `validate_input` is False."""

        def decorate(function: Any) -> Any:
            self._handle_calls(ToolCalls(function, takes_arguments=True, validates=validate_input))
            return function

        return decorate

    def read_resource(self) -> Decorator[Any]:
        """Have a function read resources: it takes the URI, and returns str, bytes or contents."""

        async def read(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            return contents_of(await function(params.uri), str(params.uri))

        return self._taking("resources/read", "ReadResourceRequestParams", read)

    def subscribe_resource(self) -> Decorator[Any]:
        """Have a function take subscriptions to resources, by URI."""

        async def subscribe(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            await function(params.uri)

        return self._taking("resources/subscribe", "SubscribeRequestParams", subscribe)

    def unsubscribe_resource(self) -> Decorator[Any]:
        """Have a function end subscriptions to resources, by URI."""

        async def unsubscribe(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            await function(params.uri)

        return self._taking("resources/unsubscribe", "UnsubscribeRequestParams", unsubscribe)

    def get_prompt(self) -> Decorator[Any]:
        """Have a function get prompts: it takes the name and the arguments, and returns a GetPromptResult."""

        async def get(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            return await function(raw["name"], raw.get("arguments"))

        return self._taking("prompts/get", "GetPromptRequestParams", get)

    def completion(self) -> Decorator[Any]:
        """Have a function complete arguments: it takes the reference, the argument and the context."""

        async def complete(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            found = await function(params.ref, params.argument, getattr(params, "context", None))
            return {"completion": {"values": []} if found is None else plain(found)}

        return self._taking("completion/complete", "CompleteRequestParams", complete)

    def set_logging_level(self) -> Decorator[Any]:
        """Have a function take the level that a client wants log messages of."""

        async def set_level(function: Any, params: Any, raw: dict[str, Any]) -> Any:
            await function(params.level)

        return self._taking("logging/setLevel", "SetLevelRequestParams", set_level)

    def _taking(self, method: str, model: str, serve: Any) -> Decorator[Any]:
        def decorate(function: Any) -> Any:
            async def handle(params: dict[str, Any]) -> dict[str, Any]:
                return result_of(await serve(function, params_of(model, params), params))

            self._handle(method, handle)
            return function

        return decorate

    def progress_notification(self) -> Decorator[Any]:
        """Have a function take the client's reports of progress: token, progress, total, message."""

        def decorate(function: Any) -> Any:
            async def handle(params: dict[str, Any], dispatcher: object) -> None:
                members = (params.get(name) for name in ("progressToken", "progress", "total", "message"))
                await function(*members)

            self.handle_notification("notifications/progress", handle)
            return function

        return decorate

    # --- callbacks of the SDK's 2.x -------------------------------------------------------------------

    def add_request_handler(self, method: str, params_type: Any, handler: Any) -> None:
        """Have ``handler(ctx, params)`` serve a method; `params_type` is the model of its params, or the name
        of one of ``mcp.types``. Raises ValueError for ``initialize``."""
        if method == "initialize":
            raise ValueError("initialize is the engine's own; a handler cannot replace it")

        async def handle(params: dict[str, Any]) -> Any:
            return await handler(self.request_context, params_of(params_type, params))

        self.handle_whole(method, handle)

    def add_notification_handler(self, method: str, params_type: Any, handler: Any) -> None:
        """Have ``handler(ctx, params)`` take a notification of clients."""

        async def handle(params: dict[str, Any], dispatcher: Any) -> None:
            context = NotificationContext(dispatcher, method, params, self)
            await handler(context, params_of(params_type, params))

        self.handle_notification(method, handle)

    # --- handlers -------------------------------------------------------------------------------------

    def handle_whole(self, method: str, handle: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
        """Have a function serve a method: it takes the params, and returns a result, a model or a dict."""

        async def converted(params: dict[str, Any]) -> dict[str, Any]:
            result = result_of(await handle(params))
            if method == "tools/list":
                whole = "nextCursor" not in result and not params.get("cursor")
                self._remember(result.get("tools", []), whole)
            return result

        if method == "tools/call":
            within = self._within_middleware(converted)
            self._handle_calls(ToolCalls(within, takes_arguments=False, validates=False))
        else:
            self._handle(method, converted)

    def handle_notification(self, method: str, handle: Callable[..., Awaitable[None]]) -> None:
        """Have a function take a notification: params and the connection's dispatcher."""
        self._features.handle_notification(method, handle)

    def _handle(self, method: str, handle: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
        self.handlers[method] = handle
        self._features.handle(method, self._within_middleware(handle))

    # --- middleware of the SDK's 2.x ------------------------------------------------------------------

    @property
    def middleware(self) -> list[Any]:
        """What is around each message, the outermost first: ``async def middleware(ctx, call_next)``; see
        `fastrpc.compat.sdk2.middleware`. The list may be changed."""
        if self._middleware is None:
            from fastrpc.compat.highlevel.middleware import MiddlewareList

            self._middleware = MiddlewareList(self._middleware_changed)
        return self._middleware

    def _middleware_changed(self, added: object = ()) -> None:
        from fastrpc.compat.sdk2.middleware import HandshakeChain, gated_streams

        if self._wrapper is None:
            self._wrapper = HandshakeChain(self, self.middleware, ())
            name = "subscriptions/listen"
            self._features.METHODS[name] = gated_streams(self._features.METHODS[name], self)
            self._plan_anew()

    def _within_middleware(
        self, handle: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        """Return a handler of a method that is called within the middleware."""

        async def call(params: dict[str, Any]) -> Any:
            if not self._middleware:
                return await handle(params)
            from fastrpc.compat.sdk2.middleware import MessageContext, around

            async def end(context: Any) -> dict[str, Any]:
                return result_of(await handle(context.params or {}))

            return result_of(await around(self._middleware, MessageContext.of(self.request_context), end))

        return call

    def _handle_calls(self, calls: ToolCalls) -> None:
        self._tool_calls = calls
        self._features.handle_calls(calls, self._find_tool)
        self.handlers["tools/call"] = lambda params: calls.serve(params, self._find_tool)
        listed = self._listed()
        if listed:
            self._replace_tools([tool.name for tool in listed], [tool.raw for tool in listed])

    def _listed(self) -> list[ListedTool]:
        return [tool for tool in self.registries.tools if isinstance(tool, ListedTool)]

    def _remember(self, tools: list[Any], whole: bool) -> None:
        """Register the tools that the handler has listed; `whole`: there are no others."""
        if self._tool_calls is None:
            return
        present = {tool.name: tool.raw for tool in self._listed()}
        listed = {raw["name"]: raw for raw in tools}
        new = [raw for name, raw in listed.items() if present.get(name) != raw]
        gone = [name for name in present if name not in listed] if whole else []
        if new or gone:
            self._replace_tools([*gone, *(raw["name"] for raw in new)], new)

    def _replace_tools(self, gone: list[str], new: list[dict[str, Any]]) -> None:
        calls = self._tool_calls
        assert calls is not None
        self.runtime.replace_tools(gone, [calls.tool(raw) for raw in new])

    async def _find_tool(self, name: str) -> dict[str, Any] | None:
        """Return the descriptor of a tool that has not been listed yet: the list's handler is called."""
        listing = self.handlers.get("tools/list")
        found = {} if listing is None else await listing({})
        raw: dict[str, Any] | None = next(
            (each for each in found.get("tools", ()) if each["name"] == name), None
        )
        return raw

    # --- what it declares -----------------------------------------------------------------------------

    @property
    def request_context(self) -> RequestContext:
        """The request that is being served. Raises LookupError outside of a handler."""
        return RequestContext(current.get(), self)

    def get_capabilities(
        self,
        notification_options: Any = None,
        experimental_capabilities: dict[str, Any] | None = None,
        extensions: dict[str, Any] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> Any:
        """Return the capabilities that follow from the handlers: a ServerCapabilities."""
        options = notification_options or NotificationOptions()
        declared: dict[str, Any] = {
            capability: {} for method, capability in _DECLARED.items() if method in self.handlers
        }
        changed = {
            "tools": options.tools_changed,
            "prompts": options.prompts_changed,
            "resources": options.resources_changed,
        }
        for capability, value in changed.items():
            if capability in declared:
                declared[capability] = {"listChanged": value}
        if "resources" in declared:
            declared["resources"]["subscribe"] = "resources/subscribe" in self.handlers
        if experimental_capabilities is not None:
            declared["experimental"] = experimental_capabilities
        if extensions is not None:
            declared["extensions"] = extensions
        return typed("ServerCapabilities", declared)

    def create_initialization_options(
        self,
        notification_options: Any = None,
        experimental_capabilities: dict[str, Any] | None = None,
        extensions: dict[str, Any] | None = None,
    ) -> InitializationOptions:
        """Return what this server declares, for ``run``."""
        if experimental_capabilities is None and not self._has_callbacks:
            experimental_capabilities = {}
        return InitializationOptions(
            server_name=self.name,
            server_version=self.version,
            title=self.title,
            description=self.description,
            capabilities=self.get_capabilities(notification_options, experimental_capabilities, extensions),
            instructions=self.instructions,
            website_url=self.website_url,
            icons=self.icons,
        )

    def declared_capabilities(self) -> dict[str, Any]:
        """Return the capabilities that are declared: those passed to ``run``, else by the handlers."""
        options = self._options
        given = self.get_capabilities() if options is None else options.capabilities
        declared: dict[str, Any] = plain(given)
        return declared

    @property
    def info(self) -> dict[str, Any]:
        options = self._options
        if options is None:
            return super().info
        info = {
            "name": options.server_name,
            "version": options.server_version,
            "title": getattr(options, "title", None),
            "description": getattr(options, "description", None),
            "websiteUrl": options.website_url,
            "icons": plain(options.icons),
        }
        return {name: value for name, value in info.items() if value is not None}

    @property
    def runtime(self) -> LowLevelRuntime:
        runtime: Any = self._runtime
        if runtime is None:
            runtime = self._runtime = LowLevelRuntime(self, self._features)
            runtime.honours_everything = self._honours_everything
            if self._options is not None:
                runtime.description.instructions = self._options.instructions
            self._set_around(runtime)
        found: LowLevelRuntime = runtime
        return found

    # --- running --------------------------------------------------------------------------------------

    def streamable_http_app(self, **options: Any) -> Any:
        """Return an application of Starlette that serves Streamable HTTP; options as in the SDK's 2.x."""
        from fastrpc.compat.http.transports import streamable_http_app

        app, self._session_manager = streamable_http_app(self, **options)
        return app

    @property
    def session_manager(self) -> Any:
        """What serves the sessions of `streamable_http_app`. Raises RuntimeError before that is called."""
        if self._session_manager is None:
            raise RuntimeError("session_manager: call streamable_http_app() first")
        return self._session_manager

    def run(self, *streams: Any, **options: Any) -> Any:
        """Serve a client over two streams: ``await server.run(read_stream, write_stream, options)``.

        The streams of `stdio_server` are standard input and output; others must be streams of messages
        as the SDK's transports have them. `raise_exceptions` has no effect. Without streams it
        is the method of `fastrpc.Server`, which does not return a coroutine.
        """
        if not streams and "read_stream" not in options:
            return super().run(**options)
        return self._run_streams(*streams, **options)

    async def _run_streams(
        self,
        read_stream: Any,
        write_stream: Any,
        initialization_options: Any = None,
        raise_exceptions: bool = False,
        stateless: bool = False,
    ) -> None:
        self._take_options(initialization_options)
        if isinstance(read_stream, StandardStream):
            from fastrpc.compat.stdio import serve_stdio

            await serve_stdio(self, stdin=read_stream.descriptor, stdout=write_stream.descriptor)
        elif hasattr(read_stream, "serve"):
            await read_stream.serve(self)
        else:
            from fastrpc.compat.lowlevel.streams import MessageStreams

            if stateless:
                raise NotOffered(_STATELESS)
            await self.serve(MessageStreams(read_stream, write_stream))

    def _take_options(self, options: Any) -> None:
        """Declare what was passed to ``run`` from now on; clients that are connected have the former."""
        if options is not None:
            self._options = options
            runtime = self._runtime
            if runtime is not None:
                runtime.description.info = self.info
                runtime.description.instructions = options.instructions


def _caller(function: Any, request_name: str) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    """Return what calls the handler of a list: with the request, if it has a parameter without a default that
    is annotated with this class, else without arguments."""
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code: Any = getattr(inner, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations = getattr(inner, "__annotations__", {})
    for name in names:
        annotation = annotations.get(name)
        shown = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if shown.rpartition(".")[2] == request_name and not _has_default(inner, code, name):
            if name in names[: code.co_posonlyargcount]:
                return lambda raw: function(typed(request_name, raw))
            return lambda raw: function(**{name: typed(request_name, raw)})
    return lambda raw: function()


def _has_default(function: Any, code: Any, name: str) -> bool:
    count = code.co_argcount
    optional = code.co_varnames[count - len(function.__defaults__ or ()) : count]
    return name in optional or name in (function.__kwdefaults__ or {})
