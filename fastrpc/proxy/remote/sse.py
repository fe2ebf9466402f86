"""HTTP+SSE, the transport of 2024-11-05: a GET stream carries the server's messages, POST carries ours.

The first event of the stream names the URL for POST, which must have the same origin. When the stream ends,
the connection ends, and the next request begins a new one. Messages are posted one at a time, in order.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from fastrpc import diagnostics
from fastrpc.errors import ToolError
from fastrpc.json_encoding import to_json
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Wire
    from fastrpc.proxy.requests import PendingRequest

ENDPOINT_SECONDS = 10.0


class SseTransport:
    """The HTTP+SSE transport of 2024-11-05."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._endpoint: asyncio.Future[str | None] = client.loop.create_future()
        self._in_order = asyncio.Lock()

    async def open(self) -> bool:
        """Open the stream. Return False if the server does not offer this transport. Raises WireError."""
        self._client.spawn(self._read_stream())
        try:
            return await asyncio.wait_for(asyncio.shield(self._endpoint), ENDPOINT_SECONDS) is not None
        except asyncio.TimeoutError:
            return False

    async def _read_stream(self) -> None:
        try:
            async with self._wire.send("GET", {"accept": STREAM}) as answer:
                if not answer.is_stream:
                    self._set_endpoint(None)
                    return
                async for event in answer.events(Events(LONGEST_BODY)):
                    if not self._endpoint.done():
                        place = urljoin(str(answer.url), event.data) if event.kind == "endpoint" else None
                        self._set_endpoint(place if place and _same_origin(place, str(answer.url)) else None)
                        if self._endpoint.result() is None:
                            return
                    elif event.kind == "message":
                        self._client.on_message(parsed(event.data))
            reason = "its stream has ended"
        except WireError as error:
            reason = str(error)
        except Exception as error:  # the caller must not hang
            diagnostics.write("error", "the stream of the server behind cannot be read", error)
            reason = f"its stream cannot be read: {error!r:.200}"
        self._set_endpoint(None)
        self._client.end(reason)

    def _set_endpoint(self, endpoint: str | None) -> None:
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    def set_version(self, version: str) -> None:
        """Does nothing: no header names the version."""

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        pending.task = self._client.spawn(self._send_request(pending, message))

    def withdraw(self, pending: PendingRequest) -> None:
        if pending.method != "initialize":
            params = {"requestId": pending.id}
            self._client.send_nowait(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )

    async def _send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        try:
            await self.send(message)
        except ToolError as error:
            self._client.fail(pending, error)

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        async with self._in_order:
            headers = {"content-type": JSON, "accept": f"{JSON}, {STREAM}"}
            place = self._endpoint.result()
            async with self._wire.send("POST", headers, to_json(message), url=place) as answer:
                if answer.status >= 300:
                    raise answer.refusal()

    async def watch(self, uris: set[str]) -> None:
        """Does nothing: resources/subscribe is sent as a request."""

    async def leave(self) -> None:
        """Does nothing: the session ends with its stream."""


def _same_origin(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)
