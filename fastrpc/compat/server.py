"""`FastMCP`: a server with the interface of FastMCP and of the official SDK's high-level server.

It is a subclass of `fastrpc.Server`. A call costs the same, except that functions which take a Context or
return content are called through one more function.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from fastrpc.compat.calls import not_offered
from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate, describe_arguments
from fastrpc.compat.components.standalone import component_of, mark_of
from fastrpc.compat.components.tools import FunctionTool, Tool
from fastrpc.compat.components.visibility import ComponentVisibility
from fastrpc.compat.context import Context
from fastrpc.compat.dialect import FASTMCP, MASKED_READING, SDK_1, SDK_2
from fastrpc.compat.errors import NotOffered
from fastrpc.compat.functions import adapted
from fastrpc.compat.functions.contents_meta import with_meta
from fastrpc.compat.functions.declaring import Duplicates, meta_of, prompt_options, tool_definition
from fastrpc.compat.highlevel import middleware
from fastrpc.compat.highlevel.authorization import Authorization
from fastrpc.compat.highlevel.catalogue import Catalogue
from fastrpc.compat.highlevel.middleware import Interception
from fastrpc.compat.highlevel.mounting import Composition
from fastrpc.compat.highlevel.request_methods import FASTMCP_METHODS, SDK_METHODS
from fastrpc.compat.highlevel.serving import Serving
from fastrpc.compat.sdk2.server import SdkParts
from fastrpc.compat.values import (
    checked_annotations,
    plain,
    prompt_value,
    resource_value,
)
from fastrpc.definitions.completion import Completions
from fastrpc.definitions.completion import key_of as completion_key
from fastrpc.definitions.handler import made, name_of
from fastrpc.definitions.resource import is_template
from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import overload

    from typing_extensions import TypeVar as DefaultTypeVar
    from typing_extensions import Unpack

    from fastrpc import options as own
    from fastrpc.compat.highlevel.options import (
        CompatPromptOptions,
        CompatResourceOptions,
        CompatToolOptions,
        FastMCPOptions,
        MCPServerOptions,
    )

    Function = TypeVar("Function", bound=Callable[..., object])
    LifespanResult = DefaultTypeVar("LifespanResult", default=Any)
    Completer = TypeVar("Completer", bound=Callable[[Any, Any, Any], Awaitable[object]])
else:
    LifespanResult = TypeVar("LifespanResult")

MISSING = "Missing required arguments: "
"""What begins the originals' error for arguments of a prompt that are missing."""
_IGNORED = {
    "client_log_level",
    "dereference_schemas",
    "include_fastmcp_meta",
    "resource_prefix_format",
    "session_state_store",
    "dependencies",
    "tasks",
}
"""Options of a server that have no effect here: docs/compat.md says for each what there is instead."""

_SERVER_OPTIONS = {
    "extensions": "there are none yet",
}
CHANGEABLE = ("description", "title", "annotations", "icons", "meta", "tags", "parameters", "output_schema")
"""Attributes of a tool object that a program may change before it adds it; in the SDK the first ones alone,
where schemas are made in other ways."""

_TOOL_OPTIONS: dict[str, str] = {}
"""Options of components that are not supported, and the alternatives."""

_ALTERNATIVES = {
    **middleware.ALTERNATIVES,
    "add_completion_handler": "use @mcp.completion()",
}


