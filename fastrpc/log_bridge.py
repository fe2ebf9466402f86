"""Sends records of Python's own `logging` to the client of the call in which they are logged.

Call ``bridge()`` once, before the server runs; from then on each record that is logged while a handler runs
is sent to its client as a log message, if the client has asked for its level. Records outside of calls are
handled as before. Nothing is ever written to standard output.

With a bridge, call plans store the running call in a context variable: a fraction of a microsecond a call.
Without one this is not imported.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from threading import local

from fastrpc.engine import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.context import Context
    from fastrpc.options import LogLevel

OWN = "fastrpc"
"""The logger of fastrpc itself, whose records are not sent to clients."""

_call: ContextVar[Context | None] = ContextVar("fastrpc_call", default=None)

_bridges: set[Bridge] = set()


class Bridge(logging.Handler):
    """The handler that `bridge` adds; `close` removes it."""

    def __init__(self, logger: logging.Logger, level: int | str) -> None:
        super().__init__(level)
        self.logger = logger
        self._sending = local()

    def emit(self, record: logging.LogRecord) -> None:
        call = _call.get()
        if call is None or record.name == OWN or getattr(self._sending, "now", False):
            return
        self._sending.now = True  # records of the sending itself are not sent
        try:
            self._send(call, record)
        except Exception:
            self.handleError(record)
        finally:
            self._sending.now = False

    def _send(self, call: Context, record: logging.LogRecord) -> None:
        text = record.getMessage() if self.formatter is None else self.format(record)
        call.log(text, level_of(record.levelno), record.name)

    def close(self) -> None:
        """Stop sending."""
        self.logger.removeHandler(self)
        _bridges.discard(self)
        if not _bridges:
            runtime.scope = None
        super().close()


def bridge(logger: logging.Logger | str | None = None, level: int | str = logging.INFO) -> Bridge:
    """Send the records of `logger` and those below it, the root logger unless given, from `level` on.

    The logger's own level is lowered to `level` if it is higher. A logger without handlers still writes
    warnings to standard error. A message is sent without its traceback, unless the returned handler is given
    a formatter. Call it before the server runs.
    """
    target = logger if isinstance(logger, logging.Logger) else logging.getLogger(logger)
    if not target.hasHandlers():
        to_stderr = logging.StreamHandler(sys.stderr)
        to_stderr.setLevel(logging.WARNING)
        target.addHandler(to_stderr)
    handler = Bridge(target, level)
    if target.getEffectiveLevel() > handler.level:
        target.setLevel(handler.level)
    target.addHandler(handler)
    _bridges.add(handler)
    runtime.scope = Scoped
    return handler


def level_of(number: int) -> LogLevel:
    """Return MCP's name of a level of Python."""
    if number >= logging.CRITICAL:
        return "critical"
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    if number > logging.INFO:
        return "notice"
    return "info" if number == logging.INFO else "debug"


class Scoped:
    """Calls a handler with its hooks; records of it, and of tasks that it starts, belong to the call."""

    __slots__ = ("inner", "is_async")

    def __init__(self, handler: Any, inner: Any) -> None:
        self.inner = inner
        self.is_async = handler.is_async or (inner is not None and inner.is_async)

    def __call__(self, call: CallInfo) -> Any:
        if self.is_async:
            return self._run_async(call)
        before = _call.set(call.context)
        try:
            return self._enter(call)
        finally:
            _call.reset(before)

    async def _run_async(self, call: CallInfo) -> Any:
        _call.set(call.context)  # in the context of the task that runs this
        return await self._enter(call)

    def _enter(self, call: CallInfo) -> Any:
        return call.invoke() if self.inner is None else self.inner(call)
