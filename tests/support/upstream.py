"""The server that is behind proxies and bridges in their tests: what it offers, and all of it used.

`UPSTREAM` is its source without an end: how it is to run says whoever starts it.
"""

from __future__ import annotations

import pytest

from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client, RemoteError

UPSTREAM = '''
import asyncio, os, sys
from typing import Annotated
from fastrpc import Context, Image, Server, ToolError, ToolResult

app = Server("behind", version="7.1", instructions="use it well")
charged = 0

@app.tool(title="Add", effect="read", meta={"team": "x"})
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b

@app.tool
def fail() -> str:
    raise ToolError("it does not go")

@app.tool
def picture() -> ToolResult:
    return ToolResult([Image(b"png"), "text"])

@app.tool
async def work(ctx: Context) -> str:
    ctx.progress(1, 2, "half")
    ctx.warning("careful", logger="behind")
    ctx.progress(2, 2)
    return "done"

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("your name?", str)
    said = await ctx.sample("say hi")
    return f"{answer.action} {answer.data}, {said.text}"

@app.tool
async def buy(ctx: Context) -> str:
    """Charge once, then ask twice."""
    def charge() -> int:
        global charged
        charged += 1
        return charged
    bill = ctx.once("bill", charge)
    first = await ctx.elicit("sure?", str, key="sure")
    second = await ctx.elicit("really?", str, key="really")
    return f"bill {bill} of {charged}: {first.data} {second.data}"

@app.tool
async def folders(ctx: Context) -> str:
    return " ".join(root["uri"] for root in await ctx.roots())

@app.tool
async def sleep(path: str) -> str:
    open(path + ".begun", "w").close()
    try:
        await asyncio.sleep(30)
    finally:
        with open(path, "w") as file:
            file.write("cancelled")
    return "slept"

@app.tool
async def wait(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "waited"

@app.tool
async def part(ctx: Context) -> str:
    """Have the client come back for the rest."""
    ctx.info("before")
    await ctx.close_stream()
    await asyncio.sleep(0.2)
    ctx.info("after")
    return "whole"

@app.tool(input_schema={"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"}, "count": {"type": "integer", "x-mcp-header":
    "Count"}, "fast": {"type": "boolean", "x-mcp-header": "Fast"}}})
def marked(**arguments) -> str:
    return repr(sorted(arguments.items()))

@app.tool
def pid() -> int:
    return os.getpid()

@app.tool
def crash() -> str:
    os._exit(3)

@app.tool
def grow(name: str) -> str:
    app.add_tool(lambda: f"I am {name}", name=name)
    app.remove_tool("fail")
    return "grown"

@app.tool
def touch() -> str:
    app.resource_updated("docs://guide")
    return "touched"

@app.resource("docs://guide", mime_type="text/markdown")
def guide() -> str:
    return "# read me"

@app.resource("docs://{id}/raw{?page}")
def raw(id: str, page: int = 1) -> bytes | None:
    return f"{id} {page}".encode() if id != "0" else None

@app.prompt
def review(language: str, style: str = "kind") -> str:
    """Review code."""
    return f"review {language} {style}"

@app.prompt
def höflich() -> str:
    return "bitte"

@app.complete("review", "language")
def languages(value: str) -> list[str]:
    return [name for name in ("python", "perl") if name.startswith(value)]
'''


async def every_feature_passes(client: Client, version: str, *, structured: bool) -> None:
    """Use one of each kind through a proxy, in a version. `structured`: results of tools are described."""
    assert {"tools", "resources", "prompts"} <= set(client.info["capabilities"])
    assert client.info["instructions"] == "use it well"
    entries = {entry["name"]: entry for entry in await client.tools()}
    add = entries["add"]
    assert add["description"] == "Add two numbers."
    assert list(add["inputSchema"]["properties"]) == ["a", "b"]
    assert ("outputSchema" in add) == structured
    result = await client.call("add", a=1)
    assert result.text == "3"
    assert not result.is_error
    assert (await client.call("add", a="x")).is_error
    assert (await client.call("fail")).text == "it does not go"
    assert [block["type"] for block in (await client.call("picture")).content] == ["image", "text"]

    listed = (await client.request("resources/list"))["resources"]
    assert [(entry["uri"], entry["mimeType"]) for entry in listed] == [("docs://guide", "text/markdown")]
    contents = (await client.request("resources/read", {"uri": "docs://guide"}))["contents"]
    assert contents == [{"uri": "docs://guide", "mimeType": "text/markdown", "text": "# read me"}]
    contents = (await client.request("resources/read", {"uri": "docs://7/raw?page=3"}))["contents"]
    assert contents[0]["blob"] == "NyAz"
    for uri in ("docs://nothing", "docs://0/raw"):
        with pytest.raises(RemoteError) as missing:
            await client.request("resources/read", {"uri": uri})
        assert missing.value.code == (-32602 if version == STATELESS else -32002)

    prompt = (await client.request("prompts/list"))["prompts"][0]
    assert [argument["name"] for argument in prompt["arguments"]] == ["language", "style"]
    got = await client.request("prompts/get", {"name": "review", "arguments": {"language": "C"}})
    assert got["messages"][0]["content"]["text"] == "review C kind"
    with pytest.raises(RemoteError) as incomplete:
        await client.request("prompts/get", {"name": "review"})
    assert incomplete.value.code == -32602
    got = await client.request("prompts/get", {"name": "höflich"})  # over HTTP its name is in a header
    assert got["messages"][0]["content"]["text"] == "bitte"
    assert (await client.complete("review", "language", "pe")).values == ["perl"]

    params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "mine"}}
    await client.request("tools/call", params)
    assert [report["progress"] for report in client.progress] == [1, 2]
    assert all(report["progressToken"] == "mine" for report in client.progress)
