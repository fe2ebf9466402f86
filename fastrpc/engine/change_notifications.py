"""Makes the plans of one connection anew, and notifies its client, when what the server offers has changed.

A client is notified in its session, or on the streams that it has opened (MCP 2026-07-28:
subscriptions/listen). The features decide which notification is sent, and whether the client wants it.
"""

from __future__ import annotations

from fastrpc.protocol.lifecycle import NEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc._core.connection import Connection
    from fastrpc.engine.outbound import Outbound
    from fastrpc.engine.runtime import Runtime
    from fastrpc.protocol.lifecycle import SessionState


class ChangeNotifications:
    """The streams of changes that a client has opened, and the notifications that are due to it."""

    __slots__ = ("changed_lists", "connection", "listening", "outbound", "runtime", "session")

    def __init__(
        self, runtime: Runtime, connection: Connection, session: SessionState, outbound: Outbound
    ) -> None:
        self.runtime = runtime
        self.connection = connection
        self.session = session
        self.outbound = outbound
        self.listening: dict[bytes, Any] = connection.listening
        """The requests that have opened streams, by key."""
        self.changed_lists: dict[str, None] = {}
        """Names of lists that have changed, of which the client has not been notified yet."""

    def watch(self) -> None:
        """If a loop serves the connection, have it call the watching functions; else forget the prepared
        lists, so that the next list request does. Thread-safe.
        """
        loop = self.connection.loop
        if loop is not None:
            self.outbound.post(lambda: self.runtime.monitors.begin(loop))
        else:
            self.connection.forget_lists()

    def stop_listening(self, key: bytes) -> None:
        """Forget the stream with this key, if there is one."""
        request = self.listening.pop(key, None)
        if request is not None:
            if request.quota is not None:
                request.quota.close()
            self.unwatch(request.params["notifications"].get("resourceSubscriptions", ()))

    def subscribed(self) -> list[str]:
        """Return the resources that the client has subscribed to, as URIs in their normal form."""
        found = list(self.session.subscriptions)
        for request in list(self.listening.values()):
            found += request.params["notifications"].get("resourceSubscriptions", ())
        return found

    def has_subscribed(self, meant: str) -> bool:
        """Whether the client has subscribed to the resource with this URI in its normal form."""
        return meant in self.session.subscriptions or any(
            meant in request.params["notifications"].get("resourceSubscriptions", ())
            for request in list(self.listening.values())
        )

    def watch_resources(self, uris: Iterable[str]) -> None:
        """The client has subscribed to resources: watch them where they come from, unless another process
        that serves the session does."""
        if self.session.hears_changes:
            for uri in list(uris):
                self.runtime.upstreams.watch(uri, self.session.client_capabilities)

    def unwatch(self, uris: Iterable[str]) -> None:
        """End subscriptions that this client had at upstream servers, if no other client has them."""
        if self.runtime.has_upstreams and self.session.hears_changes:
            for uri in list(uris):
                self.runtime.upstreams.unwatch(uri)

    def end_listening(self) -> None:
        """End all streams, and answer their requests: the server ends (MCP 2026-07-28: subscriptions)."""
        for request in list(self.listening.values()):
            self.runtime.features.end_stream(self, request)

    def forget_plans(self, before: Callable[[], object] = lambda: None) -> None:
        """Have the dispatcher asked for the plan of the next call. Thread-safe. Plans that the connection's
        own thread makes at this moment are forgotten too, after `before`."""

        def again() -> None:
            before()
            self.connection.take_plans({})

        self.connection.take_plans({})
        self.outbound.post(again)

    def list_changed(self, kind: str) -> None:
        """Notify the client, if it has a session or streams, that a list has changed. Thread-safe."""
        if self.listening or self.session.state != NEW:
            self.outbound.post(lambda: self.runtime.features.list_changed(self, kind))

    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Notify the client, if it has subscribed, that a resource has changed. Thread-safe. `rest`: other
        members of the notification's params."""
        if self.listening or self.session.subscriptions:
            self.outbound.post(lambda: self.runtime.features.resource_updated(self, uri, rest))
