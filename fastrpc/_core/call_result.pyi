"""The result of a tool call, for a client."""

from typing import Any

class AnswerTail:
    """What stood behind the text of an earlier line: the rest of its result. For the compiled core."""

class CallResult:
    """The result of a tool call (MCP, tools: CallToolResult). Raises InvalidAnswer for a dict that is none.

    `raw`: the result as received. `content`: its content blocks, dicts. `structured`: its structured content,
    None without. `is_error`: whether the tool failed; the content says how. `meta`: its ``_meta``.
    """

    def __init__(self, raw: dict[str, Any]) -> None: ...
    @property
    def raw(self) -> dict[str, Any]: ...
    @property
    def content(self) -> list[dict[str, Any]]: ...
    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
    @property
    def structured(self) -> Any: ...
    @property
    def is_error(self) -> bool: ...
    @property
    def meta(self) -> dict[str, Any]: ...
