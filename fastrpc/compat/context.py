"""The Context of FastMCP and the official SDK, on top of fastrpc's own.

It has their names for what fastrpc supports, and raises an error that names the alternative for the rest.
Each name costs the same as in `fastrpc.Context`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.values import plain
from fastrpc.context import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias, _SpecialForm, overload

    from typing_extensions import TypeForm, Unpack

    from fastrpc.client_requests.elicitation import ElicitResult
    from fastrpc.client_requests.sampling import Sample
    from fastrpc.compat.options import FormOptions
    from fastrpc.context import Context as PlainContext
    from fastrpc.context import Done
    from fastrpc.options import LogLevel

Value = TypeVar("Value", covariant=True)

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_HTTP = "there is no HTTP request behind a call over stdio"
_ALTERNATIVES = {
    "session_id": "keep what belongs to a client with set_state",
    "headers": _HTTP,
    "close_sse_stream": _HTTP,
    "close_standalone_sse_stream": _HTTP,
    "input_responses": "await ctx.elicit(…) or ctx.sample(…) works in each protocol version",
    "request_state": "await ctx.elicit(…) or ctx.sample(…) works in each protocol version",
    "list_resources": "ask the server: ctx.fastmcp.registries.resources",
    "list_prompts": "ask the server: ctx.fastmcp.registries.prompts",
    "get_prompt": "call the prompt's function",
    "enable_components": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "disable_components": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "reset_visibility": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "send_notification": "use info, report_progress or the notify_… methods",
}


def not_offered(owner: str, name: str, alternatives: dict[str, str]) -> AttributeError:
    """Return the error for an unsupported name, with the alternative if there is one."""
    if name in alternatives:
        return NotOffered(f"fastrpc.compat: {owner} has no {name}; {alternatives[name]}")
    return AttributeError(f"fastrpc.compat: {owner} has no {name}")


class AcceptedElicitation(Generic[Value]):
    """The person has accepted the form: `data` is its value."""

    action: Literal["accept"] = "accept"
    __match_args__ = ("data",)

    def __init__(self, data: Value = None) -> None:  # type: ignore[assignment]
        self.data = data


class DeclinedElicitation:
    """The person has declined."""

    action: Literal["decline"] = "decline"
    data = None


class CancelledElicitation:
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


class Members:
    """A JSON object whose members are attributes, under their own names and in snake case."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members

    def __getattr__(self, name: str) -> Any:
        first, *others = name.split("_")
        camel = first + "".join(other.capitalize() for other in others)
        for known in (name, camel):
            if known in self.__dict__["_members"]:
                return members_of(self._members[known])
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"Members({self._members!r})"


def members_of(value: Any) -> Any:
    if isinstance(value, dict):
        return Members(value)
    return [members_of(item) for item in value] if isinstance(value, list) else value


class Sampled:
    """The answer of the client's model: `text`, and the parts of the result under both frameworks' names."""

    role = "assistant"

    def __init__(self, sample: Sample) -> None:
        self.text = self.result = sample.text
        blocks: Any = sample.content
        self.content = members_of(blocks[0] if len(blocks) == 1 else blocks)
        self.model = sample.model
        self.stop_reason = self.stopReason = sample.stop_reason


class ReadContents(list[object]):
    """The contents of a resource, each with `content` and `mime_type`; `contents` is the list itself."""

    @property
    def contents(self) -> ReadContents:
        return self


