"""Prompts and resources as objects, as FastMCP and the SDK have them.

`Prompt.from_function`, `TextResource`, `FileResource`, `FunctionResource` and the others are given to
``mcp.add_prompt``, ``add_resource`` and ``add_template``; a call costs what a decorated function costs.
"""

from __future__ import annotations

import os

from fastrpc.compat.components.tools import described_meta
from fastrpc.compat.field_types import ModelType
from fastrpc.compat.models import dumped, typed
from fastrpc.definitions.handler import docstring_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from typing_extensions import Self


class Component(ModelType):
    """What a server offers, beside tools: its attributes are the options that were given.

    `name`, `title`, `description`, `tags`, `meta`, `icons`, `version` and `auth` (its checks); None where
    they were not given.
    """

    def __init__(self, **options: Any) -> None:
        self.name: str | None = None
        self.title: str | None = None
        self.description: str | None = None
        self.tags: set[str] = set()
        self.meta: dict[str, Any] | None = None
        self.icons: Any = None
        self.version: str | None = None
        self.auth: Any = None
        self.enabled = True
        for option, value in options.items():
            if value is not None:
                setattr(self, option, set(value) if option == "tags" else value)

    _others: dict[str, Any] | None = None
    """Members of the descriptor that another server has sent and no version of MCP names."""
    is_docstring = False
    """Whether the description is the docstring of the function, unchanged."""

    OPTIONS: tuple[str, ...] = (
        *("name", "title", "description", "tags", "meta", "icons", "version", "auth", "enabled"),
    )

    def options(self) -> dict[str, Any]:
        """Return the options that it is added with."""
        found = {name: getattr(self, name, None) for name in self.OPTIONS}
        return {name: value for name, value in found.items() if value is not None}

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """Return a copy with other values of some attributes."""
        found = super().model_copy(update=update, deep=deep)
        found.__dict__.pop("_served", None)  # the definition by the values of before
        return found

    def copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """Do what `model_copy` does (FastMCP 2)."""
        return self.model_copy(update=update, deep=deep)

    def enable(self) -> None:
        """Offer it, where it is added from now on."""
        self.enabled = True

    def disable(self) -> None:
        """Offer it no more, where it is added from now on."""
        self.enabled = False

    def _raw(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return a descriptor of these members and those that all components have."""
        found = {"name": self.name, "title": self.title, "description": self.description, **members}
        found |= {"icons": dumped(self.icons), "_meta": described_meta(self)}
        return {**(self._others or {}), **{name: value for name, value in found.items() if value is not None}}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or ''!r})"


# ---------------------------------------------------------------------------------------- prompts


class PromptArgument(ModelType):
    """An argument of a prompt."""

    _others: dict[str, Any] | None = None

    def __init__(self, name: str, description: str | None = None, required: bool = False) -> None:
        self.name = name
        self.description = description
        self.required = required


class Prompt(Component):
    """A prompt that calls a function, `fn`; subclasses have ``async def render(self, arguments)`` instead."""

    def __init__(
        self, *, fn: Callable[..., Any] | None = None, arguments: Any = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.fn = fn
        self.arguments = arguments
        if fn is not None:
            self.name = self.name or name_of(fn)
            self.is_docstring = self.description is None
            self.description = self.description or docstring_of(fn)

    @property
    def key(self) -> str:
        """What identifies a prompt: its name."""
        return self.name or type(self).__name__

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Any) -> Prompt:
        """Return the prompt that calls a function; options as in ``@mcp.prompt``."""
        return cls(fn=fn, name=name, **options)

    async def render(self, arguments: dict[str, Any] | None = None) -> Any:
        """Return the messages for these arguments, as the function returns them."""
        if self.fn is None:
            raise NotImplementedError(f"{type(self).__name__} has no render")
        value = self.fn(**(arguments or {}))
        return await value if hasattr(value, "__await__") else value

    def function(self) -> Callable[..., Any]:
        """Return what a server calls. Raises TypeError for an argument that cannot be a parameter."""
        if self.fn is not None:
            return self.fn
        return with_parameters(self.render, [(each.name, each.required) for each in self.arguments or ()])

    def descriptor(self) -> dict[str, Any]:
        """Return the entry in prompts/list (MCP: Prompt)."""
        arguments = self.arguments
        if arguments is None and self.fn is not None:
            from fastrpc.compat.components.definitions import definition_of
            from fastrpc.protocol.versions import LATEST_SESSION_VERSION

            definition = definition_of("prompt", self, None)
            arguments = definition.arguments(LATEST_SESSION_VERSION)
            if self.is_docstring:
                self.description, self.is_docstring = definition.description, False
        listed = [each if isinstance(each, dict) else _argument(each) for each in arguments or ()]
        return self._raw({"name": self.key, "arguments": listed or None})

    def to_mcp_prompt(self, **overrides: Any) -> Any:
        """Return the prompt as the SDK's model."""
        return typed("Prompt", {**self.descriptor(), **dumped(overrides)})


def prompt_arguments(raw: dict[str, Any]) -> list[PromptArgument]:
    """Return the arguments of an entry of prompts/list."""
    found = []
    for each in raw.get("arguments") or ():
        argument = PromptArgument(each["name"], each.get("description"), bool(each.get("required")))
        others = {name: value for name, value in each.items() if not hasattr(argument, name)}
        argument._others = others or None
        found.append(argument)
    return found


def describe_arguments(definition: Any, arguments: Iterable[PromptArgument]) -> None:
    """Give the parameters of a prompt the descriptions of the arguments that its object has."""
    texts = {each.name: each.description for each in arguments if each.description}
    for parameter in definition.signature.parameters if texts else ():
        if parameter.name in texts:
            parameter.schema = {**parameter.schema, "description": texts[parameter.name]}


def _argument(argument: PromptArgument) -> dict[str, Any]:
    found = {"name": argument.name, "description": argument.description, "required": argument.required}
    return {**(argument._others or {}), **{name: value for name, value in found.items() if value is not None}}


def with_parameters(call: Any, parameters: list[tuple[str, bool]]) -> Callable[..., Any]:
    """Return a coroutine function with these parameters, texts, required or not; it calls ``call(arguments)``
    with those that were given. Raises TypeError for a name that is no identifier."""
    for name, _ in parameters:
        if not name.isidentifier():
            raise TypeError(f"{name!r} cannot be a parameter")
    ordered = sorted(parameters, key=lambda parameter: not parameter[1])
    listed = ", ".join(f"{name}: str" if required else f"{name}: str = None" for name, required in ordered)
    pairs = ", ".join(f"{name!r}: {name}" for name, _ in ordered)
    source = (
        f"async def function({listed}):\n"
        f"    given = {{{pairs}}}\n"
        "    return await call({name: value for name, value in given.items() if value is not None})\n"
    )
    made: dict[str, Any] = {}
    exec(source, {"call": call}, made)
    found: Callable[..., Any] = made["function"]
    return found


# -------------------------------------------------------------------------------------- resources


class Resource(Component):
    """A resource at a `uri`, with a `mime_type`; subclasses have ``async def read(self)``."""

    OPTIONS = (*Component.OPTIONS, "mime_type", "annotations")

    def __init__(self, *, uri: Any = None, mime_type: str | None = None, **options: Any) -> None:
        self.annotations: Any = None
        self.size: int | None = None
        super().__init__(**options)
        self.uri = str(uri)
        self.mime_type = mime_type or "text/plain"
        self.has_mime_type = True
        self.is_typed = mime_type is not None
        """Whether the type was given."""
        self.name = self.name or self.uri

    @property
    def key(self) -> str:
        """What identifies a resource: its URI."""
        return self.uri

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri: Any, **options: Any) -> FunctionResource:
        """Return the resource that a function returns."""
        return FunctionResource(fn=fn, uri=uri, **options)

    async def read(self) -> Any:
        """Return the content."""
        raise NotImplementedError(f"{type(self).__name__} has no read")

    def function(self) -> Callable[..., Any]:
        """Return what a server calls."""
        return self.read

    def descriptor(self) -> dict[str, Any]:
        """Return the entry in resources/list (MCP: Resource)."""
        return self._raw({"uri": str(self.uri), **_shown(self), "size": self.size})

    def to_mcp_resource(self, **overrides: Any) -> Any:
        """Return the resource as the SDK's model."""
        return typed("Resource", {**self.descriptor(), **dumped(overrides)})


