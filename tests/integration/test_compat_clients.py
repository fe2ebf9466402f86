"""Clients written for FastMCP or the official SDK, with their import changed, before a server over stdio, in
memory and over HTTP. The SDK's own client runs the same program, and both must say the same."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.remote_server import TOKEN, Remote

from fastrpc import compat
from fastrpc.compat.models import Model
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import LATEST_LEGACY, MODERN

SERVER = '''
import asyncio
import os
from dataclasses import dataclass

from fastrpc.compat import Context, FastMCP, Image, ToolError

mcp = FastMCP("shop", instructions="Ask for prices.", version="1.5", list_page_size=4)

@dataclass
class Price:
    amount: int
    currency: str = "EUR"

@dataclass
class Colour:
    colour: str

@mcp.tool
def price(name: str) -> Price:
    """The price of a thing."""
    return Price(len(name))

@mcp.tool
def fail() -> str:
    """Fails."""
    raise ToolError("no luck")

@mcp.tool
def picture() -> Image:
    """A picture."""
    return Image(data=b"abc", format="png")

@mcp.tool
async def steps(ctx: Context) -> str:
    """Reports and logs."""
    await ctx.report_progress(1, 2, "half")
    await ctx.info("careful")
    await ctx.report_progress(2, 2)
    return "done"

@mcp.tool
async def choose(ctx: Context) -> str:
    """Asks the user."""
    answer = await ctx.elicit("Which colour?", schema=Colour)
    return answer.data.colour if answer.action == "accept" else answer.action

@mcp.tool
async def think(ctx: Context) -> str:
    """Asks the model."""
    return (await ctx.sample("Say hello")).text

@mcp.tool
async def places(ctx: Context) -> list[str]:
    """Asks for the roots."""
    return [str(root.uri) for root in await ctx.list_roots()]

@mcp.tool
async def wait() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return "never"

@mcp.tool
def variables() -> list[str]:
    """Names of variables."""
    return sorted(name for name in os.environ if name in ("HOME", "GIVEN", "KEPT_BACK"))

@mcp.tool
def process() -> int:
    """Its id."""
    return os.getpid()

@mcp.tool
async def change(ctx: Context) -> str:
    """Tells of a change."""
    await ctx.session.send_tool_list_changed()
    return "changed"

@mcp.resource("docs://guide")
def guide() -> str:
    """A guide."""
    return "read me"

@mcp.resource("docs://{page}/raw")
def page(page: str) -> str:
    """A page."""
    return page

@mcp.prompt
def review(code: str, language: str = "python") -> str:
    """Reviews."""
    return f"Review {code}"

@mcp.completion()
async def complete(ref, argument, context):
    return [name for name in ("perl", "python") if name.startswith(argument.value)]

if __name__ == "__main__":
    mcp.run()
'''

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
            await asyncio.sleep(0.2)
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
    path = tmp_path / "shop.py"
    path.write_text(SERVER)
    return path


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 60))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


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


def test_a_program_for_the_official_session_says_the_same_on_ours(tmp_path: Path, script: Path) -> None:
    pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
    expected = said_by(OFFICIAL, tmp_path, script)
    assert ["error", -32001] in expected
    assert ["log", "info", "careful"] in expected
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
            assert MODERN in (await session.discover()).supported_versions
            assert session.protocol_version == MODERN
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


# --- FastMCP's client ------------------------------------------------------------------------------------


def in_memory() -> compat.FastMCP:
    shop = ModuleType("shop_in_memory")
    sys.modules[shop.__name__] = shop  # where dataclasses look up their annotations
    exec(SERVER, vars(shop))
    server: compat.FastMCP = vars(shop)["mcp"]
    return server


VALUES = compat.FastMCP("values")


@VALUES.tool
def number() -> int:
    return 3


@VALUES.tool
def text() -> str:
    return "x"


@VALUES.tool
def mapping() -> dict[str, int]:
    return {"a": 1}


@VALUES.tool
def day() -> datetime.date:
    return datetime.date(2024, 1, 2)


@VALUES.tool
def pair() -> tuple[int, str]:
    return 1, "a"


@VALUES.tool
def numbers() -> list[int]:
    return [1, 2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 3),
        ("text", "x"),
        ("mapping", {"a": 1}),
        ("day", datetime.date(2024, 1, 2)),
        ("pair", (1, "a")),
        ("numbers", [1, 2]),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_data_is_what_the_tool_returned(name: str, value: Any, mode: str) -> None:
    async def conversation() -> None:
        async with compat.Client(VALUES, mode=mode) as client:
            assert (await client.call_tool(name)).data == value

    run(conversation())


def test_data_of_an_object_has_attributes() -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory()) as client:
            result = await client.call_tool("price", {"name": "tea"})
            assert (result.data.amount, result.data.currency) == (3, "EUR")
            assert result.structured_content == {"amount": 3, "currency": "EUR"}
            assert result.content[0].type == "text"
            assert not result.is_error

    run(conversation())


def test_a_tool_that_fails_raises_unless_that_is_not_wished() -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory()) as client:
            with pytest.raises(ToolError, match=r"^no luck$"):
                await client.call_tool("fail")
            result = await client.call_tool("fail", raise_on_error=False)
            assert result.is_error
            assert result.content[0].text == "no luck"
            assert result.data is None
            assert (await client.call_tool_mcp("fail", {})).content[0].text == "no luck"
            with pytest.raises(compat.McpError, match="Unknown tool"):
                await client.call_tool("nothing")
            with pytest.raises(compat.McpError):
                await client.call_tool("wait", timeout=0.1)

    run(conversation())


def test_lists_are_whole_and_their_entries_have_attributes() -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory()) as client:
            tools = await client.list_tools()
            assert len(tools) > 8
            assert tools[0].input_schema["required"] == ["name"]
            assert len((await client.list_tools_mcp()).tools) == 4
            with pytest.raises(RuntimeError, match="more than 1 pages"):
                await client.list_tools(max_pages=1)
            assert [str(each.uri) for each in await client.list_resources()] == ["docs://guide"]
            templates = await client.list_resource_templates()
            assert [each.uri_template for each in templates] == ["docs://{page}/raw"]
            assert [each.name for each in await client.list_prompts()] == ["review"]
            assert (await client.read_resource("docs://7/raw"))[0].text == "7"
            got = await client.get_prompt("review", {"code": {"a": 1}})
            assert got.messages[0].content.text == 'Review {"a": 1}'
            ref = {"type": "ref/prompt", "name": "review"}
            assert (await client.complete(ref, {"name": "language", "value": "py"})).values == ["python"]
            assert await client.ping() is True

    run(conversation())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_handlers_answer_the_server_and_hear_of_it(mode: str) -> None:
    heard: list[Any] = []

    async def elicit(message: str, wanted: Any, params: Any, context: Any) -> Any:
        heard.append(message)
        return wanted(colour="red")

    def sample(messages: Any, params: Any, context: Any) -> str:
        return f"heard {messages[0].content.text}"

    async def log(message: Any) -> None:
        heard.append((message.level, message.data))

    async def progress(value: float, total: float | None, text: str | None) -> None:
        heard.append((value, total, text))

    class Changes(compat.MessageHandler):
        async def on_tool_list_changed(self, message: Any) -> None:
            heard.append(message.method)

    async def conversation() -> None:
        client = compat.Client(
            in_memory(),
            mode=mode,
            roots=["file:///here"],
            elicitation_handler=elicit,
            sampling_handler=sample,
            log_handler=log,
            progress_handler=progress,
            message_handler=Changes(),
        )
        async with client:
            assert (await client.call_tool("choose")).data == "red"
            assert (await client.call_tool("think")).data == "heard Say hello"
            assert (await client.call_tool("places")).data == ["file:///here"]
            await client.set_logging_level("info")
            await client.call_tool("steps")
            assert {"Which colour?", ("info", "careful"), (1, 2, "half"), (2, 2, None)} <= set(heard)
            if mode == "legacy":  # later versions tell of changes where somebody listens
                await client.call_tool("change")
                await until(lambda: "notifications/tools/list_changed" in heard)

    run(conversation())


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"colour": "blue"}, "blue"),
        (compat.ElicitResult("accept", {"colour": "blue"}), "blue"),
        (compat.ElicitResult("decline"), "decline"),
        (compat.ElicitResult("cancel"), "cancel"),
    ],
)
def test_an_elicitation_is_answered_with_a_value_or_an_action(answer: Any, outcome: str) -> None:
    async def elicit(message: str, wanted: Any, params: Any, context: Any) -> Any:
        return answer

    async def conversation() -> None:
        async with compat.Client(in_memory(), elicitation_handler=elicit) as client:
            assert (await client.call_tool("choose")).data == outcome

    run(conversation())


def test_a_handler_that_fails_is_an_error_for_the_server_alone() -> None:
    def sample(messages: Any, params: Any, context: Any) -> str:
        raise ValueError("no model")

    async def conversation() -> None:
        async with compat.Client(in_memory(), sampling_handler=sample, mode="legacy") as client:
            waiting = asyncio.create_task(client.call_tool("steps"))
            with pytest.raises(ToolError, match="no model"):
                await client.call_tool("think")
            assert (await waiting).data == "done"

    run(conversation())


def test_the_connection_lasts_as_long_as_the_last_block() -> None:
    async def conversation() -> None:
        client = compat.Client(in_memory())
        with pytest.raises(RuntimeError, match="not connected"):
            await client.call_tool("price", {"name": "tea"})
        async with client:
            async with client:
                session = client.session
            assert client.session is session
            assert client.is_connected()
            other = client.new()
            assert not other.is_connected()
            async with other:
                assert other.session is not session
            assert (await client.call_tool("price", {"name": "tea"})).data.amount == 3
        assert not client.is_connected()
        assert client.initialize_result is None
        async with client:
            assert client.initialize_result.server_info.name == "shop"
            await client.close()
            assert not client.is_connected()

    run(conversation())


@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", LATEST_LEGACY), (MODERN, MODERN)])
def test_the_mode_decides_about_the_version(mode: str, version: str) -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory(), mode=mode) as client:
            assert client.protocol_version == client.initialize_result.protocol_version == version
            assert client.server_info.version == "1.5"
            assert client.instructions == "Ask for prices."
            assert client.server_capabilities.tools.list_changed

    run(conversation())


def test_a_client_that_does_not_begin_by_itself_is_told_to() -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory(), auto_initialize=False) as client:
            assert client.protocol_version is None
            assert (await client.initialize()).server_info.name == "shop"

    run(conversation())


def test_a_script_is_started_with_few_of_our_variables(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT_BACK", "a secret")
    monkeypatch.setenv("HOME", os.environ.get("HOME", "/"))

    async def conversation() -> None:
        for target in (script, str(script)):
            async with compat.Client(target) as client:
                assert (await client.call_tool("variables")).data == ["HOME"]
        config = {
            "mcpServers": {"one": {"command": sys.executable, "args": [str(script)], "env": {"GIVEN": "1"}}}
        }
        async with compat.Client(config) as client:
            assert (await client.call_tool("variables")).data == ["GIVEN", "HOME"]

    run(conversation())


def test_several_configured_servers_have_their_names_before_their_tools(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_BACK", "a secret")
    entry = {"command": sys.executable, "args": [str(script)]}

    async def conversation() -> None:
        other = {**entry, "env": {"GIVEN": "1"}}
        async with compat.Client({"mcpServers": {"one": entry, "two": other}}) as client:
            names = {tool.name for tool in await client.list_tools()}
            assert {"one_price", "two_price"} <= names
            assert (await client.call_tool("two_price", {"name": "tea"})).data.amount == 3
            assert "KEPT_BACK" not in (await client.call_tool("one_variables")).data
            assert "GIVEN" in (await client.call_tool("two_variables")).data

    run(conversation())


def test_what_is_no_server_is_refused(tmp_path: Path) -> None:
    class Foreign:
        def list_tools(self) -> None: ...

    for wrong in (tmp_path / "missing.py", "ftp://x", {"mcpServers": {}}, {"mcpServers": {"a": {}}}, 3):
        with pytest.raises(ValueError, match="expected"):
            compat.Client(wrong)
    with pytest.raises(compat.NotOffered, match="import FastMCP"):
        compat.Client(Foreign())
    with pytest.raises(compat.NotOffered, match="bearer token"):
        compat.Client("http://127.0.0.1:1/mcp", auth="oauth")
    with pytest.raises(ValueError, match="mode"):
        compat.Client(VALUES, mode="2024-11-05")


def test_a_server_that_cannot_be_reached_is_a_runtime_error(tmp_path: Path) -> None:
    path = tmp_path / "ends.py"
    path.write_text("raise SystemExit('no configuration')")

    async def conversation() -> None:
        with pytest.raises(RuntimeError, match=r"(?s)failed to connect.*no configuration"):
            async with compat.Client(path):
                pass

    run(conversation())


# --- over HTTP -------------------------------------------------------------------------------------------


def test_a_url_is_reached_by_each_of_the_functions(shared_remote: Remote) -> None:
    pytest.importorskip("httpx", reason="the client's side of HTTP stands on it: pip install httpx")
    import httpx

    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = shared_remote.url

    async def added(session: compat.ClientSession) -> Any:
        await session.initialize()
        return (await session.call_tool("add", {"a": 1})).content[0].text

    async def conversation() -> None:
        async with (
            compat.streamablehttp_client(url, headers) as (read, write, _),
            compat.ClientSession(read, write) as session,
        ):
            assert await added(session) == "3"
        async with (
            httpx.AsyncClient(headers=headers) as http,
            compat.streamable_http_client(url, http_client=http) as streams,
            compat.ClientSession(*streams) as session,
        ):
            assert await added(session) == "3"
        async with (
            compat.sse_client(url.replace("/mcp", "/sse"), headers) as streams,
            compat.ClientSession(*streams) as session,
        ):
            assert await added(session) == "3"
        async with compat.Client(url, auth=TOKEN) as client:
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "3"
        with pytest.raises(RuntimeError, match="failed to connect"):
            async with compat.Client(url, auth="wrong"):
                pass

    run(conversation())
