"""The Context of FastMCP and the official SDK, on top of fastrpc's own.

It has their names for what fastrpc supports, and raises an error that names the alternative for the rest.
Each name costs the same as in `fastrpc.Context`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from fastrpc.compat.calls import AnswerMembers, Sampled, not_offered, roots_object, visited
from fastrpc.compat.calls.session import CallRequestContext, CallSession
from fastrpc.compat.field_types import ModelType
from fastrpc.compat.models import typed
from fastrpc.compat.values import plain
from fastrpc.context import DONE
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import Literal, TypeAlias, _SpecialForm, overload

    from typing_extensions import TypeForm, Unpack

    from fastrpc.client_requests.elicitation import ElicitResult
    from fastrpc.compat.highlevel.options import FormOptions
    from fastrpc.context import Context as PlainContext
    from fastrpc.context import Done
    from fastrpc.options import LogLevel

Value = TypeVar("Value", covariant=True)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    First = DefaultTypeVar("First", default=Any)
    Lifespan = DefaultTypeVar("Lifespan", default=First)
    Request = DefaultTypeVar("Request", default=Any)
else:
    First, Lifespan, Request = (TypeVar(name) for name in ("First", "Lifespan", "Request"))

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_ALTERNATIVES = {
    "sample_step": "call ctx.sample(…, tools=…), or ctx.inner.sample(…, tools=…) for one step",
}


class AcceptedElicitation(ModelType, Generic[Value]):
    """The person has accepted the form: `data` is its value."""

    action: Literal["accept"] = "accept"
    __match_args__ = ("data",)

    def __init__(self, data: Value = None) -> None:  # type: ignore[assignment]
        self.data = data


class DeclinedElicitation(ModelType):
    """The person has declined."""

    action: Literal["decline"] = "decline"
    data = None


class CancelledElicitation(ModelType):
    """The person has dismissed the form."""

    action: Literal["cancel"] = "cancel"
    data = None


if TYPE_CHECKING:
    Elicitation: TypeAlias = AcceptedElicitation[Value] | DeclinedElicitation | CancelledElicitation
    Choices = list[list[str]] | list[dict[str, Any]] | dict[str, Any]
    """FastMCP's notations for choices."""


def _elicited(answer: ElicitResult[Value]) -> Elicitation[Value]:
    if answer.accepted:
        return AcceptedElicitation(answer.value)
    return DeclinedElicitation() if answer.action == "decline" else CancelledElicitation()


class ReadContents(list[object]):
    """The contents of a resource, each with `content` and `mime_type`; `contents` is the list itself."""

    @property
    def contents(self) -> ReadContents:
        return self


