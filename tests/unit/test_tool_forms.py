"""Every form in which people write a tool is answered rightly by the compiled core, and alike by the way
through the dispatcher: the forms that W12b measures, each with what its calls have to return."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.in_memory import connected

from fastrpc import Image, Server, Text, ToolError, ToolResult

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "benchmarks", "servers"))

forms = pytest.importorskip("forms", reason="the benchmarks are not here")

TEXTS = ["plain", 'a "quoted" one\n', "é漢🎉", "x" * 3000]


def results(
    function: Callable[..., Any], arguments: list[Any], *, noted: bool = False, version: str = "2025-11-25"
) -> list[Any]:
    """The results of calls of a function, made by the compiled connection; `noted`, by the dispatcher."""
    app = Server("forms")
    run: Any = "auto" if asyncio.iscoroutinefunction(function) else "inline"
    app.tool(name="echo", run=run)(function)
    if noted:
        app.set_note(list)
    lines: list[bytes] = []

    async def ask() -> None:
        transport = connected(app.connect().connection, lines.append)
        begin = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        messages: list[dict[str, Any]] = [
            {"id": "begin", "method": "initialize", "params": begin},
            {"method": "notifications/initialized"},
        ]
        for id, each in enumerate(arguments):
            params = {"name": "echo", "arguments": each}
            messages.append({"id": id, "method": "tools/call", "params": params})
        for message in messages:
            transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())
        while len(lines) <= len(arguments):
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(ask(), 30))
    answers = {answer["id"]: answer for answer in map(json.loads, lines)}
    found = [answers[id].get("result", answers[id]) for id in range(len(arguments))]
    for each in found:
        each.pop("_meta", None)
    return found


@pytest.mark.parametrize("name", forms.FORMS)
def test_each_form_is_answered_rightly_on_either_way(name: str) -> None:
    form = forms.FORMS[name]
    arguments = [form.arguments(text) for text in TEXTS]
    expected = [form.want(text) for text in TEXTS]
    assert results(form.function, arguments) == expected
    assert results(form.function, arguments, noted=True) == expected


# --- blocks -------------------------------------------------------------------------------------------------

PIXEL = Image(b"\x89PNG", "image/png")
PICTURE = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
HALF = "half a pair: \ud83d"
CONTENT: list[Any] = [
    None,
    [],
    (),
    Text("one"),
    PIXEL,
    [Text("one"), "two", PIXEL],
    (PIXEL, PIXEL),
    ["only", "texts"],
    [Text("with a hint", annotations={"audience": "user"}), PIXEL],
    [Image(b"x", "image/é")],
    [Text("one"), 2],
    [Text(HALF)],
    [Text(5)],  # type: ignore[arg-type]
    ToolResult(),
    ToolResult("text"),
    ToolResult(["two", "texts"]),
    ToolResult(Text("one"), is_error=True),
    ToolResult([PIXEL], meta={"a/b": 1}),
    ToolResult(structured={"a": [1, "b"]}),
    ToolResult(structured=[1]),
    ToolResult(structured={"a": object()}),
    ToolResult("text", structured={"a": 1}),
    ToolResult(structured={"a": 1}, is_error=True),
    ToolResult([Text(HALF)]),
    ToolResult(["a", 1]),  # type: ignore[list-item]
]


def bare(number: int) -> list:  # type: ignore[type-arg]
    """Give back one of CONTENT: a list, says the schema."""
    found: Any = CONTENT[number]
    return found


def unknown(number: int) -> Any:
    """Give back one of CONTENT."""
    return CONTENT[number]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("function", [unknown, bare])
def test_content_is_the_same_on_either_way(function: Callable[[int], Any], version: str) -> None:
    numbers = [{"number": number} for number in range(len(CONTENT))]
    fast = results(function, numbers, version=version)
    assert fast == results(function, numbers, noted=True, version=version)
    assert fast[5 if function is unknown else 6]["content"][-1] == PICTURE


def test_blocks_of_a_tool_that_promises_a_list_are_its_items() -> None:
    block = {"type": "text", "text": "one"}
    (found,) = results(bare, [{"number": 5}])
    assert found["content"] == [block, {"type": "text", "text": "two"}, PICTURE]
    assert found["structuredContent"] == {"result": found["content"]}


def test_blocks_of_a_tool_that_promises_something_else_are_refused() -> None:
    def numbers() -> list[int]:
        """Promise numbers."""
        found: Any = [Text("none")]
        return found

    for noted in (False, True):
        (found,) = results(numbers, [{}], noted=noted)
        assert found["isError"] is True


def test_what_a_coroutine_raises_is_reported_as_what_a_function_raises() -> None:
    def refuse(text: str) -> str:
        """Refuse."""
        raise {"refusal": ToolError, "failure": ValueError, "pair": KeyError}[text](text)

    async def refuse_later(text: str) -> str:
        """Refuse."""
        return refuse(text)

    arguments = [{"text": text} for text in ("refusal", "failure", "pair", "none")]
    assert results(refuse_later, arguments) == results(refuse, arguments)


def test_parameters_that_are_passed_by_name_are_beside_others_and_their_defaults() -> None:
    def join(first: str, *, second: int = 2, third: bool) -> str:
        """Join them."""
        return f"{first} {second} {third}"

    arguments: list[Any] = [
        {"first": "a", "third": True},
        {"third": False, "second": 5, "first": "b"},
        {"first": "a", "third": "true"},
        {"first": "a"},
    ]
    texts = [each["content"][0]["text"] for each in results(join, arguments)]
    assert texts == ["a 2 True", "b 5 False", "a 2 True", "third: required, missing"]
