"""A tool that is known by its descriptor: of a low-level server, or an object whose class has ``run``."""

from __future__ import annotations

from fastrpc.definitions.handler import Handler
from fastrpc.definitions.tool import Tool
from fastrpc.protocol.versions import known
from fastrpc.schema.passed_signature import PassedSignature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.context import Context
    from fastrpc.schema import Signature
    from fastrpc.tool_style import ToolStyle


class DescribedTool(Tool):
    """A tool with this descriptor (MCP: Tool), sent as it is. `function` receives all arguments, unchecked,
    and the Context; `style` is that of its errors."""

    __slots__ = ("raw",)

    def __init__(
        self,
        raw: dict[str, Any],
        function: Callable[[dict[str, Any], Context], Awaitable[Any]],
        style: ToolStyle,
    ) -> None:
        Handler.__init__(self, function, name=raw["name"])
        self.raw = raw
        self.title, self.description = raw.get("title"), raw.get("description")
        self.icons, self.meta = raw.get("icons"), raw.get("_meta")
        self.annotations = raw["annotations"] if raw.get("annotations") else {}
        self.effect = self.risk = self.task = None
        self.style = style
        self._input_schema, self._documents, self._structured = raw["inputSchema"], None, False

    def describe(self) -> Signature:
        return PassedSignature([], self.raw["inputSchema"])

    def descriptor(self, version: str) -> dict[str, Any]:
        return known("Tool", self.raw, version)
