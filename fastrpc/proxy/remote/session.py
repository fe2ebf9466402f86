"""Streamable HTTP up to 2025-11-25: a session, a POST for each message, and a GET stream for server messages.

The answer to a POST is a JSON body or an event stream. A broken stream is resumed after the last event id.
Without event ids a request whose answer is lost fails, because sending it again could execute it twice. When
the server no longer knows the session, the connection ends and the next request begins a new one.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.errors import ToolError
from fastrpc.json_encoding import to_json
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import PAUSES, SILENT_SECONDS, STEADY_SECONDS, check_answers, parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, Refused, Unreachable, WireError
from fastrpc.proxy.requests import RemoteError, SessionGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Answer, Wire
    from fastrpc.proxy.requests import PendingRequest

HEADER_SINCE = "2025-06-18"
"""The first version that needs the header MCP-Protocol-Version (MCP 2025-06-18)."""

MOST_ATTEMPTS = 6
"""Attempts in a row to resume a stream without a new event; then the request fails."""
LONGEST_PAUSE = 30.0
"""Upper bound, in seconds, of the retry delay that a server may ask for."""
GONE = "it does not know our session any more"


class SessionTransport:
    """The Streamable HTTP transport of versions 2025-03-26 to 2025-11-25."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._session: str | None = None
        self._version: str | None = None

    def set_version(self, version: str) -> None:
        self._version = version

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

    # --- requests -------------------------------------------------------------------------------------

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        pending.task = self._client.spawn(self._send_request(pending, message))

    def withdraw(self, pending: PendingRequest) -> None:
        if pending.task is not None:
            pending.task.cancel()
        if pending.method != "initialize":
            params = {"requestId": pending.id}
            self._client.send_nowait(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )

    async def _send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        try:
            await self._post(pending, message)
        except (ToolError, RemoteError) as error:
            self._client.fail(pending, error)
        except Exception as error:  # the caller must not hang
            diagnostics.write("error", f"{pending.method} failed on the way to the server behind", error)
            self._client.fail(pending, WireError(f"the request could not be sent: {error!r:.200}"))

    async def _post(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        events = Events(LONGEST_BODY)
        try:
            async with self._wire.send("POST", self._posting(), to_json(message)) as answer:
                self._check_session(answer, pending)
                if pending.method == "initialize":
                    self._session = answer.header("mcp-session-id")
                if not answer.is_stream:
                    await self._read_body(answer, pending)
                    return
                await self._read(answer, events, pending)
        except Unreachable:
            raise
        except WireError:
            if events.last_id is None:
                raise
        await self._resume(pending, events)

    async def _read_body(self, answer: Answer, pending: PendingRequest) -> None:
        for message in await answer.messages():
            check_answers(message, answer.status)
            self._client.on_message(message, pending)
        if self._client.is_pending(pending):
            raise WireError("the server behind this one sent no answer to the request")

    async def _read(self, answer: Answer, events: Events, pending: PendingRequest | None) -> None:
        async for event in answer.events(events):
            if event.kind == "message":
                self._client.on_message(parsed(event.data), pending)
            if pending is not None and not self._client.is_pending(pending):
                return

    async def _resume(self, pending: PendingRequest, events: Events) -> None:
        """Resume a stream that ended before the response came. Raises WireError and SessionGone."""
        attempts = 0
        while self._client.is_pending(pending):
            if events.last_id is None or attempts == MOST_ATTEMPTS:
                raise WireError("the connection to the server behind this one ended before the answer came")
            last_id = events.last_id
            await asyncio.sleep(self._pause(events, attempts))
            try:
                headers = {**self._headers(last_id), "accept": STREAM}
                async with self._wire.send("GET", headers) as answer:
                    self._check_session(answer)
                    if not answer.is_stream:
                        raise answer.refusal()
                    events.begin_anew()
                    await self._read(answer, events, pending)
            except Refused as error:
                if error.status < 500 and error.status != 429:
                    raise
            except WireError as error:
                diagnostics.write("info", f"an answer is still on its way: {error}")
            attempts = 0 if events.last_id != last_id else attempts + 1

    @staticmethod
    def _pause(events: Events, attempts: int) -> float:
        """Return the delay, in seconds, before a stream is resumed."""
        if events.retry_seconds is not None and attempts == 0:
            return min(events.retry_seconds, LONGEST_PAUSE)
        return max(PAUSES[min(attempts, len(PAUSES) - 1)], min(events.retry_seconds or 0.0, LONGEST_PAUSE))

    def _check_session(self, answer: Answer, pending: PendingRequest | None = None) -> None:
        """Raise WireError if the status says that the session has ended (MCP 2025-11-25, session management).

        `pending` is the request that this answer belongs to. The server has not processed it: it fails with
        SessionGone and may be sent again. Other pending requests receive their own answers.
        """
        if answer.status != 404 or self._session is None:
            return
        if pending is not None:
            self._client.fail(pending, SessionGone(f"the server behind this one: {GONE}"))
        self._client.expire(GONE)
        raise WireError(f"the server behind this one: {GONE}")

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        async with self._wire.send("POST", self._posting(), to_json(message)) as answer:
            self._check_session(answer)
            if answer.status >= 300:
                raise answer.refusal()
        if message.get("method") == "notifications/initialized":
            self._client.spawn(self._listen())

    async def watch(self, uris: set[str]) -> None:
        """Does nothing: resources/subscribe is sent as a request."""

    # --- the GET stream -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read the GET stream, if the server offers one, until the connection ends."""
        events = Events(LONGEST_BODY)
        attempts = 0
        while self._client.ended is None:
            began = self._client.loop.time()
            try:
                headers = {**self._headers(events.last_id), "accept": STREAM}
                async with self._wire.send("GET", headers, silent_seconds=SILENT_SECONDS) as answer:
                    self._check_session(answer)
                    if answer.is_stream:
                        if attempts and events.last_id is None:
                            self._client.relist()  # changes may have been missed
                        events.begin_anew()
                        await self._read(answer, events, None)
                    elif answer.status < 500:
                        if events.last_id is None:
                            return  # the server offers no stream
                        events = Events(LONGEST_BODY)
            except WireError as error:
                diagnostics.write("info", f"the stream of what comes unasked broke: {error}")
            if self._client.loop.time() - began > STEADY_SECONDS:
                attempts = 0
            await asyncio.sleep(self._pause(events, attempts))
            attempts += 1

    # --- closing --------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """End the session with DELETE (MCP 2025-11-25: session management). Raises WireError."""
        if self._session is None or self._client.ended is not None:
            return
        async with self._wire.send("DELETE", self._headers()):
            pass
