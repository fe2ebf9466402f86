"""Tools as objects: `Tool`, `FunctionTool`, and tools made of other tools (`Tool.from_tool`).

An object is what a server is given or shows; a call of a `FunctionTool` that was added costs what a decorated
function costs. A subclass of `Tool` that overrides ``run`` is called through it, with its arguments as the
client sent them.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import FunctionType

from fastrpc.compat.calls.typed_content import typed_block
from fastrpc.compat.dialect import FASTMCP
from fastrpc.compat.errors import tool_error
from fastrpc.compat.field_types import FieldType, ModelType
from fastrpc.compat.functions.declaring import tool_definition
from fastrpc.compat.models import dumped, typed
from fastrpc.compat.values import ToolResult
from fastrpc.errors import ArgumentError, DefinitionError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from typing_extensions import Self

    from fastrpc.definitions.tool import Tool as Definition
    from fastrpc.schema import Signature

UNSET: Any = ...
"""Stands for an option that was not given."""

MEMBERS = {"parameters": "inputSchema", "output_schema": "outputSchema", "meta": "_meta"}
DESCRIBED = ("name", "title", "description", "annotations", "icons")


class Tool(ModelType):
    """A tool: `name`, `description`, `parameters` (the input schema), `output_schema`, `annotations`, `tags`,
    `meta`, `title`, `icons`, `version`, `auth` (its checks), and whether it is `enabled`. Further options are
    attributes.

    Subclasses have ``async def run(self, arguments)``, which returns a `ToolResult` or what a function may
    return; as in the SDK it may have a second parameter, the Context. Without one the option `fn` is called.
    """

    description: str | None = None
    _others: dict[str, Any] | None = None
    """Members of the descriptor that another server has sent and no version of MCP names."""

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        self.name: str = name or str(getattr(type(self), "name", type(self).__name__))
        self.parameters: dict[str, Any] = getattr(type(self), "parameters", None) or {
            "type": "object",
            "properties": {},
        }
        self.title: str | None = None
        self.output_schema: dict[str, Any] | None = None
        self.annotations: Any = None
        self.icons: Any = None
        self.meta: dict[str, Any] | None = None
        self.tags: set[str] = set()
        self.version: str | None = None
        self.auth: Any = None
        self.enabled = True
        for option, value in options.items():
            setattr(self, option, set(value or ()) if option == "tags" else value)

    @property
    def key(self) -> str:
        """The name, under which a server knows it."""
        return self.name

    if TYPE_CHECKING:

        async def run(self, arguments: dict[str, Any]) -> Any: ...

    else:  # in the SDK the method has three parameters, in FastMCP one

        async def run(self, arguments, context=None, convert_result=False):
            """Call the tool. Raises ToolError, and what the tool raises."""
            function = self.__dict__.get("fn")
            if function is None:
                raise NotImplementedError(f"{type(self).__name__} has no run")
            metadata = self.__dict__.get("fn_metadata")
            if metadata is not None:
                inline = context is not None and context.fastmcp.dialect.runs_inline
                named = self.__dict__.get("context_kwarg")
                call = metadata.calling(function, runs_inline=inline)
                return await call(arguments, **({named: context} if named else {}))
            value = function(**arguments)
            return await value if hasattr(value, "__await__") else value

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Any) -> FunctionTool:
        """Return the tool that calls a function; options as in ``@mcp.tool``. Raises DefinitionError."""
        return FunctionTool(fn, name=name, **options)

    @classmethod
    def from_tool(
        cls,
        tool: Tool | Callable[..., Any],
        *,
        name: str | None = None,
        transform_fn: Callable[..., Any] | None = None,
        transform_args: Mapping[str, ArgTransform] | None = None,
        **options: Any,
    ) -> TransformedTool:
        """Return a tool made of another one: renamed, with other arguments, or called by `transform_fn`,
        which calls the first one by `forward`. Raises DefinitionError."""
        parent = tool if isinstance(tool, Tool) else FunctionTool(tool)
        given = {name: value for name, value in options.items() if value is not UNSET}
        return TransformedTool(parent, transform_fn, transform_args or {}, name=name or parent.name, **given)

    def descriptor(self) -> dict[str, Any]:
        """Return the entry in tools/list (MCP: Tool)."""
        found = {member: dumped(getattr(self, member)) for member in DESCRIBED}
        found |= {member: dumped(getattr(self, name)) for name, member in MEMBERS.items()}
        found["_meta"] = described_meta(self)
        return {**(self._others or {}), **{name: value for name, value in found.items() if value is not None}}

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Return the tool as the SDK's model, with other members than its own where they are given."""
        changed = {MEMBERS.get(name, name): dumped(value) for name, value in overrides.items()}
        return typed("Tool", {**self.descriptor(), **changed})

    def copy(self, *, update: Any = None, **others: Any) -> Self:
        """Return a copy with other values of some attributes."""
        return self.model_copy(update={**(update or {}), **others})

    def enable(self) -> None:
        """Offer the tool, where it is added from now on."""
        self.enabled = True

    def disable(self) -> None:
        """Offer it no more, where it is added from now on."""
        self.enabled = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def described_meta(component: Any) -> dict[str, Any] | None:
    """Return the ``_meta`` of a component's descriptor: tags and version are stored there, as in FastMCP."""
    meta: dict[str, Any] | None = dumped(component.meta)
    own = dict((meta or {}).get("fastmcp") or {})
    if component.tags:
        own["tags"] = sorted(component.tags)
    if component.version is not None:
        own["version"] = str(component.version)
    return {**(meta or {}), "fastmcp": own} if own else meta


