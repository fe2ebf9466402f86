"""Says things on standard error: records, one a line, through Python's own `logging`, and plain lines.

The level is ``FASTRPC_LOG_LEVEL`` (default ``warning``). `logging` is imported by the first record
that is written, so a server with nothing to say never pays for it. Secrets are masked, in tracebacks too. A
program that has configured logging keeps its own handlers. What a person at a terminal is told, `say` writes
as it is.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_logger: logging.Logger | None = None


def level() -> int:
    """Return the lowest level that is written, as logging's number."""
    return LEVELS.get(os.environ.get("FASTRPC_LOG_LEVEL", "").lower(), LEVELS["warning"])


def write(at: str, message: str, error: BaseException | None = None) -> None:
    """Write a record at a level named as in `LEVELS`; the traceback of `error` follows it."""
    number = LEVELS[at]
    if number >= level():
        _prepare().log(number, message, exc_info=error)


def say(text: str) -> None:
    """Write a line to stderr, if there is one. (`print` would fall back to stdout: the wire.)"""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            pass


def _prepare() -> logging.Logger:
    global _logger
    if _logger is None:
        import logging

        from fastrpc.masking import masked

        class Masking(logging.Formatter):
            def format(self, record: logging.LogRecord) -> str:
                return masked(super().format(record))

        _logger = logging.getLogger("fastrpc")
        _logger.setLevel(level())
        if not _logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(Masking("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            _logger.addHandler(handler)
    return _logger
