"""Converts what servers for FastMCP or the official SDK return into types of fastrpc.

Content, messages and results may be classes of this file, fastrpc's own, or models of ``mcp.types``; models
are recognised by their members, so that no other package is imported. All other values are returned
unchanged.
"""

from __future__ import annotations

import sys

from fastrpc.compat.apps.interfaces import interface_result, is_interface, structured_form
from fastrpc.compat.field_types import ModelType
from fastrpc.compat.json_forms import json_form
from fastrpc.content import Audio as PlainAudio
from fastrpc.content import Block, Content, Contents, EmbeddedResource, Received, annotations_of, block_of
from fastrpc.content import Image as PlainImage
from fastrpc.content import ToolResult as PlainResult
from fastrpc.definitions.prompt import Message as PromptMessage
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

BLOCKS = ("text", "image", "audio", "resource", "resource_link")
SCALARS = (str, int, float, bool, type(None))


# ----------------------------------------------------------------------------------------- content


def _media(kind: Any, path: Any, data: bytes | None, format: str | None) -> tuple[bytes, str]:
    """Return the bytes and the MIME type of an image or audio; `format` is the subtype."""
    if (path is None) == (data is None):
        raise ValueError(f"{kind.__name__}: give either path= or data=")
    mime_type = f"{kind.kind}/{format.lower()}" if format else None
    if path is not None:
        import os

        found = kind.from_file(os.path.expanduser(path), mime_type)
        return found.data, found.mime_type
    assert data is not None
    return data, mime_type or ("image/png" if kind is PlainImage else "audio/wav")


class Image(PlainImage):
    """An image: the `path` of a file, or `data` with its `format` (``png``, ``jpeg`` …)."""

    __slots__ = ()

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Any = None,
    ) -> None:
        super().__init__(*_media(PlainImage, path, data, format), annotations=plain(annotations))

    def to_image_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """Return it as the SDK's ImageContent."""
        return _typed_block(self, "ImageContent", mime_type, annotations)

    def to_data_uri(self, mime_type: str | None = None) -> str:
        """Return it as an address that is the image itself, for an `Icon`."""
        from base64 import b64encode

        return f"data:{mime_type or self.mime_type};base64,{b64encode(self.data).decode()}"


class Audio(PlainAudio):
    """Audio: the `path` of a file, or `data` with its `format` (``wav``, ``mp3`` …)."""

    __slots__ = ()

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Any = None,
    ) -> None:
        super().__init__(*_media(PlainAudio, path, data, format), annotations=plain(annotations))

    def to_audio_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """Return it as the SDK's AudioContent."""
        return _typed_block(self, "AudioContent", mime_type, annotations)


class File(EmbeddedResource):
    """An embedded file: its `path`, or `data` with `format` and `name`."""

    __slots__ = ()

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        name: str | None = None,
        annotations: Any = None,
    ) -> None:
        import os

        from fastrpc.definitions.resource import guessed_type
        from fastrpc.regular_files import LARGEST, read_regular

        if (path is None) == (data is None):
            raise ValueError("File: give either path= or data=")
        if path is not None:
            place = os.path.abspath(os.path.expanduser(path))
            data = read_regular(place, LARGEST)
            uri = f"file://{place}"
        else:
            uri = f"file:///{name or 'resource'}" + (f".{format}" if format else "")
        assert data is not None
        try:
            text: str | None = (
                data.decode() if format in (None, "plain", "txt", "text", "md", "json") else None
            )
        except UnicodeDecodeError:
            text = None
        mime_type = guessed_type(uri, text=text is not None)
        if mime_type is None:
            mime_type = "application/octet-stream" if text is None else "text/plain"
        hints = plain(annotations)
        if text is not None:
            super().__init__(uri, text=text, mime_type=mime_type, annotations=hints)
        else:
            super().__init__(uri, data=data, mime_type=mime_type, annotations=hints)

    def to_resource_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """Return it as the SDK's EmbeddedResource."""
        return _typed_block(self, "EmbeddedResource", mime_type, annotations)