class Context:
    """The context that a tool, a resource or a prompt receives if a parameter has this type."""

    def __init__(self, inner: PlainContext, server: Any) -> None:
        self.inner = inner
        """fastrpc's own `Context`."""
        self.fastmcp = self.mcp_server = server

    def __class_getitem__(cls, parameters: Any) -> type[Context]:
        return cls

    # --- the call -------------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        return str(self.inner.request_id)

    @property
    def client_id(self) -> str | None:
        """The `client_id` in the request's ``_meta``, or None."""
        found = self._meta.get("client_id")
        return None if found is None else str(found)

    @property
    def protocol_version(self) -> str:
        return self.inner.protocol_version

    @property
    def client_capabilities(self) -> Members:
        return Members(self.inner.client_capabilities)

    @property
    def transport(self) -> str:
        return "stdio"

    @property
    def lifespan_context(self) -> Any:
        """The value that the server's ``lifespan`` yielded."""
        return {} if self.inner.state is None else self.inner.state

    @property
    def request_context(self) -> RequestContext:
        return RequestContext(self)

    @property
    def session(self) -> Session:
        return Session(self)

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
        said = {"msg": message, "extra": dict(extra)} if extra else message
        return self.inner.log(said, level, logger_name)

    def debug(
        self, message: object, logger_name: str | None = None, extra: Mapping[str, object] | None = None
    ) -> Done:
        return self._log(message, "debug", logger_name, extra)

    def info(
        self, message: object, logger_name: str | None = None, extra: Mapping[str, object] | None = None
    ) -> Done:
        return self._log(message, "info", logger_name, extra)

    def warning(
        self, message: object, logger_name: str | None = None, extra: Mapping[str, object] | None = None
    ) -> Done:
        return self._log(message, "warning", logger_name, extra)

    def error(
        self, message: object, logger_name: str | None = None, extra: Mapping[str, object] | None = None
    ) -> Done:
        return self._log(message, "error", logger_name, extra)

    def notify_tools_changed(self) -> Done:
        self.fastmcp.registries.tools.changed()
        return DONE

    def notify_prompts_changed(self) -> Done:
        self.fastmcp.registries.prompts.changed()
        return DONE

    def notify_resources_changed(self) -> Done:
        self.fastmcp.registries.resources.changed()
        return DONE

    def notify_resource_updated(self, uri: object) -> Done:
        self.fastmcp.resource_updated(str(uri))
        return DONE

    # --- requests to the client -----------------------------------------------------------------------

    async def read_resource(self, uri: object) -> ReadContents:
        return ReadContents(await self.inner.read_resource(str(uri)))

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
        return _elicited(await self.inner.elicit_url(message, url))

    async def sample(
        self,
        messages: object,
        system_prompt: str | None = None,
        include_context: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: object = None,
        **others: object,
    ) -> Sampled:
        """Request a completion of a text or of messages from the client's model. Raises ToolError."""
        for name, value in others.items():
            if value is not None:
                raise NotOffered(
                    f"fastrpc.compat: sample has no {name}; read .text, or use ctx.inner.sample(…, tools=…)"
                )
        options = {
            "system_prompt": system_prompt,
            "include_context": include_context,
            "temperature": temperature,
            "model_preferences": plain(model_preferences),
        }
        given = {name: value for name, value in options.items() if value is not None}
        sample = await self.inner.sample(plain(messages), max_tokens=max_tokens or 512, **given)
        return Sampled(sample)

    async def list_roots(self) -> list[Members]:
        """Return the client's roots, each with `uri` and `name`. Raises ToolError."""
        return [Members({"name": None, **root}) for root in await self.inner.roots()]

    # --- state ----------------------------------------------------------------------------------------

    def set_state(self, key: str, value: object, *, serializable: bool = True) -> Done:
        """Store a value for the calls of this client's connection."""
        self._state[key] = value
        return DONE

    async def get_state(self, key: str) -> Any:
        return self._state.get(key)

    async def delete_state(self, key: str) -> None:
        self._state.pop(key, None)

    @property
    def _state(self) -> dict[str, Any]:
        channel = self.inner._channel
        owner: Any = self.fastmcp if channel is None else channel.request.dispatcher
        return _states.setdefault(owner, {})


_states: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


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


class RequestContext:
    """The request of a call, with the attributes of the official SDK."""

    request = None

    def __init__(self, context: Context) -> None:
        self._context = context
        self.lifespan_context = context.lifespan_context
        self.request_id = context.inner.request_id
        self.session = context.session

    @property
    def meta(self) -> Members:
        return Members({"progressToken": None, **self._context._meta})

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise not_offered("request_context", name, {})


class Session:
    """What the official SDK offers as ``ctx.session``."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def send_tool_list_changed(self) -> Done:
        return self._context.notify_tools_changed()

    def send_prompt_list_changed(self) -> Done:
        return self._context.notify_prompts_changed()

    def send_resource_list_changed(self) -> Done:
        return self._context.notify_resources_changed()

    def send_resource_updated(self, uri: Any) -> Done:
        return self._context.notify_resource_updated(uri)

    def send_log_message(
        self, level: LogLevel, data: object, logger: str | None = None, **others: object
    ) -> Done:
        return self._context.inner.log(data, level, logger)

    def send_progress_notification(
        self,
        progress_token: Any,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        **others: Any,
    ) -> Done:
        """Report the call's progress; the call's own token is used, whatever is passed."""
        return self._context.inner.progress(progress, total, message)

    async def create_message(self, messages: Any, *, max_tokens: int, **options: Any) -> Sampled:
        """Request a completion of messages from the client's model. Raises ToolError."""
        options.pop("related_request_id", None)
        given = {name: plain(value) for name, value in options.items() if value is not None}
        return Sampled(await self._context.inner.sample(plain(messages), max_tokens=max_tokens, **given))

    async def list_roots(self) -> Any:
        return Members({"roots": await self._context.inner.roots()})

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise not_offered("session", name, _SESSION_ALTERNATIVES)


_SESSION_ALTERNATIVES = {
    "elicit": "await ctx.elicit(message, schema)",
    "elicit_form": "await ctx.elicit(message, schema)",
    "elicit_url": "await ctx.elicit_url(message, url)",
    "client_params": "read ctx.client_capabilities and ctx.inner.client_info",
    "check_client_capability": "read ctx.client_capabilities",
    "send_ping": "the transport sees when a client goes away",
    "send_notification": "use info, report_progress or the notify_… methods of the Context",
    "send_request": "use elicit, sample or list_roots of the Context",
}
