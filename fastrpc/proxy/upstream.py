"""The connection to an upstream server: a client whose requests belong to calls.

Uses the session and the transports of `fastrpc.client`. Routes progress, log messages and the server's own
requests to the call that they belong to. `fastrpc.proxy` decides what to request, and when.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.handlers import Handlers
from fastrpc.client.listening import Listening
from fastrpc.client.server_messages import params_of
from fastrpc.client.session import Session
from fastrpc.client_requests.base import ClientRefusal
from fastrpc.errors import (
    AuthorizationFailed,
    ClientError,
    ConnectionLost,
    FastrpcError,
    InvalidAnswer,
    MethodNotFound,
    Overloaded,
    ProtocolError,
    SessionExpired,
    ToolError,
)
from fastrpc.errors import RemoteError as ErrorResponse
from fastrpc.json_encoding import to_json
from fastrpc.methods.logging import least_level
from fastrpc.protocol.versions import CAPABILITIES_KEY, LOG_KEY, SERVER_KEY, STATELESS
from fastrpc.proxy.entries import ask
from fastrpc.proxy.hop import (
    ELICITED,
    OWN_NOTIFICATIONS,
    cancellation,
    report_progress,
    request_params,
    with_carried_meta,
)
from fastrpc.proxy.requests import (
    ASKED,
    REFUSED,
    CallOrigin,
    LoginFailed,
    SessionGone,
    UnreadableAnswer,
    UpstreamError,
)
from fastrpc.time_limit import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.client_request import PendingRequest
    from fastrpc._core.forwarding import UpstreamRoute
    from fastrpc.client.transport import ConnectionTransport
    from fastrpc.context import Context

    class Owner(Protocol):
        """Receives the events of a connection."""

        route: UpstreamRoute
        relist: Callable[[], object]
        """Lists everything again: the server may have changed without a notification."""

        def on_notification(self, method: str, params: dict[str, Any], context: Context | None) -> object:
            """Handle a notification. `context` is that of the call to which it most probably belongs."""

        def on_end(self, client: UpstreamClient, reason: str) -> object:
            """Handle the end of the connection."""


HANDSHAKE_SECONDS = 3600.0
"""Time limit of the handshake; `fastrpc.proxy` has a shorter one for the whole start."""
FROM_CLIENT = ("elicitation", "sampling", "roots")
LISTS = ("tools", "prompts", "resources")
OF_CALLS = ("notifications/message", ELICITED)
"""Notifications that belong to a call, though they do not say to which. Those that MCP does not know may,
unless the transport has a stream for each call, and they arrive on none of these: then all processes with a
connection to the server hear them."""


class UpstreamClient:
    """A connection to an MCP server. `version`: of the protocol, by default the latest that it supports."""

    def __init__(
        self,
        owner: Owner,
        initialize_params: dict[str, Any],
        transport: ConnectionTransport,
        version: str | None = None,
    ) -> None:
        self.owner = owner
        self.loop = asyncio.get_running_loop()
        self.ended: str | None = None
        """Why the connection has ended; None while it is open."""
        self._version = version
        self.transport = transport
        self.stream = stream = ClientStream()
        self.session = Session(
            stream,
            Handlers(),
            client_info=initialize_params["clientInfo"],
            capabilities=initialize_params["capabilities"],
            timeout_seconds=0,
            peer="the upstream server",
        )
        stream.on_request = self._on_request
        stream.on_notification = self._on_notification
        self._log = diagnostics.Once("warning")
        self._watched: set[str] = set()
        self._filter: dict[str, Any] = {}
        self._changes: Listening | None = None

    @property
    def stateless(self) -> bool:
        """Whether the server uses 2026-07-28, which returns input requests in results."""
        return self.session.version == STATELESS

    async def initialize(self) -> dict[str, Any]:
        """Connect, and return the InitializeResult or DiscoverResult. Raises ToolError and RemoteError."""
        try:
            await self.transport.open(self.stream, self._on_lost)
            self.stream.attach(self.loop)
            await self.session.begin(self._version, HANDSHAKE_SECONDS, self.transport)
        except ClientError as error:
            raise translated(error) from None
        self.transport.on_gap = self.owner.relist
        found = self.session.info
        declared = found.get("capabilities")  # what is no object there says only that it has one
        items = declared.items() if isinstance(declared, dict) else ()
        found["capabilities"] = {name: each if isinstance(each, dict) else {} for name, each in items}
        if self.stateless:
            meta = found.get("_meta")
            found["serverInfo"] = meta.get(SERVER_KEY) if isinstance(meta, dict) else None
            for name in LISTS:
                if found["capabilities"].get(name, {}).get("listChanged"):
                    self._filter[f"{name}ListChanged"] = True
            if self._filter:  # before the lists are read
                await self._listen()
        elif "logging" in found["capabilities"]:  # the proxy filters levels for each client
            try:
                await self.request("logging/setLevel", {"level": "debug"})
            except UpstreamError as error:
                diagnostics.write("warning", f"the upstream server refused logging/setLevel: {error}")
        return found

    # --- requests -------------------------------------------------------------------------------------

    async def request(
        self, method: str, params: dict[str, Any] | None = None, context: Context | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result. Progress and the server's own requests go to the client of
        the call with this `context`. Cancelling the caller cancels the request. Raises RemoteError, and
        ToolError if the connection is lost."""
        if self.ended is not None:
            raise ToolError(f"the connection to the upstream server is lost: {self.ended}")
        params = dict(params or {}) if context is None else request_params(context, method, params or {})
        meta = self._meta(context)
        if meta:
            params["_meta"] = {**params.get("_meta", {}), **meta}
        call = CallOrigin(context, self.loop.create_future())
        pending = self.stream.request(method, params, call.future, 0, call)
        return await self._finish(pending, call)

    async def result_of(self, pending: PendingRequest, context: Context) -> dict[str, Any]:
        """Return the result of a request that was sent for the call of this context. Raises as `request`."""
        call = pending.context = CallOrigin(context, self.loop.create_future())
        self.stream.follow(pending, call.future)
        return await self._finish(pending, call)

    async def _finish(self, pending: PendingRequest, call: CallOrigin) -> dict[str, Any]:
        try:
            return self._plain(await self._result_of(pending, call))
        except ClientError as error:
            raise translated(error) from None
        finally:
            if self.stream.forget(pending):
                said = {"reason": "the caller has stopped waiting", **cancellation(call.context)}
                self.stream.cancel(pending.id, said)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification of a client, if the server reads any."""
        try:
            self.session.notify(method, with_carried_meta(params))
        except ClientError as error:
            diagnostics.write("info", f"the upstream server does not get {method:.200}: {error}")

    def _meta(self, context: Context | None) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if self.stateless:
            meta = self.session.envelope()
            if context is not None:  # each request may come from a different client
                declared = context.client_capabilities
                capabilities = {name: declared[name] for name in FROM_CLIENT if name in declared}
                if "roots" in capabilities:
                    capabilities["roots"] = {}
                meta[CAPABILITIES_KEY] = capabilities
                channel: Any = context._channel
                level = least_level(channel.request)
                if level is not None:  # who asks for log messages is answered with a stream, which costs more
                    meta[LOG_KEY] = level
        if context is not None and context.wants_progress:
            meta["progressToken"] = self.stream.next_id
        return meta

    def _plain(self, result: dict[str, Any]) -> dict[str, Any]:
        """Remove `serverInfo` from the `_meta` of a result: the proxy's own results name the proxy."""
        meta = result.get("_meta")
        if self.stateless and isinstance(meta, dict) and SERVER_KEY in meta:
            del meta[SERVER_KEY]
            if not meta:
                del result["_meta"]
        return result

    async def _result_of(self, pending: PendingRequest, call: CallOrigin) -> dict[str, Any]:
        """Wait for the result. Requests that the server sends meanwhile are answered in the task of the call,
        because InputRequired may be raised there (MCP 2026-07-28)."""
        while (found := await call.future) is ASKED:
            while call.questions:
                await self._answer(call, call.questions.popleft())
            call.future = self.loop.create_future()
            self.stream.follow(pending, call.future)
        return found

    async def _answer(self, call: CallOrigin, question: dict[str, Any]) -> None:
        """Forward a request of the server to the call's client, and the response to the server."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        try:
            assert call.context is not None
            asked = ask(call.context, question["method"], question.get("params") or {})
            call.asking = question["id"], self.loop.create_task(asked)
            answer["result"] = await call.asking[1]
        except asyncio.CancelledError:
            if call.asking is not None:
                raise
            return  # by the server
        except (ToolError, ProtocolError) as error:
            refusal = error.error if isinstance(error, ClientRefusal) else None
            answer["error"] = refusal or {"code": REFUSED, "message": str(error)}
        finally:
            call.asking = None
        self.stream.send(to_json(answer))

    async def watch(self, uris: set[str], seconds: float) -> None:
        """Be subscribed to changes of these resources alone. `seconds`: the time limit of each answer."""
        new, gone = uris - self._watched, self._watched - uris
        self._watched = set(uris)
        if self.stateless:
            self._filter["resourceSubscriptions"] = sorted(uris)
            await self._listen()
            return
        changes = [("resources/unsubscribe", uri) for uri in sorted(gone)]
        for method, uri in [*changes, *(("resources/subscribe", uri) for uri in sorted(new))]:
            try:
                with TimeLimit(seconds):
                    await self.request(method, {"uri": uri})
            except TimeoutError:
                self._log.write(f"the upstream server has not answered {method} within {seconds:g} s")
            except FastrpcError as error:
                if self.ended is not None:
                    return  # the next connection subscribes to all
                diagnostics.write("warning", f"the upstream server refused {method}, {uri:.200}: {error}")

    async def _listen(self) -> None:
        """Open a stream with the current filter; close the previous one after the acknowledgement."""
        before, self._changes = self._changes, _Changes(self.session, dict(self._filter), self.owner)
        try:
            await self._changes.__aenter__()
        except (ConnectionLost, TimeoutError) as error:
            diagnostics.write(
                "warning", f"the upstream server has not acknowledged subscriptions, trying again: {error}"
            )
            self.session.listening.append(self._changes)
            self.session.spawn(self._changes.open_again())
        except ClientError as error:
            diagnostics.write("info", f"the upstream server refused the subscriptions: {error}")
        if before is not None:
            await before.__aexit__(None, None, None)

    # --- incoming messages ----------------------------------------------------------------------------

    def _on_request(self, message: dict[str, Any]) -> None:
        """Forward a request of the server to the call on whose stream it arrived, else to the latest call."""
        if message["method"] == "ping":
            self.stream.send(to_json({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
            return
        of = self.transport.answering
        call = self._latest_call() if of is None else self._call_of(of)
        if call is not None and call.ask(message):
            return
        error = {"code": MethodNotFound.code, "message": "no call is in flight: there is no client to ask"}
        if call is not None:
            error = {"code": Overloaded.code, "message": "too many requests of this call are unanswered"}
        self.stream.send(to_json({"jsonrpc": "2.0", "id": message["id"], "error": error}))

    def _on_notification(self, message: dict[str, Any]) -> None:
        method: str = message["method"]
        params = params_of(message)
        if method == "notifications/progress":
            token = params.get("progressToken")
            pending = self.stream.pending.get(token) if type(token) is int else None
            call = None if pending is None or pending.is_forwarded else pending.context
            if call is not None and call.context is not None:
                try:
                    report_progress(call.context, params)
                except (KeyError, TypeError, ValueError) as error:
                    words = "the upstream server sent an invalid progress report"
                    diagnostics.write("warning", f"{words}: {error!r}")
            return
        if method == "notifications/cancelled":
            self._withdraw(params)
            return
        for listening in self.session.listening:
            listening.take(message, params)
        call = None
        if method in OF_CALLS or method not in OWN_NOTIFICATIONS:
            of = self.transport.answering
            if of is not None or method in OF_CALLS or not self.transport.has_request_streams:
                call = (None if of is None else self._call_of(of)) or self._latest_call()
        self.owner.on_notification(method, params, None if call is None else call.context)

    def _withdraw(self, params: dict[str, Any]) -> None:
        """Ask a question of the server no longer, which has cancelled it."""
        said = {name: value for name, value in with_carried_meta(params).items() if name != "requestId"}
        for pending in list(self.stream.pending.values()):
            call: CallOrigin | None = None if pending.is_forwarded else pending.context
            if call is not None and call.withdraw(params.get("requestId"), said):
                return

    def _latest_call(self) -> CallOrigin | None:
        """Return the latest call that has a Context, to which a message most probably belongs."""
        found = map(self._call_of, reversed(list(self.stream.pending.values())))
        return next((call for call in found if call is not None), None)

    def _call_of(self, pending: PendingRequest) -> CallOrigin | None:
        """Return the call that a request was sent for, if it has a Context; a forwarded one gets it now."""
        if pending.is_forwarded:
            self.owner.route.promote(pending)
        call: CallOrigin | None = pending.context
        return None if call is None or call.context is None else call

    # --- closing --------------------------------------------------------------------------------------

    def _on_lost(self, error: ConnectionLost) -> None:
        """Handle a lost connection: refuse new requests, and fail those that can no longer be answered."""
        if self.ended is None:
            self.ended = str(error)
            self.session.lost = error
            self.owner.on_end(self, self.ended)
            if not self.transport.still_answers:
                self._fail_all(self.ended)

    def _fail_all(self, reason: str) -> None:
        text = f"the connection to the upstream server is lost: {reason}; the next call reconnects"
        self.stream.fail_all(lambda request: ConnectionLost(text))

    async def leave(self) -> None:
        """Close the connection, within seconds."""
        if self.ended is not None:
            await self.session.drain()  # let pending requests finish with their own errors
        self._fail_all(self.ended or "closed by the proxy")
        await self.session.end()
        await self.transport.close()
        self.stream.detach()


class _Changes(Listening):
    """The stream of the server's change notifications, which are handled as all others, and not stored."""

    def __init__(self, session: Session, wanted: dict[str, Any], owner: Owner) -> None:
        super().__init__(session, wanted)
        self._owner = owner

    def add(self, message: dict[str, Any]) -> None:
        """Does nothing: `UpstreamClient` handles the notification."""

    def missed(self) -> None:
        self._owner.relist()


def translated(error: ClientError) -> FastrpcError:
    """Return the error of a call for the error of its upstream request."""
    if isinstance(error, ErrorResponse):
        return UpstreamError(error.code, error.message, error.data)
    if isinstance(error, SessionExpired):
        return SessionGone(f"the upstream server: {error}")
    if isinstance(error, AuthorizationFailed):
        return LoginFailed(str(error))
    if isinstance(error, InvalidAnswer):
        return UnreadableAnswer(str(error))
    return ToolError(str(error))
