"""`LoggingMiddleware` and `StructuredLoggingMiddleware`: two records for each message, when it comes and when
it has been answered, as ``key=value`` or as JSON."""

from __future__ import annotations

import logging
from time import perf_counter

from fastrpc.compat import models
from fastrpc.compat.middleware.base import Middleware, MiddlewareContext
from fastrpc.compat.middleware.records import Log
from fastrpc.errors import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext


def default_serializer(data: Any) -> str:
    """Return a message as JSON; what JSON does not have, as its text."""
    import json

    return json.dumps(models.dumped(data), default=str, ensure_ascii=False, separators=(",", ":"))


class BaseLoggingMiddleware(Middleware):
    """Logs messages. `methods` says of which methods, None of all; `include_payloads` adds the message,
    `include_payload_length` its length as JSON, `estimate_payload_tokens` a quarter of that."""

    NAME = ""
    max_payload_length: int | None = None

    def __init__(
        self,
        *,
        logger: logging.Logger | None = None,
        log_level: int = logging.INFO,
        include_payloads: bool = False,
        include_payload_length: bool = False,
        estimate_payload_tokens: bool = False,
        methods: list[str] | None = None,
        payload_serializer: Callable[[Any], str] | None = None,
    ) -> None:
        self._log = Log(logger, self.NAME)
        self.logger = self._log.logger
        self.log_level = log_level
        self.include_payloads = include_payloads
        self.include_payload_length = include_payload_length
        self.estimate_payload_tokens = estimate_payload_tokens
        self.methods = methods
        self.payload_serializer = payload_serializer

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if self.methods and context.method not in self.methods:
            return await call_next(context)
        common = {"method": context.method or "unknown", "source": context.source}
        shown = {"event": f"{context.type}_start", **common, **self._payload(context)}
        self._log.write(self.log_level, "%s", self.formatted(shown))
        began = perf_counter()
        try:
            result = await call_next(context)
        except FAILURES as error:
            shown = {"event": f"{context.type}_error", **common, "duration_ms": _since(began)}
            self._log.write(logging.ERROR, "%s", self.formatted({**shown, "error": str(error)}))
            raise
        shown = {"event": f"{context.type}_success", **common, "duration_ms": _since(began)}
        self._log.write(self.log_level, "%s", self.formatted(shown))
        return result

    def formatted(self, members: dict[str, Any]) -> str:
        """Return the text of a record."""
        return " ".join(f"{name}={value}" for name, value in members.items())

    def _payload(self, context: MiddlewareContext[Any]) -> dict[str, Any]:
        if not (self.include_payloads or self.include_payload_length or self.estimate_payload_tokens):
            return {}
        text = self._serialized(context.message)
        found: dict[str, Any] = {}
        if self.estimate_payload_tokens:
            found["payload_tokens"] = len(text) // 4
        if self.include_payload_length:
            found["payload_length"] = len(text)
        if self.include_payloads:
            most = self.max_payload_length
            found["payload"] = text if not most or len(text) <= most else f"{text[:most]}..."
            found["payload_type"] = type(context.message).__name__
        return found

    def _serialized(self, message: Any) -> str:
        if self.payload_serializer is not None:
            try:
                return self.payload_serializer(message)
            except Exception as error:
                self._log.write(
                    logging.WARNING, "payload_serializer failed: %s: %s", type(error).__name__, error
                )
        return default_serializer(message)


def _since(began: float) -> float:
    return round((perf_counter() - began) * 1000, 2)


class LoggingMiddleware(BaseLoggingMiddleware):
    """Logs each message as ``key=value``: logger ``fastmcp.middleware.logging``. A payload is cut after
    `max_payload_length` characters."""

    NAME = "fastmcp.middleware.logging"

    def __init__(self, *, max_payload_length: int = 1000, **options: Any) -> None:
        super().__init__(**options)
        self.max_payload_length = max_payload_length


class StructuredLoggingMiddleware(BaseLoggingMiddleware):
    """Logs each message as a JSON object: logger ``fastmcp.middleware.structured_logging``."""

    NAME = "fastmcp.middleware.structured_logging"

    def formatted(self, members: dict[str, Any]) -> str:
        import json

        return json.dumps(members)
