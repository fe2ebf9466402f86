"""HTTP+SSE, the transport of 2024-11-05: the server's messages arrive on a GET stream, ours are sent by POST.

The first event of the stream names the URL for POST, which must have the same origin. When the stream ends,
the connection is lost. Messages are posted one at a time, in order.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urljoin, urlsplit

from fastrpc import diagnostics
from fastrpc._core.client_request import PendingRequest
from fastrpc.client.http.carrier import Carrier, Link
from fastrpc.client.http.connection import JSON, Response
from fastrpc.client.http.events import Events
from fastrpc.client.http.wire import LONGEST_BODY, STREAM, Wire
from fastrpc.errors import ClientError, ConnectionLost, InvalidAnswer

ENDPOINT_SECONDS = 10.0


class SseCarrier(Carrier):
    """The HTTP+SSE transport of 2024-11-05."""

    has_handshake = True
    has_request_streams = False

    def __init__(self, link: Link, wire: Wire) -> None:
        super().__init__(link, wire)
        self._endpoint: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._post_turns = asyncio.Lock()  # messages keep their order

    @property
    def awaited(self) -> str:
        return "" if self._endpoint.done() else "the endpoint event of HTTP+SSE"

    async def open(self) -> bool:
        """Open the stream; return whether the server has one. Raises InvalidAnswer for an invalid stream."""
        self.link.spawn(self._read_stream())
        try:
            return await asyncio.wait_for(asyncio.shield(self._endpoint), ENDPOINT_SECONDS) is not None
        except asyncio.TimeoutError:
            return False

    async def _read_stream(self) -> None:
        """Receive the messages of the stream. When it ends, the connection is lost."""
        try:
            async with self.wire.send("GET", {"accept": STREAM}) as answer:
                if not answer.is_stream:
                    self._set_endpoint(None)
                    return
                async for event in answer.events(Events(LONGEST_BODY)):
                    if not self._endpoint.done():
                        place = urljoin(answer.url, event.data) if event.kind == "endpoint" else None
                        is_own = place is not None and urlsplit(place)[:2] == urlsplit(answer.url)[:2]
                        self._set_endpoint(place if is_own else None)
                        if self._endpoint.result() is None:
                            return
                    elif event.kind == "message":
                        self.receive(event.data.encode())
            error: ClientError = ConnectionLost("the server's stream has ended")
        except ClientError as broken:
            error = broken
        except Exception as unexpected:  # pending requests must not hang
            diagnostics.write("error", "reading the server's stream failed", unexpected)
            error = InvalidAnswer(f"the server's stream is invalid: {unexpected!r:.200}")
        if not self._endpoint.done():
            if isinstance(error, InvalidAnswer):
                self._endpoint.set_exception(error)
            else:
                self._endpoint.set_result(None)
        else:
            self.link.lose(ConnectionLost(str(error)))

    def _set_endpoint(self, endpoint: str | None) -> None:
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    async def exchange(
        self, request: PendingRequest, params: dict[str, Any], line: bytes, begun: Response | None
    ) -> None:
        await self.deliver(line)

    async def post(self, line: bytes) -> None:
        headers = {"content-type": JSON, "accept": f"{JSON}, {STREAM}"}
        async with self.wire.send("POST", headers, line, url=self._endpoint.result()) as answer:
            if answer.status >= 300:
                raise answer.refusal()

    def withdraw(self, request: asyncio.Task[None] | Response | None, line: bytes) -> None:
        self.post_soon(line)
