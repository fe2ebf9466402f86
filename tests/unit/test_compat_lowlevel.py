"""The official SDK's low-level `Server`, served by fastrpc: both styles of handlers, in memory."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import pytest

from fastrpc import running_call
from fastrpc.compat.errors import McpError, NotOffered
from fastrpc.compat.lowlevel.options import (
    InitializationOptions,
    NotificationOptions,
    ReadResourceContents,
    stdio_server,
)
from fastrpc.compat.lowlevel.running_request import request_ctx
from fastrpc.compat.lowlevel.schema import SchemaCheck, quick_check
from fastrpc.compat.lowlevel.server import Server
from fastrpc.compat.server import SdkFastMCP
from fastrpc.errors import RemoteError, ToolError
from fastrpc.protocol.versions import VERSIONS
from fastrpc.testing import Client

ADD = {
    "name": "add",
    "description": "Add two numbers",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    },
}
OBJECT = {"type": "object"}


@pytest.fixture(autouse=True)
def without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the SDK's types, which another test may have imported: objects here are fastrpc's own."""
    for name in ("mcp_types", "mcp.types"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def in_loop(test: Any) -> Any:
    """Run a test that is a coroutine function, in a separate event loop."""

    @wraps(test)
    def run(**parameters: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**parameters), 60))

    return run


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **members}


def text(words: object) -> dict[str, Any]:
    return {"type": "text", "text": str(words)}


def one_tool(handler: Any, *, validate_input: bool = True, **members: Any) -> Server:
    """A server with the tool ``t``, which calls ``handler(arguments)``."""
    server = Server("one")

    @server.list_tools()
    async def list_tools() -> Any:
        return [tool("t", **members)]

    @server.call_tool(validate_input=validate_input)
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        found = handler(arguments)
        return await found if hasattr(found, "__await__") else found

    return server


async def result_of(server: Server, version: str = "2025-11-25", **arguments: Any) -> dict[str, Any]:
    """The result of the tool ``t``, which must be the same before and after it has been listed."""
    async with Client(server, version=version) as client:
        first = await client.request("tools/call", {"name": "t", "arguments": arguments})
        await client.list_tools()
        for _ in range(3):
            assert await client.request("tools/call", {"name": "t", "arguments": arguments}) == first
        return first


# -------------------------------------------------------------------------------------------- tools


@pytest.mark.parametrize("version", VERSIONS)
@in_loop
async def test_tools_are_listed_and_called_in_every_version(version: str) -> None:
    server = Server("demo", version="3")

    @server.list_tools()
    async def list_tools() -> Any:
        return [ADD]

    @server.call_tool()
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return [text(f"{name}: {arguments['a'] + arguments.get('b', 0)}")]

    async with Client(server, version=version) as client:
        assert await client.list_tools() == [ADD]
        assert (await client.call("add", a=1, b=2)).text == "add: 3"
        assert "prompts" not in client.info["capabilities"]
        with pytest.raises(RemoteError, match="Method not found"):
            await client.list_prompts()


@in_loop
async def test_the_list_is_asked_for_anew_with_each_request_and_decides_about_validation() -> None:
    server = Server("demo")
    names = ["one"]
    calls: list[Any] = []

    @server.list_tools()
    async def list_tools() -> Any:
        return [tool(name, inputSchema={**OBJECT, "required": ["a"]}) for name in names]

    @server.call_tool()
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        calls.append((name, arguments))
        return [text(name)]

    async with Client(server) as client:
        assert [each["name"] for each in await client.list_tools()] == ["one"]
        names[:] = ["two", "three"]
        assert [each["name"] for each in await client.list_tools()] == ["two", "three"]
        assert (await client.call("three", a=1)).text == "three"
        found = await client.request("tools/call", {"name": "three", "arguments": None})
        assert "required" in found["content"][0]["text"]
        assert (await client.call("three")).text == "Input validation error: 'a' is a required property"
        assert (await client.call("one")).text == "one"  # not listed: not validated
        assert calls == [("three", {"a": 1}), ("one", {})]
        assert not client.notifications  # the list is answered; no one is notified of it


