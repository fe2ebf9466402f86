"""Clients written for FastMCP, with their import changed, before a server over stdio, in memory and over
HTTP; and what leads to a server at a URL. docs/compat.md says with which versions they were compared."""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.compat_shop import in_memory, run, script_in
from support.remote_server import TOKEN, Remote
from support.waiting import until

from fastrpc import compat
from fastrpc.compat import fastmcp
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return script_in(tmp_path)


# --- FastMCP's client ------------------------------------------------------------------------------------


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
            assert got.messages[0].content.text == 'Review {"a":1}'
            ref = {"type": "ref/prompt", "name": "review"}
            assert (await client.complete(ref, {"name": "language", "value": "py"})).values == ["python"]
            assert await client.ping() is True

    run(conversation())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_handlers_answer_the_server_and_are_notified_of_it(mode: str) -> None:
    heard: list[Any] = []

    async def elicit(message: str, wanted: Any, params: Any, context: Any) -> Any:
        heard.append(message)
        return wanted(colour="red")

    def sample(messages: Any, params: Any, context: Any) -> str:
        return f"heard {messages[0].content.text}"

    async def log(message: Any) -> None:
        heard.append((message.level, message.data["msg"]))

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


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", STATELESS), ("legacy", LATEST_SESSION_VERSION), (STATELESS, STATELESS)]
)
def test_the_mode_decides_about_the_version(mode: str, version: str) -> None:
    async def conversation() -> None:
        async with compat.Client(in_memory(), mode=mode) as client:
            assert client.protocol_version == client.initialize_result.protocol_version == version
            assert client.server_info.version == "1.5"
            assert client.instructions == "Ask for prices."
            assert client.server_capabilities.tools.list_changed

    run(conversation())


def test_a_client_that_does_not_begin_by_itself_is_asked_to() -> None:
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
        compat.Client("http://127.0.0.1:1/mcp", auth=object())
    with pytest.raises(ValueError, match="mode"):
        compat.Client(VALUES, mode="2024-11-05")


@pytest.mark.parametrize(
    ("option", "value"), [("verify", False), ("prior_discover", {}), ("result_claims", {"x/y": []})]
)
def test_options_that_would_be_ignored_are_refused_in_words(option: str, value: Any) -> None:
    compat.Client(VALUES, **{option: None}, cache=True, input_required_max_rounds=3)
    with pytest.raises(compat.NotOffered, match=f"Client has no {option}; "):
        compat.Client(VALUES, **{option: value})


def test_a_call_as_a_task_is_refused_and_one_that_is_none_is_made() -> None:
    async def conversation() -> None:
        async with compat.Client[fastmcp.FastMCPTransport](VALUES) as client:
            assert client.name.startswith("Client-")
            assert [tool.name for tool in await client.list_tools(cache_mode="refresh")]
            for method in (client.call_tool, client.read_resource, client.get_prompt):
                with pytest.raises(compat.NotOffered, match="has no task; tasks are"):
                    await method("x", task=True, ttl=5)
                with pytest.raises(TypeError, match="tsk"):
                    await method("x", tsk=True)
            assert (await client.call_tool("number", task=False, task_id=None)).data == 3

    run(conversation())


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
    pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")
    httpx = pytest.importorskip("httpx", reason="one function takes its client: pip install httpx")

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


# --- transports as objects -------------------------------------------------------------------------------


def test_transports_lead_to_servers_that_are_started(script: Path, tmp_path: Path) -> None:
    entry = fastmcp.StdioMCPServer(command=sys.executable, args=[str(script)], env={"GIVEN": "1"})
    given = [
        fastmcp.StdioTransport(sys.executable, [str(script)], env={"GIVEN": "1"}, cwd=tmp_path),
        fastmcp.PythonStdioTransport(script, env={"GIVEN": "1"}),
        entry.to_transport(),
        fastmcp.MCPConfig(mcpServers={"one": entry}),
        fastmcp.MCPConfigTransport({"mcpServers": {"one": entry}}),
    ]

    async def conversation() -> None:
        for transport in given:
            async with fastmcp.Client(transport) as client:
                assert (await client.call_tool("price", {"name": "tea"})).data.amount == 3
                assert "GIVEN" in (await client.call_tool("variables")).data
        proxy = fastmcp.create_proxy(given[0])
        async with fastmcp.Client(fastmcp.FastMCPTransport(proxy)) as client:
            assert (await client.call_tool("price", {"name": "tea"})).data.amount == 3

    run(conversation())


