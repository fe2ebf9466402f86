"""Notifies clients of changes of their resources and of the list of resources, whichever process made them.

From time to time, and only while a client listens, one statement reads how often the listeners' spaces have
changed. A resource is looked up only if a space has changed. Each client is notified only of its own
resources, and of a list at most once in `LISTS_EVERY_SECONDS`. Lists are checked only after this process has
opened the store.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread

from . import _readers, _store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc import Server
    from fastrpc.subscriptions import ListListener, Subscriber

    from ._store.entries import Reader

    Counts = dict[tuple[str, str], int]

EVERY_SECONDS = 1.0
LISTS_EVERY_SECONDS = 2.0


class Watching:
    """The last known state of the resources below a URI for the subscribers of one server, by identity and
    subscription.

    `stamp` returns, for a reader and the rest of a URI, a value that differs after that resource has changed.
    """

    def __init__(self, server: Server, prefix: str, stamp: Callable[[Reader, str], object]) -> None:
        self._server = server
        self._prefix = prefix
        self._stamp = stamp
        self._known: dict[tuple[str, str, str], tuple[object, object]] = {}
        self._looks = False
        self._busy = Lock()

    def begin(self) -> None:
        """Begin to watch for a new subscriber: changes from now on are new to it."""
        with self._busy:
            _try(self._compare, self._subscribers())
        if not self._looks:
            self._looks = True
            self._server.watch(self._look, EVERY_SECONDS)

    def _look(self) -> None:
        found = self._subscribers()
        if found:
            _in_thread(self._busy, self._compare, found)
        else:
            self._looks = False
            self._server.unwatch(self._look)
            self._known = {}

    def _subscribers(self) -> list[Subscriber]:
        from fastrpc.subscriptions import subscribers

        return subscribers(self._server, self._prefix)

    def _compare(self, found: list[Subscriber]) -> None:
        """Notify those whose resource has changed since the last check."""
        readers = [_readers.reader_for(each.caller) for each in found]
        counts = _store.current().changes({reader.owner for reader in readers})
        now: dict[tuple[str, str, str], tuple[object, object]] = {}
        for each, reader in zip(found, readers, strict=True):
            key = reader.owner, reader.caller_class, each.uri
            before = self._known.get(key)
            if key not in now:
                count = _of_reader(counts, reader)
                is_same = before is not None and before[0] == count
                rest = each.uri.removeprefix(self._prefix)
                now[key] = before if is_same and before else (count, self._stamp(reader, rest))
            if before is not None and before[1] != now[key][1]:
                each.notify()
        self._known = now


class ListWatching:
    """The last known state of the list of resources for the clients of one server, by identity."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[tuple[str, str], object] = {}
        self._busy = Lock()

    def look(self) -> None:
        """Notify those whose list has changed since the last check."""
        from fastrpc.subscriptions import list_listeners

        if _store.is_open() and (found := list_listeners(self._server)):
            _in_thread(self._busy, self._compare, found)

    def _compare(self, found: list[ListListener]) -> None:
        store = _store.current()
        readers = [_readers.reader_for(each.caller) for each in found]
        counts = store.changes({reader.owner for reader in readers})
        known, now = self._known, {}
        for each, reader in zip(found, readers, strict=True):
            key = reader.owner, reader.caller_class
            now[key] = _of_reader(counts, reader)
            if known.get(key, _of_reader(store.changes_at_opening, reader)) != now[key]:
                each.notify()
        self._known = known | now


def attach(server: Server) -> None:
    """Notify clients of changes of the list of resources."""
    server.watch(ListWatching(server).look, LISTS_EVERY_SECONDS)


def _of_reader(counts: Counts, reader: Reader) -> object:
    """Return how often the spaces of a reader have changed."""
    return counts.get((reader.owner, ""), 0), counts.get((reader.owner, reader.caller_class), 0)


def _in_thread(busy: Lock, compare: Callable[[Any], None], found: Any) -> None:
    """Compare on a thread, unless the last check still waits for a slow database."""
    if not busy.acquire(blocking=False):
        return

    def run() -> None:
        try:
            _try(compare, found)
        finally:
            busy.release()

    Thread(target=run, daemon=True).start()


def _try(compare: Callable[[Any], None], found: Any) -> None:
    from fastrpc.storage import StorageError

    with suppress(StorageError):  # the next call raises it; the next check may succeed
        compare(found)