@in_loop
async def test_arguments_that_do_not_fit_are_refused_with_the_words_of_jsonschema() -> None:
    def handler(arguments: Any) -> Any:
        return [text(arguments)]

    schema = {**OBJECT, "properties": {"n": {"type": "integer", "maximum": 5}}, "additionalProperties": False}
    server = one_tool(handler, inputSchema=schema)
    assert (await result_of(server, n=3))["isError"] is False
    assert (await result_of(server, n=3.0))["content"][0]["text"] == "{'n': 3.0}"
    found = await result_of(server, n="3")
    assert found["isError"] is True
    assert found["content"][0]["text"] == "Input validation error: '3' is not of type 'integer'"
    words = (await result_of(server, n=6))["content"][0]["text"]
    assert words == "Input validation error: 6 is greater than the maximum of 5"
    assert "Additional properties" in (await result_of(server, m=1))["content"][0]["text"]
    unchecked = one_tool(handler, inputSchema=schema, validate_input=False)
    assert (await result_of(unchecked, n="3"))["content"][0]["text"] == "{'n': '3'}"


RESULTS = {
    "one text": ([text("a")], {"content": [text("a")]}),
    "texts": ((text("a"), text("b"), text("c")), {"content": [text("a"), text("b"), text("c")]}),
    "nothing": ([], {"content": []}),
    "a dict": (
        {"x": [1]},
        {"content": [text('{\n  "x": [\n    1\n  ]\n}')], "structuredContent": {"x": [1]}},
    ),
    "both": (([text("a")], {"x": 1}), {"content": [text("a")], "structuredContent": {"x": 1}}),
    "an image": (
        [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, text("a")],
        {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, text("a")]},
    ),
    "annotated": (
        [{**text("a"), "annotations": {"priority": 1.0}}],
        {"content": [{**text("a"), "annotations": {"priority": 1.0}}]},
    ),
}


@pytest.mark.parametrize("name", RESULTS)
@in_loop
async def test_results_of_all_forms(name: str) -> None:
    value, wanted = RESULTS[name]
    assert await result_of(one_tool(lambda _: value)) == {**wanted, "isError": False}


@in_loop
async def test_an_iterable_is_content() -> None:
    server = one_tool(lambda _: (text(number) for number in range(2)))
    assert (await result_of(server))["content"] == [text(0), text(1)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "Unexpected return type from tool: NoneType"),
        (5, "Unexpected return type from tool: int"),
        ("abc", "Unexpected return type from tool: str"),
        ([5], "expected a list of content blocks, got int in it"),
    ],
)
@in_loop
async def test_what_is_no_result_is_an_error(value: Any, words: str) -> None:
    assert await result_of(one_tool(lambda _: value)) == {"content": [text(words)], "isError": True}


@in_loop
async def test_a_call_tool_result_is_sent_as_it_is() -> None:
    class CallToolResult:
        content = ()
        isError = True

        def model_dump(self, **options: Any) -> dict[str, Any]:
            return {"content": [text("a")], "isError": True, "_meta": {"k": 1}, "structuredContent": {"x": 1}}

    found = await result_of(one_tool(lambda _: CallToolResult(), outputSchema={**OBJECT, "required": ["y"]}))
    assert found == {
        "content": [text("a")],
        "isError": True,
        "_meta": {"k": 1},
        "structuredContent": {"x": 1},
    }


@in_loop
async def test_structured_results_are_validated_by_the_output_schema() -> None:
    schema = {**OBJECT, "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert (await result_of(one_tool(lambda _: {"x": 1}, outputSchema=schema)))["structuredContent"] == {
        "x": 1
    }
    words = (await result_of(one_tool(lambda _: {"x": "1"}, outputSchema=schema)))["content"][0]["text"]
    assert words == "Output validation error: '1' is not of type 'integer'"
    words = (await result_of(one_tool(lambda _: [text(1)], outputSchema=schema)))["content"][0]["text"]
    assert words == "Output validation error: outputSchema defined but no structured output returned"


