"""Writes instances of attrs classes with their private attributes, such as ``_x``.

msgspec reads and describes those by that name, but leaves them out when it writes. Only types that have
one are written here, value by value, some 3 µs for an instance. What attrs names the parameter of
``__init__`` (``x``) is not on the wire.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

DESCRIPTIONS: Any = (msgspec.inspect.Type, msgspec.inspect.Field)


def has_private_attributes(annotation: Any) -> bool:
    """Whether a type is a class of attrs with private attributes, or contains one."""
    if "attr" not in sys.modules:
        return False
    seen: set[int] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += each
        elif id(each) not in seen and isinstance(each, DESCRIPTIONS):
            seen.add(id(each))
            if hasattr(getattr(each, "cls", None), "__attrs_attrs__") and any(map(_is_private, each.fields)):
                return True
            waiting += (getattr(each, name) for name in each.__struct_fields__)
    return False


def _is_private(field: Any) -> bool:
    return bool(field.name.startswith("_"))


def written_whole(value: Any) -> Any:
    """Return what msgspec makes of a value, with all attributes."""
    kind = type(value)
    if hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__ if hasattr(value, field.name)]
        return {name: written_whole(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        keys = msgspec.to_builtins(dict.fromkeys(value), str_keys=True)
        return {key: written_whole(member) for key, member in zip(keys, value.values(), strict=True)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [written_whole(each) for each in value]
    written = msgspec.to_builtins(value, str_keys=True)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: written_whole(getattr(value, name)) for name in written}
    if isinstance(value, msgspec.Struct):
        names = kind.__struct_fields__
        if isinstance(written, list):  # behind its tag, if it has one
            return written[: -len(names)] + [written_whole(getattr(value, name)) for name in names]
        for name, key in zip(names, kind.__struct_encode_fields__, strict=True):
            if key in written:
                written[key] = written_whole(getattr(value, name))
    return written
