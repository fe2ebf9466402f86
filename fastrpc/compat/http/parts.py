"""What files of the official SDK pass to a server over HTTP: rules for hosts and origins, stores of events.

`TransportSecuritySettings` is read by `fastrpc.compat.http.options`. An `EventStore` is accepted, not used:
interrupted streams are resumed from the memory of the process (docs/compat.md). Costs nothing.
"""

from __future__ import annotations

from fastrpc.compat.field_types import ModelType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

EventId = str
"""The id of an event of a stream."""
StreamId = str
"""The id of a stream of events."""


class TransportSecuritySettings(ModelType):
    """Which requests are accepted: any, or those with these values of Host and Origin; ``localhost:*`` is any
    port."""

    def __init__(
        self,
        enable_dns_rebinding_protection: bool = True,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
    ) -> None:
        for name, given in (("allowed_hosts", allowed_hosts), ("allowed_origins", allowed_origins)):
            if isinstance(given, str):  # a list of its letters would refuse every host
                raise ValueError(f"TransportSecuritySettings: {name}: expected a list of texts, got one text")
        self.enable_dns_rebinding_protection = enable_dns_rebinding_protection
        self.allowed_hosts = list(allowed_hosts)
        self.allowed_origins = list(allowed_origins)


class EventMessage:
    """A message of a stream, with the id that it was stored under."""

    def __init__(self, message: Any, event_id: str | None = None) -> None:
        self.message = message
        self.event_id = event_id


class EventStore:
    """The base class of stores of events. A server accepts one and does not use it."""

    async def store_event(self, stream_id: str, message: Any) -> str:
        """Store a message of a stream, and return its id."""
        raise NotImplementedError(f"{type(self).__name__} has no store_event")

    async def replay_events_after(
        self, last_event_id: str, send_callback: Callable[[EventMessage], Awaitable[None]]
    ) -> str | None:
        """Send the messages of a stream that came after one, and return the stream's id."""
        raise NotImplementedError(f"{type(self).__name__} has no replay_events_after")
