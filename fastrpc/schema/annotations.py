"""Reads annotations: removes what wraps a type, and finds the converter of a plain type.

`peel` removes ``Annotated``, ``Optional``, aliases and quotes from an annotation. `plain_converter` returns
the `Converter` of a type made of ``str``, ``int``, ``float``, ``bool``, ``None``, ``list``, ``dict``,
``Literal``, ``Any`` and unions of these. Takes microseconds and never imports ``typing``: its constructs are
recognised by their attributes, once the author has imported it. Other types are left to
`fastrpc.schema.rich_types`.
"""

from __future__ import annotations

import sys

from fastrpc.errors import DefinitionError, Reworded
from fastrpc.schema.converters import (
    ANY,
    NULL,
    PLAIN,
    ArrayConverter,
    ChoiceConverter,
    Converter,
    DescribedConverter,
    ObjectConverter,
    UnionConverter,
)
from fastrpc.typing_forms import Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_UNION = type(int | str)
_CONSTRAINTS = (
    "gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length",
    "tz", "title", "examples", "extra_json_schema",
)  # fmt: skip

_FIELD_MEMBERS = ("deprecated", "discriminator", "examples", "json_schema_extra", "title")


class UnresolvedName(DefinitionError):
    """An annotation contains a name that is not defined yet; it may be once the module is loaded."""


class Peeled:
    """An annotation without what wraps it.

    `base` is the bare type, `allows_null` whether ``None`` is allowed, `metadata` its constraints,
    `description` its description, `alias` its name for clients. `field` is pydantic's ``Field`` that has a
    default, None without one.
    """

    base: Any = None
    allows_null = False
    description: str | None = None
    field: Any = None
    alias: str | None = None
    metadata: tuple[Any, ...] = ()


def peel(annotation: Any, namespace: Mapping[str, Any]) -> Peeled:
    """Remove quotes, aliases, ``Annotated`` and ``None`` from an annotation. Raises `UnresolvedName`."""
    peeled = Peeled()
    metadata: list[Any] = []
    while True:
        if type(annotation) is type:  # the usual case: just a class
            break
        if isinstance(annotation, str):
            annotation = resolve(annotation, namespace)
        elif hasattr(annotation, "__forward_arg__"):
            annotation = resolve(annotation.__forward_arg__, namespace)
        elif annotation is None:
            annotation = type(None)
        elif hasattr(annotation, "__metadata__"):
            metadata[:0] = annotation.__metadata__
            annotation = annotation.__origin__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            said = f"{annotation.__name__!r} names something undefined ("
            with Reworded(NameError, UnresolvedName, said, ")"):
                annotation = annotation.__value__  # evaluated here, on first access
        elif is_union(annotation):
            members = [member for member in annotation.__args__ if member is not type(None)]
            if len(members) == len(annotation.__args__):
                break
            peeled.allows_null = True
            annotation = members[0] if len(members) == 1 else union_of(members)
        elif is_literal(annotation) and None in annotation.__args__:
            peeled.allows_null = True
            choices = tuple(choice for choice in annotation.__args__ if choice is not None)
            annotation = annotation.__origin__[choices] if choices else type(None)
        else:
            break
    peeled.base = annotation
    _read_metadata(peeled, metadata)
    return peeled


def _read_metadata(peeled: Peeled, metadata: list[Any]) -> None:
    """Sort the metadata of ``Annotated``: the last string is the description, unless msgspec's or pydantic's
    has one, at any position."""
    kept = []
    text = None
    for item in metadata:
        if isinstance(item, str):
            text = item
            continue
        origin = type(item).__module__.partition(".")[0]
        if origin == "msgspec":
            peeled.description = item.description or peeled.description
            if any(getattr(item, name, None) is not None for name in _CONSTRAINTS):
                kept.append(item)
        elif origin == "pydantic" and hasattr(item, "description"):
            peeled.description = item.description or peeled.description
            peeled.alias = alias_of(item) or peeled.alias
            if not item.is_required():
                peeled.field = item
            if item.metadata or shows_more(item):
                kept.append(item)
        elif origin in ("pydantic", "annotated_types"):
            kept.append(item)
    peeled.description = peeled.description or text
    peeled.metadata = tuple(kept)


def alias_of(field: Any) -> str | None:
    """Return the name that pydantic's ``Field`` gives a parameter for clients, if it gives one: of several
    choices the first. What is only for writing (``serialization_alias``) names no argument."""
    if type(field).__module__ != "pydantic.fields":
        return None
    alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
    choices = getattr(alias, "choices", (alias,))
    return next((choice for choice in choices if isinstance(choice, str)), None)


