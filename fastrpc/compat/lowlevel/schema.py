"""Validates arguments and structured results against a tool's JSON Schema, with the words of ``jsonschema``.

A value that a small check of closures accepts is valid, at about a microsecond; it knows the keywords that
most schemas have. Any other value, and any other schema, is left to the package ``jsonschema``, which the
official SDK requires, imported then; without it to jsonschema-rs. The check never rejects by itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Check = Callable[[Any], bool]

_NOTES = frozenset(
    ("title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly", "format")
)
"""Keywords that restrict nothing: ``format`` neither, unless a checker of formats is given."""


class SchemaCheck:
    """The validation against one schema. Creating one costs some microseconds; the validator is made late."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._surely_valid = quick_check(schema)
        self._validator: Callable[[Any], str | None] | None = None

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with a value, None if it is valid. Raises an error for an invalid schema."""
        if self._surely_valid is not None and self._surely_valid(value):
            return None
        if self._validator is None:
            self._validator = _validator_of(self._schema)
        return self._validator(value)


def _validator_of(schema: Any) -> Callable[[Any], str | None]:
    from importlib import import_module

    try:
        jsonschema = import_module("jsonschema")
    except ImportError:
        return _compiled_validator(schema)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema)
    best_match = jsonschema.exceptions.best_match

    def problem(value: Any) -> str | None:
        error = best_match(validator.iter_errors(value))
        return None if error is None else str(error.message)

    return problem


def _compiled_validator(schema: Any) -> Callable[[Any], str | None]:
    from fastrpc.errors import ArgumentError
    from fastrpc.schema.json_schema import Validator

    validator = Validator(schema)

    def problem(value: Any) -> str | None:
        try:
            validator.check(value)
        except ArgumentError as error:
            return str(error)
        return None

    return problem


# ------------------------------------------------------------------------------------ the quick check


def quick_check(schema: Any) -> Check | None:
    """Return a function that says whether a value is surely valid; None for other keywords."""
    if schema is True or schema == {}:
        return lambda value: True
    if not isinstance(schema, dict):
        return None
    keywords = schema.keys() - _NOTES
    if keywords == {"anyOf"} and isinstance(schema["anyOf"], list):
        return _any_of(schema["anyOf"])
    if "enum" in keywords or "const" in keywords:
        return _choice(schema, keywords)
    kind = schema.get("type")
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    return None if make is None else make(schema, keywords - {"type"})


def _any_of(schemas: list[Any]) -> Check | None:
    checks = [check for check in map(quick_check, schemas) if check is not None]
    if not checks:
        return None
    return lambda value: any(check(value) for check in checks)


def _choice(schema: dict[str, Any], keywords: set[str]) -> Check | None:
    """Texts only: True equals 1 in Python, and not in JSON."""
    choices = schema.get("enum", [schema.get("const")])
    if not keywords <= {"enum", "type"} and keywords != {"const"}:
        return None
    if not isinstance(choices, list) or not all(type(choice) is str for choice in choices):
        return None
    if schema.get("type", "string") != "string":
        return None
    known = frozenset(choices)
    return lambda value: type(value) is str and value in known


def _text(schema: dict[str, Any], keywords: set[str]) -> Check | None:
    if not keywords:
        return lambda value: type(value) is str
    if not keywords <= {"minLength", "maxLength"}:
        return None
    least, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    return lambda value: type(value) is str and least <= len(value) <= most


def _number(kinds: tuple[type, ...]) -> Callable[[dict[str, Any], set[str]], Check | None]:
    def make(schema: dict[str, Any], keywords: set[str]) -> Check | None:
        if not keywords:
            return lambda value: type(value) in kinds
        if not keywords <= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
            return None
        if not all(type(schema[keyword]) in (int, float) for keyword in keywords):
            return None
        endless = float("inf")
        least, most = schema.get("minimum", -endless), schema.get("maximum", endless)
        above, below = schema.get("exclusiveMinimum", -endless), schema.get("exclusiveMaximum", endless)
        return lambda value: type(value) in kinds and least <= value <= most and above < value < below

    return make


def _plain(wanted: type) -> Callable[[dict[str, Any], set[str]], Check | None]:
    def make(schema: dict[str, Any], keywords: set[str]) -> Check | None:
        return None if keywords else lambda value: type(value) is wanted

    return make


def _array(schema: dict[str, Any], keywords: set[str]) -> Check | None:
    if not keywords <= {"items", "minItems", "maxItems"}:
        return None
    check = quick_check(schema.get("items", True))
    if check is None:
        return None
    least, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))
    return lambda value: type(value) is list and least <= len(value) <= most and all(map(check, value))


def _object(schema: dict[str, Any], keywords: set[str]) -> Check | None:
    if not keywords <= {"properties", "required", "additionalProperties"}:
        return None
    required = schema.get("required", [])
    others = quick_check(schema.get("additionalProperties", True))
    if schema.get("additionalProperties") is False:
        others = _nothing
    checks = {name: quick_check(part) for name, part in schema.get("properties", {}).items()}
    if others is None or not isinstance(required, list):
        return None

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for name, member in value.items():
            look = checks.get(name, others)
            if look is None or not look(member):
                return False
        return True

    return check


def _nothing(value: Any) -> bool:
    return False


_MAKERS: dict[str, Callable[[dict[str, Any], set[str]], Check | None]] = {
    "string": _text,
    "integer": _number((int,)),
    "number": _number((int, float)),
    "boolean": _plain(bool),
    "null": _plain(type(None)),
    "array": _array,
    "object": _object,
}
