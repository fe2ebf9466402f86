"""Forms for elicitation, made from a Python type or a JSON Schema (MCP: elicitation).

A form is flat: its fields are strings, numbers, booleans, one choice, or several choices. `fields_of` makes
`Fields` from a dataclass, a msgspec Struct, a TypedDict, a pydantic model, a plain type or a JSON Schema; a
type is described once.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import RICH_INPUT_REQUESTS
from fastrpc.schema.annotations import is_literal, peel, plain_converter
from fastrpc.schema.converters import PLAIN, Mismatch, described, expected, one_of, shorten, step_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.schema.converters import Converter, Schema

FORMATS = ("email", "uri", "date", "date-time")
"""Values of ``format`` in a StringSchema (MCP). Other formats are checked here and not sent."""

MOST_KNOWN = 256

_PLAIN_TYPES = ("string", "number", "integer", "boolean")
_TYPES: dict[Any, type] = {"string": str, "number": float, "integer": int, "boolean": bool, "array": list}
_SHOWN = ("title", "description", "default")
_CHOICE_OF_SEVERAL = ("minItems", "maxItems", *_SHOWN)
_known: dict[Any, Fields] = {}


class Fields:
    """The fields of a form: the `schema` of the answers, and `read`, which returns the value of an answer.
    Raises `Mismatch`."""

    def __init__(self, schema: Schema, read: Callable[[dict[str, Any]], Any]) -> None:
        self.schema = schema
        self.read = read
        self.has_lists = any(field["type"] == "array" for field in schema["properties"].values())
        """Whether a field allows several choices, which only newer versions support."""

    def schema_in(self, version: str) -> Schema:
        """Return the schema in the form of a protocol version."""
        if version in RICH_INPUT_REQUESTS:
            return self.schema
        fields = {name: _in_2025_06_18(field) for name, field in self.schema["properties"].items()}
        return {**self.schema, "properties": fields}


def fields_of(form: Any) -> Fields:
    """Return the fields of a form: a type, a schema, a list of choices, or None. Raises DefinitionError."""
    if form is None:
        return Fields({"type": "object", "properties": {}}, lambda content: None)  # accepted or declined
    if isinstance(form, dict):
        return _of_schema(form)
    if isinstance(form, (list, tuple)):
        return _of_schema(_choices(form))
    if isinstance(form, str) or hasattr(form, "__code__"):
        raise DefinitionError(f"a form is a type or a JSON Schema, not {shorten(form)}")
    try:
        found = _known.get(form)
    except TypeError:  # an annotation with unhashable metadata
        return _of_type(form)
    if found is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        found = _known[form] = _of_type(form)
    return found


# ---------------------------------------------------------------------------------- forms of types


def _of_type(form: Any) -> Fields:
    peeled = peel(form, {})
    converter = None if peeled.metadata else plain_converter(peeled.base, {})
    if converter is None:
        from fastrpc.schema.rich_types import rich_converter

        converter = rich_converter(peeled, {})
    name = getattr(form, "__name__", None) or repr(form)
    if converter.schema.get("type") == "object" and "properties" in converter.schema:
        return _record(name, peeled.base, converter)
    values: dict[str, Any] = {}
    field = _field(name, described(converter.schema, peeled.description), values, form)
    schema: Schema = {"type": "object", "properties": {"value": field}}
    if not peeled.allows_null:
        schema["required"] = ["value"]

    def read(content: dict[str, Any]) -> Any:
        value = content.get("value")
        if value is None:
            if "required" in schema:
                raise Mismatch("required, missing", ".value")
            return None
        try:
            return converter.accept(_values_of(value, values))
        except Mismatch as mismatch:
            raise mismatch.within(".value") from None

    return Fields(schema, read)


def _record(name: str, base: Any, converter: Converter) -> Fields:
    """Return the form of a class: one field for each member."""
    required = converter.schema.get("required", ())
    own = getattr(base, "__pydantic_fields__", None) or {}
    titles = {field.alias or key: field.title for key, field in own.items() if field.title}
    from typing import get_type_hints

    try:
        annotations = get_type_hints(base)
    except (NameError, TypeError):  # msgspec or pydantic could resolve them
        annotations = {}
    fields: dict[str, Schema] = {}
    optional = []  # may be None, which an empty field means, and have no default
    values: dict[str, dict[str, Any]] = {}  # of choices that are not strings: what each text means
    for member, schema in converter.schema["properties"].items():
        meanings: dict[str, Any] = {}
        fields[member] = _field(f"{name}.{member}", schema, meanings, annotations.get(member))
        if member in titles:
            fields[member]["title"] = titles[member]
        if meanings:
            values[member] = meanings
        if member in required and _without_null(schema) is not schema:
            optional.append(member)
    whole: Schema = {"type": "object", "properties": fields}
    needed = [member for member in required if member not in optional]
    if needed:
        whole["required"] = needed

    def read(content: dict[str, Any]) -> Any:
        known = {member: content[member] for member in fields if member in content}
        for member, meanings in values.items():
            if member in known:
                known[member] = _values_of(known[member], meanings)
        for member in optional:
            known.setdefault(member, None)
        return converter.accept(known)

    return Fields(whole, read)


def _field(name: str, schema: Schema, values: dict[str, Any], annotation: Any) -> Schema:
    """Return a member's schema as a form field, and add to `values` what its texts mean."""
    schema = _without_null(schema)
    kind = schema.get("type")
    if "enum" in schema or "const" in schema:
        choices = schema["enum"] if "enum" in schema else [schema["const"]]
        return _field_of_choices(name, schema, _in_order(choices, annotation), values)
    if kind == "array" and isinstance(schema.get("items"), dict):
        items = schema["items"]
        if "enum" in items or "const" in items:
            choices = items["enum"] if "enum" in items else [items["const"]]
            field = {
                "type": "array",
                "items": _field_of_choices(name, {}, _in_order(choices, annotation), values),
            }
            kept = {key: schema[key] for key in _CHOICE_OF_SEVERAL if key in schema}
            if "default" in kept:
                kept["default"] = [_text_of(choice) for choice in kept["default"]]
            return field | kept
    if {choice.get("type") for choice in schema.get("anyOf", ())} == {"integer", "number"}:
        return {"type": "number", **{key: value for key, value in schema.items() if key != "anyOf"}}
    if kind not in _PLAIN_TYPES:
        nouns = {"object": "an object", "array": "an array"}
        raise DefinitionError(
            f"{name}: a form holds texts, numbers, yes or no, and choices (a Literal, an Enum, a list of "
            f"either), not {nouns.get(str(schema.get('type')), 'a value of any other kind')}"
        )
    if "format" in schema and schema["format"] not in FORMATS:
        return {key: value for key, value in schema.items() if key != "format"}
    return dict(schema)


