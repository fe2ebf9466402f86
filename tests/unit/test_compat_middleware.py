"""Middleware classes of files written for FastMCP: the hooks, their order, what they change and refuse, and
the ready ones. What the fixture's middleware sees was compared with FastMCP 3.4 and 4.1: it is the same."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.middleware import call, conversing, server_of_all, server_with
from support.stdio import STATELESS_META, encode, serve

import fastrpc
from fastrpc.compat.fastmcp import (
    Context,
    FastMCP,
    McpError,
    Middleware,
    MiddlewareContext,
    NotOffered,
    ToolError,
    ToolResult,
)
from fastrpc.compat.mcp import FastMCP as SdkFastMCP
from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client, RemoteError

FIXTURE = Path(__file__).parent.parent / "fixtures" / "compat_middleware.py"
ERAS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])


def swapped_source() -> str:
    return re.sub(r"from fastmcp\S* import", "from fastrpc.compat.fastmcp import", FIXTURE.read_text())


@pytest.fixture(autouse=True)
def without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have imported the official SDK, whose models would be seen then."""
    for name in ("mcp_types", "mcp.types"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def shop() -> ModuleType:
    module = ModuleType("compat_middleware")
    exec(compile(swapped_source(), str(FIXTURE), "exec", dont_inherit=True), module.__dict__)
    return module


def way(method: str, *between: Any) -> list[Any]:
    """What the two outer recorders of the fixture write down of a message, and what comes in between."""
    return [
        ("first", "message", method, "request", "client"),
        ("first", "request", method),
        ("second", "message", method, "request", "client"),
        ("second", "request", method),
        *between,
        ("second", "answered", method),
        ("first", "answered", method),
    ]


def inner(method: str) -> list[Any]:
    """What the recorder of the mounted server writes down."""
    return [
        ("inner", "message", method, "request", "client"),
        ("inner", "request", method),
        ("inner", "answered", method),
    ]


def seen_by(shop: ModuleType, method: str, params: dict[str, Any], version: str) -> tuple[Any, list[Any]]:
    """Send one request to the fixture; return its result and what its middleware has written down of it."""

    async def talk(client: Client) -> Any:
        shop.seen.clear()
        try:
            return await client.request(method, params)
        except RemoteError as error:
            return error

    result = conversing(shop.mcp, talk, version)
    return result, [each for each in shop.seen if "notifications/initialized" not in each]


# --- what the hooks of the fixture see and do ---------------------------------------------------------------


@ERAS
@pytest.mark.parametrize(
    ("text", "arguments", "answer"),
    [
        ("a", {"count": "2"}, {"text": "aa"}),
        ("doubled", {}, {"text": "doubleddoubled"}),
        ("copied", {}, {"text": "copy"}),
        ("redirected", {}, {"sum": 3}),
    ],
)
def test_a_call_is_seen_as_the_client_sent_it_and_made_as_the_hooks_leave_it(
    shop: ModuleType, version: str, text: str, arguments: dict[str, Any], answer: dict[str, Any]
) -> None:
    given = {"text": text, **arguments}
    result, seen = seen_by(shop, "tools/call", {"name": "echo", "arguments": given}, version)
    words = json.dumps(answer, separators=(",", ":"))
    assert seen == way("tools/call", ("call", "echo", given), ("result", words, answer))
    assert result["structuredContent"] == answer
    assert [block["text"] for block in result["content"]] == [words]


@ERAS
def test_a_result_may_be_changed_in_place(shop: ModuleType, version: str) -> None:
    result, _ = seen_by(shop, "tools/call", {"name": "echo", "arguments": {"text": "shout"}}, version)
    assert result["content"][0]["text"] == '{"TEXT":"SHOUT"}'
    assert result["structuredContent"] == {"text": "shout"}


@ERAS
def test_a_hook_refuses_by_a_tool_error(shop: ModuleType, version: str) -> None:
    result, seen = seen_by(shop, "tools/call", {"name": "forbidden"}, version)
    assert result["isError"]
    assert result["content"][0]["text"] == "not this one"
    assert seen == way("tools/call", ("call", "forbidden", {}))[:-2]


@ERAS
def test_an_unexpected_exception_is_seen_as_a_tool_error_with_its_cause(version: str) -> None:
    caught: list[Any] = []

    class Catching(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            try:
                return await call_next(context)
            except ToolError as error:
                caught.append((str(error), type(error.__cause__)))
                raise

    mcp = server_with(Catching())

    @mcp.tool
    def broken() -> str:
        raise ValueError("torn")

    result = call(mcp, "broken", version)
    assert caught == [("Error calling tool 'broken': torn", ValueError)]
    assert result.is_error
    assert result.text == "Error calling tool 'broken': torn"


@ERAS
def test_middleware_of_a_mounted_server_is_within_and_knows_its_own_names(
    shop: ModuleType, version: str
) -> None:
    result, seen = seen_by(shop, "tools/call", {"name": "in_leaf", "arguments": {"x": 4}}, version)
    assert result["structuredContent"] == {"x": 4}
    between = ("call", "in_leaf", {"x": 4}), *inner("tools/call"), ("result", '{"x":4}', {"x": 4})
    assert seen == way("tools/call", *between)


@ERAS
def test_lists_are_filtered_and_changed(shop: ModuleType, version: str) -> None:
    result, seen = seen_by(shop, "tools/list", {}, version)
    tools = [
        ("echo", [], None),
        ("add", ["sums"], {"unit": "one"}),
        ("secret", ["internal"], None),
        ("forbidden", [], None),
        ("broken", [], None),
        ("in_leaf", [], None),
    ]
    assert seen == way("tools/list", *inner("tools/list"), ("tools", tools))
    names = [(tool["name"], tool.get("description")) for tool in result["tools"]]
    assert names == [
        ("echo", "Repeat a text."),
        ("add", "adds"),
        ("forbidden", None),
        ("broken", None),
        ("in_leaf", None),
    ]
    assert result["tools"][1]["_meta"] == {"unit": "one", "fastmcp": {"tags": ["sums"]}}
    assert call(shop.mcp, "secret", version).structured == {"secret": True}  # hidden, and can be called


@ERAS
def test_lists_of_resources_templates_and_prompts(shop: ModuleType, version: str) -> None:
    result, _ = seen_by(shop, "resources/list", {}, version)
    assert [each["uri"] for each in result["resources"]] == ["data://open"]
    result, seen = seen_by(shop, "resources/templates/list", {}, version)
    assert [each["name"] for each in result["resourceTemplates"]] == ["part"]
    assert ("templates", ["data://{name}/part"]) in seen
    result, seen = seen_by(shop, "prompts/list", {}, version)
    assert result["prompts"] == []
    assert ("prompts", ["ask"]) in seen


@ERAS
def test_reads_and_prompts(shop: ModuleType, version: str) -> None:
    result, seen = seen_by(shop, "resources/read", {"uri": "data://open"}, version)
    assert seen == way("resources/read", ("read", "data://open"), ("contents", [("open", "text/plain")]))
    assert result["contents"][0]["text"] == "open"
    result, seen = seen_by(shop, "resources/read", {"uri": "data://seven/part"}, version)
    assert ("read", "data://seven/part") in seen
    assert result["contents"][0]["text"] == "seven"
    result, seen = seen_by(shop, "prompts/get", {"name": "ask", "arguments": {"topic": "x"}}, version)
    assert seen == way("prompts/get", ("prompt", "ask", {"topic": "x"}))
    assert result["messages"][0]["content"]["text"] == "about x!"


def test_the_same_calls_repeated_are_answered_the_same(shop: ModuleType) -> None:
    """The second and third read may take another way than the first."""

    async def talk(client: Client) -> Any:
        for _ in range(4):
            assert (await client.request("resources/read", {"uri": "data://open"}))["contents"][0][
                "text"
            ] == "open"
            found = await client.request("prompts/get", {"name": "ask", "arguments": {"topic": "x"}})
            assert found["messages"][0]["content"]["text"] == "about x!"
            assert "secret" not in [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
            assert (await client.call("echo", text="doubled")).structured == {"text": "doubleddoubled"}
        return shop.seen.count(("read", "data://open"))

    assert conversing(shop.mcp, talk) == 4


def test_models_of_the_sdk_are_seen_where_the_program_has_imported_it(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the program imports it")
    script = tmp_path / "program.py"
    script.write_text(
        "import mcp.types as types\n" + swapped_source().partition("if __name__")[0] + "import asyncio\n"
        "from fastrpc.testing import Client\n"
        "kinds = []\n"
        "class Kinds(Middleware):\n"
        "    async def on_message(self, context, call_next):\n"
        "        result = await call_next(context)\n"
        "        blocks = getattr(result, 'content', [])\n"
        "        kinds.append((type(context.message), [type(block) for block in blocks]))\n"
        "        return result\n"
        "mcp.add_middleware(Kinds())\n"
        "async def main():\n"
        "    async with Client(mcp) as client:\n"
        "        result = await client.call('echo', text='doubled')\n"
        "        assert result.structured == {'text': 'doubleddoubled'}, result\n"
        "        assert (types.CallToolRequestParams, [types.TextContent]) in kinds, kinds\n"
        "        assert types.InitializeRequest in [kind for kind, _ in kinds], kinds\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, script], check=True, timeout=120)


def test_a_process_with_middleware_over_stdio(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(swapped_source())
    with serve(f"{script}:mcp") as server:
        for id, (text, expected) in enumerate(
            [("a", "a"), ("doubled", "doubleddoubled"), ("copied", "copy")]
        ):
            params = {"name": "echo", "arguments": {"text": text}, "_meta": STATELESS_META}
            server.send(encode({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            answer = json.loads(server.line())
            assert answer["id"] == id
            assert answer["result"]["structuredContent"] == {"text": expected}


# --- what is not overridden pays nothing --------------------------------------------------------------------


class ListsOnly(Middleware):
    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        return [tool for tool in await call_next(context) if tool.name != "echo"]


class CallsOnly(Middleware):
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)


def test_hooks_of_lists_leave_the_plans_of_tools_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.engine.plans.scope", None)  # another test's file may want the running call
    plain, listing, calling = (server_with(*each) for each in ([], [ListsOnly()], [CallsOnly()]))
    for app in (plain, listing):
        plan = app.runtime.plans.tools["echo"]
        assert plan.around is None
        assert not plan.is_async
        assert not plan.needs_context
    assert calling.runtime.plans.tools["echo"].around is not None
    assert plain.runtime.wrapper is None
    assert conversing(listing, lambda client: client.request("tools/list"))["tools"] == []


def test_hooks_of_calls_leave_lists_with_the_connection() -> None:
    wrapper = server_with(CallsOnly()).runtime.wrapper
    assert wrapper is not None
    assert wrapper.wraps_calls("tools/call")
    assert not wrapper.wraps_calls("resources/read")
    assert not any(map(wrapper.wraps_requests, ("tools/list", "initialize", "prompts/list", "ping")))


def test_middleware_can_be_added_and_removed_while_clients_are_connected() -> None:
    mcp = server_with()
    refusing = Refusing(ToolError("no"))

    async def talk(client: Client) -> list[str]:
        texts = [(await client.call("echo", text="a")).text]
        mcp.add_middleware(refusing)
        texts.append((await client.call("echo", text="b")).text)
        mcp.middleware.remove(refusing)
        texts.append((await client.call("echo", text="c")).text)
        return texts

    assert conversing(mcp, talk) == ["a", "no", "c"]


def test_what_cannot_be_called_is_no_middleware() -> None:
    for wrong in (object(), Middleware):
        with pytest.raises(DefinitionError, match="derive it from Middleware"):
            FastMCP("t").add_middleware(wrong)


def test_the_official_sdk_1_has_no_middleware() -> None:
    with pytest.raises(NotOffered, match=r"@mcp\.before"):
        SdkFastMCP("t").add_middleware(CallsOnly())


# --- changes and refusals -----------------------------------------------------------------------------------


class Refusing(Middleware):
    """Raises an error in the place of each request."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def on_request(self, context: Any, call_next: Any) -> Any:
        if context.method in ("initialize", "server/discover"):
            return await call_next(context)
        raise self.error


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "echo", "arguments": {"text": "a"}}),
    ("tools/call", {"name": "unknown"}),
    ("tools/list", {}),
    ("resources/read", {"uri": "data://x"}),
    ("resources/list", {}),
    ("prompts/get", {"name": "ask"}),
    ("prompts/list", {}),
]


@ERAS
@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_an_error_with_a_code_is_a_json_rpc_error(version: str, method: str, params: dict[str, Any]) -> None:
    mcp = server_of_all(Refusing(McpError(-31777, "closed", {"until": 9})))
    with pytest.raises(RemoteError, match="closed") as caught:
        conversing(mcp, lambda client: client.request(method, params), version)
    assert (caught.value.code, caught.value.data) == (-31777, {"until": 9})


@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_a_tool_error_is_a_result_of_a_call_and_an_error_of_a_list(
    method: str, params: dict[str, Any]
) -> None:
    mcp = server_of_all(Refusing(ToolError("closed")))
    if method == "tools/call":
        result = conversing(mcp, lambda client: client.request(method, params))
        assert result["isError"]
        assert result["content"][0]["text"] == "closed"
    else:
        with pytest.raises(RemoteError, match="closed"):
            conversing(mcp, lambda client: client.request(method, params))


def test_a_result_may_be_made_without_the_tool_and_for_a_tool_that_does_not_exist() -> None:
    class Answering(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            if context.message.name == "virtual":
                return ToolResult("made up", structured_content={"made": "up"}, meta={"a": 1})
            return ToolResult(content=f"not {context.message.arguments['text']}")

    mcp = server_with(Answering())
    result = call(mcp, "virtual")
    assert (result.text, result.structured, result.meta) == ("made up", {"made": "up"}, {"a": 1})
    assert call(mcp, "echo", text="this").text == "not this"


def test_a_replaced_result_is_not_held_against_the_output_schema() -> None:
    class Replacing(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            await call_next(context)
            return ToolResult("text alone")

    mcp = FastMCP("t", middleware=[Replacing()])

    @mcp.tool
    def typed() -> dict[str, int]:
        return {"a": 1}

    result = call(mcp, "typed")
    assert (result.is_error, result.text, result.structured) == (False, "text alone", None)


def test_an_outer_hook_sees_typed_content_of_an_inner_ones_result() -> None:
    texts: list[str] = []

    class Reading(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            result = await call_next(context)
            texts.extend(block.text for block in result.content)
            result.content.append(result.content[0].model_copy(update={"text": "and more"}))
            return result

    class Making(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            return ToolResult("inner")

    result = call(server_with(Reading(), Making()), "echo", text="a")
    assert texts == ["inner"]
    assert [block["text"] for block in result.content] == ["inner", "and more"]


def test_arguments_that_do_not_fit_are_seen_and_may_be_mended() -> None:
    class Mending(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            context.message.arguments.setdefault("text", "mended")
            return await call_next(context)

    assert call(server_with(Mending()), "echo").text == "mended"
    assert "text" in call(server_with(CallsOnly()), "echo").text  # says what is missing


def test_a_redirected_call_passes_the_guard_of_its_target() -> None:
    class Redirecting(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            context.message.name = "locked"
            return await call_next(context)

    mcp = server_with(Redirecting())
    mcp.tool(lambda text: "open", name="locked")

    @mcp.guard
    def locks(info: fastrpc.CallInfo) -> None:
        if info.name == "locked":
            raise ToolError("locked")

    result = call(mcp, "echo", text="a")
    assert result.is_error
    assert result.text == "locked"


def test_middleware_is_within_guards_and_around_hooks() -> None:
    order: list[str] = []

    class Noting(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            order.append("middleware")
            return await call_next(context)

    mcp = server_with(Noting())
    mcp.guard(lambda info: order.append("guard"))
    mcp.before(lambda info: order.append("hook"))
    assert call(mcp, "echo", text="a").text == "a"
    assert order == ["guard", "middleware", "hook"]


def test_a_function_and_an_overridden_call_are_middleware_for_everything() -> None:
    methods: list[str] = []

    async def function(context: Any, call_next: Any) -> Any:
        methods.append(context.method)
        return await call_next(context)

    class Calling(Middleware):
        async def __call__(self, context: Any, call_next: Any) -> Any:
            methods.append(f"class {context.method}")
            return await super().__call__(context, call_next)

        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            methods.append("hook")
            return await super().on_call_tool(context, call_next)

    assert call(server_with(function, Calling()), "echo", text="a").text == "a"
    assert [each for each in methods if "call" in each or each == "hook"] == [
        "tools/call",
        "class tools/call",
        "hook",
    ]
    assert "initialize" in methods


def test_the_context_of_a_hook_is_that_of_the_call() -> None:
    found: list[Any] = []

    class Looking(Middleware):
        async def on_call_tool(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
            assert isinstance(context.fastmcp_context, Context)
            await context.fastmcp_context.info("on its way")
            found.append((context.fastmcp_context.fastmcp.name, context.timestamp.tzinfo is not None))
            return await call_next(context)

    async def talk(client: Client) -> list[Any]:
        await client.request("logging/setLevel", {"level": "info"})
        assert (await client.call("echo", text="a")).text == "a"
        return [each["data"] for each in client.logs]

    assert conversing(server_with(Looking()), talk) == [{"msg": "on its way", "extra": None}]
    assert found == [("t", True)]


def test_the_handshake_is_seen_and_may_be_refused_and_changed() -> None:
    class Greeting(Middleware):
        def __init__(self, refuses: bool) -> None:
            self.refuses = refuses
            self.clients: list[str] = []

        async def on_initialize(self, context: Any, call_next: Any) -> Any:
            self.clients.append(context.message.params.clientInfo.name)
            if self.refuses:
                raise McpError(-32050, "not you")
            result = await call_next(context)
            result.instructions = f"for {result.serverInfo.name}"
            return result

    open, closed = Greeting(False), Greeting(True)

    async def talk(client: Client) -> Any:
        return client.info

    info = conversing(server_with(open), talk)
    assert info["instructions"] == "for t"
    assert info["protocolVersion"] == LATEST_SESSION_VERSION
    assert open.clients == ["fastrpc.testing"]
    with pytest.raises(RemoteError, match="not you") as caught:
        conversing(server_with(closed), talk)
    assert caught.value.code == -32050


def test_notifications_are_shown() -> None:
    methods: list[str] = []

    class Notified(Middleware):
        async def on_notification(self, context: Any, call_next: Any) -> Any:
            methods.append(f"{context.type} {context.method}")
            return await call_next(context)

    async def talk(client: Client) -> None:
        await client.call("echo", text="a")
        await asyncio.sleep(0)

    conversing(server_with(Notified()), talk)
    assert methods == ["notification notifications/initialized"]


def test_lists_of_a_server_mounted_in_a_plain_one_are_filtered_too() -> None:
    host = fastrpc.Server("host")
    host.mount(server_with(ListsOnly()), "in")

    async def talk(client: Client) -> Any:
        names = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
        return names, (await client.call("in_echo", text="a")).text

    assert conversing(host, talk) == ([], "a")


def test_entries_that_a_mounted_servers_hook_adds_have_its_prefix() -> None:
    class Adding(Middleware):
        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            tools = await call_next(context)
            return [*tools, tools[0].model_copy(update={"name": "added"})]

    host = FastMCP("host")
    host.mount(server_with(Adding()), namespace="in")
    result = conversing(host, lambda client: client.request("tools/list"))
    assert [tool["name"] for tool in result["tools"]] == ["in_echo", "in_added"]


def test_a_filtered_list_has_pages() -> None:
    class Odd(Middleware):
        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return [tool for tool in await call_next(context) if int(tool.name[1:]) % 2]

    mcp = FastMCP("t", middleware=[Odd()], list_page_size=2)
    for number in range(8):
        mcp.tool(lambda: "x", name=f"t{number}")

    async def talk(client: Client) -> list[str]:
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.request("tools/list", params)
            assert len(page["tools"]) <= 2
            names += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                return names
            params = {"cursor": page["nextCursor"]}

    assert conversing(mcp, talk) == ["t1", "t3", "t5", "t7"]


def test_resources_of_providers_pass_through_the_hooks_of_lists() -> None:
    class Open(Middleware):
        async def on_list_resources(self, context: Any, call_next: Any) -> Any:
            return [each for each in await call_next(context) if "secret" not in each.uri]

    mcp = FastMCP("t", middleware=[Open()])
    mcp.resource("data://x")(lambda: "x")

    @mcp.resources("notes")
    class Notes:
        def list(self, cursor: str | None = None) -> Any:
            first = [{"uri": "notes:///1", "name": "1"}, {"uri": "notes:///secret", "name": "s"}]
            return (first, "2") if cursor is None else ([{"uri": "notes:///2", "name": "2"}], None)

        def read(self, uri: str) -> str:
            return uri

    result = conversing(mcp, lambda client: client.request("resources/list"))
    assert [each["uri"] for each in result["resources"]] == ["data://x", "notes:///1", "notes:///2"]


def test_a_resource_that_a_tool_reads_passes_through_middleware() -> None:
    uris: list[str] = []

    class Reads(Middleware):
        async def on_read_resource(self, context: Any, call_next: Any) -> Any:
            uris.append(context.message.uri)
            return await call_next(context)

    mcp = server_of_all(Reads())

    @mcp.tool
    async def reads(ctx: Context) -> str:
        return str((await ctx.read_resource("data://x"))[0].content)  # type: ignore[attr-defined]

    assert call(mcp, "reads").text == "x"
    assert uris == ["data://x"]


def test_a_cancelled_call_stops_in_its_middleware() -> None:
    ended: list[str] = []

    class Waiting(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

    async def talk(client: Client) -> None:
        id, _ = client.begin("tools/call", {"name": "echo", "arguments": {"text": "a"}})
        await client.request("ping")
        client.cancel(id)
        await client.request("ping")
        await asyncio.sleep(0)

    conversing(server_with(Waiting()), talk)
    assert ended == ["cancelled"]
