"""Tools as objects that a server has registered: what a program sets on them is what clients see and call."""

from __future__ import annotations

import asyncio
from copy import copy, deepcopy
from typing import Any

import pytest
from support.in_memory import texts_of, with_client

from fastrpc.compat import fastmcp, mcp
from fastrpc.protocol.versions import LATEST_SESSION_VERSION


def server_of(kind: Any = fastmcp.FastMCP) -> Any:
    server = kind("demo")

    @server.tool()
    def search(query: str, most: int = 3) -> str:
        """Find."""
        return f"{query} {most}"

    @server.tool()
    def other() -> str:
        return "other"

    return server


def seen(server: Any, *calls: tuple[str, dict[str, Any]]) -> Any:
    """Return the tools that a client is shown, by name, and the texts of these calls."""

    async def conversation(client: Any) -> Any:
        listed = (await client.request("tools/list", {}))["tools"]
        answers = [
            await client.request("tools/call", {"name": name, "arguments": given}) for name, given in calls
        ]
        return {tool["name"]: tool for tool in listed}, [texts_of(answer) for answer in answers]

    return with_client(server, conversation, LATEST_SESSION_VERSION)


def test_a_client_learns_what_was_set_on_a_tool() -> None:
    server = server_of()
    tool = asyncio.run(server.get_tool("search"))
    tool.description, tool.title = "Find all", "Search"
    tool.tags = {"slow"}
    tool.annotations = {"readOnlyHint": True}
    tool.parameters["properties"]["query"]["description"] = "What to find"
    listed, _ = seen(server)
    assert list(listed) == ["search", "other"]
    found = listed["search"]
    assert (found["description"], found["title"]) == ("Find all", "Search")
    assert found["_meta"]["fastmcp"]["tags"] == ["slow"]
    assert found["annotations"] == {"readOnlyHint": True}
    assert found["inputSchema"]["properties"]["query"]["description"] == "What to find"
    assert asyncio.run(server.get_tool("search")) is tool


def test_a_tool_calls_the_function_that_was_set_with_its_own_parameters() -> None:
    server = server_of()
    tool = asyncio.run(server.get_tool("search"))
    tool.description = "Find all"
    former = tool.fn
    tool.fn = lambda *values, **named: f"traced {former(*values, **named)}"
    listed, (text, refused) = seen(server, ("search", {"query": "a"}), ("search", {}))
    assert text == ["traced a 3"]
    assert "query: required" in refused[0]
    assert list(listed) == ["search", "other"]
    assert listed["search"]["description"] == "Find all"
    assert set(listed["search"]["inputSchema"]["properties"]) == {"query", "most"}


def test_a_tool_that_is_disabled_is_gone_until_it_is_enabled() -> None:
    server = server_of()
    tool = asyncio.run(server.get_tool("search"))
    tool.disable()
    assert list(seen(server)[0]) == ["other"]
    tool.enable()
    assert set(seen(server)[0]) == {"search", "other"}


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda tool: tool.model_copy()])
def test_a_copy_is_a_tool_by_itself(copied: Any) -> None:
    server = server_of()
    found = copied(asyncio.run(server.get_tool("search")))
    found.description = "Another"
    assert seen(server)[0]["search"]["description"] == "Find."


def test_a_tool_object_is_added_as_it_has_become() -> None:
    server = server_of()

    def add(a: int) -> str:
        """Add."""
        return f"{a}"

    tool = fastmcp.Tool.from_function(add)
    tool.description = "Add it"
    tool.parameters["properties"]["a"]["description"] = "A number"
    server.add_tool(tool)
    found = seen(server)[0]["add"]
    assert found["description"] == "Add it"
    assert found["inputSchema"]["properties"]["a"]["description"] == "A number"


@pytest.mark.parametrize("kind", [mcp.FastMCP, mcp.MCPServer])
def test_the_sdks_tool_manager_changes_the_server(kind: Any) -> None:
    server = server_of(kind)
    tools = server._tool_manager._tools
    tools["search"].fn = lambda query, most: f"{query}!"
    tools["again"] = tools["other"]
    listed, (text, again) = seen(server, ("search", {"query": "a"}), ("again", {}))
    assert list(listed) == ["search", "other", "again"]
    assert (text, again) == (["a!"], ["other"])
    server._tool_manager._tools = {"other": tools["other"]}
    assert list(seen(server)[0]) == ["other"]
    server._tool_manager._tools = {}
    assert seen(server)[0] == {}


