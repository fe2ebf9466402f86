"""What a compat server offers, as its own program sees it: lists of components, and calls of them.

Calls go through a client in memory, so that their results are those that a client gets. Costs nothing until
one of these methods is called.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.compat.calls.typed_content import typed_block
from fastrpc.compat.components.tools import Tool, result_of
from fastrpc.compat.components.visibility import REGISTRIES, ComponentVisibility
from fastrpc.compat.context import ReadContents
from fastrpc.compat.dialect import FASTMCP, SDK_1, Dialect
from fastrpc.compat.errors import NotOffered, tool_error
from fastrpc.compat.highlevel.request_methods import SDK_METHODS, RequestMethods
from fastrpc.compat.models import dumped, typed
from fastrpc.compat.registered.entries import ServedTool, served
from fastrpc.compat.registered.resources_and_prompts import registered
from fastrpc.compat.registered.tool import RegisteredTool
from fastrpc.compat.values import Message, PromptResult, plain
from fastrpc.content import Contents
from fastrpc.errors import FAILURES, ArgumentError, RemoteError, ToolError, UnknownName, suggestion
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from typing_extensions import Self

    from fastrpc.definitions.tool import Tool as Definition


INNER_OPTIONS = ("context", "run_middleware", "task_meta", "version")
"""Options of the methods by which a program calls its own server."""


def check_inner_options(call: str, options: Mapping[str, object]) -> None:
    """Raise TypeError for an unknown option, NotOffered for one that asks for what there is not; the option
    that leaves out middleware is logged: the call goes through it."""
    for name, value in options.items():
        if name not in INNER_OPTIONS:
            raise TypeError(f"{call}: there is no option {name}{suggestion(name, INNER_OPTIONS)}")
        if name in ("task_meta", "version") and value is not None:
            raise NotOffered(f"fastrpc.compat: {call} has no {name}; call the function itself")
        if name == "run_middleware" and value is False:
            diagnostics.write("warning", f"{call}: run_middleware=False has no effect: middleware is called")


class Catalogue(RequestMethods, Server):
    """The methods of a compat server that list and call what it offers."""

    dialect: Dialect

    if TYPE_CHECKING:  # `Composition` has it
        transforms: Any

    @property
    def _chain(self) -> Any:
        """What shows the components of a server that has more than its registries; None for any other."""
        return self._wrapper if getattr(self._wrapper, "declares_everything", False) else None

    def _prepare_catalogue(self) -> None:
        self._visibility: ComponentVisibility
        self._functions: dict[
            str, tuple[Callable[..., Any], dict[str, Any]]
        ] = {}  # of tools, as they were given
        self._tools: dict[str, RegisteredTool] = {}
        self._declared: dict[tuple[str, str], Any] = {}  # functions of the others, by kind and key
        self._components: dict[tuple[str, str], Any] = {}

    # --- lists ----------------------------------------------------------------------------------------

    async def _listed(self, kind: str, model: str) -> list[Any]:
        """Return the components of a kind: component objects in FastMCP, the SDK's models in the SDK."""
        self.load_tools()
        if self._chain is not None:
            return [self._own_object(kind, each) for each in await self._chain.objects(kind)]
        entries = getattr(self.registries, REGISTRIES[kind])
        if self.dialect is FASTMCP:
            return [self._object_of(kind, entry) for entry in entries]
        return [typed(model, entry.descriptor(LATEST_SESSION_VERSION)) for entry in entries]

    async def _found(self, kind: str, key: str, version: object) -> Any:
        """Return the component object of a key; None if there is none."""
        self.load_tools()
        if self._chain is not None:
            return self._own_object(kind, await self._chain.find(kind, key, version))
        entry = getattr(self.registries, REGISTRIES[kind]).get(key)
        return None if entry is None else self._object_of(kind, entry)

    def _object_of(self, kind: str, entry: Any) -> Any:
        """Return the object of an entry of the registries, the same each time."""
        if kind == "tool":
            return self._tool_object(entry)
        known = self._components.get((kind, entry.key))
        if known is None or known.entry is not entry:
            shown = served(self, kind, entry)
            if entry.origin or not hasattr(shown, "entry"):
                return shown
            known = registered(self, kind, shown, self._declared.get((kind, entry.key)))
            self._components[kind, entry.key] = known
        return known

    def _own_object(self, kind: str, found: Any) -> Any:
        """Return the object of an entry for one that a server shows unchanged which has more than these."""
        entry: Any = getattr(found, "entry", None)
        if entry is None or self.transforms or found.key != entry.key:
            return found
        own = getattr(self.registries, REGISTRIES[kind]).get(entry.key)
        return self._object_of(kind, entry) if own is entry else found

    def _tool_object(self, definition: Definition) -> Tool:
        known = self._tools.get(definition.name)
        if known is not None and known._definition is definition:
            return known
        declared = self._functions.get(definition.name)
        if declared is None:
            return ServedTool(self, definition)
        found = self._tools[definition.name] = RegisteredTool(self, definition, *declared)
        return found

    def remove_tool(self, name: str, version: object = None) -> None:
        """Remove a tool. Raises KeyError for an unknown name, NotOffered for one version of a tool."""
        if version is not None:
            raise NotOffered("fastrpc.compat: remove_tool has no version; a tool is removed by its name")
        super().remove_tool(name)

    async def list_tools(self, **options: object) -> list[Any]:
        """Return the tools: component objects in FastMCP, the SDK's models in the SDK."""
        check_inner_options("list_tools", options)
        return await self._listed("tool", "Tool")

    async def get_tools(self) -> dict[str, Tool]:
        """Return the tools by name (FastMCP 2)."""
        return {each.name: each for each in await self.list_tools()}

    async def get_tool(self, name: str, version: object = None) -> Any:
        """Return a tool; None if there is none of this name."""
        return await self._found("tool", name, version)

    async def list_resources(self, **options: object) -> list[Any]:
        """Return the resources: component objects in FastMCP, the SDK's models in the SDK."""
        check_inner_options("list_resources", options)
        return await self._listed("resource", "Resource")

    async def get_resources(self) -> dict[str, Any]:
        """Return the resources by URI (FastMCP 2)."""
        return {each.uri: each for each in await self.list_resources()}

    async def get_resource(self, uri: Any, version: object = None) -> Any:
        """Return a resource; None if there is none with this URI."""
        return await self._found("resource", str(uri), version)

    async def list_resource_templates(self, **options: object) -> list[Any]:
        """Return the templates: component objects in FastMCP, the SDK's models in the SDK."""
        check_inner_options("list_resource_templates", options)
        return await self._listed("template", "ResourceTemplate")

    async def get_resource_templates(self) -> dict[str, Any]:
        """Return the templates by their URI template (FastMCP 2)."""
        return {each.uri_template: each for each in await self.list_resource_templates()}

    async def get_resource_template(self, uri: str, version: object = None) -> Any:
        """Return a template; None if there is none with this URI template."""
        return await self._found("template", uri, version)

    async def list_prompts(self, **options: object) -> list[Any]:
        """Return the prompts: component objects in FastMCP, the SDK's models in the SDK."""
        check_inner_options("list_prompts", options)
        return await self._listed("prompt", "Prompt")

    async def get_prompts(self) -> dict[str, Any]:
        """Return the prompts by name (FastMCP 2)."""
        return {each.name: each for each in await self.list_prompts()}

    # --- calls ----------------------------------------------------------------------------------------

    async def _as_client(self, method: str, *params: Any) -> dict[str, Any]:
        """Return the result of a request that a client of this server sends, in memory. Raises ToolError."""
        from fastrpc.client.asynchronous import AsyncClient

        async with AsyncClient(self, version=LATEST_SESSION_VERSION, timeout_seconds=0) as client:
            try:
                found: dict[str, Any] = (await getattr(client, method)(*params)).raw
            except RemoteError as error:
                raise tool_error(error.message) from None
        return found

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *context: object, **options: object
    ) -> Any:
        """Call a tool. Returns a ToolResult (FastMCP), blocks of content, with structured content a tuple of
        both (SDK 1.x), or a CallToolResult (2.x). Raises ToolError for a result that is an error, and if
        there is no such tool."""
        check_inner_options("call_tool", options)
        raw = await self._raw_result(name, arguments or {})
        if raw.get("isError"):
            raise tool_error("\n".join(block.get("text", "") for block in raw["content"]))
        if self.dialect is FASTMCP:
            return result_of(raw)
        if self.dialect is not SDK_1:
            return typed("CallToolResult", raw)
        blocks = [typed_block(block) for block in raw["content"]]
        return (blocks, raw["structuredContent"]) if "structuredContent" in raw else blocks

    async def _raw_result(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a tool: by the running request, if it is answered through ``call_tool``."""
        if "_overridden" in self.__dict__:
            from fastrpc.compat.interception import overridden

            if overridden.is_within(self, "call_tool"):
                try:
                    result = await overridden.proceed(name=name, arguments=arguments)
                except ToolError:
                    raise
                except UnknownName:
                    raise tool_error(f"Unknown tool: {name}") from None
                except ArgumentError as error:
                    from fastrpc.compat.calls.validation_errors import as_validation_error

                    raise tool_error(str(error)) from as_validation_error(error, name)
                except FAILURES as error:
                    raise tool_error(str(error)) from error
                seen: dict[str, Any] = dumped(result.to_mcp_result())
                return seen
        return await self._as_client("call_tool", name, arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, plain(value) if name == "icons" else value)
        if name in SDK_METHODS and self.dialect is not FASTMCP:
            self._override(name)

    async def read_resource(self, uri: Any, *context: object, **options: object) -> Any:
        """Read a resource: a list whose entries have `content` and `mime_type`. Raises ToolError."""
        check_inner_options("read_resource", options)
        if "_overridden" in self.__dict__:
            from fastrpc.compat.interception import overridden

            if overridden.is_within(self, "read_resource"):
                return ReadContents(list(await overridden.proceed(uri=str(uri))))
        raw = await self._as_client("read_resource", str(uri))
        return ReadContents([Contents.received(part) for part in raw["contents"]])

    async def get_prompt(self, name: str, arguments: Any = None, **options: object) -> Any:
        """Return a prompt's messages, a GetPromptResult (SDK); or, in FastMCP, the prompt itself."""
        if self.dialect is FASTMCP:
            return await self._found("prompt", name, options.get("version"))
        return typed("GetPromptResult", await self._as_client("get_prompt", name, arguments or {}))

    async def render_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, **options: object
    ) -> Any:
        """Return the messages of a prompt (FastMCP). Raises ToolError."""
        check_inner_options("render_prompt", options)
        raw = await self._as_client("get_prompt", name, arguments or {})
        messages = [Message(typed_block(each["content"]), each["role"]) for each in raw["messages"]]
        return PromptResult(messages, raw.get("description"))

    # --- visibility -----------------------------------------------------------------------------------

    def enable(self, **criteria: Any) -> Self:
        """Offer the components that match: `names`, `keys`, `tags`, `components` (``tool``, ``resource``,
        ``template``, ``prompt``); with ``only=True`` no others. Later rules win. Raises TypeError."""
        self._visibility.add(True, criteria)
        return self

    def disable(self, **criteria: Any) -> Self:
        """Offer the components that match no more: see `enable`."""
        self._visibility.add(False, criteria)
        return self

    # --- what files use of the originals' inside --------------------------------------------------------

    @property
    def _tool_manager(self) -> ToolManager:
        return ToolManager(self)

    @property
    def _mcp_server(self) -> InnerServer:
        return InnerServer(self)

    _lowlevel_server = _mcp_server