def _field_of_choices(name: str, schema: Schema, choices: list[Any], values: dict[str, Any]) -> Schema:
    """Return a field of choices, which are strings (MCP: EnumSchema); `values` gets what they mean."""
    texts = [_text_of(choice) for choice in choices]
    if len(set(texts)) < len(texts):
        raise DefinitionError(f"{name}: two of the choices are written alike: {one_of(choices)}")
    if texts != choices:
        values.update(zip(texts, choices, strict=True))
    shown = {key: schema[key] for key in _SHOWN if key in schema}
    if "default" in shown:
        shown["default"] = _text_of(shown["default"])
    return {"type": "string", "enum": texts, **shown}


def _in_order(choices: list[Any], annotation: Any) -> list[Any]:
    """Return the choices in the order of the annotation: msgspec sorts them."""
    base = peel(annotation, {}).base
    while hasattr(base, "__args__") and not is_literal(base):  # a list of choices
        base = peel(base.__args__[0], {}).base
    members = getattr(base, "__members__", None)
    given = [member.value for member in members.values()] if members else list(getattr(base, "__args__", []))
    return sorted(choices, key=lambda choice: given.index(choice) if choice in given else len(given))


def _text_of(choice: Any) -> str:
    return choice if isinstance(choice, str) else shorten(choice)


def _values_of(answer: Any, values: dict[str, Any]) -> Any:
    """Return the values of the chosen texts; other input is returned unchanged."""
    if not values:
        return answer
    if isinstance(answer, list):
        return [values.get(text, text) if isinstance(text, str) else text for text in answer]
    return values.get(answer, answer) if isinstance(answer, str) else answer


