"""MCP over one stream: the handshake, requests with progress, the server's own requests, notifications.

Negotiates the version (MCP 2026-07-28, versioning: backwards compatibility): a server that supports
2026-07-28 according to `server/discover` receives stateless requests, any other server an `initialize`. The
methods of MCP and their results are left to `fastrpc.client.asynchronous`, I/O to the transport.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

from fastrpc import diagnostics
from fastrpc._core.client_request import sent_id
from fastrpc._core.client_stream import LONGEST_LINE, OVER_LIMIT
from fastrpc.client.listening import LISTEN
from fastrpc.client.results import input_requests_of
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import (
    ClientError,
    HeaderMismatch,
    HttpStatusError,
    InternalError,
    InvalidAnswer,
    InvalidRequest,
    Overloaded,
    RemoteError,
    RequestTimeout,
    UnsupportedProtocolVersion,
)
from fastrpc.json_encoding import UNWRITABLE, message_json, to_json
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
from fastrpc.quotas import Quota, size_of
from fastrpc.redaction import masked
from fastrpc.time_limit import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc._core.client_request import PendingRequest
    from fastrpc._core.client_stream import ClientStream
    from fastrpc.client.handlers import Handlers
    from fastrpc.client.listening import Listening
    from fastrpc.client.options import RequestOptions
    from fastrpc.errors import ConnectionLost

PROBE_SECONDS = 5.0
"""Time limit of `server/discover` where the version is negotiated; after it, `initialize` is sent."""
MOST_ROUNDS = 16
"""Rounds of input requests in one call before the client gives up (MCP 2026-07-28: InputRequiredResult)."""
MOST_ANSWERING = 256
MOST_ANSWERING_BYTES = 64 * 1024 * 1024
"""Requests of the server that are being answered at a time, and their memory; one more is refused."""
MOST_HANDLING_BYTES = 64 * 1024 * 1024
TASK_BYTES = 4 * 1024
"""Memory of the notifications that asynchronous handlers work on, each with its task; one more is dropped."""
DRAIN_SECONDS = 1.0
LONGEST_EXCERPT = 80
MOST_INVALID_LOGGED = 5
"""Invalid messages that are logged of one connection; a server may write any number of them."""

REPORTING = ("tools/call", "resources/read", "prompts/get")
"""Requests that are sent with a progress token where the client wants progress, or has set a time limit."""

NO_MCP_HERE = (400, 404, 405)
"""HTTP statuses of a refused `initialize` after which HTTP+SSE is tried."""


class Session:
    """One session with a server.

    `version` and `info` (the result of `initialize` or `server/discover`) are known after `begin`. `peer`:
    what log records and errors about invalid messages call the server.
    """

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
        self._invalid_messages = 0
        self._loop = asyncio.get_running_loop()
        self._transport = ConnectionTransport()
        self.listening: list[Listening] = []
        """The open `Listening` objects, which receive change notifications."""
        self._progress: dict[int, Callable[[dict[str, Any]], object]] = {}
        self._answering: dict[str | int, asyncio.Task[None]] = {}
        self._answering_bytes = Quota(MOST_ANSWERING_BYTES)
        self._handling_bytes = Quota(MOST_HANDLING_BYTES)
        self._has_dropped = False
        self._tasks: set[asyncio.Task[Any]] = set()
        stream.on_request = self._on_request
        stream.on_notification = self._on_notification
        stream.on_unreadable = self._on_unreadable

    @property
    def capabilities(self) -> dict[str, Any]:
        """The client capabilities that this client declares."""
        if self._capabilities is not None:
            return self._capabilities
        return self.handlers.capabilities(self.version)

    @property
    def awaited(self) -> str:
        """What the oldest request that is unanswered waits for; "" if there is none."""
        first: PendingRequest | None = next(iter(self.stream.pending.values()), None)
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
        self._be_stateless(STATELESS)
        try:
            found = await self._ask_for_versions(seconds)
        except (RemoteError, RequestTimeout, InvalidAnswer):
            if must:
                raise
            found = {}
        except HttpStatusError as error:
            if must or not _means_another_version(error.status):
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
        """Return the result of `server/discover`. Raises ClientError, also if no version of the server is
        supported here."""
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

    def _be_stateless(self, version: str) -> None:
        self.version = version
        self._transport.set_version(version)
        self.stream.set_envelope(self.envelope())

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

        def late() -> RequestTimeout:
            return RequestTimeout(f"notifications/initialized: not accepted within {seconds:g} s")

        with TimeLimit(seconds, late) if seconds else nullcontext():
            await self._transport.settle()

    async def _send_initialize(self, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send `initialize` and return its result; if it is refused over HTTP, send it over the older
        transport. Raises ClientError."""
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
        """Send a request and return its result, which may be an InputRequiredResult. Raises ClientError.

        A result is a dict; with `is_call` a complete one is a CallResult. Cancelling this cancels the
        request.
        """
        try:
            return await self._request(method, params, **options)
        except RemoteError as error:
            if not self.is_mismatch(error) or method != "tools/call":
                raise
        await self._learn_tools()
        return await self._request(method, params, **options)

    def is_mismatch(self, error: RemoteError) -> bool:
        """Whether a call was refused because its headers do not match the tool's current schema. The server
        has not processed it; it may be sent again after `tools/list` (MCP 2026-07-28, transports: custom
        headers)."""
        return error.code == HeaderMismatch.code and self.version == STATELESS

    async def _learn_tools(self) -> None:
        """List all tools, so that the transport learns their headers. Raises ClientError."""
        pages = FollowedPages("tools/list", self._peer)
        params: dict[str, Any] | None = {}
        while params is not None:
            params = pages.next(await self._request("tools/list", params))

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
            self._progress.pop(pending.id, None)

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
            self._progress[token] = on_progress
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
        """Cancel a request whose caller has stopped waiting. `initialize` must not be cancelled (MCP,
        cancellation)."""
        if self.stream.forget(request) and request.method != "initialize" and self.lost is None:
            self.stream.cancel(request.id, {"reason": "the caller has stopped waiting"})

    def lost_again(self) -> ConnectionLost:
        """Return a new error for a request on a lost connection."""
        assert self.lost is not None
        return type(self.lost)(str(self.lost), exit_code=self.lost.exit_code, stderr=self.lost.stderr)

    async def complete(
        self, method: str, params: dict[str, Any], found: Any = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Send a request, answer the input requests in its results, and return the complete result (MCP
        2026-07-28, multi round-trip requests). `found`: the first result, if it has been received. Raises
        ClientError.
        """
        if found is None:
            found = await self.request(method, params, **options)
        for _ in range(MOST_ROUNDS):
            requests = input_requests_of(method, found, any_type=self._takes_any_type)
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

    # --- what the server sends ------------------------------------------------------------------------

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the result for a request of the server. Raises RemoteError, and whatever a handler
        raises."""
        return await self.handlers.answer(str(request.get("method")), params_of(request))

    def _on_request(self, request: dict[str, Any]) -> None:
        size = size_of(request, MOST_ANSWERING_BYTES)
        if request["id"] in self._answering:
            self._refuse(request, InvalidRequest.code, "a request with this id is not answered yet")
            return
        if len(self._answering) >= MOST_ANSWERING or not self._answering_bytes.take(size):
            self._refuse(request, Overloaded.code, "too many requests are unanswered")
            return
        self.stream.needs_loop = True
        task = self._loop.create_task(self._reply(request, size))
        self._answering[request["id"]] = task
        self._keep(task)

    def _refuse(self, request: dict[str, Any], code: int, why: str) -> None:
        self._respond(_error_line(request["id"], {"code": code, "message": why}))

    async def _reply(self, request: dict[str, Any], size: int) -> None:
        """Answer a request of the server, which takes so many bytes. An exception of a handler, or a result
        of it that JSON cannot hold, also fails the pending requests."""
        id = request["id"]
        try:
            result = await self.answer(request)
            line = message_json({"jsonrpc": "2.0", "id": id, "result": result})
        except RemoteError as error:
            refusal: dict[str, Any] = {"code": error.code, "message": error.message}
            if error.data is not None:
                refusal["data"] = error.data
            line = _error_line(id, refusal)
        except Exception as error:
            failure = error
            words = f"{type(error).__name__}: {error}"
            line = _error_line(id, {"code": InternalError.code, "message": words})
            self.stream.fail_all(lambda request: failure)
        finally:
            self._answering.pop(id, None)
            self._answering_bytes.release(size)
        if self.lost is None:
            self._respond(line)

    def _respond(self, line: bytes) -> None:
        """Send a response, if the server reads any."""
        try:
            self.stream.send(line)
        except ClientError as error:
            diagnostics.write("warning", f"{self._peer} gets no response to its request: {error}")

    def _on_notification(self, message: dict[str, Any]) -> None:
        method: str = message["method"]
        params = params_of(message)
        if method == "notifications/progress":
            token = sent_id(params.get("progressToken"))
            on_progress = None if token is None else self._progress.get(token)
            if on_progress is not None:
                self._run(on_progress, params)
        elif method == "notifications/cancelled":
            task = self._answering.pop(params.get("requestId", ""), None)
            if task is not None:
                task.cancel()
        for listening in self.listening:
            listening.take(message, params)
        handler = self.handlers.by_method.get(method)
        if handler is not None:
            self._run(handler, params)
        if self.handlers.on_notification is not None:
            self._run(self.handlers.on_notification, message)

    def _run(self, handler: Callable[[dict[str, Any]], object], params: dict[str, Any]) -> None:
        """Call a handler of notifications. Its exceptions are logged: there is no request to fail."""
        try:
            awaited = handler(params)
            if hasattr(awaited, "__await__"):
                self._begin_handling(awaited, TASK_BYTES + size_of(params, MOST_HANDLING_BYTES))
        except Exception as error:
            diagnostics.write("error", "a notification handler of the client raised an exception", error)

    def _begin_handling(self, awaited: Any, size: int) -> None:
        """Await what a handler of notifications has returned; they take so many bytes until then."""
        if not self._handling_bytes.take(size):
            if hasattr(awaited, "close"):
                awaited.close()  # a coroutine that does not begin
            if not self._has_dropped:
                self._has_dropped = True
                said = "notifies faster than the handlers end: notifications are dropped"
                diagnostics.write("warning", f"{self._peer} {said}")
            return
        self.stream.needs_loop = True
        task = self._loop.create_task(_awaited(awaited))
        task.add_done_callback(lambda task: self._handling_bytes.release(size))
        self._keep(task)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._dropped)

    def _dropped(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self.stream.needs_loop = False

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine until it ends or the session does."""
        self._keep(self._loop.create_task(coroutine))

    def _on_unreadable(self, line: bytes) -> None:
        """Skip an invalid message (MCP, stdio transport: the server must not write one). The first ones are
        logged.

        A line over the limit may be the response to any pending request: all of them fail.
        """
        if line == OVER_LIMIT:
            self._fail_all_over_limit()
            return
        self._invalid_messages += 1
        if self._invalid_messages > MOST_INVALID_LOGGED:
            return
        shown = repr(masked(line.decode(errors="replace"))[:LONGEST_EXCERPT])
        self.stream.remark = f"; it sent an invalid message: {shown}"
        diagnostics.write("warning", f"{self._peer} sent an invalid message: {shown}")
        if self._invalid_messages == MOST_INVALID_LOGGED:
            diagnostics.write("warning", f"{self._peer}: further invalid messages are not logged")

    def _fail_all_over_limit(self) -> None:
        text = f"{self._peer} sent a line of more than {LONGEST_LINE} bytes"
        for request in list(self.stream.pending.values()):
            if request.method != LISTEN:  # its response only ends the stream
                self.stream.fail(request, InvalidAnswer(f"{request.method}: {text}"))

    # --- the end --------------------------------------------------------------------------------------

    def on_lost(self, error: ConnectionLost) -> None:
        """Handle a lost connection: fail pending requests, unless they may still be answered."""
        if self.lost is None:
            self.lost = error
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

    async def end(self) -> None:
        """Cancel the handlers that still run."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def params_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a message; an empty dict if they are missing or not an object."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _error_line(id: Any, error: dict[str, Any]) -> bytes:
    """Return the response with an error, as JSON; a handler may have given it what JSON cannot hold."""
    try:
        return to_json({"jsonrpc": "2.0", "id": id, "error": error})
    except UNWRITABLE:
        words = "the handler raised an error that cannot be written as JSON"
        return to_json({"jsonrpc": "2.0", "id": id, "error": {"code": InternalError.code, "message": words}})


def _supported_by(error: RemoteError) -> list[Any]:
    """Return the supported versions that an UnsupportedProtocolVersion error lists; [] for other errors."""
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return supported if error.code == UnsupportedProtocolVersion.code and isinstance(supported, list) else []


def _means_another_version(status: int) -> bool:
    """Whether a server that refuses `server/discover` with this HTTP status may support an older version."""
    return status not in (401, 403, 429) and not 300 <= status < 400 and status < 500


async def _awaited(awaited: Any) -> None:
    try:
        await awaited
    except Exception as error:
        diagnostics.write("error", "a notification handler of the client raised an exception", error)
