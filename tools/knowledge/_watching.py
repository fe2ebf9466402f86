"""Notifies who has subscribed to entries, or to the list of them, of changes: whichever process made them.

Once a second, and only while somebody has subscribed, one statement asks how often the spaces of those have
changed; only where one has is an entry looked up. Each is told of their own alone.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread

from . import _readers, _store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server
    from fastrpc.subscriptions import Subscriber

EVERY_SECONDS = 1.0


class Watching:
    """What the subscribers of one server know, by who they are and what they have subscribed to."""

    def __init__(self, server: Server, prefix: str) -> None:
        self._server = server
        self._prefix = prefix
        self._known: dict[tuple[str, str, str], tuple[object, object]] = {}
        self._looks = False
        self._busy = Lock()

    def begin(self) -> None:
        """Somebody has subscribed: what comes from now on is new to them."""
        with self._busy:
            self._try_to_compare(self._subscribers())
        if not self._looks:
            self._looks = True
            self._server.watch(self._look, EVERY_SECONDS)

    def _look(self) -> None:
        found = self._subscribers()
        if not found:
            self._looks = False
            self._server.unwatch(self._look)
            self._known = {}
        elif self._busy.acquire(blocking=False):  # else a slow database has not answered yet
            Thread(target=self._look_in_thread, args=(found,), daemon=True).start()

    def _look_in_thread(self, found: list[Subscriber]) -> None:
        try:
            self._try_to_compare(found)
        finally:
            self._busy.release()

    def _try_to_compare(self, found: list[Subscriber]) -> None:
        from fastrpc.storage import StorageError

        with suppress(StorageError):  # of which the next call tells; the next look may find it well again
            self._compare(found)

    def _subscribers(self) -> list[Subscriber]:
        from fastrpc.subscriptions import subscribers

        return subscribers(self._server, self._prefix)

    def _compare(self, found: list[Subscriber]) -> None:
        """Notify those for whom something is different from when it was looked at last."""
        store = _store.current()
        readers = [_readers.reader_for(each.caller) for each in found]
        counts = store.changes({reader.owner for reader in readers})
        now: dict[tuple[str, str, str], tuple[object, object]] = {}
        for each, reader in zip(found, readers, strict=True):
            key = reader.owner, reader.caller_class, each.uri
            if key not in now:
                number = counts.get((reader.owner, "")), counts.get((reader.owner, reader.caller_class))
                before = self._known.get(key)
                id = each.uri.removeprefix(self._prefix)
                is_same = before is not None and before[0] == number
                stamp = before[1] if is_same and before else store.stamp(reader, id) if id else number
                now[key] = number, stamp
            if self._known.get(key, now[key])[1] != now[key][1]:
                each.notify()
        self._known = now
