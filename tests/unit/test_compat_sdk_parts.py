"""What only servers and clients of the official SDK 2.x have: extensions, apps, caching hints, streams of
changes, middleware, checks of addresses, rounds by hand, groups of sessions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Literal

import pytest
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    RequestParams,
    Result,
    TextContent,
    Tool,
)

from fastrpc.compat import mcp as sdk
from fastrpc.compat.client.extensions import ClaimContext, ClientExtension, ResultClaim, advertise
from fastrpc.compat.components.resource_security import ResourceSecurity
from fastrpc.compat.errors import McpError
from fastrpc.compat.fastmcp import Client as FastMCPClient
from fastrpc.compat.fastmcp import FastMCP
from fastrpc.compat.sdk2.extensions import Extension, MethodBinding, ToolBinding, require_client_extension
from fastrpc.compat.sdk2.request_state import RequestStateSecurity
from fastrpc.compat.sdk2.subscription_events import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

pytestmark = pytest.mark.anyio

NAME = "example.com/receipts"
LISTEN = "subscriptions/listen"


def text_of(result: Any) -> Any:
    return result.content[0].text


# --- extensions -------------------------------------------------------------------------------------------


class Receipt(Result):
    result_type: Literal["receipt"] = "receipt"
    token: str


class Issuer(Extension):
    identifier = NAME

    def settings(self) -> dict[str, Any]:
        return {"paid": True}

    def tools(self) -> Any:
        return [ToolBinding(stamp, meta={"ink": "red"})]

    def methods(self) -> Any:
        return [MethodBinding("example.com/count", RequestParams, count)]

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        if params.name != "buy":
            return await call_next(ctx)
        require_client_extension(ctx, NAME)
        return {"resultType": "receipt", "token": "r-1"}


def stamp(text: str) -> str:
    return f"[{text}]"


async def count(ctx: Any, params: Any) -> dict[str, Any]:
    return {"items": 3, "method": ctx.method}


class Receipts(ClientExtension):
    identifier = NAME

    def claims(self) -> Any:
        return [ResultClaim(result_type="receipt", model=Receipt, resolve=self.redeem)]

    async def redeem(self, claimed: Receipt, ctx: ClaimContext) -> Any:
        return await ctx.session.call_tool("stamp", {"text": claimed.token})


def issuing() -> Any:
    mcp = sdk.MCPServer("office", extensions=[Issuer()])

    @mcp.tool()
    def buy() -> str:
        raise AssertionError("the extension answers")

    return mcp


async def test_an_extension_adds_tools_and_methods_and_is_declared() -> None:
    async with sdk.Client(issuing()) as client:
        assert client.server_capabilities.extensions == {NAME: {"paid": True}}
        assert (await client.list_tools()).tools[0].meta == {"ink": "red"}
        assert text_of(await client.call_tool("stamp", {"text": "a"})) == "[a]"
        found = await client._request("example.com/count", {})
        assert (found["items"], found["method"]) == (3, "example.com/count")


async def test_a_result_of_an_extensions_own_type_is_finished_by_the_clients_extension() -> None:
    async with sdk.Client(issuing(), extensions=[Receipts()]) as client:
        assert text_of(await client.call_tool("buy")) == "[r-1]"
        claimed = await client.call_tool("buy", allow_claimed=True)
        assert claimed.token == "r-1"


async def test_fastmcps_client_declares_extensions_and_has_them_finish_their_results() -> None:
    async with FastMCPClient(issuing(), extensions=[Receipts()]) as client:
        assert (await client.call_tool("buy")).data == "[r-1]"
    async with FastMCPClient(issuing()) as client:
        with pytest.raises(McpError, match="has not declared"):
            await client.call_tool("buy")


async def test_a_call_that_needs_an_extension_is_refused_to_a_client_without_it() -> None:
    async with sdk.Client(issuing()) as client:
        with pytest.raises(McpError, match="has not declared") as caught:
            await client.call_tool("buy")
    assert caught.value.code == -32021


def test_names_of_extensions_are_checked() -> None:
    with pytest.raises(ValueError, match="bare"):
        advertise("bare")
    with pytest.raises(ValueError, match="twice"):
        sdk.MCPServer("x", extensions=[Issuer(), Issuer()])
    with pytest.raises(ValueError, match="protocol's own"):
        MethodBinding("tools/list", RequestParams, count)


async def test_an_app_is_noted_in_its_tool_and_its_page() -> None:
    apps = sdk.Apps()

    @apps.tool(resource_uri="ui://clock", visibility=["app"])
    def clock(ctx: sdk.Context) -> str:
        return "shown" if sdk.client_supports_apps(ctx) else "told"

    apps.add_html_resource("ui://clock", "<p>", csp=sdk.ResourceCsp(connect_domains=["https://a.b"]))
    mcp = sdk.MCPServer("x", extensions=[apps])
    shows = advertise(sdk.EXTENSION_ID, {"mimeTypes": [sdk.APP_MIME_TYPE]})
    async with sdk.Client(mcp, extensions=[shows]) as client:
        tool = (await client.list_tools()).tools[0]
        assert tool.meta["ui"] == {"resourceUri": "ui://clock", "visibility": ["app"]}
        page = (await client.read_resource("ui://clock")).contents[0]
        assert page.mime_type == sdk.APP_MIME_TYPE
        assert page.meta == {"ui": {"csp": {"connectDomains": ["https://a.b"]}}}
        assert text_of(await client.call_tool("clock")) == "shown"
    async with sdk.Client(mcp) as client:
        assert text_of(await client.call_tool("clock")) == "told"


def test_an_app_without_its_page_is_an_error() -> None:
    apps = sdk.Apps()
    apps.tool(resource_uri="ui://nowhere")(stamp)
    with pytest.raises(ValueError, match="ui://nowhere"):
        sdk.MCPServer("x", extensions=[apps])


# --- caching hints ----------------------------------------------------------------------------------------


async def test_results_have_the_caching_hints_of_their_method() -> None:
    hints = {"tools/list": sdk.CacheHint(60_000, "public"), "resources/read": sdk.CacheHint(5_000)}
    mcp = sdk.MCPServer("x", cache_hints=hints)
    mcp.resource("docs://a")(lambda: "a")
    async with sdk.Client(mcp) as client:
        tools, resources = await client.list_tools(), await client.list_resources()
        contents = await client.read_resource("docs://a")
    assert (tools.ttl_ms, tools.cache_scope) == (60_000, "public")
    assert (resources.ttl_ms, resources.cache_scope) == (0, "private")
    assert (contents.ttl_ms, contents.cache_scope) == (5_000, "private")
    with pytest.raises(ValueError, match="tools/call"):
        sdk.MCPServer("x", cache_hints={"tools/call": sdk.CacheHint()})


def low(**callbacks: Any) -> Any:
    async def listed(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="ask", input_schema={"type": "object"})], ttl_ms=1_000)

    return sdk.Server("low", on_list_tools=listed, **callbacks)


async def test_what_a_handler_says_of_caching_comes_before_the_hint() -> None:
    server = low(cache_hints={"tools/list": sdk.CacheHint(60_000, "public")})
    async with sdk.Client(server) as client:
        tools = await client.list_tools()
    assert (tools.ttl_ms, tools.cache_scope) == (1_000, "public")


# --- streams of changes -----------------------------------------------------------------------------------


async def test_a_bus_tells_the_clients_of_every_server_on_it() -> None:
    bus = InMemorySubscriptionBus()
    here, there = sdk.MCPServer("a", subscriptions=bus), sdk.MCPServer("b", subscriptions=bus)
    there.resource("docs://a")(lambda: "a")

    @here.tool()
    async def change(ctx: sdk.Context) -> str:
        await ctx.notify_resource_updated("docs://a")
        return "done"

    async with (
        sdk.Client(here) as one,
        sdk.Client(there) as other,
        other.listen(resource_subscriptions=["docs://a"]) as changes,
    ):
        assert changes.honored.resource_subscriptions == ["docs://a"]
        await one.call_tool("change")
        assert await asyncio.wait_for(changes.__anext__(), 30) == ResourceUpdated("docs://a")


async def test_a_listen_handler_tells_of_its_bus_and_ends_its_streams() -> None:
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    async with (
        sdk.Client(low(on_subscriptions_listen=handler)) as client,
        client.listen(resource_subscriptions=["docs://a"]) as changes,
    ):
        await bus.publish(ResourceUpdated("docs://a"))
        assert await asyncio.wait_for(changes.__anext__(), 30) == ResourceUpdated("docs://a")
        handler.close()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(changes.__anext__(), 30)


async def test_streams_are_not_for_versions_before_them() -> None:
    async with sdk.Client(sdk.MCPServer("x"), mode="legacy") as client:
        with pytest.raises(sdk.ListenNotSupportedError, match="2025-11-25"):
            async with client.listen(tools_list_changed=True):
                pass


# --- middleware -------------------------------------------------------------------------------------------


def watched(server: Any) -> list[str]:
    """Add a middleware that notes methods, changes what is said, and refuses ``docs://secret``."""
    seen: list[str] = []

    async def middleware(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        params = dict(ctx.params or {})
        if params.get("uri") == "docs://secret" or "docs://secret" in str(params.get("notifications")):
            raise McpError(-32600, "not for you")
        if params.get("name") == "echo":
            result = await call_next(replace(ctx, params={**params, "arguments": {"text": "b"}}))
            result["content"][0]["text"] += "!"
            return result
        return await call_next(ctx)

    server.middleware.append(middleware)
    return seen


async def test_middleware_sees_changes_and_refuses_messages() -> None:
    mcp = sdk.MCPServer("x")
    mcp.tool(name="echo", structured_output=False)(lambda text: text)
    mcp.resource("docs://{name}")(lambda name: name)
    seen = watched(mcp)
    async with sdk.Client(mcp) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        assert text_of(await client.call_tool("echo", {"text": "a"})) == "b!"
        assert (await client.read_resource("docs://open")).contents[0].text == "open"
        for refused in (client.read_resource("docs://secret"), opened(client, "docs://secret")):
            with pytest.raises(McpError, match="not for you") as caught:
                await refused
            assert caught.value.code == -32600
        await opened(client, "docs://open")
    assert seen[:3] == ["server/discover", "tools/list", "tools/call"]
    assert seen.count(LISTEN) == 2


async def opened(client: Any, uri: str) -> None:
    async with client.listen(resource_subscriptions=[uri]):
        pass


async def test_a_tool_that_fails_is_a_result_to_middleware() -> None:
    mcp = sdk.MCPServer("x")
    heard: list[Any] = []

    @mcp.tool()
    def fail() -> str:
        raise sdk.ToolError("broken")

    async def middleware(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        heard.append(result.get("isError"))
        return result

    mcp.middleware.append(middleware)
    async with sdk.Client(mcp) as client:
        assert "broken" in text_of(await client.call_tool("fail"))
    assert heard == [None, True]


async def test_a_low_level_server_has_middleware_around_its_handlers() -> None:
    async def call(ctx: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=params.arguments["text"])])

    server = low(on_call_tool=call)
    seen = watched(server)
    async with sdk.Client(server, mode="legacy") as client:
        assert text_of(await client.call_tool("echo", {"text": "a"})) == "b!"
        await client.list_tools()
    assert seen == ["initialize", "notifications/initialized", "tools/call", "tools/list"]


