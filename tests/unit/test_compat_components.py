"""Tools, prompts and resources as objects, what a server's own program sees, and what is offered.

The expected values are those of FastMCP 2.14.7, 3.4.10 and 4.1.2, and of the SDK 1.30.0 and 2.3.0.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp_types import Icon
from support.compat_client import talk
from support.in_memory import with_client

from fastrpc.compat import fastmcp, mcp
from fastrpc.compat.fastmcp import (
    ArgTransform,
    DirectoryResource,
    FastMCP,
    FileResource,
    FunctionResource,
    Prompt,
    PromptArgument,
    ResourceTemplate,
    TextResource,
    Tool,
    ToolResult,
    ToolTransformConfig,
    forward,
    forward_raw,
)
from fastrpc.errors import DefinitionError, ToolError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

SECONDS = 30


def run(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, SECONDS))


def call(server: Any, name: str, **arguments: Any) -> Any:
    return talk(server, lambda client: client.call_tool(name, arguments)).data


def names_of(server: Any) -> list[str]:
    return [tool.name for tool in talk(server, lambda client: client.list_tools())]


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def test_a_function_s_tool_knows_itself_and_can_be_called() -> None:
    tool = Tool.from_function(add, name="plus", tags={"sums"}, meta={"k": 1})
    assert (tool.name, tool.key, tool.description, tool.tags, tool.meta) == (
        "plus",
        "plus",
        "Add two numbers.",
        {"sums"},
        {"k": 1},
    )
    assert tool.parameters["required"] == ["a"]
    assert tool.output_schema is not None
    assert run(tool.run({"a": 1})).structured_content == {"result": 3}
    assert run(tool.run({"a": "1"})).content[0].text == "3"
    with pytest.raises(ToolError, match="a: required, missing"):
        run(tool.run({}))
    shown = tool.to_mcp_tool(name="other").model_dump(by_alias=True, exclude_none=True)
    assert shown["name"] == "other"
    assert shown["_meta"] == {"k": 1, "fastmcp": {"tags": ["sums"]}}
    assert tool.model_copy(update={"name": "copy"}).name == "copy"
    assert tool.name == "plus"


def test_tool_objects_are_served() -> None:
    class Own(Tool):
        async def run(self, arguments: dict[str, Any]) -> ToolResult:
            if not arguments:
                raise ToolError("nothing given")
            return ToolResult("own", {"given": arguments})

    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    own = Own(name="own", description="Its own.", parameters=schema)
    hidden = Tool.from_function(add, name="hidden", enabled=False)
    server = FastMCP("a", tools=[Tool.from_function(add, name="plus"), own, hidden])
    assert names_of(server) == ["plus", "own"]
    assert call(server, "plus", a=1) == 3

    async def conversation(client: Any) -> None:
        (_, shown) = await client.list_tools()
        assert (
            shown.description,
            shown.inputSchema if hasattr(shown, "inputSchema") else shown.input_schema,
        ) == (
            "Its own.",
            schema,
        )
        result = await client.call_tool("own", {"q": "x"})
        assert result.structured_content == {"given": {"q": "x"}}
        with pytest.raises(ToolError, match="nothing given"):
            await client.call_tool("own", {})

    talk(server, conversation)


def test_a_tool_made_of_another_has_other_arguments() -> None:
    changes = {
        "a": ArgTransform(name="value", description="The value", examples=[1]),
        "b": ArgTransform(hide=True, default=10),
    }
    tool = Tool.from_tool(Tool.from_function(add), name="plus_ten", transform_args=changes)
    assert tool.parameters["properties"] == {
        "value": {"type": "integer", "description": "The value", "examples": [1]}
    }
    assert tool.parameters["required"] == ["value"]
    assert call(FastMCP("a", tools=[tool]), "plus_ten", value=1) == 11
    with pytest.raises(ToolError, match="value: required, missing"):
        call(FastMCP("a", tools=[tool]), "plus_ten")
    with pytest.raises(ToolError, match="there is no such argument"):
        call(FastMCP("a", tools=[tool]), "plus_ten", value=1, b=2)


def test_a_default_of_a_transformation_is_used_and_can_be_made_anew() -> None:
    numbers = iter(range(5))
    changes = {"a": ArgTransform(default_factory=lambda: next(numbers)), "b": ArgTransform(required=True)}
    tool = Tool.from_tool(add, transform_args=changes)
    assert tool.parameters["required"] == ["b"]
    assert [call(FastMCP("a", tools=[tool]), "add", b=0) for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("raw", [False, True])
def test_a_function_around_a_tool_calls_it_by_forward(raw: bool) -> None:
    async def ten_times(value: int) -> Any:
        """Multiply first."""
        return await (forward_raw(a=value * 10) if raw else forward(value=value * 10))

    tool = Tool.from_tool(add, transform_fn=ten_times, transform_args={"a": ArgTransform(name="value")})
    assert list(tool.parameters["properties"]) == ["value"]
    assert call(FastMCP("a", tools=[tool]), "add", value=1) == 12
    with pytest.raises(RuntimeError, match="no transformed tool is running"):
        run(forward(a=1))


def test_a_function_with_keywords_gets_all_other_arguments() -> None:
    async def logged(a: int, **others: Any) -> Any:
        return await forward(a=-a, **others)

    tool = Tool.from_tool(add, transform_fn=logged)
    assert list(tool.parameters["properties"]) == ["a", "b"]
    assert call(FastMCP("a", tools=[tool]), "add", a=1, b=5) == 4


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"c": ArgTransform(name="x")}, "the parent has no argument 'c'; it has a, b"),
        ({"a": ArgTransform(hide=True)}, "'a' is hidden and required; give it a default"),
        ({"a": ArgTransform(name="b")}, "two arguments are called 'b'"),
    ],
)
def test_a_transformation_that_cannot_be_is_refused(changes: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        Tool.from_tool(add, transform_args=changes)


def test_contradicting_options_of_an_argument_are_refused() -> None:
    with pytest.raises(ValueError, match="either default or default_factory"):
        ArgTransform(default=1, default_factory=int)
    with pytest.raises(ValueError, match="cannot be required"):
        ArgTransform(hide=True, required=True)


def test_a_configuration_makes_a_transformed_tool() -> None:
    config = ToolTransformConfig(name="sum", arguments={"a": {"name": "first"}}, tags={"t"})
    tool = config.apply(Tool.from_function(add))
    assert (tool.name, list(tool.parameters["properties"]), tool.tags) == ("sum", ["first", "b"], {"t"})


def test_prompts_and_resources_as_objects_are_served(tmp_path: Any) -> None:
    class Own(Prompt):
        async def render(self, arguments: dict[str, Any] | None = None) -> Any:
            return f"own {arguments}"

    text = tmp_path / "a.txt"
    text.write_text("from a file")
    server = FastMCP("a")
    server.add_prompt(Prompt.from_function(lambda code: f"review {code}", name="review"))
    server.add_prompt(Own(name="own", arguments=[PromptArgument("x", required=True), PromptArgument("y")]))
    server.add_resource(TextResource(uri="docs://text", text="a text", name="Text"))
    server.add_resource(FunctionResource(fn=lambda: b"\x00", uri="docs://bytes", mime_type="image/png"))
    server.add_resource(FileResource(uri="docs://file", path=text))
    server.add_resource(DirectoryResource(uri="docs://folder", path=tmp_path))
    server.add_template(
        ResourceTemplate.from_function(lambda name: f"page {name}", "docs://pages/{name}", name="page")
    )

    async def conversation(client: Any) -> None:
        assert (await client.get_prompt("review", {"code": "x"})).messages[0].content.text == "review x"
        assert (await client.get_prompt("own", {"x": "1"})).messages[0].content.text == "own {'x': '1'}"
        reads = {
            uri: (await client.read_resource(uri))[0]
            for uri in ("docs://text", "docs://file", "docs://folder")
        }
        assert reads["docs://text"].text == "a text"
        assert reads["docs://file"].text == "from a file"
        assert reads["docs://folder"].text == '{"files":["a.txt"]}'
        assert (await client.read_resource("docs://bytes"))[0].blob == "AA=="
        assert (await client.read_resource("docs://pages/one"))[0].text == "page one"
        assert {resource.name for resource in await client.list_resources()} >= {"Text", "docs://file"}

    talk(server, conversation)
    with pytest.raises(ValueError, match="expected an absolute path"):
        FileResource(uri="docs://file", path="a.txt")


def test_the_program_sees_its_own_components() -> None:
    server = FastMCP("a")
    server.add_tool(add, tags={"sums"})
    server.add_resource(TextResource(uri="docs://text", text="a text"))
    server.add_prompt(Prompt.from_function(lambda code: code, name="review"))

    async def conversation() -> None:
        (tool,) = await server.list_tools()
        assert (tool.name, tool.tags, tool.fn) == ("add", {"sums"}, add)
        assert (await server.get_tools())["add"].parameters == tool.parameters
        assert await server.get_tool("none") is None
        assert (await server.call_tool("add", {"a": 1})).structured_content == {"result": 3}
        assert [resource.uri for resource in await server.list_resources()] == ["docs://text"]
        (content,) = await server.read_resource("docs://text")
        assert (content.content, content.mime_type) == ("a text", "text/plain")
        assert [prompt.name for prompt in await server.list_prompts()] == ["review"]
        assert (await server.render_prompt("review", {"code": "x"})).messages[0].content.text == "x"
        for name, arguments in (("add", {}), ("none", {})):
            with pytest.raises(ToolError):
                await server.call_tool(name, arguments)

    run(conversation())


def test_the_sdk_s_servers_return_its_own_types() -> None:
    async def conversation(kind: Any) -> Any:
        server = kind("a")
        server.add_tool(add)
        (tool,) = await server.list_tools()
        assert tool.name == "add"
        assert server._tool_manager.get_tool("add").fn is add
        assert [each.name for each in server._tool_manager.list_tools()] == ["add"]
        return await server.call_tool("add", {"a": 1})

    blocks, structured = run(conversation(mcp.FastMCP))
    assert (blocks[0].text, structured) == ("3", {"result": 3})
    assert run(conversation(mcp.MCPServer)).content[0].text == "3"


def test_tools_are_taken_out_of_the_inner_dict() -> None:
    server = mcp.FastMCP("a")
    for name in ("one", "two", "three", "four"):
        server.add_tool(add, name=name)
    del server._tool_manager._tools["one"]
    assert server._tool_manager._tools.pop("two").name == "two"
    assert server._tool_manager._tools.pop("two", None) is None
    assert names_of(server) == ["three", "four"]
    server._tool_manager._tools.clear()
    assert names_of(server) == []


def test_rules_decide_what_is_offered_and_the_last_one_wins() -> None:
    server = FastMCP("a")
    for name, tags in (("one", {"x"}), ("two", {"x", "y"}), ("three", set())):
        server.add_tool(add, name=name, tags=tags)
    assert server.disable(tags={"x"}) is server
    assert names_of(server) == ["three"]
    server.enable(names={"two"})
    assert sorted(names_of(server)) == ["three", "two"]
    server.add_tool(add, name="four", tags={"x"})  # what is added later, too
    assert "four" not in names_of(server)
    server.enable(tags={"x"}, only=True)
    assert sorted(names_of(server)) == ["four", "one", "two"]
    server.disable(components={"tool"})
    assert names_of(server) == []
    with pytest.raises(TypeError, match="tags: expected a set of texts, got 'x'"):
        server.enable(tags="x")
    with pytest.raises(TypeError, match="colour: expected one of"):
        server.enable(colour={"x"})


def test_tags_of_the_constructor_decide_too() -> None:
    server = FastMCP("a", include_tags={"x"}, exclude_tags={"y"})
    for name, tags in (("one", {"x"}), ("two", {"x", "y"}), ("three", set())):
        server.add_tool(add, name=name, tags=tags)
    assert names_of(server) == ["one"]


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        (fastmcp.FastMCP, {}, "second"),
        (fastmcp.FastMCP, {"on_duplicate_tools": "ignore"}, "first"),
        (fastmcp.FastMCP, {"on_duplicate": "replace"}, "second"),
        (mcp.FastMCP, {}, "first"),
        (mcp.MCPServer, {"warn_on_duplicate_tools": False}, "first"),
    ],
)
def test_a_second_tool_of_one_name_is_as_in_the_original(kind: Any, options: Any, text: str) -> None:
    server = kind("a", **options)
    server.add_tool(lambda: "first", name="same")
    server.add_tool(lambda: "second", name="same")
    (content,) = talk(server, lambda client: client.call_tool("same", {})).content
    assert content.text == text


def test_duplicates_may_be_errors() -> None:
    server = FastMCP("a", on_duplicate="error")
    server.add_tool(add)
    with pytest.raises(ValueError, match="add: there is a tool of this name already"):
        server.add_tool(add)
    with pytest.raises(ValueError, match="on_duplicate_tools: expected one of warn, error, replace, ignore"):
        FastMCP("a", on_duplicate_tools="surprise")


def test_the_highest_version_is_offered() -> None:
    server = FastMCP("a")
    for version in ("1.0", "10.0", "2.0"):
        server.add_tool(
            lambda version=version: version, name="same", version=version, exclude_args=["version"]
        )
    assert names_of(server) == ["same"]
    (content,) = talk(server, lambda client: client.call_tool("same", {})).content
    assert content.text == "10.0"


def test_options_of_a_tool_have_their_effect() -> None:
    server = FastMCP("a", tool_serializer=lambda value: f"<{value}>", mask_error_details=True)

    @server.tool(exclude_args=["secret"], serializer=str)
    def shown(a: int, secret: str = "s") -> dict[str, Any]:
        return {"a": a, "secret": secret}

    @server.tool(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    def declared():  # type: ignore[no-untyped-def]
        return {"n": 1}

    @server.tool(output_schema=None)
    def plain() -> int:
        return 5

    @server.tool
    def fails() -> str:
        raise ValueError("a secret")

    async def conversation(client: Any) -> None:
        tools = {tool.name: tool for tool in await client.list_tools()}
        raw = {name: tool.model_dump(by_alias=True, exclude_none=True) for name, tool in tools.items()}
        assert list(raw["shown"]["inputSchema"]["properties"]) == ["a"]
        assert raw["declared"]["outputSchema"]["properties"] == {"n": {"type": "integer"}}
        assert "outputSchema" not in raw["plain"]
        result = await client.call_tool("shown", {"a": 1})
        assert result.content[0].text == "{'a': 1, 'secret': 's'}"
        assert (await client.call_tool("declared")).structured_content == {"n": 1}
        assert (await client.call_tool("plain")).content[0].text == "<5>"
        with pytest.raises(ToolError) as caught:
            await client.call_tool("fails")
        assert str(caught.value) == "Error calling tool 'fails'"

    talk(server, conversation)
    with pytest.raises(ValueError, match="output_schema: expected a schema of an object"):
        server.add_tool(add, name="bad", output_schema={"type": "string"})
    with pytest.raises(DefinitionError, match="'a' is no parameter of add with a default"):
        server.add_tool(add, name="bad", exclude_args=["a"])


def test_a_file_may_run_the_inner_server(tmp_path: Any) -> None:
    import sys

    from fastrpc import Client as PlainClient

    script = tmp_path / "inner.py"
    script.write_text(
        "import asyncio\n"
        "from fastrpc.compat.mcp import FastMCP, get_logger, stdio_server\n"
        "mcp = FastMCP('inner')\n"
        "@mcp.tool()\n"
        "def name() -> str:\n"
        "    get_logger('inner').warning('called')\n"
        "    return mcp._mcp_server.name\n"
        "async def main():\n"
        "    inner = mcp._mcp_server\n"
        "    async with stdio_server() as (read, write):\n"
        "        await inner.run(read, write, inner.create_initialization_options())\n"
        "asyncio.run(main())\n"
    )
    with PlainClient.sync([sys.executable, str(script)]) as client:
        assert client.call_tool("name").text == "inner"


def test_a_mixin_registers_its_marked_methods() -> None:
    class Files(fastmcp.MCPMixin):
        @property
        def broken(self) -> str:
            raise AssertionError("it is not read")

        @fastmcp.mcp_tool(description="Read it")
        def read(self, name: str) -> str:
            return f"content of {name}"

        @fastmcp.mcp_tool("left_out", enabled=False)
        def other(self) -> str:
            return ""

        @fastmcp.mcp_resource("files://all")
        def everything(self) -> str:
            return "all"

        @fastmcp.mcp_prompt()
        def ask(self, name: str) -> str:
            return f"What is in {name}?"

    server = fastmcp.FastMCP("demo")
    Files().register_all(server, prefix="disk")

    async def conversation(client: Any) -> Any:
        lists = [
            (await client.request(f"{kind}/list", {}))[kind] for kind in ("tools", "resources", "prompts")
        ]
        return lists, await client.request("tools/call", {"name": "disk_read", "arguments": {"name": "a"}})

    (tools, resources, prompts), result = with_client(server, conversation, LATEST_SESSION_VERSION)
    assert [(tool["name"], tool["description"]) for tool in tools] == [("disk_read", "Read it")]
    assert [resource["uri"] for resource in resources] == ["disk+files://all"]
    assert [prompt["name"] for prompt in prompts] == ["disk_ask"]
    assert result["content"][0]["text"] == "content of a"


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("kind", [FastMCP, mcp.FastMCP, mcp.MCPServer, mcp.Server])
def test_icons_of_a_server_may_be_models(kind: Any, later: bool) -> None:
    icons = [Icon(src="https://x.test/i.png", mime_type="image/png", sizes=["48x48"])]
    server = kind("x") if later else kind("x", icons=icons)
    if later:
        getattr(server, "_mcp_server", server).icons = icons

    async def conversation(client: Any) -> Any:
        return client.server_info["icons"]

    sent = [{"src": "https://x.test/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]
    assert with_client(server, conversation) == sent


def test_the_descriptions_of_a_prompt_objects_arguments_are_listed() -> None:
    server = FastMCP("demo")
    made = Prompt.from_function(lambda code, style=None: f"review {code}", name="review")
    made.arguments = [PromptArgument("code", "What to review", required=True), PromptArgument("style")]
    server.add_prompt(made)
    server.add_prompt(Prompt(name="own", arguments=[PromptArgument("x", "One", required=True)]))

    async def conversation(client: Any) -> Any:
        listed = (await client.request("prompts/list", {}))["prompts"]
        return [each.get("description") for prompt in listed for each in prompt["arguments"]]

    assert with_client(server, conversation) == ["What to review", None, "One"]
