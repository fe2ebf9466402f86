"""Requests to the client's model (MCP, client features: sampling), and the model's answer.

`fastrpc.client_requests.pending` sends the request; whether a person sees it first is decided by the client.
"""

from __future__ import annotations

from fastrpc.client_requests.base import InputRequest, InvalidClientResult
from fastrpc.content import Content, block_of
from fastrpc.protocol.versions import RICH_INPUT_REQUESTS, STATELESS, knows_content
from fastrpc.schema.converters import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from fastrpc.engine.ports import ClientRequest
    from fastrpc.options import SamplingOptions

    class Turn(Protocol):
        """The members of a message: `fastrpc.Message`, or a similar class of another framework."""

        @property
        def role(self) -> str: ...
        @property
        def content(self) -> object: ...

    Said = str | Content | dict[str, Any] | Turn
    """One message of a sampling request. A `Sample` is accepted too, and is the model's turn."""

SAMPLED_TYPES = ("text", "image", "audio", "tool_use", "tool_result")


class Sample:
    """The answer of the client's model: `content` is a list of blocks, `text` all their text. It may be a
    message of a later request."""

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


class Sampling(InputRequest[Sample]):
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
            self.versions = RICH_INPUT_REQUESTS

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
            raise InvalidClientResult(f"expected an object, got {shorten(result)}")
        blocks: list[dict[str, Any]] = _listed(result.get("content"))
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str) or (kind == "text" and not isinstance(block.get("text"), str)):
                raise InvalidClientResult(f"content: expected a block with a type, got {shorten(block)}")
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
        self.kinds = [block_of(part, STATELESS)["type"] for part in self.parts]
        for kind in self.kinds:
            if kind not in SAMPLED_TYPES:
                raise TypeError(
                    f"messages: expected content of {', '.join(SAMPLED_TYPES)}, got {shorten(kind)}"
                )

    def in_version(self, version: str) -> list[dict[str, Any]]:
        """Return the message in a version: where content cannot be a list, a message for each block."""
        blocks = [block_of(part, version) for part in self.parts]
        if self.listed and version in RICH_INPUT_REQUESTS:
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