def test_transports_lead_to_a_url(shared_remote: Remote) -> None:
    pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")
    url = shared_remote.url
    entry = fastmcp.RemoteMCPServer(url=url, headers={"Authorization": f"Bearer {TOKEN}"})
    given = [
        fastmcp.StreamableHttpTransport(url, headers={"Authorization": f"Bearer {TOKEN}"}),
        fastmcp.StreamableHttpTransport(url, auth=fastmcp.BearerAuth(TOKEN)),
        fastmcp.SSETransport(url.replace("/mcp", "/sse"), auth=TOKEN),
        entry.to_transport(),
        fastmcp.MCPConfig(mcpServers={"one": entry}),
    ]

    async def conversation() -> None:
        for transport in given:
            async with fastmcp.Client(transport) as client:
                assert (await client.call_tool("add", {"a": 1})).content[0].text == "3"

    run(conversation())
    assert TOKEN not in repr(fastmcp.BearerAuth(TOKEN))


def test_commands_are_those_of_their_launchers(tmp_path: Path) -> None:
    uv = fastmcp.UvStdioTransport("serve", ["-v"], True, tmp_path, "3.12", ["a", "b"], tmp_path / "r.txt")
    assert [uv.command, *uv.args] == [
        *("uv", "run", "--python", "3.12", "--with", "a", "--with", "b", "--directory", str(tmp_path)),
        *("--with-requirements", str(tmp_path / "r.txt"), "--module", "serve", "-v"),
    ]
    uvx = fastmcp.UvxStdioTransport("time", ["--utc"], from_package="mcp-server-time")
    assert [uvx.command, *uvx.args] == ["uvx", "--from", "mcp-server-time", "time", "--utc"]
    npx = fastmcp.NpxStdioTransport("@org/server", ["/tmp"])
    assert [npx.command, *npx.args] == ["npx", "--prefer-offline", "@org/server", "/tmp"]
    (tmp_path / "server.js").write_text("")
    node = fastmcp.NodeStdioTransport(tmp_path / "server.js")
    assert [node.command, *node.args] == ["node", str(tmp_path / "server.js")]


def test_a_transport_is_inferred_from_what_a_client_takes(script: Path) -> None:
    found = fastmcp.infer_transport(script)
    assert isinstance(found, fastmcp.StdioTransport)
    assert found.args == [str(script)]
    assert isinstance(fastmcp.infer_transport("https://example.com/mcp"), fastmcp.StreamableHttpTransport)
    assert isinstance(fastmcp.infer_transport("https://example.com/sse"), fastmcp.SSETransport)
    assert isinstance(fastmcp.infer_transport(VALUES), fastmcp.FastMCPTransport)
    assert isinstance(
        fastmcp.infer_transport({"mcpServers": {"a": {"command": "a"}}}), fastmcp.MCPConfigTransport
    )
    assert fastmcp.infer_transport(found) is found


def test_a_transport_refuses_what_it_would_not_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fastmcp.PythonStdioTransport(tmp_path / "missing.py")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(ValueError, match="Python file"):
        fastmcp.PythonStdioTransport(tmp_path / "a.txt")
    with pytest.raises(compat.NotOffered, match="log_file"):
        fastmcp.StdioTransport("a", log_file=tmp_path / "log")
    with pytest.raises(compat.NotOffered, match="SSL_CERT_FILE"):
        fastmcp.StreamableHttpTransport("https://example.com/mcp", verify=False)
    with pytest.raises(ValueError, match="mcpServers: a: expected"):
        fastmcp.MCPConfig(mcpServers={"a": {}})
