"""Says things on standard error: records, one a line, through Python's own `logging`, and plain lines.

The level is ``FASTRPC_LOG_LEVEL`` (default ``warning``); ``FASTRPC_LOG_FILE`` names a file that records are
appended to instead, taken up again at its name when it was moved away (logrotate). `logging` is imported by
the first record that is written, so a server with nothing to say never pays for it. Secrets are masked, in
tracebacks too, and what is not printable is escaped: a message with a line break cannot forge a record. A
program that has configured logging keeps its own handlers. What a person at a terminal is told, `say` writes
as it is.

A traceback begins at the first frame that is not fastrpc's, nor of asyncio and threads, which call it. A
record waits at most `WAIT_SECONDS` for a standard error that nobody reads, and is left out then: those that
handlers cause are written by the thread of `fastrpc.tracebacks`, which no answer waits for.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from io import TextIOWrapper
    from traceback import TracebackException
    from types import TracebackType
    from typing import Any

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
FILE_VARIABLE = "FASTRPC_LOG_FILE"
WAIT_SECONDS = 1.0
ATOMIC = 512  # bytes that any pipe with room for some takes at once (POSIX: PIPE_BUF)
PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OWN = (PACKAGE, "fastrpc/_core/")  # compiled modules name their files so
TOOLS = PACKAGE + "tools" + os.sep  # toolsets: a user like any
_LIBRARY = os.path.dirname(os.__file__) + os.sep
CALLERS = tuple(
    _LIBRARY + name for name in ("asyncio" + os.sep, "concurrent" + os.sep, "threading.py", "contextlib.py")
)
"""What of the standard library stands in front of a handler."""
_logger: logging.Logger | None = None
_endings: list[Callable[[], object]] = []


def level() -> int:
    """Return the lowest level that is written, as logging's number."""
    return LEVELS.get(os.environ.get("FASTRPC_LOG_LEVEL", "").lower(), LEVELS["warning"])


def write(at: str, message: str, error: BaseException | None = None) -> None:
    """Write a record at a level named as in `LEVELS`; the traceback of `error` follows it."""
    number = LEVELS[at]
    if number >= level():
        message = message if message.isprintable() else _escaped(message)
        _prepare().log(number, message, exc_info=_shown(error))


def say(text: str) -> None:
    """Write a line to stderr, if there is one. (`print` would fall back to stdout: the wire.)"""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            pass


def write_text(text: str) -> bool:
    """Write lines to stderr, if there is one, for at most `WAIT_SECONDS`; False if nobody reads them so long.

    The lines are the caller's: what others have named stands in them as `shown` gives it.
    """
    descriptor = _descriptor_of(sys.stderr)
    if descriptor is None:
        say(text.removesuffix("\n"))
        return True
    try:
        if _takes(descriptor, 0):
            sys.stderr.flush()  # of what somebody has begun to print
        return _send(descriptor, text.encode("utf-8", "backslashreplace"), WAIT_SECONDS)
    except OSError:
        return False  # nobody reads it any more


def shown(name: str, longest: int) -> str:
    """Return a name that others have chosen as it stands in what is written: secrets masked, what is not
    printable escaped, and cut to so many characters."""
    from fastrpc.masking import masked

    name = masked(name)
    name = name if name.isprintable() else _escaped(name)
    return name if len(name) <= longest else name[: longest - 1] + "…"


def at_end(function: Callable[[], object]) -> None:
    """Have a function called by `finish`."""
    _endings.append(function)


def finish() -> None:
    """A server ends: have written what is only counted until then."""
    for function in _endings:
        function()


def has_room(seconds: float) -> bool:
    """Say whether a record can be written now, or within so many seconds: does anybody read standard error?

    True where there is none, and where the log goes to a file: then there is nothing to wait for.
    """
    descriptor = None if os.environ.get(FILE_VARIABLE) else _descriptor_of(sys.stderr)
    return True if descriptor is None else _takes(descriptor, seconds)


# --- tracebacks -------------------------------------------------------------------------------------------


def is_own(file_name: str) -> bool:
    """Say whether code is fastrpc's, by the file that it names."""
    return file_name.startswith(OWN) and not file_name.startswith(TOOLS)


def _is_in_front(file_name: str) -> bool:
    return is_own(file_name) or file_name.startswith(CALLERS) or file_name.startswith("uvloop/")


def _shown(
    error: BaseException | None,
) -> tuple[type[BaseException], BaseException, TracebackType | None] | None:
    """Return what logging takes for an exception, its traceback from the first frame of the user's on."""
    if error is None:
        return None
    traceback = error.__traceback__
    while traceback is not None and _is_in_front(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return type(error), error, traceback or error.__traceback__


def _cut(found: TracebackException) -> None:
    """Leave out the frames in front of the user's, of chained exceptions and of members of a group too."""
    waiting, seen = [found], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        stack = one.stack
        ours = 0
        while ours < len(stack) and _is_in_front(stack[ours].filename):
            ours += 1
        if ours < len(stack):
            del stack[:ours]
        members = getattr(one, "exceptions", None) or ()  # of a group, which 3.10 does not have
        waiting += [each for each in (one.__cause__, one.__context__, *members) if each is not None]


# --- logging ----------------------------------------------------------------------------------------------


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
    return None if logger.hasHandlers() else _stderr_handler()


def _stderr_handler() -> logging.Handler:
    """Return what writes records to standard error, and waits for nobody who reads it for long."""
    import logging

    class Stderr(logging.StreamHandler):  # type: ignore[type-arg]  # subscribed from 3.11 on
        left_out = 0

        def emit(self, record: logging.LogRecord) -> None:
            descriptor = _descriptor_of(self.stream)
            if descriptor is None:  # none, or one that is kept in memory
                if self.stream is not None:
                    super().emit(record)
                return
            try:
                text = self.format(record) + "\n"
                if self.left_out:
                    text = f"fastrpc: {self.left_out} records were left out: nobody read them\n{text}"
                data = text.encode("utf-8", "backslashreplace")
                if _takes(descriptor, 0):
                    self.stream.flush()  # of what somebody has begun to print
                if _send(descriptor, data, 0 if self.left_out else WAIT_SECONDS):
                    self.left_out = 0
                else:
                    self.left_out += 1
            except OSError:
                pass  # nobody reads it any more
            except Exception:
                self.handleError(record)

    return Stderr(sys.stderr)


def _descriptor_of(stream: Any) -> int | None:
    """Return the descriptor of a stream; None if there is no stream, or it has none, or it is closed."""
    try:
        found: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return found


def _takes(descriptor: int, seconds: float) -> bool:
    """Say whether a descriptor takes bytes, or does so within so many seconds."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(round(seconds * 1000)))


def _send(descriptor: int, data: bytes, seconds: float) -> bool:
    """Write all of `data`; False if that was not possible within so many seconds. Raises OSError."""
    from time import monotonic

    until = monotonic() + seconds
    view = memoryview(data)
    while view:
        if not _takes(descriptor, max(0.0, until - monotonic())):
            return False
        try:
            view = view[os.write(descriptor, view[:ATOMIC]) :]
        except BlockingIOError:
            if monotonic() >= until:
                return False
    return True


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
        def formatException(self, ei: Any) -> str:
            from traceback import TracebackException

            found = TracebackException(*ei)
            _cut(found)
            return "".join(found.format()).rstrip("\n")

        def format(self, record: logging.LogRecord) -> str:
            return masked(super().format(record))

    return Masking("%(asctime)s %(levelname)s %(name)s: %(message)s")
