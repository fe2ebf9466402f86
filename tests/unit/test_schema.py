"""The description layer: what clients see of a function, and which arguments reach it."""
# ruff: noqa: UP007, UP045 (both spellings of a union are what is tested)

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import os
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, Union

import msgspec
import pydantic
import pytest
from msgspec import Meta
from typing_extensions import TypeAliasType

from fastrpc import typing_forms
from fastrpc.content import Image, Text, ToolResult
from fastrpc.errors import ArgumentError
from fastrpc.schema import describe, rich_types
from fastrpc.schema.converters import Mismatch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def taking(annotation: Any, *default: Any) -> Any:
    """Return the signature of a function with one parameter ``x``."""

    def function(x):
        return x

    function.__annotations__ = {"x": annotation}
    function.__defaults__ = default or None
    return describe(function)


def property_of(annotation: Any, *default: Any) -> Any:
    return taking(annotation, *default).input_schema["properties"]["x"]


def accepted(annotation: Any, value: Any, *default: Any) -> Any:
    return taking(annotation, *default).bind({"x": value})[0]


def refusal(annotation: Any, value: Any, *default: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        taking(annotation, *default).bind({"x": value})
    return str(caught.value)


def returning(annotation: Any) -> Any:
    def function():
        return None

    function.__annotations__ = {"return": annotation}
    return describe(function)


@dataclasses.dataclass
class Person:
    """Somebody."""

    name: str
    age: Annotated[int, Meta(ge=0, description="In years")] = 0
    tags: list[str] = dataclasses.field(default_factory=list)


MSGSPEC = tuple(int(part) for part in msgspec.__version__.split(".")[:2])
EMPTY: dict[str, Any] = {"default": []} if MSGSPEC >= (0, 23) else {}
"""What a member of a dataclass has whose default is an empty list; a Struct's had it before, too."""


@dataclasses.dataclass
class Node:
    value: int
    children: list[Node] = dataclasses.field(default_factory=list)


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    title: str
    deep: bool


class Pair(NamedTuple):
    left: int
    right: str = ""


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0, description="In years")


# ------------------------------------------------------------------------------------ exact schemas


def test_a_plain_tool_has_exactly_the_schema_that_was_promised():
    def echo(text: Annotated[str, "What to say"]) -> str:
        return text

    assert describe(echo).input_schema == {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say"}},
        "required": ["text"],
    }


def test_a_tool_without_parameters_has_empty_properties_and_no_required():
    def tasks() -> str:
        return ""

    assert describe(tasks).input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("annotation", "schema", "kind"),
    [
        (str, {"type": "string"}, "str"),
        (int, {"type": "integer"}, "int"),
        (float, {"type": "number"}, "float"),
        (bool, {"type": "boolean"}, "bool"),
        (Any, {}, "json"),
        (object, {}, "json"),
        (list, {"type": "array", "items": {}}, "array"),
        (dict, {"type": "object"}, "object"),
        (list[str], {"type": "array", "items": {"type": "string"}}, "checked"),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, "checked"),
        (dict[str, Any], {"type": "object"}, "object"),
        (
            list[Annotated[str, "A path"]],
            {"type": "array", "items": {"type": "string", "description": "A path"}},
            "checked",
        ),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}, "checked"),
        (Literal[1, "a"], {"enum": [1, "a"]}, "checked"),
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "checked"),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "checked"),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int"),
        (Annotated[int, Meta(description="n")], {"type": "integer", "description": "n"}, "int"),
        (NewType("Seconds", float), {"type": "number"}, "float"),
        (TypeAliasType("Names", list[str]), {"type": "array", "items": {"type": "string"}}, "checked"),
        (Optional["int"], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int"),
        (
            Union["int", "str", None],
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            "checked",
        ),
        (None, {"type": "null"}, "checked"),
        ("str", {"type": "string"}, "str"),
        ("Annotated[list[int], 'Numbers'] | None", None, "checked"),
    ],
)
def test_plain_types(annotation, schema, kind):
    signature = taking(annotation)
    assert signature.parameters[0].kind == kind
    if schema is not None:
        assert signature.parameters[0].schema == schema


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (
            Annotated[int, Meta(ge=1, le=3600, description="Seconds")],
            {"type": "integer", "description": "Seconds", "minimum": 1, "maximum": 3600},
        ),
        (
            Annotated[str, Meta(max_length=3, pattern="^a")],
            {"type": "string", "maxLength": 3, "pattern": "^a"},
        ),
        (
            Annotated[list[int], Meta(min_length=1)],
            {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        ),
        (Colour, {"type": "string", "enum": ["red", "green", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (decimal.Decimal, {"type": "string", "format": "decimal"}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (
            Options,
            {"type": "object", "properties": {"title": {"type": "string"}, "deep": {"type": "boolean"}}},
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
                "required": ["x"],
            },
        ),
        (
            list[Person],
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "Somebody.",
                    "properties": {
                        "name": {"type": "string"},
                        "age": {"type": "integer", "description": "In years", "minimum": 0, "default": 0},
                        "tags": {"type": "array", "items": {"type": "string"}, **EMPTY},
                    },
                    "required": ["name"],
                },
            },
        ),
        (
            User,
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "age": {"type": "integer", "description": "In years", "minimum": 0},
                },
                "required": ["name", "age"],
            },
        ),
        (Annotated[int, pydantic.Field(ge=1)], {"type": "integer", "minimum": 1}),
        (Annotated[int, pydantic.Field(description="n")], {"type": "integer", "description": "n"}),
    ],
)
def test_types_that_need_a_library_are_written_out_without_references_and_titles(annotation, schema):
    assert property_of(annotation) == schema