@in_loop
async def test_an_exception_is_a_result_with_its_text() -> None:
    def fail(arguments: Any) -> Any:
        raise ValueError("no such thing")

    async def fail_later(arguments: Any) -> Any:
        await asyncio.sleep(0)
        raise McpError(-32602, "wrong")

    assert await result_of(one_tool(fail)) == {"content": [text("no such thing")], "isError": True}
    assert await result_of(one_tool(fail_later)) == {"content": [text("wrong")], "isError": True}


@in_loop
async def test_an_elicitation_by_url_is_an_error_of_the_request() -> None:
    def fail(arguments: Any) -> Any:
        raise McpError(-32042, "open the page", {"elicitations": []})

    server = one_tool(fail)
    async with Client(server) as client:
        for _ in range(2):
            with pytest.raises(RemoteError) as caught:
                await client.call("t")
            assert (caught.value.code, caught.value.data) == (-32042, {"elicitations": []})
            await client.list_tools()


@in_loop
async def test_a_cancelled_call_is_stopped() -> None:
    stopped = asyncio.Event()

    async def wait(arguments: Any) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async with Client(one_tool(wait)) as client:
        await client.list_tools()
        id, _ = client.begin("tools/call", {"name": "t"})
        await client.request("ping")
        client.notify("notifications/cancelled", {"requestId": id})
        await asyncio.wait_for(stopped.wait(), 30)


@in_loop
async def test_guards_and_hooks_see_the_arguments_by_name() -> None:
    server = one_tool(lambda arguments: [text(arguments)])
    seen = []

    @server.guard
    def guard(call: Any) -> None:
        seen.append((call.name, dict(call.arguments)))
        if call.arguments.get("a") == 13:
            raise ToolError("refused")

    async with Client(server) as client:
        assert (await client.call("t", a=1)).text == "{'a': 1}"
        await client.list_tools()
        assert (await client.call("t", a=2)).text == "{'a': 2}"
        assert (await client.call("t", a=13)).text == "refused"
    assert seen == [("t", {"a": 1}), ("t", {"a": 2}), ("t", {"a": 13})]


# ------------------------------------------------------------------------------ the request's context


@in_loop
@pytest.mark.parametrize("kind", [Server, SdkFastMCP])
async def test_request_ctx_is_the_request_of_the_call_that_runs(kind: Any) -> None:
    running_call.keep("fastrpc.compat.lowlevel.running_request")  # as its import does, once a process
    server = kind("demo")
    if kind is Server:

        @server.list_tools()
        async def listed() -> list[Any]:
            return [tool("ask")]

        @server.call_tool()
        async def called(name: str, arguments: dict[str, Any]) -> list[Any]:
            return [{"type": "text", "text": str(request_ctx.get().request_id)}]

    else:

        @server.tool()
        def ask() -> str:
            return str(request_ctx.get().request_id)

    async with Client(server) as client:
        first, second = [(await client.call_tool("ask")).text for _ in range(2)]
    assert first != second
    assert request_ctx.get(None) is None
    with pytest.raises(LookupError, match="no request"):
        request_ctx.get()


@in_loop
async def test_the_request_context_is_that_of_the_call_that_runs() -> None:
    server: Server

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[dict[str, str]]:
        yield {"db": "open"}

    async def handler(arguments: Any) -> Any:
        before = server.request_context.request_id
        await asyncio.sleep(0.001)
        context = server.request_context
        assert context.request_id == before
        assert context.lifespan_context == {"db": "open"}
        assert context.session is server.request_context.session
        token = None if context.meta is None else context.meta.progressToken
        return [text(f"{context.request_id} {token}")]

    server = one_tool(handler)
    server.lifespan = lifespan
    async with Client(server) as client:
        await client.list_tools()
        begun = [
            client.begin("tools/call", {"name": "t", "_meta": {"progressToken": f"p{n}"}}) for n in range(5)
        ]
        for number, (id, future) in enumerate(begun):
            assert (await future)["content"] == [text(f"{id} p{number}")]
    with pytest.raises(LookupError):
        server.request_context  # noqa: B018


