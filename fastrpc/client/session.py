"""MCP over one stream: the handshake, requests with progress, notifications to the server.

Negotiates the version (MCP 2026-07-28, versioning: backwards compatibility): a server that supports
2026-07-28 according to `server/discover` receives stateless requests, any other server an `initialize`. What
the server sends besides responses is left to `server_messages`, I/O to the transport.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

from fastrpc.client.listening import LISTEN
from fastrpc.client.results import input_requests_of
from fastrpc.client.server_messages import ServerMessages
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import (
    ClientError,
    ConnectionLost,
    HeaderMismatch,
    HttpStatusError,
    InvalidAnswer,
    RemoteError,
    RequestTimeout,
    UnsupportedProtocolVersion,
)
from fastrpc.json_encoding import message_json
from fastrpc.protocol.followed_pages import FollowedPages
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST_SESSION_VERSION,
    LOG_KEY,
    SESSION_VERSIONS,
    STATELESS,
    VERSION_KEY,
    VERSIONS,
)
from fastrpc.time_limit import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc._core.client_request import PendingRequest
    from fastrpc._core.client_stream import ClientStream
    from fastrpc.client.handlers import Handlers
    from fastrpc.client.options import RequestOptions

PROBE_SECONDS = 5.0
"""Time limit of `server/discover` where the version is negotiated; after it, `initialize` is sent."""
MOST_ROUNDS = 16
"""Rounds of input requests in one call before the client gives up (MCP 2026-07-28: InputRequiredResult)."""
DRAIN_SECONDS = 1.0

REPORTING = ("tools/call", "resources/read", "prompts/get")
"""Requests that are sent with a progress token where the client wants progress, or has set a time limit."""

NO_MCP_HERE = (400, 404, 405)
"""HTTP statuses of a refused `initialize` after which HTTP+SSE is tried."""


class Session:
    """One session with a server. `version` and `info` (the result of `initialize` or `server/discover`) are
    known after `begin`. `peer`: the server's name in log records and errors about invalid messages."""

    def __init__(
        self,
        stream: ClientStream,
        handlers: Handlers,
        *,
        client_info: dict[str, Any],
        capabilities: dict[str, Any] | None,
        timeout_seconds: float,
        max_seconds: float = 0,
        sends_tokens: bool = False,
        takes_any_type: bool = False,
        peer: str = "the server",
    ) -> None:
        self.stream = stream
        self.handlers = handlers
        self.version = LATEST_SESSION_VERSION
        self.info: dict[str, Any] = {}
        self.log_level: str | None = None
        self.lost: ConnectionLost | None = None
        """Why the connection was lost; None while it is open."""
        self._takes_any_type = takes_any_type
        self.timeout_seconds = timeout_seconds
        stream.max_seconds = max_seconds
        stream.sends_tokens = sends_tokens
        self._client_info = client_info
        self._capabilities = capabilities
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._transport = ConnectionTransport()
        self._inbound = inbound = ServerMessages(stream, handlers, peer)
        self.listening = inbound.listening
        self.spawn = inbound.spawn
        self.answer = inbound.answer
        self.end = inbound.end

    @property
    def capabilities(self) -> dict[str, Any]:
        """The client capabilities that this client declares."""
        if self._capabilities is not None:
            return self._capabilities
        return self.handlers.capabilities(self.version)

    @property
    def awaited(self) -> str:
        """What the oldest request that is unanswered waits for; "" if there is none."""
        pending = self.stream.pending.values()
        first: PendingRequest | None = next((each for each in pending if each.method != LISTEN), None)
        return self._transport.awaited or (f"an answer to {first.method}" if first is not None else "")

    # --- the handshake --------------------------------------------------------------------------------

    async def begin(self, version: str | None, seconds: float, transport: ConnectionTransport) -> None:
        """Run the handshake. `version`: the only version to accept; None to negotiate. Raises ClientError."""
        self._transport = transport
        transport.on_gap = self.on_gap
        if version == STATELESS:
            await self._discover(seconds, must=True)
            return
        if version is None and await self._discover(min(seconds, PROBE_SECONDS), must=False):
            return
        await self._initialize(version or LATEST_SESSION_VERSION, seconds)

    async def _discover(self, seconds: float, must: bool) -> bool:
        """Return whether the server supports 2026-07-28. `must`: raise ClientError if it does not."""
        self.version = STATELESS
        self._transport.set_version(STATELESS)
        self.stream.set_envelope(self.envelope())
        try:
            found = await self._ask_for_versions(seconds)
        except (RemoteError, RequestTimeout, InvalidAnswer, HttpStatusError) as error:
            if must or (isinstance(error, HttpStatusError) and not _means_another_version(error.status)):
                raise
            found = {}
        supported = found.get("supportedVersions")
        if isinstance(supported, list) and STATELESS in supported:
            self.info = found
            return True
        if must:
            raise ClientError(f"the server does not support {STATELESS}; it supports {supported!r:.80}")
        self.version = LATEST_SESSION_VERSION
        self.stream.set_envelope(None)
        return False

    async def _ask_for_versions(self, seconds: float) -> dict[str, Any]:
        """Return the result of `server/discover`. Raises ClientError, also if no version is known here."""
        try:
            found: dict[str, Any] = await self.request("server/discover", timeout_seconds=seconds)
        except RemoteError as error:
            supported = _supported_by(error)
            if supported and not any(version in VERSIONS for version in supported):
                shown = ", ".join(str(version)[:20] for version in supported[:8])
                raise ClientError(f"the server supports only unknown protocol versions: {shown}") from None
            if STATELESS not in supported:
                raise
            # The error lists the version that it refused: the server supports it after all.
            found = await self.request("server/discover", timeout_seconds=seconds)
        return found

    async def _initialize(self, version: str, seconds: float) -> None:
        """Run the handshake (MCP up to 2025-11-25: lifecycle). Raises ClientError."""
        self.version = version
        self._transport.set_version(version)
        params = {
            "protocolVersion": version,
            "capabilities": self.capabilities,
            "clientInfo": self._client_info,
        }
        try:
            found = await self._send_initialize(params, seconds)
        except RemoteError as error:
            if STATELESS not in _supported_by(error):
                raise
            await self._discover(seconds, must=True)  # the first `server/discover` had timed out
            return
        chosen = found.get("protocolVersion")
        if chosen not in SESSION_VERSIONS:
            raise ClientError(f"the server chose an unknown protocol version: {chosen!r:.40}")
        self.version = chosen
        self.info = found
        self._transport.set_version(chosen)
        self.notify("notifications/initialized")
        await self._settle(seconds)
        if self.log_level is not None:
            await self.request("logging/setLevel", {"level": self.log_level}, timeout_seconds=seconds)

    async def _settle(self, seconds: float) -> None:
        """Wait until the transport is ready for requests. Raises ClientError, RequestTimeout among them."""
        late = RequestTimeout(f"notifications/initialized: not accepted within {seconds:g} s")
        with TimeLimit(seconds, lambda: late) if seconds else nullcontext():
            await self._transport.settle()

    async def _send_initialize(self, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the result of `initialize`, which HTTP+SSE gets if HTTP refuses it. Raises ClientError."""
        try:
            found: dict[str, Any] = await self.request("initialize", params, timeout_seconds=seconds)
        except (HttpStatusError, RemoteError) as refusal:
            if refusal.status not in NO_MCP_HERE or not await self._transport.fall_back():
                raise
            found = await self.request("initialize", params, timeout_seconds=seconds)
        return found

    async def set_log_level(self, level: str) -> None:
        """Set the minimum level of log messages, from the next request on. Raises ClientError."""
        self.log_level = level
        if self.version == STATELESS:
            self.stream.set_envelope(self.envelope())
        else:
            await self.request("logging/setLevel", {"level": level})

    def envelope(self) -> dict[str, Any]:
        """Return the ``_meta`` of a request in 2026-07-28."""
        meta: dict[str, Any] = {
            VERSION_KEY: self.version,
            CAPABILITIES_KEY: self.capabilities,
            CLIENT_KEY: self._client_info,
        }
        if self.log_level is not None:
            meta[LOG_KEY] = self.log_level
        return meta

    # --- requests -------------------------------------------------------------------------------------

    async def request(
        self, method: str, params: dict[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Send a request and return its result, which may be an InputRequiredResult: a dict; with `is_call` a
        complete one is a CallResult. Cancelling this cancels the request. Raises ClientError."""
        try:
            return await self._request(method, params, **options)
        except RemoteError as error:
            if not self.is_mismatch(error) or method != "tools/call":
                raise
        async for _ in FollowedPages("tools/list", self._peer).read_by(self._request):
            pass  # the transport learns the headers of tools
        return await self._request(method, params, **options)

    def is_mismatch(self, error: RemoteError) -> bool:
        """Whether a call was refused because its headers do not match the tool's current schema. The server
        has not processed it; it may be sent again after `tools/list` (MCP 2026-07-28, transports: custom
        headers)."""
        return error.code == HeaderMismatch.code and self.version == STATELESS

    async def _request(
        self, method: str, params: dict[str, Any] | None, **options: Unpack[RequestOptions]
    ) -> Any:
        pending, future = self.start(method, params, **options)
        try:
            return await future
        except asyncio.CancelledError:
            self.withdraw(pending)
            raise
        finally:
            self._inbound.progress.pop(pending.id, None)

    def start(
        self, method: str, params: dict[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> tuple[PendingRequest, asyncio.Future[Any]]:
        """Send a request; return it, and a future of its result. Raises ConnectionLost."""
        if self.lost is not None:
            raise self.lost_again()
        limit = options.get("timeout_seconds")
        asks = self.stream.sends_tokens or bool(limit)
        if limit is None:
            limit = self.timeout_seconds
        token = self.stream.next_id if asks and method in REPORTING else None
        if (on_progress := options.get("on_progress")) is not None:
            token = self.stream.next_id
            self._inbound.progress[token] = on_progress
        params = self._with_meta(params, token)
        future: asyncio.Future[Any] = self._loop.create_future()
        is_call = options.get("is_call", False)
        return self.stream.request(method, params, future, limit, None, is_call), future

    def _with_meta(self, params: dict[str, Any] | None, token: int | None) -> dict[str, Any]:
        """Return params with the ``_meta`` members of the version, and a progress token if there is one."""
        params = dict(params or {})
        meta = dict(params.get("_meta") or {})
        if token is not None:
            meta.setdefault("progressToken", token)
        if self.version == STATELESS:
            meta = {**self.envelope(), **meta}
        if meta:
            params["_meta"] = meta
        return params

    def withdraw(self, request: PendingRequest) -> None:
        """Cancel a request whose caller has stopped waiting, but not `initialize` (MCP, cancellation)."""
        if self.stream.forget(request) and request.method != "initialize" and self.lost is None:
            self.stream.cancel(request.id, {"reason": "the caller has stopped waiting"})

    def lost_again(self) -> ConnectionLost:
        """Return a new error for a request on a lost connection."""
        assert self.lost is not None
        return self.lost.again()

    async def complete(
        self, method: str, params: dict[str, Any], found: Any = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Send a request, answer the input requests in its results, and return the complete result (MCP
        2026-07-28, multi round-trip requests). `found`: the first result, if it came. Raises ClientError."""
        any_type = self._takes_any_type or options.get("may_be_task", False)
        if found is None:
            found = await self.request(method, params, **options)
        for _ in range(MOST_ROUNDS):
            requests = input_requests_of(method, found, any_type=any_type)
            if requests is None:
                return found
            again = dict(params)
            if "inputRequests" in found:
                again["inputResponses"] = {
                    key: await self.answer(request) for key, request in requests.items()
                }
            if "requestState" in found:
                again["requestState"] = found["requestState"]
            found = await self.request(method, again, **options)
        raise ClientError(f"{method}: the server still requests input after {MOST_ROUNDS} rounds")

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification. Raises ConnectionLost, ClientError if the server does not read its input, and
        ArgumentError for what JSON cannot hold."""
        if self.lost is not None:
            raise self.lost_again()
        params = self._with_meta(params, None)
        self.stream.send(message_json({"jsonrpc": "2.0", "method": method, "params": params}))

    # --- the end --------------------------------------------------------------------------------------

    def on_lost(self, error: ConnectionLost) -> None:
        """Handle a lost connection: fail pending requests, unless they may still be answered."""
        if self.lost is None:
            self.lost = error
            self._inbound.is_closed = True
            if not self._transport.still_answers:
                self.fail_pending()
            for listening in self.listening:
                listening.lost()

    def fail_pending(self) -> None:
        """Fail the pending requests of a lost connection."""
        self.stream.detach()
        self.stream.fail_all(lambda request: self.lost_again())

    async def drain(self) -> None:
        """After the connection is lost, wait briefly for responses that may still arrive."""
        deadline = self._loop.time() + DRAIN_SECONDS
        while self._transport.still_answers and self.stream.pending and self._loop.time() < deadline:
            await asyncio.sleep(0.01)

    def on_gap(self) -> None:
        """Notifications may have been missed: subscribers must re-read."""
        for listening in self.listening:
            listening.missed()


def _supported_by(error: RemoteError) -> list[Any]:
    """Return the supported versions that an UnsupportedProtocolVersion error lists; [] for other errors."""
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return supported if error.code == UnsupportedProtocolVersion.code and isinstance(supported, list) else []


def _means_another_version(status: int) -> bool:
    """Whether a server that refuses `server/discover` with this HTTP status may support an older version."""
    return status not in (401, 403, 429) and not 300 <= status < 400 and status < 500
