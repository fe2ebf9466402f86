"""The resources whose changes a proxy hears of from its upstream server: those that some client waits for.

The proxy subscribes upstream with the first client, until the last one unsubscribes, and again on each new
connection. Nothing waits for an upstream that does not answer. Costs nothing before the first subscription.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastrpc import diagnostics
from fastrpc._core.task import task_of
from fastrpc.mounting import places_of
from fastrpc.proxy.upstream import UpstreamClient
from fastrpc.quotas import ENTRY_BYTES, SESSION_BYTES, Quota, size_of

WATCHED_BYTES = SESSION_BYTES - 16 * 1024
"""Memory for the URIs of subscribed resources. They are sent to the upstream together, so this must stay
below what one session or stream accepts."""


class UpstreamSubscriptions:
    """The subscriptions of the proxy `server`. `seconds`: how long to wait for each answer of the upstream;
    `keep` holds a task until it has ended. To be used on the threads of the server's connections."""

    def __init__(self, server: Any, seconds: float, keep: Callable[[Any], object]) -> None:
        self._server = server
        self._seconds = seconds
        self._keep = keep
        self._client: UpstreamClient | None = None
        self._uris: set[str] = set()
        self._quota = Quota(WATCHED_BYTES)
        self._is_full = False
        self._is_sending = False
        """Whether subscriptions are about to be ended upstream."""

    def connect(self, client: UpstreamClient | None) -> None:
        """Use another connection, to which all subscriptions are sent; None: there is none that takes any."""
        self._client = client
        if client is not None and self._uris:
            self._send()

    def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the upstream has it."""
        own = self._own(uri)
        if own is None or own in self._uris:
            return
        if not self._quota.take(_size(own)):
            if not self._is_full:
                self._is_full = True
                diagnostics.write(
                    "warning", f"too many subscriptions: changes of {own:.200} and others are not forwarded"
                )
            return
        self._uris.add(own)
        self._send()

    def unwatch(self, uri: str) -> None:
        """End the subscription to a resource that no client has subscribed to any more."""
        own = self._own(uri)
        if own is None or own not in self._uris:
            return
        if self.is_wanted(own):
            return
        self._uris.discard(own)
        self._quota.release(_size(own))
        self._is_full = False
        client = self._client
        if client is not None and not self._is_sending and client.loop.is_running():
            self._is_sending = True  # a client that leaves ends all that it has at once
            client.loop.call_soon_threadsafe(self._send)

    def has(self, uri: str) -> bool:
        """Whether the proxy is known to have a resource."""
        return self._own(uri) is not None

    def is_wanted(self, uri: str) -> bool:
        """Whether a client that this process notifies has subscribed to a resource of the proxy."""
        return any(
            runtime.announcements.is_subscribed(shown) for runtime, shown in places_of(self._server, uri)
        )

    def _own(self, uri: str) -> str | None:
        """Return the URI of a resource as the upstream writes it; None if it has none there."""
        registries = self._server.registries
        resource = registries.resources.get(uri)
        if resource is not None:
            return str(resource.uri)
        return uri if any(found.match(uri) is not None for found in registries.templates) else None

    def _send(self) -> None:
        self._is_sending = False
        if self._client is not None:
            watching = self._client.watch(set(self._uris), self._seconds)
            task = task_of(watching, asyncio.get_running_loop(), None)
            self._keep(task)
            task.begin()  # at once: the upstream reads it before a call that the client sends when answered


def _size(uri: str) -> int:
    return size_of(uri, WATCHED_BYTES) + ENTRY_BYTES
