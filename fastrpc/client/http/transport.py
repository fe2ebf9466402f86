"""A connection to a server at a URL: detects which HTTP transport the server supports.

A server that supports 2026-07-28 (`fastrpc.client.session`) receives stateless requests; any other server
receives `initialize`. If that is refused with status 400, 404 or 405, a GET is tried: an `endpoint` event
selects HTTP+SSE. Each of the three transports is a module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastrpc import diagnostics
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.http.address import Remote
from fastrpc.client.http.carrier import Carrier
from fastrpc.client.http.wire import Wire, json_of
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import ClientError, ConnectionLost
from fastrpc.json_encoding import to_json
from fastrpc.protocol.versions import STATELESS

LEAVE_SECONDS = 1.0


class Http(ConnectionTransport):
    """The transport to a server at a URL."""

    def __init__(self, remote: Remote) -> None:
        self.shown = remote.shown
        self.lost = False
        self._is_open = False
        self._remote = remote
        self._wire = Wire(remote)
        self._carrier = Carrier(self, self._wire)
        """One that carries nothing, until the version is known."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        """Send the messages in the stream from now on. No request is sent here."""
        self.stream = stream
        self._on_lost = on_lost
        self._on_request = stream.on_request
        stream.on_request = self._note_request
        stream.carry = self._carry
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        if self._wire.oauth is not None:
            self._wire.oauth.hold = stream.hold_limits  # a person logs in: that is not the server's time
        if self._remote.is_open_to_listeners:
            diagnostics.write("warning", f"{self.shown}: credentials are sent unencrypted; use https")

    @property
    def has_request_streams(self) -> bool:  # type: ignore[override]
        return self._carrier.has_request_streams

    @property
    def awaited(self) -> str:
        return self._wire.awaited or self._carrier.awaited

    def set_version(self, version: str) -> None:
        if version == STATELESS:
            from fastrpc.client.http.stateless import StatelessCarrier

            self._carrier = StatelessCarrier(self, self._wire)
        elif not self._carrier.has_handshake:
            from fastrpc.client.http.session import SessionCarrier

            self._carrier = SessionCarrier(self, self._wire)
        else:
            self._carrier.set_version(version)

    async def fall_back(self) -> bool:
        from fastrpc.client.http.sse import SseCarrier

        self._carrier = carrier = SseCarrier(self, self._wire)
        return await carrier.open()

    async def settle(self) -> None:
        await self._carrier.settle()

    def _carry(self, request: PendingRequest | None, params: dict[str, Any] | None) -> None:
        line = self.stream.take()[:-1]
        if request is not None:
            self._carrier.send_request(request, params or {}, line)
        else:
            self._carrier.send(line)

    def wait_shortly(self, request: PendingRequest) -> None:
        self._carrier.wait_shortly(request)

    def receive(self, text: bytes, of: PendingRequest | None = None) -> None:
        if b'"error"' in text:
            text = self._without_secrets(text)
        self.answering = of
        try:
            self.stream.receive_message(text)
        finally:
            self.answering = None

    def _without_secrets(self, text: bytes) -> bytes:
        """Return a message with the credentials removed from its error."""
        message = json_of(text)
        error = message.get("error") if isinstance(message, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return text
        error["message"] = self._remote.hide(error["message"])
        return to_json(message)

    def _note_request(self, request: dict[str, Any]) -> None:
        """Store the request on whose stream a request of the server arrived, and handle the latter."""
        if self.answering is not None:
            self._carrier.on_request(request["id"], self.answering)
        self._on_request(request)

    def lose(self, error: ConnectionLost, *, still_answers: bool = False) -> None:
        if not self.lost:
            self.lost = True
            self.still_answers = still_answers
            self._on_lost(error)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that is cancelled when the connection is closed."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def flush(self) -> None:
        await self._carrier.flush()

    async def close(self) -> None:
        if not self._is_open:
            return
        self.stream.carry = None
        with suppress(asyncio.TimeoutError, ClientError):  # the server notices that the connection has closed
            await asyncio.wait_for(self._leave(), LEAVE_SECONDS)
        self.lost = True

    async def _leave(self) -> None:
        try:
            await self._carrier.flush()
            await self._carrier.leave()
        finally:
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._wire.close()
