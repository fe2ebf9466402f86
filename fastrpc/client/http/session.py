"""Streamable HTTP up to 2025-11-25: a session, a POST for each message, and a GET stream for server messages.

The response to a POST is a JSON body or an event stream. A broken stream is resumed after the last event id.
Without event ids a request whose response is lost fails, because sending it again could execute it twice.
When the session has expired, the connection is lost.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastrpc import diagnostics
from fastrpc._core.client_request import PendingRequest
from fastrpc.client.http.carrier import SILENT_SECONDS, STEADY_SECONDS, Carrier, Link
from fastrpc.client.http.connection import JSON, Response
from fastrpc.client.http.events import Events
from fastrpc.client.http.wire import LONGEST_BODY, STREAM, Answer, Unreachable, Wire, header_lines
from fastrpc.client.transport import PAUSES
from fastrpc.errors import ClientError, ConnectionLost, HttpStatusError, SessionExpired

HEADER_SINCE = "2025-06-18"
"""The first version that needs the header MCP-Protocol-Version (MCP 2025-06-18)."""

MOST_ATTEMPTS = 6
"""Attempts in a row to resume a stream without a new event; then the request fails."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Bounds, in seconds, of the retry delay that a server may ask for."""


class SessionCarrier(Carrier):
    """The Streamable HTTP transport of versions 2025-03-26 to 2025-11-25."""

    has_handshake = True

    def __init__(self, link: Link, wire: Wire) -> None:
        super().__init__(link, wire)
        self._session: str | None = None
        self._version: str | None = None
        self._lines: bytes | None = None
        """The header lines of each request, once there is a session."""
        self._initialized: asyncio.Task[None] | None = None

    @property
    def awaited(self) -> str:
        waits = self._initialized is not None and not self._initialized.done()
        return "the acceptance of notifications/initialized" if waits else ""

    def set_version(self, version: str) -> None:
        self._version = version
        self._lines = None

    def _headers(self, last_id: str | None = None) -> dict[str, str]:
        headers = {}
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if self._version is not None and self._version >= HEADER_SINCE:
            headers["MCP-Protocol-Version"] = self._version
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        return headers

    def _posting(self) -> dict[str, str]:
        return {**self._headers(), "content-type": JSON, "accept": f"{JSON}, {STREAM}"}

    def lines_at_once(self, request: PendingRequest, params: dict[str, Any]) -> bytes | None:
        if self._lines is None and request.method != "initialize":
            self._lines = header_lines(self._posting())
        return self._lines

    async def exchange(
        self, request: PendingRequest, params: dict[str, Any], line: bytes, begun: Response | None
    ) -> None:
        events = Events(LONGEST_BODY)
        try:
            async with self.wire.send("POST", self._posting(), line, waits=True, begun=begun) as answer:
                self._check_session(answer, request)
                if request.method == "initialize":
                    self._session = answer.header("mcp-session-id")
                    self._lines = None
                if not answer.is_stream:
                    await self.receive_body(answer, request)
                    return
                await self._read(answer, events, request)
        except Unreachable:
            raise
        except ConnectionLost:
            if events.last_id is None:
                raise
        await self._resume(request, events)

    def withdraw(self, request: asyncio.Task[None] | Response | None, line: bytes) -> None:
        if request is not None:
            request.cancel()
        self.post_soon(line)

    async def _read(self, answer: Answer, events: Events, request: PendingRequest | None) -> None:
        """Receive the messages of a stream, until it ends or has answered the request."""
        async for event in answer.events(events):
            if event.kind == "message":
                self.receive(event.data.encode(), request)
            if request is not None and request.done:
                return

    async def _resume(self, request: PendingRequest, events: Events) -> None:
        """Resume a stream that ended before the response came. Raises ClientError."""
        attempts = 0
        while not request.done:
            if events.last_id is None or attempts == MOST_ATTEMPTS:
                raise ConnectionLost("the connection to the server is lost before the response")
            last_id = events.last_id
            await asyncio.sleep(self._pause(events, attempts))
            try:
                headers = {**self._headers(last_id), "accept": STREAM}
                async with self.wire.send("GET", headers) as answer:
                    self._check_session(answer)
                    if not answer.is_stream:
                        raise answer.refusal()
                    events.begin_anew()
                    await self._read(answer, events, request)
            except HttpStatusError as error:
                if error.status < 500 and error.status != 429:
                    raise
            except ConnectionLost as error:
                if self.link.lost:
                    raise
                diagnostics.write("info", f"resuming a response stream failed, trying again: {error}")
            attempts = 0 if events.last_id != last_id else attempts + 1

    @staticmethod
    def _pause(events: Events, attempts: int) -> float:
        """Return the delay, in seconds, before a stream is resumed."""
        wanted = max(SHORTEST_PAUSE, min(events.retry_seconds or 0.0, LONGEST_PAUSE))
        if events.retry_seconds is not None and attempts == 0:
            return wanted
        return max(PAUSES[min(attempts, len(PAUSES) - 1)], wanted)

    def _check_session(self, answer: Answer, refused: PendingRequest | None = None) -> None:
        """End the connection and raise ConnectionLost if the session has expired (MCP 2025-11-25, session
        management). `refused`: the request that is answered so, which fails with SessionExpired: unlike
        others, it was certainly not processed."""
        if answer.status != 404 or self._session is None:
            return
        reason = f"{self.wire.remote.shown}: the session has expired"
        if refused is not None:
            self.link.stream.fail(refused, SessionExpired(reason))
        self.link.lose(ConnectionLost(reason), still_answers=True)
        raise ConnectionLost(reason)

    async def post(self, line: bytes) -> None:
        async with self.wire.send("POST", self._posting(), line) as answer:
            self._check_session(answer)
            if answer.status >= 300:
                raise answer.refusal()

    def notify(self, method: str, line: bytes) -> None:
        if method == "notifications/initialized":
            self._initialized = self.link.spawn(self.deliver(line))
        else:
            super().notify(method, line)

    async def settle(self) -> None:
        if self._initialized is not None:
            await self._initialized
            self.link.spawn(self._listen())
            await asyncio.sleep(0)  # it is on its way before any request whose effects it is to tell

    async def _listen(self) -> None:
        """Read the GET stream, if the server offers one, until the connection ends."""
        events = Events(LONGEST_BODY)
        loop = asyncio.get_running_loop()
        attempts = 0
        while not self.link.lost:
            began = loop.time()
            try:
                headers = {**self._headers(events.last_id), "accept": STREAM}
                async with self.wire.send("GET", headers, silent_seconds=SILENT_SECONDS) as answer:
                    self._check_session(answer)
                    if answer.is_stream:
                        if attempts and events.last_id is None and self.link.on_gap is not None:
                            self.link.on_gap()
                        events.begin_anew()
                        await self._read(answer, events, None)
                    elif answer.status < 500:
                        if events.last_id is None:
                            return  # the server offers no stream
                        events = Events(LONGEST_BODY)
            except ClientError as error:
                diagnostics.write("info", f"the GET stream broke, opening it again: {error}")
            if loop.time() - began > STEADY_SECONDS:
                attempts = 0
            await asyncio.sleep(self._pause(events, attempts))
            attempts += 1

    async def leave(self) -> None:
        """End the session with DELETE (MCP 2025-11-25: session management). Raises ClientError."""
        if self._session is None or self.link.lost:
            return
        async with self.wire.send("DELETE", self._headers()):
            pass
