"""The Context of swapped servers: the request, the session, what is sent to the client; and errors.

The expected values are those that the same functions gave on FastMCP 2.14 and 4.1, and on the SDK 1.30 and
2.3, unless a test says that they differ.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.in_memory import ask, refusal, with_client

from fastrpc.compat import fastmcp as fm
from fastrpc.compat import mcp as sdk
from fastrpc.compat.fastmcp import Context, FastMCP
from fastrpc.compat.http import request as http_request
from fastrpc.compat.mcp import MCPServer
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

ERAS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
SDK_1 = sdk.FastMCP


def added(function: Any, kind: Any = FastMCP) -> Any:
    function.__annotations__["ctx"] = Context
    app = kind("demo")
    app.add_tool(function, name="tool")
    return app


def called(function: Any, kind: Any = FastMCP, version: str = LATEST_SESSION_VERSION, **client: Any) -> Any:
    app = added(function, kind)
    return with_client(app, lambda client: client.call("tool"), version, **client)


def value_of(function: Any, kind: Any = FastMCP, version: str = LATEST_SESSION_VERSION, **client: Any) -> str:
    result = called(function, kind, version, **client)
    assert not result.is_error, result.text
    return str(result.text)


# ------------------------------------------------------------------------------------ the request


def test_the_request_over_stdio() -> None:
    async def tool(ctx: Any) -> str:
        request = ctx.request_context
        await ctx.close_sse_stream()
        await ctx.close_standalone_sse_stream()
        found = (ctx.transport, ctx.headers, request.request, request.method, request.protocol_version)
        return repr((*found, ctx.is_background_task, ctx.task_id, ctx.origin_request_id == ctx.request_id))

    expected = ("stdio", None, None, "tools/call", LATEST_SESSION_VERSION, False, None, True)
    assert value_of(tool) == repr(expected)


def test_the_request_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(b"x-tenant", b"7"), (b"mcp-session-id", b"s1")],
        "fastrpc.transport": "streamable-http",
    }
    monkeypatch.setitem(sys.modules, http_request._HOME, SimpleNamespace(current_request=lambda: scope))  # type: ignore[arg-type]

    async def tool(ctx: Any) -> str:
        request = ctx.request_context.request
        headers = request.headers if hasattr(request, "headers") else ctx.headers
        return f"{ctx.transport} {ctx.session_id} {headers['x-tenant']} {ctx.headers['x-tenant']}"

    assert value_of(tool) == "streamable-http s1 7 7"


def test_members_of_meta_are_attributes_and_items() -> None:
    async def tool(ctx: Any) -> str:
        meta = ctx.request_context.meta
        return repr((meta.tenant, meta["tenant"], meta.get("other", 1), meta.progressToken, "tenant" in meta))

    app = added(tool)
    params = {"name": "tool", "arguments": {}, "_meta": {"tenant": "t7"}}
    result = ask(app, "tools/call", params, LATEST_SESSION_VERSION)
    assert result["content"][0]["text"] == "('t7', 't7', 1, None, True)"


def test_meta_is_a_dict_as_in_sdk_2_and_has_a_models_attributes() -> None:
    async def tool(ctx: Any) -> str:
        meta = ctx.request_context.meta
        return repr((dict(meta), {**meta}, meta.model_dump(), meta.model_extra, bool(meta)))

    found = {"tenant": "t7"}
    for given in (found, {}):
        params = {"name": "tool", "arguments": {}, "_meta": given}
        text = ask(added(tool), "tools/call", params, LATEST_SESSION_VERSION)["content"][0]["text"]
        assert text == repr((given, given, given, given, bool(given)))


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_the_sdks_client_sends_meta_that_the_servers_context_has(version: str) -> None:
    server = MCPServer("meta")

    def seen(ctx: Any) -> str:
        meta = ctx.request_context.meta
        own = {name: meta[name] for name in sorted(meta or ()) if not name.startswith("io.modelcontext")}
        return "none" if meta is None else str(own)

    @server.tool()
    async def act(ctx: sdk.Context) -> str:
        return seen(ctx)

    @server.resource("data://{name}")
    def data(name: str, ctx: sdk.Context) -> str:
        return seen(ctx)

    @server.prompt()
    def say(ctx: sdk.Context) -> str:
        return seen(ctx)

    async def converse() -> list[str]:
        meta, texts = {"example.com/own": 1}, []
        async with sdk.Client(server, mode="auto" if version == STATELESS else "legacy") as client:
            texts.append((await client.call_tool("act", {}, meta=meta)).content[0].text)
            texts.append((await client.read_resource("data://x", meta=meta)).contents[0].text)
            texts.append((await client.get_prompt("say", {}, meta=meta)).messages[0].content.text)
            texts.append((await client.call_tool("act", {})).content[0].text)

            async def report(*values: Any) -> None:
                return None

            result = await client.call_tool("act", {}, progress_callback=report)
            texts.append(result.content[0].text)
        return texts

    found = asyncio.run(asyncio.wait_for(converse(), 60))
    assert found[:3] == [str({"example.com/own": 1})] * 3
    assert found[3] == ("{}" if version == STATELESS else "none")
    assert found[4].startswith("{'progress_token': ")


def test_the_session_id_is_one_for_a_connection() -> None:
    async def tool(ctx: Any) -> str:
        return str(ctx.session_id)

    app = added(tool)

    async def converse(client: Any) -> set[str]:
        return {(await client.call("tool")).text for _ in range(3)}

    first, second = (with_client(app, converse) for _ in range(2))
    assert len(first) == len(second) == 1
    assert first != second


def test_what_the_client_has_said_of_itself() -> None:
    async def tool(ctx: Any) -> str:
        session = ctx.session
        params = session.client_params
        info = getattr(params, "clientInfo", None) or params.client_info
        asked = {"roots": {}}
        found = (
            info.name != "",
            session.check_client_capability(asked),
            session.check_client_capability({"sampling": {"tools": {}}}),
            session.client_capabilities.sampling is None
            if hasattr(session.client_capabilities, "model_fields_set")
            else "sampling" not in session.client_capabilities,
            session.protocol_version,
            ctx.client_supports_extension("io.modelcontextprotocol/ui"),
        )
        return repr(found)

    assert value_of(tool, roots=["file:///a"]) == repr(
        (True, True, False, True, LATEST_SESSION_VERSION, False)
    )


# ------------------------------------------------------------------------------------ notifications


def test_a_log_message_is_in_the_originals_form() -> None:
    async def tool(ctx: Any) -> str:
        await ctx.info("hello")
        await ctx.warning("look", logger_name="x", extra={"a": 1})
        await ctx.session.send_log_message(level="error", data={"b": 2}, logger="y", related_request_id=1)
        return ""

    def logs(kind: Any) -> Any:
        async def converse(client: Any) -> Any:
            await client.call("tool")
            return [log["data"] for log in client.logs]

        return with_client(added(tool, kind), converse, log_level="debug")

    extra = {"msg": "look", "extra": {"a": 1}}
    assert logs(FastMCP) == [{"msg": "hello", "extra": None}, extra, {"b": 2}]
    assert logs(SDK_1) == ["hello", extra, {"b": 2}]


def test_notifications_of_the_sdks_types() -> None:
    class Notification:
        def __init__(self, method: str, **params: Any) -> None:
            self.message = {"method": method, "params": params}

        def model_dump(self, **options: Any) -> Any:
            return self.message

    async def tool(ctx: Any) -> str:
        await ctx.send_notification(Notification("notifications/tools/list_changed"))
        await ctx.session.send_notification(
            Notification("notifications/progress", progressToken=1, progress=2, total=4), 1
        )
        await ctx.session.send_notification(Notification("notifications/message", level="info", data="x"))
        await ctx.session.send_notification(Notification("notifications/resources/updated", uri="r://a"))
        await ctx.session.send_elicit_complete("e1")
        await ctx.session.send_progress_notification(1, 3.0, 4.0, "nearly", related_request_id="1")
        return ""

    async def converse(client: Any) -> Any:
        reports: list[Any] = []
        await client.call("tool", on_progress=lambda *report: reports.append(report))
        return len(reports), [log["data"] for log in client.logs]

    assert with_client(added(tool), converse, log_level="debug") == (2, ["x"])


# ------------------------------------------------------------------------------------ the server's own


def test_the_servers_resources_and_prompts() -> None:
    async def tool(ctx: Any) -> str:
        (resource,) = await ctx.list_resources()
        (prompt,) = await ctx.list_prompts()
        got = await ctx.get_prompt("review", {"code": "x"})
        read = await ctx.read_resource("r://a")
        return f"{resource.name} {prompt.arguments[0].name} {got.messages[0].content.text} {read[0].content}"

    app = added(tool)

    @app.resource("r://a")
    def page() -> str:
        return "the page"

    @app.prompt
    def review(code: str) -> str:
        return f"look at {code}"

    assert with_client(app, lambda client: client.call("tool")).text == "page code look at x the page"


def test_state_is_kept_and_deleted() -> None:
    async def tool(ctx: Any) -> str:
        before = await ctx.get_state("a")
        ctx.set_state("a", 1)
        now = await ctx.get_state("a")
        await ctx.delete_state("a")
        return repr((before, now, await ctx.get_state("a")))

    assert value_of(tool) == "(None, 1, None)"


# ------------------------------------------------------------------------------------ requests to the client


@ERAS
def test_a_root_without_a_name(version: str) -> None:
    async def tool(ctx: Any) -> str:
        (root,) = (await ctx.session.list_roots()).roots
        (same,) = await ctx.list_roots()
        return repr((str(root.uri), root.name, same.name))

    assert value_of(tool, version=version, roots=["file:///a"]) == "('file:///a', None, None)"


ANSWER = {
    "role": "assistant",
    "content": {"type": "text", "text": "yes"},
    "model": "m",
    "stopReason": "endTurn",
}


@ERAS
def test_sampling_by_the_session_with_all_options(version: str) -> None:
    seen: list[Any] = []

    async def tool(ctx: Any) -> str:
        result = await ctx.session.create_message(
            messages=[{"role": "user", "content": {"type": "text", "text": "hi"}}],
            max_tokens=7,
            system_prompt="brief",
            include_context="none",
            temperature=0.5,
            stop_sequences=["x"],
            metadata={"a": 1},
            model_preferences={"hints": [{"name": "m"}]},
            related_request_id="1",
        )
        reason = getattr(result, "stopReason", None) or result.stop_reason
        return f"{result.content.text} {result.model} {result.role} {reason}"

    def sample(params: Any) -> Any:
        seen.append(params)
        return ANSWER

    assert value_of(tool, version=version, on_sample=sample) == "yes m assistant endTurn"
    expected = {"maxTokens": 7, "systemPrompt": "brief", "temperature": 0.5, "stopSequences": ["x"]}
    assert {name: seen[-1][name] for name in expected} == expected
    assert seen[-1]["metadata"] == {"a": 1}


def test_sampled_content_is_of_the_sdks_classes_where_they_are_imported() -> None:
    types = pytest.importorskip("mcp.types")

    async def tool(ctx: Any) -> str:
        by_session = await ctx.session.create_message(
            [types.SamplingMessage(role="user", content=types.TextContent(type="text", text="a"))],
            max_tokens=5,
        )
        by_context = await ctx.sample("hi")
        kinds = types.TextContent
        return f"{isinstance(by_session, types.CreateMessageResult)} {isinstance(by_context.content, kinds)}"

    assert value_of(tool, on_sample=lambda params: ANSWER) == "True True"


def test_elicitation_by_the_session() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    async def tool(ctx: Any) -> str:
        first = await ctx.session.elicit("who?", requestedSchema=schema)
        second = await ctx.session.elicit_form("who?", schema, related_request_id=1)
        return f"{first.action} {first.content} {second.content['name']}"

    assert value_of(tool, on_elicit=lambda params: {"name": "Ann"}) == "accept {'name': 'Ann'} Ann"


def tool_use(name: str, **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "u1", "name": name, "input": arguments}
    return {"role": "assistant", "content": [block], "model": "m", "stopReason": "toolUse"}


CAPABILITIES = {"sampling": {"tools": {}}}


@ERAS
def test_the_clients_model_calls_tools_of_a_sampling_request(version: str) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def fail() -> str:
        raise ValueError("no")

    async def tool(ctx: Any) -> str:
        result = await ctx.sample("what is 2 + 3?", tools=[add, fail])
        return f"{result.text} {len(result.history)}"

    def sample(params: Any) -> Any:
        turns = len(params["messages"])
        if turns == 1:
            return tool_use("add", a=2, b=3)
        if turns == 3:
            return tool_use("fail")
        texts = [params["messages"][at]["content"][0]["content"][0]["text"] for at in (2, 4)]
        return {**ANSWER, "content": {"type": "text", "text": " ".join(texts)}}

    found = value_of(tool, version=version, on_sample=sample, capabilities=CAPABILITIES)
    assert found == "5 Error calling tool 'fail': no 6"


def test_the_clients_model_gives_a_value_of_a_type() -> None:
    class Weather:
        __annotations__ = {"city": str, "degrees": int}

    from dataclasses import dataclass

    made = dataclass(Weather)

    async def tool(ctx: Any) -> str:
        weather = await ctx.sample("the weather?", result_type=made)
        number = await ctx.sample("a number?", result_type=int)
        return repr((weather.result.degrees, number.result))

    def sample(params: Any) -> Any:
        (final,) = params["tools"]
        is_number = "value" in final["inputSchema"]["properties"]
        if not is_number and len(params["messages"]) == 1:
            return tool_use("final_response", city="Rome", degrees="warm")
        return tool_use("final_response", **({"value": 7} if is_number else {"city": "Rome", "degrees": 20}))

    assert value_of(tool, on_sample=sample, capabilities=CAPABILITIES) == "(20, 7)"


# ------------------------------------------------------------------------------------ errors


def failing(kind: Any, error: BaseException) -> Any:
    app = kind("demo")

    @app.tool()
    async def tool() -> str:
        raise error

    @app.tool()
    def plain() -> str:
        raise error

    @app.resource("r://{name}")
    def page(name: str) -> str:
        raise error

    @app.prompt()
    def review() -> str:
        raise error

    return app


def answers(kind: Any, error: BaseException) -> list[Any]:
    """Return what a tool, a resource and a prompt answer: an error's code, or "result"."""
    app = failing(kind, error)
    found: list[Any] = []
    for method, params in (
        ("tools/call", {"name": "tool", "arguments": {}}),
        ("tools/call", {"name": "plain", "arguments": {}}),
        ("resources/read", {"uri": "r://a"}),
        ("prompts/get", {"name": "review"}),
    ):
        try:
            result = ask(app, method, params, LATEST_SESSION_VERSION)
        except Exception as raised:
            found.append(getattr(raised, "code", raised))
        else:
            assert result["isError"]
            found.append("result")
    return found


