"""Synchronous functions of compat servers call into the event loop by ``anyio.from_thread``, at each call."""

from __future__ import annotations

import asyncio
import types
from typing import Any

import pytest
from anyio import from_thread
from support.in_memory import with_client

from fastrpc.compat import fastmcp, mcp

elsewhere = types.ModuleType("elsewhere")
"""Another module than that of the tools."""
exec(
    "import anyio\n"
    "async def later(x):\n"
    "    return x + 1\n"
    "def call(x):\n"
    "    anyio.from_thread.check_cancelled()\n"
    "    return anyio.from_thread.run(later, x)\n",
    elsewhere.__dict__,
)
OFTEN = 40
"""More calls than a tool needs to prove that it may run on the loop's own thread."""


def only_elsewhere(x: int) -> str:
    return str(elsewhere.call(x))


def served(kind: Any, function: Any) -> Any:
    server = kind("demo")
    server.tool("call")(function)
    server.resource("r://{x}")(function)
    server.prompt("ask")(lambda: function(1))
    return server


async def conversation(client: Any) -> set[str]:
    found = set()
    for _ in range(OFTEN):
        found.add((await client.call("call", x=1)).text)
        found.add((await client.read("r://1")).raw["contents"][0]["text"])
        (message,) = (await client.request("prompts/get", {"name": "ask"}))["messages"]
        found.add(message["content"]["text"])
    return found


@pytest.mark.parametrize("kind", [fastmcp.FastMCP, mcp.MCPServer])
def test_a_function_calls_into_the_loop_of_its_call(kind: Any) -> None:
    async def add(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    def call(x: int) -> str:
        loops = from_thread.run_sync(asyncio.get_running_loop)
        assert loops is not None
        return str(from_thread.run(add, x))

    server = served(kind, call)
    for _ in range(2):  # in two loops, one after the other
        assert with_client(server, conversation) == {"2"}


@pytest.mark.parametrize("kind", [fastmcp.FastMCP, mcp.MCPServer])
def test_a_module_need_not_show_that_its_functions_do(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.compat.functions.declaring.keeps_to_threads", lambda function: False)
    assert with_client(served(kind, only_elsewhere), conversation) == {"2"}


def test_a_module_that_shows_it_keeps_its_tools_on_workers() -> None:
    server = fastmcp.FastMCP("demo")
    server.tool("call")(only_elsewhere)
    (tool,) = server.registries.tools
    assert tool.run == "thread"


class Proxy:
    """Like a proxy of a web framework outside of a request."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("working outside of a request")


def test_what_else_is_in_a_module_is_not_touched() -> None:
    module = types.ModuleType("own")
    exec("def tool() -> str:\n    return 'fine'", module.__dict__)
    module.__dict__["proxy"] = Proxy()
    server = fastmcp.FastMCP("demo")
    server.tool(module.tool)

    async def called(client: Any) -> str:
        return str((await client.call("tool")).text)

    assert with_client(server, called) == "fine"
