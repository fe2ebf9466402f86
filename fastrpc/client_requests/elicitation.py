"""The requests that a server may send to its client, and how their results are read (MCP: client features).

Each question knows its method and params in each version, the capability that the client must declare, and
how the client's result becomes a Python value. How and when it is sent is left to `fastrpc.client_requests.pending`.
"""

from __future__ import annotations

from types import GenericAlias

from fastrpc.client_requests.forms import fields_of
from fastrpc.content import Content, block_of
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import (
    ELICITATION,
    LEGACY_VERSIONS,
    MODERN,
    RICH_QUESTIONS,
    VERSIONS,
    knows_content,
)
from fastrpc.schema.converters import Mismatch, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Generic, Protocol, TypeVar, _SpecialForm, overload

    from typing_extensions import TypeForm

    from fastrpc.engine.ports import ClientRequest
    from fastrpc.options import Action, Root, SamplingOptions

    Value = TypeVar("Value", covariant=True)

    class Turn(Protocol):
        """The members of a message: `fastrpc.Message`, or a similar class of another framework."""

        @property
        def role(self) -> str: ...
        @property
        def content(self) -> object: ...

    Said = str | Content | dict[str, Any] | Turn
    """One message of a sampling request. A `Sample` is accepted too, and stands for the model's turn."""
else:

    class Generic:
        """Stands for `typing.Generic`, whose import costs 10 ms."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

    Value = None

ACTIONS: tuple[Action, ...] = ("accept", "decline", "cancel")
SAMPLED_TYPES = ("text", "image", "audio", "tool_use", "tool_result")


class BadAnswer(Exception):
    """The client's result does not answer the question. The message says why."""


class Question(Generic[Value]):
    """A request to the client, and the type of its answer.

    The client must have declared `capability` and, if set, its `mode`. `versions` are those that have it.
    """

    method = ""
    capability = ""
    mode = ""
    versions: tuple[str, ...] = VERSIONS

    def params(self, version: str) -> dict[str, Any]:
        """Return the params of the request. Raises ToolError if the version cannot express them."""
        return {}

    def known(self, request: ClientRequest) -> Value | None:
        """Return the answer if it is already known, else None."""
        return None

    def read(self, result: object, request: ClientRequest) -> Value:
        """Return the value of the client's result. Raises `BadAnswer`."""
        raise NotImplementedError

    def obstacle(self, version: str, capabilities: dict[str, Any]) -> str | None:
        """Return why this client cannot be asked, or None if it can."""
        if version not in self.versions:
            return f"protocol {version}, which the client speaks, has no {self.wanted}"
        declared = capabilities.get(self.capability)
        if not isinstance(declared, dict) or not self._is_declared(declared):
            return f"the client does not offer {self.wanted}"
        return None

    def _is_declared(self, declared: dict[str, Any]) -> bool:
        """Whether the mode is declared. A client that names no mode supports forms (MCP 2025-11-25,
        elicitation: capabilities)."""
        return not self.mode or self.mode in declared or (self.mode == "form" and "url" not in declared)

    @property
    def needs(self) -> dict[str, dict[str, Any]]:
        """The capabilities that the client must declare (MCP: ClientCapabilities)."""
        return {self.capability: {self.mode: {}} if self.mode else {}}

    @property
    def wanted(self) -> str:
        """The same in words."""
        return f"{self.capability} ({self.mode})" if self.mode else self.capability


# ------------------------------------------------------------------------------------- elicitation


class ElicitResult(Generic[Value]):
    """What a person did with a form or a link (MCP: ElicitResult).

    `action` is ``accept``, ``decline`` or ``cancel``; `data` is the value of an accepted form, else None.
    """

    __slots__ = ("_complete", "action", "data")

    def __init__(
        self, action: Action, data: Value | None = None, complete: Callable[[], object] | None = None
    ) -> None:
        self.action: Action = action
        self.data: Value | None = data
        self._complete = complete

    @property
    def accepted(self) -> bool:
        """Whether the person accepted."""
        return self.action == "accept"

    @property
    def value(self) -> Value:
        """The value of an accepted form. Raises ToolError if the person declined or cancelled; the message
        tells the model."""
        if self.action != "accept":
            raise ToolError(
                f"the person {'declined' if self.action == 'decline' else 'dismissed'} the question"
            )
        return self.data  # type: ignore[return-value]  # None where the form's type has None

    def complete(self) -> None:
        """Notify the client that the visit to the web page is complete, in versions that have the
        notification (MCP 2025-11-25: notifications/elicitation/complete)."""
        if self._complete is not None:
            self._complete()

    def __repr__(self) -> str:
        return f"ElicitResult({self.action!r}, {self.data!r})"


