"""Programs for the official SDK's `ClientSession`, with their import changed. The SDK's own session runs the
same program, and both must say the same."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.compat_shop import run, script_in

from fastrpc import compat
from fastrpc.compat.models import Model
from fastrpc.protocol.versions import STATELESS

OFFICIAL = """
import mcp.types as types
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
"""
SWAPPED = "from fastrpc.compat import ClientSession, MCPError, StdioServerParameters, stdio_client\n"
SWAPPED_WITH_TYPES = "import mcp.types as types\n" + SWAPPED
SWAPPED_ALONE = "types = None\n" + SWAPPED

PROGRAM = '''
import asyncio, json, sys, warnings

warnings.simplefilter("ignore")
said, heard = [], []

def of(kind, **members):
    """A result for the server: the SDK's, or what is sent for it."""
    return members if types is None else getattr(types, kind).model_validate(members)

async def sample(context, params):
    assert context.session is not None
    text = params.messages[0].content.text
    content = {"type": "text", "text": f"heard {text}"}
    return of("CreateMessageResult", role="assistant", model="m", content=content)

async def elicit(context, params):
    heard.append(["asked", params.message, params.requested_schema["properties"]["colour"]["type"]])
    return of("ElicitResult", action="accept", content={"colour": "red"})

async def roots(context):
    return of("ListRootsResult", roots=[{"uri": "file:///here"}])

async def log(params):
    heard.append(["log", params.level, params.data])

async def message(message):
    if "list_changed" in message.method:
        heard.append(["message", message.method])

async def progress(value, total, text):
    heard.append(["progress", value, total, text])

async def main(path):
    parameters = StdioServerParameters(command=sys.executable, args=[path], env={"GIVEN": "1"})
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(
            read, write, sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=roots,
            logging_callback=log, message_handler=message,
        ) as session:
            begun = await session.initialize()
            say = said.append
            say([begun.protocol_version, begun.server_info.name, begun.server_info.version])
            say([begun.instructions, session.instructions])
            say([begun.capabilities.tools.list_changed, session.server_capabilities.prompts is not None])
            tools, cursor = [], None
            while True:
                page = await session.list_tools(
                    params=None if cursor is None else of("PaginatedRequestParams", cursor=cursor)
                )
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            say([[tool.name, tool.description, tool.input_schema, tool.output_schema] for tool in tools])
            priced = await session.call_tool("price", {"name": "tea"})
            say([priced.content[0].type, priced.content[0].text, priced.structured_content, priced.is_error])
            failed = await session.call_tool("fail", {})
            say([failed.content[0].text, failed.is_error, failed.structured_content])
            drawn = (await session.call_tool("picture")).content[0]
            say([drawn.type, drawn.mime_type, drawn.data, drawn.annotations])
            for name in ("choose", "think", "places", "variables", "change"):
                say([name, (await session.call_tool(name, {})).content[0].text])
            await session.set_logging_level("info")
            done = await session.call_tool("steps", {}, progress_callback=progress)
            say(done.content[0].text)
            for request in (
                session.call_tool("wait", {}, read_timeout_seconds=0.2),
                session.read_resource("docs://nothing"),
                session.get_prompt("nothing"),
            ):
                try:
                    await request
                except MCPError as error:
                    say(["error", error.error.code])
            resources = (await session.list_resources()).resources
            say([[str(each.uri), each.name, each.mime_type, each.size] for each in resources])
            templates = (await session.list_resource_templates()).resource_templates
            say([[each.uri_template, each.name] for each in templates])
            content = (await session.read_resource("docs://guide")).contents[0]
            say([str(content.uri), content.text, content.mime_type])
            prompts = (await session.list_prompts()).prompts
            say([[each.name, [[part.name, part.required] for part in each.arguments]] for each in prompts])
            got = await session.get_prompt("review", {"code": "x"})
            say([got.messages[0].role, got.messages[0].content.text])
            ref = of("PromptReference", type="ref/prompt", name="review")
            found = await session.complete(ref, {"name": "language", "value": "pe"})
            say([found.completion.values])
            say(type(await session.send_ping()).__name__ if types else "EmptyResult")
    print(json.dumps([*said, *sorted(heard, key=json.dumps)]))

asyncio.run(main(sys.argv[1]))
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return script_in(tmp_path)


def said_by(imports: str, folder: Path, script: Path) -> Any:
    program = folder / "program.py"
    program.write_text(imports + PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(program), str(script)],
        capture_output=True,
        text=True,
        timeout=90,
        env={**os.environ, "KEPT_BACK": "a secret"},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


# --- the official SDK's session --------------------------------------------------------------------------


@pytest.mark.long
def test_a_program_for_the_official_session_says_the_same_on_ours(tmp_path: Path, script: Path) -> None:
    pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
    expected = said_by(OFFICIAL, tmp_path, script)
    assert ["error", -32001] in expected
    assert ["log", "info", {"msg": "careful", "extra": None}] in expected
    assert said_by(SWAPPED_WITH_TYPES, tmp_path, script) == expected
    assert said_by(SWAPPED_ALONE, tmp_path, script) == expected