def custom() -> Any:
    return sdk.McpError(SimpleNamespace(code=-32050, message="custom", data={"a": 1}))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FastMCP, ["result", "result", -32050, -32603]),
        (SDK_1, ["result", "result", -32603, -32603]),
        (MCPServer, [-32050, -32050, -32050, -32050]),
    ],
)
def test_an_mcp_error_is_answered_as_by_the_original(kind: Any, expected: list[Any]) -> None:
    assert answers(kind, custom()) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FastMCP, ["result", "result", -32042, -32603]),
        (SDK_1, [-32042, -32042, -32603, -32603]),
        (MCPServer, [-32042, -32042, -32042, -32042]),
    ],
)
def test_a_url_that_must_be_opened_first(kind: Any, expected: list[Any]) -> None:
    url = {"mode": "url", "message": "go", "url": "https://a.b", "elicitationId": "1"}
    assert answers(kind, sdk.UrlElicitationRequiredError([url])) == expected


def test_the_error_has_the_code_the_message_and_the_data() -> None:
    app = failing(MCPServer, sdk.MCPError(code=-32050, message="custom", data={"a": 1}))
    error = refusal(app, "tools/call", {"name": "tool", "arguments": {}}, LATEST_SESSION_VERSION)
    assert (error.code, error.message, error.data) == (-32050, "custom", {"a": 1})


