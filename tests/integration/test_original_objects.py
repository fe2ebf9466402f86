"""`fastrpc swap --run --objects original`: the originals' own objects, served over fastrpc's transports.

The official SDK 2.x is in the environment of the tests; FastMCP and the SDK's 1.x have
separate ones (`make fastmcp`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.skips import not_prepared

from fastrpc import Client
from fastrpc.errors import RemoteError
from fastrpc.swap.comparison import differences
from fastrpc.swap.observation import observe

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENTS = os.path.join(os.path.dirname(TESTS), ".cache")
SWAP = [sys.executable, "-m", "fastrpc", "swap", "--run", "--objects", "original", "--"]
pytestmark = pytest.mark.timeout(300)  # the originals import for seconds

BODY = """

mcp = FastMCP("Demo", instructions="Add.")


class Point(BaseModel):
    x: int
    y: float = 1.0


class Sure(BaseModel):
    ok: bool


@mcp.tool()
def add(a: int, b: int = 2) -> int:
    "Add two numbers"
    return a + b


@mcp.tool()
def move(point: Point) -> Point:
    return point


@mcp.tool()
def fails(why: str) -> str:
    raise ValueError(why)


@mcp.tool()
def where() -> str:
    return f"{type(mcp).__module__} {threading.current_thread() is threading.main_thread()}"


@mcp.tool()
async def tells(ctx: Context) -> str:
    await ctx.info("told")
    await ctx.report_progress(1, 2)
    return type(ctx).__module__


@mcp.tool()
async def asks(ctx: Context) -> str:
    answer = await ctx.elicit("Sure?", Sure)
    return f"{answer.action} {answer.data.ok}"


def added(text: str) -> str:
    return f"added {text}"


@mcp.tool()
def grows() -> str:
    ADD
    return "grown"


@mcp.resource("data://{name}")
def data(name: str) -> str:
    return f"data of {name}"


@mcp.prompt()
def greet(name: str) -> str:
    return f"Greet {name}"


if __name__ == "__main__":
    mcp.run()