def test_only_a_type_that_refers_to_itself_keeps_a_reference_and_its_definition_is_at_the_root():
    schema = taking(list[Node]).input_schema
    assert schema["properties"]["x"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert returning(Node).output_schema["type"] == "object"
    assert list(returning(Node).output_schema["$defs"]) == ["Node"]


def test_a_property_called_like_a_keyword_is_kept():
    Odd = TypedDict("Odd", {"title": int, "default": int, "required": list[int], "$ref": str})
    assert property_of(Odd)["properties"] == {
        "title": {"type": "integer"},
        "default": {"type": "integer"},
        "required": {"type": "array", "items": {"type": "integer"}},
        "$ref": {"type": "string"},
    }


# ---------------------------------------------------------------------------------- defaults, null


def test_absence_is_the_natural_form_of_an_optional_parameter_without_a_default_value():
    for annotation in (Optional[int], int | None, int):
        signature = taking(annotation, None)
        assert signature.input_schema == {"type": "object", "properties": {"x": {"type": "integer"}}}
        assert signature.bind({}) == signature.bind({"x": None}) == [None]
        assert signature.parameters[0].nullable


def test_constraints_stay_when_null_is_hidden():
    expected = {"type": "integer", "description": "Seconds", "minimum": 1}
    meta = Meta(ge=1, description="Seconds")
    assert property_of(Annotated[int | None, meta], None) == expected
    assert property_of(Optional[Annotated[int, meta]], None) == expected


def test_the_keys_that_a_dict_may_have_are_described():
    described = property_of(dict[Literal["a", "b"], int])
    assert described["propertyNames"] == {"enum": ["a", "b"]}
    assert described["additionalProperties"] == {"type": "integer"}
    assert "propertyNames" not in property_of(dict[str, int])
    assert accepted(dict[Literal["a", "b"], int], {"a": 1}) == {"a": 1}
    assert "c" in refusal(dict[Literal["a", "b"], int], {"c": 1})
    assert property_of(dict[Colour, int])["propertyNames"] == {"enum": ["red", "green", "blue"]}
    assert "propertyNames" not in property_of(dict[Level, int])  # a name is a text, and these are numbers


def test_a_number_without_a_fraction_is_the_integer_that_a_choice_is():
    low = next(iter(Level))
    assert accepted(Level, float(low)) is low
    assert accepted(list[Level], [float(low)]) == [low]
    assert accepted(dict[str, Literal[1, 2]], {"a": 2.0}) == {"a": 2}
    assert "0.5" in refusal(Level, 0.5)


def test_a_value_is_converted_again_only_where_that_can_mend_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large value with something wrong at its end would be read three times, for nothing."""
    copied: list[Any] = []
    copy = rich_types._with_integers

    def noted(value: Any) -> Any:
        copied.append(value)
        return copy(value)

    monkeypatch.setattr(rich_types, "_with_integers", noted)
    for wrong in ([[2.0]], [1.0, "b"], [{}], [None]):
        assert "expected" in refusal(list[Level], wrong)
    assert [each for each in copied if isinstance(each, list)] == [[1.0, "b"]]
    assert accepted(list[Level], [1, float(max(Level))]) == [Level(1), max(Level)]

    converter = rich_types.MsgspecConverter(list[decimal.Decimal], None)
    read: list[bool] = []
    convert = converter._convert

    def counted(*arguments: Any, strict: bool = True, **options: Any) -> Any:
        read.append(strict)
        return convert(*arguments, strict=strict, **options)

    converter._convert = counted
    for wrong in ([1, None], [1, []], [1, {}]):
        with pytest.raises(Mismatch):
            converter.accept(wrong)
    assert read == [True] * 3


@pytest.mark.parametrize(
    "written",
    [
        "Annotated[str, 'A name']",
        "Annotated[int | None, 'A number', Meta(ge=1)]",
        "Literal['a']",
        "Literal['a', 2, True]",
        "Literal['a', None]",
        "Literal['a', 'b'] | None",
        "Literal['a'] | int | None",
        "list[Literal['a', 'b']]",
        "dict[str, Annotated[int, 'A count']]",
        "Annotated[Literal['a', 'b'] | None, 'A letter']",
    ],
)
def test_the_forms_that_do_without_typing_are_described_like_those_of_typing(written):
    ours = {"Annotated": typing_forms.Annotated, "Literal": typing_forms.Literal, "Meta": Meta}
    theirs = {"Annotated": Annotated, "Literal": Literal, "Meta": Meta}
    form, original = taking(eval(written, ours), None), taking(eval(written, theirs), None)
    assert form.input_schema == original.input_schema
    assert [parameter.kind for parameter in form.parameters] == [each.kind for each in original.parameters]


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (int, 5, 5),
        (str, "", ""),
        (bool, False, False),
        (list[str], ["a"], ["a"]),
        (Colour, Colour.GREEN, "green"),
        (float, float("nan"), None),
        (Any, object(), None),
    ],
)
def test_a_default_is_shown_when_it_is_a_json_value(annotation, default, shown):
    assert (
        property_of(annotation, default).get("default") is shown
        or property_of(annotation, default)["default"] == shown
    )
    assert taking(annotation, default).bind({}) == [default]


def test_null_means_the_default_unless_the_type_allows_none():
    assert taking(int, 5).bind({"x": None}) == [5]
    assert taking(int | None, 5).bind({"x": None}) == [None]
    assert taking(Any, 5).bind({"x": None}) == [None]
    assert taking(int | None).bind({"x": None}) == [None]
    assert not taking(int | None).parameters[0].nullable
    assert not taking(int | None, 5).parameters[0].nullable
    assert refusal(int, None) == "x: expected integer, got null"


# ------------------------------------------------------------------------------- values as they come


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, "5", 5),
        (int, " -5 ", -5),
        (int, "5.0", 5),
        (int, 5.0, 5),
        (int, "9" * 30, int("9" * 30)),
        (float, 5, 5.0),
        (float, "1e3", 1000.0),
        (bool, "true", True),
        (bool, "False", False),
        (list[int], "[1, 2]", [1, 2]),
        (list, ' ["a"]', ["a"]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (list[int], ["1", 2], [1, 2]),
        (list[int | None], [None, 1], [None, 1]),
        (int | str, "5", "5"),
        (int | float, 5.0, 5.0),
        (float | int, 5, 5),
        (int | bool, "true", True),
        (Literal[1, 2], "2", 2),
        (Literal["a", None], None, None),
        (Annotated[int, Meta(ge=1)], "5", 5),
        (Annotated[list[int], Meta(min_length=1)], "[1]", [1]),
        (Colour, "green", Colour.GREEN),
        (Level, 2, Level.HIGH),
        (bytes, "aGk=", b"hi"),
        (datetime.date, "2026-11-21", datetime.date(2026, 11, 21)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Pair, [1, "a"], Pair(1, "a")),
        (set[int], [1, 1], {1}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Person, {"name": "Ada", "age": 36}, Person("Ada", 36)),
        (Person, '{"name": "Ada", "age": 36}', Person("Ada", 36)),
        (Person, {"name": "Ada", "age": "36"}, Person("Ada", 36)),
        (Point | None, {"x": 1}, Point(1.0)),
        (list[Point], '[{"x": 1}]', [Point(1.0)]),
        (User, {"name": "Ada", "age": "36"}, User(name="Ada", age=36)),
        (User, '{"name": "Ada", "age": 36}', User(name="Ada", age=36)),
        (list[Node], [{"value": 1, "children": [{"value": 2}]}], [Node(1, [Node(2)])]),
    ],
)
def test_harmless_mismatches_are_accepted(annotation, value, result):
    got = accepted(annotation, value)
    assert got == result
    assert type(got) is type(result)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (str, 5, "x: expected string, got 5"),
        (str, None, "x: expected string, got null"),
        (int, "soon", 'x: expected integer, got "soon"'),
        (int, True, "x: expected integer, got true"),
        (int, 5.5, "x: expected integer, got 5.5"),
        (int, "1_000", 'x: expected integer, got "1_000"'),
        (int, "٣", 'x: expected integer, got "٣"'),
        (int, "9007199254740993.0", 'x: expected integer, got "9007199254740993.0"'),
        (int, "", 'x: expected integer, got ""'),
        (float, "nan", 'x: expected number, got "nan"'),
        (float, "1e999", 'x: expected number, got "1e999"'),
        (float, True, "x: expected number, got true"),
        (float, 10**400, "x: expected number within the range of a double, got a very long integer"),
        (bool, 1, "x: expected boolean, got 1"),
        (bool, "yes", 'x: expected boolean, got "yes"'),
        (list, "a, b", 'x: expected array, got "a, b"'),
        (list, '["a"', 'x: expected array, got "[\\"a\\""'),
        (list, "[NaN]", 'x: expected array, got "[NaN]"'),
        (dict, [1], "x: expected object, got an array"),
        (list[int], [1, "b"], '$.x[1]: expected integer, got "b"'),
        (dict[str, list[int]], {"a": [None]}, "$.x.a[0]: expected integer, got null"),
        (dict[str, int], {"a b": {}}, '$.x["a b"]: expected integer, got an empty object'),
        (int | bool, "soon", 'x: expected integer or boolean, got "soon"'),
        (Literal["a", "b"], "c", 'x: expected one of "a", "b", got "c"'),
        (Literal[1], True, "x: expected 1, got true"),
        (Annotated[int, Meta(ge=1)], 0, "x: expected integer >= 1, got 0"),
        (Annotated[int, Meta(ge=1)], "soon", 'x: expected integer, got "soon"'),
        (Annotated[str, Meta(max_length=2)], "abc", 'x: expected string of length <= 2, got "abc"'),
        (Colour, "pink", 'x: expected one of "red", "green", "blue", got "pink"'),
        (uuid.UUID, "soon", 'x: invalid UUID, got "soon"'),
        (tuple[int, str], [1], "x: expected array of length 2, got 1"),
        (Person, {"age": 1}, "$.x.name: required, missing"),
        (list[Person], [{"name": "a"}, {"name": 5}], "$.x[1].name: expected string, got 5"),
        (Person, {"name": "a", "age": -1}, "$.x.age: expected integer >= 0, got -1"),
        (Person, "Ada", 'x: expected object, got "Ada"'),
        (Person, None, "x: expected object, got null"),
        (User, {"name": "a", "age": -1}, "$.x.age: expected greater than or equal to 0, got -1"),
        (User, {"age": 1}, "$.x.name: required, missing"),
    ],
)
def test_what_cannot_be_accepted_is_named_with_field_expectation_and_value(annotation, value, message):
    assert refusal(annotation, value) == message


def test_messages_stay_short_whatever_comes():
    long = "soon " * 10_000
    assert len(refusal(int, long)) < 100
    assert len(refusal(dict[str, int], {long: "a"})) < 150
    assert len(refusal(Literal[tuple(f"choice {n}" for n in range(500))], "x")) <= 240
    assert refusal(int, "a\nb\ud800").encode() == b'x: expected integer, got "a\\nb\\ud800"'


def test_a_bomb_of_brackets_in_a_string_is_no_array():
    assert refusal(list, "[" * 100_000).startswith("x: expected array, got")


def test_several_problems_are_reported_in_one_message():
    def run(command: str, timeout: int, retries: int, label: str) -> str:
        return ""

    with pytest.raises(ArgumentError) as caught:
        describe(run).bind({"timeout": "soon", "retries": [], "label": 3})
    assert str(caught.value) == (
        'command: required, missing; timeout: expected integer, got "soon"; '
        "retries: expected integer, got an empty array; and 1 more"
    )


@pytest.mark.parametrize("sent", ["comand", "Command", "commands"])
def test_a_missing_argument_points_at_the_unknown_one_that_looks_like_it(sent):
    def run(command: str, timeout: int = 1) -> str:
        return ""

    with pytest.raises(ArgumentError) as caught:
        describe(run).bind({sent: "ls", "timeout": 5})
    assert str(caught.value) == f'command: required, missing (the unknown argument "{sent}" looks like it)'


def test_unknown_arguments_are_left_out_and_order_is_the_functions():
    def run(b: int, a: int = 1) -> str:
        return ""

    assert describe(run).bind({"z": 0, "a": 2, "b": 3}) == [3, 2]


# ---------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    "annotation",
    [str, "str", None, Any, object, Text, Image, ToolResult, list[Text], list[Text | Image],
     list[str | Image], Text | str, int | None, int | str, Person | None, Literal["a", "b"],
     Annotated[str, "text"]],
)  # fmt: skip
def test_text_content_none_and_unknown_results_have_no_output_schema(annotation):
    signature = returning(annotation)
    assert signature.output_schema is None
    assert not signature.wraps_result


def test_an_unannotated_result_has_no_output_schema():
    def function(x: int):
        return x

    assert describe(function).output_schema is None


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Colour, {"type": "string", "enum": ["red", "green", "blue"]}),
        (bool | int, {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}),
    ],
)
def test_a_result_that_is_not_an_object_is_wrapped_with_fastmcps_mark(annotation, schema):
    signature = returning(annotation)
    assert signature.wraps_result
    assert signature.output_schema == {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
    }


def test_results_that_are_objects_have_their_own_schema():
    assert returning(dict).output_schema == {"type": "object"}
    assert returning(dict[str, int]).output_schema["additionalProperties"] == {"type": "integer"}
    for annotation in (Person, Point, Options, User):
        assert returning(annotation).output_schema["type"] == "object"
        assert not returning(annotation).wraps_result


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, 5, 5),
        (Person, Person("Ada"), {"name": "Ada", "age": 0, "tags": []}),
        (list[Point], [Point(1.0)], [{"x": 1.0, "y": 0.0}]),
        (Colour, Colour.RED, "red"),
        (datetime.date, datetime.date(2026, 11, 21), "2026-11-21"),
        (User, User(name="Ada", age=36), {"name": "Ada", "age": 36}),
    ],
)
def test_results_become_json_values_that_keep_their_promise(annotation, value, result):
    signature = returning(annotation)
    assert signature.to_json(value) == result
    signature.result_converter.accept(result, False)


def test_a_result_that_breaks_its_promise_is_distinguished():
    with pytest.raises(Mismatch) as caught:
        returning(int).result_converter.accept("5", False)
    assert caught.value.of("result") == 'result: expected integer, got "5"'
    with pytest.raises(Mismatch) as caught:
        returning(Person).result_converter.accept({}, False)
    assert caught.value.of("result") == "$.result.name: required, missing"
