"""`ResponseLimitingMiddleware`: cuts results of tools that are too large. Each result is encoded once more,
to be measured."""

from __future__ import annotations

import logging

from fastrpc.compat.interception.results import replaced
from fastrpc.compat.middleware.base import Middleware, MiddlewareContext
from fastrpc.compat.middleware.records import Log
from fastrpc.compat.values import ToolResult
from fastrpc.content import block_of
from fastrpc.json_encoding import to_json
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext

AROUND = 50
"""Bytes of JSON around one text."""


class ResponseLimitingMiddleware(Middleware):
    """Replaces a result of more than `max_size` bytes by its texts, cut, and `truncation_suffix`.

    `tools` names the tools that are limited, None all; lists show them without an output schema, as what is
    cut has no structured content. Raises ValueError for a size below 1.
    """

    def __init__(
        self,
        *,
        max_size: int = 1_000_000,
        truncation_suffix: str = "\n\n[cut: the response was too large]",
        tools: list[str] | None = None,
    ) -> None:
        if max_size <= 0:
            raise ValueError(f"max_size: expected more than 0, got {max_size}")
        self.max_size = max_size
        self.truncation_suffix = truncation_suffix
        self.tools = None if tools is None else set(tools)
        self._log = Log(None, "fastmcp.middleware.response_limiting")

    def _is_limited(self, name: str) -> bool:
        return self.tools is None or name in self.tools

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        tools = await call_next(context)
        return [
            tool.model_copy(update={"output_schema": None}) if self._is_limited(tool.name) else tool
            for tool in tools
        ]

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        result = await call_next(context)
        name = context.message.name
        if not self._is_limited(name):
            return result
        sent = replaced(result)
        assert isinstance(sent.content, list)
        blocks = [block_of(part, LATEST_SESSION_VERSION) for part in sent.content]
        encoded = to_json({"content": blocks, "structuredContent": sent.structured, "_meta": sent.meta})
        if len(encoded) <= self.max_size:
            return result
        self._log.write(
            logging.WARNING,
            "%s: a result of %d bytes was cut: max_size=%d",
            name,
            len(encoded),
            self.max_size,
        )
        texts = [block["text"] for block in blocks if block.get("type") == "text"]
        text = "\n\n".join(texts) if texts else encoded.decode()
        return ToolResult(self._cut(text), meta=result.meta, is_error=result.is_error)

    def _cut(self, text: str) -> str:
        room = self.max_size - len(self.truncation_suffix.encode()) - AROUND
        return text.encode()[: max(room, 0)].decode(errors="ignore") + self.truncation_suffix
