"""The types of rules: what a JSON Schema says of values, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from fastrpc.guard.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    RuleTypeError,
    Type,
    compile,
    list_of,
    map_of,
    nullable,
    one_of,
    struct,
    type_of_schema,
)

POINT = struct({"x": INT, "y": DOUBLE}, optional=["y"], is_open=True)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string"}, STRING),
        ({"type": "integer", "minimum": 1}, INT),
        ({"type": "number"}, DOUBLE),
        ({"type": "boolean"}, BOOL),
        ({"type": "null"}, NULL),
        ({"type": ["string", "null"]}, nullable(STRING)),
        ({"type": ["string", "integer"]}, DYN),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, nullable(INT)),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, nullable(STRING)),
        ({"anyOf": [{"type": "integer"}, {"type": "integer", "minimum": 1}]}, INT),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, DYN),
        ({"anyOf": [{"type": "integer"}, {}]}, DYN),
        ({"type": "array", "items": {"type": "string"}}, list_of(STRING)),
        ({"type": "array"}, list_of(DYN)),
        ({"type": "array", "items": {"type": "string"}, "prefixItems": [{"type": "integer"}]}, list_of(DYN)),
        ({"type": "object"}, map_of(DYN)),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, map_of(INT)),
        (
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
                "required": ["x"],
            },
            POINT,
        ),
        ({"type": "object", "properties": {}, "additionalProperties": False}, struct({})),
        ({"enum": ["a", "b"]}, one_of(["a", "b"])),
        ({"enum": ["a", None]}, nullable(one_of(["a"]))),
        ({"enum": [1, 2]}, INT),
        ({"enum": [1, "a"]}, DYN),
        ({"enum": [[1]]}, DYN),
        ({"const": "a", "type": "string"}, one_of(["a"])),
        ({"const": True}, BOOL),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, map_of(DYN)),
        ({"allOf": [{"type": "string"}]}, DYN),
        ({"not": {"type": "string"}}, DYN),
        ({}, DYN),
        (True, DYN),
        (None, DYN),
        ({"type": "file"}, DYN),
        ({"type": 5}, DYN),
        ({"type": "object", "properties": []}, DYN),
        (
            {"type": "object", "properties": {"x": 1}, "required": 3},
            struct({"x": DYN}, optional=["x"], is_open=True),
        ),
        ({"enum": []}, DYN),
        ({"enum": "ab"}, DYN),
        ({"anyOf": []}, DYN),
        ({"$ref": "https://example.com/schema"}, DYN),
        ({"$ref": "#/nowhere"}, DYN),
        ({"$ref": "#"}, DYN),
        ({"$ref": 5}, DYN),
    ],
)
def test_a_schema_says_what_is_certain(schema: Any, wanted: Type) -> None:
    assert type_of_schema(schema) == wanted


def test_definitions_are_followed_and_circles_end() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "left": {"$ref": "#/$defs/Tree"}},
                "additionalProperties": False,
            }
        },
    }
    variables = {"args": type_of_schema(schema)}
    compile('args.tree.left.left.name == "a"', variables)
    with pytest.raises(RuleTypeError, match=r"args\.tree\.left\.nam: there is no such member"):
        compile('args.tree.left.nam == "a"', variables)
    deep = "args.tree" + ".left" * 30
    compile(f"{deep}.nam == 1", variables)
    assert type_of_schema({"$ref": "#/a", "a": {"$ref": "#/a"}}) == DYN


SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}, "at": {"type": "object"}}}


def test_the_caller_can_say_that_there_are_no_other_members() -> None:
    """A schema that does not forbid them allows other arguments, and yet a binder drops these."""
    compile("args.file_pth == 'a'", {"args": type_of_schema(SCHEMA)})
    closed = type_of_schema(SCHEMA, label="the tool Write", noun="argument", is_closed=True)
    with pytest.raises(RuleTypeError, match="the tool Write has no such argument"):
        compile("args.file_pth == 'a'", {"args": closed})
    compile("args.at.anything == 'a'", {"args": closed})
    opened = type_of_schema({**SCHEMA, "additionalProperties": False}, is_closed=False)
    compile("args.file_pth == 'a'", {"args": opened})


def test_a_struct_keeps_what_it_was_declared_with() -> None:
    members = {"a": INT}
    made = struct(members)
    members["b"] = INT
    assert set(made.members) == {"a"}
