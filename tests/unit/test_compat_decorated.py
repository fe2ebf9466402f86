"""Functions behind decorators, as tools, resources and prompts of a compat server: they are called by
keyword, as the originals call them, since a decorator looks for an argument by its name."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import pytest
from pydantic import Field
from support.in_memory import with_client

from fastrpc.compat import fastmcp, mcp

KINDS = (fastmcp.FastMCP, mcp.FastMCP, mcp.MCPServer)


class Seen:
    """A decorator that notes how functions are called: the number of values, and the names."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def called(*values: Any, **named: Any) -> Any:
            self.calls.append((len(values), sorted(named)))
            return function(*values, **named)

        return called


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Any:
    return request.param("demo")


def texts(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    async def conversation(client: Any) -> list[str]:
        return [(await client.call(name, **arguments)).text for name, arguments in calls]

    found: list[str] = with_client(server, conversation)
    return found


def test_a_function_is_called_by_keyword(server: Any) -> None:
    seen = Seen()

    @server.tool()
    @seen
    @seen
    def plain(x: int, y: str = "y", *, z: int = 3) -> str:
        return f"{x}{y}{z}"

    @server.tool()
    @seen
    async def later(x: int, ctx: mcp.Context, y: Annotated[str, Field(alias="why")] = "y") -> str:
        return f"{x}{y}{ctx.request_id is not None}"

    assert texts(server, ("plain", {"x": 1, "z": 4}), ("later", {"x": 1, "why": "w"})) == ["1y4", "1wTrue"]
    assert seen.calls == [*[(0, ["x", "y", "z"])] * 2, (0, ["ctx", "x", "y"])]


def test_what_is_bound_already_stays_where_it_is(server: Any) -> None:
    seen = Seen()

    class Shop:
        @seen
        def method(self, x: int) -> str:
            return f"method {x}"

        @seen
        def __call__(self, x: int) -> str:
            return f"object {x}"

    @seen
    def two(x: int, y: int = 2) -> str:
        return f"{x} and {y}"

    server.add_tool(Shop().method, "method")
    server.add_tool(Shop(), "object")
    server.add_tool(functools.partial(two, 5), "partial")
    calls = [("method", {"x": 2}), ("object", {"x": 3}), ("partial", {"y": 6})]
    assert texts(server, *calls) == ["method 2", "object 3", "5 and 6"]
    assert seen.calls == [(1, ["x"]), (1, ["x"]), (1, ["y"])]


def test_positional_only_parameters_are_given_by_place(server: Any) -> None:
    seen = Seen()

    @server.tool()
    @seen
    def first(x: int, y: int = 1, /, z: int = 2) -> str:
        return f"{x}{y}{z}"

    assert texts(server, ("first", {"x": 6, "z": 3}), ("first", {"x": 6, "y": 7})) == ["613", "672"]
    assert seen.calls == [(2, ["z"])] * 2


def test_resources_and_prompts_are_called_so_too(server: Any) -> None:
    seen = Seen()
    server.resource("t://{x}")(seen(lambda x: f"at {x}"))
    server.prompt("ask")(seen(lambda x="a": f"ask {x}"))

    async def conversation(client: Any) -> str:
        return str([(await client.read("t://q")).raw, await client.request("prompts/get", {"name": "ask"})])

    found = with_client(server, conversation)
    assert "at q" in found
    assert "ask a" in found
    assert seen.calls == [(0, ["x"])] * 2