class FunctionTool(Tool):
    """A tool that calls a function, `fn`. `options` are those that it is added with."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        given = {name: value for name, value in options.items() if value is not None and value is not UNSET}
        self._show(fn, given, definition_of(fn, given))

    def _show(self, fn: Callable[..., Any], given: dict[str, Any], definition: Definition) -> None:
        """Take the attributes of a definition, and those that were given."""
        self.fn = fn
        self.options = {name: value for name, value in given.items() if name != "name"}
        self._definition = definition
        shown = {name: value for name, value in given.items() if name not in ("name", "description")}
        super().__init__(name=definition.name, **shown)
        self.description = definition.description
        if "ui" in (definition.meta or {}):
            self.meta = {**(self.meta or {}), "ui": (definition.meta or {})["ui"]}
        self.parameters = definition.signature.input_schema
        self.output_schema = definition.signature.output_schema

    async def run(self, arguments: dict[str, Any], *given: object) -> ToolResult:
        return await run_definition(self._definition, arguments)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        found = super().model_copy(update=update, deep=deep)
        found.options = {**self.options, **(update or {})}
        found.options.pop("name", None)
        return found


def definition_of(fn: Callable[..., Any], options: Mapping[str, Any]) -> Definition:
    """Return the definition of a function that is called without a server. Raises DefinitionError."""
    given = {
        name: value for name, value in options.items() if name not in ("enabled", "version", "auth", "task")
    }
    return tool_definition(fn, given, FASTMCP, FASTMCP.style, None)


async def run_definition(definition: Definition, arguments: dict[str, Any]) -> ToolResult:
    """Call a tool outside of a server's request. Raises ToolError for arguments that do not fit, and what the
    function raises."""
    from contextvars import copy_context
    from functools import partial
    from json import loads

    from fastrpc import running_call
    from fastrpc.engine.results import Results

    signature = definition.signature
    bound = _bound(signature, arguments)
    context = running_call.current()
    if definition.is_async or definition.run == "inline" or context is None or context._channel is None:
        value = signature.call(definition.function, bound, context)
    else:
        call = partial(signature.call, definition.function, bound, context)
        value = await context._channel.in_thread(partial(copy_context().run, call))
    if hasattr(value, "__await__"):
        value = await value
    raw = loads(Results({"name": definition.name}).of(definition, value, LATEST_SESSION_VERSION))
    return result_of(raw)


def _bound(signature: Signature, arguments: dict[str, Any]) -> list[Any]:
    """Return the values of a tool's parameters. Raises ToolError for arguments that do not fit."""
    from fastrpc.compat.functions.strict_arguments import check_strictly

    try:
        check_strictly(signature, arguments)
        return signature.bind(arguments)
    except ArgumentError as error:
        raise tool_error(str(error)) from None


