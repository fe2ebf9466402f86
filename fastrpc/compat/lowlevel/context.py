"""The request context and the session of the official SDK's low-level server, on fastrpc's own `Context`.

A session represents one client's connection: it may be kept, and notify the client when no call runs. What
belongs to a call (progress, requests to the client) needs the running one. Both are made when a handler asks
for them.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary, ref

from fastrpc.compat.lowlevel.own_methods import current, meta_of
from fastrpc.compat.models import Model, typed
from fastrpc.compat.values import plain
from fastrpc.context import DONE
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.context import Context, Done
    from fastrpc.options import LogLevel

UPDATED = "notifications/resources/updated"

_sessions: WeakKeyDictionary[Any, ServerSession] = WeakKeyDictionary()


class RequestContext:
    """The request that a handler serves, as ``server.request_context``, and as ``ctx`` of the SDK's 2.x.

    `request` is the HTTP request, Starlette's where that is installed; None over stdio.
    """

    experimental = close_standalone_sse_stream = None

    def __init__(self, context: Context, server: Any) -> None:
        request = _request_of(context)
        self.request_id = context.request_id
        self.meta = _meta(meta_of(context))
        self.session = session_of(request.dispatcher, server)
        self.lifespan_context: Any = {} if context.state is None else context.state
        self.protocol_version = context.protocol_version
        self.method: str = request.method
        self.params: dict[str, Any] = request.params

        self._context = context

    @property
    def request(self) -> Any:
        from fastrpc.compat.http.headers import running_request

        return running_request()

    async def close_sse_stream(self) -> None:
        """Close the stream of a long call over HTTP; the client comes back for the rest."""
        self._context.close_stream()

    def __class_getitem__(cls, parameters: Any) -> type[RequestContext]:
        return cls


class NotificationContext:
    """The ``ctx`` of a handler that takes a notification."""

    request = request_id = experimental = close_sse_stream = close_standalone_sse_stream = None

    def __init__(self, dispatcher: Any, method: str, params: dict[str, Any], server: Any) -> None:
        self.meta = _meta(params.get("_meta") or {})
        self.session = session_of(dispatcher, server)
        state = dispatcher.runtime.state
        self.lifespan_context: Any = {} if state is None else state
        self.protocol_version = self.session.protocol_version
        self.method = method
        self.params = params


def _request_of(context: Context) -> Any:
    channel: Any = context._channel
    return channel.request


def _meta(raw: dict[str, Any]) -> Any:
    """Return the ``_meta`` of a request as the program's version of the SDK has it; None if there is none."""
    if not raw:
        return None
    params = getattr(sys.modules.get("mcp.types"), "RequestParams", None)
    model = getattr(params, "Meta", None)
    if model is not None:
        return model.model_validate(raw)
    if "mcp_types" in sys.modules:  # a TypedDict from 2.x on
        return {"progress_token" if name == "progressToken" else name: value for name, value in raw.items()}
    return Model(raw)


def session_of(dispatcher: Any, server: Any) -> ServerSession:
    """Return the session of a connection: the same object for all its requests."""
    main = dispatcher.main
    found = _sessions.get(main)
    if found is None:
        found = _sessions[main] = ServerSession(main, server)
    return found


