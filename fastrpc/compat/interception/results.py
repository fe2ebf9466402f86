"""Results of calls as middleware sees them, and back.

What a tool, a resource or a prompt has returned becomes content, messages or contents when middleware reads
it. A result that no middleware reads is passed on as the function returned it, at no further cost.
"""

from __future__ import annotations

from fastrpc.compat import models
from fastrpc.compat.calls.typed_content import (
    ReplacedResult,
    has_own_form,
    in_own_form,
    typed_block,
    typed_content,
    typed_part,
)
from fastrpc.compat.values import Message, PromptResult, ResourceResult, ToolResult
from fastrpc.content import Block, Content, Contents, Received
from fastrpc.content import ToolResult as PlainResult
from fastrpc.definitions.prompt import Message as PromptMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# --- tools ------------------------------------------------------------------------------------------------


class SeenToolResult(ToolResult):
    """The result of a tool: `content` (typed blocks), `structured_content`, `meta` and `is_error`.

    They are read from what the tool has returned when the first of them is wanted, by `read`.
    """

    __slots__ = ("_read", "_value")

    def __init__(self, value: Any, read: Callable[[Any], dict[str, Any]]) -> None:
        self._value = value
        self._read: Callable[[Any], dict[str, Any]] | None = read

    def __getattr__(self, name: str) -> Any:
        if name not in PlainResult.__slots__ or self._read is None:
            raise AttributeError(f"a tool's result has no {name}")
        self._fill()
        return getattr(self, name)

    def _fill(self) -> None:
        """Set the attributes that have not been set."""
        read, self._read = self._read, None
        assert read is not None
        raw = read(self._value)
        read_now = {
            "content": [typed_block(block) for block in raw.get("content", ())],
            "structured": raw.get("structuredContent"),
            "is_error": raw.get("isError", False),
            "meta": raw.get("_meta"),
        }
        for name, value in read_now.items():
            try:
                object.__getattribute__(self, name)
            except AttributeError:
                setattr(self, name, value)

    @property
    def payload(self) -> Any:
        """The structured content; that of another server's result is not read for it."""
        is_whole = self._read is not None and getattr(self._value, "rest", None) is not None
        return (self._value if is_whole else self).structured

    @property
    def value(self) -> Any:
        """What is passed on: the value that the tool has returned, until middleware has read the result."""
        if self._read is not None:
            for name in PlainResult.__slots__:
                try:
                    object.__getattribute__(self, name)
                except AttributeError:
                    continue
                self._fill()
                return replaced(self)
            return self._value
        return replaced(self)


def tool_result_of(raw: dict[str, Any]) -> SeenToolResult:
    """Return the result that middleware has made, a CallToolResult in the wire format."""
    seen = SeenToolResult(None, lambda _: raw)
    seen._fill()
    return seen


def seen_tool_result(result: Any) -> Any:
    """Return the result of an inner middleware as an outer one sees it. Raises TypeError for what is none."""
    if type(result) is SeenToolResult:
        return result
    if isinstance(result, ToolResult) and has_own_form(result):
        result = in_own_form(result)
    if not isinstance(result, PlainResult):
        if not (hasattr(result, "content") and hasattr(result, "model_dump")):
            raise TypeError(f"middleware: expected a ToolResult, got {result!r:.60}")
        return tool_result_of(result.model_dump(mode="json", by_alias=True))
    seen = SeenToolResult(None, dict)
    seen._read = None
    seen.content = typed_content(result)
    seen.structured, seen.meta, seen.is_error = result.structured, result.meta, result.is_error
    return seen


def replaced(result: Any) -> ReplacedResult:
    """Return the result that middleware has read or made, for sending."""
    content = result.content
    if isinstance(content, (str, Content)):
        content = [content]
    parts = [
        part if isinstance(part, (str, Content)) else Block(models.dumped(part)) for part in content or ()
    ]
    structured = models.dumped(result.structured)
    former = getattr(result, "_value", None)
    return ReplacedResult(parts, structured, result.meta, result.is_error, former)


def _received(parts: list[Any], former: Any) -> list[Any]:
    """Return the parts of a result that was read, with what else another server has sent in it."""
    return Received(parts, former.rest) if isinstance(former, Received) else parts


# --- resources --------------------------------------------------------------------------------------------


class SeenResourceResult(ResourceResult):
    """The contents of a resource, each with `content`, `mime_type` and `meta`; also their list."""

    def __init__(self, value: Any, read: Callable[[Any], list[Contents]], meta: Any = None) -> None:
        self._value = value
        self._read = read
        self.meta = meta

    def __getattr__(self, name: str) -> Any:
        if name != "contents":
            raise AttributeError(f"a resource's result has no {name}")
        self.contents = self._read(self._value)
        return self.contents

    @property
    def value(self) -> Any:
        if "contents" not in vars(self):
            return self._value
        return _received([_contents(part) for part in self.contents], self._value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)

    def __getitem__(self, at: int) -> Any:
        return self.contents[at]


def _contents(part: Any) -> Contents:
    if isinstance(part, Contents):
        return part
    if isinstance(part, (str, bytes)):
        return Contents(part)
    return Contents(part.content, getattr(part, "mime_type", None), meta=getattr(part, "meta", None))


def seen_resource_result(result: Any) -> SeenResourceResult:
    """As `seen_tool_result`, for the contents of a resource."""
    if type(result) is SeenResourceResult:
        return result
    parts = getattr(result, "contents", result)
    if isinstance(parts, (str, bytes)):
        parts = [parts]
    if not isinstance(parts, (list, tuple)):
        raise TypeError(f"middleware: expected a ResourceResult, got {result!r:.60}")
    seen = SeenResourceResult(None, list, getattr(result, "meta", None))
    seen.contents = [_contents(part) for part in parts]
    return seen


# --- prompts ----------------------------------------------------------------------------------------------


class SeenPromptResult(PromptResult):
    """The messages of a prompt, each with `role` and `content`, a typed block."""

    def __init__(
        self,
        value: Any,
        read: Callable[[Any], list[dict[str, Any]]],
        description: str | None,
        meta: Any = None,
    ) -> None:
        self._value = value
        self._read = read
        self.description = description
        self.meta = meta

    def __getattr__(self, name: str) -> Any:
        if name != "messages":
            raise AttributeError(f"a prompt's result has no {name}")
        self.messages = [_typed_message(raw["role"], raw["content"]) for raw in self._read(self._value)]
        return self.messages

    @property
    def value(self) -> Any:
        if "messages" not in vars(self):
            return self._value
        return _received(
            [PromptMessage(each.role, _sent(each.content)) for each in self.messages], self._value
        )


def _typed_message(role: Any, content: Any) -> Message:
    return Message(typed_part(content), role)


def _sent(content: Any) -> Any:
    return content if isinstance(content, (str, Content)) else Block(models.dumped(content))


def seen_prompt_result(result: Any) -> SeenPromptResult:
    """As `seen_tool_result`, for the messages of a prompt."""
    if type(result) is SeenPromptResult:
        return result
    messages = getattr(result, "messages", result)
    if isinstance(messages, str):
        messages = [Message(messages)]
    if not isinstance(messages, (list, tuple)):
        raise TypeError(f"middleware: expected a PromptResult, got {result!r:.60}")
    description, meta = getattr(result, "description", None), getattr(result, "meta", None)
    seen = SeenPromptResult(None, list, description, meta)
    seen.messages = [
        _typed_message(getattr(each, "role", "user"), getattr(each, "content", each)) for each in messages
    ]
    return seen
