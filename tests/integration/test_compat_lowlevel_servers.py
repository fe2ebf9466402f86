"""Programs for the official SDK's low-level `Server`, with their import changed: real processes over pipes.

The program in the style of the SDK's 2.x also runs on the SDK itself, where that is installed, and both must
answer the same."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.http_server import HttpProcess
from support.stdio import Process, serve

from fastrpc import Client

OFFICIAL = """
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
"""
SWAPPED = """
from fastrpc.compat.lowlevel.server import NotificationOptions, Server
from fastrpc.compat.lowlevel.options import stdio_server
"""
CALLBACKS = """
import asyncio

import mcp.types as types
from mcp.shared.exceptions import MCPError

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


async def list_tools(ctx, params):
    if params is not None and params.cursor == "2":
        return types.ListToolsResult(tools=[types.Tool(name="second", input_schema={"type": "object"})])
    tool = types.Tool(
        name="double",
        title="Double",
        description="Twice a number",
        input_schema=SCHEMA,
        annotations=types.ToolAnnotations(read_only_hint=True),
    )
    return types.ListToolsResult(tools=[tool], next_cursor="2")


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    if params.name == "second":
        await ctx.session.send_progress_notification(ctx.meta["progress_token"], 1, 2, "half")
        image = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
        return types.CallToolResult(content=[image], is_error=True)
    if "a" not in arguments:
        raise MCPError(code=types.INVALID_PARAMS, message="a is missing", data={"name": "a"})
    await asyncio.sleep(0)
    found = {"double": 2 * arguments["a"]}
    content = types.TextContent(type="text", text=str(ctx.lifespan_context))
    return types.CallToolResult(content=[content], structured_content=found)


async def list_resources(ctx, params):
    resource = types.Resource(uri="a://b", name="b", mime_type="text/plain")
    return types.ListResourcesResult(resources=[resource])


async def read_resource(ctx, params):
    if str(params.uri) != "a://b":
        raise MCPError(code=-32002, message="there is none")
    text = types.TextResourceContents(uri=params.uri, text="words", mime_type="text/plain")
    blob = types.BlobResourceContents(uri=params.uri, blob="AAAA")
    return types.ReadResourceResult(contents=[text, blob])


async def list_prompts(ctx, params):
    argument = types.PromptArgument(name="who", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[argument])])