def _typed_block(block: Content, name: str, mime_type: str | None, annotations: Any) -> Any:
    from fastrpc.compat.models import typed

    raw = {key: value for key, value in block_of(block, LATEST_SESSION_VERSION).items() if value is not None}
    if mime_type is not None:
        raw.get("resource", raw)["mimeType"] = mime_type
    if annotations is not None:
        raw["annotations"] = plain(annotations)
    return typed(name, raw)


class Message(ModelType):
    """A message of a prompt; the role is ``user`` unless `role` says ``assistant``."""

    role = "user"

    def __init__(self, content: Any, role: str | None = None) -> None:
        self.content = content
        self.role = role or type(self).role


class UserMessage(Message):
    """A message of the user."""


class AssistantMessage(Message):
    """A message of the assistant."""

    role = "assistant"


class PromptResult(ModelType):
    """The messages of a prompt, sent with this `description` and `meta` in the place of the prompt's own."""

    def __init__(self, messages: Any, description: str | None = None, meta: Any = None) -> None:
        self.messages = messages
        self.description = description
        self.meta = meta


class ToolResult(ModelType, PlainResult):
    """A tool's result: `content`, `structured_content` or both, and `meta`."""

    __slots__ = ()

    def __init__(
        self,
        content: Any = None,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
        is_error: bool = False,
    ) -> None:
        found = tool_value(content)
        if found is not None and not isinstance(found, (str, Content)):
            found = found if _is_content_list(found) else _json_text(found)
        if "prefab_ui.app" in sys.modules and is_interface(structured_content):
            structured_content = structured_form(structured_content)
        super().__init__(found, structured=plain(structured_content), meta=meta, is_error=is_error)

    @property
    def structured_content(self) -> Any:
        """The structured content, None if there is none."""
        return self.structured

    @structured_content.setter
    def structured_content(self, value: Any) -> None:
        self.structured = plain(value)

    def to_mcp_result(self) -> Any:
        """Return it as the SDK's low-level handlers do. Where a subclass has another method of this
        name, what that returns is sent."""
        from fastrpc.compat.calls.typed_content import sdk_result

        return sdk_result(self)


class ResourceContent(ModelType, Contents):
    """One of the contents of a resource. What is neither text nor bytes becomes its JSON; the MIME type is by
    default that of the content, whatever the resource's is."""

    __slots__ = ()

    def __init__(self, content: Any, mime_type: str | None = None, meta: Any = None) -> None:
        kind = "application/json"
        if isinstance(content, str):
            kind = "text/plain"
        elif isinstance(content, bytes):
            kind = "application/octet-stream"
        else:
            content = _json_text(plain(content))
        super().__init__(content, mime_type or kind, meta=meta)


class ResourceResult(ModelType):
    """The contents of a resource: a list of `ResourceContent`, or one value."""

    def __init__(self, contents: Any, meta: Any = None) -> None:
        self.contents = contents if isinstance(contents, list) else [ResourceContent(contents)]


# ------------------------------------------------------------------------------------- conversions


def plain(value: Any) -> Any:
    """Return a model as the dict that is sent; any other value unchanged."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def aliased(value: Any) -> Any:
    """Return a value in which each pydantic model is replaced by a dict with the models' aliases as keys. A
    value without models is returned unchanged."""
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, (list, tuple)):
        found = [aliased(item) for item in value]
        return found if any(new is not old for new, old in zip(found, value, strict=True)) else value
    if type(value) is dict:
        members = {name: aliased(item) for name, item in value.items()}
        return members if any(members[name] is not value[name] for name in members) else value
    if hasattr(type(value), "__pydantic_serializer__") and hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return value


def is_model(value: Any, *members: str) -> bool:
    return hasattr(value, "model_dump") and all(hasattr(value, member) for member in members)


def _is_block(value: Any) -> bool:
    return is_model(value, "type") and value.type in BLOCKS


def _is_content_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(part, Content) for part in value)


def content(value: Any) -> Any:
    """Return a content block of any framework as one of fastrpc's; any other value unchanged."""
    return Block(plain(value)) if _is_block(value) else value


def _json_text(value: Any) -> str:
    from fastrpc.json_encoding import to_json

    return to_json(value).decode()


