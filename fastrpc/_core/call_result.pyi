"""The result of a tool call, for a client."""

from typing import Any

class AnswerTail:
    """The bytes after the text of an earlier line, and what they encode. Used by the compiled core."""

class CallResult:
    """The result of a tool call (MCP, tools: CallToolResult). Raises InvalidAnswer for an invalid one.

    `raw`: the result as received. `content`: its content blocks, dicts. `structured`: its structured content,
    or None. `is_error`: whether the tool failed; the content is then the error message.
    `meta`: its ``_meta``.
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

def check_block(where: str, block: object) -> int:
    """Raise InvalidAnswer for what is no content block (MCP: ContentBlock). Types that MCP does not know are
    let through."""
