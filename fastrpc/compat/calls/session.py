"""``ctx.request_context`` and ``ctx.session`` of the official SDK, on top of fastrpc's Context."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fastrpc.compat.calls import (
    AnswerMembers,
    RequestMeta,
    message_result,
    not_offered,
    roots_object,
    visited,
)
from fastrpc.compat.dialect import SDK_2
from fastrpc.compat.models import dumped, has_types, typed
from fastrpc.compat.values import plain
from fastrpc.context import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.context import Context as PlainContext
    from fastrpc.context import Done
    from fastrpc.options import LogLevel

Lifespan = TypeVar("Lifespan")


class CallRequestContext(Generic[Lifespan]):
    """The request of a call, with the attributes of the official SDK."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.lifespan_context: Lifespan = context.lifespan_context
        self.request_id: str | int = context.inner.request_id
        self.session: CallSession = context.session
        self.close_sse_stream = context.close_sse_stream
        self.close_standalone_sse_stream = context.close_standalone_sse_stream

    @property
    def meta(self) -> Any:
        raw = self._context._meta
        if getattr(self._context.fastmcp, "dialect", None) is not SDK_2:
            return RequestMeta(raw or {})
        names = {"progressToken": "progress_token"}
        return RequestMeta({names.get(name, name): value for name, value in raw.items()}) if raw else None

    @property
    def request(self) -> Any:
        """The HTTP request: Starlette's where that is installed, else the ASGI scope; None over stdio."""
        from fastrpc.compat.http.headers import running_request

        return running_request()

    @property
    def protocol_version(self) -> str:
        protocol_version: str = self._context.inner.protocol_version
        return protocol_version

    @property
    def params(self) -> dict[str, Any]:
        """The params of the request, as received."""
        channel = self._context.inner._channel
        return {} if channel is None else dict(channel.request.params)

    @property
    def method(self) -> str:
        channel = self._context.inner._channel
        return "" if channel is None else str(channel.request.method)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise not_offered("request_context", name, {})


