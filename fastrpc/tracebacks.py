"""Logs exceptions of handlers: once in full, then counted for a while.

A failure is identified by its handler, the type of the exception, and the file and line of the innermost
frame outside fastrpc. The first one is logged with its traceback. Further ones are counted, which takes a
microsecond or two because nothing is formatted. After `SECONDS` the next one is logged in full again, with
the count. The remaining counts are logged when the server ends, or when an entry is replaced: at most
`MOST_PLACES` are stored.

Formatting (a millisecond) and writing happen on a separate thread, which ends when nothing is pending. No
response waits for the log or for a reader of standard error, with or without an event loop. The first failure
of a process imports `threading` before its response is sent. `fastrpc.diagnostics` formats the records.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, Protocol

    class NamedHandler(Protocol):
        """A handler: a tool, a resource, a prompt, or a completion."""

        kind: str
        name: str


SECONDS = 60.0
"""Seconds until the same failure is logged in full again."""
MOST_PLACES = 256
MOST_PENDING = 64
"""Failures that may wait to be logged in full. Others are counted, and logged when they occur again."""
LAST_SECONDS = 1.0
"""Seconds that a blocked standard error may delay the end of the process."""


class FailureSite:
    """One identified failure: how often it has occurred since its last record, and when it is logged again.

    `due` is a time of ``time.monotonic()``; 0 after the entry was removed.
    """

    def __init__(self, message: str, where: str) -> None:
        self.message = message
        self.where = where
        self.count = 0
        self.due = 0.0

    def take_count(self) -> str:
        """Return the count as text, "" if it is 0, and reset it."""
        count, self.count = self.count, 0
        return f"{count:,} more" if count else ""


class Unreadable(Exception):
    """Is logged instead of an exception whose attributes or class raise."""


_places: dict[Hashable, FailureSite] = {}
_pending: list[tuple[str, BaseException | None]] = []
_lock = allocate_lock()
"""Protects these two, and the start and end of writing; held for a few instructions."""
_writing = allocate_lock()
"""Held while records are pending."""


def report(what: NamedHandler | str, error: BaseException) -> FailureSite:
    """Log a failure of a handler, or one that a text describes. Takes below 2 µs if it is only counted.

    The caller continues after a failure, so this does not raise what the exception's class raises.
    """
    failed = type(error)
    try:
        file, line = _place_of(error)
        key = (
            (what, failed, file, line)
            if isinstance(what, str)
            else (what.kind, what.name, failed, file, line)
        )
        place = _places.get(key)
    except (Exception, SystemExit):
        if failed is Unreadable:
            raise
        return report(what, Unreadable(f"the exception {type.__repr__(failed)} raises when it is formatted"))
    if place is not None and monotonic() < place.due:
        place.count += 1
    else:
        place = _write_in_full(key, what, error, f"{file}:{line}")
    return place


def call(what: str, function: Callable[..., Any], *values: Any) -> None:
    """Call a user's function; what it raises is logged as `what`."""
    try:
        function(*values)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        report(what, error)


def _place_of(error: BaseException) -> tuple[str, int]:
    """Return file and line of the innermost frame outside fastrpc, or of the innermost frame."""
    found = diagnostics.authors_frame(error.__traceback__) or error.__traceback__
    return ("", 0) if found is None else (found.tb_frame.f_code.co_filename, found.tb_lineno)


def _write_in_full(key: Hashable, what: NamedHandler | str, error: BaseException, where: str) -> FailureSite:
    """Queue a failure to be logged with its traceback."""
    with _lock:
        place = _places.pop(key, None)
        if place is None:
            sentence = what if isinstance(what, str) else f"{what.kind} {what.name} failed"
            place = FailureSite(f"{sentence}: {type(error).__name__}", where)
        if len(_pending) >= MOST_PENDING:
            place.count += 1
        else:
            more = place.take_count()
            since = f" ({more} since it was last written)" if more else ""
            _pending.append((place.message + since, error))
            place.due = monotonic() + SECONDS
        _places[key] = place  # the most recent entry
        if len(_places) > MOST_PLACES:
            _evict(next(iter(_places)))
        idle = bool(_pending) and _writing.acquire(False)
    if idle:
        _begin_writing()
    return place


def _evict(key: Hashable) -> None:
    """Remove an entry, and queue its count."""
    place = _places.pop(key)
    place.due = 0.0
    more = place.take_count()
    if more and len(_pending) < MOST_PENDING + MOST_PLACES:
        _pending.append((f"{place.message}: {more}, at {place.where}", None))


# --- writing ------------------------------------------------------------------------------------------


def _begin_writing() -> None:
    """Write the pending records on a separate thread, or on this one if no thread can be started."""
    import atexit
    import threading  # here, because the thread that imports it first counts as the main thread

    atexit.unregister(finish)
    atexit.register(finish)
    try:
        threading.Thread(target=_write, args=(True,), name="fastrpc-log", daemon=True).start()
    except RuntimeError:  # no thread available, or the interpreter is ending
        _write(False)


def _write(patient: bool) -> None:
    """Write until nothing is pending. `patient`: wait until standard error is read."""
    while True:
        while patient and not diagnostics.can_write(LAST_SECONDS):
            pass
        with _lock:
            if not _pending:
                _writing.release()
                return
            message, error = _pending.pop(0)
        try:
            diagnostics.write("error", message, error)
        except BaseException:
            pass  # a logging handler of the program has failed, or the exception's code: nowhere to log it
        del error


def flush(seconds: float = LAST_SECONDS) -> bool:
    """Wait at most `seconds` until everything pending is written; return whether it is."""
    if not _writing.acquire(True, seconds):
        return False
    _writing.release()
    return True


def finish() -> None:
    """Log the remaining counts, and clear the entries: the server ends. Bounded in time."""
    with _lock:
        for key in list(_places):
            _evict(key)
        idle = bool(_pending) and _writing.acquire(False)
    if idle:
        _begin_writing()
    flush()


def _reset_after_fork() -> None:
    """In a forked child, drop the pending records: they belong to the parent."""
    global _lock, _writing
    _lock, _writing = allocate_lock(), allocate_lock()
    _places.clear()
    _pending.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
diagnostics.on_finish(finish)
