"""With ``strict_input_validation=True`` arguments of the wrong type are refused, as in FastMCP, wherever the
tool comes from."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

pytest.importorskip("jsonschema_rs", reason="the option needs it: pip install jsonschema-rs")

from fastrpc.compat.fastmcp import Client, FastMCP, LocalProvider, Tool
from fastrpc.errors import DefinitionError


class Size(BaseModel):
    width: int
    parts: list[int] = []


class Colour(Enum):
    RED = "red"


def integer(value: int) -> str:
    return repr(value)


def real(value: float) -> str:
    return repr(value)


def truth(value: bool) -> str:
    return repr(value)


def items(value: list[int]) -> str:
    return repr(value)


def members(value: dict[str, int]) -> str:
    return repr(value)


def model(value: Size) -> str:
    return repr(value)


def choice(value: Literal[1, 2]) -> str:
    return repr(value)


def colour(value: Colour) -> str:
    return repr(value)


def bounded(value: Annotated[int, Field(ge=1)]) -> str:
    return repr(value)


def optional(value: int | None = None) -> str:
    return repr(value)


FUNCTIONS = (integer, real, truth, items, members, model, choice, colour, bounded, optional)
FIT = [
    ("integer", 5, "5"),
    ("real", 1, "1.0"),
    ("real", 1.5, "1.5"),
    ("truth", True, "True"),
    ("items", [1], "[1]"),
    ("members", {"a": 1}, "{'a': 1}"),
    ("model", {"width": 1}, "Size(width=1, parts=[])"),
    ("choice", 2, "2"),
    ("colour", "red", "<Colour.RED: 'red'>"),
    ("bounded", 1, "1"),
    ("optional", None, "None"),
]
CONVERTED_ELSEWHERE = [
    ("integer", "5", 'value: expected integer, got "5"'),
    ("real", "1.5", 'value: expected number, got "1.5"'),
    ("truth", "true", 'value: expected boolean, got "true"'),
    ("items", ["1"], 'value[0]: expected integer, got "1"'),
    ("items", "[1]", 'value: expected array, got "[1]"'),
    ("members", {"a": "1"}, 'value.a: expected integer, got "1"'),
    ("model", {"width": "1"}, 'value.width: expected integer, got "1"'),
    ("model", {"width": 1, "parts": ["1"]}, 'value.parts[0]: expected integer, got "1"'),
    ("choice", "1", 'value: expected integer, got "1"'),
    ("bounded", "1", 'value: expected integer, got "1"'),
    ("optional", "1", 'got "1"'),
]


def server(**options: Any) -> FastMCP:
    """Return a server with the functions as tools, and one of them from each other source of tools."""
    app = FastMCP("x", **options)
    for function in FUNCTIONS:
        app.tool(function)
    app.add_tool(Tool.from_function(integer, name="object"))
    app.add_tool(Tool.from_tool(Tool.from_function(integer, name="parent"), name="transformed"))
    provider = LocalProvider()

    @provider.tool
    def provided(value: int) -> str:
        return repr(value)

    app.add_provider(provider)
    return app


async def call(app: FastMCP, name: str, **arguments: Any) -> tuple[bool, str]:
    async with Client(app) as client:
        result = await client.call_tool(name, arguments, raise_on_error=False)
        return result.is_error, result.content[0].text


@pytest.mark.parametrize(("name", "value", "shown"), FIT)
def test_what_fits_the_schema_is_passed(name: str, value: object, shown: str) -> None:
    app = server(strict_input_validation=True)
    assert asyncio.run(call(app, name, value=value)) == (False, shown)


@pytest.mark.parametrize(("name", "value", "problem"), CONVERTED_ELSEWHERE)
def test_what_would_have_to_be_converted_is_refused(name: str, value: object, problem: str) -> None:
    is_error, text = asyncio.run(call(server(strict_input_validation=True), name, value=value))
    assert is_error
    assert problem in text
    assert asyncio.run(call(server(), name, value=value))[0] is False


@pytest.mark.parametrize("name", ["object", "transformed", "provided"])
def test_tools_of_all_sources_are_strict(name: str) -> None:
    strict, lax = server(strict_input_validation=True), server()
    assert asyncio.run(call(strict, name, value=5)) == (False, "5")
    is_error, text = asyncio.run(call(strict, name, value="5"))
    assert is_error
    assert 'value: expected integer, got "5"' in text
    assert asyncio.run(call(lax, name, value="5")) == (False, "5")


def test_a_tool_object_is_strict_where_the_server_is() -> None:
    tool = Tool.from_function(integer, name="shared")
    strict, lax = FastMCP("strict", strict_input_validation=True), FastMCP("lax")
    strict.add_tool(tool)
    lax.add_tool(tool)
    assert asyncio.run(call(strict, "shared", value="5"))[0] is True
    assert asyncio.run(call(lax, "shared", value="5")) == (False, "5")


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_mounted_server_decides_about_its_own_tools(is_strict: bool) -> None:
    inner = FastMCP("inner", strict_input_validation=is_strict)
    inner.tool(integer)
    outer = FastMCP("outer", strict_input_validation=not is_strict)
    outer.mount(inner, namespace="in")
    assert asyncio.run(call(outer, "in_integer", value="5"))[0] is is_strict


def test_the_setting_is_that_of_servers_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTMCP_STRICT_INPUT_VALIDATION", "true")
    assert asyncio.run(call(server(), "integer", value="5"))[0] is True
    assert asyncio.run(call(server(strict_input_validation=False), "integer", value="5"))[0] is False


def test_operations_of_an_api_are_strict_and_refuse_other_arguments() -> None:
    httpx = pytest.importorskip("httpx", reason="operations are sent by it: pip install httpx")
    pytest.importorskip("openapi_pydantic", reason="it reads the document: pip install openapi-pydantic")
    parameter = {"name": "number", "in": "query", "schema": {"type": "integer"}}
    operation = {"operationId": "read", "parameters": [parameter], "responses": {}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": operation}},
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"url": str(request.url)}))

    def api(is_strict: bool) -> FastMCP:
        client = httpx.AsyncClient(transport=transport, base_url="http://api")
        return FastMCP.from_openapi(document, client=client, strict_input_validation=is_strict)

    assert asyncio.run(call(api(True), "read", number=5))[0] is False
    assert asyncio.run(call(api(True), "read", number="5")) == (True, 'number: expected integer, got "5"')
    assert asyncio.run(call(api(True), "read", other=5)) == (True, 'arguments: unknown: "other"')
    assert asyncio.run(call(api(False), "read", number="5"))[0] is False
    assert asyncio.run(call(api(False), "read", other=5))[0] is False


def test_the_option_names_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jsonschema_rs", None)
    with pytest.raises(DefinitionError, match=r"strict_input_validation needs jsonschema-rs: install"):
        FastMCP("x", strict_input_validation=True).tool(integer)