class Context(Generic[First, Lifespan, Request]):
    """The context that a tool, a resource or a prompt receives if a parameter has this type.

    For type checkers, ``Context[Session, App]`` and ``Context[App]`` say what the lifespan yields.
    """

    def __init__(self, inner: PlainContext, server: Any) -> None:
        self.inner = inner
        """fastrpc's own `Context`."""
        self.fastmcp = self.mcp_server = inner.server if server is None else server

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> type[Context]:
            return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For pydantic's ``validate_call``: a Context is what it is."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

    # --- the call -------------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """The JSON-RPC id of the request, as a string."""
        return str(self.inner.request_id)

    @property
    def client_id(self) -> str | None:
        """The `client_id` in the request's ``_meta``, or None."""
        found = self._meta.get("client_id")
        return None if found is None else str(found)

    @property
    def protocol_version(self) -> str:
        """The version of MCP that the client speaks, such as ``2025-11-25``."""
        return self.inner.protocol_version

    @property
    def client_capabilities(self) -> AnswerMembers:
        """The capabilities that the client has declared (MCP: ClientCapabilities)."""
        return AnswerMembers(self.inner.client_capabilities)

    @property
    def transport(self) -> str:
        """``stdio``, ``streamable-http`` or ``sse``."""
        from fastrpc.compat.http.request import current_transport

        return current_transport() or "stdio"

    @property
    def session_id(self) -> str:
        """An identifier of the client's connection: over HTTP that of the session, if it has one."""
        from fastrpc.compat.http.request import current_http_request

        for name, value in (current_http_request() or {}).get("headers", ()):
            if name == b"mcp-session-id":
                return str(value.decode("latin-1"))
        known = self._state.get(_SESSION_ID)
        if known is None:
            from uuid import uuid4

            known = self._state[_SESSION_ID] = str(uuid4())
        return str(known)

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the HTTP request; None over stdio."""
        from fastrpc.compat.http.headers import get_http_headers, running_request

        request = running_request()
        if request is None:
            return None
        headers: Any = getattr(request, "headers", None)
        return get_http_headers(include_all=True) if headers is None else headers

    def get_http_request(self) -> Any:
        """Return the HTTP request. Raises RuntimeError where there is none."""
        from fastrpc.compat.http.headers import get_http_request

        return get_http_request()

    @property
    def origin_request_id(self) -> str:
        """The same as `request_id`."""
        return self.request_id

    is_background_task = False
    task_id = None

    def client_extension_settings(self, identifier: str) -> dict[str, Any] | None:
        """Return what the client has declared for an extension; None if it has not."""
        found: dict[str, Any] | None = self.inner.client_capabilities.get("extensions", {}).get(identifier)
        return found

    def _session_scope_key(self) -> str | None:
        """Return what names the client from one request to the next, for FastMCP's own `FileUpload`; None if
        nothing does: in 2026-07-28 without a session, over HTTP without a token."""
        if self.inner.protocol_version != STATELESS:
            return self.session_id
        if self.inner.principal:
            return f"user:{self.inner.principal}"
        return "process" if self.transport == "stdio" else None

    def client_supports_extension(self, extension_id: str) -> bool:
        """Return whether the client has declared an extension."""
        return self.client_extension_settings(extension_id) is not None

    def close_sse_stream(self) -> Done:
        """Close the stream of a long call over HTTP; the client comes back for the rest."""
        return self.inner.close_stream()

    def close_standalone_sse_stream(self) -> Done:
        """Do nothing: a client's standing stream ends with its connection."""
        return DONE

    @property
    def input_responses(self) -> dict[str, Any] | None:
        """The answers to what an InputRequiredResult has asked for; None in the first round."""
        from fastrpc.compat.sdk2.input_rounds import responses_to

        channel: Any = self.inner._channel
        return None if channel is None else responses_to(channel.request)

    @property
    def request_state(self) -> str | None:
        """The state of the InputRequiredResult that the handler returned in the round before."""
        from fastrpc.compat.sdk2.input_rounds import state_of

        channel: Any = self.inner._channel
        return None if channel is None else state_of(channel.request)

    @property
    def lifespan_context(self) -> Lifespan:
        """The value that the server's ``lifespan`` yielded."""
        found: Any = {} if self.inner.state is None else self.inner.state
        value: Lifespan = found
        return value

    @property
    def request_context(self) -> CallRequestContext[Lifespan]:
        """The SDK's view of the request: its session, id, metadata and the value of the lifespan."""
        return CallRequestContext(self)

    @property
    def session(self) -> CallSession:
        """The client's session, as the SDK has it."""
        return CallSession(self)

    @property
    def _meta(self) -> dict[str, Any]:
        channel = self.inner._channel
        return {} if channel is None else channel.request.meta

    if not TYPE_CHECKING:  # type checkers should report an unknown name

        def __getattr__(self, name: str) -> Any:
            raise not_offered("Context", name, _ALTERNATIVES)

    # --- log messages and progress --------------------------------------------------------------------

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Done:
        """Report progress, if the client has asked for it; `total` is in the unit of `progress`."""
        return self.inner.progress(progress, total, message)

    def log(
        self,
        *said: object,
        level: LogLevel | None = None,
        message: object = None,
        logger_name: str | None = None,
        extra: Mapping[str, object] | None = None,
        data: object = None,
    ) -> Done:
        """Log, with arguments in either order: ``log("info", "text")`` as in the official SDK, ``log("text",
        "info")``."""
        values: list[Any] = list(said)
        if level is None:
            at = next((at for at, value in enumerate(values) if value in LEVELS and len(values) > 1), None)
            named: LogLevel = "info" if at is None else values.pop(at)
        else:
            named = level
        text = values[0] if values else (data if message is None else message)
        return self._log(text, named, logger_name, extra)

    def _log(
        self, message: object, level: LogLevel, logger_name: str | None, extra: Mapping[str, object] | None
    ) -> Done:
        dialect = getattr(self.fastmcp, "dialect", None)
        is_wrapped = extra or (dialect is not None and dialect.wraps_logs)
        said = {"msg": message, "extra": dict(extra) if extra else None} if is_wrapped else message
        return self.inner.log(said, level, logger_name)

    def debug(
        self,
        message: object = None,
        logger_name: str | None = None,
        extra: Mapping[str, object] | None = None,
        *,
        data: object = None,
    ) -> Done:
        """Send a log message of the level ``debug`` to the client."""
        return self._log(message if data is None else data, "debug", logger_name, extra)

    def info(
        self,
        message: object = None,
        logger_name: str | None = None,
        extra: Mapping[str, object] | None = None,
        *,
        data: object = None,
    ) -> Done:
        """Send a log message of the level ``info`` to the client."""
        return self._log(message if data is None else data, "info", logger_name, extra)

    def warning(
        self,
        message: object = None,
        logger_name: str | None = None,
        extra: Mapping[str, object] | None = None,
        *,
        data: object = None,
    ) -> Done:
        """Send a log message of the level ``warning`` to the client."""
        return self._log(message if data is None else data, "warning", logger_name, extra)

    def error(
        self,
        message: object = None,
        logger_name: str | None = None,
        extra: Mapping[str, object] | None = None,
        *,
        data: object = None,
    ) -> Done:
        """Send a log message of the level ``error`` to the client."""
        return self._log(message if data is None else data, "error", logger_name, extra)

    def send_notification(self, notification: object) -> Done:
        """Send a notification of the SDK's types."""
        return self.session.send_notification(notification)

    def send_tool_list_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of tools has changed."""
        return self.notify_tools_changed()

    def send_prompt_list_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of prompts has changed."""
        return self.notify_prompts_changed()

    def send_resource_list_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of resources has changed."""
        return self.notify_resources_changed()

    def notify_tools_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of tools has changed."""
        return self._notify("ToolsListChanged", self.fastmcp.registries.tools.changed)

    def notify_prompts_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of prompts has changed."""
        return self._notify("PromptsListChanged", self.fastmcp.registries.prompts.changed)

    def notify_resources_changed(self) -> Awaitable[None]:
        """Notify the clients that the list of resources has changed."""
        return self._notify("ResourcesListChanged", self.fastmcp.registries.resources.changed)

    def notify_resource_updated(self, uri: object) -> Awaitable[None]:
        """Notify the clients that have subscribed to a resource that it has changed."""
        return self._notify("ResourceUpdated", self.fastmcp.resource_updated, str(uri))

    def _notify(self, event: str, own: Callable[..., object], *values: str) -> Awaitable[None]:
        """Tell of a change: by the bus of the server if it has one, which has to be awaited."""
        bus = getattr(self.fastmcp, "_bus", None)
        if bus is None:
            own(*values)
            return DONE
        from fastrpc.compat.sdk2 import subscription_events

        published: Awaitable[None] = bus.publish(getattr(subscription_events, event)(*values))
        return published

    # --- requests to the client -----------------------------------------------------------------------

    async def read_resource(self, uri: object) -> ReadContents:
        """Return the contents of one of the server's own resources. Raises an error if it has none
        at `uri`."""
        from fastrpc.compat.errors import UnknownResourceError
        from fastrpc.errors import ToolError

        try:
            return ReadContents(await self.inner.read_resource(str(uri)))
        except ToolError as error:
            if str(error).startswith("Resource not found: "):
                raise UnknownResourceError(f"Unknown resource: {uri}") from None
            raise

    async def list_resources(self) -> list[Any]:
        """Return the server's resources, as the SDK describes them to clients."""
        version = self.inner.protocol_version
        return [typed("Resource", each.descriptor(version)) for each in self.fastmcp.registries.resources]

    async def list_prompts(self) -> list[Any]:
        """Return the server's prompts, as the SDK describes them to clients."""
        version = self.inner.protocol_version
        return [typed("Prompt", each.descriptor(version)) for each in self.fastmcp.registries.prompts]

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return the messages of one of the server's prompts, in `messages`."""
        return typed("GetPromptResult", await self.fastmcp._as_client("get_prompt", name, arguments or {}))

    if TYPE_CHECKING:

        @overload
        async def elicit(
            self, message: str, response_type: None = None, **shown: Unpack[FormOptions]
        ) -> Elicitation[None]: ...
        @overload
        async def elicit(
            self, message: str, response_type: type[Value], **shown: Unpack[FormOptions]
        ) -> Elicitation[Value]: ...
        @overload
        async def elicit(self, message: str, *, schema: type[Value]) -> Elicitation[Value]: ...
        @overload
        async def elicit(
            self, message: str, response_type: list[str], **shown: Unpack[FormOptions]
        ) -> Elicitation[str]: ...
        @overload
        async def elicit(
            self, message: str, response_type: TypeForm[Value], **shown: Unpack[FormOptions]
        ) -> Elicitation[Value]: ...
        @overload
        async def elicit(
            self, message: str, response_type: Choices | _SpecialForm, **shown: Unpack[FormOptions]
        ) -> Elicitation[Any]: ...

    async def elicit(
        self,
        message: str,
        response_type: Any = None,
        *,
        schema: Any = None,
        response_title: str | None = None,
        response_description: str | None = None,
    ) -> Elicitation[Any]:
        """Ask the person to fill in a form: a model, a dataclass, a plain type, or a list of choices. Raises
        ToolError."""
        form = _form(response_type if schema is None else schema)
        return _elicited(await self.inner.elicit(message, form))

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str | None = None
    ) -> Elicitation[None]:
        """Ask the person to visit a web page, and return what they did. Raises ToolError."""
        return _elicited(await visited(self.inner, message, url, elicitation_id))

    async def sample(
        self,
        messages: object,
        system_prompt: str | None = None,
        include_context: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: object = None,
        *,
        tools: Iterable[Any] | None = None,
        result_type: Any = None,
        mask_error_details: bool | None = None,
        tool_concurrency: int | None = None,
    ) -> Sampled:
        """Request a completion of a text or of messages from the client's model.

        With `tools`, functions, the model may call them until it answers; with `result_type`, `result` is a
        value of that type. `tool_concurrency` has no effect: calls run one after the other. Raises ToolError.
        """
        options = {
            "system_prompt": system_prompt,
            "include_context": include_context,
            "temperature": temperature,
            "model_preferences": plain(model_preferences),
            "max_tokens": max_tokens or 512,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if tools or result_type not in (None, str):
            from fastrpc.compat.calls.sampling import sampled_with_tools

            hides = bool(mask_error_details)
            return await sampled_with_tools(self.inner, plain(messages), given, tools, result_type, hides)
        return Sampled(await self.inner.sample(plain(messages), **given))

    async def list_roots(self) -> list[Any]:
        """Return the client's roots, each with `uri` and `name`. Raises ToolError."""
        return roots_object(await self.inner.roots())

    # --- state ----------------------------------------------------------------------------------------

    def set_state(self, key: str, value: object, *, serializable: bool = True) -> Done:
        """Store a value for the calls of this client's connection."""
        self._state[key] = value
        return DONE

    async def get_state(self, key: str) -> Any:
        """Return a value that `set_state` stored for this client's connection, or None."""
        return self._state.get(key)

    async def delete_state(self, key: str) -> None:
        """Forget a value that `set_state` stored, if there is one."""
        self._state.pop(key, None)

    async def enable_components(self, **criteria: Any) -> None:
        """Offer this client the components that match, for its connection: `names`, `keys`, `tags`,
        `components` (kinds), `version`, or ``match_all=True``. Later rules win, the server's come first.
        Raises TypeError for another criterion."""
        self.fastmcp._add_session_rule(self, True, criteria)

    async def disable_components(self, **criteria: Any) -> None:
        """Offer this client the components that match no more: see `enable_components`."""
        self.fastmcp._add_session_rule(self, False, criteria)

    async def reset_visibility(self) -> None:
        """Offer this client again what the server offers to all."""
        self.fastmcp._reset_session_rules(self)

    @property
    def _state(self) -> dict[Any, Any]:
        return _states.setdefault(self._owner, {})

    @property
    def _owner(self) -> Any:
        """What identifies the client's connection."""
        channel = self.inner._channel
        return self.fastmcp if channel is None else channel.request.dispatcher


_SESSION_ID = object()
"""The key of `Context.session_id` among the states."""

_states: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def _form(response_type: Any) -> Any:
    """Convert FastMCP's notations for choices to forms of fastrpc."""
    if isinstance(response_type, dict) and response_type.get("type") != "object":
        titled = [
            {"const": value, "title": said.get("title", value)} for value, said in response_type.items()
        ]
        return _one_field({"type": "string", "oneOf": titled})
    if isinstance(response_type, list) and response_type and isinstance(response_type[0], list):
        return _one_field({"type": "array", "items": {"type": "string", "enum": response_type[0]}})
    if isinstance(response_type, list) and response_type and isinstance(response_type[0], dict):
        titled = [
            {"const": value, "title": said.get("title", value)} for value, said in response_type[0].items()
        ]
        return _one_field({"type": "array", "items": {"anyOf": titled}})
    return response_type


def _one_field(field: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": field}, "required": ["value"]}
