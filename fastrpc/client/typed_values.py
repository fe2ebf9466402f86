"""The value of a tool's result as a Python type: ``call_tool("price", …, as_type=Price)``.

Supports the types of msgspec (dataclasses, Structs, TypedDicts, ``list[int]`` …) and pydantic models. The
value is the structured content; without it, the text parsed as JSON, or the text itself for `str`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fastrpc._core.call_result import CallResult
from fastrpc.errors import InvalidAnswer, ToolCallFailed

WRAPPED = {"result"}
"""The only member of structured content that wraps a value other than an object."""


def value_of(result: CallResult, wanted: Any) -> Any:
    """Return the value of a result as a type. Raises ToolCallFailed and InvalidAnswer."""
    if result.is_error:
        raise ToolCallFailed(result.text or "the tool failed and gave no reason", result)
    structured = result.structured
    if structured is None and "structuredContent" not in result.raw:
        if wanted is str:
            return result.text
        return _converted(_json_of(result.text), wanted)
    if isinstance(structured, dict) and structured.keys() == WRAPPED:
        try:
            return _converted(structured, wanted)
        except InvalidAnswer:
            return _converted(structured["result"], wanted)
    return _converted(structured, wanted)


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _converted(value: Any, wanted: Any) -> Any:
    """Return a JSON value as a type. Raises InvalidAnswer."""
    try:
        if hasattr(wanted, "model_validate"):
            return wanted.model_validate(value)
        return msgspec.convert(value, wanted)
    except (msgspec.ValidationError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidAnswer(
            f"the result is not of type {getattr(wanted, '__name__', wanted)}: {reason:.200}"
        ) from None
