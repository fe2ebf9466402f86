"""The canonical form of bound values, from which an approval is hashed and which its approver is shown.

Both use the same tree of JSON's types, which `canonical` returns, so exactly the hashed values are shown. The
tree represents the objects that the function receives, not their JSON: all fields of dataclasses, attrs
classes, msgspec structs and pydantic models by their names in Python, including those that are left out of
JSON or of `repr`, private attributes, and the set of assigned fields. A value that is not JSON becomes an
object whose first key begins with a dollar sign. A dict with such keys, or with keys that are not strings,
becomes a list of pairs. Two values that a function can distinguish have different trees, except for the order
of a dict's keys, which JSON does not have.

A value that cannot be represented completely (a function, a file, an object of another class) raises
`Unbindable`. Costs some microseconds for a call, and only if a person is asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from types import MemberDescriptorType
from typing import Any

HEAP_TYPE = 1 << 9
"""The flag of a class that was created by a class statement, not in C."""
CARRIERS: tuple[type, ...] = (str, int, float, bytes, bytearray, list, dict, tuple, set, frozenset)
"""Types of Python whose subclasses may be bound: `_base_value` returns the value of the base type."""
NO_STATE = frozenset(("__weakref__", "__dict__"))


class Unbindable(ValueError):
    """An argument that has no canonical form: no approval could be bound to exactly this call."""


def canonical(value: Any) -> Any:
    """Return a value as a tree of dict, list, str, int, float, bool and None. Raises Unbindable."""
    try:
        return _tree(value)
    except RecursionError:
        raise Unbindable("the arguments are nested too deeply") from None


def order(tree: Any) -> str:
    """Return the sort key of trees whose order has no meaning, such as those of a set."""
    return json.dumps(tree, sort_keys=True)


def members_of(tree: dict[str, Any]) -> list[Any]:
    """Return the members, as pairs, of the JSON object that has this canonical form."""
    return tree["$object"] if "$object" in tree else [*tree.items()]


def json_of(tree: Any) -> Any:
    """Return the JSON value that has this canonical form."""
    if isinstance(tree, list):
        return [json_of(each) for each in tree]
    return {key: json_of(each) for key, each in members_of(tree)} if isinstance(tree, dict) else tree


def _tree(value: Any) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if kind is float:
        return value if value == value else _not_a_number(value)
    if kind is list:
        return [_tree(each) for each in value]
    if kind is dict:
        return _dict(value)
    simple = SIMPLE.get(kind)
    if simple is not None:
        return simple(value)
    module = kind.__module__
    known = OF_MODULES.get(module.partition(".")[0])
    if known is not None:
        found = known(value, kind)
        if found is not None:
            return found
    return _instance(value, kind)


def _not_a_number(value: float) -> Any:
    """Return the default NaN unchanged. Other NaNs, whose JSON is the same, are returned as an object."""
    import struct

    octets = struct.pack(">d", value)
    return value if octets == struct.pack(">d", float("nan")) else {"$nan": octets.hex()}


def _dict(value: dict[Any, Any]) -> Any:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: _tree(each) for key, each in value.items()}
    pairs = [[_tree(key), _tree(each)] for key, each in value.items()]
    return {"$object": sorted(pairs, key=lambda pair: order(pair[0]))}


def _set(value: Iterable[Any]) -> list[Any]:
    return sorted(map(_tree, value), key=order)


SIMPLE: dict[type, Callable[[Any], Any]] = {
    tuple: lambda value: {"$tuple": [_tree(each) for each in value]},
    set: lambda value: {"$set": _set(value)},
    frozenset: lambda value: {"$frozenset": _set(value)},
    bytes: lambda value: {"$bytes": value.hex()},
    bytearray: lambda value: {"$bytearray": value.hex()},
    complex: lambda value: {"$complex": [value.real, value.imag]},
    range: lambda value: {"$range": [value.start, value.stop, value.step]},
    type(...): lambda value: {"$ellipsis": True},
}


# --- of the standard library ------------------------------------------------------------------------------


def _of_datetime(value: Any, kind: type) -> Any:
    """Return dates and times with the zone, and with the fold, which distinguishes two equal hours."""
    import datetime

    if kind is datetime.date:
        return {"$date": value.isoformat()}
    if kind is datetime.timedelta:
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}
    if kind is datetime.timezone:
        return {"$timezone": repr(value)}
    if kind is datetime.datetime or kind is datetime.time:
        found = {f"${kind.__name__}": value.replace(tzinfo=None, fold=0).isoformat()}
        if value.tzinfo is not None:
            found["zone"] = _tree(value.tzinfo)
        return {**found, "fold": 1} if value.fold else found
    return None


def _of_zoneinfo(value: Any, kind: type) -> Any:
    from zoneinfo import ZoneInfo

    if kind is not ZoneInfo or value.key is None:  # made from a file, so it could be any zone
        return None
    return {"$zone": value.key}


def _by_text(*names: str) -> Callable[[Any, type], Any]:
    """Return a function that makes trees of those types of a module which `str` represents completely."""
    return lambda value, kind: {f"${kind.__name__}": str(value)} if kind.__name__ in names else None


def _of_uuid(value: Any, kind: type) -> Any:
    if kind.__name__ != "UUID":
        return None
    safe = value.is_safe.name
    return {"$UUID": str(value), **({} if safe == "unknown" else {"safe": safe})}


def _of_re(value: Any, kind: type) -> Any:
    return {"$pattern": _tree(value.pattern), "flags": value.flags} if kind.__name__ == "Pattern" else None


def _of_collections(value: Any, kind: type) -> Any:
    from collections import OrderedDict, deque

    if kind is deque:
        return {"$deque": [_tree(each) for each in value], "longest": value.maxlen}
    if kind is OrderedDict:
        return {"$ordered": [[_tree(key), _tree(each)] for key, each in value.items()]}
    return None


def _of_pydantic_core(value: Any, kind: type) -> Any:
    if kind.__name__ == "TzInfo":
        return {"$zone": value.utcoffset(None).total_seconds()}
    return {f"${kind.__name__}": str(value)} if kind.__name__ in ("Url", "MultiHostUrl") else None


def _of_pydantic(value: Any, kind: type) -> Any:
    """Return the tree of a secret or a URL, whose classes have no state besides one value."""
    if kind.__module__ in ("pydantic.types", "pydantic.networks") and issubclass(kind, _pydantic_wrappers()):
        return {"$type": _name(kind), "fields": _dict(_state(value))}
    return None


def _pydantic_wrappers() -> tuple[type, ...]:
    types, networks = sys.modules.get("pydantic.types"), sys.modules.get("pydantic.networks")
    names = ((types, "_SecretBase"), (networks, "_BaseUrl"), (networks, "_BaseMultiHostUrl"))
    return tuple(getattr(module, name) for module, name in names if hasattr(module, name))


OF_MODULES: dict[str, Callable[[Any, type], Any]] = {
    "datetime": _of_datetime,
    "zoneinfo": _of_zoneinfo,
    **dict.fromkeys(("decimal", "_decimal"), _by_text("Decimal")),
    "fractions": _by_text("Fraction"),
    "pathlib": _by_text("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"),
    "ipaddress": _by_text(
        "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface"
    ),
    "uuid": _of_uuid,
    "re": _of_re,
    "collections": _of_collections,
    "pydantic_core": _of_pydantic_core,
    "pydantic": _of_pydantic,
    "msgspec": lambda value, kind: {"$unset": True} if kind.__name__ == "UnsetType" else None,
}
"""The functions that make trees, by the first part of a module's name."""


