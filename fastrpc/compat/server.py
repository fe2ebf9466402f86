"""`FastMCP`: a server with the interface of FastMCP and of the official SDK's high-level server.

It is a subclass of `fastrpc.Server`. A call costs the same, except that functions which take a Context or
return content are called through one more function.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from fastrpc.compat.context import not_offered
from fastrpc.compat.errors import NotOffered
from fastrpc.compat.functions import adapted
from fastrpc.compat.values import (
    checked_annotations,
    plain,
    prompt_value,
    resource_value,
    tool_value,
)
from fastrpc.definitions.completion import Completions
from fastrpc.definitions.completion import key_of as completion_key
from fastrpc.errors import DefinitionError
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Literal, TypeVar, overload

    from typing_extensions import Unpack

    from fastrpc import options as own
    from fastrpc.compat.options import FastMCPOptions, PromptOptions, ResourceOptions, RunOptions, ToolOptions
    from fastrpc.transports.base import Transport

    Function = TypeVar("Function", bound=Callable[..., object])
    Completer = TypeVar("Completer", bound=Callable[[Any, Any, Any], Awaitable[object]])

_STDIO = "fastrpc serves over stdio; leave it out, and let the client start the server"
_HOOKS = "write hooks: @mcp.before, @mcp.after, @mcp.on_error"
_CLIENT = "use fastrpc.testing.Client: async with Client(mcp) as client: await client."

_IGNORED = {
    "debug",
    "dependencies",
    "log_level",
    "on_duplicate",
    "on_duplicate_prompts",
    "on_duplicate_resources",
    "on_duplicate_tools",
    "warn_on_duplicate_prompts",
    "warn_on_duplicate_resources",
    "warn_on_duplicate_tools",
}
"""Options of a server that have no effect here: a duplicate name is always an error."""

_SERVER_OPTIONS = {
    **dict.fromkeys(
        [
            "host",
            "port",
            "sse_path",
            "message_path",
            "mount_path",
            "streamable_http_path",
            "json_response",
            "stateless_http",
            "event_store",
            "retry_interval",
            "transport_security",
        ],
        _STDIO,
    ),
    **dict.fromkeys(
        ["auth", "auth_server_provider", "token_verifier"],
        "a server on stdio is started by its user, who needs no proof",
    ),
    "middleware": _HOOKS,
    "mask_error_details": f"say in a ToolError what the client may know, or {_HOOKS}",
    "providers": "use @mcp.resources(scheme), mcp.mount(other) or Server.proxy(command)",
    "transforms": "name things where they are added: @mcp.tool(name=…), mcp.mount(other, prefix)",
    "extensions": "there are none yet",
    "tasks": "there are none; report progress instead",
}
_TOOL_OPTIONS = {
    "output_schema": "annotate the function's result; structured_output=False sends text alone",
    "task": "there are none; report progress instead",
    "auth": _SERVER_OPTIONS["auth"],
    "app": "there are no apps",
    "version": "give each version of a tool a name of its own",
    "exclude_args": "leave the argument out, and read it from ctx.request_context.lifespan_context",
    "serializer": "return the text",
    "security": "the function's own checks hold: it is called with the decoded variables",
}

_ALTERNATIVES = {
    "custom_route": _STDIO,
    "sse_app": _STDIO,
    "http_app": _STDIO,
    "streamable_http_app": _STDIO,
    "session_manager": _STDIO,
    "run_sse_async": _STDIO,
    "run_http_async": _STDIO,
    "run_streamable_http_async": _STDIO,
    "run_async": "call mcp.run(): it brings its own event loop",
    "run_stdio_async": "call mcp.run(): it brings its own event loop",
    "settings": "settings are fastrpc.Server's: mcp.page_size, mcp.threads …",
    "get_context": "take a parameter ctx: Context",
    "add_middleware": _HOOKS,
    "middleware": _HOOKS,
    "add_provider": _SERVER_OPTIONS["providers"],
    "add_transform": _SERVER_OPTIONS["transforms"],
    "import_server": "use mcp.mount(other, prefix)",
    "add_completion_handler": "use @mcp.completion()",
    "as_proxy": "use fastrpc.Server.proxy(command)",
    "from_openapi": "write a tool for each call that a model needs",
    "from_fastapi": "write a tool for each call that a model needs",
    "list_tools": _CLIENT + "tools()",
    "get_tools": _CLIENT + "tools()",
    "get_tool": _CLIENT + "tools()",
    "call_tool": _CLIENT + "call(name, …)",
    "list_resources": _CLIENT + "resources()",
    "get_resources": _CLIENT + "resources()",
    "list_resource_templates": _CLIENT + "templates()",
    "read_resource": _CLIENT + "read(uri)",
    "list_prompts": _CLIENT + "prompts()",
    "get_prompts": _CLIENT + "prompts()",
    "get_prompt": _CLIENT + "prompt(name, …)",
    "render_prompt": _CLIENT + "prompt(name, …)",
    "enable": "add or remove tools at run time: add_tool, remove_tool",
    "disable": "add or remove tools at run time: add_tool, remove_tool",
}


class FastMCP(Server):
    """A server with the interface of FastMCP and of the official SDK's high-level server.

    The options of `fastrpc.Server` are accepted too. Raises NotOffered for an unsupported option.
    """

    def __init__(
        self, name: str | None = None, instructions: str | None = None, **options: Unpack[FastMCPOptions]
    ) -> None:
        tools = options.pop("tools", None) or ()
        page_size = options.pop("list_page_size", None)
        seconds = options.pop("cache_ttl", None)
        taken = _own_options("FastMCP", {**options}, _SERVER_OPTIONS, _IGNORED)
        if page_size is not None:
            taken["page_size"] = page_size
        if seconds is not None:
            taken["ttl_ms"] = int(seconds * 1000)
        taken["version"] = str(taken.get("version") or "0.0.0")
        if "icons" in taken:
            taken["icons"] = plain(taken["icons"])
        try:
            super().__init__(name or "FastMCP", instructions=instructions, **taken)
        except TypeError as error:
            raise NotOffered(f"fastrpc.compat: FastMCP: {error}; see docs/compat.md") from None
        self._completer: Any = None
        for tool in tools:
            self.add_tool(tool)

    # --- tools ----------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def tool(
            self, name_or_fn: Function, *, name: str | None = None, **options: Unpack[ToolOptions]
        ) -> Function: ...
        @overload
        def tool(
            self, name_or_fn: str | None = None, *, name: str | None = None, **options: Unpack[ToolOptions]
        ) -> Callable[[Function], Function]: ...

    def tool(self, name_or_fn: Any = None, **options: Any) -> Any:
        """Register a function as a tool: ``@mcp.tool``, ``@mcp.tool()`` or ``@mcp.tool("name")``.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        return _decorated(self.add_tool, name_or_fn, options)

    def add_tool(  # type: ignore[override]
        self, tool: Function, name: str | None = None, **options: Unpack[ToolOptions]
    ) -> Function:
        """Add a function and return it. Raises DefinitionError, and NotOffered for an unsupported option."""
        _check_function("add_tool", tool, "give it a function")
        given = _own_options("tool", {"name": name, **options}, _TOOL_OPTIONS)
        if given.pop("enabled", True) is False:
            return tool
        given["annotations"] = plain(given.get("annotations"))
        given["meta"] = _meta(given)
        given["icons"] = plain(given.get("icons"))
        structured = given.pop("structured_output", None)
        if given.pop("run_in_thread", True) is False:
            given["run"] = "inline"
        if "timeout" in given:
            given["timeout_seconds"] = given.pop("timeout")
        function = adapted(tool, self, tool_value)
        try:
            super().add_tool(function, structured=structured is not False, **given)
        except DefinitionError:
            if structured is not None:
                raise
            # A result that no schema can describe is sent as text, as in those frameworks.
            super().add_tool(function, structured=False, **given)
        return tool

    # --- resources ------------------------------------------------------------------------------------

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Function], Function]:
        """Register a function as a resource or, if the URI contains variables, as a resource template.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        if not isinstance(uri, str):
            raise DefinitionError("@mcp.resource needs an address: @mcp.resource('docs://guide')")
        given = _own_options("resource", {**options}, _TOOL_OPTIONS)
        given["meta"] = _meta(given)
        given["annotations"] = checked_annotations(given.get("annotations"))
        given["icons"] = plain(given.get("icons"))
        if given.pop("enabled", True) is False:
            return lambda function: function
        if not given.get("mime_type"):
            given["mime_type"] = "text/plain"
        add: Callable[[Any], Any] = super().resource(uri, **given)

        def decorate(function: Function) -> Function:
            _check_function("resource", function, "give it a function")
            add(adapted(function, self, resource_value))
            self._complete_all()
            return function

        return decorate

    def add_resource(self, uri: str, content: object = None, **options: Unpack[own.ResourceOptions]) -> None:
        """Add a text, bytes, or a function as the resource with this URI.

        Raises DefinitionError, and NotOffered for an object of another framework.
        """
        if not isinstance(uri, str):
            raise NotOffered(
                "fastrpc.compat: add_resource takes an address and what is there: "
                "mcp.add_resource('docs://guide', text)"
            )
        super().add_resource(uri, content, **options)

    # --- prompts --------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        def prompt(
            self, name_or_fn: Function, *, name: str | None = None, **options: Unpack[PromptOptions]
        ) -> Function: ...
        @overload
        def prompt(
            self, name_or_fn: str | None = None, *, name: str | None = None, **options: Unpack[PromptOptions]
        ) -> Callable[[Function], Function]: ...

    def prompt(self, name_or_fn: Any = None, **options: Any) -> Any:
        """Register a function as a prompt: ``@mcp.prompt``, ``@mcp.prompt()`` or ``@mcp.prompt("name")``.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        return _decorated(self.add_prompt, name_or_fn, options)

    def add_prompt(
        self, prompt: Function, name: str | None = None, **options: Unpack[PromptOptions]
    ) -> Function:
        """Add a function and return it. Raises DefinitionError, and NotOffered for an unsupported option."""
        _check_function("add_prompt", prompt, "give it a function")
        given = _own_options("prompt", {"name": name, **options}, _TOOL_OPTIONS)
        given["meta"] = _meta(given)
        given["icons"] = plain(given.get("icons"))
        if given.pop("enabled", True) is False:
            return prompt
        super().prompt(adapted(prompt, self, prompt_value), **given)
        self._complete_all()
        return prompt

    # --- completion -----------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        def completion(self, handler: Completer) -> Completer: ...
        @overload
        def completion(self, handler: None = None) -> Callable[[Completer], Completer]: ...

    def completion(self, handler: Any = None) -> Any:
        """Register one function for all arguments of prompts and templates: ``@mcp.completion()``.

        It receives a reference, the argument and the context of the request, as in the official SDK.
        """
        if handler is None:
            return self.completion
        self._completer = handler
        self._complete_all()
        return handler

    def _complete_all(self) -> None:
        """Register the handler for each argument without a completion of its own."""
        if self._completer is None:
            return
        for kind in (self.registries.prompts, self.registries.templates):
            for entry in kind:
                for parameter in entry.signature.parameters:
                    if completion_key(entry.key, parameter.name) not in self.registries.completions:
                        complete = self._completion_of(kind.kind, entry.key, parameter.name)
                        self.complete(entry.key, parameter.name)(complete)

    def _completion_of(self, kind: str, target: str, argument: str) -> Any:
        handler = self._completer

        async def complete(value: str, arguments: dict[str, Any]) -> Any:
            reference = _reference(kind, target)
            typed = SimpleNamespace(name=argument, value=value)
            found = handler(reference, typed, SimpleNamespace(arguments=arguments) if arguments else None)
            if hasattr(found, "__await__"):
                found = await found
            return _completions(found)

        return complete

    # --- mounting and running -------------------------------------------------------------------------

    def mount(  # type: ignore[override]
        self,
        server: Server | str,
        prefix: str | Server | None = None,
        *,
        namespace: str | None = None,
        **options: None,
    ) -> None:
        """Mount another server, its names prefixed with ``prefix_``.

        ``mcp.mount(server, "prefix")``, or in the order of early versions ``mcp.mount("prefix", server)``.
        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        other: Any = server
        if isinstance(server, str):
            other, prefix = prefix, server
        for name, value in options.items():
            if value is not None:
                raise NotOffered(f"fastrpc.compat: mount has no {name}; a mount is live, names have a prefix")
        start: Any = namespace or prefix or ""
        super().mount(other, start)

    def run(
        self, transport: Literal["stdio"] | Transport | None = None, **options: Unpack[RunOptions]
    ) -> None:
        """Serve over standard input and output: ``mcp.run()`` or ``mcp.run(transport="stdio")``; or over a
        transport of your own.

        The options of `fastrpc.Server.run` are accepted too. Raises NotOffered for another transport, and
        UsageError as that method does.
        """
        if isinstance(transport, str) and transport != "stdio":
            raise NotOffered(f"fastrpc.compat: run(transport={transport!r}): {_STDIO}")
        given: dict[str, Any] = {**options}
        given.pop("show_banner", None)
        given.pop("log_level", None)
        carrier = None if isinstance(transport, str) else transport
        super().run(transport=carrier, **_own_options("run", given, _SERVER_OPTIONS))

    if not TYPE_CHECKING:  # type checkers should report an unknown name

        def __getattr__(self, name: str) -> Any:
            raise not_offered("FastMCP", name, _ALTERNATIVES)


# ---------------------------------------------------------------------------------------- internal


def _decorated(add: Callable[..., Any], name_or_fn: Any, options: dict[str, Any]) -> Any:
    """Add a function now, or return the decorator that adds it."""
    if name_or_fn is None:
        return partial(_add_with, add, options)
    if isinstance(name_or_fn, str):
        return partial(_add_with, add, {"name": name_or_fn, **options})
    return add(name_or_fn, **options)


def _add_with(add: Callable[..., Any], options: dict[str, Any], function: Any) -> Any:
    return add(function, **options)


def _check_function(what: str, thing: Any, cure: str) -> None:
    if not callable(thing) and not isinstance(thing, (staticmethod, classmethod)):
        raise NotOffered(f"fastrpc.compat: {what} takes no {type(thing).__name__}; {cure}")


def _own_options(
    what: str, options: dict[str, Any], alternatives: dict[str, str], ignored: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the options that have an effect here. Raises NotOffered for those that are not supported."""
    taken = {}
    for name, value in options.items():
        if name in ignored or value is None:
            continue
        if name not in alternatives:
            taken[name] = value
        elif value is not False:
            raise NotOffered(f"fastrpc.compat: {what} has no {name}; {alternatives[name]}")
    return taken


def _meta(options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the ``_meta`` of an entry; tags are stored there, as in FastMCP."""
    tags = options.pop("tags", None)
    meta: dict[str, Any] | None = options.pop("meta", None)
    if tags:
        meta = {**(meta or {}), "fastmcp": {"tags": sorted(tags)}}
    return meta


def _reference(kind: str, target: str) -> Any:
    """Return the reference that is completed, as the SDK's own class if the file has imported it, for
    ``isinstance``."""
    import sys

    types = sys.modules.get("mcp_types") or sys.modules.get("mcp.types")
    if kind == "prompt":
        members = {"type": "ref/prompt", "name": target}
        return types.PromptReference(**members) if types is not None else SimpleNamespace(**members)
    members = {"type": "ref/resource", "uri": target}
    return types.ResourceTemplateReference(**members) if types is not None else SimpleNamespace(**members)


def _completions(found: Any) -> Any:
    """Return the result of a completion handler: the SDK's Completion, a list, or None for no values."""
    if found is None:
        return []
    if hasattr(found, "values") and not isinstance(found, dict):
        members = plain(found) if hasattr(found, "model_dump") else vars(found)
        more = members.get("hasMore", members.get("has_more"))
        return Completions(members["values"], members.get("total"), more)
    return found
