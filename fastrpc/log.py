"""Says things on standard error: records, one a line, through Python's own `logging`, and plain lines.

The level is ``FASTRPC_LOG_LEVEL`` (default ``warning``); ``FASTRPC_LOG_FILE`` names a file that records are
appended to instead, taken up again at its name when it was moved away (logrotate). `logging` is imported by
the first record that is written, so a server with nothing to say never pays for it. Secrets are masked, in
tracebacks too, and what is not printable is escaped: whoever sends a line break does not write a record. A
program that has configured logging keeps its own handlers. What a person at a terminal is told, `say` writes
as it is.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from io import TextIOWrapper

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
FILE_VARIABLE = "FASTRPC_LOG_FILE"
_logger: logging.Logger | None = None


def level() -> int:
    """Return the lowest level that is written, as logging's number."""
    return LEVELS.get(os.environ.get("FASTRPC_LOG_LEVEL", "").lower(), LEVELS["warning"])


def write(at: str, message: str, error: BaseException | None = None) -> None:
    """Write a record at a level named as in `LEVELS`; the traceback of `error` follows it."""
    number = LEVELS[at]
    if number >= level():
        _prepare().log(number, message if message.isprintable() else _escaped(message), exc_info=error)


def say(text: str) -> None:
    """Write a line to stderr, if there is one. (`print` would fall back to stdout: the wire.)"""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            pass


def _escaped(text: str) -> str:
    """Return a text with escapes for line breaks, controls, and what turns the direction of writing."""
    return "".join(
        [char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text]
    )


def _prepare() -> logging.Logger:
    global _logger
    if _logger is None:
        import logging

        _logger = logging.getLogger("fastrpc")
        _logger.setLevel(level())
        handler = _handler(_logger)
        if handler is not None:
            handler.setFormatter(_formatter())
            _logger.addHandler(handler)
    return _logger


def _handler(logger: logging.Logger) -> logging.Handler | None:
    """Return where records go: the file that is named, else stderr unless the program says otherwise."""
    path = os.environ.get(FILE_VARIABLE)
    if path:
        try:
            return _file_handler(path)
        except OSError as error:
            say(f"fastrpc: {FILE_VARIABLE}: {path}: {error.strerror}; the log is written here")
    if logger.hasHandlers():
        return None
    import logging

    return logging.StreamHandler(sys.stderr)


def _file_handler(path: str) -> logging.Handler:
    """Return what appends records to a file. Raises OSError."""
    from logging.handlers import WatchedFileHandler

    from fastrpc.regular_files import open_regular

    class LogFile(WatchedFileHandler):
        def _open(self) -> TextIOWrapper:
            file = open_regular(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            return os.fdopen(file, "a", encoding="utf-8", errors="backslashreplace")

        def emit(self, record: logging.LogRecord) -> None:
            try:
                super().emit(record)
            except OSError:  # the file was moved, and none can be made in its place
                self.handleError(record)

        def handleError(self, record: logging.LogRecord) -> None:
            """The disk is full, or the folder is gone: the record is not lost with it."""
            say(self.format(record))

    return LogFile(path)


def _formatter() -> logging.Formatter:
    import logging

    from fastrpc.masking import masked

    class Masking(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return masked(super().format(record))

    return Masking("%(asctime)s %(levelname)s %(name)s: %(message)s")