class FastMCP(
    Authorization, Serving, Catalogue, Composition, Interception, SdkParts, Generic[LifespanResult]
):
    """A server with the interface of FastMCP and of the official SDK's high-level server.

    The options of `fastrpc.Server` are accepted too. Raises NotOffered for an unsupported option.
    """

    dialect = FASTMCP
    nameless = "FastMCP"
    """The name of a server that was given none."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> Any:
            return cls  # the type of the lifespan's value, for type checkers

    if TYPE_CHECKING:

        def __init__(
            self, name: str | None = None, instructions: str | None = None, **options: Unpack[FastMCPOptions]
        ) -> None: ...

    else:

        def __init__(self, name=None, *given, **options):
            positional = self.dialect.positional
            if len(given) > len(positional):
                raise TypeError(
                    f"{type(self).__name__}: expected at most {len(positional) + 1} positional arguments"
                )
            options = {**dict(zip(positional, given, strict=False)), **options}
            self._declare(name, options.pop("instructions", None), options)

    def _declare(self, name: str | None, instructions: str | None, options: dict[str, Any]) -> None:
        """Take the options of the constructor. Raises NotOffered."""
        self._prepare_catalogue()
        self._take_serving_options(options)
        tools = options.pop("tools", None) or ()
        resources = options.pop("resources", None) or ()
        shown, hidden = options.pop("include_tags", None), options.pop("exclude_tags", None)
        self._serializer = options.pop("tool_serializer", None)
        masks = options.pop("mask_error_details", None)
        if masks is None and self.dialect is FASTMCP:
            masks = self.settings.mask_error_details
        self._style = self.dialect.hiding_style if masks else self.dialect.style
        is_strict = options.pop("strict_input_validation", None)
        if is_strict is None and self.dialect is FASTMCP:
            is_strict = self.settings.strict_input_validation
        self.refuses_conversions = bool(is_strict)
        self._duplicates = Duplicates(self.dialect, options)
        self._duplicates.keep = self._keep_version
        self._take_sdk_options(options)
        experimental = options.pop("experimental_capabilities", None)
        if experimental is not None:
            options["experimental"] = experimental
        middleware = options.pop("middleware", None)
        sources = options.pop("providers", None), options.pop("transforms", None)
        changes = options.pop("tool_transformations", None)
        page_size = options.pop("list_page_size", None)
        self._take_auth_options(options)
        seconds = options.pop("cache_ttl", None)
        extensions = options.pop("extensions", None) if self._extensions else None
        taken = _own_options("FastMCP", options, _SERVER_OPTIONS, _IGNORED)
        if extensions:
            taken["extensions"] = extensions
        if page_size is not None:
            taken["page_size"] = page_size
        if seconds is not None:
            taken["ttl_ms"] = int(seconds * 1000)
        taken["version"] = str(taken.get("version") or "0.0.0")
        try:
            super().__init__(name or self.nameless, instructions=instructions, **taken)
        except TypeError as error:
            raise NotOffered(f"fastrpc.compat: FastMCP: {error}; see docs/compat.md") from None
        self._completer: Any = None
        self._visibility = ComponentVisibility(self.registries)
        if shown is not None:
            self.enable(tags=set(shown), only=True)
        if hidden:
            self.disable(tags=set(hidden))
        self._take_middleware(middleware)
        if self.lifespan is not None:
            from fastrpc.compat.interception.lifespan import entering_first

            self._handle(entering_first(self))
        for method in FASTMCP_METHODS if self.dialect is FASTMCP else SDK_METHODS:
            if getattr(type(self), method) is not getattr(Catalogue, method):  # a subclass has it
                self._override(method)
        self._begin_sdk_parts()
        for tool in tools:
            self.add_tool(tool)
        for resource in resources:
            self.add_resource(resource)
        self._take_composition(*sources, changes)

    def get_context(self) -> Context:
        """Return the Context of the running call; outside of calls one that reaches no client."""
        from fastrpc.compat.functions.dependencies import context_of

        return context_of(self)

    # --- tools ----------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def tool(
            self, name_or_fn: Function, *, name: str | None = None, **options: Unpack[CompatToolOptions]
        ) -> Function: ...
        @overload
        def tool(
            self,
            name_or_fn: str | None = None,
            *,
            name: str | None = None,
            **options: Unpack[CompatToolOptions],
        ) -> Callable[[Function], Function]: ...

    def tool(self, name_or_fn: Any = None, *positional: Any, **options: Any) -> Any:
        """Register a function as a tool: ``@mcp.tool``, ``@mcp.tool()`` or ``@mcp.tool("name")``.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        return _decorated(self.add_tool, name_or_fn, _by_name("tool", positional, options))

    def add_tool(  # type: ignore[override]
        self,
        tool: Function = None,  # type: ignore[assignment]
        name: str | None = None,
        *positional: Any,
        fn: Function | None = None,
        **options: Unpack[CompatToolOptions],
    ) -> Function:
        """Add a function or a tool object, and return it. `fn`: the function, as the SDK calls it.

        Raises DefinitionError, ValueError for a name that is taken if duplicates are errors, and NotOffered
        for an unsupported option.
        """
        tool = tool if fn is None else fn
        if isinstance(tool, Tool):
            return self._add_tool_object(tool, name)
        _check_function("add_tool", tool, "give it a function")
        name, options = _with_mark(tool, "tool", name, options)
        given = _component_options("tool", _by_name("add_tool", positional, {"name": name, **options}))
        if options.get("output_schema", ...) is None:
            given["output_schema"] = False
        declared = tool, dict(given)
        if given.pop("enabled", True) is False:
            return tool
        if not self._duplicates.allow(self.registries.tools, given.get("name") or name_of(tool), given):
            return tool
        self._restrict("tool", given.get("name") or name_of(tool), given.pop("auth", None))
        given.setdefault("serializer", self._serializer)
        added = self.registries.tools.add(tool_definition(tool, given, self.dialect, self._style, self))
        self._put_last(self.registries.tools)
        self._offer_renderer(added.meta)
        self._functions[given.get("name") or name_of(tool)] = declared
        return tool

    def _keep_version(self, registry: Any, key: str) -> None:
        """Keep a version of a component that another one replaces."""
        self._compose().add_variant(registry, key, self._checks_at(registry.kind, key))

    def _add_tool_object(self, tool: Tool, name: str | None) -> Any:
        """Add a tool object: a function's as that function, another one by its ``run``."""
        if not tool.enabled:
            return tool
        if isinstance(tool, FunctionTool):
            self.add_tool(tool.fn, name or tool.name, **tool.options)
            self._take_changes(tool, name or tool.name)
            return tool
        from fastrpc.compat.components.definitions import runner
        from fastrpc.compat.components.described_tool import DescribedTool

        raw = {**tool.descriptor(), "name": name or tool.name}
        if not self._duplicates.allow(self.registries.tools, raw["name"], {"version": tool.version}):
            return tool
        self._restrict("tool", raw["name"], tool.auth)
        self.registries.tools.add(DescribedTool(raw, runner(tool), self._style))
        self._offer_renderer(raw.get("_meta"))
        return tool

    def _put_last(self, registry: Any) -> None:
        """Put those entries last that are listed so, if there are some."""
        if "_last" in self.__dict__:
            from fastrpc.compat.registered.order import put_last

            put_last(self, registry)

    def _offer_renderer(self, meta: dict[str, Any] | None) -> None:
        """Offer the page that renders a tool's interface, if it has one."""
        if meta is not None and "ui" in meta:
            from fastrpc.compat.apps.offering import offer_renderer

            offer_renderer(self, meta)

    def _take_changes(self, tool: FunctionTool, name: str) -> None:
        """Take over what has been changed in a tool object since it was made of its function."""
        entry = self.registries.tools.get(name)
        if entry is None:
            return
        added = self._tool_object(entry)
        for attribute in CHANGEABLE if self.dialect is FASTMCP else CHANGEABLE[:3]:
            if getattr(added, attribute) != getattr(tool, attribute):
                setattr(added, attribute, getattr(tool, attribute))

    # --- resources ------------------------------------------------------------------------------------

    def resource(self, uri: str, **options: Unpack[CompatResourceOptions]) -> Callable[[Function], Function]:
        """Register a function as a resource or, if the URI contains variables, as a resource template.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        if not isinstance(uri, str):
            raise DefinitionError("@mcp.resource needs an address: @mcp.resource('docs://guide')")
        is_offered = options.pop("enabled", True) is not False
        security: Any = options.pop("security", ...)
        given = _component_options("resource", {**self._cached(options)})
        given["meta"] = meta_of(given)
        given["annotations"] = checked_annotations(given.get("annotations"))
        given["icons"] = plain(given.get("icons"))
        if not is_offered:
            return lambda function: function
        if not given.get("mime_type"):
            given["mime_type"] = "text/plain"
        kind = "template" if is_template(uri) else "resource"
        registry = self.registries.templates if kind == "template" else self.registries.resources
        if not self._duplicates.allow(registry, uri, given):
            return lambda function: function
        self._restrict(kind, uri, given.pop("auth", None))

        def decorate(function: Function) -> Function:
            _check_function("resource", function, "give it a function")
            self._declared[kind, uri] = function
            described = with_meta(function, given["meta"], self.dialect, kind)
            served = adapted(described, self, resource_value)
            rules = self._screening(security) if kind == "template" else None
            if rules is None:
                super(FastMCP, self).resource(uri, **given)(served)
            else:
                self._add_screened(served, uri, rules, given)
            self._style_failures(registry.get(uri))
            self._complete_all()
            self._put_last(registry)
            return function

        return decorate

    def _add_screened(self, function: Any, uri: str, rules: Any, options: dict[str, Any]) -> None:
        """Add a template whose variables have to keep rules."""
        from fastrpc.compat.components.resource_security import ScreenedTemplate

        self.registries.templates.add(
            made(ScreenedTemplate, function, {"uri": uri, "security": rules, **options})
        )

    def add_resource(
        self,
        uri: Any = None,
        content: object = None,
        *,
        resource: Any = None,
        **options: Unpack[own.ResourceOptions],
    ) -> Any:
        """Add a resource object; or a text, bytes, or a function as the resource with this URI.

        Raises DefinitionError, and NotOffered for an object of another framework.
        """
        uri = uri if resource is None else resource
        if isinstance(uri, (Resource, ResourceTemplate)):
            self.resource(uri.key, **uri.options())(uri.function())
            return uri
        if mark_of(uri, "resource") is not None:
            return self.add_resource(component_of(uri)) and uri
        if not isinstance(uri, str):
            raise NotOffered(
                "fastrpc.compat: add_resource takes an address and what is there: "
                "mcp.add_resource('docs://guide', text), or a resource object of fastrpc.compat"
            )
        return super().add_resource(uri, content, **options)

    def add_template(self, template: ResourceTemplate) -> ResourceTemplate:
        """Add a template object, and return it. Raises DefinitionError."""
        self.add_resource(template)
        return template

    def add_resource_fn(self, fn: Function, uri: str, **options: Unpack[CompatResourceOptions]) -> None:
        """Add a function as the resource, or the template, with this URI. Raises as `resource` does."""
        self.resource(uri, **options)(fn)

    # --- prompts --------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        def prompt(
            self, name_or_fn: Function, *, name: str | None = None, **options: Unpack[CompatPromptOptions]
        ) -> Function: ...
        @overload
        def prompt(
            self,
            name_or_fn: str | None = None,
            *,
            name: str | None = None,
            **options: Unpack[CompatPromptOptions],
        ) -> Callable[[Function], Function]: ...

    def prompt(self, name_or_fn: Any = None, *positional: Any, **options: Any) -> Any:
        """Register a function as a prompt: ``@mcp.prompt``, ``@mcp.prompt()`` or ``@mcp.prompt("name")``.

        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        return _decorated(self.add_prompt, name_or_fn, _by_name("prompt", positional, options))

    def add_prompt(
        self, prompt: Function, name: str | None = None, **options: Unpack[CompatPromptOptions]
    ) -> Function:
        """Add a function or a prompt object, and return it. Raises as `add_tool` does."""
        if isinstance(prompt, Prompt):
            if prompt.enabled:
                self.add_prompt(prompt.function(), prompt.key, **prompt_options(prompt))
                describe_arguments(self.registries.prompts.get(prompt.key), prompt.arguments or ())
            return prompt
        _check_function("add_prompt", prompt, "give it a function")
        name, options = _with_mark(prompt, "prompt", name, options)
        given = _component_options("prompt", {"name": name, **options})
        given["meta"] = meta_of(given)
        given["icons"] = plain(given.get("icons"))
        if given.pop("enabled", True) is False:
            return prompt
        if not self._duplicates.allow(self.registries.prompts, given.get("name") or name_of(prompt), given):
            return prompt
        self._declared["prompt", given.get("name") or name_of(prompt)] = prompt
        described = with_meta(prompt, given["meta"], self.dialect, "prompt")
        function = adapted(described, self, prompt_value)
        self._restrict("prompt", given.get("name") or name_of(function), given.pop("auth", None))
        super().prompt(function, **given)
        self._style_failures(self.registries.prompts.get(given.get("name") or name_of(function)))
        self._complete_all()
        return prompt

    def _style_failures(self, definition: Any) -> None:
        """Send clients what the original sends for exceptions of a prompt, a resource or a template:
        their texts, or nothing of them where they are hidden. A tool has this server's style."""
        hides = self._style.hides_failures
        if definition.kind == "prompt":
            rendering = self.dialect.rendering.replace("{name}", definition.name)
            definition.failure_prefix = None if hides else rendering
            definition.missing_prefix = MISSING
        elif hides:
            definition.style = MASKED_READING

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
        """Register the handler for each argument that has no other completion."""
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

    if not TYPE_CHECKING:  # type checkers should report an unknown name

        def __getattr__(self, name: str) -> Any:
            raise not_offered("FastMCP", name, _ALTERNATIVES)


