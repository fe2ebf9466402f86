"""Habits of published servers: what they do beside what the originals' documents show, and rely on.

The expected values are those of FastMCP 2.14, 3.4, 4.1 and 4.2 and of the official SDK 1.30 and 2.3.
"""

# ruff: noqa: UP045 - how older files write annotations is what is tested

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Annotated, Any, Optional

import pytest
from support.in_memory import ask, every_version, with_client

from fastrpc.compat import dialect, fastmcp, mcp
from fastrpc.compat.functions import docstrings
from fastrpc.compat.functions.docstrings import read_docstring

FASTMCP, SDK_1, SDK_2 = fastmcp.FastMCP, mcp.FastMCP, mcp.MCPServer
ALL = pytest.mark.parametrize("kind", [FASTMCP, SDK_1, SDK_2], ids=["fastmcp", "sdk1", "sdk2"])


def described(kind: Any, function: Any, **options: Any) -> dict[str, Any]:
    server = kind("demo")
    server.add_tool(function, **options)
    (tool,) = ask(server, "tools/list")["tools"]
    return dict(tool)


def answered(kind: Any, function: Any, /, **arguments: Any) -> dict[str, Any]:
    server = kind("demo")
    server.add_tool(function, name="tool")
    found: dict[str, Any] = ask(server, "tools/call", {"name": "tool", "arguments": arguments})
    return found


# ----------------------------------------------------------------------------- signatures that are given


def signed() -> Any:
    """A function that is made for a table of tools: it says by ``__signature__`` what it takes."""
    kind = inspect.Parameter.KEYWORD_ONLY

    async def run(**arguments: Any) -> Any:
        return f"{sorted(arguments.items())}"

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("name", kind, annotation=str),
            inspect.Parameter("limit", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=3, annotation=int),
        ][::-1],
        return_annotation=str,
    )
    run.__doc__ = "Run it."
    return run


@ALL
def test_a_signature_that_is_given_counts_for_more_than_the_functions_own(kind: Any) -> None:
    tool = described(kind, signed(), name="tool")
    assert tool["inputSchema"]["properties"] == {
        "limit": {"type": "integer", "default": 3},
        "name": {"type": "string"},
    }
    assert tool["inputSchema"]["required"] == ["name"]
    assert tool["description"] == "Run it."
    assert answered(kind, signed(), name="x")["content"][0]["text"] == "[('limit', 3), ('name', 'x')]"


def test_a_given_signature_of_a_wrapper_has_its_names_where_the_wrapped_function_is() -> None:
    def real(first: Optional[int] = None, second: int = 2) -> str:
        return f"{first} {second}"

    @functools.wraps(real)
    def outer(*values: Any, **named: Any) -> str:
        return real(*values, second=5, **named)

    parameters = inspect.signature(real).parameters
    outer.__signature__ = inspect.Signature([parameters["first"]])  # type: ignore[attr-defined]
    assert [*described(FASTMCP, outer)["inputSchema"]["properties"]] == ["first"]
    assert answered(FASTMCP, outer, first=1)["content"][0]["text"] == "1 5"


# ------------------------------------------------------------------------------ options by position


def test_the_options_of_a_tool_may_follow_its_name_in_the_sdks_order() -> None:
    def add(a: int) -> int:
        """The docstring."""
        return a

    server = SDK_1("demo")
    server.add_tool(add, "one", "One", "", None)
    server.tool("two", "Two", "Adds two.")(add)
    server.prompt("three", "Three", "Asks.")(lambda: "x")
    one, two = ask(server, "tools/list")["tools"]
    assert (one["name"], one["title"], one["description"]) == ("one", "One", "The docstring.")
    assert (two["name"], two["title"], two["description"]) == ("two", "Two", "Adds two.")
    (three,) = ask(server, "prompts/list")["prompts"]
    assert (three["title"], three["description"]) == ("Three", "Asks.")
    with pytest.raises(TypeError, match="add_tool: expected at most 6 values after the name, got 7"):
        server.add_tool(add, "four", *range(7))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ Field in Annotated


@ALL
def test_a_default_in_annotated_makes_a_parameter_optional(kind: Any) -> None:
    pydantic = pytest.importorskip("pydantic")

    def find(limit: Annotated[int, pydantic.Field(default=5, ge=1)], text: str = "x") -> str:
        return f"{limit} {text}"

    find.__annotations__["limit"] = Annotated[int, pydantic.Field(default=5, ge=1)]
    schema = described(kind, find)["inputSchema"]
    assert schema["properties"]["limit"] == {"type": "integer", "minimum": 1, "default": 5}
    assert "required" not in schema
    assert answered(kind, find)["content"][0]["text"] == "5 x"


def test_the_default_of_a_type_that_may_be_null_is_written_once_in_its_schema() -> None:
    pydantic = pytest.importorskip("pydantic")

    def find(text=None) -> str:  # type: ignore[no-untyped-def]
        return str(text)

    find.__annotations__["text"] = Annotated[Optional[str], pydantic.Field(None, max_length=3)]
    (schema,) = described(SDK_1, find)["inputSchema"]["properties"].values()
    assert schema == {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}], "default": None}


