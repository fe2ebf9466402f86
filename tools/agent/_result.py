"""Makes the results of tools: a text for the model, and facts for a program in ``_meta``."""

from __future__ import annotations

from fastrpc import ToolResult

from . import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FACTS = "fastrpc/facts"


def result(text: str, facts: dict[str, Any], *, is_error: bool = False, structured: Any = None) -> ToolResult:
    """Return a result. `structured` must say all that the text says, since clients may show it alone. Without
    it, the facts become ``structuredContent`` if ``FASTRPC_STRUCTURED`` asks for that."""
    if structured is None and _settings.STRUCTURED.read():
        structured = facts
    return ToolResult(text, is_error=is_error, meta={FACTS: facts}, structured=structured)