class SdkFastMCP(FastMCP[LifespanResult]):
    """`FastMCP` of the official SDK 1.x."""

    dialect = SDK_1


class MCPServer(FastMCP[LifespanResult]):
    """`MCPServer` of the official SDK 2.x."""

    dialect = SDK_2
    nameless = "mcp-server"

    if TYPE_CHECKING:

        def __init__(
            self, name: str | None = None, *texts: str | None, **options: Unpack[MCPServerOptions]
        ) -> None: ...


def create_proxy(target: Any, *, name: str | None = None, **options: Any) -> FastMCP:
    """Return a proxy of what `FastMCP.as_proxy` accepts, as FastMCP 3 and 4 have it. `options` are those of
    `FastMCP`. Raises ValueError and DefinitionError."""
    return FastMCP.as_proxy(target, name, **options)


# ---------------------------------------------------------------------------------------- internal


_POSITIONAL = ("title", "description", "annotations", "icons", "meta", "structured_output")
"""What may follow the name of a tool by position, in the official SDK."""


def _decorated(add: Callable[..., Any], name_or_fn: Any, options: dict[str, Any]) -> Any:
    """Add a function now, or return the decorator that adds it."""
    if name_or_fn is None:
        return partial(_add_with, add, options)
    if isinstance(name_or_fn, str):
        return partial(_add_with, add, {"name": name_or_fn, **options})
    return add(name_or_fn, **options)


