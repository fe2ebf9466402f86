"""Structured content as objects: a dataclass for a JSON object whose schema names its members, dates for
texts that are dates, as the client of FastMCP returns them.

A value that does not fit its schema is returned as it is: checking is left to the client.
"""

from __future__ import annotations

import re
from dataclasses import field, fields, is_dataclass, make_dataclass
from keyword import iskeyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Schema = dict[str, Any]

DEEPEST = 64
"""References that are followed from one schema to the next."""
SCALARS: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict}


class Shapes:
    """The objects of one schema; a class is made for each kind of them."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self.is_wrapped = bool(schema.get("x-fastmcp-wrap-result"))
        """Whether the value is the member ``result`` of an object that is there for it."""
        self._classes: dict[int, tuple[Schema, type]] = {}

    def value(self, value: Any, schema: Any = None) -> Any:
        """Return a JSON value as the schema, by default the whole one, describes it."""
        schema = self._resolved(self._root if schema is None else schema)
        for alternative in schema.get("anyOf") or schema.get("oneOf") or ():
            if value is not None and self._resolved(alternative).get("type") != "null":
                return self.value(value, alternative)
        if isinstance(value, dict):
            return self._object(value, schema)
        if isinstance(value, list):
            return self._array(value, schema)
        convert = _formats().get(schema.get("format", "")) if isinstance(value, str) else None
        if convert is None:
            return value
        try:
            return convert(value)
        except ValueError:
            return value

    def _object(self, value: dict[str, Any], schema: Schema) -> Any:
        members = schema.get("properties")
        if isinstance(members, dict) and members:
            known = {name: self.value(value[name], part) for name, part in members.items() if name in value}
            return self.type(schema)(**{_attribute(name): part for name, part in known.items()})
        others = schema.get("additionalProperties")
        if not isinstance(others, dict):
            return value
        return {name: self.value(part, others) for name, part in value.items()}

    def _array(self, value: list[Any], schema: Schema) -> Any:
        first = schema.get("prefixItems")
        if isinstance(first, list) and len(first) == len(value):
            return tuple(self.value(part, each) for part, each in zip(value, first, strict=True))
        items = schema.get("items")
        return [self.value(part, items) for part in value] if isinstance(items, dict) else value

    def type(self, schema: Schema | None = None) -> type:
        """Return the dataclass for a schema of an object, by default the whole one. Members without a default
        are None where they are missing."""
        schema = self._resolved(self._root if schema is None else schema)
        known = self._classes.get(id(schema))
        if known is not None:
            return known[1]
        members = schema.get("properties", {})
        required = schema.get("required", ())
        parts: list[Any] = [
            (_attribute(name), _annotation(self._resolved(part)), _default(part, name in required))
            for name, part in members.items()
        ]
        made = make_dataclass(_class_name(schema), parts, kw_only=True)
        self._classes[id(schema)] = schema, made
        return made

    def _resolved(self, schema: Any) -> Schema:
        """Return a schema, or that to which it refers within the whole one."""
        for _ in range(DEEPEST):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not reference.startswith("#"):
                break
            schema = self._root
            for step in reference.lstrip("#/").split("/"):
                schema = schema.get(step) if isinstance(schema, dict) else None
        return schema if isinstance(schema, dict) else {}


def plain_of(value: Any) -> Any:
    """Return the JSON value of objects made here; members that are None are left out of an object."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: plain_of(part) for name, part in found.items() if part is not None}
    if isinstance(value, dict):
        return {name: plain_of(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_of(part) for part in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _formats() -> dict[str, Callable[[str], Any]]:
    from datetime import date, datetime, time
    from uuid import UUID

    return {
        "date-time": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
        "date": date.fromisoformat,
        "time": time.fromisoformat,
        "uuid": UUID,
    }


def _attribute(name: str) -> str:
    """Return a member's name as an attribute."""
    found = re.sub(r"\W", "_", name)
    return f"_{found}" if iskeyword(found) or not found.isidentifier() else found


def _class_name(schema: Schema) -> str:
    title = re.sub(r"\W", "", str(schema.get("title", "")))
    return title if title.isidentifier() and not iskeyword(title) else "Root"


def _annotation(schema: Schema) -> Any:
    kind = schema.get("type")
    return SCALARS.get(kind, object) if isinstance(kind, str) else object


def _default(schema: Any, is_required: bool) -> Any:
    value = schema.get("default") if isinstance(schema, dict) else None
    if is_required and value is None:
        return field()
    return field(default_factory=lambda: value)
