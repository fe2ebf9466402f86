"""The front that other frameworks' servers know."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import assert_type

from fastrpc.compat import (
    AcceptedElicitation,
    CallToolResult,
    Client,
    ClientSession,
    Context,
    FastMCP,
    Image,
    StdioServerParameters,
    ToolResult,
    stdio_client,
)
from fastrpc.compat import FastMPC  # error

mcp = FastMCP("shop", instructions="Sell", debug=True, version=2, list_page_size=5)
FastMCP("shop", stateles_http=True)  # error
FastMCP("shop", lst_page_size=5)  # error


@dataclass
class Address:
    street: str


@mcp.tool
def plain(text: str) -> int:
    return len(text)


@mcp.tool()
def called(text: str) -> ToolResult:
    return ToolResult(text, {"a": 1})


@mcp.tool("third", tags={"a"}, annotations={"readOnlyHint": True}, timeout=5, structured_output=False)
def named(text: str) -> Image:
    return Image("a.png")


@mcp.resource("docs://{page}", mime_type="text/plain")
def page(page: str) -> str:
    return page


@mcp.prompt(title="Review")
def review(code: str) -> str:
    return code


assert_type(plain("a"), int)
assert_type(named("a"), Image)
assert_type(review("a"), str)
assert_type(page("a"), str)
assert_type(mcp.add_tool(plain, "again")("a"), int)
mcp.tool(nme="third")  # error
mcp.tool(output_schemas={})  # error
mcp.tool(timeout="5")  # error
mcp.resource("docs://a", mimetype="text/plain")  # error
mcp.prompt(effect="read")  # error
mcp.add_tool(5)  # error
mcp.mount(FastMCP("other"), "x")
mcp.mount(5)  # error
mcp.run_asinc()  # error


@mcp.tool
async def order(ctx: Context) -> str:
    result = await ctx.elicit("Where to?", Address)
    if result.action == "accept":
        assert_type(result, AcceptedElicitation[Address])
        result.data.city  # error
        return result.data.street
    result.data.street  # error
    chosen = await ctx.elicit("Which?", response_type=["a", "b"])
    if isinstance(chosen, AcceptedElicitation):
        assert_type(chosen.data, str)
    await ctx.elicit("Where to?", schema=Address)
    await ctx.elicit("Where to?", 5)  # error
    sampled = await ctx.sample("Say it", temperature=0.5)
    assert_type(sampled.text, str)
    await ctx.info("text")
    ctx.info("text", extra=5)  # error
    ctx.sesion_id  # error
    return sampled.text


def serve() -> None:
    mcp.run()
    mcp.run(transport="stdio", show_banner=False)
    mcp.run(transport="ssee")  # error
    mcp.run(htpp="127.0.0.1:8000")  # error


async def call() -> None:
    async with Client(mcp, timeout=5, mode="legacy") as client:
        assert_type(await client.call_tool("plain", {"text": "a"}, raise_on_error=False), CallToolResult)
        await client.call_tool("plain", timout=5)  # error
    Client(mcp, verify=False)  # error
    parameters = StdioServerParameters(command="python", args=["server.py"])
    StdioServerParameters(args=["server.py"])  # error
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.call_tool("plain", {"text": "a"}, read_timeout_seconds=5.0)
        await session.call_tool(5)  # error
