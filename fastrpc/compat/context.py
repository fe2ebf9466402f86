"""The Context of FastMCP and the official SDK, over fastrpc's own.

Has their names for what both can do, and answers with an error that names the alternative for the rest.
What a name costs is what it costs in `fastrpc.Context`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from fastrpc.compat.values import NotOffered, plain
from fastrpc.context import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.context import Context as PlainContext
    from fastrpc.context import Done

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_HTTP = "there is no HTTP request behind a call over stdio"
_ALTERNATIVES = {
    "session_id": "keep what belongs to a client with set_state",
    "headers": _HTTP,
    "close_sse_stream": _HTTP,
    "close_standalone_sse_stream": _HTTP,
    "input_responses": "await ctx.elicit(…) or ctx.sample(…) works in each protocol version",
    "request_state": "await ctx.elicit(…) or ctx.sample(…) works in each protocol version",
    "list_resources": "ask the server: ctx.fastmcp.catalogue.resources",
    "list_prompts": "ask the server: ctx.fastmcp.catalogue.prompts",
    "get_prompt": "call the prompt's function",
    "enable_components": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "disable_components": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "reset_visibility": "add or remove tools at run time: ctx.fastmcp.add_tool, remove_tool",
    "send_notification": "use info, report_progress or the notify_… methods",
}


def not_offered(owner: str, name: str, alternatives: dict[str, str]) -> AttributeError:
    """Return the error for a name that is not there: with the alternative if there is one."""
    if name in alternatives:
        return NotOffered(f"fastrpc.compat: {owner} has no {name}; {alternatives[name]}")
    return AttributeError(f"fastrpc.compat: {owner} has no {name}")


class AcceptedElicitation:
    """The person has filled in the form: `data` is its value."""

    action = "accept"
    __match_args__ = ("data",)

    def __init__(self, data: Any = None) -> None:
        self.data = data


class DeclinedElicitation:
    """The person has said no."""

    action = "decline"
    data = None


class CancelledElicitation:
    """The person has closed the question."""

    action = "cancel"
    data = None


def _elicited(answer: Any) -> AcceptedElicitation | DeclinedElicitation | CancelledElicitation:
    if answer.accepted:
        return AcceptedElicitation(answer.data)
    return DeclinedElicitation() if answer.action == "decline" else CancelledElicitation()


class Members:
    """A JSON object whose members are attributes, by their own names and in snake case."""

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
    """What the client's model said: `text`, and the parts of the result by both frameworks' names."""

    role = "assistant"

    def __init__(self, sample: Any) -> None:
        self.text = self.result = sample.text
        blocks = sample.content
        self.content = members_of(blocks[0] if len(blocks) == 1 else blocks)
        self.model = sample.model
        self.stop_reason = self.stopReason = sample.stop_reason


class ReadContents(list[object]):
    """The contents of a resource, each with `content` and `mime_type`; `contents` is the list itself."""

    @property
    def contents(self) -> ReadContents:
        return self


class Context:
    """What a tool, a resource or a prompt is handed besides its arguments, if a parameter has this type."""

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
        """What the client calls itself in the request's ``_meta``, if it does."""
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
        """What the server's ``lifespan`` gave."""
        return {} if self.inner.state is None else self.inner.state

    @property
    def request_context(self) -> RequestContext:
        return RequestContext(self)

    @property
    def session(self) -> Session:
        return Session(self)

    @property
    def _meta(self) -> dict[str, Any]:
        link = self.inner._link
        return {} if link is None else link.request.meta

    def __getattr__(self, name: str) -> Any:
        raise not_offered("Context", name, _ALTERNATIVES)

    # --- telling --------------------------------------------------------------------------------------

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Done:
        return self.inner.progress(progress, total, message)

    def log(
        self,
        *said: Any,
        level: str | None = None,
        message: Any = None,
        logger_name: str | None = None,
        extra: Any = None,
        data: Any = None,
    ) -> Done:
        """Log, in either order: ``log("info", "text")`` as in the official SDK, ``log("text", "info")``."""
        values = list(said)
        if level is None:
            at = next((at for at, value in enumerate(values) if value in LEVELS and len(values) > 1), None)
            level = "info" if at is None else values.pop(at)
        text = values[0] if values else (data if message is None else message)
        return self._log(text, level, logger_name, extra)

    def _log(self, message: Any, level: str, logger_name: str | None, extra: Any) -> Done:
        said = {"msg": message, "extra": dict(extra)} if extra else message
        return self.inner.log(said, level, logger_name)

    def debug(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Done:
        return self._log(message, "debug", logger_name, extra)

    def info(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Done:
        return self._log(message, "info", logger_name, extra)

    def warning(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Done:
        return self._log(message, "warning", logger_name, extra)

    def error(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Done:
        return self._log(message, "error", logger_name, extra)

    def notify_tools_changed(self) -> Done:
        self.fastmcp.catalogue.tools.changed()
        return DONE

    def notify_prompts_changed(self) -> Done:
        self.fastmcp.catalogue.prompts.changed()
        return DONE

    def notify_resources_changed(self) -> Done:
        self.fastmcp.catalogue.resources.changed()
        return DONE

    def notify_resource_updated(self, uri: Any) -> Done:
        self.fastmcp.resource_updated(str(uri))
        return DONE

    # --- asking ---------------------------------------------------------------------------------------

    async def read_resource(self, uri: Any) -> ReadContents:
        return ReadContents(await self.inner.read_resource(str(uri)))

    async def elicit(
        self,
        message: str,
        response_type: Any = None,
        *,
        schema: Any = None,
        response_title: str | None = None,
        response_description: str | None = None,
    ) -> AcceptedElicitation | DeclinedElicitation | CancelledElicitation:
        """Ask the person to fill in a form: a model, a dataclass, a plain type, or a list of choices."""
        form = _form(response_type if schema is None else schema)
        return _elicited(await self.inner.elicit(message, form))

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str | None = None
    ) -> AcceptedElicitation | DeclinedElicitation | CancelledElicitation:
        return _elicited(await self.inner.elicit_url(message, url))

    async def sample(
        self,
        messages: Any,
        system_prompt: str | None = None,
        include_context: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: Any = None,
        **others: Any,
    ) -> Sampled:
        """Have the client's model go on from a text or messages."""
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

    async def list_roots(self) -> list[Any]:
        """Return the folders that the client works in, each with `uri` and `name`."""
        return [Members({"name": None, **root}) for root in await self.inner.roots()]

    # --- state ----------------------------------------------------------------------------------------

    def set_state(self, key: str, value: Any, *, serializable: bool = True) -> Done:
        """Keep a value for the calls of this client's connection."""
        self._state[key] = value
        return DONE

    async def get_state(self, key: str) -> Any:
        return self._state.get(key)

    async def delete_state(self, key: str) -> None:
        self._state.pop(key, None)

    @property
    def _state(self) -> dict[str, Any]:
        link = self.inner._link
        owner: Any = self.fastmcp if link is None else link.request.dispatcher
        return _states.setdefault(owner, {})


_states: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def _form(response_type: Any) -> Any:
    """Return FastMCP's ways to name choices as forms of fastrpc."""
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
    """The request behind a call, as the official SDK shows it."""

    request = None

    def __init__(self, context: Context) -> None:
        self._context = context
        self.lifespan_context = context.lifespan_context
        self.request_id = context.inner.request_id
        self.session = context.session

    @property
    def meta(self) -> Members:
        return Members({"progressToken": None, **self._context._meta})

    def __getattr__(self, name: str) -> Any:
        raise not_offered("request_context", name, {})


class Session:
    """What the official SDK reaches through ``ctx.session``."""

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

    def send_log_message(self, level: str, data: Any, logger: str | None = None, **others: Any) -> Done:
        return self._context.inner.log(data, level, logger)

    def send_progress_notification(
        self,
        progress_token: Any,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        **others: Any,
    ) -> Done:
        """Report the call's progress; its token is the call's own, whatever is given here."""
        return self._context.inner.progress(progress, total, message)

    async def create_message(self, messages: Any, *, max_tokens: int, **options: Any) -> Sampled:
        """Have the client's model go on from messages."""
        options.pop("related_request_id", None)
        given = {name: plain(value) for name, value in options.items() if value is not None}
        return Sampled(await self._context.inner.sample(plain(messages), max_tokens=max_tokens, **given))

    async def list_roots(self) -> Any:
        return Members({"roots": await self._context.inner.roots()})

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
