"""Passes on what concerns the servers of which a server is composed: its upstream server, if it is a proxy,
and those that are mounted in it. Imported by a server that has some, and with the first subscription.
"""

from __future__ import annotations

from fastrpc.protocol.uri_template import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fastrpc.engine.ports import NotifiedDispatcher
    from fastrpc.engine.shared_state import SharedState


class Upstreams:
    """The servers on which one server depends."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._upstream = state.upstream

    def defers(self, dispatcher: NotifiedDispatcher, request: Any) -> bool:
        """Defer a request until the features of the upstream servers are known; False if it need not wait.
        Raises ProtocolError."""
        if self._upstream is not None and self._upstream.defers(dispatcher, request):
            return True
        return any(server.runtime.upstreams.defers(dispatcher, request) for server in self._state.mounts)

    def connect(self, capabilities: dict[str, Any]) -> None:
        """A client with these capabilities is to hear of changes here: connect to the upstream servers, soon,
        if no request has done so yet."""
        if self._upstream is not None:
            self._upstream.connect(capabilities)
        for server in self._state.mounts:
            server.runtime.upstreams.connect(capabilities)

    def watch(self, uri: str, capabilities: dict[str, Any]) -> None:
        """A client with these capabilities has subscribed to a resource: watch it where it comes from,
        upstream servers included, which are connected for that if no request has done so."""
        for provider in self._state.registries.providers:
            if provider.watch is not None and (meant := normal(uri)).startswith(provider.prefix):
                provider.watch(meant)
        if self._upstream is not None:
            self._upstream.watch(uri, capabilities)
        self._change_mounts(uri, lambda upstreams, own: upstreams.watch(own, capabilities))

    def unwatch(self, uri: str) -> None:
        """A client has ended a subscription: end it upstream too, if no other client has it."""
        if self._upstream is not None:
            self._upstream.unwatch(uri)
        self._change_mounts(uri, Upstreams.unwatch)

    def _change_mounts(self, uri: str, change: Callable[[Upstreams, str], None]) -> None:
        """Change what the servers that are mounted here watch, by the URI that a resource has there."""
        for server in dict.fromkeys(self._state.mounts):
            for addresses in self._state.server._addresses_of(server, uri):
                own = addresses.there(uri)
                if own is not None:
                    change(server.runtime.upstreams, own)

    def take_notification(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification that is not handled here on to the upstream servers. No guard decides about
        notifications, so a server with guards passes none on."""
        if not self._state.guards:
            if self._upstream is not None:
                self._upstream.take_notification(method, params)
            for server in self._state.mounts:
                server.runtime.upstreams.take_notification(method, params)

    def to_leave(self) -> Iterator[Any]:
        """Yield the lifespans and upstream servers, of mounted servers too, that no client uses any more."""
        if not self._state.dispatchers:
            for each in (self._state.lifespan, self._upstream):
                if each is not None and each.live:
                    yield each
            for server in self._state.mounts:
                yield from server.runtime.upstreams.to_leave()
