"""A tool as the program sees it that has registered it: what is set on it changes what clients see and call.

``(await mcp.get_tool("search")).description = "…"``, ``mcp._tool_manager._tools["search"].fn = traced``: the
originals hand out the object itself. A copy is a tool by itself. Costs nothing until a program asks for it.
"""

from __future__ import annotations

from functools import update_wrapper

from fastrpc.compat.components.tools import FunctionTool, described_meta
from fastrpc.compat.declaring import tool_definition
from fastrpc.compat.values import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.definitions.tool import Tool as Definition

SCHEMAS = {"parameters": "input_schema", "output_schema": "output_schema"}


class RegisteredTool(FunctionTool):
    """The object of a function that a server has as a tool, with the options it was added with."""

    _server: Any = None

    def __init__(
        self, server: Any, definition: Definition, fn: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        self._show(fn, options, definition)
        self._declared = fn  # its parameters are those of the tool, whatever function is called
        self._server = server

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self._server is not None and not name.startswith("_"):
            self._write(name, value)
            self._server.registries.tools.changed()

    def _write(self, name: str, value: Any) -> None:
        """Change what is served as an attribute has been changed."""
        definition = self._definition
        if name in ("description", "title"):
            setattr(definition, name, value)
        elif name in ("annotations", "icons"):
            setattr(definition, name, plain(value) or {})
        elif name in ("meta", "tags"):
            definition.meta = described_meta(self)
        elif name in SCHEMAS:
            setattr(definition.signature, SCHEMAS[name], value)
        elif name == "enabled":
            offer = self._server.enable if value else self._server.disable
            offer(names={self.name}, components={"tool"})
        elif name == "fn":
            self._call(value)

    def _call(self, function: Callable[..., Any]) -> None:
        """Call another function, with the parameters of the tool."""
        server, former = self._server, self._definition

        def call(*values: Any, **named: Any) -> Any:
            return function(*values, **named)

        options = {"name": self.name, **self.options}
        changed = tool_definition(
            update_wrapper(call, self._declared), options, server.dialect, server._style, server
        )
        for name in ("annotations", "description", "icons", "meta", "title"):
            setattr(changed, name, getattr(former, name))
        for name in SCHEMAS.values():
            setattr(changed.signature, name, getattr(former.signature, name))
        registry = server.registries.tools
        entries = [changed if entry is former else entry for entry in registry]
        registry.replace([entry.key for entry in registry], entries)  # each stays in its place
        self._definition = changed

    def __copy__(self) -> FunctionTool:
        found = FunctionTool.__new__(FunctionTool)
        found.__dict__.update({name: value for name, value in vars(self).items() if name != "_server"})
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionTool:
        from copy import copy, deepcopy

        return deepcopy(copy(self), memo)