SHARED = ("name", "version", "instructions", "website_url", "icons")
"""Attributes of an inner server that are those of the server."""

DECORATORS = ("call_tool", "list_prompts", "list_resource_templates", "list_resources", "list_tools")
"""The decorators of an inner server. For each there is a hook of middleware that does the same."""


class InnerServer:
    """A server by the name of the originals' inner one, for files that run that one:
    ``await mcp._mcp_server.run(read, write, mcp._mcp_server.create_initialization_options())``, or give it
    other handlers: ``@mcp._mcp_server.list_tools()``, which then answer in the server's place."""

    def __init__(self, server: Any) -> None:
        self.__dict__["_server"] = server

    def __getattr__(self, name: str) -> Any:
        if name in SHARED:
            return getattr(self._server, name)
        if name not in DECORATORS:
            raise NotOffered(f"fastrpc.compat: the inner server has no {name}; use the server itself")
        from fastrpc.compat.interception.sdk_handlers import handler_of

        def decorator(**options: object) -> Callable[[Any], Any]:
            def decorate(function: Any) -> Any:
                self._server._handle(handler_of(f"on_{name}", function))
                return function

            return decorate

        return decorator

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it for the server itself. Raises AttributeError for what has no effect here."""
        if name not in SHARED:
            raise AttributeError(f"fastrpc.compat: the inner server has no {name}; use the server itself")
        setattr(self._server, name, value)

    @property
    def request_context(self) -> Any:
        """The request that is served (`Context.request_context`). Raises LookupError outside of one."""
        from fastrpc import running_call
        from fastrpc.compat.functions.dependencies import context_of

        if running_call.current() is None:
            raise LookupError("request_context: no request is served")
        return context_of(self._server).request_context

    def create_initialization_options(self, *values: object, **options: object) -> None:
        """Return what `run` is called with: nothing, since the server knows its capabilities."""

    async def run(self, read_stream: Any, write_stream: Any, *values: object, **options: object) -> None:
        """Serve over the streams of `stdio_server` or `SseServerTransport`, or over streams of messages as
        the official SDK's transports have them."""
        from fastrpc.compat.lowlevel.options import StandardStream
        from fastrpc.compat.stdio import serve_stdio

        if hasattr(read_stream, "serve"):
            await read_stream.serve(self._server)
            return
        if not isinstance(read_stream, StandardStream):
            from fastrpc.compat.lowlevel.streams import MessageStreams

            await self._server.serve(MessageStreams(read_stream, write_stream))
            return
        await serve_stdio(self._server, stdin=read_stream.descriptor, stdout=write_stream.descriptor)