def _by_name(what: str, positional: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with those that were given by position, as the official SDK takes them. An empty
    description is none there. Raises TypeError."""
    if not positional:
        return options
    names = _POSITIONAL[:2] + _POSITIONAL[3:4] if what == "prompt" else _POSITIONAL
    if len(positional) > len(names):
        raise TypeError(f"{what}: expected at most {len(names)} values after the name, got {len(positional)}")
    found = {**options, **dict(zip(names, positional, strict=False))}
    return {name: value for name, value in found.items() if name != "description" or value}


def _add_with(add: Callable[..., Any], options: dict[str, Any], function: Any) -> Any:
    return add(function, **options)


def _check_function(what: str, thing: Any, cure: str) -> None:
    if not callable(thing) and not isinstance(thing, (staticmethod, classmethod)):
        raise NotOffered(f"fastrpc.compat: {what} takes no {type(thing).__name__}; {cure}")


def _with_mark(function: Any, kind: str, name: str | None, options: Any) -> tuple[str | None, Any]:
    """Return the name and the options of a function, with those that it was marked with."""
    mark = mark_of(function, kind)
    if mark is None:
        return name, options
    marked = dict(mark.options)
    own = marked.pop("name", None)
    return name or own, {**marked, **options}


def _component_options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a component that have an effect here: what a client that asks for no task, and
    offers no apps, would see. Raises NotOffered."""
    from fastrpc.compat.components.app_metadata import with_app

    return _own_options(kind, with_app(options), _TOOL_OPTIONS, ("task",))


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