def test_a_client_imports_neither_the_server_nor_pydantic(tmp_path: Path, script: Path) -> None:
    last = (
        "import sys\nassert not {'mcp', 'mcp_types', 'pydantic', 'fastrpc.server'} & set(sys.modules), "
        "'too much is imported'\n"
    )
    program = tmp_path / "program.py"
    program.write_text(SWAPPED_ALONE + PROGRAM + last)
    ran = subprocess.run(
        [sys.executable, str(program), str(script)], capture_output=True, text=True, timeout=90
    )
    assert ran.returncode == 0, ran.stderr


def test_the_server_has_ended_when_its_streams_are_left(script: Path) -> None:
    async def conversation() -> int:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(script)])
        async with compat.stdio_client(parameters) as (read, write):
            session = compat.ClientSession(read, write)
            await session.initialize()
            return int((await session.call_tool("process")).content[0].text)

    with pytest.raises(ProcessLookupError):
        os.kill(run(conversation()), 0)


def test_a_session_that_discovers_speaks_the_latest_version(script: Path) -> None:
    async def conversation() -> None:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(script)])
        async with compat.stdio_client(parameters) as streams, compat.ClientSession(*streams) as session:
            with pytest.raises(RuntimeError, match="initialize"):
                await session.list_tools()
            assert STATELESS in (await session.discover()).supported_versions
            assert session.protocol_version == STATELESS
            assert (await session.call_tool("price", {"name": "tea"})).structured_content["amount"] == 3

    run(conversation())


def test_a_session_takes_time_limits_and_cursors_as_the_sdk_did_up_to_1(script: Path) -> None:
    async def conversation() -> None:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(script)])
        async with (
            compat.stdio_client(parameters) as (read, write),
            compat.ClientSession(read, write, datetime.timedelta(seconds=30)) as session,
        ):
            await session.initialize()
            page = await session.list_tools()
            assert len((await session.list_tools(page.next_cursor)).tools) == 4
            with pytest.raises(compat.McpError, match="no answer within"):
                await session.call_tool("wait", {}, datetime.timedelta(milliseconds=200))

    run(conversation())


def test_the_end_of_the_connection_is_the_sdks_error(script: Path) -> None:
    async def conversation() -> None:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(script)])
        async with compat.stdio_client(parameters) as streams, compat.ClientSession(*streams) as session:
            await session.initialize()
            waiting = asyncio.create_task(session.call_tool("wait"))
            os.kill(int((await session.call_tool("process")).content[0].text), 9)
            with pytest.raises(compat.MCPError) as caught:
                await waiting
            assert caught.value.error.code == -32000

    run(conversation())


def test_errors_are_also_of_the_sdks_class_where_it_is_imported(script: Path) -> None:
    exceptions = pytest.importorskip("mcp.shared.exceptions", reason="pip install mcp")

    async def conversation() -> None:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(script)])
        async with compat.stdio_client(parameters) as streams, compat.ClientSession(*streams) as session:
            await session.initialize()
            for kind in (exceptions.MCPError, compat.McpError):
                with pytest.raises(kind) as caught:
                    await session.get_prompt("nothing")
                assert (caught.value.code, caught.value.error.code) == (-32602, -32602)
                assert str(caught.value) == caught.value.message

    run(conversation())


def test_what_cannot_be_connected_to_is_refused_where_it_is_named() -> None:
    async def conversation() -> None:
        with pytest.raises(FileNotFoundError, match="no-such-program"):
            async with compat.stdio_client(compat.StdioServerParameters(command="no-such-program")):
                pass
        with pytest.raises(compat.NotOffered, match="stdio_client"):
            compat.ClientSession(SimpleNamespace(), SimpleNamespace())
        with pytest.raises(compat.NotOffered, match="errlog"):
            async with compat.stdio_client(
                compat.StdioServerParameters(command=sys.executable), SimpleNamespace(name="a.log")
            ):
                pass

    run(conversation())


def test_a_result_that_breaks_its_schema_is_a_runtime_error(tmp_path: Path) -> None:
    path = tmp_path / "liar.py"
    path.write_text(LIAR)

    async def conversation() -> None:
        parameters = compat.StdioServerParameters(command=sys.executable, args=[str(path)])
        async with compat.stdio_client(parameters) as streams, compat.ClientSession(*streams) as session:
            await session.initialize()
            assert (await session.call_tool("lie")).content[0].text == "{}"
            await session.list_tools()
            with pytest.raises(RuntimeError, match="Invalid structured content"):
                await session.call_tool("lie")

    run(conversation())


LIAR = """
import json, sys

TOOL = {"name": "lie", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
INFO = {"name": "liar", "version": "1"}
BEGUN = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
RESULTS = {
    "initialize": BEGUN,
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "{}"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]}
        print(json.dumps(answer), flush=True)
"""


def test_objects_know_both_spellings_and_what_may_be_missing() -> None:
    tool = Model({"name": "a", "inputSchema": {"properties": {"b": {}}}, "_meta": {"c": 1}})
    assert tool.inputSchema == tool.input_schema == {"properties": {"b": {}}}
    assert (tool.meta, tool.description, tool.output_schema) == ({"c": 1}, None, None)
    assert tool == Model(tool.model_dump())
    assert json.loads(tool.model_dump_json()) == tool.model_dump()
    assert not hasattr(tool, "text")
    result = Model({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a_b": 1}})
    assert result.content[0].text == "x"
    assert result.isError is result.is_error is False
    assert result.structured_content == {"a_b": 1}