@pytest.mark.parametrize("kind", [mcp.FastMCP, mcp.MCPServer])
def test_a_tool_of_the_sdk_runs_with_the_context(kind: Any) -> None:
    class Loud(mcp.Tool):
        async def run(self, arguments: Any, context: Any, convert_result: bool = False) -> Any:
            return f"{await super().run(arguments, context, convert_result)} {context.request_id}"

    async def say(text: str) -> str:
        return text.upper()

    server = kind("demo")
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    server._tool_manager._tools["say"] = Loud(name="say", fn=say, parameters=parameters, is_async=True)
    _, (text,) = seen(server, ("say", {"text": "a"}))
    assert text[0].startswith("A ")


@pytest.mark.parametrize("kind", [mcp.FastMCP, mcp.MCPServer])
def test_a_tool_is_made_of_a_function_and_its_metadata(kind: Any) -> None:
    class Adder:
        def add(self, a: int, b: int = 2) -> str:
            return f"{a + b}"

    adder = Adder()
    metadata = mcp.func_metadata(Adder.add, skip_names=["self"])
    assert metadata.output_schema is None or "result" in metadata.output_schema["properties"]
    parameters = metadata.arg_model.model_json_schema()
    assert set(parameters["properties"]) == {"a", "b"}
    tool = mcp.Tool(
        fn=lambda own, **given: f"{adder.add(**given)} {own.request_id}",
        name="add",
        parameters=parameters,
        fn_metadata=metadata,
        is_async=False,
        context_kwarg="own",
    )
    server = kind("demo")
    server._tool_manager._tools["add"] = tool
    listed, (text, refused) = seen(server, ("add", {"a": "3"}), ("add", {"b": 1}))
    assert set(listed["add"]["inputSchema"]["properties"]) == {"a", "b"}
    assert text[0].startswith("5 ")
    assert "a\n  Field required" in refused[0]


@pytest.mark.parametrize("kind", [mcp.FastMCP, mcp.MCPServer])
def test_another_model_of_the_arguments_validates_them(kind: Any) -> None:
    server = server_of(kind)
    tool = server._tool_manager.get_tool("search")
    former = tool.fn_metadata.arg_model

    class Own(former):  # type: ignore[misc]
        @classmethod
        def model_validate(cls, value: Any, **options: Any) -> Any:
            if "query" not in value:
                raise mcp.ToolError("say what to find")
            return super().model_validate(value, **options)

    tool.fn_metadata.arg_model = Own
    tool.parameters["properties"]["query"]["description"] = "What to find"
    tool.description = "Find all"
    listed, (text, refused) = seen(server, ("search", {"query": "a", "most": "4"}), ("search", {}))
    assert listed["search"]["description"] == "Find all"
    assert listed["search"]["inputSchema"]["properties"]["query"]["description"] == "What to find"
    assert text == ["a 4"]
    assert "say what to find" in refused[0]


@pytest.mark.parametrize("kind", [mcp.FastMCP, mcp.MCPServer])
@pytest.mark.parametrize("model_first", [True, False])
def test_a_model_of_the_arguments_and_another_function_go_together(kind: Any, model_first: bool) -> None:
    server = kind("demo")

    @server.tool()
    def find(query: str, ctx: mcp.Context[Any, Any, Any], most: int = 3) -> str:
        return f"{query} {most} {ctx.request_id is not None}"

    tool = server._tool_manager.get_tool("find")
    former = tool.fn_metadata.arg_model

    class Own(former):  # type: ignore[misc]
        @classmethod
        def model_validate(cls, value: Any, **options: Any) -> Any:
            return super().model_validate({"most": 5, **value}, **options)

    def traced(**given: Any) -> str:
        return f"traced {find(**given)}"

    changes = [lambda: setattr(tool.fn_metadata, "arg_model", Own), lambda: setattr(tool, "fn", traced)]
    for change in changes if model_first else reversed(changes):
        change()
    tool.description = "Find"
    listed, (text,) = seen(server, ("find", {"query": "a"}))
    assert text == ["traced a 5 True"]
    assert listed["find"]["description"] == "Find"
    assert set(listed["find"]["inputSchema"]["properties"]) == {"query", "most"}


def test_a_parameter_may_have_the_name_of_a_models_method() -> None:
    def copy_of(copy: str, schema: int = 1) -> None: ...

    model = mcp.func_metadata(copy_of).arg_model
    assert model.model_validate({"copy": "a"}).model_dump_one_level() == {"copy": "a", "schema": 1}
