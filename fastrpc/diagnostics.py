"""Writes log records and plain lines to standard error; records go through Python's `logging`.

The level is ``FASTRPC_LOG_LEVEL`` (default ``warning``). ``FASTRPC_LOG_FILE`` names a file to append to
instead; it is reopened after it has been moved (logrotate). The first record imports `logging`, so a server
without records does not pay for it. Secrets are masked, in tracebacks too. Characters that are not printable
are escaped, so a message with a line break cannot forge a record. A program that has configured logging keeps
its handlers. `write_line` writes a line for a person at a terminal, unchanged.

A traceback begins at the first frame outside fastrpc, asyncio and threads. If standard error is not read, a
record waits at most `WAIT_SECONDS` and is then dropped. The thread of `fastrpc.tracebacks` writes failures of
handlers, so no response waits for them.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from traceback import TracebackException
    from types import TracebackType
    from typing import Any

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
FILE_VARIABLE = "FASTRPC_LOG_FILE"
WAIT_SECONDS = 1.0
MOST_REMEMBERED = 1000
LONGEST_RECORD = 64 * 1024  # characters, with the traceback: a record may quote what a peer has sent
CUT = f"… (cut: a record has at most {LONGEST_RECORD:,} characters)"
ATOMIC = 512  # bytes that a pipe accepts at once if it accepts any (POSIX: PIPE_BUF)
PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OWN = (PACKAGE, "fastrpc/_core/")  # the file names in compiled modules
TOOLS = PACKAGE + "tools" + os.sep  # toolsets count as user code
_LIBRARY = os.path.dirname(os.__file__) + os.sep
CALLERS = tuple(
    _LIBRARY + name for name in ("asyncio" + os.sep, "concurrent" + os.sep, "threading.py", "contextlib.py")
)
"""Modules of the standard library whose frames precede a handler's."""
_logger: logging.Logger | None = None
_endings: list[Callable[[], object]] = []


_default_level = LEVELS["warning"]


def level() -> int:
    """Return the lowest level that is written, as a number of `logging`."""
    return LEVELS.get(os.environ.get("FASTRPC_LOG_LEVEL", "").lower(), _default_level)


def set_default_level(name: str) -> None:
    """Set the level that is used without FASTRPC_LOG_LEVEL. Raises KeyError for one not in `LEVELS`."""
    global _default_level
    _default_level = LEVELS[name]
    if _logger is not None:
        _logger.setLevel(level())


def configure_root(name: str) -> None:
    """Write the records of the program's loggers, from a level on, to standard error, with secrets masked. Do
    nothing if the program has configured logging, or has not imported it."""
    logging = sys.modules.get("logging")
    if logging is not None and not logging.root.handlers:
        handler = _stderr_handler()
        handler.setFormatter(_formatter())
        logging.root.addHandler(handler)
        logging.root.setLevel(LEVELS[name])


def write(at: str, message: str, error: BaseException | None = None) -> None:
    """Write a record, followed by the traceback of `error`. Raises KeyError if `at` is not in `LEVELS`."""
    number = LEVELS[at]
    if number >= level():
        message = message[: 2 * LONGEST_RECORD]  # not shorter: half a secret would not be masked
        message = message if message.isprintable() else _escaped(message)
        _prepare().log(number, message, exc_info=_shown(error))


class Once:
    """Writes each record once. A peer may cause any number of different ones: after `MOST_REMEMBERED` records
    all are forgotten, which bounds the memory."""

    def __init__(self, at: str) -> None:
        self._at = at
        self._written: set[int] = set()  # hashes: a text may be long

    def write(self, text: str) -> None:
        """Write a record at this level, unless it has been written."""
        if hash(text) not in self._written:
            if len(self._written) == MOST_REMEMBERED:
                self._written.clear()
            self._written.add(hash(text))
            write(self._at, text)