# --- addresses --------------------------------------------------------------------------------------------


async def test_a_template_is_not_called_with_a_path_out_of_its_folder() -> None:
    called: list[str] = []
    mcp = sdk.MCPServer("x")

    @mcp.resource("docs://{+path}", meta={"a": 1})
    def read(path: str) -> str:
        called.append(path)
        return path

    @mcp.resource("raw://{+path}", security=ResourceSecurity(exempt_params={"path"}))
    def raw(path: str) -> str:
        return path

    async with sdk.Client(mcp) as client:
        contents = (await client.read_resource("docs://a/../b")).contents[0]
        assert (contents.text, contents.meta) == ("a/../b", {"a": 1})
        for path in ("../etc/passwd", "/etc/passwd", "a/%00", "C:%5Cx", "a/../../b"):
            with pytest.raises(McpError) as caught:
                await client.read_resource(f"docs://{path}")
            assert caught.value.code == -32602
        assert (await client.read_resource("raw:///etc/x")).contents[0].text == "/etc/x"
    assert called == ["a/../b"]


async def test_the_steps_of_a_path_are_a_list_where_the_parameter_is_one() -> None:
    mcp = sdk.MCPServer("x")

    @mcp.resource("shelves://all{/path*}")
    def browse(path: list[str]) -> str:
        return "+".join(path)

    async with sdk.Client(mcp) as client:
        assert (await client.read_resource("shelves://all/a/b%20c")).contents[0].text == "a+b c"