# -------------------------------------------------------------------------------------------- results


@every_version
def test_an_object_that_is_not_declared_is_structured_content_in_fastmcp(version: str) -> None:
    async def bare():  # type: ignore[no-untyped-def]
        return {"a": {1: 2}}

    async def optional() -> dict[str, int] | None:
        return {"a": 1}

    for kind, function, structured in (
        (FASTMCP, bare, {"a": {"1": 2}}),
        (FASTMCP, optional, {"result": {"a": 1}}),
        (SDK_1, bare, None),
    ):
        server = kind("demo")
        server.add_tool(function, name="tool")
        result = ask(server, "tools/call", {"name": "tool", "arguments": {}}, version)
        assert result.get("structuredContent") == (structured if version >= "2025-06-18" else None)


def test_a_tool_that_is_declared_to_return_none_has_no_output_schema_in_fastmcp() -> None:
    def plain() -> None:
        return None

    plain.__annotations__["return"] = None
    assert "outputSchema" not in described(FASTMCP, plain)
    assert described(SDK_1, plain)["outputSchema"]["properties"]["result"]["type"] == "null"


class Refused(fastmcp.ToolResult):
    """A result whose own form is an error."""

    def to_mcp_result(self) -> Any:
        import mcp_types

        return mcp_types.CallToolResult(
            content=self.content, structured_content=self.structured_content, is_error=True
        )


def test_the_form_that_a_class_of_results_gives_itself_is_sent() -> None:
    pytest.importorskip("mcp.types")

    def fail() -> fastmcp.ToolResult:
        return Refused("no", {"code": 1})

    result = answered(FASTMCP, fail)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "no"}]
    assert result["structuredContent"] == {"code": 1}


def test_middleware_may_return_a_result_with_its_own_form() -> None:
    pytest.importorskip("mcp.types")

    class Marking(fastmcp.Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            result = await call_next(context)
            return Refused(result.content, result.structured_content)

    def fail() -> dict[str, int]:
        return {"code": 1}

    server = FASTMCP("demo", middleware=[Marking()])
    server.add_tool(fail)
    result = ask(server, "tools/call", {"name": "fail", "arguments": {}})
    assert result["isError"] is True
    assert result["structuredContent"] == {"code": 1}
    assert result["content"][0]["text"] == '{"code":1}'


# ----------------------------------------------------------------------------------- titles and errors


def test_a_tool_has_the_title_of_its_annotations_in_fastmcp() -> None:
    def find() -> str:
        return ""

    assert described(FASTMCP, find, annotations={"title": "Find it"})["title"] == "Find it"
    assert described(FASTMCP, find, title="Own", annotations={"title": "Find it"})["title"] == "Own"
    assert "title" not in described(SDK_1, find, annotations={"title": "Find it"})


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (FASTMCP, {}, "Error rendering prompt 'ask': no such thing"),
        (SDK_1, {}, "Error rendering prompt ask: no such thing"),
        (SDK_2, {}, "prompt ask failed; see the server's log"),
        (FASTMCP, {"mask_error_details": True}, "prompt ask failed; see the server's log"),
        (FASTMCP, {"middleware": [fastmcp.Middleware()]}, "Error rendering prompt 'ask': no such thing"),
    ],
)
def test_clients_learn_why_a_prompt_failed(kind: Any, options: Any, message: str) -> None:
    server = kind("demo", **options)

    @server.prompt()
    def ask() -> str:
        raise ValueError("no such thing")

    async def conversation(client: Any) -> str:
        with pytest.raises(Exception, match="ask") as caught:
            await client.request("prompts/get", {"name": "ask"})
        return str(caught.value)

    assert message in with_client(server, conversation)


# ---------------------------------------------------------------------------------------- docstrings

RETURNS = """Count things.

    More of it.

    Returns:
        The number
    """
PARAMETERS = "Count things.\n\nArgs:\n    a: The first\n\nReturns:\n    The number"
NUMPY = "Count things.\n\nReturns\n-------\nint\n    The number"
SPHINX = "Count things.\n\n:returns: the number"


@pytest.mark.parametrize(
    ("version", "text", "description"),
    [
        ((4, 2), RETURNS, "Count things.\n\nMore of it."),
        ((4, 2), NUMPY, "Count things."),
        ((4, 2), SPHINX, "Count things."),
        ((4, 2), PARAMETERS, "Count things."),
        ((4, 2), "Count.\n\nRules:\n    None", "Count.\n\nRules:\n    None"),
        ((4, 1), RETURNS, "Count things.\n\nMore of it."),
        ((4, 1), "Count.\n\nRules:\n    None", "Count."),
        ((4, 0), RETURNS, "Count things.\n\nMore of it.\n\nReturns:\n    The number"),
        ((3, 4), PARAMETERS, "Count things."),
        ((2, 14), PARAMETERS, PARAMETERS),
    ],
)
def test_docstrings_are_read_as_the_installed_fastmcp_reads_them(
    version: tuple[int, int], text: str, description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docstrings, "installed_release", lambda package: version)
    found, parameters = read_docstring(text)
    assert found == description
    assert parameters == ({"a": "The first"} if text == PARAMETERS and version >= (3, 0) else {})