def shows_more(field: Any) -> bool:
    """Whether an item is pydantic's ``Field``, and has members for the schema besides a description and
    constraints."""
    return type(field).__module__ == "pydantic.fields" and any(
        getattr(field, name, None) is not None for name in _FIELD_MEMBERS
    )


def resolve(text: str, namespace: Mapping[str, Any]) -> Any:
    """Evaluate a string annotation in the namespace of its function. Raises `UnresolvedName` and
    `DefinitionError`."""
    if text in namespace:
        return namespace[text]
    if text in _BUILTIN_NAMES:
        return _BUILTIN_NAMES[text]
    try:
        return eval(text, dict(namespace))
    except NameError as error:
        raise UnresolvedName(f"{text!r} is not defined ({error})") from None
    except Exception as error:
        raise DefinitionError(f"{text!r} cannot be evaluated ({type(error).__name__}: {error})") from None


_BUILTIN_NAMES = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict,
    "object": object, "None": type(None),
}  # fmt: skip


def plain_converter(base: Any, namespace: Mapping[str, Any]) -> Converter | None:
    """Return the converter of a peeled annotation, or None if `fastrpc.schema.rich_types` must handle it."""
    if type(base) is type:
        return PLAIN.get(base)
    if is_any(base):
        return ANY
    if is_literal(base):
        plain = all(type(choice) in (str, int, float, bool) for choice in base.__args__)
        return ChoiceConverter(base.__args__) if plain else None
    if is_union(base):
        members = [_nested(member, namespace) for member in base.__args__]
        known = [member for member in members if member is not None]
        return UnionConverter(known) if len(known) == len(members) else None
    origin = getattr(base, "__origin__", None)
    arguments = getattr(base, "__args__", ())
    if origin is list:
        items = _nested(arguments[0], namespace) if arguments else ANY
        return ArrayConverter(items) if items else None
    if origin is dict:
        if not arguments:
            return ObjectConverter(ANY)
        keys = plain_converter(peel(arguments[0], namespace).base, namespace)
        values = _nested(arguments[1], namespace)
        return ObjectConverter(values) if values and keys and keys.kind in ("str", "json") else None
    return None


def _nested(annotation: Any, namespace: Mapping[str, Any]) -> Converter | None:
    peeled = peel(annotation, namespace)
    if peeled.metadata:
        return None
    converter = plain_converter(peeled.base, namespace)
    if converter is None:
        return None
    if peeled.allows_null and converter is not ANY:
        members = converter.members if isinstance(converter, UnionConverter) else [converter]
        converter = UnionConverter([*members, NULL])
    return DescribedConverter(converter, peeled.description) if peeled.description else converter


def is_union(annotation: Any) -> bool:
    if isinstance(annotation, _UNION):
        return True
    typing = sys.modules.get("typing")
    return typing is not None and getattr(annotation, "__origin__", None) is typing.Union


def union_of(members: list[Any]) -> Any:
    first, *others = members
    try:
        for member in others:
            first |= member
    except TypeError:  # members may be strings, which have no |
        from typing import Union

        form: Any = Union
        return form[tuple(members)]
    return first


def is_literal(annotation: Any) -> bool:
    origin = getattr(annotation, "__origin__", None)
    typing = sys.modules.get("typing")
    return origin is Literal or (typing is not None and origin is typing.Literal)


def is_any(annotation: Any) -> bool:
    for name in ("typing", "typing_extensions"):
        module = sys.modules.get(name)
        if module is not None and annotation is module.Any:
            return True
    return False


def types_in(annotation: Any, marks: Sequence[str]) -> Iterator[Any]:
    """Yield the types that an annotation consists of, and those of the members of its records, as far as they
    are defined. A class is such a record if it has one of these attributes."""
    seen: set[int] = set()
    waiting = [annotation]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += getattr(each, "__args__", ())
            waiting += _member_types(getattr(each, "__origin__", each), marks)


def _member_types(kind: Any, marks: Sequence[str]) -> list[Any]:
    """Return the annotations of a record's members; of those of a dataclass with pydantic's ``Field`` as
    their default, the type of that."""
    if not isinstance(kind, type) or not any(hasattr(kind, mark) for mark in marks):
        return []
    from typing import get_type_hints

    try:
        members = list(get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):  # reported when the schema is made
        return []
    return members + [type(field.default) for field in getattr(kind, "__dataclass_fields__", {}).values()]


def values_of(members: Mapping[str, Any]) -> list[Any]:
    """Return the values of an enum in its own order."""
    return list(dict.fromkeys(member.value for member in members.values()))
