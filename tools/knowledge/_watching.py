"""Notifies clients of changes of what is theirs, whichever process made them: of resources that they have
subscribed to, and of the list of resources.

From time to time, and only while somebody waits for it, one statement asks how often the spaces of those have
changed; only where one has is a resource looked up. Each is told of their own alone, of a list at most once
in `LISTS_EVERY_SECONDS`. Lists are looked at only once this process has opened the store.
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
    """What the subscribers of one server know of the resources below a URI, by who they are and what they
    have subscribed to.

    `stamp` returns, of a reader and the rest of a URI, what is another value once that resource has changed.
    """

    def __init__(self, server: Server, prefix: str, stamp: Callable[[Reader, str], object]) -> None:
        self._server = server
        self._prefix = prefix
        self._stamp = stamp
        self._known: dict[tuple[str, str, str], tuple[object, object]] = {}
        self._looks = False
        self._busy = Lock()

    def begin(self) -> None:
        """Somebody has subscribed: what comes from now on is new to them."""
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
        """Notify those for whom something is different from when it was looked at last."""
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
    """What the clients of one server know of the list of resources, by who they are."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[tuple[str, str], object] = {}
        self._busy = Lock()

    def look(self) -> None:
        """Notify those whose list is different from when it was looked at last."""
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
    """Return how often what a reader may read has changed."""
    return counts.get((reader.owner, ""), 0), counts.get((reader.owner, reader.caller_class), 0)


def _in_thread(busy: Lock, compare: Callable[[Any], None], found: Any) -> None:
    """Compare on a thread, unless a slow database has not answered the look before yet."""
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

    with suppress(StorageError):  # of which the next call tells; the next look may find it well again
        compare(found)
