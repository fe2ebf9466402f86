"""A tool as the program sees it that has registered it (`live_component`).

``(await mcp.get_tool("search")).description = "…"``, ``mcp._tool_manager._tools["search"].fn = traced``.
Costs nothing until a program asks for it.
"""

from __future__ import annotations

from copy import copy
from functools import update_wrapper

from fastrpc.compat.components.tools import FunctionTool, described_meta
from fastrpc.compat.context import Context
from fastrpc.compat.functions.declaring import tool_definition
from fastrpc.compat.registered import LiveComponent
from fastrpc.compat.values import plain, tool_value
from fastrpc.schema.passed_signature import PassedSignature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.definitions.tool import Tool as Definition

SCHEMAS = {"parameters": "input_schema", "output_schema": "output_schema"}


class RegisteredTool(LiveComponent, FunctionTool):
    """The object of a function that a server has as a tool, with the options it was added with."""

    _kind, _plain = "tool", FunctionTool
    _model: Any = None
    """The `FuncMetadata` that validates the arguments by its model; None: the signature validates them."""

    def __init__(
        self, server: Any, definition: Definition, fn: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        self._show(fn, options, definition)
        self._declared = fn  # its parameters are those of the tool, whatever function is called
        self._server = server

    def _write(self, name: str, value: Any) -> None:
        definition = self._definition
        if name in ("description", "title"):
            setattr(definition, name, value)
        elif name in ("annotations", "icons"):
            setattr(definition, name, plain(value) or {})
        elif name in ("meta", "tags"):
            definition.meta = described_meta(self)
        elif name in SCHEMAS:
            setattr(definition.signature, SCHEMAS[name], value)
        elif name == "auth":
            self._server._restrict("tool", self.name, value)
        elif name == "enabled":
            offer = self._server.enable if value else self._server.disable
            offer(names={self.name}, components={"tool"})
        elif name == "fn":
            self._call(value)
            if self._model is not None:
                self._validate_by(self._model)

    @property
    def fn_metadata(self) -> Any:
        """What the official SDK knows of the function (`function_metadata`). Another model of the arguments
        validates them from then on."""
        found = self.__dict__.get("_metadata")
        if found is None:
            from fastrpc.compat.components.function_metadata import func_metadata

            found = self.__dict__["_metadata"] = func_metadata(self._declared)
            found.on_change = self._validate_by
        return found

    def _validate_by(self, metadata: Any) -> None:
        """Call the function with what a pydantic model makes of the arguments."""
        former, self._model = self._definition, metadata
        call = metadata.calling(self.fn, runs_inline=self._server.dialect.runs_inline)
        signature = PassedSignature([], former.signature.input_schema)
        for name in ("output_schema", "wraps_result", "result_converter"):
            setattr(signature, name, getattr(former.signature, name))
        changed = copy(former)
        changed._signature, changed.is_async = signature, True
        changed.function = passing(call, self._server, metadata.context_parameter)
        self._replace(changed)

    def _call(self, function: Callable[..., Any]) -> None:
        """Call another function, with the parameters of the tool."""
        server, former = self._server, self._definition

        def call(*values: Any, **named: Any) -> Any:
            return function(*values, **named)

        options = {"name": self.name, **self.options}
        wrapped = update_wrapper(call, self._declared)
        made = tool_definition(wrapped, options, server.dialect, server._style, server)
        changed = copy(former)
        changed.function, changed.is_async = made.function, made.is_async
        self._replace(changed)

    def _replace(self, changed: Definition) -> None:
        """Serve another definition, in the place of the former."""
        self._serve_instead(self._definition, changed)
        self._definition = changed


def passing(call: Callable[..., Any], server: Any, context_parameter: str | None) -> Callable[..., Any]:
    """Return the function of a definition that is given all arguments as one dict, and the Context by this
    parameter."""

    async def function(arguments: dict[str, Any], context: Any) -> Any:
        direct = {} if context_parameter is None else {context_parameter: Context(context, server)}
        return tool_value(await call(arguments, **direct))

    return function