def _without_null(schema: Schema) -> Schema:
    """Return a schema without null, which an empty field means; the schema itself if it has none."""
    choices = schema.get("anyOf")
    if not choices or {"type": "null"} not in choices:
        return schema
    others = [choice for choice in choices if choice != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}


# -------------------------------------------------------------------------------- forms of schemas


def _of_schema(schema: Schema) -> Fields:
    if schema.get("type") != "object":
        _refuse_nested("value", schema)
        whole: Schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        return Fields(whole, lambda content: _plain_values(whole, content)["value"])
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise DefinitionError(f"properties: expected an object, got {shorten(properties)}")
    for name, field in properties.items():
        _refuse_nested(name, field)
    fields: Schema = {"properties": properties, **schema}
    return Fields(fields, lambda content: _plain_values(fields, content))


def _plain_values(schema: Schema, content: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to the form of a JSON Schema. Raises Mismatch."""
    found = {}
    for name, field in schema["properties"].items():
        if content.get(name) is None:
            if name in schema.get("required", ()):
                raise Mismatch("required, missing", step_to(name))
            continue
        try:
            found[name] = _checked(field, content[name])
        except Mismatch as mismatch:
            raise mismatch.within(step_to(name)) from None
    return found


def _choices(choices: Sequence[Any]) -> Schema:
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise DefinitionError("a list of choices is a form if it holds texts, and at least one")
    return {"type": "string", "enum": list(choices)}


def _refuse_nested(name: str, field: Any) -> None:
    kind = field.get("type") if isinstance(field, dict) else None
    if kind == "array" and not _choices_of(field["items"] if isinstance(field.get("items"), dict) else {}):
        raise DefinitionError(f"{name}: an array in a form needs items with an enum, or anyOf with consts")
    if kind not in _PLAIN_TYPES and kind != "array":
        raise DefinitionError(
            f"{name}: expected a type of {', '.join(_PLAIN_TYPES)} or array, got {shorten(kind)}"
        )


def _choices_of(field: Schema) -> list[Any]:
    """Return the values that a field allows; an empty list if it allows any."""
    if "enum" in field:
        return list(field["enum"])
    titled = field.get("oneOf") or field.get("anyOf") or ()
    return [choice["const"] for choice in titled if isinstance(choice, dict) and "const" in choice]


def _checked(field: Schema, value: Any) -> Any:
    """Return a field's value if it matches the field's schema. Raises Mismatch."""
    if field["type"] != "number" or type(value) is not int:  # 95 stays an int
        value = PLAIN[_TYPES[field["type"]]].accept(value)
    offered = _choices_of(field)
    if offered and value not in offered:
        raise expected(one_of(offered), value)
    if field["type"] == "array":
        offered = _choices_of(field["items"])
        for chosen in value:
            if chosen not in offered:
                raise expected(one_of(offered), chosen)
        _check_size(len(value), field.get("minItems"), field.get("maxItems"), "choices")
    elif field["type"] == "string":
        _check_text(field, value)
    elif field["type"] != "boolean":
        low, high = field.get("minimum"), field.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise expected(f"a number {_range(low, high)}", value)
    return value


def _check_text(field: Schema, value: str) -> None:
    _check_size(len(value), field.get("minLength"), field.get("maxLength"), "characters")
    if "pattern" in field:
        import re

        if re.search(field["pattern"], value) is None:
            raise expected(f"a text like {field['pattern']}", value)


def _check_size(size: int, low: int | None, high: int | None, what: str) -> None:
    if (low is not None and size < low) or (high is not None and size > high):
        raise Mismatch(f"expected {_range(low, high)} {what}, got {size}")


def _range(low: Any, high: Any) -> str:
    if low is None or high is None:
        return f"at most {high}" if low is None else f"at least {low}"
    return f"from {low} to {high}"


def _in_2025_06_18(field: Schema) -> Schema:
    """Return a field in the form of 2025-06-18: titles of choices are in ``enumNames``."""
    if "oneOf" not in field:
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    choices = field["oneOf"]
    return {
        **rest,
        "enum": [choice["const"] for choice in choices],
        "enumNames": [choice.get("title", choice["const"]) for choice in choices],
    }
