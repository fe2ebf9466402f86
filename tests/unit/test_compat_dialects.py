"""Each original's way to describe tools and to encode results: clients and models see the same as there.

The expected values are what FastMCP 3.4.10 and 4.1.2, and the official SDK 1.30.0 and 2.3.0 answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import (  # noqa: UP035 - the SDK tells Dict from dict
    Any,
    Dict,
    Generic,
    List,
    Literal,
    Optional,
    TypeVar,
    Union,
)

import pytest
from pydantic import ValidationError
from support.dialects import ALL, FASTMCP, SDK_1, SDK_2, SDKS, tool_and_result
from support.in_memory import every_version, texts_of, with_client
from typing_extensions import TypedDict

from fastrpc import Server
from fastrpc.compat import fastmcp, mcp
from fastrpc.compat.calls.validation_errors import as_validation_error
from fastrpc.compat.dialect import follow_release
from fastrpc.errors import ArgumentError, ToolError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STRUCTURED


@ALL
def test_null_and_a_null_default_are_in_the_schema(kind: Any) -> None:
    def find(name: Optional[str] = None, most: int | None = 5, anything: Any = None) -> None: ...  # noqa: UP045

    tool, _ = tool_and_result(kind, find)
    assert tool["inputSchema"]["properties"] == {
        "name": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "most": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
        "anything": {"default": None},
    }


def test_null_defaults_of_a_model_s_members_are_in_the_schema() -> None:
    pydantic = pytest.importorskip("pydantic", reason="the file uses its models")
    model = pydantic.create_model("Entry", note=(Optional[str], None))  # noqa: UP045

    def add(entry: Any) -> None: ...

    add.__annotations__["entry"] = model
    tool, _ = tool_and_result(FASTMCP, add, {"entry": {}})
    entry = tool["inputSchema"]["properties"]["entry"]
    assert entry["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}


def test_a_server_of_fastrpc_s_own_describes_neither() -> None:
    def find(name: Optional[str] = None) -> str:  # noqa: UP045
        return "found"

    tool, result = tool_and_result(Server, find)
    assert tool["inputSchema"]["properties"]["name"] == {"type": "string"}
    assert "outputSchema" not in tool
    assert "structuredContent" not in result


@ALL
@every_version
@pytest.mark.parametrize("text", ["plain", 'with "quotes"', "日本", ""])
def test_a_text_is_structured_content_too(kind: Any, version: str, text: str) -> None:
    def give() -> str:
        return text

    tool, result = tool_and_result(kind, give, version=version)
    assert texts_of(result) == [text]
    assert result.get("isError", False) is False
    if version in STRUCTURED:
        assert tool["outputSchema"]["properties"] == {"result": {"type": "string"}}
        assert result["structuredContent"] == {"result": text}
    else:
        assert "structuredContent" not in result


@ALL
@pytest.mark.parametrize("value", [None, "text", {"a": 1}])
def test_what_may_be_a_text_is_structured_content(kind: Any, value: Any) -> None:
    def give() -> Union[str, dict[str, int], None]:  # noqa: UP007
        return value  # type: ignore[no-any-return]

    _, result = tool_and_result(kind, give)
    assert result["structuredContent"] == {"result": value}
    assert texts_of(result) == ([] if value is None else ["text" if value == "text" else '{"a":1}'])


@ALL
def test_a_literal_text_is_written_without_quotes(kind: Any) -> None:
    def state() -> Literal["on", "off"]:
        return "on"

    tool, result = tool_and_result(kind, state)
    assert texts_of(result) == ["on"]
    assert result["structuredContent"] == {"result": "on"}
    assert tool["outputSchema"]["properties"]["result"]["enum"] == ["on", "off"]


@SDKS
def test_a_text_where_another_was_declared_is_an_error(kind: Any) -> None:
    def state() -> Literal["on", "off"]:
        return "broken"  # type: ignore[return-value]

    _, result = tool_and_result(kind, state)
    assert result["isError"] is True
    assert "structuredContent" not in result


@SDKS
@pytest.mark.parametrize("declared", [List[Any], list[Any], list, Any], ids=str)  # noqa: UP006
def test_the_sdk_makes_a_block_of_each_item(kind: Any, declared: Any) -> None:
    def give():  # type: ignore[no-untyped-def]
        return ["a", 2, {"b": [3]}, None]

    give.__annotations__["return"] = declared
    _, result = tool_and_result(kind, give)
    assert texts_of(result) == ["a", "2", '{"b":[3]}']


@SDKS
def test_the_blocks_of_a_declared_list_are_structured_content_in_one(kind: Any) -> None:
    def give() -> list[str]:
        return ["a", "b"]

    _, result = tool_and_result(kind, give)
    assert texts_of(result) == ["a", "b"]
    assert result["structuredContent"] == {"result": ["a", "b"]}


@SDKS
def test_an_empty_list_is_no_block_for_the_sdk(kind: Any) -> None:
    def give() -> list[str]:
        return []

    assert tool_and_result(kind, give)[1]["content"] == []


def test_fastmcp_makes_one_block_of_a_list() -> None:
    def give() -> list[str]:
        return ["a", "b"]

    _, result = tool_and_result(FASTMCP, give)
    assert texts_of(result) == ['["a","b"]']
    assert result["structuredContent"] == {"result": ["a", "b"]}


@SDKS
def test_the_sdk_wraps_a_dict_of_typing_and_sends_a_bare_dict_as_text(kind: Any) -> None:
    def generic() -> Dict[str, Any]:  # noqa: UP006
        return {"a": 1}

    def builtin() -> dict[str, Any]:
        return {"a": 1}

    def bare() -> dict:  # type: ignore[type-arg]
        return {"a": 1}

    tool, result = tool_and_result(kind, generic)
    assert result["structuredContent"] == {"result": {"a": 1}}
    assert tool["outputSchema"]["required"] == ["result"]
    assert tool_and_result(kind, builtin)[1]["structuredContent"] == {"a": 1}
    tool, result = tool_and_result(kind, bare)
    assert "outputSchema" not in tool
    assert "structuredContent" not in result
    assert texts_of(result) == ['{"a":1}']


def test_fastmcp_wraps_no_dict() -> None:
    def generic() -> Dict[str, Any]:  # noqa: UP006
        return {"a": 1}

    assert tool_and_result(FASTMCP, generic)[1]["structuredContent"] == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "expected", "unexpected"),
    [
        (FASTMCP, "no such row", "Error calling tool 'fail': bad row"),
        (SDK_1, "Error executing tool fail: no such row", "Error executing tool fail: bad row"),
        (SDK_2, "Error executing tool fail: no such row", "Error executing tool fail"),
        (Server, "no such row", "ValueError: bad row"),
    ],
    ids=["fastmcp", "sdk1", "sdk2", "fastrpc"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_errors_begin_as_in_the_original(kind: Any, expected: str, unexpected: str, is_async: bool) -> None:
    def fail(plainly: bool) -> str:
        if plainly:
            raise ToolError("no such row")
        raise ValueError("bad row")

    async def fail_later(plainly: bool) -> str:
        return fail(plainly)

    fail_later.__name__ = "fail"
    function = fail_later if is_async else fail
    for plainly, text in ((True, expected), (False, unexpected)):
        result = tool_and_result(kind, function, {"plainly": plainly})[1]
        assert result["isError"] is True
        assert texts_of(result) == [text]


def test_functions_of_the_sdk_1_share_the_thread_of_the_loop() -> None:
    import threading

    def thread() -> str:
        return threading.current_thread().name

    async def of_the_loop() -> str:
        return threading.current_thread().name

    found = {tool_and_result(SDK_1, each)[1]["structuredContent"]["result"] for each in (thread, of_the_loop)}
    assert len(found) == 1


# --- results whose form the originals have each decided -----------------------------------------------------


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    items: list[Item]


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (Colour, Colour.RED, "red"),
        (datetime, datetime(2026, 1, 2), "2026-01-02T00:00:00"),
        (Decimal, Decimal("1.5"), "1.5"),
        (Path, Path("/a"), "/a"),
    ],
    ids=str,
)
@SDKS
def test_the_sdk_describes_no_result_without_members(kind: Any, declared: Any, value: Any, text: str) -> None:
    def give():  # type: ignore[no-untyped-def]
        return value

    give.__annotations__["return"] = declared
    tool, result = tool_and_result(kind, give)
    assert "outputSchema" not in tool
    assert "structuredContent" not in result
    assert texts_of(result)[0].strip('"') == text


@pytest.mark.parametrize(("declared", "value"), [(dict[int, str], {1: "a"}), (Page[int], {"items": [1]})])
@SDKS
def test_the_sdk_wraps_generic_objects(kind: Any, declared: Any, value: Any) -> None:
    def give():  # type: ignore[no-untyped-def]
        return value

    give.__annotations__["return"] = declared
    tool, result = tool_and_result(kind, give)
    assert list(tool["outputSchema"]["properties"]) == ["result"]
    assert list(result["structuredContent"]) == ["result"]


@SDKS
def test_a_list_of_anything_has_an_output_schema_for_the_sdk(kind: Any) -> None:
    def give() -> list[Any]:
        return [7, "a"]

    tool, result = tool_and_result(kind, give)
    assert tool["outputSchema"]["properties"]["result"]["type"] == "array"
    assert result["structuredContent"] == {"result": [7, "a"]}


@dataclass
class Place:
    name: str


@pytest.mark.parametrize("declared", [None, Any], ids=["without", "any"])
@pytest.mark.parametrize("value", [{"name": "a"}, Place("a")], ids=["dict", "dataclass"])
def test_fastmcp_structures_an_object_without_an_annotation(declared: Any, value: Any) -> None:
    def give():  # type: ignore[no-untyped-def]
        return value

    if declared is not None:
        give.__annotations__["return"] = declared
    tool, result = tool_and_result(FASTMCP, give)
    assert "outputSchema" not in tool
    assert result["structuredContent"] == {"name": "a"}
    assert texts_of(result) == ['{"name":"a"}']


@pytest.mark.parametrize("value", [[1, 2], "text", 5], ids=str)
def test_fastmcp_structures_nothing_else_without_an_annotation(value: Any) -> None:
    def give():  # type: ignore[no-untyped-def]
        return value

    assert "structuredContent" not in tool_and_result(FASTMCP, give)[1]


@pytest.mark.parametrize("value", ["no number", {"a": 1}], ids=str)
def test_fastmcp_sends_what_differs_from_the_annotation(value: Any) -> None:
    def give() -> int:
        return value  # type: ignore[no-any-return]

    result = tool_and_result(FASTMCP, give)[1]
    assert not result["isError"]
    assert result["structuredContent"] == {"result": value}


def test_fastmcp_refuses_what_is_no_object_where_one_was_declared() -> None:
    def give() -> dict[str, int]:
        return [1]  # type: ignore[return-value]

    assert tool_and_result(FASTMCP, give)[1]["isError"]


@ALL
def test_bytes_are_text(kind: Any) -> None:
    def give() -> bytes:
        return "ä".encode()

    tool, result = tool_and_result(kind, give)
    assert texts_of(result) == ["ä"]
    assert ("outputSchema" in tool) is (kind is not FASTMCP)


def test_the_release_that_is_followed_decides_whether_there_are_output_schemas() -> None:
    def give() -> int:
        return 5

    follow_release("mcp", "1.9.4")
    try:
        tool, result = tool_and_result(SDK_1, give)
    finally:
        follow_release("mcp", "1.30.0")
    assert "outputSchema" not in tool
    assert "structuredContent" not in result
    assert "outputSchema" in tool_and_result(SDK_1, give)[0]


@SDKS
def test_the_sdk_reads_json_texts_where_anything_is_taken(kind: Any) -> None:
    def show(a: Any, b: Union[str, dict[str, int], None] = None, c: str = "") -> str:  # noqa: UP007
        return repr((a, b, c))

    shown = tool_and_result(kind, show, {"a": "[1]", "b": '{"x": 1}', "c": "[1]"})[1]
    assert texts_of(shown) == ["([1], {'x': 1}, '[1]')"]
    shown = tool_and_result(kind, show, {"a": "5", "b": "true"})[1]
    assert texts_of(shown) == ["('5', 'true', '')"]


def test_fastmcp_leaves_texts_as_they_are() -> None:
    def show(a: Any) -> str:
        return repr(a)

    assert texts_of(tool_and_result(FASTMCP, show, {"a": "[1]"})[1]) == ["'[1]'"]


@ALL
def test_a_default_factory_is_called_for_each_call(kind: Any) -> None:
    pydantic = pytest.importorskip("pydantic", reason="the file uses its Field")

    def show(a: list[int] = pydantic.Field(default_factory=list, description="A")) -> str:  # noqa: B008
        a.append(1)
        return repr(a)

    tool, result = tool_and_result(kind, show)
    assert texts_of(result) == ["[1]"]  # of the second call
    assert tool["inputSchema"]["properties"]["a"] == {
        "type": "array",
        "description": "A",
        "items": {"type": "integer"},
    }
    assert "required" not in tool["inputSchema"]


def test_an_inner_handler_answers_in_the_place_of_the_server() -> None:
    server = SDK_1("demo")

    @server.tool()
    def one() -> str:
        return "1"

    @server.tool()
    def two() -> str:
        return "2"

    @server._mcp_server.list_tools()
    async def listed() -> Any:
        return [tool for tool in await server.list_tools() if tool.name == "one"]

    @server._mcp_server.call_tool(validate_input=False)
    async def called(name: str, arguments: dict[str, Any]) -> Any:
        return [{"type": "text", "text": f"{name}{arguments}"}], {"name": name}

    async def conversation(client: Any) -> Any:
        tools = (await client.request("tools/list", {}))["tools"]
        return tools, await client.request("tools/call", {"name": "two", "arguments": {}})

    tools, result = with_client(server, conversation, LATEST_SESSION_VERSION)
    assert [tool["name"] for tool in tools] == ["one"]
    assert texts_of(result) == ["two{}"]
    assert result["structuredContent"] == {"name": "two"}
    server._mcp_server.version = "9"
    assert server.version == "9"


def test_an_exception_may_be_both_that_of_tools_and_that_of_resources() -> None:
    class Both(mcp.ToolError, mcp.ResourceError):
        pass

    assert issubclass(Both, ToolError)
    assert issubclass(mcp.ToolError, mcp.FastMCPError)


def test_media_become_content_and_addresses() -> None:
    image = fastmcp.Image(data=b"x", format="gif")
    assert image.to_data_uri() == "data:image/gif;base64,eA=="
    shown = image.to_image_content("image/png", {"priority": 1}).model_dump(by_alias=True)
    assert (shown["mimeType"], shown["annotations"]["priority"]) == ("image/png", 1)
    assert fastmcp.Audio(data=b"x").to_audio_content().data == "eA=="
    file = fastmcp.File(data=b"x", format="txt").to_resource_content("a/b").model_dump(by_alias=True)
    assert file["resource"]["mimeType"] == "a/b"


@ALL
def test_the_lifespan_is_entered_before_the_first_list(kind: Any) -> None:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        server.remove_tool("two")
        yield

    server = kind("demo", lifespan=lifespan)

    @server.tool()
    def one() -> str:
        return "1"

    @server.tool()
    def two() -> str:
        return "2"

    async def conversation(client: Any) -> Any:
        return [await client.request("tools/list", {}) for _ in range(2)]

    for found in with_client(server, conversation, LATEST_SESSION_VERSION):
        assert [tool["name"] for tool in found["tools"]] == ["one"]


@SDKS
def test_the_contents_of_a_resource_have_its_meta_in_the_sdk(kind: Any) -> None:
    server = kind("demo")

    @server.resource("a://b", meta={"ui": {"border": False}})
    def page() -> str:
        return "text"

    async def conversation(client: Any) -> Any:
        return (await client.request("resources/read", {"uri": "a://b"}))["contents"]

    (found,) = with_client(server, conversation, LATEST_SESSION_VERSION)
    assert found["_meta"] == {"ui": {"border": False}}
    assert found["text"] == "text"


@SDKS
def test_the_error_of_an_overridden_call_has_pydantics_as_its_cause(kind: Any) -> None:
    problems: list[Any] = []

    class Own(kind):  # type: ignore[misc]
        async def call_tool(self, name: str, arguments: Any, context: Any = None) -> Any:
            try:
                return await super().call_tool(name, arguments, context)
            except mcp.ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    problems.extend(error.__cause__.errors(include_input=False))
                raise

    server = Own("demo")

    @server.tool()
    def one(first: int, second: list[int]) -> str:
        return f"{first}"

    async def conversation(client: Any) -> Any:
        call = {"name": "one", "arguments": {"second": [1, "x"]}}
        return await client.request("tools/call", call)

    refused = with_client(server, conversation, LATEST_SESSION_VERSION)
    assert "first: required" in texts_of(refused)[0]
    assert [(each["loc"], each["type"]) for each in problems] == [
        (("first",), "invalid_argument"),
        (("second", 1), "invalid_argument"),
    ]
    assert problems[0]["msg"] == "required, missing"


def test_an_error_without_a_field_has_no_other_form() -> None:
    error = ArgumentError("expected an object")
    assert as_validation_error(error, "one") is error


@SDKS
def test_requests_are_answered_through_methods_that_a_program_overrides(kind: Any) -> None:
    class Own(kind):  # type: ignore[misc]
        async def list_tools(self) -> Any:
            return [tool for tool in await super().list_tools() if tool.name != "two"]

        async def call_tool(self, name: str, arguments: Any, context: Any = None) -> Any:
            try:
                return await super().call_tool(name, arguments, context)
            except mcp.ToolError as error:
                raise mcp.ToolError(f"sorry: {error}") from None

    server = Own("demo")

    @server.tool()
    def one(a: int) -> str:
        return f"{a}"

    @server.tool()
    def two() -> str:
        raise ValueError("broken")

    @server.resource("a://b")
    def text() -> str:
        return "text"

    read = server.read_resource

    async def guarded(uri: Any, context: Any = None) -> Any:
        (found,) = await read(uri)
        found.content += "!"
        return [found]

    server.read_resource = guarded

    async def conversation(client: Any) -> Any:
        listed = (await client.request("tools/list", {}))["tools"]
        calls = [{"name": "one", "arguments": {"a": 5}}, {"name": "one"}, {"name": "two"}, {"name": "three"}]
        results = [await client.request("tools/call", call) for call in calls]
        return listed, results, (await client.request("resources/read", {"uri": "a://b"}))["contents"]

    listed, (good, refused, failed, unknown), (contents,) = with_client(
        server, conversation, LATEST_SESSION_VERSION
    )
    assert [tool["name"] for tool in listed] == ["one"]
    assert (texts_of(good), good["structuredContent"]) == (["5"], {"result": "5"})
    for result in (refused, failed, unknown):
        assert result["isError"]
        assert "sorry: " in texts_of(result)[0]
    assert "a: required" in texts_of(refused)[0]
    assert contents["text"] == "text!"


def test_requests_are_answered_through_fastmcps_inner_methods_that_a_program_overrides() -> None:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[dict[str, set[str]]]:
        yield {"hides": {"two"}}

    class Own(fastmcp.FastMCP[Any]):
        @property
        def hides(self) -> Any:
            return self._mcp_server.request_context.lifespan_context["hides"]

        async def _list_tools_mcp(self) -> Any:
            return [tool.to_mcp_tool() for tool in await self.list_tools() if tool.name not in self.hides]

        async def _call_tool_mcp(self, key: str, arguments: dict[str, Any]) -> Any:
            if key in self.hides:
                raise fastmcp.ToolError(f"Unknown tool: {key}")
            return await super()._call_tool_mcp(key, arguments)

        async def _list_prompts_mcp(self, request: Any = None) -> Any:
            return await super()._list_prompts_mcp(request)

    server = Own("demo", lifespan=lifespan)

    @server.tool
    def one(a: int) -> str:
        return f"{a}"

    @server.tool
    def two() -> str:
        return "never"

    @server.prompt
    def ask() -> str:
        return "What?"

    async def conversation(client: Any) -> Any:
        listed = [(await client.request(f"{kind}/list", {}))[kind] for kind in ("tools", "prompts")]
        calls = [{"name": "one", "arguments": {"a": 5}}, {"name": "two"}]
        return listed, [await client.request("tools/call", call) for call in calls]

    (tools, prompts), (good, refused) = with_client(server, conversation, LATEST_SESSION_VERSION)
    assert [tool["name"] for tool in tools] == ["one"]
    assert [prompt["name"] for prompt in prompts] == ["ask"]
    assert texts_of(good) == ["5"]
    assert refused["isError"]
    assert texts_of(refused) == ["Unknown tool: two"]
    with pytest.raises(LookupError, match="no request"):
        server.hides  # noqa: B018 - it raises
