"""`fastrpc compare`: differences that a client or a model would act on, and those by choice."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fastrpc.openapi.tools import ANNOTATIONS, WRITES
from fastrpc.swap import comparison
from fastrpc.swap.comparison import (
    answer_differences,
    descriptor_differences,
    differences,
    normal_schema,
    real,
)
from fastrpc.swap.observation import request_of

DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "compat.md")


def seen(**members: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "Demo", "version": "1"},
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": None,
        "tools": [],
        "resources": [],
        "resourceTemplates": [],
        "prompts": [],
    }
    return {**nothing, **members}


def tool(**members: Any) -> dict[str, Any]:
    return {"name": "add", "description": "Add", "inputSchema": {"type": "object"}, **members}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


CONTENT = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/TextContent"}, {"type": "string"}]}}


def of_tools(original: dict[str, Any], swapped: dict[str, Any]) -> list[tuple[str, str]]:
    found = differences(seen(tools=[original]), seen(tools=[swapped]))
    return [(difference.place.removeprefix("tools: add: "), difference.reason) for difference in found]


def test_the_same_is_no_difference() -> None:
    assert differences(seen(tools=[tool()]), seen(tools=[tool()])) == []


@pytest.mark.parametrize(
    ("original", "swapped", "place"),
    [
        (tool(), tool(description="Other"), "description"),
        (tool(), tool(annotations={"readOnlyHint": True}), "annotations"),
        (tool(inputSchema=schema(a={}, b={})), tool(inputSchema=schema(b={})), "inputSchema.properties.a"),
        (
            tool(inputSchema=schema(a={"type": "integer"})),
            tool(inputSchema=schema(a={"type": "number"})),
            "inputSchema.properties.a.type",
        ),
        (
            tool(inputSchema=schema(a={"type": ["null", "string"], "default": None})),
            tool(inputSchema=schema(a={"type": ["null", "string"]})),
            "inputSchema.properties.a.default",
        ),
        (tool(), tool(outputSchema=schema()), "outputSchema"),
        (tool(outputSchema=schema(result={"$ref": "#/$defs/Own"})), tool(), "outputSchema"),
        (tool(_meta={"own": 1}), tool(), "_meta"),
        (tool(title="Given"), tool(title="Other"), "title"),
        (tool(inputSchema=schema(a={"const": True})), tool(inputSchema=schema(a={"const": 1})),
         "inputSchema.properties.a.enum.0"),
    ],
)  # fmt: skip
def test_what_a_client_or_a_model_would_act_on_is_real(
    original: dict[str, Any], swapped: dict[str, Any], place: str
) -> None:
    assert of_tools(original, swapped) == [(place, "")]


@pytest.mark.parametrize(
    ("original", "swapped", "reason"),
    [
        (tool(title="Add"), tool(), comparison.GENERATED_TITLE),
        (tool(description="A\n    b"), tool(description="A\nb"), comparison.WHITE_SPACE),
        (tool(_meta={"fastmcp": {"tags": []}}), tool(), comparison.OWN_META),
        (tool(execution={"taskSupport": "forbidden"}), tool(), comparison.NO_TASKS),
        (tool(), tool(annotations={"icon": "x"}), comparison.FURTHER_HINTS),
        (
            tool(inputSchema={**schema(), "additionalProperties": False}),
            tool(inputSchema=schema()),
            comparison.STRICT,
        ),
        (tool(outputSchema=schema(result={"type": "string"})), tool(), comparison.WRAPPED_TEXT),
        (tool(outputSchema=schema(result={"type": "null"})), tool(), comparison.NO_RESULT),
        (tool(outputSchema=schema(result=CONTENT)), tool(), comparison.WRAPPED_CONTENT),
        (
            tool(inputSchema={**schema(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}}),
            tool(inputSchema=schema(a={"type": "string"})),
            comparison.INLINED,
        ),
    ],
)
def test_what_is_by_choice_has_its_reason(
    original: dict[str, Any], swapped: dict[str, Any], reason: str
) -> None:
    assert {reason for _, reason in of_tools(original, swapped)} == {reason}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["null", "string"]}),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
         {"type": ["integer", "null"], "minimum": 1}),
        ({"const": "a", "type": "string"}, {"enum": ["a"]}),
        ({"type": "object", "required": ["b", "a"]}, {"type": "object", "required": ["a", "b"]}),
        ({"type": "object", "properties": {}, "additionalProperties": True}, {"type": "object"}),
        ({"items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "null"}}}, {"items": {"type": "null"}}),
    ],
)  # fmt: skip
def test_schemas_that_accept_the_same_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert normal_schema(one) == normal_schema(other)


def test_a_schema_that_refers_to_itself_ends() -> None:
    recursive = {"$ref": "#/$defs/A", "$defs": {"A": schema(next={"$ref": "#/$defs/A"})}}
    assert normal_schema(recursive)["type"] == "object"


def test_order_and_absence_are_real() -> None:
    first, second = tool(), tool(name="other")
    assert [each.place for each in differences(seen(tools=[first, second]), seen(tools=[second, first]))] == [
        "tools: order"
    ]
    (found,) = differences(seen(tools=[first]), seen())
    assert (found.place, found.swapped, found.reason) == ("tools: add", comparison.ABSENT, "")


def test_capabilities_with_nothing_of_them_are_a_choice() -> None:
    declared = {"tools": {"listChanged": False}, "prompts": {}}
    (found,) = differences(seen(capabilities=declared), seen())
    assert found.reason == comparison.NOTHING_OF_IT
    (found,) = differences(seen(capabilities=declared, prompts=[{"name": "x"}]), seen())[:1]
    assert found.reason == ""


def result(text: str, **members: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}], **members}}


@pytest.mark.parametrize(
    ("original", "swapped", "reason"),
    [
        (result("1"), result("2"), ""),
        (result("1"), result("1", isError=True), ""),
        (result('{"a": 1}'), result('{"a":1}'), comparison.COMPACT),
        (result("1"), result(" 1"), ""),
        (result('"/a"'), result("/a"), comparison.QUOTES),
        (result("x"), result('"x"'), comparison.QUOTES),
        (result('{"a": [NaN]}'), result('{"a":[null]}'), comparison.NO_NUMBER),
        (result('{"a": [NaN]}'), result('{"a":[1]}'), ""),
        (
            result("Error calling tool 'x': Request error (ConnectError): no", isError=True),
            result("GET /x/{id}: no", isError=True),
            comparison.ERROR_TEXT,
        ),
        (
            result("Error calling tool 'x': Request error (ConnectError): no", isError=True),
            result("GET /x/{id}: something else", isError=True),
            "",
        ),
        (result("2.0"), result("b: expected number, got true", isError=True), comparison.NO_NUMBERS),
        (result("2.0"), result('b: expected number, got "x"', isError=True), ""),
        (result("on"), result('b: expected boolean, got "yes"', isError=True), comparison.NO_NUMBERS),
        (
            result("Request error: no", isError=True),
            result('limit: expected integer, got "x"', isError=True),
            comparison.OPERATION_CHECKED,
        ),
        (
            result("Error creating resource from template a://b", isError=True),
            result("Error reading a://b: see the server's log", isError=True),
            comparison.ERROR_TEXT,
        ),
        (
            result("Output validation error: outputSchema defined but …", isError=True),
            {"result": {"content": [{"type": "image", "data": ""}]}},
            comparison.CONTENT,
        ),
        (
            result("Unable to serialize unknown type: <class 'x'>", isError=True),
            result("the result cannot be written as JSON: x", isError=True),
            comparison.UNSENDABLE,
        ),
        (
            result(
                "1 validation error for giveOutput\nresult\n  no [type=string_type, input_value=1, "
                "input_type=Decimal]",
                isError=True,
            ),
            result("1"),
            comparison.ACCEPTED,
        ),
        (result("a", structuredContent={"result": "a"}), result("a"), comparison.WRAPPED_TEXT),
        (result("a", structuredContent={"result": 1}), result("a"), ""),
        (
            result("a", structuredContent={"result": [{"type": "text", "text": "a"}]}),
            result("a"),
            comparison.WRAPPED_CONTENT,
        ),
        (result("a", structuredContent={"result": [{"type": "own"}]}), result("a"), ""),
        (
            result("structured_content must be a dict or None. Got list", isError=True),
            result("result: expected object, got an array", isError=True),
            comparison.UNSENDABLE,
        ),
        (
            result("Error executing tool x: no", isError=True),
            result("ValueError: no", isError=True),
            comparison.ERROR_TEXT,
        ),
        (result("no", isError=True), result("yes", isError=True), ""),
        (
            result("Unknown tool: x", isError=True),
            {"error": {"code": -32602, "message": "Unknown tool: x"}},
            comparison.UNKNOWN_NAME,
        ),
        (result("fine"), {"error": {"code": -32602, "message": "x"}}, ""),
        (
            {"error": {"code": 0, "message": "x"}},
            {"error": {"code": -32602, "message": "x"}},
            comparison.ERROR_CODE,
        ),
        (
            {"error": {"code": 0, "message": "x"}},
            {"error": {"code": -32603, "message": "x"}},
            comparison.ERROR_CODE,
        ),
        ({"error": {"code": -32042, "message": "x"}}, {"error": {"code": -32603, "message": "x"}}, ""),
        ({"error": {"code": 1, "message": "x"}}, {"error": {"code": 2, "message": "x"}}, ""),
    ],
)
def test_answers(original: dict[str, Any], swapped: dict[str, Any], reason: str) -> None:
    found = answer_differences("tool x", original, swapped)
    assert [difference.reason for difference in found] == [reason]


def test_a_list_of_texts_may_be_one_block() -> None:
    blocks = [{"type": "text", "text": text} for text in ("a", "b")]
    original = {"result": {"content": blocks}}
    assert [each.reason for each in answer_differences("x", original, result('["a","b"]'))] == [
        comparison.ONE_BLOCK
    ]
    assert real(answer_differences("x", original, result('["a","c"]')))


def test_what_varies_by_itself_is_no_real_difference() -> None:
    original = {**result("12:00"), "last": result("12:01")["result"]}
    assert [each.reason for each in answer_differences("x", original, result("12:02"))] == [comparison.VARIES]


def test_a_server_that_does_not_start_is_the_only_difference() -> None:
    assert [each.place for each in differences(seen(), {"failure": "it ended"})] == ["start"]
    assert differences({"failure": "it ended"}, {"failure": "so did it"}) == []


def test_a_difference_as_json_leaves_out_what_is_absent() -> None:
    (found,) = differences(seen(tools=[tool()]), seen(tools=[tool(description=None)]))
    assert found.as_json() == {"place": "tools: add: description", "reason": "", "original": "Add"}


def test_every_reason_is_documented() -> None:
    with open(DOCUMENT, encoding="utf-8") as file:
        text = " ".join(file.read().split())
    reasons = [
        value
        for name, value in vars(comparison).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("_")
    ]
    assert len(reasons) > 15
    assert [reason for reason in reasons if reason not in text] == []


def test_calls_name_what_they_call() -> None:
    assert request_of({"tool": "x"}) == ("tool x", "tools/call", {"name": "x", "arguments": {}})
    assert request_of({"prompt": "x", "arguments": {"a": "b"}})[2] == {"name": "x", "arguments": {"a": "b"}}
    assert request_of({"resource": "a://b"}) == ("resource a://b", "resources/read", {"uri": "a://b"})
    with pytest.raises(ValueError, match="a call has"):
        request_of({"name": "x"})


REFUSED = "1 validation error for call[add]\na\n  Input should be [type={}, input_value=None, input_type={}]"


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        ("int_type", "NoneType", comparison.LENIENT),
        ("dict_type", "str", comparison.LENIENT),
        ("unexpected_keyword_argument", "int", comparison.STRICT),
        ("greater_than_equal", "int", ""),
        ("string_too_short", "str", ""),
    ],
)
def test_accepting_what_the_original_refuses_is_by_choice_for_what_was_meant_alone(
    kind: str, given: str, reason: str
) -> None:
    refused = {
        "result": {"content": [{"type": "text", "text": REFUSED.format(kind, given)}], "isError": True}
    }
    accepted = {"result": {"content": [{"type": "text", "text": "1"}], "isError": False}}
    assert [each.reason for each in comparison.answer_differences("a", refused, accepted)] == [reason]


def test_what_a_newer_version_of_the_protocol_brings_is_by_choice() -> None:
    later = seen(tools=[tool(outputSchema=schema(a={"type": "string"}))])
    earlier = seen(protocolVersion="2024-11-05", tools=[tool()])
    reasons = {each.place: each.reason for each in differences(earlier, later)}
    assert reasons == {"protocolVersion": comparison.NEWER, "tools: add: outputSchema": comparison.NEWER}
    (older,) = differences(seen(), seen(protocolVersion="2024-11-05"))
    assert older.reason == ""


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
CAT = {"type": "object", "properties": {"kind": {"const": "cat"}}}


@pytest.mark.parametrize(
    ("original", "swapped"),
    [
        (
            {**schema(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}},
            {**schema(a=NODE), "$defs": {"Node": NODE}},
        ),
        (
            schema(a={"oneOf": [CAT], "discriminator": {"propertyName": "kind"}}),
            schema(a={"oneOf": [{**CAT, "required": ["kind"]}]}),
        ),
        (schema(a={"enum": ["x", 1, None]}), schema(a={"anyOf": [{"enum": ["x", 1]}, {"type": "null"}]})),
        (schema(a={"anyOf": [{}, {"type": "null"}]}), schema(a={})),
        (schema(a={"example": "x"}), schema(a={"examples": ["x"]})),
        (
            schema(a={"prefixItems": [{}], "minItems": 1, "maxItems": 1}),
            schema(a={"prefixItems": [{}], "minItems": 1, "maxItems": 1, "items": False}),
        ),
    ],
    ids=["recursion", "discriminator", "enum with null", "anything", "example", "tuple"],
)
def test_forms_of_a_schema_with_one_meaning_are_equal(original: Any, swapped: Any) -> None:
    assert comparison.normal_schema(original) == comparison.normal_schema(swapped)


def test_the_page_of_user_interfaces_is_missed_only_where_it_is_not_there_at_all() -> None:
    page = "prefab/renderer/" + "0a" * 32 + "/renderer.html"
    own, again, other = ({"uri": f"ui://{place}"} for place in (page, f"team/{page}", f"team/{page}x"))
    found = comparison.differences(seen(resources=[own, again, other]), seen(resources=[own]))
    reasons = {each.place: each.reason for each in found}
    assert reasons[f"resources: ui://team/{page}"] == comparison.ONE_PAGE
    assert reasons[f"resources: ui://team/{page}x"] == ""
    (lost,) = comparison.differences(seen(resources=[again]), seen(resources=[]))
    assert lost.reason == ""


def test_the_parameters_of_a_generated_tool_are_described_in_other_words() -> None:
    ours, theirs = schema(a={"description": "A"}), schema(a={"description": "B"})
    for name, reason in (("search_tools", comparison.GENERATED_TOOL), ("own", "")):
        found = of_tools(tool(name=name, inputSchema=ours), tool(name=name, inputSchema=theirs))
        assert [each for _, each in found] == [reason]


@pytest.mark.parametrize(
    ("member", "original", "swapped", "reason"),
    [
        ("outputSchema", schema(a={"default": None}), schema(a={}), comparison.NO_NULL),
        ("outputSchema", schema(a={}), schema(a={"description": "A"}), comparison.NO_DESCRIPTION),
        ("inputSchema", schema(a={}), schema(a={"description": "A"}), comparison.DESCRIBED),
        ("inputSchema", schema(a={}), schema(a={"title": "The A"}), comparison.GIVEN_TITLE),
        ("inputSchema", schema(a={"type": "string"}), schema(a={}), comparison.UNANNOTATED),
        ("inputSchema", schema(a={"type": "integer"}), schema(a={}), ""),
    ],
)
def test_what_a_schema_says_more_or_less_by_choice(
    member: str, original: Any, swapped: Any, reason: str
) -> None:
    found = of_tools(tool(**{member: original}), tool(**{member: swapped}))
    assert [each for _, each in found] == [reason]


def test_hints_and_descriptions_of_operations_are_choices() -> None:
    for hints in (*ANNOTATIONS.values(), WRITES):
        (found,) = descriptor_differences("tools: x", {"name": "x"}, {"name": "x", "annotations": hints})
        assert found.reason == comparison.OPERATION_HINTS
    original = {"name": "x", "description": "One\n\n\n**Responses:**"}
    (found,) = descriptor_differences("tools: x", original, {"name": "x", "description": "One"})
    assert found.reason == comparison.OPERATION_TEXT
