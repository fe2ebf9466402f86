"""What the originals send of values that JSON has no form for: NaN as null, bytes and paths as their text, a
deque as an array.

`json_form` changes such values alone, also within dicts and lists; what the encoder knows (dates,
enums, models) is left to it, and an object of an unknown class too: an error where a schema promises
something of it. `readable_form` has the text of such an object. Costs nothing for plain results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from operator import index

from fastrpc._core.encoder import is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_KNOWN = ("datetime", "decimal", "enum", "uuid")
"""Modules of classes that the encoder writes as the originals do."""
_TEXTS = ("ipaddress", "pathlib")
"""Modules of classes whose values are sent as their texts."""


def json_form(value: Any, refuses_nan: bool = False) -> Any:
    """Return a value with forms of JSON in the place of what has none. A number that has none is null within
    a value; as the whole of it, or if the original `refuses_nan`, it stays, and is refused by the encoder."""
    if is_plain(value) or isinstance(value, float):
        return value
    return _changed(value, _as_it_is, refuses_nan)


def readable_form(value: Any, refuses_nan: bool = False) -> Any:
    """Return it so, with the texts of objects of unknown classes, and of a number that is the whole value."""
    if isinstance(value, float) and not refuses_nan:
        return "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"
    return _changed(value, str, refuses_nan)


def numeric_form(value: Any) -> Any:
    """Return the value of a result with an output schema, with Python's numbers in place of those of NumPy
    and gmpy2."""
    return value if is_plain(value) else _changed(value, _number, refuses_nan=True)


def _number(value: Any) -> Any:
    kind = type(value)
    try:
        if kind.__name__.startswith("bool"):
            return bool(value)
        if hasattr(kind, "__index__"):
            return index(value)
        return float(value) if hasattr(kind, "__float__") else value
    except (TypeError, ValueError, OverflowError):  # an array of several
        return value


def _changed(value: Any, unknown: Callable[[Any], Any], refuses_nan: bool) -> Any:
    """Return a value in which each part that JSON has no form for is replaced."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if refuses_nan or value - value == 0 else None
    if isinstance(value, dict):
        return {_key(name): _changed(item, unknown, refuses_nan) for name, item in value.items()}
    if isinstance(value, (set, frozenset)) and all(isinstance(item, (str, int)) for item in value):
        return value
    if type(value) is tuple or isinstance(value, (list, set, frozenset, deque, Iterator)):
        return [_changed(item, unknown, refuses_nan) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if type(value) is complex:
        return str(value).strip("()")
    return _of_class(value, unknown)


def _of_class(value: Any, unknown: Callable[[Any], Any]) -> Any:
    kind = type(value)
    names = {each.__module__.partition(".")[0] for each in kind.__mro__}
    if names.intersection(_TEXTS):
        return str(value)
    if "datetime" in names and getattr(value, "tzinfo", None) is not None:
        text = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    is_written = names.intersection(_KNOWN) or any(hasattr(kind, mark) for mark in _MARKS)
    return value if is_written else unknown(value)


_MARKS = (
    *("__attrs_attrs__", "__await__", "__dataclass_fields__", "__pydantic_serializer__"),
    *("__struct_fields__", "_fields", "model_dump"),
)
"""Members of classes that say what their values consist of."""


def _key(name: Any) -> Any:
    """Return the key of a dict as a text; unchanged if the encoder writes the same text for it, or refuses
    it."""
    if isinstance(name, (str, int, float)) and not isinstance(name, bool):
        return name
    return "None" if name is None else _text_of_key(name)


def _text_of_key(name: Any) -> Any:
    if hasattr(name, "__members__") or hasattr(type(name), "__members__"):
        name = name.value
    if type(name) is tuple:
        return ",".join(str(_text_of_key(part)) for part in name)
    if isinstance(name, bool):
        return "true" if name else "false"
    if isinstance(name, (bytes, bytearray)):
        return bytes(name).decode("utf-8", "replace")
    if hasattr(name, "total_seconds"):
        import msgspec

        return msgspec.to_builtins(name)
    names = {each.__module__.partition(".")[0] for each in type(name).__mro__}
    return str(name) if "decimal" in names else _of_class(name, _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value