class CallSession:
    """What the official SDK offers as ``ctx.session``.

    Each call has another object; those of one connection are equal, and an attribute that a file adds to one
    of them is kept for the connection, as the SDK's session keeps it.
    """

    can_send_request = True
    _context: Any

    def __init__(self, context: Any) -> None:
        object.__setattr__(self, "_context", context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallSession) and self._context._owner is other._context._owner

    def __hash__(self) -> int:
        return id(self._context._owner)

    @property
    def _inner(self) -> PlainContext:
        inner: PlainContext = self._context.inner
        return inner

    # --- the client -----------------------------------------------------------------------------------

    @property
    def protocol_version(self) -> str:
        return self._inner.protocol_version

    @property
    def client_capabilities(self) -> Any:
        """The ClientCapabilities."""
        capabilities = self._inner.client_capabilities
        return typed("ClientCapabilities", capabilities) if has_types() else AnswerMembers(capabilities)

    @property
    def client_params(self) -> Any:
        """What the client has said of itself, as the params of ``initialize``."""
        members = {
            "protocolVersion": self._inner.protocol_version,
            "capabilities": self._inner.client_capabilities,
            "clientInfo": {"name": "", "version": "", **self._inner.client_info},
        }
        return typed("InitializeRequestParams", members) if has_types() else AnswerMembers(members)

    def check_client_capability(self, capability: Any) -> bool:
        """Return whether the client has declared all that these ClientCapabilities name."""
        return _includes(self._inner.client_capabilities, dumped(capability))

    # --- notifications --------------------------------------------------------------------------------

    def send_tool_list_changed(self) -> Done:
        done: Done = self._context.notify_tools_changed()
        return done

    def send_prompt_list_changed(self) -> Done:
        done: Done = self._context.notify_prompts_changed()
        return done

    def send_resource_list_changed(self) -> Done:
        done: Done = self._context.notify_resources_changed()
        return done

    def send_resource_updated(self, uri: Any) -> Done:
        done: Done = self._context.notify_resource_updated(uri)
        return done

    def send_log_message(
        self, level: LogLevel, data: object, logger: str | None = None, related_request_id: object = None
    ) -> Done:
        return self._inner.log(data, level, logger)

    def send_progress_notification(
        self,
        progress_token: Any,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        related_request_id: object = None,
    ) -> Done:
        """Report the call's progress; the call's own token is used, whatever is passed."""
        return self._inner.progress(progress, total, message)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Done:
        return self._inner.progress(progress, total, message)

    def send_elicit_complete(self, elicitation_id: str, related_request_id: object = None) -> Done:
        """Notify the client that what `elicit_url` asked for has happened."""
        return self._send("notifications/elicitation/complete", {"elicitationId": elicitation_id})

    def send_notification(self, notification: Any, related_request_id: object = None) -> Done:
        """Send a notification of the SDK's types, with the call's own answer; lists that have changed are
        sent to every client."""
        message = dumped(getattr(notification, "root", notification))
        method, params = message["method"], message.get("params") or {}
        if method == "notifications/progress":
            return self.report_progress(params["progress"], params.get("total"), params.get("message"))
        if method == "notifications/message":
            return self.send_log_message(params["level"], params.get("data"), params.get("logger"))
        if method == "notifications/resources/updated":
            return self.send_resource_updated(params["uri"])
        if method in _LISTS:
            done: Done = getattr(self, _LISTS[method])()
            return done
        return self._send(method, params)

    def _send(self, method: str, params: dict[str, Any]) -> Done:
        channel: Any = self._inner._channel
        if channel is not None and not self._inner.cancelled:
            channel.send(method, params)
        return DONE

    # --- requests to the client -----------------------------------------------------------------------

    async def create_message(self, messages: Any, *, max_tokens: int, **options: Any) -> Any:
        """Request a completion of messages from the client's model. Raises ToolError."""
        options.pop("related_request_id", None)
        given = {name: plain(value) for name, value in options.items() if value is not None}
        return message_result(await self._inner.sample(plain(messages), max_tokens=max_tokens, **given))

    async def list_roots(self) -> Any:
        """Return the client's roots, in `roots`. Raises ToolError."""
        roots: Any = await self._inner.roots()
        if has_types():
            return typed("ListRootsResult", {"roots": roots})
        return _Roots(roots_object(roots))

    async def elicit_form(
        self, message: str, requested_schema: Any = None, related_request_id: object = None, **former: Any
    ) -> Any:
        """Ask the person to fill in a form, given as a JSON Schema. Raises ToolError."""
        schema = former.get("requestedSchema", requested_schema)
        return _elicited(await self._inner.elicit(message, schema))

    elicit = elicit_form

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str | None = None, related_request_id: object = None
    ) -> Any:
        """Ask the person to open a URL. Raises ToolError."""
        return _elicited(await visited(self._inner, message, url, elicitation_id))

    async def send_ping(self) -> Any:
        """Return an empty result: the transport notices when a client goes away."""
        return AnswerMembers({})

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            self._context._state[CallSession, name] = value

        def __getattr__(self, name: str) -> Any:
            try:
                return self._context._state[CallSession, name]
            except KeyError:
                raise not_offered("session", name, _SESSION_ALTERNATIVES) from None

        def __delattr__(self, name: str) -> None:
            try:
                del self._context._state[CallSession, name]
            except KeyError:
                raise AttributeError(name) from None


_LISTS = {
    "notifications/prompts/list_changed": "send_prompt_list_changed",
    "notifications/resources/list_changed": "send_resource_list_changed",
    "notifications/tools/list_changed": "send_tool_list_changed",
}

_SESSION_ALTERNATIVES = {
    "send_request": "use elicit, sample or list_roots of the Context",
}


class _Roots:
    """The client's roots, in `roots`."""

    def __init__(self, roots: list[Any]) -> None:
        self.roots = roots


def _elicited(answer: Any) -> Any:
    members = {"action": answer.action}
    if answer.accepted and answer.data is not None:
        members["content"] = answer.data
    return typed("ElicitResult", members) if has_types() else AnswerMembers({"content": None, **members})


def _includes(declared: Any, wanted: Any) -> bool:
    """Whether a capability is declared, with all its members."""
    if not isinstance(wanted, dict):
        return wanted is False or declared == wanted
    return isinstance(declared, dict) and all(
        name in declared and _includes(declared[name], part) for name, part in wanted.items()
    )
