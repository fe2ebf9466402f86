"""Notifies the clients of a server of changes, in this process and in the others that serve the same clients.
Imported with the first change, or by a server that is served by several processes.

All processes hear of what is announced, and of what each of them looks at by itself. One that serves a
session beside others then notifies its client only if no other one does (`SessionState.hears_changes`).
"""

from __future__ import annotations

from math import inf
from time import monotonic

from fastrpc.json_encoding import to_json
from fastrpc.protocol.lifecycle import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from fastrpc.engine.ports import NotifiedDispatcher
    from fastrpc.engine.visibility import VisibilityFilters


RECENT_SECONDS = 5.0
MOST_RECENT = 1000


class Announcements:
    """The changes of one server. `forget` forgets what has been made from the entries of a kind."""

    def __init__(
        self,
        dispatchers: Collection[NotifiedDispatcher],
        filters: VisibilityFilters,
        forget: Callable[[str], object],
        take_task_change: Callable[[str, str, str], object],
    ) -> None:
        self._dispatchers = dispatchers
        self._filters = filters
        self._forget = forget
        self._take_task_change = take_task_change
        self.carriers: list[Callable[[bytes], object]] = []
        """Send an announcement, as JSON, to the other processes that serve the same clients. Thread-safe."""
        self.recent: dict[str, float] | None = None
        """When resources have been announced as updated lately, by URI; None if no one needs to know."""

    def announce(self, change: str, *values: Any) -> None:
        """Notify the clients of a change (`CHANGES`), those of the other processes too. Thread-safe."""
        self.take(change, *values)
        if self.carriers:
            announcement = to_json([change, *values])
            for carrier in self.carriers:
                carrier(announcement)

    def take(self, change: str, *values: Any) -> None:
        """Notify the clients of this process of a change that another one has announced."""
        CHANGES[change](self, *values)

    def _notified(self) -> list[NotifiedDispatcher]:
        """Return those whose clients this process notifies of what all processes hear of."""
        return [each for each in list(self._dispatchers) if each.session.hears_changes]

    def list_changed(self, kind: str) -> None:
        """Forget what this process has made from the entries of a kind, and notify its clients."""
        self._forget(kind)
        for dispatcher in self._notified():
            dispatcher.changes.list_changed(kind)

    def lists_changed(self, concerns: Callable[[str], bool] | None = None) -> None:
        """Notify clients that filters show other entries: without `concerns` all clients of all processes,
        else those clients of this process for whose principal it returns true."""
        if concerns is None:
            self.announce("lists_changed")
        else:
            self._show_other_lists(concerns, list(self._dispatchers))

    def take_other_lists(self, concerns: Callable[[str], bool] = lambda principal: True) -> None:
        """Forget what filters have shown, and notify the clients that it `concerns`: all processes do so at
        the same time. Thread-safe."""
        self._show_other_lists(concerns, self._notified())

    def _show_other_lists(self, concerns: Callable[[str], bool], notified: list[NotifiedDispatcher]) -> None:
        self._filters.forget()
        if self._filters.enforces_filters:
            for dispatcher in list(self._dispatchers):
                dispatcher.changes.forget_plans()
        for dispatcher in notified:
            if concerns(dispatcher.principal):
                for kind in ("tool", "resource", "prompt"):
                    dispatcher.changes.list_changed(kind)

    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Notify this process's subscribers of a changed resource. `rest`: other members of the params."""
        if self.recent is not None:
            self._note_update(uri)
        for dispatcher in self._notified():
            dispatcher.changes.resource_updated(uri, rest)

    def _note_update(self, uri: str) -> None:
        """Remember that a resource was announced as updated."""
        from fastrpc.protocol.uri_template import normal

        assert self.recent is not None
        meant = normal(uri)
        self.recent.pop(meant, None)
        self.recent[meant] = monotonic()
        if len(self.recent) > MOST_RECENT:
            self.recent.pop(next(iter(self.recent)), None)

    def was_updated(self, meant: str) -> bool:
        """Whether a resource, a URI in its normal form, was announced as updated within `RECENT_SECONDS`: a
        client that has subscribed to it at another process meanwhile may have missed that."""
        return self.recent is not None and monotonic() - self.recent.get(meant, -inf) <= RECENT_SECONDS

    def missed(self) -> None:
        """Announcements of other processes were lost: notify this process's clients of all lists, and of each
        resource to which they have subscribed, as changed. Thread-safe."""
        uris: dict[str, None] = {}
        for dispatcher in self._notified():
            uris.update(dict.fromkeys(dispatcher.changes.subscribed()))
        for kind in ("tool", "resource", "prompt"):
            self.list_changed(kind)
        for uri in uris:
            self.resource_updated(uri)

    def task_changed(self, id: str, owner: str, worker: str) -> None:
        """A worker has changed a task of an owner."""
        self._take_task_change(id, owner, worker)

    def is_subscribed(self, uri: str) -> bool:
        """Whether a client that this process notifies has subscribed to a resource."""
        from fastrpc.protocol.uri_template import normal

        meant = normal(uri)
        return any(dispatcher.changes.has_subscribed(meant) for dispatcher in self._notified())

    def notify(self, method: str, params: dict[str, Any], *, is_heard_by_all: bool) -> None:
        """Send the clients with sessions a notification, if they are all one principal's. `is_heard_by_all`:
        the other processes that serve the same clients have received it, too."""
        from functools import partial

        sessions = [(each, each.session) for each in list(self._dispatchers)]
        ready = [each for each, session in sessions if session.state == READY and session.lasting]
        if len({each.principal for each in ready}) == 1:
            for dispatcher in ready:
                if not is_heard_by_all:
                    dispatcher.outbound.post(partial(dispatcher.outbound.notify, method, params))
                elif dispatcher.session.hears_changes:
                    dispatcher.outbound.post(partial(_notify_here, dispatcher, method, params))


def _notify_here(dispatcher: NotifiedDispatcher, method: str, params: dict[str, Any]) -> None:
    """Notify a client that hears of the same from each process by which it listens."""
    dispatcher.session.is_heard_elsewhere = True
    try:
        dispatcher.outbound.notify(method, params)
    finally:
        dispatcher.session.is_heard_elsewhere = False


CHANGES: dict[str, Callable[..., object]] = {
    "list_changed": Announcements.list_changed,
    "lists_changed": Announcements.take_other_lists,
    "resource_updated": Announcements.resource_updated,
    "task_changed": Announcements.task_changed,
    "missed": Announcements.missed,
}
"""The changes that a process announces to the others that serve the same clients."""
