"""Hands requests to a low-level server of the official SDK's 2.x, by its own `ServerRunner`.

The runner takes a method and its params and returns the result: version rules, middleware, validation,
contexts and the form of the result are the SDK's. What it needs besides is a channel to the client:
`CallChannel` is that of a request, `ConnectionChannel` that of the connection, both over fastrpc's outbound
channel.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary, ref

from fastrpc.compat.lowlevel.own_methods import current, meta_of
from fastrpc.compat.lowlevel.values import HandlerError, error_of
from fastrpc.errors import FastrpcError
from fastrpc.protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, SESSION_VERSIONS, STATELESS
from fastrpc.swap.originals.methods import Handed
from fastrpc.swap.originals.outbound import ask_client, code_and_data, notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.errors import ProtocolError

INVALID_PARAMS = -32602


def is_known(module: Any) -> bool:
    """Whether a module ``mcp.server.lowlevel.server`` is of the SDK's 2.x, with all that is used of it
    here."""
    server = getattr(module, "Server", None)
    known = all(hasattr(server, name) for name in ("run", "get_request_handler", "get_notification_handler"))
    return known and "mcp.server.runner" in sys.modules


class ConnectionChannel:
    """What a Connection of the SDK sends on (its Outbound)."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = ref(dispatcher)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> Any:
        """Return the client's result for a request of the running call. Raises the SDK's MCPError."""
        return await asked(current.get(None), method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Send a notification."""
        notify(None, self._dispatcher(), method, params)


class CallChannel:
    """The channel of one request or notification (the SDK's DispatchContext). `call` is fastrpc's Context,
    None for a notification."""

    message_metadata = None

    def __init__(self, call: Any, dispatcher: Any) -> None:
        self.call = call
        self.request_id = None if call is None else call.request_id
        self.can_send_request = call is not None and call.protocol_version != STATELESS
        self._dispatcher = dispatcher
        self._cancelled: Any = None

    @property
    def transport(self) -> Any:
        context = sys.modules["mcp.shared.transport_context"].TransportContext
        return context(kind="jsonrpc", can_send_request=self.can_send_request)

    @property
    def cancel_requested(self) -> Any:
        """An event of AnyIO's. It is never set: a cancelled call is cancelled itself."""
        if self._cancelled is None:
            self._cancelled = sys.modules["anyio"].Event()
        return self._cancelled

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> Any:
        """Return the client's result. Raises the SDK's MCPError, and NoBackChannelError where the protocol
        has no requests to clients."""
        if not self.can_send_request:
            raise sys.modules["mcp.shared.exceptions"].NoBackChannelError(method)
        return await asked(self.call, method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Send a notification that belongs to the request."""
        notify(self.call, self._dispatcher, method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client has asked for it."""
        token = None if self.call is None else self.call._channel.request.progress_token
        if token is not None:
            given = {"progress": progress, "total": total, "message": message}
            params = {name: value for name, value in given.items() if value is not None}
            await self.notify("notifications/progress", {"progressToken": token, **params})


async def asked(call: Any, method: str, params: Mapping[str, Any] | None, opts: Any) -> Any:
    """Return the client's result for a request of a call. Raises the SDK's MCPError with the client's
    code."""
    import asyncio

    mcp_error = sys.modules["mcp.shared.exceptions"].MCPError
    try:
        return await asyncio.wait_for(ask_client(call, method, params), (opts or {}).get("timeout"))
    except FastrpcError as error:
        code, data = code_and_data(error)
        raise mcp_error(code, str(error), data) from error
    except asyncio.TimeoutError as error:
        raise mcp_error(408, f"Timed out while waiting for response to {method}") from error


class Sdk2Server:
    """One low-level server; see `fastrpc.swap.originals.interfaces.Original`."""

    hands_initialize = True

    @staticmethod
    def is_served(server: Any) -> bool:
        """Whether a server can be served: any."""
        return True

    def __init__(self, server: Any, options: Any) -> None:
        self.server = server
        self.state: Any = {}
        self.add_tools: Callable[[list[Any]], object] | None = None
        self.planned: set[str] = set()
        self._options = options
        self._runners: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        spec = sys.modules["mcp_types.methods"]
        versions = sys.modules["mcp_types.version"]
        self.session_versions = tuple(
            each for each in SESSION_VERSIONS if each in versions.HANDSHAKE_PROTOCOL_VERSIONS
        )
        stateless = (STATELESS,) if STATELESS in versions.MODERN_PROTOCOL_VERSIONS else ()
        served = (*self.session_versions, *stateless)
        names = {*spec.SPEC_CLIENT_METHODS, *server._request_handlers} - {"initialize"}
        self.methods = dict.fromkeys(sorted(names), served)
        self.notifications = sorted({*spec.SPEC_CLIENT_NOTIFICATION_METHODS, *server._notification_handlers})
        self.instructions: str | None = options.instructions
        given = {"name": options.server_name, "version": options.server_version, "title": options.title}
        self.info = {name: value for name, value in given.items() if value is not None}

    def capabilities(self, version: str) -> dict[str, Any]:
        declared = self._options.capabilities
        if version == STATELESS:
            declared = self.server.get_capabilities(protocol_version=version)
        found: dict[str, Any] = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
        return found

    def error_of(self, error: Exception, version: str) -> ProtocolError:
        if isinstance(error, sys.modules["pydantic"].ValidationError):
            return HandlerError(INVALID_PARAMS, "Invalid request parameters", "")
        return error_of(error, version)

    def find_plain_tools(self) -> bool:
        found = [finder(self) for finder in FINDERS]  # all of them, not up to the first
        return any(found)

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        call: Any = current.get()
        dispatcher = call._channel.request.dispatcher
        channel = CallChannel(call, dispatcher)
        given = params or None
        if call.protocol_version != STATELESS or method == "initialize":
            found: dict[str, Any] = await self.runner_of(dispatcher).on_request(channel, method, given)
            return found
        meta = params.get("_meta") or {}
        module = sys.modules["mcp.server.connection"]
        connection = module.Connection.from_envelope(
            STATELESS,
            meta.get(CLIENT_KEY),
            meta.get(CAPABILITIES_KEY),
            outbound=module.NotifyOnlyOutbound(ConnectionChannel(dispatcher.main)),
        )
        serve_one = sys.modules["mcp.server.runner"].serve_one
        result: dict[str, Any] = await serve_one(
            self.server, channel, method, given, connection=connection, lifespan_state=self.state
        )
        return result

    async def answer_call(self, name: str, arguments: dict[str, Any], call: Any) -> Handed:
        """Return the result of a tool's handler, for a call that the compiled connection has begun."""
        request = call._channel.request
        return Handed(
            await self.answer("tools/call", {**request.params, "name": name, "arguments": arguments})
        )

    async def take(self, method: str, params: dict[str, Any], dispatcher: Any) -> None:
        await self.runner_of(dispatcher).on_notify(CallChannel(None, dispatcher), method, params or None)

    def runner_of(self, dispatcher: Any) -> Any:
        """Return the SDK's ServerRunner of a connection with a handshake."""
        main = dispatcher.main
        found = self._runners.get(main)
        if found is None:
            connection = sys.modules["mcp.server.connection"].Connection.for_loop(ConnectionChannel(main))
            runner = sys.modules["mcp.server.runner"].ServerRunner
            found = runner(self.server, connection, self.state, init_options=self._options)
            self._runners[main] = found
        return found

    def request_context(self, call: Any, name: str, arguments: dict[str, Any]) -> Any:
        """Return the SDK's ServerRequestContext of a running call of a tool."""
        dispatcher = call._channel.request.dispatcher
        runner, meta = self.runner_of(dispatcher), meta_of(call)
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        lifted = sys.modules["mcp.server.runner"]._extract_meta(params) if meta else None
        channel = CallChannel(call, dispatcher)
        return runner._make_context(channel, "tools/call", params, lifted, call.protocol_version)


FINDERS: list[Callable[[Sdk2Server], bool]] = []
"""What looks for plain tools in the high-level servers whose modules have been loaded."""


def is_traced() -> bool:
    """Whether the program has set up OpenTelemetry: each message then has a span, which the runner makes."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