"""
HEAD = "import threading\n\nfrom pydantic import BaseModel\n\n"


class Kind:
    """A high-level class of an original: where it is imported from, and by which interpreter."""

    def __init__(self, python: str, imported: str, module: str, what: str) -> None:
        self.python = python
        self.imported = imported
        self.module = module
        self.what = what

    def write(self, folder: Path) -> list[str]:
        """Return the command of a server that is written for it. Skips the test without the original."""
        if not os.path.exists(self.python):
            pytest.skip(not_prepared(self.what))
        add = 'mcp.add_tool(added, name="added")'
        if self.module.startswith("fastmcp"):
            add = 'mcp.tool(added, name="added")'
        (folder / "server.py").write_text(HEAD + self.imported + BODY.replace("ADD", add))
        return [self.python, str(folder / "server.py")]


KINDS = {
    "sdk2": Kind(
        sys.executable,
        "from mcp.server.mcpserver import Context, MCPServer as FastMCP",
        "mcp.server.mcpserver.server",
        "mcp 2",
    ),
    "sdk1": Kind(
        os.path.join(ENVIRONMENTS, "sdk1", "bin", "python"),
        "from mcp.server.fastmcp import Context, FastMCP",
        "mcp.server.fastmcp.server",
        "mcp 1",
    ),
    "fastmcp": Kind(
        os.path.join(ENVIRONMENTS, "fastmcp", "bin", "python"),
        "from fastmcp import Context, FastMCP",
        "fastmcp.server.server",
        "FastMCP",
    ),
}
ALL = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(tmp_path), "FASTMCP_CHECK_FOR_UPDATES": "off", "NO_COLOR": "1"}


def client_of(command: list[str], env: dict[str, str], **options: Any) -> Any:
    return Client.sync([*SWAP, *command], env=env, version="2025-11-25", stderr=False, **options)


@ALL
def test_lists_and_answers_are_those_of_the_original(kind: Kind, tmp_path: Path, env: dict[str, str]) -> None:
    command = kind.write(tmp_path)
    calls: list[dict[str, Any]] = [
        {"tool": "add", "arguments": {"a": 1}},
        {"tool": "add", "arguments": {"a": "one"}},
        {"tool": "add", "arguments": {}},
        {"tool": "add", "arguments": {"a": 1, "c": 2}},
        {"tool": "move", "arguments": {"point": {"x": 1}}},
        {"tool": "fails", "arguments": {"why": "because"}},
        {"tool": "tells", "arguments": {}},
        {"tool": "no_such_tool", "arguments": {}},
        {"resource": "data://a"},
        {"resource": "nothing://a"},
        {"prompt": "greet", "arguments": {"name": "Ann"}},
        {"prompt": "greet", "arguments": {}},
    ]
    original = observe(command, calls, env=env)
    swapped = observe([*SWAP, *command], calls, env=env)
    assert "failure" not in original
    assert "failure" not in swapped
    assert differences(original, swapped) == []
    assert swapped["answers"][0]["result"]["structuredContent"] == {"result": 3}


@ALL
def test_objects_are_the_originals(kind: Kind, tmp_path: Path, env: dict[str, str]) -> None:
    with client_of(kind.write(tmp_path), env) as client:
        assert client.call_tool("where").text.split()[0] == kind.module
        assert client.call_tool("tells").text.split(".")[0] == kind.module.split(".")[0]


@ALL
def test_handlers_reach_the_client(kind: Kind, tmp_path: Path, env: dict[str, str]) -> None:
    asked = []

    def answer(request: Any) -> dict[str, Any]:
        asked.append(request)
        return {"ok": True}

    with client_of(kind.write(tmp_path), env, on_elicit=answer) as client:
        assert client.call_tool("asks").text == "accept True"
    assert len(asked) == 1


@ALL
def test_a_tool_that_is_added_later_is_called(kind: Kind, tmp_path: Path, env: dict[str, str]) -> None:
    with client_of(kind.write(tmp_path), env) as client:
        assert client.call_tool("add", {"a": 1}).text == "3"
        assert client.call_tool("grows").text == "grown"
        assert client.call_tool("added", {"text": "now"}).text == "added now"
        assert "added" in [tool["name"] for tool in client.request("tools/list", {})["tools"]]
        assert client.call_tool("add", {"a": 2}).text == "4"


@ALL
def test_a_quick_function_leaves_its_worker_thread(kind: Kind, tmp_path: Path, env: dict[str, str]) -> None:
    with client_of(kind.write(tmp_path), env) as client:
        # Two thousand calls: on a loaded machine it takes long until enough in a row are quick.
        assert any(client.call_tool("where").text.split()[1] == "True" for _ in range(2000))


def test_a_prompt_without_an_argument_has_the_originals_error(tmp_path: Path, env: dict[str, str]) -> None:
    with client_of(KINDS["sdk2"].write(tmp_path), env) as client:
        with pytest.raises(RemoteError) as caught:
            client.request("prompts/get", {"name": "greet", "arguments": {}})
        assert caught.value.code == 0
        assert client.call_tool("add", {"a": 1}).text == "3"


STATELESS = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("Demo", version="1")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


server.run()
"""


def test_the_newest_version_is_served(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "server.py").write_text(STATELESS)
    command = [*SWAP, sys.executable, str(tmp_path / "server.py")]
    with Client.sync(command, env=env, version="2026-07-28", stderr=False) as client:
        assert client.version == "2026-07-28"
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


RAISING = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool


async def tools(ctx, params):
    return ListToolsResult(tools=[Tool(name="add", input_schema={"type": "object"})])


async def call(ctx, params):
    return CallToolResult(content=[TextContent(type="text", text=f"{params.name} {params.arguments}")])


async def main():
    server = Server("Demo", version="1", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(), raise_exceptions=IS_RAISING)


anyio.run(main, backend=BACKEND)
"""


@pytest.fixture(params=["raise_exceptions", "low-level"])
def low_level(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    text = RAISING.replace("IS_RAISING", str(request.param == "raise_exceptions")).replace(
        "BACKEND", '"asyncio"'
    )
    (tmp_path / "server.py").write_text(text)
    return [sys.executable, str(tmp_path / "server.py")]


def test_a_low_level_server_answers_whatever_its_options(low_level: list[str], env: dict[str, str]) -> None:
    """With `raise_exceptions` it is served by the original's own loop, over its own streams."""
    with client_of(low_level, env) as client:
        assert client.call_tool("add", {"a": 1}).text == "add {'a': 1}"
        assert [tool["name"] for tool in client.request("tools/list", {})["tools"]] == ["add"]


def test_the_option_needs_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fastrpc", "swap", "--objects", "original", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--objects needs --run" in done.stderr