def _shown(component: Any) -> dict[str, Any]:
    mime_type = component.mime_type if component.has_mime_type else None
    return {"mimeType": mime_type, "annotations": dumped(component.annotations)}


class TextResource(Resource):
    """A resource that is a `text`."""

    text: str

    async def read(self) -> str:
        return self.text


class BinaryResource(Resource):
    """A resource that is some bytes, `data`."""

    data: bytes

    async def read(self) -> bytes:
        return self.data


class FunctionResource(Resource):
    """A resource that a function, `fn`, returns."""

    def __init__(self, *, fn: Callable[..., Any], uri: Any, **options: Any) -> None:
        super().__init__(uri=uri, **{"name": name_of(fn), "description": docstring_of(fn), **options})
        self.fn = fn

    async def read(self) -> Any:
        value = self.fn()
        return await value if hasattr(value, "__await__") else value

    def function(self) -> Callable[..., Any]:
        return self.fn


class FileResource(Resource):
    """A resource that is a file: its `path`, absolute; `is_binary`, or its `mime_type` is no text's."""

    path: Any
    is_binary: bool | None = None
    encoding: str | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not os.path.isabs(self.path):
            raise ValueError(f"path: expected an absolute path, got {str(self.path)!r:.80}")

    async def read(self) -> str | bytes:
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, self._content)

    def _content(self) -> str | bytes:
        from fastrpc.regular_files import LARGEST, read_regular

        data = read_regular(str(self.path), LARGEST)
        text_types = ("text/", "application/json", "application/xml")
        is_binary = not self.mime_type.startswith(text_types) if self.is_binary is None else self.is_binary
        return data if is_binary else data.decode(self.encoding or "utf-8")


