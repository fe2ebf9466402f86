"""Sends records of Python's `logging` to the client of the call in which they are logged.

Call ``bridge()`` once, before the server runs. From then on each record that is logged while a handler runs
is sent to its client as a log message, if the client has asked for its level. Records outside of calls are
handled as before. Nothing is ever written to standard output.

With a bridge, call plans store the running call (`fastrpc.running_call`), which takes a fraction of a
microsecond a call. Without a bridge this module is not imported.
"""

from __future__ import annotations

import logging
import sys
from threading import local

from fastrpc import running_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.options import LogLevel

OWN = "fastrpc"
"""The logger of fastrpc itself, whose records are not sent to clients."""


class Bridge(logging.Handler):
    """The handler that `bridge` adds; `close` removes it."""

    def __init__(self, logger: logging.Logger, level: int | str) -> None:
        super().__init__(level)
        self.logger = logger
        self._sending = local()

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record to the client of the running call; do nothing outside a call."""
        call = running_call.current()
        if call is None or record.name == OWN or getattr(self._sending, "now", False):
            return
        self._sending.now = True  # records that are logged by the sending itself are not sent
        try:
            text = record.getMessage() if self.formatter is None else self.format(record)
            call.log(text, level_of(record.levelno), record.name)
        except Exception:
            self.handleError(record)
        finally:
            self._sending.now = False

    def close(self) -> None:
        """Stop sending."""
        self.logger.removeHandler(self)
        running_call.leave(self)
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
    running_call.keep(handler)
    return handler


def level_of(number: int) -> LogLevel:
    """Return MCP's name for a level of `logging`."""
    if number >= logging.CRITICAL:
        return "critical"
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    if number > logging.INFO:
        return "notice"
    return "info" if number == logging.INFO else "debug"
