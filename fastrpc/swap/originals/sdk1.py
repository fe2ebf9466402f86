"""Hands requests to a low-level server of the official SDK's 1.x, with the objects that its handlers expect.

A request becomes the SDK's own model, and its ``Server._handle_request`` calls the handler: with its
RequestContext, its mapping of errors, and whatever other packages have put around it. The session is the
SDK's ServerSession, whose stream of messages to the client is an `OutboundStream`.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary

from fastrpc.compat.lowlevel.own_methods import current, meta_of
from fastrpc.compat.lowlevel.values import HandlerError, error_of
from fastrpc.errors import InvalidParams, MethodNotFound
from fastrpc.protocol.versions import SESSION_VERSIONS
from fastrpc.swap.originals.methods import Handed
from fastrpc.swap.originals.outbound import OutboundStream, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.errors import ProtocolError

INVALID = "Invalid request parameters"
NOT_HANDED = ("initialize", "notifications/initialized", "notifications/cancelled")


def is_known(module: Any) -> bool:
    """Whether a module ``mcp.server.lowlevel.server`` is of the SDK's 1.x, with all that is used of it
    here."""
    server = getattr(module, "Server", None)
    return all(
        hasattr(server, name) for name in ("run", "_handle_request", "_handle_notification")
    ) and hasattr(module, "request_ctx")


def change_context(module: Any) -> None:
    """Replace the variable ``request_ctx`` by one that also knows calls that fastrpc makes."""
    module.request_ctx = LateRequestContext(module.request_ctx)


class LateRequestContext:
    """The context variable of the running request; that of a call by fastrpc is made when it is asked for."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self.name = variable.name
        self.set = variable.set
        self.reset = variable.reset

    def get(self, *default: Any) -> Any:
        """Return the RequestContext of the running request. Raises LookupError outside of one."""
        try:
            return self._variable.get()
        except LookupError:
            call = current.get(None)
            original = None if call is None else original_of(call)
            if original is not None:
                found = original.request_context(call)
                self._variable.set(found)
                return found
            if default:
                return default[0]
            raise


def original_of(call: Any) -> Any:
    """Return the `Sdk1Server` that a running call belongs to, None if it is over or another server's."""
    if not is_running(call):
        return None
    return getattr(call._channel.request.dispatcher.runtime.server, "original", None)


class Responder:
    """A request, as ``Server._handle_request`` takes it; the SDK's RequestResponder also writes the
    answer."""

    cancelled = False
    message_metadata = None

    def __init__(self, request_id: Any, request: Any) -> None:
        self.request_id = request_id
        self.request = request
        self.request_meta = getattr(getattr(request, "params", None), "meta", None)
        self.response: Any = None

    async def respond(self, response: Any) -> None:
        """Keep the response: the engine writes it."""
        self.response = response