class DirectoryResource(Resource):
    """A resource that lists the files of a folder, `path`, that match a `pattern`, `recursive` or not."""

    path: Any
    pattern: str | None = None
    recursive: bool = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"mime_type": "application/json", **options})

    def list_files(self) -> list[Any]:
        """Return the paths of the files."""
        from pathlib import Path

        folder, pattern = Path(self.path), self.pattern or "*"
        found = folder.rglob(pattern) if self.recursive else folder.glob(pattern)
        return sorted(path for path in found if path.is_file())

    async def read(self) -> str:
        from fastrpc.json_encoding import to_json

        names = [os.path.relpath(path, self.path) for path in self.list_files()]
        return to_json({"files": names}).decode()


class ResourceTemplate(Component):
    """A resource template: a function, `fn`, is called with the variables of `uri_template`. Subclasses may
    define ``async def read(self, arguments)`` instead. `security` says which values these may have."""

    OPTIONS = Resource.OPTIONS

    def __init__(
        self,
        *,
        uri_template: str,
        fn: Callable[..., Any] | None = None,
        mime_type: str | None = None,
        security: Any = ...,
        **options: Any,
    ) -> None:
        self.annotations: Any = None
        super().__init__(**options)
        self.security = security
        self.uri_template = uri_template
        self.fn = fn
        self.mime_type = mime_type or "text/plain"
        self.has_mime_type = True
        if fn is not None:
            self.name = self.name or name_of(fn)
            self.description = self.description or docstring_of(fn)

    @property
    def key(self) -> str:
        """What identifies a template: its URI template."""
        return self.uri_template

    def options(self) -> dict[str, Any]:
        return {**super().options(), "security": self.security}

    @classmethod
    def from_function(
        cls, fn: Callable[..., Any], uri_template: str, name: str | None = None, **options: Any
    ) -> Self:
        """Return the template that calls a function; options as in ``@mcp.resource``."""
        return cls(fn=fn, uri_template=uri_template, name=name, **options)

    def matches(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables in a URI; None if it does not match."""
        from fastrpc.protocol.uri_template import Template

        return Template(self.uri_template).match(str(uri))

    async def read(self, arguments: dict[str, Any]) -> Any:
        """Return the content for these values, as the function returns it."""
        if self.fn is None:
            raise NotImplementedError(f"{type(self).__name__} has no read")
        value = self.fn(**arguments)
        return await value if hasattr(value, "__await__") else value

    def function(self) -> Callable[..., Any]:
        """Return what a server calls. Raises TypeError for a variable that cannot be a parameter."""
        if self.fn is not None:
            return self.fn
        from fastrpc.protocol.uri_template import Template

        template = Template(self.uri_template)
        names = [(name, name not in template.optional) for name in template.variables]
        return with_parameters(self.read, names)

    def descriptor(self) -> dict[str, Any]:
        """Return the entry in resources/templates/list (MCP: ResourceTemplate)."""
        return self._raw({"uriTemplate": self.uri_template, **_shown(self)})

    def to_mcp_template(self, **overrides: Any) -> Any:
        """Return the template as the SDK's model."""
        return typed("ResourceTemplate", {**self.descriptor(), **dumped(overrides)})
