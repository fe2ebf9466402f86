"""HTTP+SSE, the transport of 2024-11-05: one stream brings all that the server says, messages go out by POST.

The stream's first event names the address to post to, which must be of the same origin. When the stream ends,
so does the conversation; the next request begins another. Messages are posted one after the other, in order.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from fastrpc import log
from fastrpc.errors import ToolError
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, WireError
from fastrpc.results import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Wire
    from fastrpc.proxy.requests import Asked

ENDPOINT_SECONDS = 10.0


class SseTransport:
    """The transport of 2024-11-05."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._endpoint: asyncio.Future[str | None] = client.loop.create_future()
        self._in_order = asyncio.Lock()

    async def open(self) -> bool:
        """Open the stream; False if it is none of this transport. Raises WireError."""
        self._client.spawn(self._hear())
        try:
            return await asyncio.wait_for(asyncio.shield(self._endpoint), ENDPOINT_SECONDS) is not None
        except asyncio.TimeoutError:
            return False

    async def _hear(self) -> None:
        try:
            async with self._wire.send("GET", {"accept": STREAM}) as answer:
                if not answer.is_stream:
                    self._found(None)
                    return
                async for event in answer.events(Events(LONGEST_BODY)):
                    if not self._endpoint.done():
                        place = urljoin(str(answer.url), event.data) if event.kind == "endpoint" else None
                        self._found(place if place and _same_origin(place, str(answer.url)) else None)
                        if self._endpoint.result() is None:
                            return
                    elif event.kind == "message":
                        self._client.take(parsed(event.data))
            reason = "its stream has ended"
        except WireError as error:
            reason = str(error)
        except Exception as error:  # the caller must not wait for ever
            log.write("error", "the stream of the server behind cannot be read", error)
            reason = f"its stream cannot be read: {error!r:.200}"
        self._found(None)
        self._client.end(reason)

    def _found(self, endpoint: str | None) -> None:
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    def agreed(self, version: str) -> None:
        """No message says which version it is of."""

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        asked.task = self._client.spawn(self._ask(asked, message))

    def withdraw(self, asked: Asked) -> None:
        if asked.method != "initialize":
            params = {"requestId": asked.id}
            self._client.tell_soon({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _ask(self, asked: Asked, message: dict[str, Any]) -> None:
        try:
            await self.tell(message)
        except ToolError as error:
            self._client.fail(asked, error)

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        async with self._in_order:
            headers = {"content-type": JSON, "accept": f"{JSON}, {STREAM}"}
            place = self._endpoint.result()
            async with self._wire.send("POST", headers, to_json(message), url=place) as answer:
                if answer.status >= 300:
                    raise answer.refusal()

    async def watch(self, uris: set[str]) -> None:
        """Resources are subscribed to by requests."""

    async def leave(self) -> None:
        """The session ends with its stream."""


def _same_origin(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)