@pytest.mark.parametrize(
    "error",
    [fm.ToolError, fm.ResourceError, fm.PromptError, fm.ValidationError, fm.FastMCPError, sdk.ToolError],
)
def test_errors_for_the_client_show_their_message_alone(error: Any) -> None:
    app = failing(FastMCP, error("the reason"))
    assert with_client(app, lambda client: client.call("tool")).text == "the reason"


def test_other_errors_of_the_originals_are_unexpected() -> None:
    for error in (fm.NotFoundError, fm.DisabledError):
        app = failing(FastMCP, error("the reason"))
        text = with_client(app, lambda client: client.call("tool")).text
        assert text != "the reason"
        assert "the reason" in text


def test_invalid_values_and_missing_resources_are_invalid_params() -> None:
    assert answers(FastMCP, fm.ValidationError("bad")) == ["result", "result", -32602, -32602]
    assert answers(MCPServer, sdk.ResourceNotFoundError("none"))[2] == -32602


def test_the_hierarchy_of_errors() -> None:
    for error in (fm.ToolError, fm.ResourceError, fm.PromptError, fm.ValidationError):
        assert issubclass(error, fm.FastMCPError)
    assert issubclass(sdk.UrlElicitationRequiredError, sdk.McpError)
    assert not issubclass(fm.NotFoundError, fm.FastMCPError)


def test_a_signature_that_is_invalid_raises_invalid_signature() -> None:
    app = FastMCP("x")
    with pytest.raises(fm.InvalidSignature):

        @app.tool
        def tool(*args: Any) -> str:
            return ""


# ------------------------------------------------------------------------------------ types


def test_a_context_costs_no_import_of_pydantic() -> None:
    source = (
        "import sys\nfrom fastrpc.compat.fastmcp import FastMCP, Context\napp = FastMCP('x')\n"
        "@app.tool\ndef tool(ctx: Context, x: int) -> str:\n    return ''\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pydantic', 'starlette', 'mcp')])"
    )
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
