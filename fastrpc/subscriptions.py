"""Which clients wait for changes of resources or of their list, for providers that watch for changes.

So a provider watches only subscribed resources, and notifies each client only of its subscriptions.
A provider's method ``watch(uri)`` is called when a client has subscribed to one of its URIs. From then on it
looks for changes, for instance by `Server.watch`, until `subscribers` returns no clients. Of several
processes that serve a session one does so.
`list_listeners` returns the clients that are notified when the list has changed.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.engine.dispatcher import Dispatcher


@dataclass(slots=True, eq=False)
class Subscriber:
    """A client that has subscribed to a resource: `caller` and the resource's `uri`, in its normal form."""

    caller: Caller
    uri: str
    _dispatcher: Dispatcher

    def notify(self) -> None:
        """Tell this client, and no other, that the resource has changed. Thread-safe."""
        self._dispatcher.changes.resource_updated(self.uri, None)


@dataclass(slots=True, eq=False)
class ListListener:
    """A client that is notified when the list of resources has changed."""

    caller: Caller
    _dispatcher: Dispatcher

    def notify(self) -> None:
        """Tell this client, and no other, that the list of resources has changed. Thread-safe."""
        self._dispatcher.changes.list_changed("resource")


def list_listeners(server: Any) -> list[ListListener]:
    """Return the clients that are notified when the list of resources has changed, here and where the server
    is mounted. Where several processes serve a session, each of them returns its client. Call it on the
    thread that serves a connection."""
    from fastrpc.protocol.lifecycle import READY

    found = []
    for caller_of, dispatcher in _clients_of(server):
        session = dispatcher.session
        if (session.state == READY and "resources" in session.offered) or any(
            request.params["notifications"].get("resourcesListChanged")
            for request in list(dispatcher.changes.listening.values())
        ):
            found.append(ListListener(caller_of(dispatcher.principal), dispatcher))
    return found


def subscribers(server: Any, prefix: str) -> list[Subscriber]:
    """Return the subscribers of resources whose URIs begin with `prefix`, here and where the server is
    mounted, except those for whom another process watches. Call it on the thread that serves a connection."""
    from fastrpc.protocol.uri_template import normal

    prefix = normal(prefix)
    found = []
    for caller_of, dispatcher in _clients_of(server):
        session = dispatcher.session
        uris = dict.fromkeys(session.subscriptions if session.hears_changes else ())
        for request in list(dispatcher.changes.listening.values()):
            uris |= request.params["notifications"].get("resourceSubscriptions", {})
        wanted = [uri for uri in uris if uri.startswith(prefix)]
        if wanted:
            caller = caller_of(dispatcher.principal)
            found += [Subscriber(caller, uri, dispatcher) for uri in wanted]
    return found


def _clients_of(server: Any) -> Iterator[tuple[Callable[[str], Caller], Dispatcher]]:
    from fastrpc.callers import unguarded

    for runtime in server._runtimes():
        for dispatcher in list(runtime.dispatchers):
            yield runtime.caller_of or unguarded, dispatcher
