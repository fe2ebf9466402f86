"""`TimingMiddleware` and `DetailedTimingMiddleware`: log how long requests take. A record for each costs some
microseconds, what is timed a clock read at both ends."""

from __future__ import annotations

import logging
from time import perf_counter

from fastrpc.compat.middleware.base import Middleware, MiddlewareContext
from fastrpc.compat.middleware.records import Log
from fastrpc.errors import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext


class _Timing(Middleware):
    NAME = ""

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO) -> None:
        self._log = Log(logger, self.NAME)
        self.logger = self._log.logger
        self.log_level = log_level

    async def _timed(self, what: str, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        began = perf_counter()
        try:
            result = await call_next(context)
        except FAILURES as error:
            self._log.write(self.log_level, "%s: failed after %.2f ms: %s", what, _since(began), error)
            raise
        self._log.write(self.log_level, "%s: %.2f ms", what, _since(began))
        return result


def _since(began: float) -> float:
    return (perf_counter() - began) * 1000


class TimingMiddleware(_Timing):
    """Logs the duration of each request: logger ``fastmcp.timing``, level INFO unless given."""

    NAME = "fastmcp.timing"

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed(context.method or "unknown", context, call_next)


class DetailedTimingMiddleware(_Timing):
    """Logs the duration of each call and list, with its target: logger ``fastmcp.timing.detailed``."""

    NAME = "fastmcp.timing.detailed"

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed(f"tool {context.message.name}", context, call_next)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed(f"resource {context.message.uri}", context, call_next)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed(f"prompt {context.message.name}", context, call_next)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed("list of tools", context, call_next)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed("list of resources", context, call_next)

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        return await self._timed("list of resource templates", context, call_next)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._timed("list of prompts", context, call_next)
