"""Converts the results of planned calls of tools into what the compiled connection encodes."""

from __future__ import annotations

from fastrpc.compat.lowlevel.values import _part
from fastrpc.content import ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SentResult(ToolResult):
    """A result as an original has made it: nothing of it is validated again."""

    __slots__ = ()
    is_checked = False


def result_of(result: Any) -> Any:
    """Return a CallToolResult of the SDK's 2.x as a `str`, if it is one text and nothing else, or a
    `SentResult`. Raises ToolError for a block of an unknown type."""
    content = [_part(block) for block in result.content]
    structured = result.structured_content
    meta = result.meta
    if (
        structured is None
        and not meta
        and not result.is_error
        and len(content) == 1
        and type(content[0]) is str
    ):
        return content[0]
    return SentResult(content, structured=structured, is_error=bool(result.is_error), meta=meta)