class Sdk1Server:
    """One low-level server; see `fastrpc.swap.originals.interfaces.Original`."""

    hands_initialize = False

    @staticmethod
    def is_served(server: Any) -> bool:
        """Whether a server has nothing that needs the SDK's own session: experimental tasks."""
        return getattr(server, "_experimental_handlers", None) is None

    def __init__(self, server: Any, options: Any) -> None:
        types = sys.modules["mcp.types"]
        self.server = server
        self.state: Any = {}
        self.add_tools: Callable[[list[Any]], object] | None = None
        self.planned: set[str] = set()
        self._options = options
        self._types = types
        self._sessions: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._requests = _by_method(types.ClientRequest)
        self._notifications = _by_method(types.ClientNotification)
        supported = sys.modules["mcp.shared.version"].SUPPORTED_PROTOCOL_VERSIONS
        self.session_versions = tuple(version for version in SESSION_VERSIONS if version in supported)
        self.methods = {name: self.session_versions for name in self._requests if name not in NOT_HANDED}
        self.notifications = [
            name
            for name, model in self._notifications.items()
            if name not in NOT_HANDED and model in server.notification_handlers
        ]
        self.instructions: str | None = options.instructions
        given = {
            "name": options.server_name,
            "version": options.server_version,
            "websiteUrl": getattr(options, "website_url", None),
            "icons": getattr(options, "icons", None),
        }
        self.info = {name: _plain(value) for name, value in given.items() if value is not None}

    def capabilities(self, version: str) -> dict[str, Any]:
        found: dict[str, Any] = _plain(self._options.capabilities)
        return found

    def error_of(self, error: Exception, version: str) -> ProtocolError:
        return error_of(error, version)

    def find_plain_tools(self) -> bool:
        from fastrpc.swap.originals.first_fastmcp import plain_calls

        return plain_calls(self)

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        model = self._requests[method]
        try:
            request = model.model_validate({"method": method, **({"params": params} if params else {})})
        except ValueError:
            raise InvalidParams(INVALID, "") from None
        if model not in self.server.request_handlers:
            raise MethodNotFound("Method not found")
        call: Any = current.get()
        responder = Responder(call.request_id, request)
        session = self.session_of(call._channel.request.dispatcher)
        await self.server._handle_request(responder, request, session, self.state, False)
        response = responder.response
        if isinstance(response, self._types.ErrorData):
            raise HandlerError(response.code, response.message, _plain(response.data))
        found: dict[str, Any] = _plain(response)
        return found

    async def answer_call(self, name: str, arguments: dict[str, Any], call: Any) -> Handed:
        """Return the result of a tool's handler, for a call that the compiled connection has begun."""
        params = {"name": name, "arguments": arguments}
        meta = meta_of(call)
        return Handed(await self.answer("tools/call", {**params, "_meta": meta} if meta else params))

    async def take(self, method: str, params: dict[str, Any], dispatcher: Any) -> None:
        model = self._notifications[method]
        await self.server._handle_notification(model.model_validate({"method": method, "params": params}))

    # --- the objects that handlers receive ------------------------------------------------------------

    def request_context(self, call: Any) -> Any:
        """Return the SDK's RequestContext of a running call."""
        module = sys.modules["mcp.shared.context"]
        meta = meta_of(call)
        experimental: Any = getattr(
            sys.modules.get("mcp.server.experimental.request_context"), "Experimental", None
        )
        session = self.session_of(call._channel.request.dispatcher)
        given: dict[str, Any] = {}
        if experimental is not None:
            declared = session.client_params.capabilities
            given["experimental"] = experimental(None, declared, session, None)
        model = self._types.RequestParams.Meta
        return module.RequestContext(
            call.request_id, model.model_validate(meta) if meta else None, session, self.state, **given
        )

    def session_of(self, dispatcher: Any) -> Any:
        """Return the SDK's ServerSession of a connection: the same one for all its requests."""
        main = dispatcher.main
        found = self._sessions.get(main)
        if found is None:
            outbound = OutboundStream(main, self._types)
            found = sys.modules["mcp.server.session"].ServerSession(None, outbound, self._options)
            found._incoming_message_stream_writer.close()
            found._incoming_message_stream_reader.close()
            found._initialization_state = type(found._initialization_state).Initialized
            found._client_params = self._client_params(main.session)
            outbound.session = found
            self._sessions[main] = found
        return found

    def _client_params(self, session: Any) -> Any:
        return self._types.InitializeRequestParams.model_validate(
            {
                "protocolVersion": session.version,
                "capabilities": session.client_capabilities,
                "clientInfo": {"name": "", "version": "", **session.client_info},
            }
        )


def _by_method(union: Any) -> dict[str, Any]:
    """Return the classes of a RootModel's union by the method of each."""
    from typing import get_args

    classes = get_args(union.model_fields["root"].annotation)
    return {get_args(each.model_fields["method"].annotation)[0]: each for each in classes}


def _plain(value: Any) -> Any:
    """Return a value of the SDK as its session sends it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return [_plain(each) for each in value] if isinstance(value, list) else value