def tool_value(value: Any) -> Any:
    """Convert the result of a tool: a list with content in it becomes content."""
    if isinstance(value, ToolResult) and type(value) is not ToolResult:
        from fastrpc.compat.calls.typed_content import has_own_form, in_own_form

        if has_own_form(value):
            return in_own_form(value)
    if isinstance(value, ToolResult) and isinstance(value.content, list):
        value.content = [content(part) for part in value.content]
    if isinstance(value, (*SCALARS, dict, Content, PlainResult)):
        return value
    if "prefab_ui.app" in sys.modules and is_interface(value):
        return interface_result(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if isinstance(value, (list, tuple)):
        parts = [content(part) for part in value]
        if not _is_content_list(parts):
            return value
        return [part if isinstance(part, (str, Content)) else _json_text(part) for part in parts]
    if _is_block(value):
        return content(value)
    if is_model(value, "content") and (hasattr(value, "isError") or hasattr(value, "is_error")):
        return _call_result(plain(value))
    return _json_text(str(value)) if _is_opaque(value) else value


_PLAIN = frozenset((*SCALARS, dict))


def foreign_value(value: Any, refuses_nan: bool = False) -> Any:
    """Convert the result of a tool whose annotation says that it needs no conversion: `tool_value` of what
    has come in the place of that, with forms of JSON for what has none."""
    kind = type(value)
    is_list = kind is list or kind is tuple
    if kind not in _PLAIN and not (is_list and all(type(item) in _PLAIN for item in value)):
        value = tool_value(value)
    return json_form(value, refuses_nan)


def _is_opaque(value: Any) -> bool:
    """Whether a value is of a class that says nothing of its members: it is sent as its text, as JSON."""
    kind = type(value)
    return (
        kind.__module__ not in ("builtins", "datetime")
        and kind.__bases__ == (object,)
        and not _KNOWN.intersection(dir(kind))
    )


_KNOWN = frozenset(
    {
        *("__attrs_attrs__", "__await__", "__dataclass_fields__", "__float__", "__fspath__", "__index__"),
        *("__int__", "__iter__"),
        *("__pydantic_serializer__", "__slots__", "__struct_fields__", "isoformat", "model_dump"),
    }
)
"""Members of classes whose values are written otherwise."""


def _call_result(result: dict[str, Any]) -> PlainResult:
    """Convert a CallToolResult."""
    return PlainResult(
        [Block(block) for block in result.get("content", [])],
        structured=result.get("structuredContent"),
        is_error=result.get("isError", False),
        meta=result.get("_meta"),
    )


def prompt_value(value: Any) -> Any:
    """Convert the result of a prompt. What another server has sent stays as it is."""
    if isinstance(value, Received):
        return value
    if isinstance(value, PromptResult):
        rest = {"description": value.description, **({"_meta": value.meta} if value.meta else {})}
        found = prompt_value(value.messages)
        return Received(found if isinstance(found, list) else [found], rest)
    if is_model(value, "messages"):
        value = value.messages
    if isinstance(value, (list, tuple)):
        return [_message(part) for part in value]
    return _message(value)


def _message(value: Any) -> Any:
    if isinstance(value, (Message, PromptMessage)) or is_model(value, "role", "content"):
        return PromptMessage(value.role, _message_content(value.content))
    if isinstance(value, dict) and set(value) == {"role", "content"}:
        return PromptMessage(value["role"], content(value["content"]))
    return _message_content(value)


def _message_content(value: Any) -> Any:
    if isinstance(value, (str, Content)) or _is_block(value):
        return content(value)
    return _json_text(plain(value))


def resource_value(value: Any) -> Any:
    """Convert the result of a resource."""
    if isinstance(value, ResourceResult):
        return value.contents
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)) and not all(isinstance(part, Contents) for part in value):
        return _json_text(plain(value))
    return value


def checked_annotations(annotations: Any) -> dict[str, Any] | None:
    """Return the annotations of a resource as fastrpc's dict."""
    if annotations is None:
        return None
    given = plain(annotations)
    if isinstance(given, dict):  # hints for tools, which some give to resources, mean nothing there
        given = {name: value for name, value in given.items() if not name.endswith(("Hint", "_hint"))}
    return annotations_of(given)
