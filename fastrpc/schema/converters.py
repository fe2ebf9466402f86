"""Converters for the types of JSON: they validate and convert the value of a parameter.

A `Converter` has a property schema, and validates a value or converts it: ``"5"`` for an integer,
``"true"`` for a boolean, JSON text for an array or object. A `Mismatch` says where and why a value is
invalid, in words for a model. Imports only the errors. `fastrpc.schema.annotations` selects the converter for
an annotation; classes, enums and constraints are in `fastrpc.schema.rich_types`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Schema = dict[str, Any]

EXACT: dict[str, set[type]] = {"str": {str}, "int": {int}, "float": {float}, "bool": {bool}}
"""The exact types that each kind accepts unchanged; an array of one of these kinds is checked as a whole."""

NOTHING: set[type] = set()
MESSAGE_LIMIT = 240
EXACT_FLOAT = 2**53  # integers up to this survive conversion to float


# ----------------------------------------------------------------------------------- what is wrong


class Mismatch(Exception):
    """A value is invalid. `path` leads from the argument to the place, `problem` says what is wrong."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def within(self, step: str) -> Mismatch:
        return Mismatch(self.problem, step + self.path)

    def of(self, name: str) -> str:
        """Return the message for a model: ``timeout: expected …`` or ``$.items[2].name: expected …``."""
        return f"$.{name}{self.path}: {self.problem}" if self.path else f"{name}: {self.problem}"


def expected(what: str, value: object) -> Mismatch:
    return Mismatch(f"expected {what}, got {shorten(value)}")


def text_of_problems(problems: list[str]) -> str:
    """Return the message with the first three problems, short enough for a model."""
    text = "; ".join(problems[:3])
    if len(problems) > 3:
        text += f"; and {len(problems) - 3} more"
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def shorten(value: object, limit: int = 40) -> str:
    """Return a value as JSON-like text, cut to about `limit` characters."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quote(value, limit)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 100 else "a very long integer"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return "an array" if value else "an empty array"
    return f"a {type(value).__name__}"


def quote(text: str, limit: int = 40) -> str:
    cut = text if len(text) <= limit else text[:limit] + "…"
    shown = "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in cut
    ).replace('"', '\\"')
    return f'"{shown}"'


def one_of(values: Iterable[object]) -> str:
    shown = [shorten(value) for value in values]
    if len(shown) > 8:
        shown = [*shown[:7], f"… ({len(shown) - 7} more)"]
    return "one of " + ", ".join(shown) if len(shown) != 1 else shown[0]


def step_to(key: str) -> str:
    return f".{key}" if key.isidentifier() and len(key) <= 40 else f"[{quote(key)}]"


# ----------------------------------------------------------------------------------------- converters


class Converter:
    """The converter of a parameter: its property schema, and how a value is validated or converted.

    `accept` returns the value for the function. With `lenient` it also converts what clients really send: a
    number or boolean written as a string, an array written as JSON text. Otherwise only the exact type is
    accepted. Raises `Mismatch`.
    """

    def __init__(self, schema: Schema, noun: str = "value", kind: str = "checked") -> None:
        self.schema = schema
        self.noun = noun
        self.kind = kind
        self.definitions: Mapping[str, Schema] = {}  # targets of ``$ref`` in the schema
        self.load: Callable[[Any], Any] | None = None
        """Returns what `accept` returns for a value that needs no leniency; raises for any other."""
        self.plain_value: Callable[[Any], Any] | None = None
        """Returns what `to_json` returns for a value that conforms to the schema; raises for any other."""

    def accept(self, value: Any, lenient: bool = True) -> Any:
        raise NotImplementedError

    def extend(self, accepted: list[Any], values: list[Any], lenient: bool) -> None:
        """Convert all values and append them to `accepted`. On `Mismatch`, `accepted` ends before the invalid
        value."""
        accepted.extend(map(self.accept, values, [lenient] * len(values)))

    def to_json(self, value: Any) -> Any:
        """Return a tool's result as a JSON value. Plain values are returned unchanged."""
        return value


def validates_itself(converter: Converter, value: Any) -> bool:
    """Whether a value is of the annotated class, and that class validates what it is made of.

    To check such a value here would be to make another, and to run its ``__post_init__`` again.
    """
    kind = type(value)
    return hasattr(kind, "__post_init__") and getattr(converter, "annotation", None) in kind.__mro__


class AnyConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        return value


class NullConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        if value is not None:
            raise expected("null", value)
        return None


class StringConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        if not isinstance(value, str):
            raise expected("string", value)
        return value


class IntegerConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        kind = type(value)
        if kind is int:
            return value
        if kind is float and value.is_integer():  # JSON Schema: 1.0 is an integer
            if -EXACT_FLOAT < value < EXACT_FLOAT:
                return int(value)
            raise expected("integer below 2**53, or one written in digits", value)
        if lenient and kind is str:
            mended = integer_from_text(value)
            if mended is not None:
                return mended
        raise expected("integer", value)

    def extend(self, accepted: list[Any], values: list[Any], lenient: bool) -> None:
        from fastrpc._core.convert import extend_integers

        extend_integers(accepted, values, self.accept, lenient)


class NumberConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        kind = type(value)
        if kind is float:
            return value
        if kind is int:
            try:
                return float(value)
            except OverflowError:
                raise expected("number within the range of a double", value) from None
        if lenient and kind is str:
            mended = float_from_text(value)
            if mended is not None:
                return mended
        raise expected("number", value)

    def extend(self, accepted: list[Any], values: list[Any], lenient: bool) -> None:
        from fastrpc._core.convert import extend_reals

        extend_reals(accepted, values, self.accept, lenient)