def write_line(text: str) -> None:
    """Write a line to stderr, if there is one: `print` could write to stdout, among the protocol."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            pass


def write_text(text: str) -> bool:
    """Write lines to stderr, if there is one. Return False if they are not read within `WAIT_SECONDS`.

    The caller must have escaped names from outside by `shown`.
    """
    descriptor = _descriptor_of(sys.stderr)
    if descriptor is None:
        write_line(text.removesuffix("\n"))
        return True
    try:
        if can_accept(descriptor, 0):
            sys.stderr.flush()  # keep the order with what was printed before
        return _send(descriptor, text.encode("utf-8", "backslashreplace"), WAIT_SECONDS)
    except OSError:
        return False  # the reader has closed it


def shown(name: str, longest: int) -> str:
    """Return a name from outside in a form that is safe to write: secrets are masked, unprintable characters
    are escaped, and it is cut to `longest` characters."""
    from fastrpc.redaction import masked

    name = masked(name)
    name = name if name.isprintable() else _escaped(name)
    return name if len(name) <= longest else name[: longest - 1] + "…"


def on_finish(function: Callable[[], object]) -> None:
    """Register a function that `finish` calls."""
    _endings.append(function)


def finish() -> None:
    """The server ends: call the functions of `on_finish`, which write pending counts."""
    for function in _endings:
        function()


def can_write(seconds: float) -> bool:
    """Return whether standard error accepts a record now, or within `seconds`.

    True if there is no standard error, or the log goes to a file.
    """
    descriptor = None if os.environ.get(FILE_VARIABLE) else _descriptor_of(sys.stderr)
    return True if descriptor is None else can_accept(descriptor, seconds)


# --- tracebacks -------------------------------------------------------------------------------------------


def is_own(file_name: str) -> bool:
    """Return whether a file belongs to fastrpc."""
    return file_name.startswith(OWN) and not file_name.startswith(TOOLS)


def authors_frame(traceback: TracebackType | None) -> TracebackType | None:
    """Return the innermost frame of a traceback outside fastrpc; None if all frames are fastrpc's."""
    found = None
    while traceback is not None:
        if not is_own(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    return found


def _is_internal(file_name: str) -> bool:
    return is_own(file_name) or file_name.startswith(CALLERS) or file_name.startswith("uvloop/")


def _shown(
    error: BaseException | None,
) -> tuple[type[BaseException], BaseException, TracebackType | None] | None:
    """Return `exc_info` for logging, with a traceback that begins at the first frame of user code."""
    if error is None:
        return None
    traceback = error.__traceback__
    while traceback is not None and _is_internal(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return type(error), error, traceback or error.__traceback__


def _cut(found: TracebackException) -> None:
    """Remove the frames before user code, also from chained exceptions and members of groups."""
    waiting, seen = [found], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        stack = one.stack
        ours = 0
        while ours < len(stack) and _is_internal(stack[ours].filename):
            ours += 1
        if ours < len(stack):
            del stack[:ours]
        members = getattr(one, "exceptions", None) or ()  # of a group; Python 3.10 has none
        waiting += [each for each in (one.__cause__, one.__context__, *members) if each is not None]


# --- logging ----------------------------------------------------------------------------------------------


def _escaped(text: str) -> str:
    """Return a text with line breaks, control characters and bidirectional controls escaped."""
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
    """Return the handler: for the log file, else for stderr; None if the program has configured logging."""
    path = os.environ.get(FILE_VARIABLE)
    if path:
        try:
            return _file_handler(path)
        except OSError as error:
            _say_where_the_log_is(path, error)
    return None if logger.hasHandlers() else _stderr_handler()


def _stderr_handler() -> logging.Handler:
    """Return a handler that writes to standard error and waits for its reader for a limited time only."""
    import logging

    class Stderr(logging.StreamHandler):  # type: ignore[type-arg]  # subscribed from 3.11 on
        left_out = 0

        def emit(self, record: logging.LogRecord) -> None:
            descriptor = _descriptor_of(self.stream)
            if descriptor is None:  # none, or an in-memory stream
                if self.stream is not None:
                    super().emit(record)
                return
            try:
                text = self.format(record) + "\n"
                if self.left_out:
                    text = (
                        f"fastrpc: {self.left_out} records were left out: standard error was not read\n{text}"
                    )
                data = text.encode("utf-8", "backslashreplace")
                if can_accept(descriptor, 0):
                    self.stream.flush()  # what other code has printed
                if _send(descriptor, data, 0 if self.left_out else WAIT_SECONDS):
                    self.left_out = 0
                else:
                    self.left_out += 1
            except OSError:
                pass  # the reader has closed it
            except Exception:
                self.handleError(record)

    return Stderr(sys.stderr)


def _descriptor_of(stream: Any) -> int | None:
    """Return the descriptor of a stream; None if it has none or is closed. Streams of programs that draw on
    the terminal themselves return -1 (textual)."""
    try:
        found: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return found if found >= 0 else None


def can_accept(descriptor: int, seconds: float) -> bool:
    """Return whether a descriptor accepts bytes, now or within `seconds`."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(round(seconds * 1000)))


def _send(descriptor: int, data: bytes, seconds: float) -> bool:
    """Write all of `data`; return False if that takes longer than `seconds`. Raises OSError."""
    from time import monotonic

    until = monotonic() + seconds
    view = memoryview(data)
    while view:
        if not can_accept(descriptor, max(0.0, until - monotonic())):
            return False
        try:
            view = view[os.write(descriptor, view[:ATOMIC]) :]
        except BlockingIOError:
            if monotonic() >= until:
                return False
    return True


def _say_where_the_log_is(path: str, error: OSError) -> None:
    write_line(f"fastrpc: {FILE_VARIABLE}: {path}: {error.strerror}; the log is written here")


def _file_handler(path: str) -> logging.Handler:
    """Return a handler that appends records to a file. While the disk is full or the folder is missing, it
    writes them to standard error. Raises OSError."""
    from logging.handlers import WatchedFileHandler

    from fastrpc.regular_files import LineFile

    class LogFile(WatchedFileHandler):
        fails = False

        def _open(self) -> Any:
            return LineFile(self.baseFilename)

        def emit(self, record: logging.LogRecord) -> None:
            text = self.format(record)
            try:
                self.reopenIfNeeded()
                if self.stream is None:  # it was moved, and could not be created again
                    self.stream = self._open()
                    self._statstream()
                file: Any = self.stream
                file.append(f"{text}\n".encode("utf-8", "backslashreplace"))
                self.fails = False
            except OSError as error:
                if not self.fails:
                    self.fails = True
                    _say_where_the_log_is(path, error)
                write_line(text)

    return LogFile(path)


def _formatter() -> logging.Formatter:
    import logging

    from fastrpc.redaction import masked

    class Masking(logging.Formatter):
        def formatException(self, ei: Any) -> str:
            from traceback import TracebackException

            try:
                found = TracebackException(*ei)
            except (Exception, SystemExit) as error:  # attributes of an exception may be user code
                return f"its traceback cannot be shown: the exception raises {type(error).__name__}"
            _cut(found)
            return "".join(found.format()).rstrip("\n")[: 2 * LONGEST_RECORD]

        def format(self, record: logging.LogRecord) -> str:
            text = masked(super().format(record))
            return text if len(text) <= LONGEST_RECORD else text[:LONGEST_RECORD] + CUT

    return Masking("%(asctime)s %(levelname)s %(name)s: %(message)s")
