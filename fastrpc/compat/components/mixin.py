"""FastMCP's `MCPMixin`: a class whose marked methods become tools, resources and prompts of a server.

``class Files(MCPMixin)`` with ``@mcp_tool()`` methods, then ``Files().register_all(mcp, prefix="files")``.
"""

from __future__ import annotations

from inspect import getattr_static

from fastrpc.compat.components.objects import Prompt, Resource
from fastrpc.compat.components.tools import Tool
from fastrpc.definitions.handler import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

MARK = "__fastrpc_mixin__"


def mcp_tool(name: str | None = None, *, enabled: bool | None = None, **options: Any) -> Decorator:
    """Mark a method as a tool; `options` are those of ``Tool.from_function``."""
    return _marking("tool", enabled, {"name": name, **options})


def mcp_resource(
    uri: str, *, name: str | None = None, enabled: bool | None = None, **options: Any
) -> Decorator:
    """Mark a method as a resource; `options` are those of ``Resource.from_function``."""
    return _marking("resource", enabled, {"uri": uri, "name": name, **options})


def mcp_prompt(name: str | None = None, *, enabled: bool | None = None, **options: Any) -> Decorator:
    """Mark a method as a prompt; `options` are those of ``Prompt.from_function``."""
    return _marking("prompt", enabled, {"name": name, **options})


def _marking(kind: str, enabled: bool | None, options: dict[str, Any]) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        marks = {**getattr(function, MARK, {})}
        if enabled is not False:
            marks[kind] = {**options, "name": options["name"] or name_of(function)}
        setattr(function, MARK, marks)
        return function

    return decorate


class MCPMixin:
    """Registers the marked methods of an instance."""

    def register_tools(self, mcp_server: Any, prefix: str | None = None, separator: str = "_") -> None:
        """Add the tools to a server, their names prefixed. Raises DefinitionError."""
        for method, options in self._marked("tool", prefix, separator):
            mcp_server.add_tool(Tool.from_function(method, **options))

    def register_resources(self, mcp_server: Any, prefix: str | None = None, separator: str = "+") -> None:
        """Add the resources to a server, names and URIs prefixed. Raises DefinitionError."""
        for method, options in self._marked("resource", prefix, separator):
            if prefix:
                options["uri"] = f"{prefix}{separator}{options['uri']}"
            mcp_server.add_resource(Resource.from_function(method, **options))

    def register_prompts(self, mcp_server: Any, prefix: str | None = None, separator: str = "_") -> None:
        """Add the prompts to a server, their names prefixed. Raises DefinitionError."""
        for method, options in self._marked("prompt", prefix, separator):
            mcp_server.add_prompt(Prompt.from_function(method, **options))

    def register_all(
        self,
        mcp_server: Any,
        prefix: str | None = None,
        tool_separator: str = "_",
        resource_separator: str = "+",
        prompt_separator: str = "_",
    ) -> None:
        """Add everything to a server. Raises DefinitionError."""
        self.register_tools(mcp_server, prefix, tool_separator)
        self.register_resources(mcp_server, prefix, resource_separator)
        self.register_prompts(mcp_server, prefix, prompt_separator)

    def _marked(
        self, kind: str, prefix: str | None, separator: str
    ) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
        """Yield the methods of a kind with their options. Properties are not read."""
        for attribute in dir(self):
            marks = getattr(getattr_static(self, attribute, None), MARK, {})
            if kind in marks:
                options = dict(marks[kind])
                if prefix:
                    options["name"] = f"{prefix}{separator}{options['name']}"
                yield getattr(self, attribute), options
