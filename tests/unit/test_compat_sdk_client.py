"""The official SDK's `Client` and its sessions in memory, with servers of this package."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from fastrpc.compat import mcp as sdk
from fastrpc.compat.errors import NotOffered
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS


def shop() -> Any:
    mcp = sdk.MCPServer("shop", instructions="Sell.")

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def ask(ctx: sdk.Context) -> str:
        return (
            await ctx.session.create_message(
                [{"role": "user", "content": {"type": "text", "text": "?"}}], max_tokens=5
            )
        ).content.text  # type: ignore[no-any-return]

    @mcp.resource("docs://guide")
    def guide() -> str:
        return "read me"

    @mcp.resource("docs://{page}/x")
    def page(page: str) -> str:
        return page

    @mcp.prompt()
    def review(code: str) -> str:
        return code

    return mcp


@pytest.mark.parametrize(
    ("mode", "version"),
    [
        ("auto", STATELESS),
        ("legacy", LATEST_SESSION_VERSION),
        (STATELESS, STATELESS),
        ("2025-06-18", "2025-06-18"),
    ],
)
def test_a_client_reaches_everything_of_a_server_in_memory(mode: str, version: str) -> None:
    async def run() -> None:
        async with sdk.Client(shop(), mode=mode, read_timeout_seconds=20) as client:
            assert client.protocol_version == version
            assert client.session is client
            assert client.server_info.name == "shop"
            assert client.instructions == "Sell."
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "ask"]
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert result.content[0].text == "3"
            assert [each.name for each in (await client.list_resources(cache_mode="bypass")).resources] == [
                "guide"
            ]
            assert len((await client.list_resource_templates(meta={"a/b": 1})).resource_templates) == 1
            assert (await client.read_resource("docs://guide", cache_mode="refresh")).contents[
                0
            ].text == "read me"
            assert [each.name for each in (await client.list_prompts()).prompts] == ["review"]
            prompt = await client.get_prompt("review", {"code": "1"})
            assert prompt.messages[0].content.text == "1"

    asyncio.run(asyncio.wait_for(run(), 30))


def test_callbacks_answer_what_the_server_asks() -> None:
    async def sampled(context: Any, params: Any) -> Any:
        return {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}

    async def run() -> None:
        async with sdk.Client(shop(), sampling_callback=sampled) as client:
            assert (await client.call_tool("ask")).content[0].text == "yes"

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_client_is_connected_only_while_it_is_entered() -> None:
    async def run() -> None:
        client = sdk.Client(shop())
        with pytest.raises(RuntimeError, match="async with"):
            client.session  # noqa: B018
        async with client:
            pass
        with pytest.raises(RuntimeError, match="not connected"):
            await client.list_tools()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_options_without_an_equivalent_are_refused() -> None:
    with pytest.raises(ValueError, match="mode: expected auto, legacy or a protocol version, got 'new'"):
        sdk.Client(shop(), mode="new")
    with pytest.raises(NotOffered, match="prior_discover"):
        sdk.Client(shop(), prior_discover=object())
    with pytest.raises(TypeError, match="surprise"):
        sdk.Client(shop(), surprise=1)


@pytest.mark.parametrize("limit", [None, 5, timedelta(seconds=5)])
def test_a_session_with_a_server_in_memory_is_initialized(limit: Any) -> None:
    async def run() -> None:
        async with sdk.create_connected_server_and_client_session(shop(), limit) as session:
            assert session.protocol_version == LATEST_SESSION_VERSION
            assert (await session.call_tool("add", {"a": 2, "b": 2})).content[0].text == "4"
            await session.send_ping()
        with pytest.raises(RuntimeError, match="not connected"):
            await session.send_ping()

    asyncio.run(asyncio.wait_for(run(), 30))