def test_the_installed_version_is_that_of_the_first_folder_that_has_one(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fastmcp_slim-4.2.3.dist-info").mkdir()
    dialect.installed_version.cache_clear()
    monkeypatch.setattr("sys.path", [str(tmp_path / "none"), str(tmp_path)])
    try:
        assert dialect.installed_release("fastmcp") == (4, 2)
        dialect.installed_version.cache_clear()
        monkeypatch.setattr("sys.path", [])
        assert dialect.installed_version("fastmcp") == dialect.LATEST_KNOWN["fastmcp"]
    finally:
        dialect.installed_version.cache_clear()


# ------------------------------------------------------------------------- sessions and inner servers


def test_what_a_file_sets_on_the_session_is_kept_for_the_connection() -> None:
    server = FASTMCP("demo")

    @server.tool
    def count(ctx: fastmcp.Context) -> int:
        sessions = {ctx.session: "one"}
        ctx.session.calls = getattr(ctx.session, "calls", 0) + 1
        assert sessions[ctx.session] == "one"
        return int(ctx.session.calls)

    @server.tool
    def forget(ctx: fastmcp.Context) -> bool:
        del ctx.session.calls
        return hasattr(ctx.session, "calls")

    async def conversation(client: Any) -> list[str]:
        return [(await client.call(name)).text for name in ("count", "count", "forget", "count")]

    assert with_client(server, conversation) == ["1", "2", "false", "1"]
    assert with_client(server, conversation) == ["1", "2", "false", "1"]


def test_what_is_set_on_the_inner_server_is_the_servers_own() -> None:
    server = SDK_1("demo")
    server._mcp_server.version = "1.2.3"
    assert (server._mcp_server.version, server._mcp_server.name) == ("1.2.3", "demo")
    assert server.info["version"] == "1.2.3"
    with pytest.raises(AttributeError, match="the inner server has no request_queue"):
        server._mcp_server.request_queue = []


def over_streams(server: Any, *requests: dict[str, Any]) -> list[Any]:
    """Send requests over the message streams of the official SDK; return the message of each answer."""
    anyio = pytest.importorskip("anyio")
    message = pytest.importorskip("mcp.shared.message")
    types = pytest.importorskip("mcp_types")

    async def conversation() -> list[Any]:
        to_server, read = anyio.create_memory_object_stream(len(requests))
        write, from_server = anyio.create_memory_object_stream(len(requests))
        inner = server._mcp_server
        serving = asyncio.ensure_future(inner.run(read, write, inner.create_initialization_options()))
        for request in requests:
            await to_server.send(message.SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", **request)))
        with anyio.fail_after(10):
            answers = [await from_server.receive() for _ in requests]
        await to_server.aclose()
        await serving
        await from_server.aclose()
        return [answer.message for answer in answers]

    return asyncio.run(conversation())


def test_the_inner_server_serves_streams_of_messages() -> None:
    assert [answer.id for answer in over_streams(SDK_1("demo"), {"id": 1, "method": "ping"})] == [1]


def test_half_a_surrogate_pair_over_streams_fails_its_request_alone() -> None:
    broken = {"id": 1, "method": "tools/call", "params": {"name": "\ud800", "arguments": {}}}
    answers = over_streams(SDK_1("demo"), broken, {"id": 2, "method": "ping"})
    assert [answer.id for answer in answers] == [1, 2]
    assert answers[0].error.code < 0


def test_a_response_that_the_sdk_has_no_model_of_fails_its_request_alone(monkeypatch: Any) -> None:
    from fastrpc.compat.lowlevel import streams

    parser_of = streams._parser_of

    def refusing(types: Any) -> Any:
        parse = parser_of(types)

        def parsed(line: Any) -> Any:
            if b'"id":1,"result"' in bytes(line if isinstance(line, bytes) else line.encode()):
                raise ValueError("no such response")
            return parse(line)

        return parsed

    monkeypatch.setattr(streams, "_parser_of", refusing)
    answers = over_streams(SDK_1("demo"), {"id": 1, "method": "ping"}, {"id": 2, "method": "ping"})
    assert [answer.id for answer in answers] == [1, 2]
    assert answers[0].error.code == -32603


def test_a_resource_that_is_not_there_is_a_value_error_for_the_tool_that_reads_it() -> None:
    server = SDK_1("demo")

    @server.tool()
    async def read(ctx: mcp.Context) -> str:
        try:
            await ctx.read_resource("none://x")
        except ValueError as error:
            return str(error)
        return ""

    assert with_client(server, lambda client: client.call("read")).text == "Unknown resource: none://x"


def test_routes_that_a_file_adds_by_fastmcps_name_are_served() -> None:
    routing = pytest.importorskip("starlette.routing")
    server = FASTMCP("demo")
    route = routing.Route("/hub", lambda request: None)
    server._additional_http_routes.append(route)
    assert server._get_additional_http_routes() == [route]
    assert route in server.http_app().routes