async def get_prompt(ctx, params):
    content = types.TextContent(type="text", text=f"Hello {params.arguments['who']}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def complete(ctx, params):
    values = [params.argument.value + params.ref.name]
    return types.CompleteResult(completion=types.Completion(values=values, total=1, has_more=False))


server = Server(
    "callbacks",
    version="3",
    instructions="read this",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
)


async def main():
    async with stdio_server() as (read_stream, write_stream):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(read_stream, write_stream, options)


if __name__ == "__main__":
    asyncio.run(main())
"""
DECORATORS = """
import asyncio
import sys

server = Server("decorators", version="1")
calls = 0


@server.list_tools()
async def list_tools():
    schema = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
    return [{"name": f"sleep{calls}", "inputSchema": schema}]


@server.call_tool()
async def call_tool(name, arguments):
    global calls
    calls += 1
    print("sleeping")
    await asyncio.sleep(arguments["seconds"])
    return [{"type": "text", "text": name}]


async def main():
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
    print("ended", file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
"""
STEPS: list[tuple[str, Any]] = [
    ("tools/list", {}),
    ("tools/list", {"cursor": "2"}),
    ("tools/call", {"name": "double", "arguments": {"a": 4}}),
    ("tools/call", {"name": "double", "arguments": {"a": 5}, "_meta": {"x": 1}}),
    ("tools/call", {"name": "double"}),
    ("tools/call", {"name": "second", "_meta": {"progressToken": "p"}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "a://b"}),
    ("resources/read", {"uri": "a://c"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"who": "Ada"}}),
    ("prompts/get", {"name": "greet", "arguments": {}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "A"}},
    ),
    ("ping", None),
]


def program(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def conversation(server: Process) -> list[Any]:
    """What a server answers to the steps, without the ids; notifications included."""
    heard: list[Any] = [server.initialize("2025-06-18")]
    for method, params in STEPS:
        id = server.ask(method, params)
        while True:
            message = server.answer()
            message.pop("jsonrpc")
            if message.pop("id", None) == id:
                heard.append(message)
                break
            heard.append(message)
    server.close_stdin()
    heard.append(server.wait())
    return heard


@pytest.mark.long
def test_a_program_with_callbacks_answers_as_on_the_official_sdk() -> None:
    pytest.importorskip("mcp_types")
    answers = []
    for imports in (OFFICIAL, SWAPPED):
        with serve(command=program(imports + CALLBACKS)) as server:
            answers.append(conversation(server))
    theirs, ours = answers
    assert ours == theirs
    assert len(ours) == len(STEPS) + 3  # and the handshake, a report of progress, the exit code


def test_the_official_client_calls_it() -> None:
    mcp = pytest.importorskip("mcp")

    async def talk() -> Any:
        parameters = mcp.StdioServerParameters(command=sys.executable, args=["-c", SWAPPED + CALLBACKS])
        async with mcp.stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            result = await session.call_tool("double", {"a": 21})
            return [tool.name for tool in tools.tools], result.structured_content

    assert asyncio.run(asyncio.wait_for(talk(), 60)) == (["double"], {"double": 42})


def test_lists_change_and_prints_do_not_reach_the_client() -> None:
    with serve(command=program(SWAPPED + DECORATORS)) as server:
        server.initialize()
        for number in range(3):
            (listed,) = server.request("tools/list")["result"]["tools"]
            assert listed["name"] == f"sleep{number}"
            call = {"name": listed["name"], "arguments": {"seconds": 0.001}}
            assert server.request("tools/call", call)["result"]["content"][0]["text"] == listed["name"]
        server.close_stdin()
        assert server.rest() == b""
        assert server.wait() == 0
        assert "sleeping" in server.stderr
        assert "ended" in server.stderr


def test_a_program_may_have_redirected_standard_output() -> None:
    redirected = """
import os

original = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
"""
    source = DECORATORS.replace("stdio_server()", "stdio_server(stdout=original)")
    source = source.replace('print("ended"', 'print("noise", flush=True)\n    print("ended"')
    with serve(command=program(SWAPPED + redirected + source)) as server:
        server.initialize()
        assert server.request("tools/list")["result"]["tools"][0]["name"] == "sleep0"
        server.close_stdin()
        assert server.rest() == b""
        assert server.wait() == 0
        assert "noise" in server.stderr


def test_a_signal_ends_it_as_it_ends_the_sdks() -> None:
    with serve(command=program(SWAPPED + DECORATORS)) as server:
        server.initialize()
        server.ask("tools/call", {"name": "sleep0", "arguments": {"seconds": 60}})
        server.request("ping")
        server.signal(signal.SIGTERM)
        assert server.wait() == -signal.SIGTERM


def test_the_file_is_served_by_the_command_line_too(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(SWAPPED + DECORATORS)
    with serve(str(path)) as server:
        server.initialize("2025-11-25")
        call = {"name": "sleep0", "arguments": {"seconds": 0}}
        assert server.request("tools/call", call)["result"]["content"][0]["text"] == "sleep0"
        refused = server.request("tools/call", {"name": "sleep0", "arguments": {"seconds": "x"}})["result"]
        assert refused["isError"] is True
        server.close_stdin()
        assert server.wait() == 0


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_it_is_served_over_http(version: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SWAPPED + DECORATORS)

    async def talk(url: str) -> list[str]:
        async with Client(url, version=version) as client:
            names = []
            for _ in range(3):
                (tool,) = await client.list_tools()
                names.append((await client.call_tool(tool["name"], {"seconds": 0})).text)
            return names

    with HttpProcess("serve", "server.py", "--http", "127.0.0.1:0", "--no-auth", folder=tmp_path) as server:
        names = asyncio.run(asyncio.wait_for(talk(f"http://127.0.0.1:{server.port}/mcp"), 60))
        assert names == ["sleep0", "sleep1", "sleep2"]
        assert server.stop() == 0


def test_the_sdk_is_not_imported_by_a_file_that_does_not() -> None:
    source = SWAPPED + DECORATORS.replace("asyncio.run(main())", "print(sorted(sys.modules))")
    printed = subprocess.run(program(source), capture_output=True, text=True, timeout=60, check=True).stdout
    loaded = set(json.loads(printed.replace("'", '"')))
    assert not loaded & {"mcp", "mcp_types", "pydantic", "anyio", "jsonschema", "jsonschema_rs", "starlette"}


@pytest.mark.long
def test_a_session_in_memory_is_served_over_the_sdks_streams() -> None:
    pytest.importorskip("mcp_types")
    source = (
        SWAPPED
        + CALLBACKS.replace("asyncio.run(main())", "asyncio.run(in_memory())")
        + """
    raise SystemExit(0)
"""
    )
    in_memory = """
async def in_memory():
    import anyio
    from mcp import ClientSession

    to_server, from_client = anyio.create_memory_object_stream(8)
    to_client, from_server = anyio.create_memory_object_stream(8)
    options = server.create_initialization_options()
    running = asyncio.ensure_future(server.run(from_client, to_client, options))
    async with ClientSession(from_server, to_server) as session:
        await session.initialize()
        result = await session.call_tool("double", {"a": 2})
        print(result.structured_content, (await session.list_prompts()).prompts[0].name)
    await asyncio.wait_for(running, 50)
    print("ended")
"""
    ended = subprocess.run(
        program(in_memory + source), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "{'double': 4} greet\nended\n", ended.stderr
