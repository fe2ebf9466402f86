"""Results, descriptors and params as objects with attributes, as the official SDK has them.

Where the program has imported ``mcp.types``, they are models of it, for ``isinstance``: their attributes are
spelled as that version spells them. Otherwise they are `Model`, which knows both spellings, checks nothing
and converts a member when it is first read; importing ``mcp.types`` takes longer than starting a server.
"""

from __future__ import annotations

import sys
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

DATA = frozenset(
    {
        "_meta",
        "data",
        "experimental",
        "extensions",
        "input",
        "inputSchema",
        "metadata",
        "outputSchema",
        "requestedSchema",
        "structuredContent",
    }
)
"""Members that stay what was received: any JSON value. So do the arguments of a call, an object."""

OPTIONAL = {
    **dict.fromkeys(
        (
            "_meta",
            "annotations",
            "arguments",
            "audience",
            "completions",
            "description",
            "destructiveHint",
            "execution",
            "experimental",
            "hasMore",
            "icons",
            "idempotentHint",
            "includeContext",
            "instructions",
            "lastModified",
            "listChanged",
            "logger",
            "logging",
            "maxTokens",
            "message",
            "mimeType",
            "modelPreferences",
            "nextCursor",
            "openWorldHint",
            "outputSchema",
            "priority",
            "progressToken",
            "prompts",
            "readOnlyHint",
            "required",
            "resources",
            "size",
            "stopReason",
            "stopSequences",
            "structuredContent",
            "subscribe",
            "systemPrompt",
            "temperature",
            "title",
            "tools",
            "total",
            "websiteUrl",
        )
    ),
    "isError": False,
}
"""Members that a server may leave out, and what they are then."""

NOTIFICATIONS = {
    "notifications/cancelled": "CancelledNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
}


class Model:
    """An object of the protocol: its members are attributes, in camel case or in snake case; ``meta`` is
    ``_meta``. One that is optional and missing is None; any other missing one raises AttributeError."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        member = _member_of(name)
        if member in self._raw:
            value = self._raw[member]
            if member not in DATA and not (member == "arguments" and isinstance(value, dict)):
                value = _object_of(value)
        elif member in OPTIONAL:
            value = OPTIONAL[member]
        else:
            raise AttributeError(f"there is no member {name!r} in {self!r:.200}")
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        if name != "_raw":
            self._raw[_member_of(name)] = dumped(value)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members, as received or as set. Options of pydantic's method have no effect."""
        found = dict(self._raw)
        for name, value in self.__dict__.items():
            member = _member_of(name)
            if member in found:
                found[member] = dumped(value)
        return found

    def model_dump_json(self, **options: Any) -> str:
        """Return the members, as received or as set, as JSON."""
        from fastrpc.json_encoding import to_json

        return to_json(self.model_dump()).decode()

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values of some members."""
        from copy import deepcopy

        copy = type(self)(deepcopy(self.model_dump()) if deep else self.model_dump())
        for name, value in (update or {}).items():
            setattr(copy, name, value)
        return copy

    def __eq__(self, other: object) -> bool:
        return self._raw == other._raw if isinstance(other, Model) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Model({', '.join(f'{name}={value!r}' for name, value in self._raw.items())})"


class Notification(Model):
    """A notification of the server: ``method`` and ``params``; ``root`` is itself."""

    @property
    def root(self) -> Notification:
        return self


@lru_cache(maxsize=512)
def _member_of(name: str) -> str:
    if name == "meta":
        return "_meta"
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _object_of(value: Any) -> Any:
    """Return a member's value with objects for dicts."""
    if isinstance(value, list):
        return [_object_of(part) for part in value]
    return Model(value) if isinstance(value, dict) else value


def _types() -> Any:
    """Return the official SDK's module of types, where the program has imported it."""
    return sys.modules.get("mcp_types") or sys.modules.get("mcp.types")


def has_types() -> bool:
    """Whether the program has imported the official SDK's types."""
    return _types() is not None


def typed(name: str, raw: dict[str, Any]) -> Any:
    """Return an object of the protocol, of the class of this name. Raises pydantic's ValidationError where
    the program uses the SDK's types and the object does not conform."""
    model = getattr(_types(), name, None)
    return Model(raw) if model is None else model.model_validate(raw)


def typed_notification(message: dict[str, Any]) -> Any:
    """Return a notification of the server, as the SDK hands it to a message handler."""
    raw = {key: value for key, value in message.items() if key != "jsonrpc"}
    types = _types()
    model = getattr(types, NOTIFICATIONS.get(message["method"], ""), None)
    if model is None:
        return Notification(raw)
    found = model.model_validate(raw)
    union = getattr(types, "ServerNotification", None)
    return union(found) if isinstance(union, type) else found  # a model up to 1.x


def dumped(value: Any) -> Any:
    """Return what is sent for an object of the protocol; a dict and any other value unchanged."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, (list, tuple)):
        return [dumped(part) for part in value]
    return value
