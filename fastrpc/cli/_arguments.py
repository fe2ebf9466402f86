"""Arguments on a command line: ``key=value`` words typed by a schema, or one JSON object.

The server validates them again. The only I/O is for ``-``, which reads standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

from fastrpc.command_line import suggestion
from fastrpc.errors import Reworded, UsageError


def whole(option: str, text: str, pairs: list[str]) -> dict[str, Any]:
    """Return arguments that are given as one JSON object, by an option or as a word. Raises UsageError."""
    if pairs:
        raise UsageError(f"give either {option} or key=value, not both ({pairs[0]!r:.80})")
    with Reworded(ValueError, UsageError, f"{option}: "):
        value = json.loads(sys.stdin.read() if text == "-" else text, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise UsageError(f"{option}: expected an object, got {type(value).__name__}")
    return value


def as_object(words: list[str]) -> tuple[list[str], dict[str, Any] | None]:
    """Return the words, and None; for one JSON object among them none, and its value. Raises UsageError."""
    at = next((at for at, word in enumerate(words) if is_json(word)), None)
    if at is None:
        return words, None
    return [], whole("arguments", words[at], words[:at] + words[at + 1 :])


def is_json(word: str) -> bool:
    """Whether a word is meant as JSON: its beginning is not that of a key."""
    return word.startswith(("{", "["))


def typed(pairs: list[str], tool: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``key=value`` words as arguments, each value parsed by its schema. Raises UsageError."""
    found = schema.get("properties")
    properties: dict[str, Any] = found if isinstance(found, dict) else {}
    is_open = schema.get("additionalProperties", False) is not False
    return {
        key: value_of(key, text, kinds_of(properties.get(key, {})))
        for key, text in texts(pairs, tool, None if is_open else properties).items()
    }


def texts(pairs: list[str], name: str, known: Collection[str] | None) -> dict[str, str]:
    """Return ``key=value`` words as texts; `known` are the keys that are allowed, None for any. Raises
    UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"expected key=value, got {pair!r}")
        if key in found:
            raise UsageError(f"{key!r} is given twice")
        if known is not None and key not in known:
            hint = suggestion(key, known) or f"; it has {', '.join(known) or 'none'}"
            raise UsageError(f"{name} has no argument {key!r}{hint}")
        found[key] = text
    return found


def kinds_of(schema: Any) -> list[str]:
    """Return the JSON types that a property's schema allows; an empty list allows any."""
    if not isinstance(schema, dict):
        return []
    kinds = schema.get("type", [])
    found = [kinds] if isinstance(kinds, str) else list(kinds)
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found += kinds_of(branch)
    if not found and "enum" in schema and all(isinstance(member, str) for member in schema["enum"]):
        return ["string"]
    return found


def value_of(key: str, text: str, kinds: list[str]) -> Any:
    """Return an argument's value: JSON of an allowed type, else an allowed string. Raises UsageError."""
    if kinds == ["string"]:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        value = text
    if not kinds or json_type(value) in kinds or (json_type(value) == "integer" and "number" in kinds):
        return value
    if "string" in kinds:
        return text
    raise UsageError(f"{key}: expected {' or '.join(kinds)}, got {text!r}")


def _refuse(name: str) -> None:
    """Refuse NaN and Infinity, which Python accepts but JSON does not have. Raises ValueError."""
    raise ValueError(name)


def json_type(value: Any) -> str:
    """Return the JSON Schema name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names[type(value)]
