"""Content as typed blocks: what files read in results that they have made, and results that a class converts.

A `ToolResult` whose class has its own ``to_mcp_result`` (FastMCP) is sent as that says. Used for results
that middleware or a program reads; others are encoded as the tool returned them.
"""

from __future__ import annotations

from fastrpc.compat import models
from fastrpc.content import Block, Content, block_of
from fastrpc.content import ToolResult as PlainResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BLOCK_CLASSES = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}
NEWEST = "2025-11-25"
"""The version in whose form content is shown."""


class ReplacedResult(PlainResult):
    """A result that middleware has made: it is not held against the tool's output schema. What another server
    has sent in the `former` one, and no version of MCP names, goes on."""

    __slots__ = ("is_null", "rest")
    is_checked = False

    def __init__(self, content: Any, structured: Any, meta: Any, is_error: bool, former: Any = None) -> None:
        super().__init__(content, structured=structured, is_error=is_error)
        self.meta = meta or None  # another server's keys go on as they are
        self.rest = getattr(former, "rest", None)
        self.is_null = structured is None and getattr(former, "is_null", False)


def typed_block(raw: dict[str, Any]) -> Any:
    """Return a block of content as an object."""
    return models.typed(BLOCK_CLASSES.get(raw.get("type", ""), "TextContent"), raw)


def typed_part(part: Any) -> Any:
    """Return a part of content, whatever wrote it, as a typed block."""
    if isinstance(part, str):
        return typed_block({"type": "text", "text": part})
    if isinstance(part, Content):
        return typed_block(_given(block_of(part, NEWEST)))
    if isinstance(part, dict):
        return typed_block(part)
    return part


def _given(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not None}


def sdk_result(result: Any) -> Any:
    """Return a result as the SDK's low-level handlers do."""
    parts = models.dumped(typed_content(result))
    raw = {"content": parts, "structuredContent": result.structured, "isError": result.is_error}
    return models.typed("CallToolResult", {**raw, "_meta": result.meta} if result.meta else raw)


def has_own_form(result: Any) -> bool:
    """Return whether the class of a ToolResult says itself what is sent."""
    return not type(result).to_mcp_result.__module__.startswith("fastrpc.")


def in_own_form(result: Any) -> PlainResult:
    """Return the result that a class's own ``to_mcp_result`` makes: a CallToolResult, content, or content and
    structured content."""
    result.content = typed_content(result)
    made = result.to_mcp_result()
    if hasattr(made, "model_dump"):
        raw = models.dumped(made)
        blocks, structured = raw.get("content", ()), raw.get("structuredContent")
        meta, is_error = raw.get("_meta"), raw.get("isError", False)
    else:
        parts, structured = made if isinstance(made, tuple) else (made, None)
        blocks, meta, is_error = models.dumped(parts), result.meta, result.is_error
    return ReplacedResult([Block(block) for block in blocks], structured, meta, is_error)


def typed_content(result: PlainResult) -> list[Any]:
    """Return the content of a result, whatever wrote it, as typed blocks."""
    content = result.content
    if content is None:
        parts: list[Any] = []
        if result.structured is not None:
            from fastrpc.json_encoding import to_json

            parts = [to_json(result.structured).decode()]
    else:
        parts = [content] if isinstance(content, (str, Content)) else [*content]
    return [typed_part(part) for part in parts]