def result_of(raw: dict[str, Any]) -> ToolResult:
    """Return a CallToolResult as an object with the attributes of FastMCP's ToolResult."""
    found = ToolResult(None, raw.get("structuredContent"), raw.get("_meta"), bool(raw.get("isError")))
    found.content = [typed_block(block) for block in raw.get("content", ())]
    return found


# ------------------------------------------------------------------------------ tools made of tools


class ArgTransform(FieldType):
    """What becomes of an argument of the parent: another `name` or `description`, a `default` (or what
    `default_factory` returns), another `type`, `examples`; with `hide` clients do not see it and it has its
    default; `required=True` takes its default away."""

    def __init__(
        self,
        name: str = UNSET,
        description: str | None = UNSET,
        default: Any = UNSET,
        default_factory: Callable[[], Any] = UNSET,
        type: Any = UNSET,
        hide: bool = False,
        required: bool = UNSET,
        examples: Any = UNSET,
    ) -> None:
        if default is not UNSET and default_factory is not UNSET:
            raise ValueError("ArgTransform: give either default or default_factory")
        if hide and required is True:
            raise ValueError("ArgTransform: a hidden argument cannot be required")
        self.name = name
        self.description = description
        self.default = default
        self.default_factory = default_factory
        self.type = type
        self.hide = hide
        self.required = required
        self.examples = examples

    @property
    def has_default(self) -> bool:
        """Whether it gives the argument a value where the client does not."""
        return self.default is not UNSET or self.default_factory is not UNSET

    def value(self) -> Any:
        """Return its default."""
        return self.default if self.default_factory is UNSET else self.default_factory()

    def schema(self, parent: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the argument, from that of the parent's."""
        found = dict(parent)
        if self.type is not UNSET:
            from fastrpc.schema import describe

            def of_type(value: Any) -> None: ...

            of_type.__annotations__["value"] = self.type
            found = {**describe(of_type).input_schema["properties"]["value"]}
            if "description" in parent:
                found["description"] = parent["description"]
        if self.description is not UNSET:
            found.pop("description", None)
            if self.description is not None:
                found["description"] = self.description
        if self.default is not UNSET:
            found["default"] = self.default
        if self.examples is not UNSET:
            found["examples"] = self.examples
        if self.required is True:
            found.pop("default", None)
        return found


class ToolTransformConfig(ModelType):
    """How a tool is changed where it is added: `name`, `title`, `description`, `tags`, `meta`, `enabled`, and
    `arguments`, an `ArgTransform` for each name."""

    def __init__(
        self, *, arguments: Mapping[str, Any] | None = None, enabled: bool = True, **options: Any
    ) -> None:
        self.arguments = dict(arguments or {})
        self.enabled = enabled
        self.options = options
        self.name: str | None = options.get("name")

    def apply(self, tool: Tool) -> TransformedTool:
        """Return the changed tool."""
        changed = {
            name: each if isinstance(each, ArgTransform) else ArgTransform(**dumped(each))
            for name, each in self.arguments.items()
        }
        found = Tool.from_tool(tool, transform_args=changed, **self.options)
        found.enabled = self.enabled
        return found


_running: ContextVar[TransformedTool] = ContextVar("fastrpc_transformed_tool")


async def forward(**arguments: Any) -> Any:
    """Call the parent of the running tool, with the names that the transformed tool has.

    Raises RuntimeError outside of a ``transform_fn``.
    """
    tool = _transformed()
    return await tool.parent.run(tool.parent_arguments(arguments))


async def forward_raw(**arguments: Any) -> Any:
    """Call the parent of the running tool, with the parent's own names. Raises as `forward` does."""
    return await _transformed().parent.run(arguments)


def _transformed() -> TransformedTool:
    try:
        return _running.get()
    except LookupError:
        raise RuntimeError("forward: no transformed tool is running") from None


class TransformedTool(Tool):
    """A tool made of another one: see `Tool.from_tool`. Raises DefinitionError for an argument that the
    parent does not have, and for two of one name."""

    def __init__(
        self,
        parent: Tool,
        transform_fn: Callable[..., Any] | None,
        transform_args: Mapping[str, ArgTransform],
        **options: Any,
    ) -> None:
        self.parent = parent
        self.transform_fn = transform_fn
        self.transform_args = dict(transform_args)
        inherited = {
            name: getattr(parent, name)
            for name in (
                "title",
                "description",
                "tags",
                "annotations",
                "icons",
                "meta",
                "output_schema",
                "auth",
                "version",
                "enabled",
            )
        }
        super().__init__(**{**inherited, **options})
        if self.auth is None:
            self.auth = parent.auth  # ``auth=None`` does not lift the parent's checks
        self.parameters = self._parameters()
        self._function: Definition | None = None
        if transform_fn is not None:
            self._takes_others = _takes_others(transform_fn)
            described = _without_others(transform_fn) if self._takes_others else transform_fn
            self._function = definition_of(described, {"name": self.name})
            self._add_function(self._function)

    def _parameters(self) -> dict[str, Any]:
        schema = self.parent.parameters
        properties, required = schema.get("properties", {}), list(schema.get("required", ()))
        unknown = [name for name in self.transform_args if name not in properties]
        if unknown:
            known = ", ".join(properties) or "none"
            raise DefinitionError(f"{self.name}: the parent has no argument {unknown[0]!r}; it has {known}")
        found: dict[str, Any] = {}
        needed: list[str] = []
        self._names: dict[str, str] = {}
        for name, each in properties.items():
            change = self.transform_args.get(name) or ArgTransform()
            if change.hide:
                if not change.has_default and name in required:
                    raise DefinitionError(f"{self.name}: {name!r} is hidden and required; give it a default")
                continue
            shown = name if change.name is UNSET else change.name
            if shown in found:
                raise DefinitionError(f"{self.name}: two arguments are called {shown!r}")
            found[shown] = change.schema(each)
            self._names[shown] = name
            if change.required is True or (name in required and not change.has_default):
                needed.append(shown)
        result = {**schema, "properties": found, "required": needed}
        if not needed:
            del result["required"]
        return result

    def _add_function(self, function: Definition) -> None:
        """Show the arguments of the function, too: alone, unless it takes all others by ``**kwargs``."""
        own = function.signature.input_schema
        takes_others = self._takes_others
        shown = self.parameters["properties"] if takes_others else {}
        properties = {
            name: {**self.parameters["properties"].get(name, {}), **schema}
            for name, schema in own["properties"].items()
        }
        needed = [*own.get("required", ())]
        if takes_others:
            needed += [name for name in self.parameters.get("required", ()) if name not in properties]
        self.parameters = {"type": "object", "properties": {**shown, **properties}}
        if needed:
            self.parameters["required"] = needed
        self.output_schema = function.signature.output_schema or self.output_schema

    def parent_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the parent: by its names, with hidden values and defaults."""
        found = {}
        for name, value in arguments.items():
            if name not in self._names:
                raise tool_error(f"{name}: there is no such argument; there are {', '.join(self._names)}")
            found[self._names[name]] = value
        for name, change in self.transform_args.items():
            if name not in found and change.has_default:
                found[name] = change.value()
        return found

    async def run(self, arguments: dict[str, Any]) -> Any:
        missing = [name for name in self.parameters.get("required", ()) if name not in arguments]
        if missing:
            raise tool_error(f"{missing[0]}: required, missing")
        if self._function is None:
            return await self.parent.run(self.parent_arguments(arguments))
        from fastrpc import running_call
        from fastrpc.compat.context import Context

        token = _running.set(self)
        try:
            signature = self._function.signature
            bound = _bound(signature, arguments)
            context = running_call.current()
            if self._takes_others:
                named = signature.named(bound)
                if signature.context_parameter is not None and context is not None:
                    named[signature.context_parameter] = Context(context, context.server)
                rest = {name: value for name, value in arguments.items() if name not in named}
                value = self.transform_fn(**named, **rest)  # type: ignore[misc]
            else:
                value = signature.call(self._function.function, bound, context)
            return await value if hasattr(value, "__await__") else value
        finally:
            _running.reset(token)


_VARIABLE_KEYWORD = 0x08


def _takes_others(function: Any) -> bool:
    """Whether a function takes arguments of any name."""
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _VARIABLE_KEYWORD)


def _without_others(function: Any) -> Any:
    """Return a function like this one, for its description, that has its named parameters only."""
    code = function.__code__.replace(co_flags=function.__code__.co_flags & ~_VARIABLE_KEYWORD)
    found = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    found.__kwdefaults__ = function.__kwdefaults__
    found.__annotations__ = dict(function.__annotations__)
    return found