@in_loop
async def test_a_session_notifies_within_calls_and_after_them() -> None:
    sessions = []

    async def handler(arguments: Any) -> Any:
        session = server.request_context.session
        sessions.append(session)
        await session.send_log_message("debug", {"x": 1}, logger="here")
        await session.send_progress_notification("p", 1, 2, "half")
        await session.send_resource_updated("a://b")
        await session.send_tool_list_changed()
        return []

    server = one_tool(handler)
    async with Client(server) as client:
        await client.request("tools/call", {"name": "t", "_meta": {"progressToken": "p"}})
        await sessions[0].send_log_message("info", "later")
        await client.request("ping")
        heard = [(each["method"], each.get("params")) for each in client.notifications]
        assert heard == [
            ("notifications/message", {"level": "debug", "data": {"x": 1}, "logger": "here"}),
            ("notifications/progress", {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}),
            ("notifications/resources/updated", {"uri": "a://b"}),
            ("notifications/tools/list_changed", None),
            ("notifications/message", {"level": "info", "data": "later"}),
        ]
        assert sessions[0].client_params.clientInfo.name == "fastrpc.testing"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@in_loop
async def test_a_session_asks_the_client(version: str) -> None:
    async def handler(arguments: Any) -> Any:
        session = server.request_context.session
        roots = await session.list_roots()
        form = {"type": "object", "properties": {"colour": {"type": "string"}}}
        answer = await session.elicit("which?", form)
        can = session.check_client_capability({"roots": {}}), session.check_client_capability({"tasks": {}})
        return [text(f"{roots.roots[0].uri} {answer.action} {answer.content} {can}")]

    server = one_tool(handler)
    async with Client(
        server, version=version, roots=["file:///here"], on_elicit=lambda request: {"colour": "red"}
    ) as client:
        found = (await client.call("t")).text
        assert found == "file:///here accept {'colour': 'red'} (True, False)"


# ------------------------------------------------------------------------- resources, prompts, others


@in_loop
async def test_resources() -> None:
    server = Server("demo")
    watched: list[str] = []

    @server.list_resources()
    async def list_resources() -> Any:
        return [{"uri": "a://text", "name": "text"}]

    @server.list_resource_templates()
    async def list_resource_templates() -> Any:
        return [{"uriTemplate": "a://{x}", "name": "x"}]

    @server.read_resource()
    async def read_resource(uri: Any) -> Any:
        if str(uri) == "a://text":
            return "words"
        if str(uri) == "a://bytes":
            return b"\x00"
        if str(uri) == "a://gone":
            raise McpError(-32002, "gone", {"uri": "a://gone"})
        if str(uri) == "a://broken":
            raise ValueError("broken")
        return [ReadResourceContents("# a", "text/markdown", {"k": 1}), ReadResourceContents(b"\x01")]

    @server.subscribe_resource()
    async def subscribe(uri: Any) -> None:
        watched.append(str(uri))

    async with Client(server) as client:
        assert await client.list_resources() == [{"uri": "a://text", "name": "text"}]
        assert await client.list_resource_templates() == [{"uriTemplate": "a://{x}", "name": "x"}]

        async def read(uri: str) -> Any:
            return (await client.request("resources/read", {"uri": uri}))["contents"]

        assert await read("a://text") == [{"uri": "a://text", "mimeType": "text/plain", "text": "words"}]
        blob = base64.b64encode(b"\x00").decode()
        wanted = {"uri": "a://bytes", "mimeType": "application/octet-stream", "blob": blob}
        assert await read("a://bytes") == [wanted]
        several = await read("a://several")
        assert several[0] == {
            "uri": "a://several",
            "mimeType": "text/markdown",
            "text": "# a",
            "_meta": {"k": 1},
        }
        assert several[1]["blob"] == "AQ=="
        for uri, code, message in (("a://gone", -32002, "gone"), ("a://broken", 0, "broken")):
            with pytest.raises(RemoteError) as caught:
                await read(uri)
            assert (caught.value.code, caught.value.message) == (code, message)
        assert await client.request("resources/subscribe", {"uri": "a://text"}) == {}
        assert watched == ["a://text"]
        server.resource_updated("a://text")
        await client.request("ping")
        assert client.notifications[-1]["params"] == {"uri": "a://text"}
        with pytest.raises(RemoteError):
            await client.request("resources/read", {})


