"""Logs what handlers raise: a failure in full once in a while, and how often it happens in between.

A failure is known by its handler, the type of the exception, and the file and line of the innermost frame
that is not fastrpc's. The first one is written with its traceback; further ones are counted, which costs
a microsecond or two: nothing of the exception is formatted. The next one behind `SECONDS` is written in full
again, with the count. What has been counted since is written at the end of the server, or when its place is
given to a newer one: `MOST_PLACES` are kept.

Formatting (a millisecond) and writing happen on a thread of their own that lives as long as there is
something to write: with an event loop or without, no answer waits for the log, nor for a standard error that
nobody reads. The first failure of a process imports `threading` for that, on the way of its answer. How a
record looks is `fastrpc.log`'s affair.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from fastrpc import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Protocol

    class NamedHandler(Protocol):
        """What serves requests: a tool, a resource, a prompt, a completion."""

        @property
        def kind(self) -> str: ...
        @property
        def name(self) -> str: ...


SECONDS = 60.0
"""A failure is not written in full again before these have passed."""
MOST_PLACES = 256
MOST_PENDING = 64
"""Failures that may wait to be written in full; more are counted, and written when they happen again."""
LAST_SECONDS = 1.0
"""How long a standard error that nobody reads can hold up the end."""


class Place:
    """A place where a handler fails: how often it has since the record before, and when the next is due.

    `due` is a time of ``time.monotonic()``; a place that is not kept any longer has 0.
    """

    __slots__ = ("count", "due", "message", "where")

    def __init__(self, message: str, where: str) -> None:
        self.message = message
        self.where = where
        self.count = 0
        self.due = 0.0

    def take_count(self) -> str:
        """Return the count as words, "" if it is 0, and begin anew."""
        count, self.count = self.count, 0
        return f"{count:,} more" if count else ""


_places: dict[Hashable, Place] = {}
_pending: list[tuple[str, BaseException | None]] = []
_lock = allocate_lock()
"""Held for a few instructions while one of these two changes, or the writing begins or ends."""
_writing = allocate_lock()
"""Held while there is something to write."""


def report(what: NamedHandler | str, error: BaseException) -> Place:
    """Log a failure: of a handler, or of what a sentence names. Costs below 2 µs where it is only counted."""
    failed = type(error)
    file, line = _place_of(error)
    key = (what, failed, file, line) if isinstance(what, str) else (what.kind, what.name, failed, file, line)
    place = _places.get(key)
    if place is not None and monotonic() < place.due:
        place.count += 1
    else:
        place = _write_in_full(key, what, error, f"{file}:{line}")
    return place


def _place_of(error: BaseException) -> tuple[str, int]:
    """Return file and line of the innermost frame that is not ours; of the innermost one if all are."""
    traceback = found = error.__traceback__
    while traceback is not None:
        if not log.is_own(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    return ("", 0) if found is None else (found.tb_frame.f_code.co_filename, found.tb_lineno)


def _write_in_full(key: Hashable, what: NamedHandler | str, error: BaseException, where: str) -> Place:
    """Have a failure written with its traceback."""
    with _lock:
        place = _places.pop(key, None)
        if place is None:
            sentence = what if isinstance(what, str) else f"{what.kind} {what.name} failed"
            place = Place(f"{sentence}: {type(error).__name__}", where)
        if len(_pending) >= MOST_PENDING:
            place.count += 1
        else:
            more = place.take_count()
            since = f" ({more} since it was last written)" if more else ""
            _pending.append((place.message + since, error))
            place.due = monotonic() + SECONDS
        _places[key] = place  # the youngest
        if len(_places) > MOST_PLACES:
            _forget(next(iter(_places)))
        idle = bool(_pending) and _writing.acquire(False)
    if idle:
        _begin_writing()
    return place


def _forget(key: Hashable) -> None:
    """Give a place up, and have its count written."""
    place = _places.pop(key)
    place.due = 0.0
    more = place.take_count()
    if more and len(_pending) < MOST_PENDING + MOST_PLACES:
        _pending.append((f"{place.message}: {more}, at {place.where}", None))


# --- the writing ------------------------------------------------------------------------------------------


def _begin_writing() -> None:
    """Write what is pending on a thread of its own; here, if none can be had."""
    import atexit
    import threading  # by this thread: who imports it first is taken for the main one

    atexit.unregister(finish)
    atexit.register(finish)
    try:
        threading.Thread(target=_write, args=(True,), name="fastrpc-log", daemon=True).start()
    except RuntimeError:  # no thread is left, or the interpreter ends
        _write(False)


def _write(patient: bool) -> None:
    """Write until nothing is pending, `patient` as long as nobody reads standard error."""
    while True:
        while patient and not log.has_room(LAST_SECONDS):
            pass
        with _lock:
            if not _pending:
                _writing.release()
                return
            message, error = _pending.pop(0)
        try:
            log.write("error", message, error)
        except Exception:
            pass  # a handler of the program's own logging has raised: nobody is there to hear of it
        del error


def flush(seconds: float = LAST_SECONDS) -> bool:
    """Wait until all that is pending is written, for at most so long; say whether it is."""
    if not _writing.acquire(True, seconds):
        return False
    _writing.release()
    return True


def finish() -> None:
    """The server ends: write what has been counted, and forget. Bounded in time."""
    with _lock:
        for key in list(_places):
            _forget(key)
        idle = bool(_pending) and _writing.acquire(False)
    if idle:
        _begin_writing()
    flush()


def _begin_anew() -> None:
    """In a child process: what its parent has to write is not the child's."""
    global _lock, _writing
    _lock, _writing = allocate_lock(), allocate_lock()
    _places.clear()
    _pending.clear()


os.register_at_fork(after_in_child=_begin_anew)
log.at_end(finish)
