"""The types that a rule is checked against, and how a JSON Schema becomes one.

A type determines the operations on a value. It is declared for each variable, by the caller or by the schema
of a tool's arguments. An unknown type is `DYN`, which allows all operations: mistakes then appear in the
evaluation. Two features go beyond CEL: a struct may have optional members, and a string with an ``enum``
cannot be compared with a literal outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Type(NamedTuple):
    """What is known of a value. `kind`: string, int, double, bool, null, dyn, list, map or struct.

    A double is what JSON Schema calls a number: a value of it may be an int, which is compared exactly and
    becomes a double wherever one calculates.
    """

    kind: str
    element: Type | None = None
    """The type of a list's elements, or of a map's values."""
    members: Mapping[str, Type] = {}
    optional: frozenset[str] = frozenset()
    """The members that may be missing."""
    is_open: bool = False
    """Whether a struct may have members that are not declared."""
    label: str = ""
    """The owner of the members in errors: "the tool Write"."""
    noun: str = "member"
    """The word for a member in errors: "argument"."""
    is_nullable: bool = False
    choices: tuple[str, ...] = ()
    """The only possible values of a string."""

    @property
    def words(self) -> str:
        """The description of a value of the type in errors."""
        return WORDS[self.kind]


WORDS = {
    "string": "a string",
    "int": "an int",
    "double": "a double",
    "bool": "a bool",
    "null": "null",
    "list": "a list",
    "map": "a map",
    "struct": "a map",
    "dyn": "any value",
}
STRING = Type("string")
INT = Type("int")
DOUBLE = Type("double")
BOOL = Type("bool")
NULL = Type("null")
DYN = Type("dyn")


def list_of(element: Type) -> Type:
    return Type("list", element)


def map_of(value: Type) -> Type:
    """Return the type of a map whose keys are strings, as those of JSON are."""
    return Type("map", value)


def struct(
    members: Mapping[str, Type],
    *,
    label: str = "",
    noun: str = "member",
    optional: Iterable[str] = (),
    is_open: bool = False,
) -> Type:
    """Return the type of a map with known members.

    To select one that is not declared is an error at load, unless the struct `is_open`; to select one that is
    missing is an error in the evaluation: ``has()`` asks whether it is there. `label` and `noun` are words of
    the error: "the tool Write" has no such "argument".
    """
    return Type("struct", None, dict(members), frozenset(optional), is_open, label, noun)


def nullable(inner: Type) -> Type:
    """Return the type of a value that may also be null: comparing it with null is allowed."""
    return inner if inner.kind in ("dyn", "null") else inner._replace(is_nullable=True)


def one_of(choices: Iterable[str]) -> Type:
    """Return the type of a string that has only these values."""
    return STRING._replace(choices=tuple(choices))


def join(types: Iterable[Type]) -> Type:
    """Return the most specific type that covers all of the types."""
    found: list[Type] = []
    for each in types:
        if each not in found:
            found.append(each)
    plain = [each for each in found if each.kind != "null"]
    if not plain:
        return NULL if found else DYN
    joined = _joined(plain)
    return nullable(joined) if len(plain) < len(found) else joined


def _joined(types: list[Type]) -> Type:
    first, kind = types[0], types[0].kind
    if len(types) == 1:
        return first
    if any(each.kind != kind for each in types) or kind in ("struct", "dyn"):
        return DYN
    is_nullable = any(each.is_nullable for each in types)
    element = join(each.element or DYN for each in types) if kind in ("list", "map") else None
    return Type(kind, element, is_nullable=is_nullable)


NUMBERS = ("int", "double")


def may_equal(one: Type, other: Type) -> bool:
    """Whether values of two types can be equal."""
    kinds = {one.kind, other.kind}
    if "dyn" in kinds or (one.is_nullable and other.is_nullable):
        return True
    if "null" in kinds:
        return one.kind == other.kind or one.is_nullable or other.is_nullable
    if kinds <= {"map", "struct"} or kinds <= set(NUMBERS):
        return True
    if kinds == {"list"}:
        return may_equal(one.element or DYN, other.element or DYN)
    return one.kind == other.kind


def type_of_schema(
    schema: Any, *, label: str = "", noun: str = "member", is_closed: bool | None = None
) -> Type:
    """Return the type of the values that conform to a JSON Schema, `DYN` where that is not certain.

    `is_closed`: whether an object has only the declared members; None: the schema determines it, by
    ``additionalProperties: false``. It is True for the arguments of a tool whose binder drops all others.
    Like the words for errors, it applies to the outermost object.
    """
    found = _SchemaReader(schema).read(schema, MOST_LEVELS)
    if found.kind != "struct":
        return found
    is_open = found.is_open if is_closed is None else not is_closed
    return found._replace(label=label, noun=noun, is_open=is_open)


def choices_in(schema: Any) -> frozenset[str]:
    """Return the members of an object that may be, or hold, one of several given values: in Python they may
    be members of an enum."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    members = properties.items() if isinstance(properties, dict) else ()
    return frozenset(name for name, member in members if _has_choices(member))


