"""Changes that clients of 2026-07-28 listen for, as the official SDK 2.x has them: events, and a bus of them.

Clients are notified of a server's own changes and of those published on its bus. The engine decides which
client is notified of which: a `ListenHandler` only says which bus a low-level server listens to.
"""

from __future__ import annotations

from fastrpc import tracebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Listener = Callable[["ServerEvent"], None]

SUBSCRIPTION_ID_META_KEY = "io.modelcontextprotocol/subscriptionId"
"""The member of ``_meta`` that names the subscription of a notification."""


class ServerEvent:
    """A change. Two of one class, with the same `uri`, are equal."""

    __slots__ = ()
    uri: str | None = None
    kind = ""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.uri == self.uri

    def __hash__(self) -> int:
        return hash((type(self), self.uri))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.uri is None else f'uri={self.uri!r}'})"


class ToolsListChanged(ServerEvent):
    """The list of tools has changed."""

    __slots__ = ()
    kind = "tool"


class PromptsListChanged(ServerEvent):
    """The list of prompts has changed."""

    __slots__ = ()
    kind = "prompt"


class ResourcesListChanged(ServerEvent):
    """The list of resources has changed."""

    __slots__ = ()
    kind = "resource"


class ResourceUpdated(ServerEvent):
    """The resource at `uri` has changed."""

    __slots__ = ("uri",)

    def __init__(self, uri: str) -> None:
        self.uri = uri


EVENTS: dict[str, type[ServerEvent]] = {
    "notifications/prompts/list_changed": PromptsListChanged,
    "notifications/resources/list_changed": ResourcesListChanged,
    "notifications/tools/list_changed": ToolsListChanged,
}


def event_of(message: dict[str, Any]) -> ServerEvent:
    """Return the event for a notification."""
    kind = EVENTS.get(message["method"])
    return ResourceUpdated(str(message["params"]["uri"])) if kind is None else kind()


class SubscriptionBus:
    """The base class of buses: what is published reaches every listener, here and elsewhere."""

    async def publish(self, event: ServerEvent) -> None:
        """Hand an event over to every listener."""
        raise NotImplementedError(f"{type(self).__name__} has no publish")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; return what removes it."""
        raise NotImplementedError(f"{type(self).__name__} has no subscribe")


class InMemorySubscriptionBus(SubscriptionBus):
    """A bus within this process."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}

    async def publish(self, event: ServerEvent) -> None:
        """Call every listener; one that fails is logged."""
        for listener in list(self._listeners.values()):
            try:
                listener(event)
            except Exception as error:
                tracebacks.report("a listener of the subscription bus failed", error)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; return what removes it."""
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None


class ListenHandler:
    """The ``on_subscriptions_listen`` of a low-level server: its clients are notified of the events of `bus`.

    The bounds are the engine's: `max_subscriptions` and `max_buffered_events` have no effect.
    """

    def __init__(self, bus: Any, *, max_subscriptions: int = 1024, max_buffered_events: int = 1024) -> None:
        self.bus = bus
        self._servers: list[Any] = []

    def attach(self, server: Any) -> None:
        """Notify a server's clients of the events from now on."""
        self._servers.append(server)
        listen_to(self.bus, server)

    def close(self) -> None:
        """End every open stream."""
        for server in self._servers:
            for dispatcher in list(server.runtime.dispatchers):
                dispatcher.outbound.post(dispatcher.changes.end_listening)


def listen_to(bus: Any, server: Any) -> None:
    """Notify the clients of a server when an event is published on a bus. A bus in memory delivers events to
    this process alone, any other bus to all processes."""
    is_of_this_process = isinstance(bus, InMemorySubscriptionBus)

    def take(event: Any) -> None:
        announcements = server.runtime.announcements
        notify = announcements.announce if is_of_this_process else announcements.take
        uri = getattr(event, "uri", None)
        if uri is not None:
            notify("resource_updated", str(uri))
        else:
            notify("list_changed", event.kind)

    bus.subscribe(take)