@in_loop
async def test_prompts_completion_and_levels() -> None:
    server = Server("demo")
    levels: list[str] = []
    reports: list[Any] = []
    reported = asyncio.Event()

    @server.list_prompts()
    async def list_prompts() -> Any:
        return [{"name": "p", "arguments": [{"name": "a", "required": True}]}]

    @server.get_prompt()
    async def get_prompt(name: str, arguments: dict[str, str] | None) -> Any:
        if name != "p":
            raise McpError(-32602, f"unknown: {name}")
        return {
            "description": "d",
            "messages": [{"role": "user", "content": text((arguments or {}).get("a"))}],
        }

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        if argument.name != "a":
            return None
        return {"values": [f"{ref.type} {argument.value} {context.arguments if context else None}"]}

    @server.set_logging_level()
    async def set_level(level: str) -> None:
        levels.append(level)

    @server.progress_notification()
    async def progress(*report: Any) -> None:
        reports.append(report)
        reported.set()

    async with Client(server) as client:
        assert (await client.list_prompts())[0]["name"] == "p"
        found = await client.request("prompts/get", {"name": "p", "arguments": {"a": "x"}})
        assert found == {"description": "d", "messages": [{"role": "user", "content": text("x")}]}
        with pytest.raises(RemoteError, match="unknown: q"):
            await client.request("prompts/get", {"name": "q"})
        asked = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
        found = await client.request("completion/complete", {**asked, "context": {"arguments": {"b": "c"}}})
        assert found["completion"]["values"] == ["ref/prompt v {'b': 'c'}"]
        other = {**asked, "argument": {"name": "z", "value": "v"}}
        assert (await client.request("completion/complete", other))["completion"] == {"values": []}
        assert await client.request("logging/setLevel", {"level": "error"}) == {}
        assert levels == ["error"]
        client.notify("notifications/progress", {"progressToken": 1, "progress": 2})
        await asyncio.wait_for(reported.wait(), 30)
        assert reports == [(1, 2, None, None)]


@in_loop
async def test_a_handler_of_a_list_may_take_the_request_and_answer_in_pages() -> None:
    server = Server("demo")

    class ListToolsRequest:
        """Represents the SDK's class: it is known by its name."""

    @server.list_tools()
    async def list_tools(request: ListToolsRequest) -> Any:
        cursor = getattr(request.params, "cursor", None)  # type: ignore[attr-defined]
        if cursor is None:
            return {"tools": [tool("one")], "nextCursor": "2"}
        return {"tools": [tool("two")]}

    @server.call_tool()
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        return [text(name)]

    async with Client(server) as client:
        first = await client.request("tools/list", {})
        assert first == {"tools": [tool("one")], "nextCursor": "2"}
        assert await client.request("tools/list", {"cursor": "2"}) == {"tools": [tool("two")]}
        assert (await client.call("one")).text == "one"
        assert (await client.call("two")).text == "two"


# --------------------------------------------------------------------------------- the SDK's 2.x style