class Form(Question[ElicitResult[Value]]):
    """A form for a person to fill in. See `fastrpc.Context.elicit`. Raises DefinitionError."""

    method = "elicitation/create"
    capability = "elicitation"
    mode = "form"

    if TYPE_CHECKING:

        @overload
        def __init__(self: Form[None], message: str, form: None = None) -> None: ...
        @overload
        def __init__(self, message: str, form: type[Value]) -> None: ...
        @overload
        def __init__(self: Form[str], message: str, form: list[str] | tuple[str, ...]) -> None: ...
        @overload
        def __init__(self, message: str, form: TypeForm[Value]) -> None: ...
        @overload
        def __init__(self: Form[Any], message: str, form: dict[str, Any] | _SpecialForm) -> None: ...

    def __init__(self, message: str, form: Any = None) -> None:
        self.message = message
        self.fields = fields_of(form)
        self.versions = RICH_QUESTIONS if self.fields.has_lists else ELICITATION

    def params(self, version: str) -> dict[str, Any]:
        return {"message": self.message, "requestedSchema": self.fields.schema_in(version)}

    def read(self, result: object, request: ClientRequest) -> ElicitResult[Value]:
        action = _action(result)
        if action != "accept":
            return ElicitResult(action)
        content = result.get("content") if isinstance(result, dict) else None
        if content is None:
            content = {}
        if not isinstance(content, dict):
            raise BadAnswer(f"content: expected an object, got {shorten(content)}")
        try:
            return ElicitResult(action, self.fields.read(content))
        except Mismatch as mismatch:
            raise BadAnswer(mismatch.of("content")) from None

    @property
    def wanted(self) -> str:
        return "elicitation with a choice of several" if self.fields.has_lists else super().wanted


class Visit(Question[ElicitResult[None]]):
    """A web page for a person to visit. See `fastrpc.Context.elicit_url`."""

    method = "elicitation/create"
    versions = RICH_QUESTIONS
    capability = "elicitation"
    mode = "url"

    def __init__(self, message: str, url: str) -> None:
        import os

        self.message = message
        self.url = url
        self.id = os.urandom(16).hex()
        """The `elicitationId` of 2025-11-25; later versions have none."""

    def params(self, version: str) -> dict[str, Any]:
        params = {"mode": "url", "message": self.message, "url": self.url}
        if version in LEGACY_VERSIONS:
            params["elicitationId"] = self.id
        return params

    def read(self, result: object, request: ClientRequest) -> ElicitResult[None]:
        complete = None
        if request.version in LEGACY_VERSIONS:
            params = {"elicitationId": self.id}
            complete = lambda: request.notify_client("notifications/elicitation/complete", params)  # noqa: E731
        return ElicitResult(_action(result), None, complete)


def _action(result: Any) -> Action:
    action = result.get("action") if isinstance(result, dict) else None
    for known in ACTIONS:
        if action == known:
            return known
    raise BadAnswer(f"action: expected one of {', '.join(ACTIONS)}, got {shorten(action)}")


# ---------------------------------------------------------------------------------------- sampling


class Sample:
    """The client's model's answer: `content` is a list of blocks, `text` is all their text.

    Can be used as a message of a later sampling request.
    """

    __slots__ = ("content", "model", "stop_reason")

    role = "assistant"

    def __init__(self, content: list[dict[str, Any]], model: str, stop_reason: str | None) -> None:
        self.content = content
        self.model = model
        self.stop_reason = stop_reason

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        """The tool calls that the model asks for: blocks with ``id``, ``name`` and ``input``."""
        return [block for block in self.content if block["type"] == "tool_use"]

    def __repr__(self) -> str:
        return f"Sample({shorten(self.text)}, {self.model!r}, {self.stop_reason!r})"


_OPTIONS = {
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "include_context": "includeContext",
    "metadata": "metadata",
    "tools": "tools",
    "tool_choice": "toolChoice",
}