class Person:
    name: str
    email: str | None = None

    def __init__(self, name: str) -> None:
        self.name = name


class Opaque:
    def __str__(self) -> str:
        return "opaque"


def test_a_server_without_a_name_has_the_original_s() -> None:
    assert (sdk.MCPServer().name, sdk.FastMCP().name) == ("mcp-server", "FastMCP")


async def test_an_object_is_structured_by_the_hints_of_its_class_and_else_a_text() -> None:
    mcp = sdk.MCPServer("x")

    @mcp.tool()
    def person() -> Person:
        return Person("Ada")

    @mcp.tool()
    def opaque() -> Opaque:
        return Opaque()

    async with sdk.Client(mcp) as client:
        first, second = (await client.list_tools()).tools
        assert first.output_schema["required"] == ["name"]
        assert first.output_schema["properties"]["email"]["default"] is None
        assert (await client.call_tool("person")).structured_content == {"name": "Ada", "email": None}
        assert second.output_schema is None
        assert text_of(await client.call_tool("opaque")) == '"opaque"'


# --- rounds by hand ---------------------------------------------------------------------------------------

QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Sure?", requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}}
    )
)
YES = ElicitResult(action="accept", content={"ok": True})


def asking(key: str, kind: Any = sdk.MCPServer) -> Any:
    mcp = kind("asking", request_state_security=RequestStateSecurity(keys=[key]))

    @mcp.tool()
    async def refund(ctx: sdk.Context) -> str | InputRequiredResult:
        if ctx.input_responses is None:
            return InputRequiredResult(input_requests={"ok": QUESTION}, request_state="first")
        return f"{ctx.input_responses['ok'].action} after {ctx.request_state}"

    return mcp


