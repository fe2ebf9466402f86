"""The official MCP client for Python talks to a real server: every method that is served, in both eras."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")

SERVER = '''
import asyncio
from typing import Annotated

from fastrpc import Context, Image, Server

app = Server("official", version="1.0", instructions="Be brief.")


@app.tool(effect="read")
def echo(text: Annotated[str, "What to say"]) -> str:
    """Say it again."""
    return text


@app.tool
def add(a: int, b: int) -> int:
    return a + b


@app.tool
async def steps(count: int, ctx: Context) -> str:
    for step in range(count):
        await ctx.progress(step + 1, total=count, message=f"step {step + 1}")
    return "done"


@app.tool
async def endless() -> str:
    await asyncio.sleep(60)
    return "never"


@app.tool
def picture() -> Image:
    return Image(b"\\x89PNG", "image/png")


@app.tool
def fail() -> str:
    raise ValueError("too blue")
'''


@pytest.fixture
def parameters(tmp_path: Any) -> Any:
    from mcp import StdioServerParameters

    (tmp_path / "server.py").write_text(SERVER)
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "fastrpc", "serve", str(tmp_path / "server.py")],
        env=dict(os.environ),
    )


def in_session(parameters: Any, conversation: Any) -> None:
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async def run() -> None:
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await conversation(session)

    asyncio.run(asyncio.wait_for(run(), 60))


def field(model: Any, snake: str, camel: str) -> Any:
    """A field by the name that this version of the client gives it."""
    return getattr(model, snake) if hasattr(model, snake) else getattr(model, camel)


def test_the_handshake_lists_and_calls(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        welcome = await session.initialize()
        assert field(welcome, "server_info", "serverInfo").name == "official"
        assert welcome.instructions == "Be brief."
        await session.send_ping()
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == ["echo", "add", "steps", "endless", "picture", "fail"]
        assert tools[0].description == "Say it again."
        schema = field(tools[0], "input_schema", "inputSchema")
        assert schema["properties"]["text"] == {"type": "string", "description": "What to say"}
        result = await session.call_tool("echo", {"text": "héllo 漢 🎉"})
        assert result.content[0].text == "héllo 漢 🎉"
        result = await session.call_tool("add", {"a": 2, "b": 3})
        assert field(result, "structured_content", "structuredContent") == {"result": 5}
        result = await session.call_tool("picture", {})
        assert result.content[0].type == "image"
        result = await session.call_tool("fail", {})
        assert field(result, "is_error", "isError")
        assert "too blue" in result.content[0].text

    in_session(parameters, conversation)


def test_progress_and_many_calls_at_once(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        await session.initialize()
        reports: list[tuple[float, float | None, str | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total, message))

        await session.call_tool("steps", {"count": 3}, progress_callback=on_progress)
        assert reports == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        texts = [f"call {number}" for number in range(100)]
        results = await asyncio.gather(*(session.call_tool("echo", {"text": text}) for text in texts))
        assert [result.content[0].text for result in results] == texts

    in_session(parameters, conversation)


def test_a_call_that_the_client_gives_up_leaves_the_session_usable(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        await session.initialize()
        task = asyncio.ensure_future(session.call_tool("endless", {}))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await session.call_tool("echo", {"text": "still here"})).content[0].text == "still here"

    in_session(parameters, conversation)


def test_the_high_level_client_negotiates_the_newest_version(parameters: Any) -> None:
    """From its second major version on, the client probes server/discover and speaks 2026-07-28."""
    Client = getattr(mcp, "Client", None)
    if Client is None:
        pytest.skip("this version of the official client has no high-level Client")

    async def run() -> None:
        async with Client(parameters) as client:
            tools = (await client.list_tools()).tools
            assert tools[0].name == "echo"
            result = await client.call_tool("echo", {"text": "modern"})
            assert result.content[0].text == "modern"
            assert client.protocol_version == "2026-07-28"

    asyncio.run(asyncio.wait_for(run(), 60))
