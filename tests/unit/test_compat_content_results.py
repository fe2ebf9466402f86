"""Results that are something else than the tool's annotation says: content, which FastMCP sends whatever that
is, and what breaks an output schema, which is refused where the original refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel
from support.dialects import FASTMCP, SDK_1, SDK_2, tool_and_result

from fastrpc.compat.fastmcp import ToolResult


class Model(BaseModel):
    a: int


@dataclass
class Data:
    a: int


class Typed(TypedDict):
    a: int


TEXT = TextContent(type="text", text="block")
IMAGE = ImageContent(type="image", data="aGk=", mime_type="image/png")
CONTENT: list[tuple[Any, list[str]]] = [
    (TEXT, ["text"]),
    (IMAGE, ["image"]),
    ([TEXT, IMAGE], ["text", "image"]),
    ((IMAGE, TEXT), ["image", "text"]),
    (["x", IMAGE, {"a": 1}], ["text", "image", "text"]),
    (CallToolResult(content=[IMAGE]), ["image"]),
    (ToolResult(content=[TEXT, IMAGE]), ["text", "image"]),
]
ANNOTATIONS = [
    *(str, int, bool, None, dict, dict[str, Any], list, list[str], list[dict[str, Any]], Sequence[str]),
    *(Any, Model, Data, Typed, str | None, str | dict, TextContent, list[TextContent]),
]


def result_of(kind: Any, annotation: Any, value: Any, **options: Any) -> Any:
    def give():
        return value

    give.__annotations__ = {"return": annotation}
    return tool_and_result(kind, give, **options)[1]


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
@pytest.mark.parametrize(("value", "kinds"), CONTENT, ids=lambda given: type(given).__name__)
def test_content_passes_whatever_the_annotation_says(annotation: Any, value: Any, kinds: list[str]) -> None:
    result = result_of(FASTMCP, annotation, value)
    assert [block["type"] for block in result["content"]] == kinds
    assert not result["isError"]


@pytest.mark.parametrize("kind", [SDK_1, SDK_2])
@pytest.mark.parametrize(("value", "kinds"), CONTENT[:6], ids=lambda given: type(given).__name__)
def test_in_the_sdk_a_schema_counts_for_more(kind: Any, value: Any, kinds: list[str]) -> None:
    without = result_of(kind, dict, value)
    assert [block["type"] for block in without["content"]] == kinds
    assert not without["isError"]
    for annotation in (str, dict[str, Any], Model, str | None):
        assert result_of(kind, annotation, value)["isError"]


@pytest.mark.parametrize("annotation", [dict, dict[str, Any], Model, Data, Typed])
def test_nothing_is_sent_where_fastmcp_sends_nothing(annotation: Any) -> None:
    result = result_of(FASTMCP, annotation, None)
    assert (result["content"], result["isError"], "structuredContent" in result) == ([], False, False)


def test_a_schema_that_was_given_needs_an_object() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for value in ("text", 5, [1]):
        assert result_of(FASTMCP, Any, value, output_schema=schema)["isError"]
    for value in ({"a": 1}, Model(a=1), Data(1)):
        assert result_of(FASTMCP, Any, value, output_schema=schema)["structuredContent"] == {"a": 1}
    assert result_of(FASTMCP, Any, TEXT, output_schema=schema)["content"][0]["text"] == "block"
