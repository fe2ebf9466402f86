"""What a tool may hand back besides plain values: `Text`, `Image` and `ToolResult`.

Each content helper knows its block on the wire (MCP, tools: tool result). Plain classes: importing
them costs nothing, and a tool that returns `str` never meets them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Content:
    """A block of a tool result. Subclasses say what it holds."""

    __slots__ = ()

    def to_block(self) -> dict[str, Any]:
        """Return the block as the JSON object that goes over the wire."""
        raise NotImplementedError


class Text(Content):
    """A text block."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def to_block(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


class Image(Content):
    """An image block: the encoded image (PNG, JPEG, GIF, WebP …) and its MIME type."""

    __slots__ = ("data", "mime_type")

    def __init__(self, data: bytes, mime_type: str = "image/png") -> None:
        self.data = data
        self.mime_type = mime_type

    def to_block(self) -> dict[str, Any]:
        from binascii import b2a_base64

        encoded = b2a_base64(self.data, newline=False).decode("ascii")
        return {"type": "image", "data": encoded, "mimeType": self.mime_type}


class ToolResult:
    """Full control over a tool's result.

    `content` is a `str`, a content helper, or a sequence of either; `structured` any JSON value for
    ``structuredContent`` (sent from protocol 2025-06-18 on); `is_error` marks a failure the model
    can react to; `meta` becomes the result's ``_meta``.

    Mind that widely used clients show the model **only** ``structuredContent`` where a result has
    both: put into `structured` all that the text says, or leave it out and give programs their
    facts in `meta`.
    """

    __slots__ = ("content", "is_error", "meta", "structured")

    def __init__(
        self,
        content: str | Content | Sequence[str | Content] | None = None,
        *,
        structured: Any = None,
        is_error: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.content = content
        self.structured = structured
        self.is_error = is_error
        self.meta = meta
