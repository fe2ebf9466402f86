"""Forms for people: what a type or a schema asks for, and how an answer is read."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from fastrpc import DefinitionError, Meta
from fastrpc.client_requests.forms import fields_of
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS
from fastrpc.schema.converters import Mismatch


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class Person:
    name: Annotated[str, Meta(title="Name", description="As in the passport", min_length=1)]
    age: Annotated[int, Meta(ge=0, le=150)] = 30
    score: float = 95.5
    verified: bool = True
    color: Color = Color.BLUE
    size: Size = Size.SMALL
    born: datetime.date | None = None


class Pair(msgspec.Struct):
    left: str
    right: int | None


class Options(TypedDict, total=False):
    depth: int
    tags: list[Literal["b", "a"]]


class Account(pydantic.BaseModel):
    email: str = pydantic.Field(title="E-mail", description="Yours")
    level: int = pydantic.Field(3, ge=1)
    kind: Literal["x", "y"] = "x"
    floor: Literal[2, 1] = 2


def properties(form: Any) -> dict[str, Any]:
    found: dict[str, Any] = fields_of(form).schema["properties"]
    return found


# --- schemas ------------------------------------------------------------------------------------------


def test_a_dataclass_is_a_flat_object_with_titles_limits_defaults_and_choices() -> None:
    assert fields_of(Person).schema == {
        "type": "object",
        "properties": {
            "name": {
                "title": "Name",
                "description": "As in the passport",
                "type": "string",
                "minLength": 1,
            },
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
            "score": {"type": "number", "default": 95.5},
            "verified": {"type": "boolean", "default": True},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            "size": {"type": "string", "enum": ["1", "2"], "default": "1"},
            "born": {"type": "string", "format": "date"},
        },
        "required": ["name"],
    }


def test_a_struct_a_typed_dict_and_a_model_are_forms_too() -> None:
    assert fields_of(Pair).schema["required"] == ["left"]
    assert properties(Pair) == {"left": {"type": "string"}, "right": {"type": "integer"}}
    assert properties(Options)["tags"]["items"] == {"type": "string", "enum": ["b", "a"]}
    assert "required" not in fields_of(Options).schema
    assert properties(Account)["email"] == {"type": "string", "description": "Yours", "title": "E-mail"}
    assert properties(Account)["floor"] == {"type": "string", "enum": ["2", "1"], "default": "2"}
    assert properties(Account)["kind"] == {"type": "string", "enum": ["x", "y"], "default": "x"}


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int | float, {"type": "number"}),
        (Annotated[int, Meta(title="N", ge=1)], {"title": "N", "type": "integer", "minimum": 1}),
        (Annotated[str, "who"], {"type": "string", "description": "who"}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Literal[2, 1], {"type": "string", "enum": ["2", "1"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (list[Color], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
        (["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (datetime.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string"}),
    ],
)
def test_a_plain_type_is_one_field_called_value(form: Any, field: Any) -> None:
    assert fields_of(form).schema == {"type": "object", "properties": {"value": field}, "required": ["value"]}


def test_nothing_to_fill_in_is_an_empty_object() -> None:
    assert fields_of(None).schema == {"type": "object", "properties": {}}
    assert fields_of(None).read({"strange": 1}) is None


def test_a_schema_of_ones_own_goes_out_untouched_and_titled_choices_lose_nothing_in_the_older_version() -> (
    None
):
    titled = {
        "type": "string",
        "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}],
    }
    schema = {"type": "object", "properties": {"choice": titled}, "required": ["choice"], "x-own": 1}
    fields = fields_of(schema)
    for version in RICH_INPUT_REQUESTS:
        assert fields.schema_in(version) == schema
    older = fields.schema_in(ELICITATION[0])
    assert older["properties"]["choice"] == {
        "type": "string",
        "enum": ["a", "b"],
        "enumNames": ["First", "Second"],
    }
    assert fields.read({"choice": "b", "other": 1}) == {"choice": "b"}


def test_only_forms_with_a_choice_of_several_are_for_newer_versions_alone() -> None:
    assert fields_of(Options).has_lists
    assert fields_of(list[Color]).has_lists
    assert not fields_of(Person).has_lists


def test_a_type_is_described_once() -> None:
    assert fields_of(Person) is fields_of(Person)


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        (list[str], "a form holds texts"),
        (dict[str, int], "not an object"),
        (Person | int, "a form holds texts"),
        (Any, "a form holds texts"),
        (list[Person], "not an array"),
        ("Person", "not the text|not .Person"),
        (lambda: 1, "a form is a type"),
        ([], "at least one"),
        (Literal["1", 1], "written alike"),
        (
            {"type": "object", "properties": {"a": {"type": "object"}}},
            'a: expected a type of string.*"object"',
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
            "a: an array",
        ),
        ({"type": "object", "properties": []}, "properties"),
        ({"anyOf": []}, "value: expected a type"),
    ],
)
def test_what_is_not_flat_is_refused(form: Any, complaint: str) -> None:
    with pytest.raises(DefinitionError, match=complaint):
        fields_of(form)


def test_a_member_that_is_not_flat_is_named() -> None:
    with pytest.raises(DefinitionError, match=r"Nested\.inner: a form holds"):
        fields_of(dataclasses.make_dataclass("Nested", [("inner", Person)]))


# --- answers ------------------------------------------------------------------------------------------


def test_an_answer_becomes_the_value_of_its_type() -> None:
    content = {"name": "Ada", "age": 36, "color": "red", "size": "2", "born": "1815-12-10", "extra": 1}
    born = datetime.date(1815, 12, 10)
    assert fields_of(Person).read(content) == Person("Ada", 36, 95.5, True, Color.RED, Size.LARGE, born)
    assert fields_of(Pair).read({"left": "a"}) == Pair("a", None)
    assert fields_of(Options).read({"tags": ["a"]}) == {"tags": ["a"]}
    assert fields_of(Account).read({"email": "a@b", "floor": "1"}) == Account(email="a@b", floor=1)
    assert fields_of(int).read({"value": "5"}) == 5
    assert fields_of(Literal[2, 1]).read({"value": "1"}) == 1
    assert fields_of(list[Size]).read({"value": ["2"]}) == [Size.LARGE]
    assert fields_of(int | None).read({}) is None
    assert fields_of({"type": "number"}).read({"value": 95}) == 95


RAW = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "many": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            "minItems": 1,
        },
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("form", "content", "complaint"),
    [
        (Person, {}, "$.content.name: required, missing"),
        (Person, {"name": 1}, "$.content.name: expected string, got 1"),
        (Person, {"name": "a", "age": 151}, "$.content.age: expected integer <= 150, got 151"),
        (
            Person,
            {"name": "a", "color": "green"},
            '$.content.color: expected one of "red", "blue", got "green"',
        ),
        (Account, {"email": "a", "level": 0}, "$.content.level: expected greater than or equal to 1, got 0"),
        (int, {}, "$.content.value: required, missing"),
        (int, {"value": "many"}, '$.content.value: expected integer, got "many"'),
        (["a", "b"], {"value": "c"}, '$.content.value: expected one of "a", "b", got "c"'),
        (RAW, {}, "$.content.text: required, missing"),
        (RAW, {"text": "a"}, "$.content.text: expected from 2 to 3 characters, got 1"),
        (RAW, {"text": "bb"}, '$.content.text: expected a text like ^a, got "bb"'),
        (RAW, {"text": "aa", "count": 10}, "$.content.count: expected a number from 1 to 9, got 10"),
        (RAW, {"text": "aa", "count": True}, "$.content.count: expected integer, got true"),
        (RAW, {"text": "aa", "many": ["c"]}, '$.content.many: expected one of "a", "b", got "c"'),
        (RAW, {"text": "aa", "many": []}, "$.content.many: expected at least 1 choices, got 0"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_name(form: Any, content: Any, complaint: str) -> None:
    with pytest.raises(Mismatch) as caught:
        fields_of(form).read(content)
    assert caught.value.of("content") == complaint