@in_loop
async def test_callbacks_take_context_and_params() -> None:
    async def list_tools(ctx: Any, params: Any) -> Any:
        return {"tools": [ADD]}

    async def call_tool(ctx: Any, params: Any) -> Any:
        if params.arguments.get("a") == 13:
            raise McpError(-32602, "unlucky")
        await ctx.session.send_log_message("info", ctx.method)
        words = f"{params.name} {params.arguments} {ctx.protocol_version} {ctx.request_id} {ctx.meta}"
        return {"content": [text(words)], "structuredContent": {"n": 1}, "isError": False}

    async def custom(ctx: Any, params: Any) -> Any:
        return {"method": ctx.method, "x": params.x}

    roots = asyncio.Event()

    async def roots_changed(ctx: Any, params: Any) -> None:
        await ctx.session.send_log_message("info", ctx.method)
        roots.set()

    server = Server(
        "two", on_list_tools=list_tools, on_call_tool=call_tool, on_roots_list_changed=roots_changed
    )
    server.add_request_handler("x/custom", "CustomParams", custom)
    async with Client(server) as client:
        for _ in range(2):
            found = await client.request("tools/call", {"name": "add", "arguments": {"a": "x"}})
            assert found["content"][0]["text"].startswith("add {'a': 'x'} 2025-11-25 ")  # no validation
            assert found["structuredContent"] == {"n": 1}
            with pytest.raises(RemoteError, match="unlucky") as caught:
                await client.call("add", a=13)
            assert caught.value.code == -32602
            assert await client.list_tools() == [ADD]
        assert await client.request("x/custom", {"x": 5}) == {"method": "x/custom", "x": 5}
        client.notify("notifications/roots/list_changed")
        await asyncio.wait_for(roots.wait(), 30)
        await client.request("ping")
        assert client.logs[-1]["data"] == "notifications/roots/list_changed"
    with pytest.raises(ValueError, match="initialize"):
        server.add_request_handler("initialize", "InitializeRequestParams", custom)
    with pytest.raises(TypeError, match="on_nothing"):
        Server("two", on_nothing=custom)


# ------------------------------------------------------------------------------------------- options


@in_loop
async def test_what_is_declared_follows_from_the_handlers_and_the_options() -> None:
    server = one_tool(lambda _: [])
    options = server.create_initialization_options(NotificationOptions(tools_changed=True), {"x": {}})
    assert (options.server_name, options.capabilities.tools.listChanged) == ("one", True)
    capabilities = server.get_capabilities(NotificationOptions(), {})
    other = InitializationOptions(
        server_name="other", server_version="7", capabilities=capabilities, instructions="read"
    )
    server._take_options(other)
    async with Client(server) as client:
        assert client.info["serverInfo"] == {"name": "other", "version": "7"}
        assert client.info["instructions"] == "read"
        assert client.info["capabilities"]["tools"] == {"listChanged": False}
    assert set(vars(options)) == set(type(options).model_fields)
    options = options.model_copy(update={"instructions": "more"})
    server._take_options(options)
    async with Client(server) as client:
        assert client.info["serverInfo"]["name"] == "one"
        assert client.info["instructions"] == "more"
        assert client.info["capabilities"]["tools"] == {"listChanged": True}
        assert client.info["capabilities"]["experimental"] == {"x": {}}


@in_loop
async def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(RuntimeError, match="streamable_http_app"):
        Server("demo").session_manager  # noqa: B018
    with pytest.raises(NotOffered, match="stateless"):
        await Server("demo").run(None, None, stateless=True)
    with pytest.raises(NotOffered, match="descriptor"):
        stdio_server(stdin=object())
    async with stdio_server() as (read, write):
        assert read is not write


# ------------------------------------------------------------------------------------------ validation

SCHEMAS: list[Any] = [
    True,
    {"type": "string"},
    {"type": "string", "minLength": 2, "maxLength": 3, "title": "t"},
    {"type": "integer", "minimum": 1, "exclusiveMaximum": 5},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": ["a", "b"]},
    {"type": "string", "enum": ["a"]},
    {"enum": [1, True]},
    {"const": "a"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "integer"}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": ["string", "null"]},
    {"type": "string", "pattern": "^a"},
]
VALUES: list[Any] = [
    None, True, 0, 1, 1.0, 5, 4.5, float("inf"), "", "a", "ab", "abcd", [], [1], ["a"], {}, {"a": "b"},
    {"a": 1}, {"b": 1},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_the_quick_check_accepts_nothing_that_jsonschema_refuses(schema: Any) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    quick = quick_check(schema)
    for value in VALUES:
        assert (SchemaCheck(schema).problem(value) is None) == validator.is_valid(value), value
        if quick is not None and quick(value):
            assert validator.is_valid(value), value