class ServerSession:
    """One client's connection, as handlers use it.

    Messages are sent at once: what these methods return may be awaited, and need not be. `related_request_id`
    has no effect: what a running call sends belongs to it.
    """

    def __init__(self, dispatcher: Any, server: Any) -> None:
        self._session = dispatcher.session
        self._dispatcher = ref(dispatcher)
        self._server = server

    # --- the client -----------------------------------------------------------------------------------

    @property
    def client_params(self) -> Any:
        """What the client has declared: the InitializeRequestParams."""
        info = self._session.client_info or {"name": "", "version": ""}
        members = {
            "protocolVersion": self._session.version or STATELESS,
            "capabilities": self._session.client_capabilities,
            "clientInfo": info,
        }
        return typed("InitializeRequestParams", members)

    @property
    def protocol_version(self) -> str:
        """The version of MCP that the client speaks, such as ``2025-11-25``."""
        return self._session.version or STATELESS

    @property
    def client_capabilities(self) -> Any:
        """The ClientCapabilities, of the running call or of the session."""
        call = current.get(None)
        declared = self._session.client_capabilities if call is None else call.client_capabilities
        return typed("ClientCapabilities", declared or {})

    def check_client_capability(self, capability: Any) -> bool:
        """Whether the client has declared all that `capability`, a ClientCapabilities, has."""
        call = current.get(None)
        declared = self._session.client_capabilities if call is None else call.client_capabilities
        return _includes(declared, plain(capability))

    # --- notifications --------------------------------------------------------------------------------

    def _notify(self, method: str, params: dict[str, Any] | None) -> Done:
        call = self._call()
        if call is not None:
            _request_of(call).notify_client(method, params)
        else:
            dispatcher = self._dispatcher()
            if dispatcher is not None:
                outbound = dispatcher.outbound
                outbound.post(lambda: outbound.notify(method, params))
        return DONE

    def _call(self) -> Context | None:
        """The running call, if it is one of this session and not over."""
        call = current.get(None)
        if call is None or call.ended or call._channel is None:
            return None
        return call if _request_of(call).dispatcher.main is self._dispatcher() else None

    @property
    def _is_stateless(self) -> bool:
        return not self._session.version or self._session.version == STATELESS

    def send_log_message(
        self, level: LogLevel, data: object, logger: str | None = None, related_request_id: object = None
    ) -> Done:
        """Send a log message: whatever level a client of a session has set, which is the handler's part; from
        2026-07-28 on if the request has asked for its level."""
        call = self._call()
        if call is not None and call.protocol_version == STATELESS:
            return call.log(data, level, logger)
        params = {"level": level, "data": plain(data)}
        if logger is not None:
            params["logger"] = logger
        return self._notify("notifications/message", params)

    def send_progress_notification(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        related_request_id: object = None,
    ) -> Done:
        """Report progress: of the running call, if the token is its own."""
        call = self._call()
        if call is not None and _request_of(call).progress_token == progress_token:
            return call.progress(progress, total, message)
        members = {"progress": progress, "total": total, "message": message}
        given = {name: value for name, value in members.items() if value is not None}
        return self._notify("notifications/progress", {"progressToken": progress_token, **given})

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Done:
        """Report progress of the running call, if its client wants to know."""
        call = self._call()
        return DONE if call is None else call.progress(progress, total, message)

    def send_elicit_complete(self, elicitation_id: str, related_request_id: object = None) -> Done:
        """Notify the client that what a URL was for is done."""
        return self._notify("notifications/elicitation/complete", {"elicitationId": elicitation_id})

    def send_resource_updated(self, uri: object) -> Done:
        """Notify this client that a resource has changed, subscribed or not; from 2026-07-28 on all
        clients that listen for it."""
        if self._is_stateless:
            self._server.resource_updated(str(uri))
            return DONE
        return self._notify(UPDATED, {"uri": str(uri)})

    def send_tool_list_changed(self) -> Done:
        """Notify the client that the list of tools has changed."""
        return self._changed("tool", "tools")

    def send_resource_list_changed(self) -> Done:
        """Notify the client that the list of resources has changed."""
        return self._changed("resource", "resources")

    def send_prompt_list_changed(self) -> Done:
        """Notify the client that the list of prompts has changed."""
        return self._changed("prompt", "prompts")

    def _changed(self, kind: str, name: str) -> Done:
        if not self._is_stateless:
            return self._notify(f"notifications/{name}/list_changed", None)
        self._server.runtime.announcements.announce("list_changed", kind)
        return DONE

    def send_notification(self, notification: Any, related_request_id: object = None) -> Done:
        """Send a notification of ``mcp.types``."""
        raw = plain(getattr(notification, "root", notification))
        return self._notify(raw["method"], raw.get("params"))

    # --- requests to the client -----------------------------------------------------------------------

    async def _ask(self, method: str, result: str, **params: Any) -> Any:
        """Send a request of the running call. Raises ToolError, and ProtocolError for a client's error."""
        from fastrpc.proxy.entries import ask

        call = self._call()
        if call is None:
            raise ToolError(f"{method}: no call is running, to which the request to the client could belong")
        given = {name: plain(value) for name, value in params.items() if value is not None}
        raw = await ask(call, method, given)
        found: Any = typed(result, raw)
        if isinstance(found, Model) and result == "ElicitResult":
            found.__dict__["content"] = raw.get("content")  # a dict, as in the SDK's model
        return found

    async def create_message(
        self,
        messages: Any,
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        include_context: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        model_preferences: Any = None,
        tools: Any = None,
        tool_choice: Any = None,
        related_request_id: object = None,
    ) -> Any:
        """Request a completion of messages from the client's model. Raises ToolError."""
        return await self._ask(
            "sampling/createMessage",
            "CreateMessageResult" if tools is None else "CreateMessageResultWithTools",
            messages=messages,
            maxTokens=max_tokens,
            systemPrompt=system_prompt,
            includeContext=include_context,
            temperature=temperature,
            stopSequences=stop_sequences,
            metadata=metadata,
            modelPreferences=model_preferences,
            tools=tools,
            toolChoice=tool_choice,
        )

    async def elicit_form(
        self,
        message: str,
        requestedSchema: Any = None,
        related_request_id: object = None,
        *,
        requested_schema: Any = None,
    ) -> Any:
        """Have the person fill in a form. Raises ToolError."""
        schema = requestedSchema if requested_schema is None else requested_schema
        return await self._ask("elicitation/create", "ElicitResult", message=message, requestedSchema=schema)

    elicit = elicit_form

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, related_request_id: object = None
    ) -> Any:
        """Have the person open a URL. Raises ToolError."""
        return await self._ask(
            "elicitation/create",
            "ElicitResult",
            mode="url",
            message=message,
            url=url,
            elicitationId=elicitation_id,
        )

    async def list_roots(self) -> Any:
        """Return the client's roots. Raises ToolError."""
        return await self._ask("roots/list", "ListRootsResult")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from fastrpc.compat.context import not_offered

            raise not_offered("session", name, _ALTERNATIVES)


_ALTERNATIVES = {
    "send_ping": "the transport notices when a client disconnects",
    "send_request": "use create_message, elicit or list_roots",
}


def _includes(declared: Any, wanted: Any) -> bool:
    """Whether an object has all members of another one, theirs included."""
    if not isinstance(wanted, dict):
        return True
    return isinstance(declared, dict) and all(
        name in declared and _includes(declared[name], value) for name, value in wanted.items()
    )
