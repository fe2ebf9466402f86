"""Streamable HTTP up to 2025-11-25: a session, a POST for each message, and a stream for what comes unasked.

An answer is a body or a stream. A stream that breaks is taken up again behind the last event that came, where
its events have ids; without ids a request whose answer is lost has failed, since asking again could do it
twice. A session that the server does not know any more ends the conversation, and the next request begins
another.
"""

from __future__ import annotations

import asyncio

from fastrpc import log
from fastrpc.errors import ToolError
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import PAUSES, SILENT_SECONDS, STEADY_SECONDS, check_answers, parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, Refused, Unreachable, WireError
from fastrpc.proxy.requests import RemoteError, SessionGone
from fastrpc.results import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Answer, Wire
    from fastrpc.proxy.requests import Asked

HEADER_SINCE = "2025-06-18"
"""From this version on each request names the version (MCP 2025-06-18: MCP-Protocol-Version)."""

MOST_ATTEMPTS = 6
"""How often in a row an answer that is on its way is fetched in vain; then it is lost."""
LONGEST_PAUSE = 30.0
"""A server may ask for more time before we come back; it gets no more than this."""
GONE = "it does not know our session any more"


class SessionTransport:
    """The transport of 2025-03-26 to 2025-11-25."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._session: str | None = None
        self._version: str | None = None

    def agreed(self, version: str) -> None:
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

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        asked.task = self._client.spawn(self._ask(asked, message))

    def withdraw(self, asked: Asked) -> None:
        if asked.task is not None:
            asked.task.cancel()
        if asked.method != "initialize":
            params = {"requestId": asked.id}
            self._client.tell_soon({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _ask(self, asked: Asked, message: dict[str, Any]) -> None:
        try:
            await self._post(asked, message)
        except (ToolError, RemoteError) as error:
            self._client.fail(asked, error)
        except Exception as error:  # the caller must not wait for ever
            log.write("error", f"{asked.method} failed on the way to the server behind", error)
            self._client.fail(asked, WireError(f"the request could not be sent: {error!r:.200}"))

    async def _post(self, asked: Asked, message: dict[str, Any]) -> None:
        events = Events(LONGEST_BODY)
        try:
            async with self._wire.send("POST", self._posting(), to_json(message)) as answer:
                self._check_session(answer, asked)
                if asked.method == "initialize":
                    self._session = answer.header("mcp-session-id")
                if not answer.is_stream:
                    await self._read_body(answer, asked)
                    return
                await self._read(answer, events, asked)
        except Unreachable:
            raise
        except WireError:
            if events.last_id is None:
                raise
        await self._resume(asked, events)

    async def _read_body(self, answer: Answer, asked: Asked) -> None:
        for message in await answer.messages():
            check_answers(message, answer.status)
            self._client.take(message, asked)
        if self._client.waits_for(asked):
            raise WireError("the server behind this one sent no answer to the request")

    async def _read(self, answer: Answer, events: Events, asked: Asked | None) -> None:
        async for event in answer.events(events):
            if event.kind == "message":
                self._client.take(parsed(event.data), asked)
            if asked is not None and not self._client.waits_for(asked):
                return

    async def _resume(self, asked: Asked, events: Events) -> None:
        """Fetch the rest of a stream that has ended before the answer came."""
        attempts = 0
        while self._client.waits_for(asked):
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
                    await self._read(answer, events, asked)
            except Refused as error:
                if error.status < 500 and error.status != 429:
                    raise
            except WireError as error:
                log.write("info", f"an answer is still on its way: {error}")
            attempts = 0 if events.last_id != last_id else attempts + 1

    @staticmethod
    def _pause(events: Events, attempts: int) -> float:
        """Return how long to wait before a stream is taken up again."""
        if events.retry_seconds is not None and attempts == 0:
            return min(events.retry_seconds, LONGEST_PAUSE)
        return max(PAUSES[min(attempts, len(PAUSES) - 1)], min(events.retry_seconds or 0.0, LONGEST_PAUSE))

    def _check_session(self, answer: Answer, asked: Asked | None = None) -> None:
        """Raise WireError for the status that says so (MCP 2025-11-25, session management).

        A request that comes to it itself, `asked`, may be made anew: it has not been looked at. The others
        that are on their way find out for themselves.
        """
        if answer.status != 404 or self._session is None:
            return
        if asked is not None:
            self._client.fail(asked, SessionGone(f"the server behind this one: {GONE}"))
        self._client.expire(GONE)
        raise WireError(f"the server behind this one: {GONE}")

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        async with self._wire.send("POST", self._posting(), to_json(message)) as answer:
            self._check_session(answer)
            if answer.status >= 300:
                raise answer.refusal()
        if message.get("method") == "notifications/initialized":
            self._client.spawn(self._listen())

    async def watch(self, uris: set[str]) -> None:
        """Resources are subscribed to by requests."""

    # --- what comes unasked ---------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read the stream of what belongs to no request, where the server has one, for as long as we
        speak."""
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
                            self._client.list_anew()  # who knows what has changed in between
                        events.begin_anew()
                        await self._read(answer, events, None)
                    elif answer.status < 500:
                        if events.last_id is None:
                            return  # it has none
                        events = Events(LONGEST_BODY)
            except WireError as error:
                log.write("info", f"the stream of what comes unasked broke: {error}")
            if self._client.loop.time() - began > STEADY_SECONDS:
                attempts = 0
            await asyncio.sleep(self._pause(events, attempts))
            attempts += 1

    # --- the end --------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """End the session (MCP 2025-11-25: a client that needs it no longer SHOULD send DELETE)."""
        if self._session is None or self._client.ended is not None:
            return
        async with self._wire.send("DELETE", self._headers()):
            pass
