"""`ErrorHandlingMiddleware` logs and counts errors and gives them codes; `RetryMiddleware` tries again what
has failed by a passing error. Where nothing fails they cost one coroutine."""

from __future__ import annotations

import logging

from fastrpc.compat.errors import McpError, NotFoundError, ValidationError
from fastrpc.compat.middleware.base import Middleware, MiddlewareContext
from fastrpc.compat.middleware.records import Log
from fastrpc.errors import ArgumentError, InvalidParams, ProtocolError, ResourceNotFound, UnknownName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext

NOT_FOUND = (UnknownName, ResourceNotFound)
MOST_COUNTED, OTHERS = 1000, "<other>"
"""How many kinds of errors are counted each by itself, and the name that counts the rest: methods have the
names that clients send."""


def code_of(error: BaseException, method: str) -> tuple[int, str]:
    """Return the JSON-RPC code for an error, by its class or that of its cause, and the original's words
    before its text."""
    kind = type(error if isinstance(error, NOT_FOUND) else error.__cause__ or error)
    if issubclass(kind, (FileNotFoundError, KeyError, NotFoundError, *NOT_FOUND)):
        return (-32002, "Resource not found") if method.startswith("resources/") else (-32001, "Not found")
    if issubclass(kind, (ValueError, TypeError, ArgumentError, ValidationError, InvalidParams)):
        return -32602, "Invalid params"
    if issubclass(kind, PermissionError):
        return -32000, "Permission denied"
    from asyncio import TimeoutError as FormerTimeoutError  # another class up to Python 3.10

    if issubclass(kind, (TimeoutError, FormerTimeoutError)):
        return -32000, "Request timeout"
    return -32603, "Internal error"


class ErrorHandlingMiddleware(Middleware):
    """Logs each error (logger ``fastmcp.errors``) and counts it, and turns it into a JSON-RPC error.

    `include_traceback` logs the traceback too; `error_callback` is called with the error and the context;
    with ``transform_errors=False`` the error stays what it is.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        include_traceback: bool = False,
        error_callback: Callable[[Exception, MiddlewareContext[Any]], None] | None = None,
        transform_errors: bool = True,
    ) -> None:
        self._log = Log(logger, "fastmcp.errors")
        self.logger = self._log.logger
        self.include_traceback = include_traceback
        self.error_callback = error_callback
        self.transform_errors = transform_errors
        self.error_counts: dict[str, int] = {}

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        try:
            return await call_next(context)
        except Exception as error:
            self._note(error, context)
            changed = self._transformed(error, context.method or "")
            if changed is error:
                raise
            raise changed from error

    def get_error_stats(self) -> dict[str, int]:
        """Return how many errors there were, by ``class:method``."""
        return dict(self.error_counts)

    def _note(self, error: Exception, context: MiddlewareContext[Any]) -> None:
        kind, method = type(error).__name__, context.method or "unknown"
        counted = f"{kind}:{method}"
        if counted not in self.error_counts and len(self.error_counts) >= MOST_COUNTED - 1:
            counted = OTHERS
        self.error_counts[counted] = self.error_counts.get(counted, 0) + 1
        text = f"{method}: {kind}: {error}"
        if self.include_traceback:
            from traceback import format_exception

            trace = format_exception(type(error), error, error.__traceback__)
            text = f"{text}\n{''.join(trace).rstrip()}"
        self._log.write(logging.ERROR, "%s", text)
        if self.error_callback is not None:
            try:
                self.error_callback(error, context)
            except Exception as failure:
                self._log.write(
                    logging.ERROR, "error_callback failed: %s: %s", type(failure).__name__, failure
                )

    def _transformed(self, error: Exception, method: str) -> Exception:
        code = getattr(getattr(error, "error", None), "code", None)
        has_code = isinstance(code, int) or (
            isinstance(error, ProtocolError) and not isinstance(error, (*NOT_FOUND, InvalidParams))
        )
        if has_code or not self.transform_errors:
            return error
        code, words = code_of(error, method)
        return McpError(code, f"{words}: {error}")


class RetryMiddleware(Middleware):
    """Makes a request again, up to `max_retries` times, if it has failed with one of `retry_exceptions`, or
    because of one.

    The first time after `base_delay` seconds, then `backoff_multiplier` times as long, at most `max_delay`:
    logger ``fastmcp.retry``.
    """

    def __init__(
        self,
        max_retries: int = 3,
        base_delay: float = 1.0,
        max_delay: float = 60.0,
        backoff_multiplier: float = 2.0,
        retry_exceptions: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        logger: logging.Logger | None = None,
    ) -> None:
        self.max_retries = max_retries
        self.base_delay = base_delay
        self.max_delay = max_delay
        self.backoff_multiplier = backoff_multiplier
        self.retry_exceptions = retry_exceptions
        self._log = Log(logger, "fastmcp.retry")
        self.logger = self._log.logger

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        from asyncio import sleep

        for attempt in range(self.max_retries):
            try:
                return await call_next(context)
            except Exception as error:
                if not isinstance(error, self.retry_exceptions) and not isinstance(
                    error.__cause__, self.retry_exceptions
                ):
                    raise
                delay = min(self.base_delay * self.backoff_multiplier**attempt, self.max_delay)
                self._log.write(
                    logging.WARNING,
                    "%s: attempt %d of %d failed: %s: %s; the next one in %.1f s",
                    context.method,
                    attempt + 1,
                    self.max_retries + 1,
                    type(error).__name__,
                    error,
                    delay,
                )
            await sleep(delay)
        return await call_next(context)