class BooleanConverter(Converter):
    def accept(self, value: Any, lenient: bool = True) -> Any:
        if value is True or value is False:
            return value
        if lenient and isinstance(value, str):
            lowered = value.strip().lower()
            if lowered in ("true", "false"):
                return lowered == "true"
        raise expected("boolean", value)


class ArrayConverter(Converter):
    def __init__(self, items: Converter) -> None:
        kind = "array" if items.kind == "json" else "checked"
        super().__init__({"type": "array", "items": items.schema}, "array", kind)
        self.items = items

    def accept(self, value: Any, lenient: bool = True) -> Any:
        if lenient and isinstance(value, str):
            value = json_from_text(value, "[")
        if not isinstance(value, list):
            raise expected("array", value)
        if self.items.kind == "json" or EXACT.get(self.items.kind, NOTHING).issuperset(map(type, value)):
            return value
        accepted: list[Any] = []
        try:
            self.items.extend(accepted, value, lenient)
        except Mismatch as mismatch:
            raise mismatch.within(f"[{len(accepted)}]") from None
        return accepted


class ObjectConverter(Converter):
    def __init__(self, values: Converter) -> None:
        super().__init__({"type": "object"}, "object", "object" if values.kind == "json" else "checked")
        self.values = values
        if values.schema:
            self.schema["additionalProperties"] = values.schema

    def accept(self, value: Any, lenient: bool = True) -> Any:
        if lenient and isinstance(value, str):
            value = json_from_text(value, "{")
        if not isinstance(value, dict):
            raise expected("object", value)
        if self.values.kind == "json":
            return value
        accept = self.values.accept
        accepted = {}
        for key, item in value.items():
            try:
                accepted[key] = accept(item, lenient)
            except Mismatch as mismatch:
                raise mismatch.within(step_to(key)) from None
        return accepted


class ChoiceConverter(Converter):
    """One of the values of a ``Literal``. ``1`` and ``True`` are different values."""

    def __init__(self, choices: tuple[Any, ...]) -> None:
        super().__init__({"enum": list(choices)}, one_of(choices))
        self.choices = choices
        add_enum_type(self.schema)

    def accept(self, value: Any, lenient: bool = True) -> Any:
        for choice in self.choices:
            if value == choice and type(value) is type(choice):
                return choice
        if lenient:
            for converter in {type(choice): PLAIN[type(choice)] for choice in self.choices}.values():
                try:
                    return self.accept(converter.accept(value), False)
                except Mismatch:
                    continue
        raise expected(self.noun, value)


class UnionConverter(Converter):
    """A union of plain types: the member that matches exactly, else the first that can convert the value."""

    def __init__(self, members: list[Converter]) -> None:
        noun = " or ".join(member.noun for member in members)
        super().__init__({"anyOf": [member.schema for member in members]}, noun)
        self.members = members

    def accept(self, value: Any, lenient: bool = True) -> Any:
        name = type(value).__name__
        for member in self.members:
            if member.kind == name:  # 5 and 5.0 keep their type for int | float
                return value
        for mode in (False, True) if lenient else (False,):
            for member in self.members:
                try:
                    return member.accept(value, mode)
                except Mismatch:
                    continue
        raise expected(self.noun, value)


class DescribedConverter(Converter):
    """A nested plain type with its own description, as in ``list[Annotated[str, "a path"]]``."""

    def __init__(self, inner: Converter, description: str) -> None:
        super().__init__(described(inner.schema, description), inner.noun, inner.kind)
        self.inner = inner
        self.accept = inner.accept  # type: ignore[method-assign]
        self.extend = inner.extend  # type: ignore[method-assign]


ANY = AnyConverter({}, kind="json")
NULL = NullConverter({"type": "null"}, "null")
PLAIN: dict[object, Converter] = {
    str: StringConverter({"type": "string"}, "string", "str"),
    int: IntegerConverter({"type": "integer"}, "integer", "int"),
    float: NumberConverter({"type": "number"}, "number", "float"),
    bool: BooleanConverter({"type": "boolean"}, "boolean", "bool"),
    type(None): NULL,
    object: ANY,
    list: ArrayConverter(ANY),
    dict: ObjectConverter(ANY),
}


def described(schema: Schema, description: str | None) -> Schema:
    """Return a copy of `schema` with the description after its type."""
    if not description:
        return dict(schema)
    described = {"type": schema["type"]} if "type" in schema else {}
    return {
        **described,
        "description": description,
        **{k: v for k, v in schema.items() if k != "description"},
    }


def add_enum_type(schema: Schema) -> None:
    """Add the ``type`` to an ``enum`` whose values have one type: several clients refuse an enum without
    it."""
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    kinds = {type(value) for value in schema["enum"]}
    if len(kinds) == 1 and (kind := kinds.pop()) in names:
        values = schema.pop("enum")
        schema["type"] = names[kind]
        schema["enum"] = values


# ---------------------------------------------------------------------------------- mending values


def integer_from_text(text: str) -> int | None:
    text = text.strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits.isascii() and digits.isdigit():
        return int(text) if len(digits) <= 4300 else None
    number = float_from_text(text)
    if number is not None and number.is_integer() and abs(number) < EXACT_FLOAT:
        return int(number)
    return None


def float_from_text(text: str) -> float | None:
    text = text.strip()
    if not text or text.strip("0123456789+-.eE"):  # float() also accepts nan, inf, 1_000 and other scripts
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number - number == 0 else None  # not infinite


def json_from_text(text: str, opening: str) -> Any:
    """Return the array or object in a JSON text; any other text is returned unchanged."""
    if not text.lstrip().startswith(opening):
        return text
    import json

    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
