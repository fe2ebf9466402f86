"""Writes instances of dataclasses and attrs classes with all their members.

msgspec reads and describes private attributes of attrs classes, such as ``_x``, but leaves them out when it
writes (what attrs names the parameter of ``__init__``, ``x``, is not on the wire); and where it makes an
instance it leaves a default in the class, where it does not find it when it writes. Only types that may lack
something are written here, value by value, some 3 µs for an instance.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

DESCRIPTIONS: Any = (msgspec.inspect.Type, msgspec.inspect.Field)


def may_lack_members(annotation: Any) -> bool:
    """Whether a type is a class, or contains one, of which msgspec may leave something out."""
    seen: set[int] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += each
        elif id(each) not in seen and isinstance(each, DESCRIPTIONS):
            seen.add(id(each))
            if type(each).__name__ == "DataclassType" and any(
                field.name.startswith("_") or field.default is not msgspec.NODEFAULT for field in each.fields
            ):
                return True
            waiting += (getattr(each, name) for name in each.__struct_fields__)
    return False


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
    if hasattr(kind, "__dataclass_fields__"):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
        return {name: written_whole(getattr(value, name)) for name in names}
    written = msgspec.to_builtins(value, str_keys=True)
    if isinstance(value, msgspec.Struct):
        names = kind.__struct_fields__
        if isinstance(written, list):  # after its tag, if it has one
            return written[: -len(names)] + [written_whole(getattr(value, name)) for name in names]
        for name, key in zip(names, kind.__struct_encode_fields__, strict=True):
            if key in written:
                written[key] = written_whole(getattr(value, name))
    return written
