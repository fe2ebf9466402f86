"""The decorators `tool`, `resource` and `prompt` that belong to no server: they mark a function, which is
added to one later: ``mcp.add_tool(function)``, or by a `FileSystemProvider`. The function is returned.
"""

from __future__ import annotations

from functools import partial

from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

MARK = "__fastmcp__"


class Mark:
    """What a function was marked as: `kind`, and the options of the decorator."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        self.kind = kind
        self.options = options


def mark_of(function: Any, kind: str | None = None) -> Mark | None:
    """Return the mark of a function, of this kind; None if it has none."""
    found = getattr(function, MARK, None)
    if not isinstance(found, Mark) or kind not in (None, found.kind):
        return None
    return found


def _marked(kind: str, options: dict[str, Any], function: Function) -> Function:
    target = getattr(function, "__func__", function)
    setattr(target, MARK, Mark(kind, options))
    return function


def tool(name_or_fn: Any = None, **options: Any) -> Any:
    """Mark a function as a tool: ``@tool``, ``@tool()`` or ``@tool("name")``; options as in ``@mcp.tool``."""
    return _decorated("tool", name_or_fn, options)


def prompt(name_or_fn: Any = None, **options: Any) -> Any:
    """Mark a function as a prompt; options as in ``@mcp.prompt``."""
    return _decorated("prompt", name_or_fn, options)


def resource(uri: str, **options: Any) -> Any:
    """Mark a function as a resource or a template; options as in ``@mcp.resource``.

    Raises DefinitionError without a URI.
    """
    if not isinstance(uri, str):
        raise DefinitionError("@resource needs an address: @resource('docs://guide')")
    return partial(_marked, "resource", {"uri": uri, **options})


def _decorated(kind: str, name_or_fn: Any, options: dict[str, Any]) -> Any:
    if name_or_fn is None:
        return partial(_marked, kind, options)
    if isinstance(name_or_fn, str):
        return partial(_marked, kind, {"name": name_or_fn, **options})
    return _marked(kind, options, name_or_fn)


def component_of(function: Any) -> Any:
    """Return the component object of a marked function. Raises DefinitionError."""
    from fastrpc.compat.components.app_metadata import with_app
    from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate
    from fastrpc.compat.components.tools import FunctionTool

    mark = mark_of(function)
    assert mark is not None
    options = {name: value for name, value in with_app(mark.options).items() if value is not None}
    if mark.kind == "tool":
        return FunctionTool(function, **options)
    if mark.kind == "prompt":
        return Prompt.from_function(function, **options)
    uri = options.pop("uri")
    if "{" in uri:
        return ResourceTemplate.from_function(function, uri_template=uri, **options)
    return Resource.from_function(function, uri, **options)
