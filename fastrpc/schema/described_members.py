"""Adds to the schemas that msgspec makes what it leaves out: the order of choices, and the formats of times.

msgspec sorts the values of enums and of ``Literal``; here they have the order that their author gave. It
gives a time no ``format``, since it takes one without an offset; pydantic, with which the originals of
`fastrpc.compat` describe their types, does, and so do the schemas that stand for theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastrpc.schema.annotations import is_literal, types_in, values_of

FORMATS = {"DateTimeType": "date-time", "TimeType": "time"}
RECORDS = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "__total__", "_fields")


def order_choices(schemas: Any, annotation: Any) -> None:
    """Give the choices in schemas the order that they have in the types that an annotation consists of."""
    orders: dict[frozenset[Any], list[Any]] = {}
    for given in _choices_in(annotation):
        orders.setdefault(_without_order(given), given)
    waiting = [schemas] if orders else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            choices: Any = each.get("enum")
            if isinstance(choices, list):
                each["enum"] = orders.get(_without_order(choices), choices)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _without_order(choices: list[Any]) -> frozenset[Any]:
    return frozenset((type(choice), repr(choice)) for choice in choices)  # 1 and True are two choices


def _choices_in(annotation: Any) -> Iterator[list[Any]]:
    """Yield the choices of each enum and ``Literal`` in a type, and in the members of records, as far as they
    are defined."""
    for each in types_in(annotation, RECORDS):
        members = getattr(each, "__members__", None)
        if is_literal(each):
            yield list(each.__args__)
        elif isinstance(members, Mapping):
            yield values_of(members)


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
        elif "prefixItems" in each and hasattr(kind, "fields"):  # behind the tag, if it has one
            waiting += zip(
                each["prefixItems"][-len(kind.fields) :], [f.type for f in kind.fields], strict=False
            )