# --- instances of classes ---------------------------------------------------------------------------------


def _instance(value: Any, kind: type) -> Any:
    from enum import Enum

    if issubclass(kind, Enum):
        return _member(value, kind)
    found: dict[str, Any] = {"$type": _name(kind)}
    carrier = next((each for each in CARRIERS if issubclass(kind, each)), None)
    if carrier is not None:
        if not _is_python(kind, carrier):
            raise _unbindable(kind)
        found["value"] = _tree(_base_value(value, carrier))
    elif not _has_fields(kind) or not _is_python(kind, object):
        raise _unbindable(kind)
    state = _state(value)
    were_set = state.pop("__pydantic_fields_set__", None)
    if state or carrier is None:
        found["fields"] = _dict(state)
    if were_set is not None:
        unset = sorted(set(getattr(kind, "model_fields", ())) - were_set)
        found |= {"unset": unset} if unset else {}
    return found


def _member(value: Any, kind: Any) -> dict[str, Any]:
    """Return the tree of an enum's member, or of a combination of flags."""
    from enum import Flag

    name, held = value._name_, value._value_
    if kind.__members__.get(name) is not value and not issubclass(kind, Flag):
        raise _unbindable(kind)
    return {"$enum": _name(kind), "name": name, "value": _tree(held)}


def _is_python(kind: type, carrier: type) -> bool:
    """Whether a subclass of one of Python's types has no additional state in C, as `defaultdict` has."""
    between = [each for each in kind.__mro__ if each is not carrier and each is not object]
    return all(
        each.__module__ == "msgspec._core"  # the base of its structs, which has no other state
        or (each.__flags__ & HEAP_TYPE and each.__module__ not in C_MODULES)
        for each in between
    )


C_MODULES = frozenset(("collections", "_collections", "numpy"))
"""Modules with classes in C, which may hold more than a carrier does."""


def _base_value(value: Any, carrier: type) -> Any:
    """Return the value of a subclass's instance as the base type, without calling the subclass's methods."""
    if carrier is str:
        return str.__str__(value)
    if carrier is int:
        return int.__int__(value)
    if carrier is float:
        return float.__float__(value)
    if carrier is dict:
        return dict(dict.items(value))
    if carrier is tuple and hasattr(type(value), "_fields"):
        return dict(zip(value._fields, tuple.__iter__(value), strict=True))
    return carrier(carrier.__iter__(value))  # type: ignore[attr-defined]


def _has_fields(kind: type) -> bool:
    """Whether fields and private attributes are the complete state of a class's instances."""
    modules = sys.modules
    families = (("msgspec", "Struct"), ("pydantic", "BaseModel"))
    if any(
        issubclass(kind, getattr(modules[module], name)) for module, name in families if module in modules
    ):
        return True
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")


def _state(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, from its dict and from the slots of its classes."""
    kind = type(value)
    found: dict[str, Any] = {}
    for each in kind.__mro__:
        for name, member in each.__dict__.items():
            if type(member) is MemberDescriptorType and name not in NO_STATE:
                try:
                    held = member.__get__(value)
                except AttributeError:  # nothing was assigned
                    continue
                found[name if name not in found else f"{_name(each)}.{name}"] = held
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = {}
    for name, held in attributes.items():
        found[name if name not in found else f"__dict__.{name}"] = held
    for name in getattr(kind, "__dataclass_fields__", ()):
        if name not in found and hasattr(value, name):  # a default that is stored in the class
            found[name] = getattr(value, name)
    for name in ("__pydantic_extra__", "__pydantic_private__"):
        if found.get(name, ...) in (None, {}):
            del found[name]
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _unbindable(kind: type) -> Unbindable:
    return Unbindable(
        f"an argument of the type {kind.__name__} has no canonical form; a dataclass, a model or a value of "
        "JSON has one"
    )