class ListedTools(dict[str, Tool]):
    """The tools of a server by name; what is put into it, or taken out, changes the server."""

    def __init__(self, server: Any, tools: dict[str, Tool]) -> None:
        super().__init__(tools)
        self._server = server

    def __setitem__(self, name: str, tool: Tool) -> None:
        """Have the server call this tool. Raises DefinitionError."""
        if self.get(name) is not tool:
            self.pop(name, None)
            self._server.add_tool(tool, name)
            super().__setitem__(name, tool)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._server.remove_tool(name)

    def pop(self, name: str, *default: Any) -> Any:
        """Take a tool out. Raises KeyError without a `default`."""
        if name in self:
            self._server.remove_tool(name)
        return super().pop(name, *default)

    def clear(self) -> None:
        """Take all tools out."""
        for name in list(self):
            del self[name]

    def update(self, *others: Any, **named: Tool) -> None:
        """Put tools in."""
        for name, tool in dict(*others, **named).items():
            self[name] = tool


class ToolManager:
    """The tools of a server by the SDK's inner names, which some files use."""

    def __init__(self, server: Catalogue) -> None:
        self._server = server

    @property
    def _tools(self) -> dict[str, Tool]:
        self._server.load_tools()
        found = {each.name: self._server._tool_object(each) for each in self._server.registries.tools}
        return ListedTools(self._server, found)

    @_tools.setter
    def _tools(self, tools: dict[str, Tool]) -> None:
        present = self._tools
        for name in set(present) - set(tools):
            del present[name]
        present.update(tools)

    def list_tools(self) -> list[Tool]:
        """Return the tools."""
        return list(self._tools.values())

    def get_tool(self, name: str) -> Tool | None:
        """Return a tool; None if there is none of this name."""
        return self._tools.get(name)

    def add_tool(self, fn: Any, **options: Any) -> Any:
        """Add a function. Raises DefinitionError."""
        return self._server.add_tool(fn, **options)

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises ToolError if there is none of this name."""
        try:
            self._server.remove_tool(name)
        except KeyError:
            raise ToolError(f"Unknown tool: {name}") from None

    async def call_tool(self, name: str, arguments: dict[str, Any], **options: Any) -> Any:
        """Call a tool, as the server's `call_tool` does."""
        return await self._server.call_tool(name, arguments)