def _has_choices(schema: Any) -> bool:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if not CHOICES.isdisjoint(each):
                return True
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return False


CHOICES = frozenset(("enum", "const", "propertyNames", "$ref"))
"""Keywords that restrict values to given ones, or refer to a schema that may."""
MOST_LEVELS = 16
"""The depth to which a schema is read: below it, and after a cycle of references, all types are `DYN`."""
SCALARS = {"string": STRING, "integer": INT, "number": DOUBLE, "boolean": BOOL, "null": NULL}
OF_PYTHON = {str: STRING, int: INT, float: DOUBLE, bool: BOOL, type(None): NULL}


class _SchemaReader:
    """Reads the schemas of one document, whose definitions they may refer to."""

    def __init__(self, root: Any) -> None:
        self.root = root

    def read(self, schema: Any, levels: int) -> Type:
        if not isinstance(schema, dict) or levels == 0:
            return DYN
        if "$ref" in schema:
            return self.read(self.referred(schema["$ref"]), levels - 1)
        if "const" in schema:
            return _of_values([schema["const"]])
        if "enum" in schema:
            return _of_values(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, str):
            return self.of_kind(kind, schema, levels)
        if isinstance(kind, list):
            return join(self.of_kind(each, schema, levels) for each in kind)
        choices = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(choices, list) and choices:
            return join(self.read(each, levels - 1) for each in choices)
        return DYN

    def referred(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        place = self.root
        for part in reference[2:].split("/"):
            place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
        return place

    def of_kind(self, kind: Any, schema: dict[str, Any], levels: int) -> Type:
        if kind == "array":
            items = schema.get("items")
            return list_of(DYN if "prefixItems" in schema else self.read(items, levels - 1))
        if kind == "object":
            return self.of_object(schema, levels)
        return SCALARS.get(kind, DYN) if isinstance(kind, str) else DYN

    def of_object(self, schema: dict[str, Any], levels: int) -> Type:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        if not isinstance(properties, dict):
            return DYN
        is_open = others is not False or bool(schema.get("patternProperties"))
        if not properties and is_open:
            return map_of(DYN if "patternProperties" in schema else self.read(others, levels - 1))
        required = schema.get("required")
        known = {each for each in required if isinstance(each, str)} if isinstance(required, list) else set()
        members = {name: self.read(each, levels - 1) for name, each in properties.items()}
        return struct(members, optional=members.keys() - known, is_open=is_open)


def _of_values(values: Any) -> Type:
    if not isinstance(values, list) or not values:
        return DYN
    joined = join(OF_PYTHON.get(type(value), DYN) for value in values)
    if joined.kind != "string":
        return joined
    return joined._replace(choices=tuple(value for value in values if value is not None))
