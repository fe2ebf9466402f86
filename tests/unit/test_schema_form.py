"""The form that the dashboard makes of a tool's schema: which fields, and what is made of what was typed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastrpc.dashboard.language import ENGLISH
from fastrpc.dashboard.schema_form import OTHERS, fields_of, placed, read

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Size": {"enum": ["small", "large", 3], "description": "How large."}},
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "note": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "gift": {"type": ["boolean", "null"]},
        "size": {"$ref": "#/$defs/Size"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "place": {"type": "object"},
        "any": {},
        "odd": {"type": ["string", "integer"]},
    },
    "required": ["name", "count"],
    "additionalProperties": False,
}


def typed(schema: dict[str, Any] = SCHEMA, **texts: str) -> tuple[dict[str, Any], dict[str, str]]:
    return read(fields_of(schema), texts, ENGLISH.text)


def test_each_member_has_a_field_of_its_kind() -> None:
    kinds = {each.key: each.kind for each in fields_of(SCHEMA)}
    assert kinds == {
        "name": "text",
        "note": "text",
        "count": "integer",
        "price": "number",
        "gift": "boolean",
        "size": "choice",
        "tags": "json",
        "place": "json",
        "any": "json",
        "odd": "json",
    }
    size = next(each for each in fields_of(SCHEMA) if each.key == "size")
    assert (size.choices, size.title) == (('"small"', '"large"', "3"), "How large.")


def test_what_was_typed_becomes_values_and_what_is_empty_is_left_out() -> None:
    arguments, mistakes = typed(
        name="cup\r\n1",
        note="",
        count=" 3 ",
        price="2.5",
        gift="true",
        size="3",
        tags='["a"]',
        place='{"x": [1]}',
        any="null",
        odd='"x"',
    )
    assert mistakes == {}
    assert arguments == {
        "name": "cup\n1",
        "count": 3,
        "price": 2.5,
        "gift": True,
        "size": 3,
        "tags": ["a"],
        "place": {"x": [1]},
        "any": None,
        "odd": "x",
    }


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("name", "", "at least 2 of them, got 0"),
        ("name", "c", "at least 2"),
        ("name", "cupboard", "at most 5"),
        ("count", "", "required"),
        ("count", "three", "whole number"),
        ("count", "1.5", "whole number"),
        ("count", "true", "whole number"),
        ("count", "0", "at least 1"),
        ("count", "10", "less than 10"),
        ("price", "NaN", "a number"),
        ("price", "1,5", "a number"),
        ("price", "[" * 100_000, "a number"),
        ("gift", "yes", "Choose"),
        ("size", "medium", "Choose"),
        ("size", '"medium"', "Choose"),
        ("tags", "a, b", "expected JSON"),
        ("tags", "{}", "of the type array"),
        ("tags", "[1, 2, 3]", "at most 2"),
        ("tags", "[" * 100_000, "expected JSON"),
        ("place", "Infinity", "expected JSON"),
        ("price", "1e999", "a number"),
        ("any", "[1e999]", "expected JSON"),
        ("any", '{"\\udc00": 1}', "half of a surrogate"),
        ("odd", "1.5", "string, integer"),
    ],
)
def test_a_value_that_does_not_fit_is_said_beside_its_field(field: str, text: str, said: str) -> None:
    _, mistakes = typed(**{"name": "cup", "count": "1", field: text})
    assert list(mistakes) == [field]
    assert said in mistakes[field]


def test_arguments_that_the_schema_does_not_name_are_one_object() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert [each.key for each in fields_of(schema)] == ["a"]
    assert [each.key for each in fields_of({"type": "object"})] == [OTHERS]
    schema["additionalProperties"] = True
    assert [each.key for each in fields_of(schema)] == ["a", OTHERS]
    assert typed(schema, **{"a": "x", OTHERS: '{"b": 1}'}) == ({"a": "x", "b": 1}, {})
    for wrong in ("[]", '{"a": 1}', "{"):
        assert list(typed(schema, **{OTHERS: wrong})[1]) == [OTHERS]


def test_a_schema_that_refers_to_itself_or_to_nothing_has_fields_of_json() -> None:
    root: dict[str, Any] = {
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
        "properties": {
            "loop": {"$ref": "#/$defs/A"},
            "gone": {"$ref": "#/$defs/C/d"},
            "away": {"$ref": "https://example.com/x"},
            "wrong": "no schema",
            "types": {"type": 3, "enum": [], "minimum": "x"},
            "\u202e<b>": {"type": "string"},
        },
        "required": "no list",
    }
    fields = fields_of(root)
    assert {each.kind for each in fields if each.name.isascii()} == {"json"}
    assert fields[-1].key == "\\u202e<b>"
    assert typed(root, loop="[1]", types="5", wrong="{}")[1] == {}
    assert fields_of({"properties": []})[0].key == OTHERS


@pytest.mark.parametrize(
    ("problem", "fields"),
    [
        ("count: expected an integer", {"count": "expected an integer"}),
        ("$.place.x: expected a string; name: required, missing", {"place", "name"}),
        ("$.tags[0]: expected a string", {"tags"}),
        ("countess: no", set()),
        ("something else", set()),
    ],
)
def test_what_a_tool_says_is_put_beside_the_field_that_it_names(problem: str, fields: Any) -> None:
    found = placed(problem, fields_of(SCHEMA))
    assert (found if isinstance(fields, dict) else set(found)) == fields


def test_what_was_typed_for_any_schema_never_raises() -> None:
    for declared in (True, False, None, [], {"enum": [{}]}, {"const": None}, {"anyOf": [{}, {}]}):
        schema: dict[str, Any] = {"properties": {"a": declared}}
        for text in ("", "x", "1", "{}", json.dumps("\ud800")):
            read(fields_of(schema), {"a": text}, ENGLISH.text)