async def answered(context: Any, params: Any) -> Any:
    return YES


async def test_a_handler_asks_by_its_result_and_is_called_again() -> None:
    async with sdk.Client(asking("k" * 32), elicitation_callback=answered) as client:
        assert text_of(await client.call_tool("refund")) == "accept after first"


@pytest.mark.parametrize("kind", [sdk.MCPServer, FastMCP])
async def test_a_client_answers_by_hand_at_any_process_with_the_key(kind: Any) -> None:
    async with sdk.Client(asking("k" * 32, kind), elicitation_callback=answered) as client:
        first = await client.call_tool("refund", allow_input_required=True)
        assert first.input_requests["ok"].params.message == "Sure?"
    given: dict[str, Any] = {"input_responses": {"ok": YES}, "request_state": first.request_state}
    async with sdk.Client(asking("k" * 32, kind)) as client:
        assert text_of(await client.call_tool("refund", **given)) == "accept after first"
    async with sdk.Client(asking("z" * 32, kind)) as client:
        with pytest.raises(McpError, match="requestState"):
            await client.call_tool("refund", **given)
    with pytest.raises(ValueError, match="32 bytes"):
        RequestStateSecurity(keys=["short"])


async def test_a_low_level_handler_keeps_the_state_itself() -> None:
    async def call(ctx: Any, params: Any) -> Any:
        if params.input_responses is None:
            return InputRequiredResult(input_requests={"ok": QUESTION}, request_state="mine")
        return CallToolResult(content=[TextContent(text=str(params.request_state))])

    async with sdk.Client(low(on_call_tool=call), elicitation_callback=answered) as client:
        assert text_of(await client.call_tool("ask")) == "mine"


async def test_a_failed_handler_says_nothing_of_its_inside_in_the_newest_version() -> None:
    async def call(ctx: Any, params: Any) -> Any:
        raise KeyError("secret")

    for mode, code, message in (("auto", -32603, "Internal server error"), ("legacy", 0, "'secret'")):
        async with sdk.Client(low(on_call_tool=call), mode=mode) as client:
            with pytest.raises(McpError) as caught:
                await client.call_tool("ask")
        assert (caught.value.code, caught.value.message) == (code, message)


async def test_a_url_is_asked_by_the_id_that_is_sent_later() -> None:
    mcp = sdk.MCPServer("x")
    asked: list[Any] = []

    @mcp.tool()
    async def pay(ctx: sdk.Context) -> str:
        return (await ctx.elicit_url("Pay", "https://a.b", "order-1")).action

    async def visit(context: Any, params: Any) -> Any:
        asked.append(params.elicitation_id)
        return ElicitResult(action="accept")

    async with sdk.Client(mcp, mode="legacy", elicitation_callback=visit) as client:
        assert text_of(await client.call_tool("pay")) == "accept"
    assert asked == ["order-1"]


# --- groups -----------------------------------------------------------------------------------------------


async def test_a_group_calls_each_tool_at_its_server() -> None:
    def server(name: str) -> Any:
        mcp = sdk.MCPServer(name)
        mcp.tool(name="search")(lambda query: f"{name}: {query}")
        return mcp

    async with sdk.ClientSessionGroup(component_name_hook=lambda name, info: f"{info.name}.{name}") as group:
        await group.connect_to_server(server("web"))
        session = await group.connect_to_server(server("books"))
        assert sorted(group.tools) == ["books.search", "web.search"]
        assert text_of(await group.call_tool("books.search", {"query": "a"})) == "books: a"
        await group.disconnect_from_server(session)
        assert sorted(group.tools) == ["web.search"]
    async with sdk.ClientSessionGroup() as group:
        await group.connect_to_server(server("web"))
        with pytest.raises(McpError, match="search"):
            await group.connect_to_server(server("books"))