class Sampling(Question[Sample]):
    """A sampling request to the client's model. See `fastrpc.Context.sample`. Raises TypeError.

    `options` are the members of the request's params in snake case. `model_preferences` may be the name of a
    model or a list of names, `tool_choice` a mode; `tools` are descriptors as in tools/list.
    """

    method = "sampling/createMessage"
    capability = "sampling"

    def __init__(
        self,
        messages: Said | Sequence[Said],
        max_tokens: int = 1024,
        options: SamplingOptions | None = None,
    ) -> None:
        self.messages = [_turn(message) for message in _listed(messages)]
        self.max_tokens = max_tokens
        self.options = {name: value for name, value in (options or {}).items() if value is not None}
        for name in self.options:
            if name not in _OPTIONS:
                raise TypeError(f"sample: no option {name!r}; there are {', '.join(_OPTIONS)}")
        self._kinds = {kind for turn in self.messages for kind in turn.kinds}
        if {"tools", "tool_choice", "tool_use", "tool_result"} & {*self.options, *self._kinds}:
            self.mode = "tools"
            self.versions = RICH_QUESTIONS

    def obstacle(self, version: str, capabilities: dict[str, Any]) -> str | None:
        for kind in self._kinds:
            if not knows_content(kind, version):
                return f"protocol {version}, which the client speaks, has no content of type {kind}"
        return super().obstacle(version, capabilities)

    def params(self, version: str) -> dict[str, Any]:
        params: dict[str, Any] = {
            "messages": [message for turn in self.messages for message in turn.in_version(version)],
            "maxTokens": self.max_tokens,
        }
        for name, value in self.options.items():
            params[_OPTIONS[name]] = _option(name, value, version)
        return params

    def read(self, result: object, request: ClientRequest) -> Sample:
        if not isinstance(result, dict):
            raise BadAnswer(f"expected an object, got {shorten(result)}")
        blocks: list[dict[str, Any]] = _listed(result.get("content"))
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str) or (kind == "text" and not isinstance(block.get("text"), str)):
                raise BadAnswer(f"content: expected a block with a type, got {shorten(block)}")
        model, reason = result.get("model"), result.get("stopReason")
        return Sample(
            blocks, model if isinstance(model, str) else "", reason if isinstance(reason, str) else None
        )


def _listed(messages: Any) -> list[Any]:
    return list(messages) if isinstance(messages, (list, tuple)) else [messages]


class _Turn:
    """A sampling message: its role and content. `listed`: the content is a list, even with one block."""

    def __init__(self, role: Any, content: Any) -> None:
        if role not in ("user", "assistant"):
            raise TypeError(f"messages: expected the role user or assistant, got {shorten(role)}")
        self.role = role
        self.parts = _listed(content)
        self.listed = isinstance(content, (list, tuple))
        self.kinds = [block_of(part, MODERN)["type"] for part in self.parts]
        for kind in self.kinds:
            if kind not in SAMPLED_TYPES:
                raise TypeError(
                    f"messages: expected content of {', '.join(SAMPLED_TYPES)}, got {shorten(kind)}"
                )

    def in_version(self, version: str) -> list[dict[str, Any]]:
        """Return the message in the form of a version: where content cannot be a list, one message for each
        block."""
        blocks = [block_of(part, version) for part in self.parts]
        if self.listed and version in RICH_QUESTIONS:
            return [{"role": self.role, "content": blocks}]
        return [{"role": self.role, "content": block} for block in blocks]


def _turn(message: Any) -> _Turn:
    if isinstance(message, Sample):
        return _Turn("assistant", message.content)
    if isinstance(message, (str, Content)):
        return _Turn("user", message)
    if isinstance(message, dict):
        return _Turn(message.get("role"), message.get("content"))
    if hasattr(message, "role") and hasattr(message, "content"):
        return _Turn(message.role, message.content)
    raise TypeError(f"messages: expected texts, content or messages, got {shorten(message)}")


def _option(name: str, value: Any, version: str) -> Any:
    if name == "model_preferences" and not isinstance(value, dict):
        return {"hints": [{"name": model} for model in _listed(value)]}
    if name == "tool_choice" and isinstance(value, str):
        return {"mode": value}
    if name == "tools":
        return [tool if isinstance(tool, dict) else tool.descriptor(version) for tool in value]
    return value


# ------------------------------------------------------------------------------------------- roots


class Roots(Question["list[Root]"]):
    """The folders (roots) that the client works in. See `fastrpc.Context.roots`."""

    method = "roots/list"
    capability = "roots"

    def known(self, request: ClientRequest) -> list[Root] | None:
        """Return the stored roots: a client that declares `listChanged` is asked once per session."""
        known: list[Root] | None = request.known_roots
        return known

    def read(self, result: object, request: ClientRequest) -> list[Root]:
        roots: Any = result.get("roots") if isinstance(result, dict) else None
        if not isinstance(roots, list):
            raise BadAnswer(f"roots: expected an array, got {shorten(roots)}")
        for root in roots:
            if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
                raise BadAnswer(f"roots: expected objects with a uri, got {shorten(root)}")
        declared = request.client_capabilities.get("roots")
        if request.version in LEGACY_VERSIONS and declared and declared.get("listChanged") is True:
            request.keep_roots(roots)
        return roots
