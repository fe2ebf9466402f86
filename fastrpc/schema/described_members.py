"""Adds to the schemas that msgspec makes what it leaves out: the order of choices, and the formats of times.

msgspec sorts the values of enums and of ``Literal``; here they have the order that their author gave. It
gives a time no ``format``, since it takes one without an offset; pydantic, with which the originals of
`fastrpc.compat` describe their types, does, and so do the schemas that replace theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Flag
from functools import reduce
from operator import or_
from typing import Any

from fastrpc.schema.annotations import is_literal, types_in, values_of

FORMATS = {"DateTimeType": "date-time", "TimeType": "time"}
RECORDS = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "__total__", "_fields")


def order_choices(schemas: Any, annotation: Any) -> None:
    """Give the choices in schemas the order that they have in the types that an annotation consists of.

    Members of a ``Flag`` are no choices: what is taken and returned is any combination of them."""
    orders: dict[frozenset[Any], list[Any]] = {}
    flags: dict[frozenset[Any], type[Flag]] = {}
    for kind, given in _choices_in(annotation):
        if isinstance(kind, type) and issubclass(kind, Flag):
            flags.setdefault(_without_order(given), kind)
        else:
            orders.setdefault(_without_order(given), given)
    waiting = [schemas] if orders or flags else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            choices: Any = each.get("enum")
            if isinstance(choices, list):
                key = _without_order(choices)
                if key in flags and key not in orders:
                    del each["enum"]
                    each["type"] = "integer"
                    if not issubclass(flags[key], int):  # an ``IntFlag`` keeps other bits, too
                        each |= {"minimum": 0, "maximum": reduce(or_, values_of(flags[key].__members__), 0)}
                else:
                    each["enum"] = orders.get(key, choices)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _without_order(choices: list[Any]) -> frozenset[Any]:
    return frozenset((type(choice), repr(choice)) for choice in choices)  # 1 and True are two choices


def _choices_in(annotation: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each enum and ``Literal`` in a type, and in the members of records, as far as they are defined,
    with its choices."""
    for each in types_in(annotation, RECORDS):
        members = getattr(each, "__members__", None)
        if is_literal(each):
            yield each, list(each.__args__)
        elif isinstance(members, Mapping):
            yield each, values_of(members)


def add_formats(schema: Any, components: Mapping[str, Any], described: Any) -> None:
    """Give each time in a schema, and in the components that it refers to, its format. `described` is the
    type as `msgspec.inspect` describes it."""
    seen: set[str] = set()
    waiting = [(schema, described)]
    while waiting:
        each, kind = waiting.pop()
        name = type(kind).__name__
        if not isinstance(each, dict):  # anything: no schema says so
            continue
        if name in FORMATS:
            if each.get("type") == "string":
                each.setdefault("format", FORMATS[name])
        elif name == "UnionType":
            options = each.get("anyOf", ())
            waiting += zip(options, kind.types, strict=False)
        elif "$ref" in each:
            target = each["$ref"].removeprefix("#/$defs/")
            if target not in seen:
                seen.add(target)
                waiting.append((components[target], kind))
        elif name in ("ListType", "SetType", "FrozenSetType", "VarTupleType"):
            waiting.append((each.get("items"), kind.item_type))
        elif name == "TupleType":
            waiting += zip(each.get("prefixItems", ()), kind.item_types, strict=False)
        elif name == "DictType":
            waiting.append((each.get("additionalProperties"), kind.value_type))
        elif "properties" in each:
            properties = each["properties"]
            waiting += ((properties[field.encode_name], field.type) for field in kind.fields)
        elif "prefixItems" in each and hasattr(kind, "fields"):  # after the tag, if it has one
            waiting += zip(
                each["prefixItems"][-len(kind.fields) :], [f.type for f in kind.fields], strict=False
            )
